"""No user's rows change how another user's rows are read; each earlier fault, put back, is found."""

import csv
import io
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import neighboring_rows
from discreet.data import encoding
from discreet.data.errors import OtherFormat
from discreet.data.guessing import Wishes
from discreet.data.reading import blocks, columns, frames, readers, tables
from discreet.data.reading.readers import on_scale, read
from discreet.data.vocabulary import Vocabulary
from discreet.sources.sharding import PieceReader
from neighboring_rows import read_case, search


def test_other_users_are_read_alike():
    result = search(24, seed=11)
    assert not result.differences and 2 * result.readable >= result.pairs


@pytest.mark.slow
def test_other_users_are_read_alike_in_many_pairs():
    result = search(100_000, seed=12)
    assert not result.differences and 2 * result.readable >= result.pairs
    assert all(result.by_form[form] for form in neighboring_rows.FORMS)


@pytest.mark.slow
def test_the_number_of_threads_changes_nothing():
    """What polars reads with one thread, it reads with three."""
    code = "from neighboring_rows import search; print(search(640, seed=13).digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "POLARS_MAX_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "3")
    }
    assert len(digests) == 1


def sums_in_order_of_rows(case, folder, present, few=None):
    """Add doubles in an order that other rows decide: few, sorted and other rows are sorted in three ways."""
    most = case.few if few is None else few

    def added(values, starts):
        return np.add.reduceat(values.astype(np.float64), starts)

    def by_path(rows, items, n_users, n_items):
        stable = np.lexsort((items, rows))
        indptr, is_sorted = encoding.group_starts(rows, n_users), np.array_equal(stable, np.arange(rows.size))
        if rows.size <= most or is_sorted:
            return (indptr, items, None) if is_sorted else (indptr, items[stable], stable)
        # Stable by user; the sort of scipy within a user's row is not.
        order = np.argsort(rows, kind="stable").astype(np.int32)
        found = sp.csr_array((order, items[order], indptr), shape=(n_users, n_items))
        found.sort_indices()
        return indptr, found.indices.astype(np.int32), found.data

    with (
        mock.patch.object(encoding, "exact_sums", added),
        mock.patch.object(encoding, "by_person_and_item", by_path),
    ):
        return read_case(case, folder, present)


def layout_of_each_piece(case, folder, present):
    """Describe each piece of a file without a header by itself."""
    schema = replace(case.schema, header=False, comment="", encoding="utf-8")
    lines = neighboring_rows._text(replace(case, schema=schema), case.rows(present), False).split(b"\n")[:-1]
    places = {"user": "column_1", "item": "column_2", "rating": "column_3", "time": "column_4"}
    options = {"skip_bad_lines": True, "delimiter": schema.delimiter}
    reader = PieceReader(wishes=Wishes.taken_from(options, places))
    path, parts = folder / "piece.csv", []
    for start in range(0, len(lines), 5):
        path.write_bytes(b"\n".join(lines[start : start + 5]) + b"\n")
        parts += [reader.read(piece) for piece in reader.pieces(path)]
    return neighboring_rows.joined(parts, case, Vocabulary.of([*neighboring_rows.ITEMS, "new"]))


def decoder_with_state(case, folder, present):
    """Decode the whole text in an encoding with escape sequences."""
    plain = replace(case, packed="", schema=replace(case.schema, encoding="utf-8"))
    rows = plain.rows(present)
    text = neighboring_rows._text(plain, rows, False).decode("iso2022_jp", "replace")
    path = folder / "decoded.csv"
    path.write_text(text, encoding="utf-8")
    catalog = [*neighboring_rows.ITEMS, "new"]
    return read(path, schema=plain.schema, catalog=catalog, drop_unknown=True, low=-1e30, high=1e30)


