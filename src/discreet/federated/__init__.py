"""Learn with parties that keep their data: in rounds, each sends a noisy answer, and answers are summed."""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
