"""Measure how well a model predicts and ranks held-out ratings, compared with simple baselines."""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
