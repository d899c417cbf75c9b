"""Fit on more data than fit in memory: shards on disk, and sums over shards on a Dask cluster."""
