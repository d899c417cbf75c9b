"""Compile the inner loops that several solvers share; each works on plain arrays and a range of rows.

The loops release the interpreter's lock and write only their own rows of the output. Threads therefore need
no synchronization, and the result does not depend on their number. Sums may be reordered for speed, but NaN
and infinity keep their meaning.

A wheel contains kernels as machine code (`.ci/kernels.py`): files of numba's own cache, for a processor that
most machines have. `KernelCache` compares the sources; numba compares its own version and that of Python.
Kernels that don't fit are compiled at their first use, as in a checkout, which has no such folder.
"""

from __future__ import annotations

import gc
import hashlib
import json
import sys
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.event import Event, Listener, register
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from discreet.core.arrays import Array
from discreet.core.progress import in_notebook

FOLDER = Path(__file__).with_name("compiled")
STATED = "target.json"


class Target(NamedTuple):
    """What kernels were compiled for: a kind of system, a processor, and its instructions."""

    system: str
    processor: str
    features: str


@lru_cache(maxsize=1)
def shipped() -> Target | None:
    """Return what the kernels in the wheel were compiled for, or None if this machine can't run them."""
    try:
        stated = json.loads((FOLDER / STATED).read_text(encoding="utf8"))
    except FileNotFoundError:
        return None
    target = Target(stated["system"], stated["processor"], stated["features"])
    here = llvmlite.binding.get_host_cpu_features()
    wished = numba.config.CPU_NAME  # type: ignore[attr-defined]
    fits = (
        target.system == llvmlite.binding.get_process_triple()
        and all(here.get(name[1:]) for name in target.features.split(",") if name.startswith("+"))
        and wished in (None, target.processor)
    )
    return target if fits else None


class KernelCache(FunctionCache):
    """A kernel's cache: machine code from the wheel, or code that was compiled here from the same sources.

    numba compares the content of the kernel's own module. Code from other modules is compiled in, too, so an
    upgrade that changes only a loop that clips would otherwise leave the old clipping in place.
    """

    _impl: Any
    _py_func: Any

    @cached_property
    def _stamp(self) -> tuple[Any, ...]:
        return (self._impl.locator.get_source_stamp(), *sorted(_compiled_in(self._py_func)))

    def _files(self, folder: str) -> Any:
        return cast("Any", IndexDataCacheFile)(folder, self._impl.filename_base, self._stamp)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        target, super_class = shipped(), cast("Any", super())
        # numba looks for a kernel here before it saves one. Not earlier: a loop may call loops below it.
        self._cache_file = self._files(cast("Any", self).cache_path)
        if target is not None:
            _, _, code = cast("Any", self)._index_key(sig, target_context.codegen())
            found = self._files(str(FOLDER)).load((sig, tuple(target), code))
            if found is not None:
                return self._impl.rebuild(target_context, found)
        return super_class._load_overload(sig, target_context)


def _compiled_in(loop: Any) -> set[str]:
    """Return what decides the machine code of a loop: the modules of all loops in it, and their constants."""
    found = {_digest(__file__)}  # how loops are compiled
    left, seen = [loop], set()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        found.add(_digest(one.__code__.co_filename))
        for name in _names(one.__code__):
            value = one.__globals__.get(name)
            if hasattr(value, "py_func"):
                left.append(value.py_func)
            elif isinstance(value, bool | int | float | str | tuple):
                found.add(f"{name} = {value!r}")
            elif isinstance(value, np.generic | np.ndarray):
                found.add(f"{name} = {value.dtype} {value.tobytes().hex()}")
    return found


def _names(code: CodeType) -> set[str]:
    """Return all names that a function and the functions within it use."""
    inside = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, inside))


@lru_cache(maxsize=256)
def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _cached(kernel: Any) -> Any:
    """Return a kernel with our cache."""
    # Without just-in-time compilation, a kernel is a plain function.
    if hasattr(kernel, "py_func"):
        kernel._cache = cast("Any", KernelCache)(kernel.py_func)
    return kernel


_COMPILING = "Compiling numerical kernels, only the first time ..."


class _Announced(Listener):
    """A notice, shown once on a terminal or in a notebook: why the first use takes longer.

    Loops from the cache are not compiled.
    """

    said = False

    def on_start(self, event: Event) -> None:
        """Print one line when the first loop is compiled; which loops are needed is public."""
        # What a notebook gets on standard error looks like a failure there.
        if not self.said and (in_notebook() or sys.stderr.isatty()):
            print(_COMPILING, file=sys.stdout if in_notebook() else sys.stderr)
        self.said = True

    def on_end(self, event: Event) -> None:
        """Do nothing more."""


