"""Play guessing games: a fair coin picks one of two neighboring datasets, and an attacker sees a view of it.

The *transcript* view sees every mechanism output, which is what a proof covers. Its likelihood ratio is
known, by replaying the outputs on the other dataset. The *file* view sees the published file. An exception
is an outcome like any other.

Each interim check spends a part of the allowed error, and the last one spends the rest. A guarantee is called
refuted only if a fresh run of the same size refutes it again, at 99.9%: among eighty sound tests at 95% a
few fail by chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt

from discreet.audit.errors import StrayError
from discreet.audit.games.bounds import GuessCounts, refuted_epsilon, refuted_on_curve
from discreet.audit.games.scores import Cuts, LearnedScore, Truth, aligned, features_of, log_ratios
from discreet.audit.white_box.costs import log_ratio
from discreet.audit.white_box.recording import EnoughError, MechanismCall, Player, RecordedCoins, Recorder
from discreet.audit.white_box.structure import ask
from discreet.core import Floats, PrivacyRandom, experiment_generator
from discreet.core.checks import DiscreetError
from discreet.data import Interactions
from discreet.models import Estimator

Pair = tuple[Interactions, Interactions]
CONFIRMING_ERROR = 1e-3
_CHECKS = 5
_PART = 20_000


class Attack(Protocol):
    """Games and their scores: high scores mean the second dataset."""

    fits: int

    def play(self, count: int, seed: int) -> tuple[Floats, Truth]:
        """Return the scores of `count` fresh games, and which dataset it was."""


@final
class TranscriptAttack:
    """An attack that scores the outputs of all draws by their likelihood ratio between the datasets.

    The input of the first draw depends on the data alone. So where there is only one draw, the two inputs are
    found once and a game is a draw. Otherwise a game is a fit on one dataset and a replay on the other, both
    stopped at the last draw.
    """

    def __init__(self, estimator: Estimator, pair: Pair) -> None:
        self._estimator, self._pair = estimator, pair
        recorder = Recorder()
        ask(estimator, estimator.rehearse(pair[0], PrivacyRandom.recorded(0, recorder)), pair[0])
        self._draws, self.fits = len(recorder.calls), 1
        self._inputs: tuple[MechanismCall, MechanismCall] | None = None
        with_data = [n for n, call in enumerate(recorder.calls) if not isinstance(call, RecordedCoins)]
        if len(with_data) == 1:
            player = Player(recorder.calls)
            ask(estimator, estimator.rehearse(pair[1], PrivacyRandom.recorded(0, player)), pair[1])
            self._inputs = (recorder.calls[with_data[0]], player.calls[with_data[0]])
            self.fits = 2

    @property
    def needs_fits(self) -> bool:
        """Return whether a game needs a fit, and not only a draw."""
        return self._inputs is None

    def play(self, count: int, seed: int) -> tuple[Floats, Truth]:
        """Return the log-likelihood ratios of `count` fresh games, and which dataset it was."""
        truth = experiment_generator(seed, "coins").random(count) < 0.5
        random = PrivacyRandom.simulate(seed)
        if self._inputs is None:
            seeds = np.frombuffer(random.token(4 * count), dtype=np.uint32).tolist()
            games = zip(truth.tolist(), seeds, strict=True)
            return np.array([self._game(second, one) for second, one in games]), truth
        return log_ratios(*self._inputs, truth, random), truth

    def _game(self, second: bool, seed: int) -> float:
        recorder = Recorder(most=self._draws)
        self._run(self._pair[second], seed, recorder)
        player = Player(recorder.calls, to_the_end=False)
        try:
            self._run(self._pair[not second], seed, player)
            ratio = log_ratio(recorder.calls, player.calls)
        except (StrayError, ValueError):
            ratio = -np.inf
        return -ratio if second else ratio

    def _run(self, data: Interactions, seed: int, recording: Recorder | Player) -> None:
        self.fits += 1
        try:
            scorer = self._estimator.rehearse(data, PrivacyRandom.recorded(seed, recording))
            ask(self._estimator, scorer, data)
        except EnoughError:
            return
        except StrayError:
            raise
        except DiscreetError:
            # A refusal ends the transcript; lengths then differ, which identifies the dataset.
            return


@final
class FileAttack:
    """An attack that learns from labeled files to score others. It sees only published files."""

    def __init__(self, estimator: Estimator, pair: Pair, *, lessons: int, seed: int) -> None:
        self._estimator, self._pair, self.fits = estimator, pair, 0
        # Lessons come in pairs that share their noise, so that the effect of the dataset is visible.
        seeds = np.repeat(np.arange(lessons // 2), 2) + seed
        truth = np.arange(seeds.size) % 2 == 1
        features = aligned(self._files(truth, seeds))
        self._width = features.shape[1]
        self._score = LearnedScore.of(features, truth)

    def play(self, count: int, seed: int) -> tuple[Floats, Truth]:
        """Return the scores of `count` fresh files, and which dataset they come from."""
        truth = experiment_generator(seed, "coins").random(count) < 0.5
        seeds = np.frombuffer(PrivacyRandom.simulate(seed).token(4 * count), dtype=np.uint32)
        features = aligned(self._files(truth, seeds), self._width)
        return self._score(features), truth

    def _files(self, truth: Truth, seeds: npt.NDArray[Any]) -> list[Floats]:
        self.fits += truth.size
        pairs = zip(truth.tolist(), seeds.tolist(), strict=True)
        return [self._file(second, PrivacyRandom.simulate(seed)) for second, seed in pairs]

    def _file(self, second: bool, random: PrivacyRandom) -> Floats:
        data = self._pair[second]
        try:
            scorer = self._estimator.rehearse(data, random)
            ask(self._estimator, scorer, data)
        except DiscreetError as error:
            # Refusals are distinguished by their messages.
            return np.array([1.0 + sum(map(ord, str(error)))])
        numbers = [value for value in scorer.settings().values() if isinstance(value, int | float)]
        return np.concatenate([features_of(scorer.arrays()), np.array(numbers, dtype=np.float64)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long to play.

    Parameters:
        lessons: The number of games on which the cuts are learned.
        games: The most games that are then counted.
        seconds: No new batch starts after this time.
        error: The allowed error of this attack, over all its interim checks.
        enough: Stop when this share of the guarantee is refuted.
    """

    lessons: int = 1_000
    games: int = 8_000
    seconds: float = 60.0
    error: float = 0.01
    enough: float = 0.97


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GameOutcome:
    """The epsilon that games refuted: without an assumption, and on the curve of the releases."""

    refuted: float
    curve: float | None
    broken: bool
    tally: GuessCounts
    error: float


