"""Factor ratings by alternating least squares in which both sides carry posterior variances.

Each half of a sweep solves one small ridge problem for every row while the other side is fixed. The posterior
variance of the other side's vectors enters like a ridge. After each sweep the ridges are re-estimated from
the variance of rows along each direction and the residual variance of ratings. So no setting has to be
searched, and directions that explain nothing vanish. The cost is linear in the ratings; users are processed
in blocks, and the result does not depend on the number of threads.

References:
    Lim, Teh. Variational Bayesian approach to movie rating prediction. KDD Cup 2007.

Items may have features, such as who rated them: an item's bias and factors are then shrunk toward what a
linear map of its features predicts, and the map is re-estimated after each sweep.

A row of one side predicts by `(bias, 1, factors) . (1, own bias, own factors)` of the other side. The
posterior of a row is one line of numbers: the expected `(bias, 1, factors)`, then its expected outer product,
packed as a lower triangle. Sums have one number more, the squared values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.core import Array, Floats, Rows, Singles, experiment_generator, run
from discreet.core.kernels import compiled, dot, inner
from discreet.solvers.als import require_twins
from discreet.solvers.errors import NoFiniteAnswer, NothingToLearn
from discreet.solvers.spectrum import with_fixed_signs

# Users whose posteriors are held at once: with 16 factors they take 12 MB.
_BLOCK = 16_384
# The cost of solving a row, in entries.
_ENTRIES_PER_ROW = 30
# Parts of the ratings' variance that biases and factors are expected to explain before anything is known.
_START_BIASES, _START_FACTORS = 0.2, 0.1
# Directions along which predictions vary by less than this part of the noise are dropped in the end.
_NEGLIGIBLE = 1e-4
_TINY = 1e-9
# The ridge on the map from features to vectors, in items: features have unit mean square.
_SLOPE_RIDGE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs:
    """The items' posteriors (a line each, see the module), both sides' priors, and the noise.

    `people` and `items` are precisions: the inverse mean squares of `(bias, factors)` on each side. `noise`
    is the variance of ratings around predictions. `slopes` predict items' biases and factors from features.
    """

    mean: float
    lines: Singles
    people: Floats
    items: Floats
    noise: float
    slopes: Floats | None = None

    @property
    def factors(self) -> int:
        """Return the number of factors."""
        return len(self.people) - 1

    @property
    def item_biases(self) -> Floats:
        """Return the expected biases of items."""
        return self.lines[:, 0].astype(np.float64)

    @property
    def item_factors(self) -> Floats:
        """Return the expected factors of items."""
        return self.lines[:, 2 : self.factors + 2].astype(np.float64)


def packed_size(size: int) -> int:
    """Return the number of entries of a lower triangle."""
    return size * (size + 1) // 2


def line_size(factors: int) -> int:
    """Return the number of entries of a row's posterior."""
    return factors + 2 + packed_size(factors + 2)


def lines_of(biases: Floats, factors: Floats, spreads: Array) -> Singles:
    """Return posteriors from expected biases and factors and the lower triangles of their covariances."""
    means = np.insert(np.column_stack([biases, factors]), 1, 1.0, axis=1)
    left, right = np.tril_indices(means.shape[1])
    squares = means[:, left] * means[:, right]
    squares[:, (left != 1) & (right != 1)] += spreads
    return np.concatenate([means, squares], axis=1).astype(np.float32)


def spreads_of(lines: Array, factors: int) -> Floats:
    """Return the lower triangles of the covariances of `(bias, factors)`."""
    size = factors + 2
    left, right = np.tril_indices(size)
    wanted = (left != 1) & (right != 1)
    means, left, right = lines[:, :size].astype(np.float64), left[wanted], right[wanted]
    return lines[:, size:][:, wanted] - means[:, left] * means[:, right]