class _Uncollected(Listener):
    """A pause of the garbage collector: what a compiler makes is in use until it is done.

    The collector would look at it again and again, for a fifth of the time. Loops compile the loops that
    they call, and only the outermost one starts and ends the pause. One thread compiles at a time.
    """

    depth, was_on = 0, False

    def on_start(self, event: Event) -> None:
        """Stop collecting."""
        if self.depth == 0:
            self.was_on = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Event) -> None:
        """Collect again, if that was so before."""
        self.depth -= 1
        if self.depth == 0 and self.was_on:
            gc.enable()


for listener in (_Announced(), _Uncollected()):
    register("numba:compile", listener)  # type: ignore[no-untyped-call]

_Loop = TypeVar("_Loop", bound=Callable[..., Any])


class _Compiler(Protocol):
    """A decorator that compiles a loop."""

    def __call__(self, loop: _Loop, /) -> _Loop: ...


_ORDERED: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_REORDERED: dict[str, Any] = {**_ORDERED, "fastmath": {"reassoc", "contract", "arcp", "nsz"}}
# Half of the time to compile a short loop goes into what lets Python call it.
_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(loop: _Loop) -> _Loop:
    """Compile a loop that Python calls; sums may be reordered."""
    return _cached(njit(**_REORDERED)(loop))  # type: ignore[no-any-return]


def strict(loop: _Loop) -> _Loop:
    """Compile a loop that Python calls, and whose floating-point operations keep their order."""
    return _cached(njit(**_ORDERED)(loop))  # type: ignore[no-any-return]


#: The same two for loops that only compiled loops call.
inner: _Compiler = njit(**_REORDERED, **_INNER)
strict_inner: _Compiler = njit(**_ORDERED, **_INNER)


# Bytes that a processor moves between its caches at once.
_CACHE_LINE = 64


def in_lines(*shape: int) -> Array:
    """Return zeros that begin where a cache line does: vectors of eight doubles are then within one line."""
    size, spare = int(np.prod(shape)), _CACHE_LINE // 8
    room = np.zeros(size + spare)
    start = -room.ctypes.data % _CACHE_LINE // 8
    return room[start : start + size].reshape(shape)


#: So many entries before it is needed, a row of a table is fetched.
AHEAD = 8


