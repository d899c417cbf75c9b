"""Many people at once: cut their files into shards, sum over shards on a cluster, make everybody's lists."""
