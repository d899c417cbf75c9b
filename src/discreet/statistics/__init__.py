"""Map each user to a bounded vector, and sum these vectors exactly over all users."""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