def _ask_ahead(typing_context: Any, array: Any, offset: Any) -> tuple[Any, Any]:
    """Ask the processor for what lies so many bytes after the start of an array, to be read soon."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = make_array(signature.args[0])(context, builder, arguments[0]).data  # type: ignore[no-untyped-call]
        address = builder.gep(builder.bitcast(data, pointer), [arguments[1]])
        kind = ir.FunctionType(ir.VoidType(), [pointer, whole, whole, whole])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        # To be read, to stay in all caches, and data rather than instructions.
        builder.call(function, [address, whole(0), whole(3), whole(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


_prefetch: Any = intrinsic(_ask_ahead)


@inner
def fetch_entry(table: Array, row: int, column: int) -> None:
    """Move an entry of a contiguous table toward the processor before it is needed."""
    _prefetch(table, row * table.strides[0] + column * table.strides[1])


@inner
def fetch_row(table: Array, row: int) -> None:
    """Move a row of a contiguous table toward the processor before it is needed; no result depends on it.

    Tables of many items do not fit into near caches. Waiting for their rows can take longer than all sums.
    """
    size = table.strides[0]
    for offset in range(row * size, (row + 1) * size, _CACHE_LINE):
        _prefetch(table, offset)


#: Rows and columns of a tile. Eight vectors of four doubles hold its sums: half of a processor's registers.
HIGH, WIDE = 4, 8
_CONTRACT = ("contract",)


def _tile_of(vectors: int) -> Callable[..., Any]:
    """Return what adds products of four columns with so many vectors of eight to a tile of a matrix.

    For each step t < count, row i < HIGH, and column j < WIDE * vectors of the tile, with flat places in
    arrays: out[o + i * row + j] += left[l + t * step + i * lane] * right[r + t * step + j]. `of_left` is (l,
    step, lane), `of_right` (r, step), `of_out` (o, row). A compiler leaves such sums as single numbers, so
    they are written as vectors here. The order of operations on a sum depends on no size of a tile.
    """

    def tile(
        typing_context: Any,
        left: Any,
        of_left: Any,
        right: Any,
        of_right: Any,
        count: Any,
        out: Any,
        of_out: Any,
    ) -> tuple[Any, Any]:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            # Processors with 32 registers of eight doubles wait for sums unless they add to eight at a time.
            # On others, eight vectors of eight doubles would need all registers.
            many = "+avx512f" in context.codegen().magic_tuple()[2]
            for some in [range(vectors)] if many else [range(one, one + 1) for one in range(vectors)]:
                _add_products(context, builder, signature, arguments, [WIDE * one for one in some])
            return context.get_dummy_value()

        return types.void(left, of_left, right, of_right, count, out, of_out), generate

    return tile


def _add_products(context: Any, builder: Any, signature: Any, arguments: Any, columns: list[int]) -> None:
    """Write the loop over steps, which adds to the vectors that begin at these columns of a tile."""
    lines, tools = ir.VectorType(ir.DoubleType(), WIDE), cast("Any", cgutils)
    zeros = ir.VectorType(ir.IntType(32), WIDE)([0] * WIDE)
    first, step, lane = tools.unpack_tuple(builder, arguments[1])
    start, stride = tools.unpack_tuple(builder, arguments[3])
    begin, row = tools.unpack_tuple(builder, arguments[6])

    def entry(number: int, offset: Any) -> Any:
        array = make_array(signature.args[number])(context, builder, arguments[number])  # type: ignore[no-untyped-call]
        return builder.gep(array.data, [offset])

    def line(number: int, offset: Any, column: int) -> Any:
        place = entry(number, builder.add(offset, offset.type(column)))
        return builder.bitcast(place, lines.as_pointer())

    numbers = [row.type(i) for i in range(HIGH)]
    cells = [(i, column) for i in numbers for column in columns]
    places = [line(5, builder.add(begin, builder.mul(row, i)), column) for i, column in cells]
    sums = [tools.alloca_once_value(builder, builder.load(place, align=8)) for place in places]
    totals = dict(zip([(i.constant, column) for i, column in cells], sums, strict=True))
    with tools.for_range(builder, arguments[4]) as loop:
        there = builder.add(start, builder.mul(loop.index, stride))
        factors = {column: builder.load(line(2, there, column), align=8) for column in columns}
        here = builder.add(first, builder.mul(loop.index, step))
        for i in numbers:
            one = builder.load(entry(0, builder.add(here, builder.mul(lane, i))))
            whole = builder.insert_element(lines(ir.Undefined), one, ir.IntType(32)(0))
            whole = builder.shuffle_vector(whole, lines(ir.Undefined), zeros)
            for column in columns:
                total = totals[i.constant, column]
                product = builder.fmul(whole, factors[column], flags=_CONTRACT)
                builder.store(builder.fadd(product, builder.load(total), flags=_CONTRACT), total)
    for place, total in zip(places, sums, strict=True):
        builder.store(builder.load(total), place, align=8)


#: A tile of `WIDE` columns, and one of twice as many.
add_tile: Any = intrinsic(_tile_of(1))
add_wide_tile: Any = intrinsic(_tile_of(2))


@inner
def longest_row(start: int, stop: int, indptr: Array) -> int:
    """Return the largest number of entries of a row."""
    longest = 0
    for row in range(start, stop):
        entries = indptr[row + 1] - indptr[row]
        longest = entries if entries > longest else longest
    return longest


@inner
def dot(left: Array, right: Array) -> float:
    """Return the inner product of two vectors."""
    total = left.dtype.type(0)
    for a in range(left.size):
        total += left[a] * right[a]
    return total  # type: ignore[no-any-return]


@inner
def sum_features(features: Array, columns: Array, coefficients: Array, out: Array) -> None:
    """Set `out` to the sum of `coefficient * features[column]` over the entries of one row."""
    for a in range(out.size):
        out[a] = 0
    for j in range(columns.size):
        feature = features[columns[j]]
        for a in range(out.size):
            out[a] += coefficients[j] * feature[a]


@compiled
def multiply_rows(
    start: int, stop: int, indptr: Array, columns: Array, values: Array, dense: Array, out: Array
) -> None:
    """Write rows of a sparse matrix times a dense one."""
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        sum_features(dense, columns[entries], values[entries], out[row])


@compiled
def predict_range(
    start: int, stop: int, rows: Array, columns: Array, left: Array, right: Array, out: Array
) -> None:
    """Write `left[row] . right[column]` for a range of entries."""
    for entry in range(start, stop):
        if entry + AHEAD < stop:
            fetch_row(right, columns[entry + AHEAD])
        out[entry] = dot(left[rows[entry]], right[columns[entry]])


@compiled
def residual_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    row_offsets: Array,
    column_offsets: Array,
    left: Array,
    right: Array,
    out: Array,
) -> None:
    """Write the residual of every stored value under a factor model with offsets."""
    for row in range(start, stop):
        for entry in range(indptr[row], indptr[row + 1]):
            column = columns[entry]
            score = dot(left[row], right[column])
            out[entry] = values[entry] - row_offsets[row] - column_offsets[column] - score


@compiled
def add_by_column(columns: Array, values: Array, totals: Array) -> None:
    """Add every value to the total of its column."""
    for entry in range(columns.size):
        totals[columns[entry]] += values[entry]
