"""Test the noise itself: its scale, its independence between draws, and its fixed-point outputs.

Privacy costs are computed from the requested noise scale, so the drawn noise must have that scale. The noise
of recorded fits is pooled, and topped up with draws of the same scales.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import betainc, gammainc

from discreet.audit.white_box.costs import cell_answers, dense_cells, output_cells
from discreet.audit.white_box.recording import (
    MechanismCall,
    RecordedAdditive,
    RecordedCells,
    RecordedTable,
    Recorder,
)
from discreet.audit.white_box.structure import ask
from discreet.collect.device import answer_cells
from discreet.core import Floats, Indices, PrivacyRandom, experiment_generator
from discreet.data import Interactions
from discreet.models import Estimator
from discreet.privacy.mechanisms.channel import WORDS
from discreet.privacy.sampling import draws

#: The least number of draws for a test.
DRAWS = 5_000
#: The probability that sound noise fails a test.
ERROR = 1e-6
# A run of so many draws at so wide a noise scale repeats by chance once in 2^40 times or less.
_RUN, _WIDE = 4, 2**9
# The logarithm of a negligible probability.
_NEVER = math.log(1e-12)
_FITS = 3
# Fewer numbers can be correlated by chance.
_LONG = 12


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTest:
    """The faults found in the noise, and the number of draws and fits."""

    faults: tuple[str, ...]
    draws: int
    fits: int


def examine_noise(estimator: Estimator, data: Interactions, *, seed: int = 0) -> NoiseTest:
    """Record three fits and test each kind of noise they draw."""
    recorded: list[MechanismCall] = []
    for number in range(_FITS):
        recorder = Recorder()
        scorer = estimator.rehearse(data, PrivacyRandom.recorded(seed + number, recorder))
        ask(estimator, scorer, data)
        recorded += recorder.calls
    faults = ["noise is drawn once and used again"] if is_reused(recorded) else []
    count = 0
    for gaussian in (False, True):
        noise = [one for one in recorded if isinstance(one, RecordedAdditive) and one.gaussian is gaussian]
        if noise:
            sample = _topped_up(noise, seed)
            count += sample.size
            if is_too_narrow(sample, gaussian=gaussian):
                faults.append("noise is narrower than its requested scale")
    quantiles = _quantiles(recorded, seed)
    if quantiles.size:
        count += quantiles.size
        if not is_uniform(quantiles):
            faults.append("answers do not follow the table they were drawn from")
    return NoiseTest(faults=tuple(faults), draws=count, fits=_FITS)


def is_too_narrow(standardized: Floats, *, gaussian: bool) -> bool:
    """Return whether noise in units of its scale is too narrow; wrongly yes with probability `ERROR`.

    Squares of n normal draws, and magnitudes of n Laplace draws, sum to a gamma distribution.
    """
    count = standardized.size
    if gaussian:
        below = gammainc(count / 2, float(np.sum(standardized**2)) / 2)
    else:
        below = gammainc(count, float(np.sum(np.abs(standardized))))
    return bool(below < ERROR)


def is_uniform(numbers: Floats) -> bool:
    """Return whether numbers may be uniform on [0, 1]; wrongly no with probability at most `ERROR`.

    The bound is that of Dvoretzky, Kiefer and Wolfowitz with Massart's constant.
    """
    count = numbers.size
    rising = np.sort(numbers)
    above = np.arange(1, count + 1) / count - rising
    farthest = float(np.max(np.maximum(above, 1 / count - above)))
    return farthest <= math.sqrt(math.log(2 / ERROR) / (2 * count))


def is_reused(calls: Sequence[MechanismCall]) -> bool:
    """Return whether a run of noise occurs twice, within a draw or across draws and fits."""
    seen: set[bytes] = set()
    for call in calls:
        runs = _runs(call)
        if any(run in seen for run in runs) or len(set(runs)) < len(runs):
            return True
        seen.update(runs)
    return _is_correlated(calls)


def _is_correlated(calls: Sequence[MechanismCall]) -> bool:
    """Return whether the noise of two draws is correlated, even at different scales."""
    noise = [
        (one.output - one.given).reshape(-1) / one.width
        for one in calls
        if isinstance(one, RecordedAdditive) and one.given.size >= _LONG
    ]
    for index, first in enumerate(noise):
        for second in noise[index + 1 :]:
            size = min(first.size, second.size)
            correlation = abs(float(np.corrcoef(first[:size], second[:size])[0, 1]))
            # For independent normal numbers the square of the correlation has a beta distribution.
            if betainc(size / 2 - 1, 0.5, max(1 - correlation**2, 0.0)) < math.exp(_NEVER):
                return True
    return False


def _runs(call: MechanismCall) -> list[bytes]:
    """Return runs that identify the noise of a draw; none where two draws could agree by chance."""
    if isinstance(call, RecordedTable):
        shares = np.diff(call.starts, axis=1, append=np.uint64(0)) / float(WORDS)
        agree = np.log(np.maximum(np.sum(shares**2, axis=1), 1e-300))[call.rows.reshape(-1)]
        return [call.output.tobytes()] if float(agree.sum()) < _NEVER else []
    if not isinstance(call, RecordedAdditive) or call.width < _WIDE:
        return []
    noise = np.ascontiguousarray((call.output - call.given).reshape(-1))
    run = min(_RUN, noise.size)
    return [noise[start : start + run].tobytes() for start in range(noise.size - run + 1)] if run > 1 else []


def _quantiles(calls: Sequence[MechanismCall], seed: int) -> Floats:
    """Return the randomized quantile of each answer, which is uniform if answers follow their table."""
    spread, random = experiment_generator(seed, "places"), PrivacyRandom.simulate(seed)
    drawn = [call for call in calls if isinstance(call, RecordedTable | RecordedCells)]
    parts: list[Floats] = []
    while drawn and sum(part.size for part in parts) < DRAWS:
        for call in drawn:
            shares, output = _answers_of(call)
            chosen = np.arange(output.size)
            below = np.cumsum(shares, axis=1)[chosen, output] - shares[chosen, output]
            parts.append(below + spread.random(output.size) * shares[chosen, output])
        drawn = [_again(call, random) for call in drawn]
    return np.concatenate([np.zeros(0), *parts])


def _answers_of(call: RecordedTable | RecordedCells) -> tuple[Floats, Indices]:
    """Return the probability of each answer, one row per draw, and the answer that was drawn."""
    if isinstance(call, RecordedCells):
        return cell_answers(call.mechanism)[dense_cells(call)], output_cells(call)
    rows = call.rows.reshape(-1)
    return np.diff(call.starts, axis=1, append=np.uint64(0))[rows] / float(WORDS), call.output.reshape(-1)


def _again(call: RecordedTable | RecordedCells, random: PrivacyRandom) -> RecordedTable | RecordedCells:
    if isinstance(call, RecordedTable):
        return replace(call, output=draws.draw_from_table(call.starts, call.rows, random))
    output = answer_cells(call.mechanism, call.rated, call.ratings, call.count, random)
    return replace(call, output=output)


def _topped_up(recorded: Sequence[RecordedAdditive], seed: int) -> Floats:
    """Return the noise of these draws in units of its scale, topped up with draws of the same scales."""
    parts = [(one.output - one.given).astype(np.float64).reshape(-1) / one.width for one in recorded]
    widths = sorted({one.width for one in recorded})
    draw = draws.discrete_gaussian if recorded[0].gaussian else draws.discrete_laplace
    random, missing = PrivacyRandom.simulate(seed), DRAWS - sum(part.size for part in parts)
    if missing > 0:
        each = math.ceil(missing / len(widths))
        parts += [draw(width, each, random).astype(np.float64) / width for width in widths]
    return np.concatenate(parts)
