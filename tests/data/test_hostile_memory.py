"""A crafted file is rejected before it takes much memory; the message names the worst file."""

import gzip
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROWS = 30_000_000
MEGABYTE = 1 << 20
# Prints the most memory that reading took on top of what was there before, and how the file was rejected.
READ = """
import sys
import discreet, polars, scipy.sparse
from discreet.core.checks import DiscreetError
from discreet.data.reading import line_splitting

def kilobytes(what):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what))

with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
start = kilobytes("VmRSS")
try:
    discreet.read(sys.argv[1])
    ended = "read"
except DiscreetError as error:
    ended = type(error).__name__
print((kilobytes("VmHWM") - start) >> 10, ended)
"""


def run_length(path, rows):
    table = pl.select(pl.repeat(1, rows).alias("user"), pl.repeat(2, rows).alias("item"))
    table.with_columns(pl.lit(3.0).alias("rating")).write_parquet(path, row_group_size=rows)


def run_length_padded(path):
    """Write as many equal rows as a megabyte may have, with noise in a column that nobody reads."""
    rows = 3_000_000
    table = pl.select(pl.repeat(1, rows).alias("user"), pl.repeat(2, rows).alias("item"))
    padded(table.with_columns(pl.lit(3.0).alias("rating"))).write_parquet(path, row_group_size=rows)


def padded(table):
    """Add noise of a megabyte, in a column that nobody reads, so that a file may have more rows."""
    noise = pl.Series("noise", [os.urandom(MEGABYTE).hex()])
    return table.with_columns(noise.extend_constant("", table.height - 1))


def dictionary(path):
    """Write a long text that a dictionary has once, for many rows."""
    rows = 100_000
    items = pl.Series("item", ["x" * 100_000, "a"], dtype=pl.String)
    table = pl.DataFrame({"user": np.arange(rows), "item": items[0]}).with_columns(
        pl.lit(3.0).alias("rating")
    )
    table.write_parquet(path, compression="zstd")


def crossed(users, again=1):
    """Return all pairs of so many users and 1,000 items, which pack well, and the first ones again."""
    frame = pl.DataFrame({"user": np.repeat(np.arange(users), 1000), "item": np.tile(np.arange(1000), users)})
    return pl.concat([frame, frame.head(again)]).with_columns(pl.lit(3.0).alias("rating"))


def packed_pairs(path):
    """Write different pairs, out of order, which pack to two bytes a row."""
    frame = crossed(2600, 0)
    lines = pl.concat([frame.tail(1), frame.head(frame.height - 1)]).write_csv(include_header=False)
    path.write_bytes(gzip.compress(lines.replace(".0", "").encode()))


def one_line(path):
    path.write_bytes(gzip.compress(b"user,item,rating\n" + b"1,2,3\n" * 10_000_000))


def zipped(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("r.csv", b"user,item,rating\n" + b"1,2,3\n" * 10_000_000)


def objects(path):
    line = json.dumps({"user": "a", "item": "b", "rating": 3}).encode() + b"\n"
    path.write_bytes(gzip.compress(line * 1_500_000))


def nested(path):
    path.write_bytes(b'{"user":"a","item":"b","rating":3,"x":[' + b"1," * 4_000_000 + b"1]}\n")


def feeds(path):
    path.write_bytes(b"user,item,rating\n1,2,3\n" + b"\n" * (8 * MEGABYTE) + b"x")


def quotes(path):
    path.write_bytes(b"user,item,rating\n" + b'"\n' * (2 * MEGABYTE))


pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")

FILES = {
    "run-length.parquet": lambda path: run_length(path, ROWS),
    "run-length-padded.parquet": run_length_padded,
    "dictionary.parquet": dictionary,
    "repeats-across-blocks.parquet": lambda path: padded(crossed(3000)).write_parquet(path),
    "most-rows.parquet": lambda path: padded(crossed(2000)).write_parquet(path),
    "most-rows-in-order.parquet": lambda path: padded(crossed(2000, 0)).write_parquet(path),
    "packed-pairs.csv.gz": packed_pairs,
    "one-line.csv.gz": one_line,
    "one-line.zip": zipped,
    "objects.jsonl.gz": objects,
    "nested.jsonl": nested,
    "feeds.csv": feeds,
    "quotes.csv": quotes,
}


def taken(path):
    """Return the memory that reading a file took, in megabytes, and how it ended."""
    command = [sys.executable, "-c", READ, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    megabytes, ended = ran.stdout.split()
    return int(megabytes), ended


def excess(name, folder):
    path = Path(folder) / name
    FILES[name](path)
    megabytes, ended = taken(path)
    limit = 200 + 30 * path.stat().st_size / MEGABYTE
    return megabytes / limit, f"{name}: {megabytes} MB of {limit:.0f} MB, {ended}"


@pytest.mark.thorough
def test_the_usual_bomb_takes_little_memory(tmp_path):
    assert excess("run-length-padded.parquet", tmp_path)[0] <= 1


@pytest.mark.slow
def test_no_crafted_file_takes_much_memory(tmp_path, record_property):
    worst = max(excess(name, tmp_path) for name in FILES)
    record_property("worst", worst[1])
    assert worst[0] <= 1, worst[1]
