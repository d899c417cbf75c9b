"""People whose rows are not in this process: shards on disk, and clusters that read them."""

from discreet.crowds.shards import ShardFolder, is_shard_folder, open_shards

__all__ = ["ShardFolder", "is_shard_folder", "open_shards"]