def settle(known: Beliefs, counts: Array) -> Beliefs:
    """Return the posteriors along principal directions, sorted by the variance they explain.

    Users have unit variance along each factor; directions that explain next to nothing are dropped.
    """
    turn = np.linalg.cholesky(np.linalg.inv(known.people)[1:, 1:])
    expected = known.item_factors @ turn
    square = (expected * (counts / counts.sum())[:, None]).T @ expected
    strengths, axes = np.linalg.eigh(square)
    kept = np.flatnonzero(strengths > _NEGLIGIBLE * known.noise)[::-1]
    turn = turn @ with_fixed_signs(axes[:, kept])
    whole = np.zeros((known.factors + 1, kept.size + 1))
    whole[0, 0], whole[1:, 1:] = 1.0, turn
    lines = np.empty((len(expected), line_size(kept.size)), np.float32)
    for first in range(0, len(lines), _BLOCK):
        block = slice(first, first + _BLOCK)
        spreads = _turned(spreads_of(known.lines[block], known.factors), whole)
        lines[block] = lines_of(known.item_biases[block], known.item_factors[block] @ turn, spreads)
    people = np.diag(np.append(known.people[0, 0], np.ones(kept.size)))
    items = _inverse(whole.T @ np.linalg.inv(known.items) @ whole)
    slopes = None if known.slopes is None else known.slopes @ whole
    return replace(known, lines=lines, people=people, items=items, slopes=slopes)


def _turned(spreads: Floats, turn: Floats) -> Floats:
    size = len(turn)
    left, right = np.tril_indices(size)
    full = np.zeros((len(spreads), size, size))
    full[:, left, right] = full[:, right, left] = spreads
    turned = turn.T @ full @ turn
    return turned[:, *np.tril_indices(turn.shape[1])]


def start(by_user: Rows, n_items: int, factors: int, seed: int) -> Beliefs:
    """Return the posteriors before the first sweep: small random vectors that differ between factors."""
    if not by_user.values.size:
        raise NothingToLearn()
    mean = float(by_user.values.mean(dtype=np.float64))
    variance = max(float(by_user.values.var(dtype=np.float64)), _TINY)
    draws = experiment_generator(seed, "als").standard_normal((n_items, factors))
    part = _START_FACTORS * variance / max(factors, 1)
    people = np.append(1 / (_START_BIASES * variance), np.ones(factors))
    items = np.append(1 / (_START_BIASES * variance), np.full(factors, 1 / part))
    return Beliefs(
        mean=mean,
        lines=lines_of(
            np.zeros(n_items), draws * np.sqrt(part), np.zeros((n_items, packed_size(factors + 1)))
        ),
        people=np.diag(people),
        items=np.diag(items),
        noise=variance,
    )


def sweep(by_user: Rows, by_item: Rows, known: Beliefs, features: Floats | None = None) -> Beliefs:
    """Return the posteriors after one pass over users and items, whose features have one row each."""
    require_twins(by_user, by_item)
    factors, size = known.factors, line_size(known.factors)
    sums, squares = np.zeros((by_item.n_rows, size + 1)), np.zeros(size)
    begins = by_item.indptr[:-1]
    for first in range(0, by_user.n_rows, _BLOCK):
        last = min(first + _BLOCK, by_user.n_rows)
        lines = believe(by_user, first, last, known)
        rated = np.diff(by_user.indptr[first : last + 1]) > 0
        squares += lines[rated].sum(axis=0, dtype=np.float64)
        entries = slice(by_user.indptr[first], by_user.indptr[last])
        ends = begins + np.bincount(by_user.columns[entries], minlength=by_item.n_rows)
        shared = (begins, ends, by_item.columns, by_item.values, np.float32(known.mean), first, factors + 2)
        run(add_cells, _cost(ends - begins, 1), *shared, lines, sums)
        begins = ends
    people = _precision(squares / max(int(np.count_nonzero(np.diff(by_user.indptr))), 1), factors)
    expected = None if features is None or known.slopes is None else features @ known.slopes
    lines, missed = _solved(sums, known.items, known.noise, expected)
    rated = np.diff(by_item.indptr) > 0
    slopes = None if features is None else _slopes(features[rated], lines[rated], factors)
    around = None if features is None or slopes is None else features[rated] @ slopes
    items = _precision(lines[rated].mean(axis=0, dtype=np.float64), factors, lines[rated], around)
    noise = max(float(missed.sum(dtype=np.float64)) / by_user.values.size, _TINY)
    return Beliefs(mean=known.mean, lines=lines, people=people, items=items, noise=noise, slopes=slopes)


