"""The former name of `discreet.sources`: each of its modules is the module of that name there."""

import importlib
import sys

for _name in ("cluster", "connection", "lists", "manifest", "object_stores", "pieces", "sharding", "shards"):
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"discreet.sources.{_name}")
