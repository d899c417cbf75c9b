"""Fit on more data than one machine holds: shards on disk, sums over shards on a Dask cluster."""
