"""Keep models fresh all year at one budget: every rating enters once, and all releases are one Gaussian."""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
