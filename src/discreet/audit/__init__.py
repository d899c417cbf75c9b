"""Try to refute privacy guarantees from what is released.

`audit` attacks any callable; `discreet model audit MODEL` attacks a model of this package in every view.
"""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
