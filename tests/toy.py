"""Small data that every model can learn from in a moment; other packages have them, too."""

from discreet.testing.small_data import toy_interactions

__all__ = ["toy_interactions"]
