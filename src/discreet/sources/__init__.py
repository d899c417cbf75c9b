"""Fit on more data than fit in memory: shards on disk, and sums over shards on a Dask cluster."""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