def _slopes(features: Floats, lines: Singles, factors: int) -> Floats:
    """Return the ridge regression of biases and factors on features."""
    square = features.T @ features + _SLOPE_RIDGE * np.eye(features.shape[1])
    return _inverse(square) @ (features.T @ _expected(lines, factors))


def _expected(lines: Singles, factors: int) -> Floats:
    return np.delete(lines[:, : factors + 2], 1, axis=1).astype(np.float64)


def believe(rows: Rows, first: int, last: int, known: Beliefs) -> Singles:
    """Return the posteriors of a range of users, each from their own ratings only."""
    sums = np.zeros((last - first, known.lines.shape[1] + 1))
    begins, ends = rows.indptr[first:last], rows.indptr[first + 1 : last + 1]
    shared = (begins, ends, rows.columns, rows.values, np.float32(known.mean), 0, known.factors + 2)
    run(add_cells, _cost(ends - begins, 1), *shared, known.lines, sums)
    return _solved(sums, known.people, known.noise)[0]


def _solved(
    sums: Floats, precision: Floats, noise: float, expected: Floats | None = None
) -> tuple[Singles, Singles]:
    """Return the posteriors and squared errors of rows, whose biases and factors are `expected` (or zero)."""
    out = np.empty(sums.shape, np.float32)
    pull = np.zeros(1) if expected is None else noise * expected @ precision
    if expected is not None:
        sums[:, 1 : precision.shape[0] + 1] += pull
    run(solve_rows, _cost(np.zeros(len(sums)), _ENTRIES_PER_ROW), sums, precision, noise, out)
    if not np.isfinite(out).all():
        raise NoFiniteAnswer()
    lines, missed = np.ascontiguousarray(out[:, :-1]), out[:, -1]
    if expected is not None:
        # The pull is in the sums as if it came from ratings; errors are those of ratings alone.
        missed = missed + 2 * (_expected(lines, precision.shape[0] - 1) * pull).sum(axis=1)
    return lines, missed


def _cost(entries: Array, row: int) -> Array:
    return np.concatenate(([0], np.cumsum(entries + row)))


def _precision(
    squares: Floats, factors: int, lines: Singles | None = None, around: Floats | None = None
) -> Floats:
    """Return the inverse of a mean square, around predictions if there are any.

    Biases and factors are assumed uncorrelated.
    """
    full = np.zeros((factors + 2, factors + 2))
    full[np.tril_indices(factors + 2)] = squares[factors + 2 :]
    full = np.delete(np.delete(full + np.tril(full, -1).T, 1, 0), 1, 1)
    if lines is not None and around is not None:
        cross = _expected(lines, factors).T @ around
        full += (around.T @ around - cross - cross.T) / max(len(lines), 1)
    full[0, 1:] = full[1:, 0] = 0.0
    return _inverse(full + _TINY * np.eye(factors + 1))


def _inverse(matrix: Floats) -> Floats:
    return np.linalg.inv(matrix).astype(np.float64, copy=False)


_FEW = 256


@inner
def _add_few(
    columns: Array, values: Array, mean: float, first: int, size: int, beliefs: Array, out: Array
) -> None:
    """Add up a few entries, four at a time: sums are loaded and stored a quarter as often."""
    # Loops over slices from their start are compiled to vector instructions, those from `size` on are not.
    means, squares, last = out[:size], out[size : out.size - 1], out.size - 1
    whole = columns.size - columns.size % 4
    for entry in range(0, whole, 4):
        p, q = beliefs[columns[entry] - first], beliefs[columns[entry + 1] - first]
        r, s = beliefs[columns[entry + 2] - first], beliefs[columns[entry + 3] - first]
        a, b = values[entry] - mean, values[entry + 1] - mean
        c, d = values[entry + 2] - mean, values[entry + 3] - mean
        for i in range(means.size):
            means[i] += a * p[i] + b * q[i] + c * r[i] + d * s[i]
        p, q, r, s = p[size:], q[size:], r[size:], s[size:]
        for i in range(squares.size):
            squares[i] += (p[i] + q[i]) + (r[i] + s[i])
        out[last] += a * a + b * b + c * c + d * d
    for entry in range(whole, columns.size):
        p, a = beliefs[columns[entry] - first], values[entry] - mean
        for i in range(means.size):
            means[i] += a * p[i]
        p = p[size:]
        for i in range(squares.size):
            squares[i] += p[i]
        out[last] += a * a


