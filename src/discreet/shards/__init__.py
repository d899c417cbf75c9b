"""People whose rows lie on disk: folders of shards, read and summed over piece by piece."""

from discreet.shards.folder import ShardFolder, is_shard_folder, open_shards

__all__ = ["ShardFolder", "is_shard_folder", "open_shards"]
