"""The systems of five papers, one folder per paper: algorithms, theory, and the baselines of the paper."""

from __future__ import annotations

#: What each paper is called, by the name that commands use; a folder has underscores for hyphens.
PAPERS = {
    "one-bit": "Li, Wei, Huang, Mao and Wang, One-Bit Matrix Completion with Differential Privacy",
    "frank-wolfe": "Jain, Thakkar and Thakurta, Differentially Private Matrix Completion Revisited",
    "mixture": "Neera, Chen, Aslam and Shu, Local Differentially Private Matrix Factorization with MoG",
    "collection": "Zheng, Two Differentially Private Rating Collection Mechanisms",
    "dpimf": "Ran, Ye, Huang and Hu, Differentially Private Implicit Matrix Factorization",
}


def paper_at(place: str) -> str | None:
    """Return the paper whose folder a registered place lies in, or None."""
    package, papers, room, *_ = (*place.split("."), "", "", "")
    name = room.replace("_", "-")
    return name if (package, papers) == ("discreet", "papers") and name in PAPERS else None
