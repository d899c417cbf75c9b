"""Errors of data sources: databases, shards, clusters, and the lists written from them."""

from __future__ import annotations

from discreet.core.errors import DataError, DiscreetError, FileError, ParameterError


class ClusterError(DiscreetError):
    """A cluster that can't be used, or that was lost."""


class UnknownEngine(ParameterError):
    """An address that names no engine."""

    address: str
    forms: tuple[str, ...]
    text = "{arg:on} is {address!r}, which isn't the address of an engine. Pass {forms:or}."


class NoDatabase(FileError):
    """A database file that doesn't exist."""

    path: str
    text = "The database {path} doesn't exist, so nothing was read. Check the path."


class UnreadableTable(FileError):
    """A table or query that an engine can't read. Its own words may quote a row, so they aren't shown."""

    engine: str
    source: str
    why: str
    text = "{engine} can't read {source!r}: {why}. Check the name of the table or the query."


class SparkNotStarted(ClusterError):
    """Spark couldn't be started."""

    address: str
    text = (
        "Spark couldn't be started for {address}. Check the address, and that Java 17 or later is installed. "
        "No budget was spent."
    )


class SparkLost(ClusterError):
    """Spark was lost during a sum, or returned nothing."""

    text = (
        "Lost connection to Spark, or its executors died repeatedly. Start the cluster again. Budget already "
        "spent on this fit is not returned."
    )


class ExecutorFailed(ClusterError):
    """An executor that reported why it could not sum."""

    why: str
    text = (
        "A Spark executor failed ({why}). Check the executor's log, then fit again. Budget already spent on "
        "this fit is not returned."
    )


class DifferentCatalog(DataError):
    """Shards whose catalog isn't that of the model."""

    text = (
        "The catalog of the shards differs from the model's, so items can't be matched. Make the shards with "
        "the model's catalog."
    )


class NoWorkers(ClusterError):
    """The cluster has no workers."""

    text = "The cluster has no workers, so nothing can be summed. Start some with `dask worker HOST:PORT`."


class WorkersDiffer(ClusterError):
    """Workers have a different environment than this process."""

    count: int
    of: int
    names: tuple[str, ...]
    text = (
        "{count} of {of:worker has|workers have} a different environment than this process "
        "({names:all}), so sums could differ in their last bits. Use workers with the same package, "
        "libraries, and kind of processor."
    )


class NoScheduler(ClusterError):
    """No scheduler answers."""

    address: str
    text = "No scheduler answers at {address}. Check the address, or start one with `dask scheduler`."


class WorkersDied(ClusterError):
    """Workers died repeatedly."""

    text = (
        "Workers died repeatedly on one shard, probably because of memory. Give them more memory. Budget "
        "already spent on this fit is not returned."
    )


class ClusterLost(ClusterError):
    """A cluster lost its scheduler or all its workers."""

    why: str
    text = (
        "Lost the Dask cluster: {why}. Check its scheduler and workers, then fit again. Budget already spent "
        "on this fit is not returned."
    )


class FolderNotShared(FileError):
    """A worker sees no folder, or a different one."""

    folder: str
    text = (
        "A worker doesn't see the same folder at {folder} as the driver, so its sums could be wrong. Put the "
        "folder at one path on all machines."
    )


class NoParquet(FileError):
    """A folder has no Parquet files."""

    folder: object
    text = "The folder {folder} has no Parquet files, and only these are read from a folder. Check the path."


class NotShards(FileError):
    """A folder is not one of shards."""

    folder: object
    text = "{folder} isn't a folder of shards, which this call needs. Make one with `discreet data shard`."


class OldShards(FileError):
    """A folder of shards has a format that this version can't read."""

    folder: object
    version: int
    text = (
        "{folder} was made by another version of `discreet data shard`, and this one reads format {version}. "
        "Make it again."
    )


class ShardsDamaged(FileError):
    """A file of a folder of shards is damaged or was changed."""

    file: object
    text = (
        "{file} is damaged, or was changed after the folder was made. Make the folder again with "
        "`discreet data shard`."
    )


class ShardsFinished(FileError):
    """A finished folder of shards is not overwritten."""

    folder: object
    text = "{folder} is a finished folder of shards and was not changed. Choose another folder."


class ShardsInUse(FileError):
    """Another run is making the folder."""

    folder: object
    text = (
        "Another run is making {folder}, or the folder can't be locked. Wait for it to end, or use a "
        "local disk."
    )


class FolderOccupied(FileError):
    """A folder has other files, or an unfinished run with other settings."""

    folder: object
    text = (
        "{folder} has other files, or an unfinished run with other files or settings. Remove it, or "
        "choose another folder."
    )


class ShardingStopped(FileError):
    """The folder can't be written, for example because the disk is full."""

    folder: object
    reason: str
    text = "{folder} can't be written: {reason}. Finished work is kept. Run the command again to resume."


class MixedColumns(DataError):
    """Some files have a column, and others don't."""

    text = (
        "Some files have ratings or times and others have none, but one folder has one form. Drop the column "
        "with {arg:columns=rating=none}."
    )


class NoRatings(DataError):
    """Files have no ratings."""

    text = "The files have no ratings, so there is nothing to shard. Check the path and the columns."


class CountNotSharded(ParameterError):
    """Repeated events can't be counted while sharding."""

    text = (
        "{arg:duplicates=count} can't be used for shards, because pieces are read one at a time. Count the "
        "events first, or pass {arg:duplicates=last}."
    )
