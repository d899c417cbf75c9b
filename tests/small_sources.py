"""Sparse rows as data, so that a statistic can be asked about them, and what a mechanism was given."""

from discreet.testing.small_data import observed, people_of

__all__ = ["observed", "people_of"]
