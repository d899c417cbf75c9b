"""Render labels, pages and charts. Modules here know words and layouts, and nothing of data or accounting."""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
