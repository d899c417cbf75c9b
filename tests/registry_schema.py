"""The registry schema, which is not ours to copy: from DISCREET_REGISTRY or next to the repository."""

import os
from pathlib import Path

import jsonschema
import pytest
import yaml

NAME = "deployments-schema.yaml"
FOLDERS = [
    *([Path(os.environ["DISCREET_REGISTRY"])] if "DISCREET_REGISTRY" in os.environ else []),
    Path(__file__).parents[1].parent / "shared" / "registry",
]


def schema():
    """Return the schema, or skip the test."""
    for folder in FOLDERS:
        if (folder / NAME).is_file():
            return yaml.safe_load((folder / NAME).read_text(encoding="utf-8"))
    pytest.skip(f"needs {NAME} of the registry of deployments in DISCREET_REGISTRY")


def faults(record, rules):
    """Return what the schema objects to, dates included."""
    check = jsonschema.Draft202012Validator(rules, format_checker=jsonschema.FormatChecker())
    return [f"{error.json_path}: {error.message}" for error in check.iter_errors(record)]


def keys_up_to(tier, rules, path=()):
    """Return the paths of all keys that the schema describes for entries of a tier."""
    found = []
    for name, rule in rules.get("properties", {}).items():
        here = (*path, name)
        inner = keys_up_to(tier, rule, here)
        found += inner if inner else [here] * (rule.get("tier", 9) <= tier)
    return found