def quotes_across_lines(case, folder, present):
    """Let a parser that knows quotes across lines split what another one judged."""
    plain = replace(case, packed="", schema=replace(case.schema, encoding="utf-8", header=False, quote='"'))
    text = neighboring_rows._text(plain, plain.rows(present), False).decode().replace("\r", "")
    rows = [
        row for row in csv.reader(io.StringIO(text), delimiter=plain.schema.delimiter[0]) if len(row) == 4
    ]
    path = folder / "again.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=plain.schema.delimiter[0], lineterminator="\n").writerows(rows)
    catalog = [*neighboring_rows.ITEMS, "new"]
    schema = replace(plain.schema, delimiter=plain.schema.delimiter[0], escape="", comment="")
    return read(path, schema=schema, catalog=catalog, drop_unknown=True, low=-1e30, high=1e30)


def type_of_all_times(case, folder, present):
    """Give a container of times the type that all of them have in common."""

    def common(items):
        return pl.Series(np.array([float(one) if isinstance(one, int | float) else np.nan for one in items]))

    def chosen(items, schema):
        mixed = len({type(one) for one in items if not isinstance(one, str)}) > 1
        return common(items).fill_nan(None) if mixed else frames_times(items, schema)

    frames_times = frames.times_of_objects
    with mock.patch.object(frames, "times_of_objects", chosen):
        numbers = tuple(row for row in case.others if row.time.isdigit())
        first = tuple(tuple((0, row) for _, row in own) for own in case.strangers)
        return read_case(replace(case, others=numbers, strangers=first), folder, present)


def kind_of_first_bytes(case, folder, present):
    """Look at a file's first bytes for what packs it, and whether it is a text at all."""
    plain = replace(case, packed="", schema=replace(case.schema, encoding="utf-8", header=False))
    path = folder / "looked-at.csv"
    path.write_bytes(neighboring_rows._text(plain, plain.rows(present), False))
    if blocks.shown_packing(path) != "none" or blocks.magic(path) == blocks.PARQUET:
        raise OtherFormat(path=path.name, found="Parquet", declared="text")
    return read_case(plain, folder, present)


def ends_of_the_scale_only(case, folder, present):
    """Clip or drop what is off the ends of a scale, and reject a file with a rating between its steps."""

    def to_the_ends(columns, rule, declared):
        return on_scale(columns, rule, {**declared, "step": None})

    with mock.patch.object(readers, "on_scale", to_the_ends):
        return read_case(case, folder, present)


def columns_as_text(case, folder, present):
    """Make whole columns texts for conditions: polars fails for all rows if one date is beyond calendars."""

    def at_once(given, column):
        return given.cast(pl.String, strict=False).str.strip_chars()

    with mock.patch.object(columns, "plain_texts", at_once):
        return read_case(case, folder, present)


def kind_of_each_file(case, folder, present):
    """Look at the first bytes of each file or piece of which no row is read, whoever wrote it."""
    read_lines = tables._read_lines

    def looked_at(file, schema, span):
        found = read_lines(file, schema, span)
        if not len(found.items):
            tables._refuse_other_kind(file, schema)
        return found

    with mock.patch.object(tables, "_read_lines", looked_at):
        return read_case(case, folder, present)


# Forms whose rows have weights, and are in one order.
WEIGHTED = ("text", "quoted", "json", "parquet", "dictionary", "typed")
TWINS = {
    "R1": (sums_in_order_of_rows, WEIGHTED, 0.0),
    "R1 above 4,096 rows": (partial(sums_in_order_of_rows, few=4096), ("parquet", "typed"), 1.0),
    "R1 in sorted files": (partial(sums_in_order_of_rows, few=0), WEIGHTED, 0.0),
    "R2": (layout_of_each_piece, ("pieces",), 0.0),
    "R3": (decoder_with_state, ("text",), 0.0),
    "R4": (quotes_across_lines, ("text",), 0.0),
    "R5": (type_of_all_times, ("objects",), 0.0),
    "first bytes": (kind_of_first_bytes, ("text",), 0.0),
    "first bytes of each file": (kind_of_each_file, ("folder",), 0.0),
    "columns as text": (columns_as_text, ("parquet", "typed"), 0.0),
    "steps of a scale": (ends_of_the_scale_only, ("text",), 0.0),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("fault", TWINS)
def test_each_earlier_fault_is_found(fault):
    reader, forms, large = TWINS[fault]
    assert search(6400, seed=3, reader=reader, forms=forms, large=large, stop=True).differences
