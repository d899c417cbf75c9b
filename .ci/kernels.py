"""Compile the kernels that a wheel contains, for this Python and for processors of the level x86-64-v3.

    python .ci/kernels.py            into build/kernels, from where hatchling puts them into a wheel

Runs the commands of a first day on small generated data and keeps what numba compiled. Other kernels, and
all kernels on other machines, are compiled at their first use. Takes about two minutes of processor time.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build" / "kernels"
PROCESSOR = "x86-64-v3"
FEATURES = (
    "avx avx2 bmi bmi2 cmov cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf "
    "sse sse2 sse3 sse4.1 sse4.2 ssse3 xsave"
)
DAY = """
import json, sys
from numba.core.registry import cpu_target
from discreet.cli import main
from large_data import LargeShape, write_large

shape = LargeShape(n_users=500, n_items=300, n_ratings=20_000)
for ending in ("csv", "parquet"):
    write_large(f"timed.{ending}", shape, times=True)
    write_large(f"plain.{ending}", shape)
for command in json.loads(sys.argv[1]):
    sys.argv = ["discreet", *command]
    try:
        main()
    except SystemExit as end:
        if end.code:
            sys.exit(f"{command} failed")
system, processor, features = cpu_target.target_context.codegen().magic_tuple()
print(json.dumps({"system": system, "processor": processor, "features": features}))
"""
HISTORY = "item,rating\n7,5\n8,1\n"
OTHERS = ("als", "biases", "covariance-svd", "ease", "frank-wolfe", "local-channel", "popularity")


def commands() -> list[list[str]]:
    """Return the commands of a first day."""
    scale, out = ["--scale", "1,5,1"], ["--out", "m.discreet", "--force"]
    own, everyone = ["recommend", "m.discreet", "--history", "me.csv"], ["--out", "lists.parquet", "--force"]
    found = [["demo"], ["fit", "discreet-demo", "--epsilon", "1", *out]]
    for file in ("timed.csv", "plain.csv", "timed.parquet", "plain.parquet"):
        for epsilon in ("1", "32", "inf") if file.endswith("parquet") else ("1",):
            for purpose in ("lists", "ratings"):
                found.append(["fit", file, "--epsilon", epsilon, "--for", purpose, *scale, *out])
                found += [own, ["recommend", "m.discreet", file, "--all", *everyone]]
        found += [["fit", file, "--epsilon", "8", "--implicit", *out], own]
    for model in OTHERS:
        epsilon = "inf" if model in ("als", "ease") else "4"
        found += [["fit", "timed.parquet", "--model", model, "--epsilon", epsilon, *scale, *out], own]
    found.append(["evaluate", "timed.parquet", "--epsilon", "8", "--metric", "rmse,hr@10,ndcg@10", *scale])
    found.append(["data", "shard", "timed.parquet", "--out", "shards", *scale])
    for purpose in ("lists", "ratings"):
        found.append(["fit", "shards", "--epsilon", "32", "--for", purpose, *out])
    return found


def main() -> None:
    """Run all commands in one process with a cache of its own, and keep the files of the cache."""
    sys.path.insert(0, str(ROOT))
    from hatch_build import digest_of_sources

    with tempfile.TemporaryDirectory() as aside:
        work, cache = Path(aside) / "work", Path(aside) / "cache"
        work.mkdir()
        (work / "me.csv").write_text(HISTORY)
        own = {
            "NUMBA_CACHE_DIR": str(cache),
            "NUMBA_CPU_NAME": PROCESSOR,
            "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in FEATURES.split()),
            "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("src", "benchmarks")),
        }
        done = subprocess.run(
            [sys.executable, "-c", DAY, json.dumps(commands())],
            cwd=work,
            env=os.environ | own,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
        keep(cache, {**json.loads(done.stdout.splitlines()[-1]), "sources": digest_of_sources(ROOT)})


def keep(cache: Path, stated: dict[str, str]) -> None:
    """Put the files of a cache into one folder, next to those of other versions of Python."""
    place, kept = OUT / "target.json", json.dumps(stated)
    if OUT.exists() and (not place.exists() or place.read_text() != kept):
        shutil.rmtree(OUT)
    OUT.mkdir(parents=True, exist_ok=True)
    names: set[str] = set()
    for file in sorted(cache.rglob("*.nb[ic]")):
        assert file.name not in names, f"two kernels are called {file.name}"
        names.add(file.name)
        shutil.copy(file, OUT / file.name)
    place.write_text(kept)
    size = sum(file.stat().st_size for file in OUT.iterdir())
    print(f"{len(names)} files of kernels for Python {platform.python_version()}, {size:,} bytes in all")


if __name__ == "__main__":
    main()
