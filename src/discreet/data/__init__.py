"""Hold who rated what: read it, bound it, split it; nothing here knows about privacy or models."""

from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary

__all__ = ["Interactions", "PublicFacts", "Vocabulary"]