@compiled
def add_cells(
    start: int,
    stop: int,
    begins: Array,
    ends: Array,
    columns: Array,
    values: Array,
    mean: float,
    first: int,
    size: int,
    beliefs: Array,
    sums: Array,
) -> None:
    """Add to each row's sums the posteriors of its columns, the first `size` numbers times the value.

    `beliefs` starts with the one of column `first`; a row's entries are those from `begins` to `ends`.
    """
    # Entries are added in single precision, a few at a time within the cache, then to the sums.
    few = np.empty(beliefs.shape[1] + 1, beliefs.dtype)
    for row in range(start, stop):
        total = sums[row]
        for part in range(begins[row], ends[row], _FEW):
            few[:] = 0
            entries = slice(part, min(part + _FEW, ends[row]))
            _add_few(columns[entries], values[entries], mean, first, size, beliefs, few)
            for a in range(few.size):
                total[a] += few[a]


@inner
def _invert(normal: Array, triangle: Array, inverse: Array) -> None:
    """Set `inverse` to that of a positive definite matrix, whose lower triangle is overwritten."""
    size = normal.shape[0]
    for i in range(size):
        row = normal[i]
        for j in range(i):
            above = normal[j]
            entry = row[j]
            for k in range(j):
                entry -= row[k] * above[k]
            row[j] = entry * above[j]  # the diagonal has inverse pivots
        pivot = row[i]
        for k in range(i):
            pivot -= row[k] * row[k]
        row[i] = 1 / np.sqrt(pivot)
    # The transpose of the triangle's inverse: its rows are what the inner loops run along.
    for j in range(size):
        triangle[j, j] = normal[j, j]
        for i in range(j + 1, size):
            triangle[j, i] = -dot(normal[i, j:i], triangle[j, j:i]) * normal[i, i]
    for i in range(size):
        for j in range(i + 1):
            inverse[i, j] = inverse[j, i] = dot(triangle[i, i:], triangle[j, i:])


@inner
def _pack(answer: Array, spread: Array, belief: Array) -> None:
    """Write the posterior of a row from its expected bias and factors and their covariance."""
    size = answer.size + 1
    belief[0], belief[1] = answer[0], 1
    belief[size] = answer[0] * answer[0] + spread[0, 0]
    belief[size + 1], belief[size + 2] = answer[0], 1
    at = size + 3
    for a in range(1, answer.size):
        belief[a + 1] = answer[a]
        belief[at], belief[at + 1] = answer[a] * answer[0] + spread[a, 0], answer[a]
        at += 2
        for b in range(1, a + 1):
            belief[at] = answer[a] * answer[b] + spread[a, b]
            at += 1


@inner
def _missed(total: Array, answer: Array, spread: Array) -> float:
    """Return the expected squared error of a row's predictions, summed over its entries."""
    size = answer.size + 1
    missed, at = total[total.size - 1] + total[size] - 2 * total[0], size + 1
    for a in range(answer.size):
        missed += 2 * answer[a] * (total[at] - total[a + 1])
        at += 1
        for b in range(a + 1):
            twice = 1 if a == b else 2
            missed += twice * total[at] * (answer[a] * answer[b] + spread[a, b])
            at += 1
    return missed  # type: ignore[no-any-return]


@compiled
def solve_rows(start: int, stop: int, sums: Array, precision: Array, noise: float, beliefs: Array) -> None:
    """Write the posterior of each row, and after it the expected squared error of its predictions."""
    size = precision.shape[0]
    normal, triangle = np.empty((size, size)), np.empty((size, size))
    spread, right, answer = np.empty((size, size)), np.empty(size), np.empty(size)
    for row in range(start, stop):
        total, belief = sums[row], beliefs[row]
        at = size + 2
        for a in range(size):
            right[a] = (total[a + 1] - total[at]) / noise
            at += 1
            for b in range(a + 1):
                normal[a, b] = total[at] / noise + precision[a, b]
                at += 1
        _invert(normal, triangle, spread)
        for a in range(size):
            answer[a] = 0.0
            for b in range(size):
                answer[a] += spread[a, b] * right[b]
        _pack(answer, spread, belief)
        belief[belief.size - 1] = _missed(total, answer, spread)
