"""Tell whether two processes compute a person's vector to the same last bit.

That needs the same code, compiled by the same compiler for the same kind of processor. Were it otherwise, the
place where somebody is computed, which may depend on who else is in the data, could show in their vector
(proofs/exact_sums.md).
"""

from __future__ import annotations

import hashlib
import platform
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding
import numba


@lru_cache(maxsize=1)
def fingerprint() -> dict[str, str]:
    """Return what the last bits of a computation here depend on, by name."""
    libraries = {name: version(name) for name in ("numba", "llvmlite", "numpy", "scipy", "polars")}
    features = str(numba.config.CPU_FEATURES) + llvmlite.binding.get_host_cpu_features().flatten()  # type: ignore[attr-defined]
    return {
        "discreet": _digest_of_sources(),
        **libraries,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": f"{numba.config.CPU_NAME} {llvmlite.binding.get_host_cpu_name()}",  # type: ignore[attr-defined]
        "instructions": hashlib.sha256(features.encode()).hexdigest(),
    }


def differences(theirs: dict[str, str]) -> list[str]:
    """Return the names in which a fingerprint differs from the one of this process."""
    own = fingerprint()
    return sorted(name for name in own.keys() | theirs.keys() if own.get(name) != theirs.get(name))


def _digest_of_sources() -> str:
    """Return a digest of the package's own code."""
    root = Path(__file__).parents[1]
    total = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        total.update(file.relative_to(root).as_posix().encode())
        total.update(file.read_bytes())
    return total.hexdigest()
