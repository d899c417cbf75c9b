"""Recommendations that keep a secret: learned with a proven differential-privacy promise.

Names are imported when they are first used, so that the command line answers at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.data.datasets import catalog
    from discreet.data.facts import PublicFacts
    from discreet.data.interactions import Interactions
    from discreet.data.reading.readers import from_frame, read
    from discreet.models.als import Als, ImplicitAls
    from discreet.models.biases import Biases
    from discreet.models.popularity import Popularity
    from discreet.models.storage import load
    from discreet.models.user_factorization.estimator import UserFactorization
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger.book import Ledger
    from discreet.randomness import PrivacyRandom

_HOMES = {
    "Als": "discreet.models.als",
    "Biases": "discreet.models.biases",
    "Guarantee": "discreet.privacy.guarantee",
    "ImplicitAls": "discreet.models.als",
    "Interactions": "discreet.data.interactions",
    "Ledger": "discreet.privacy.ledger.book",
    "Popularity": "discreet.models.popularity",
    "PrivacyRandom": "discreet.randomness",
    "PublicFacts": "discreet.data.facts",
    "UserFactorization": "discreet.models.user_factorization.estimator",
    "from_frame": "discreet.data.reading.readers",
    "load": "discreet.models.storage",
    "read": "discreet.data.reading.readers",
}
_MODULES = {"catalog": "discreet.data.datasets.catalog"}

__all__ = [
    "Als",
    "Biases",
    "Guarantee",
    "ImplicitAls",
    "Interactions",
    "Ledger",
    "Popularity",
    "PrivacyRandom",
    "PublicFacts",
    "UserFactorization",
    "catalog",
    "from_frame",
    "load",
    "read",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
