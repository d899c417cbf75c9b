"""What every layer uses: checks, array types, CSR rows, randomness, files, lazy exports."""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
