"""Errors of data sources: databases, shards, clusters, and the lists written from them."""

from __future__ import annotations

from discreet.core.errors import DataError, DiscreetError, FileError, ParameterError


class ClusterError(DiscreetError):
    """A cluster that can't be used, or that was lost."""


class UnknownEngine(ParameterError):
    address: str
    forms: tuple[str, ...]
    text = "{arg:on} is {address!r}, which isn't the address of an engine. Pass {forms:or}."


class NoDatabase(FileError):
    path: str
    text = "The database {path} doesn't exist, so nothing was read. Check the path."


class UnreadableTable(FileError):
    engine: str
    source: str
    why: str
    text = "{engine} can't read {source!r}: {why}. Check the name of the table or the query."


class SparkNotStarted(ClusterError):
    address: str
    text = """Spark couldn't be started for {address}. Check the address, and that Java 17 or later is
    installed. No budget was spent."""


class NoExecutors(ClusterError):
    seconds: float
    text = """Spark started no executor within {seconds:g} seconds, so nothing can be summed. Start a worker,
    or free cores of one. No budget was spent."""


class SparkLost(ClusterError):
    text = """Lost connection to Spark, or it has no executors that stay alive. Check its workers, then fit
    again."""


class ExecutorFailed(ClusterError):
    why: str
    text = "A Spark executor failed ({why}). Check the executor's log, then fit again."


class DifferentCatalog(DataError):
    text = """The catalog of the shards differs from the model's, so items can't be matched. Make the shards
    with the model's catalog."""


class NoWorkers(ClusterError):
    text = "The cluster has no workers, so nothing can be summed. Start some with `dask worker HOST:PORT`."


class WorkersDiffer(ClusterError):
    count: int
    of: int
    names: tuple[str, ...]
    text = """{count} of {of:worker has|workers have} a different environment than this process ({names:all}),
    so sums could differ in their last bits. Use workers with the same package, libraries, and kind of
    processor."""


class NoScheduler(ClusterError):
    address: str
    text = "No scheduler answers at {address}. Check the address, or start one with `dask scheduler`."


class WorkersDied(ClusterError):
    text = "Workers died repeatedly on one shard, probably because of memory. Give them more memory."


class ClusterLost(ClusterError):
    why: str
    text = "Lost the Dask cluster: {why}. Check its scheduler and workers, then fit again."


class FolderNotShared(FileError):
    folder: str
    text = """A worker doesn't see the same folder at {folder} as the driver, so its sums could be wrong. Put
    the folder at one path on all machines."""


class NotShards(FileError):
    folder: object
    text = "{folder} isn't a folder of shards, which this call needs. Make one with `discreet data shard`."


class OldShards(FileError):
    folder: object
    version: int
    text = """{folder} has a different format than version {version}, which this version of `discreet data
    shard` reads. Make the folder again."""


class ShardsDamaged(FileError):
    file: object
    text = """{file} is damaged, or was changed after the folder was made. Make the folder again with
    `discreet data shard`."""


class ShardsFinished(FileError):
    folder: object
    text = "{folder} is a finished folder of shards, so it was not changed. Choose another folder."


class ShardsInUse(FileError):
    folder: object
    text = """Another run is making {folder}, or the folder can't be locked. Wait for it to end, or use a
    local disk."""


class FolderOccupied(FileError):
    folder: object
    text = """{folder} has other files, or an unfinished run with other files or settings. Remove it, or
    choose another folder."""


class ShardingStopped(FileError):
    folder: object
    reason: str
    text = "{folder} can't be written: {reason}. Finished work is kept. Run the command again to resume."


class MixedColumns(DataError):
    text = """Some files have ratings or times and other files don't, but all files of a folder need the same
    columns. Drop the column with {arg:columns=rating=none}."""


class NoRatings(DataError):
    text = "The files have no ratings, so there is nothing to shard. Check the path and the columns."


class CountNotSharded(ParameterError):
    text = """{arg:duplicates=count} can't be used for shards, because pieces are read one at a time. Count
    the events first, or pass {arg:duplicates=last}."""
