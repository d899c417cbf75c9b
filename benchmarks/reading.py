"""Compare reading generated ratings with polars, which reads and groups the same file, and watch the memory.

    python benchmarks/reading.py --json                      ten million rows
    python benchmarks/reading.py --json --rows 100000000     a hundred million

Each side runs in a process of its own, alternating, so that neither finds the memory the other left and both
find the file in the page cache. `ratio` is the median of our CPU seconds over the median of polars'. Seconds
of all threads count, so that other work on the machine doesn't change the ratio.

Both sides first read a file of two rows. `startup` has the seconds of that: the imports, and compiled loops
that our side loads. Polars has less to do: it groups rows by user, but doesn't number the items, sort them
within a user, look for repeated pairs, or check the scale. It also guesses types from the first rows.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from pathlib import Path

import harness
import numpy as np

_BLOCK = 5_000_000
_ITEM_BITS = 15


def write_ratings(folder: Path, rows: int) -> dict[str, Path]:
    """Write the same ratings as CSV and Parquet, in no order, with ids that leave gaps."""
    import polars as pl

    draw = np.random.default_rng(1)
    user_bits = max(8, int(np.log2(rows / 100)))
    table = folder / "blocks"
    table.mkdir()
    with (folder / "ratings.csv").open("wb") as text:
        for number, start in enumerate(range(0, rows, _BLOCK)):
            frame = _block(np.arange(start, min(rows, start + _BLOCK), dtype=np.uint64), user_bits, draw)
            frame.write_csv(text, include_header=start == 0)
            frame.write_parquet(table / f"{number:05}.parquet")
    pl.scan_parquet(table / "*.parquet").sink_parquet(folder / "ratings.parquet")
    frame.head(2).write_csv(folder / "few.csv")
    frame.head(2).write_parquet(folder / "few.parquet")
    return {"csv": folder / "ratings.csv", "parquet": folder / "ratings.parquet"}


def _block(index: np.ndarray, user_bits: int, draw: np.random.Generator):
    """Return rows whose pairs never repeat: scrambling an index bit by bit is one to one."""
    import polars as pl

    bits = np.uint64(user_bits + _ITEM_BITS)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    cell = index
    for _ in range(3):
        cell = (cell * np.uint64(0x9E3779B97F4A7C15)) & mask
        cell ^= cell >> (bits // np.uint64(2))
    return pl.DataFrame(
        {
            "userId": (cell >> np.uint64(_ITEM_BITS)).astype(np.int64) * 3 + 1,
            "movieId": (cell & np.uint64((1 << _ITEM_BITS) - 1)).astype(np.int64) * 2 + 1,
            "rating": draw.integers(1, 11, index.size).astype(np.float32) / 2,
        }
    )


def read_ours(path: Path) -> dict[str, float]:
    from discreet.data.reading.readers import read

    data = read(path, low=0.5, high=5, step=0.5)
    arrays = (data.indptr, data.items, data.values, data.times, data.listed)
    return {"array_mb": sum(a.nbytes for a in arrays if a is not None) / 1e6, "rows": data.n_ratings}


def read_polars(path: Path) -> dict[str, float]:
    import polars as pl

    frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    frame.group_by("userId").agg(pl.all())
    return {"array_mb": frame.estimated_size() / 1e6, "rows": frame.height}


def measure(job, path: Path) -> dict[str, float]:
    """Read once, after a small file, and add the peak memory of the process."""
    begun = time.process_time()
    job(path.with_stem("few"))
    ready = time.process_time()
    found = job(path)
    return {
        **found,
        "seconds": time.process_time() - ready,
        "startup": ready - begun,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def compare(path: Path, repeat: int, toy: bool) -> dict[str, object]:
    runs = {"ours": [], "polars": []}
    for _ in range(repeat):
        runs["polars"].append(harness.in_own_process(measure, read_polars, path, toy=toy))
        runs["ours"].append(harness.in_own_process(measure, read_ours, path, toy=toy))
    seconds = {side: statistics.median(run["seconds"] for run in done) for side, done in runs.items()}
    return {
        "ratio": seconds["ours"] / seconds["polars"],
        "cpu_seconds": seconds,
        "startup": {side: statistics.median(run["startup"] for run in done) for side, done in runs.items()},
        "peak_mb": {side: max(run["peak_mb"] for run in done) for side, done in runs.items()},
        "array_mb": runs["ours"][0]["array_mb"],
        "rows": runs["ours"][0]["rows"],
        "file_mb": path.stat().st_size / 1e6,
    }


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"rows": 1_000, "repeat": 1},
        rows=10_000_000,
        repeat=3,
        folder=harness.option(type=Path, help="where to write the files; a temporary folder by default"),
    )
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = {
            kind: compare(path, options.repeat, options.toy)
            for kind, path in write_ratings(Path(folder), options.rows).items()
        }
    result = {"benchmark": "reading", "peer": "polars", "ratio": found["csv"]["ratio"], **found}
    harness.tell(result, options)


if __name__ == "__main__":
    main()
