"""Solve a few rows with plain numpy, and more with compiled loops.

One user's list takes microseconds; loading the compiler for it would take a second. The number of rows alone
decides, so the same input always has the same result; the two ways differ by rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core import Array, Rows, multiply, predict_cells, require_cells, require_fit
from discreet.solvers.errors import NoFiniteAnswer

#: Rows, or single entries, up to which nothing is compiled.
FEW = 32
FEW_ENTRIES = 1024


def ridge_vectors(rows: Rows, features: Array, **options: Any) -> Array:
    """Return the same as `solvers.fold_in.solve_users`; a few rows are solved one by one."""
    if rows.n_rows <= FEW:
        return _solve(rows, features, **options)
    from discreet.solvers.fold_in import solve_users

    return solve_users(rows, features, **options)


def _solve(
    rows: Rows, features: Array, *, ridge: Array, scales: Array | None = None, offsets: Array
) -> Array:
    require_fit(rows, features.shape[0])
    out = np.zeros((rows.n_rows, features.shape[1]))
    for row, (start, stop) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        if start == stop:
            continue
        columns = rows.columns[start:stop]
        own, wanted = features[columns], rows.values[start:stop] - offsets[columns]
        strength = ridge if scales is None else ridge * scales[row]
        try:
            out[row] = _ridge_vector(own, wanted, strength)
        except np.linalg.LinAlgError:
            out[row] = np.nan
    if not np.isfinite(out).all():
        raise NoFiniteAnswer()
    return out


def _ridge_vector(own: Array, wanted: Array, ridge: Array) -> Array:
    """Return the vector of one row; of its two linear systems, the smaller one is solved."""
    if len(own) < ridge.size and ridge.min() > 0:
        scaled = own / ridge
        inner = scaled @ own.T
        inner.flat[:: len(own) + 1] += 1.0
        return np.linalg.solve(inner, wanted) @ scaled
    normal = own.T @ own
    normal.flat[:: ridge.size + 1] += ridge
    return np.linalg.solve(normal, own.T @ wanted)


def weighted_sums(rows: Rows, dense: Array) -> Array:
    """Return the sparse matrix times a dense one."""
    if rows.n_rows > FEW:
        return multiply(rows, dense)
    require_fit(rows, dense.shape[0])
    ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    sums = [rows.values[a:b].astype(dense.dtype) @ dense[rows.columns[a:b]] for a, b in ends]
    return np.array(sums, dtype=dense.dtype).reshape(rows.n_rows, dense.shape[1])


def products(left: Array, right: Array, rows: Array, columns: Array) -> Array:
    """Return `left[row] . right[column]` for every pair in `rows` and `columns`."""
    if np.size(rows) > FEW_ENTRIES:
        return predict_cells(left, right, rows, columns)
    require_cells(left, right, rows, columns)
    own, form = (left[0], "cf,f->c") if len(left) == 1 else (left[rows], "cf,cf->c")
    found: Array = np.einsum(form, right[columns], own)
    return found