def play(
    attack: Attack,
    plan: Plan,
    *,
    epsilon: float,
    delta: float,
    distance: Callable[[float], float] | None,
    seed: int,
) -> GameOutcome:
    """Play games until enough is refuted or the plan is used up; confirm a refutation on fresh games."""
    deadline = time.perf_counter() + plan.seconds
    cuts = Cuts.learned(*attack.play(plan.lessons, seed), delta, plan.error)
    tally, left = GuessCounts(0, 0, 0, 0), plan.error
    refuted, curve = 0.0, 0.0

    def bounds(tally: GuessCounts, error: float) -> tuple[float, float]:
        """Return both bounds, each at half of the error."""
        on_curve = 0.0 if distance is None else refuted_on_curve(tally, distance, error / 2)
        return refuted_epsilon(tally, delta, error / 2), on_curve

    for check, count in enumerate(_batches(max(plan.games >> (_CHECKS - 1), 1), _CHECKS)):
        for number, size in enumerate(_parts(count)):
            tally = tally.plus(cuts.tally(*attack.play(size, seed + 1 + 1_000_000 * check + number)))
            if time.perf_counter() > deadline:
                break
        last = time.perf_counter() > deadline or check == _CHECKS - 1
        error = left if last else left / 4
        left -= error
        refuted, curve = map(max, (refuted, curve), bounds(tally, error))
        if last or max(refuted, curve) >= plan.enough * epsilon:
            break
    broken = max(refuted, curve) > epsilon
    if broken:
        again = cuts.tally(*attack.play(tally.games, seed + 500_000))
        broken = max(bounds(again, CONFIRMING_ERROR)) > epsilon
    shown = None if distance is None else curve
    return GameOutcome(refuted=refuted, curve=shown, broken=broken, tally=tally, error=plan.error)


def _batches(first: int, checks: int) -> Iterator[int]:
    """Yield how many games to add before each interim check: every check sees twice as many as the last."""
    yield first
    for check in range(checks - 1):
        yield first * 2**check


def _parts(count: int) -> list[int]:
    """Split a batch into parts, between which the clock is checked."""
    return [min(_PART, count - start) for start in range(0, count, _PART)]
