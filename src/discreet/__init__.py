"""Recommendations that keep a secret: learned with a proven differential-privacy promise."""

from __future__ import annotations

from discreet import recipes
from discreet.data.interactions import Interactions, PublicFacts
from discreet.models.storage import load
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Ledger
from discreet.randomness import PrivacyRandom

__all__ = ["Guarantee", "Interactions", "Ledger", "PrivacyRandom", "PublicFacts", "load", "recipes"]
