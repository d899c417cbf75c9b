"""The systems of five papers, one folder per paper: algorithms, theory, and the baselines of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What each paper is called, by the name that commands use; a folder has underscores for hyphens.
PAPERS = {
    "one-bit": "Li, Wei, Huang, Mao and Wang, One-Bit Matrix Completion with Differential Privacy",
    "frank-wolfe": "Jain, Thakkar and Thakurta, Differentially Private Matrix Completion Revisited",
    "mixture": "Neera, Chen, Aslam and Shu, Local Differentially Private Matrix Factorization with MoG",
    "collection": "Zheng, Two Differentially Private Rating Collection Mechanisms",
    "dpimf": "Ran, Ye, Huang and Hu, Differentially Private Implicit Matrix Factorization",
}

#: Names that papers use, with the model and the settings that they stand for.
PAPER_NAMES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "blp-mog-mf": ("local-mixture", {"solver": "weighted-pca"}),
    "isgd": ("local-sgd", {}),
    "pg-mf": ("private-gradients", {}),
    "dplcf": ("neighbours", {"likeness": "jaccard"}),
    "ldpicf": ("neighbours", {"likeness": "cosine"}),
    "svd-poster": ("covariance-svd", {"biases": False}),
    "pgd-poster": ("projected-gradient", {"biases": False, "rounds": 5}),
    "one-bit-gradient-printed": ("one-bit-gradient", {"rounds": 5, "step": "barzilai-borwein"}),
}


def paper_at(place: str) -> str | None:
    """Return the paper whose folder a registered place lies in, or None."""
    package, papers, room, *_ = (*place.split("."), "", "", "")
    name = room.replace("_", "-")
    return name if (package, papers) == ("discreet", "papers") and name in PAPERS else None


def titled(name: str, settings: Mapping[str, Any]) -> str:
    """Return a model's name, with the paper's name for the model with these settings."""
    also = [
        own
        for own, (of, implied) in PAPER_NAMES.items()
        if of == name and all(settings.get(key) == value for key, value in implied.items())
    ]
    return f"{', '.join(also)} ({name})" if also else name
