"""Estimators that state a guarantee, spend its budget and train, and the fitted models they release."""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
