"""Read, hold, bound and split ratings; nothing here depends on privacy or models."""

from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary

__all__ = ["Interactions", "PublicFacts", "Vocabulary"]
