"""State privacy guarantees, account for their cost, and add the noise. Nothing here reads ratings."""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
