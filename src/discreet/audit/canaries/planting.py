"""Play many membership games in one fit: canaries with disjoint items are in or out by a coin each.

The contributions of two canaries fall on different numbers. So one fit and one replay, in which exactly the
other canaries are in, score every game: a number that one canary moves is known with it and without it. The
number of items with which a canary costs most is tried first.

The games use the transcript of the fit itself. The estimator's own code calls the official mechanisms, their
inputs are recorded to the last bit, and each output is the sampler's. A later query may depend on earlier
outputs, so every game needs a fit; with a large catalog one fit has hundreds of games.

Which numbers belong to a canary may depend on earlier outputs, for example if a release is about the items
that earlier votes favor. So the numbers are found anew for every fit, by replays with some of the canaries.

Why the games count as independent, where the noise is Gaussian. In each draw the attacker projects on the
canary's own difference, a direction of length 1, and adds up draws, weighted by the length of the difference
in units of the noise. Direction and weight are known before their draw, the noise along the direction is a
fresh standard normal number, and no two canaries share a number. The squares of the weights add up to
constants, one for all releases but the last and one for the last: weights stop there, and fresh noise fills
up what is left. Then the noise in the scores is exactly normal and independent from canary to canary and from
fit to fit, whatever was queried: the conditional characteristic function of a draw depends on its weights
only by their squares. A canary that is in moves its own score alone, by at most the shift that the guarantee
allows (Cauchy, Schwarz). Right guesses are then at most binomial, with the share that the curve allows.

The last release takes most of the budget and no query follows it. So it is drawn many times for the same
query, by the same sampler, on the numbers that belong to one canary. This gives the share of right guesses
conditional on the earlier outputs, and each canary counts with that share instead of with one guess. Most of
the variance of these shares is the luck of the earlier draws: the noise along the canary's direction. It is
known here, and how much it helps on average, so it serves as a control variate and is subtracted.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from scipy.special import ndtr

from discreet.audit.games.bounds import BettingShares
from discreet.audit.games.scores import Truth
from discreet.audit.neighboring import Row, Timing, build
from discreet.audit.white_box.costs import Price, price
from discreet.audit.white_box.recording import EnoughError, MechanismCall, Player, RecordedAdditive, Recorder
from discreet.core import Floats, Indices, PrivacyRandom, experiment_generator
from discreet.data import Interactions, PublicFacts
from discreet.models import Estimator
from discreet.privacy.sampling import draws

# For each draw, the canary that each number belongs to.
Supports = list[Indices]
# A user's contribution has a bounded norm; rows of one item reach it in most statistics, moments of rows need
# longer ones.
_LENGTHS = (1, 2, 4, 8, 12, 24)
# How often the last release is drawn for one query, and for about how many numbers in total.
_FEWEST_TIMES, _MOST_TIMES, _NUMBERS = 8, 64, 150_000
# The seed of the fit that shows how much the releases before the last one usually reveal.
_PLANNED = 0
# Shorter rows that reach this share of the highest cost are preferred: they allow more canaries.
_NEARLY = 0.98
# A release may be about items that earlier outputs favor, so the cost of a length is a mean over a few fits.
_TRIED = 12


@final
@dataclass(frozen=True, kw_only=True)
class Canaries:
    """The background users and the canaries that may be added, by name."""

    background: dict[str, Row]
    rows: dict[str, Row]
    facts: PublicFacts
    timing: Timing | None = None

    @classmethod
    def disjoint(
        cls, background: dict[str, Row], facts: PublicFacts, length: int, timing: Timing | None = None
    ) -> Canaries:
        """Return canaries with `length` items each, liked and disliked in turn."""
        low, high = facts.low, facts.high
        rows: dict[str, Row] = {
            f"~{first:06d}": {
                item: low if (item - first) % 2 else high for item in range(first, first + length)
            }
            for first in range(0, facts.n_items - length + 1, length)
        }
        return cls(background=background, rows=rows, facts=facts, timing=timing)

    @classmethod
    def costliest(cls, estimator: Estimator, background: dict[str, Row], facts: PublicFacts) -> Canaries:
        """Return canaries of the shortest length whose cost is about the highest."""
        delta, timing = estimator.promise(facts).delta, Timing.of(estimator)

        def paid(length: int) -> float:
            canaries = cls.disjoint(background, facts, length, timing)
            return float(np.mean([canaries._cost(estimator, seed).epsilon(delta) for seed in range(_TRIED)]))

        prices = {length: paid(length) for length in _LENGTHS if length * 2 <= facts.n_items}
        enough = _NEARLY * max(prices.values())
        shortest = min(length for length, one in prices.items() if one >= enough)
        return cls.disjoint(background, facts, shortest, timing)

    def _cost(self, estimator: Estimator, seed: int) -> Price:
        """Return the mean cost of a canary: canaries share no numbers, so their costs add up."""
        present = self.coins(seed)
        recorder = Recorder()
        estimator.rehearse(self.dataset(present), PrivacyRandom.recorded(seed, recorder))
        player = Player(recorder.calls, to_the_end=False)
        with suppress(EnoughError):
            estimator.rehearse(self.dataset(~present), PrivacyRandom.recorded(seed, player))
        total = price(recorder.calls, player.calls)
        return Price(pure=total.pure / present.size, shift=total.shift / math.sqrt(present.size))

    @cached_property
    def _all_users(self) -> Interactions:
        return build({**self.background, **self.rows}, self.facts, self.timing)

    def coins(self, seed: int) -> Truth:
        """Return which canaries are in."""
        return experiment_generator(seed, "canaries").random(len(self.rows)) < 0.5

    def dataset(self, present: Truth) -> Interactions:
        """Return the data with some of the canaries, whose names sort after all others."""
        kept = np.append(np.ones(len(self.background), dtype=np.bool_), present)
        return self._all_users.select_users(kept).with_facts(self.facts)


class Game(NamedTuple):
    """The scores of the canaries of one fit, and which of them were in it.

    `shares` are the shares of right guesses about each canary, conditional on all outputs before the last
    release; None where canaries do not count as independent.
    """

    scores: Floats
    truth: Truth
    shares: BettingShares | None = None


@final
class CanaryAttack:
    """An attack that scores every canary of a fit by the mechanism outputs on its own numbers."""

    def __init__(self, estimator: Estimator, canaries: Canaries) -> None:
        self._estimator, self._canaries, self.fits = estimator, canaries, 0
        self._none = canaries.dataset(np.zeros(len(canaries.rows), dtype=np.bool_))
        # The squared weights of all releases, and of all but the last: what a fit of its own reveals.
        first = self._transcript(_PLANNED, canaries.coins(_PLANNED))
        self._total = float(np.median(first.revealed()))
        self._earlier = min(float(np.median(first.revealed(last=False))), self._total)

    def play(self, seed: int) -> Game:
        """Return the scores of all canaries in one fit, and which of them were in it."""
        truth = self._canaries.coins(seed)
        transcript = self._transcript(seed, truth)
        return Game(transcript.scores(), truth, self._shares(transcript, seed))

    def _transcript(self, seed: int, truth: Truth) -> _Transcript:
        recorder = Recorder()
        self._run(self._canaries.dataset(truth), seed, recorder)
        mirrored = self._replayed(recorder.calls, self._canaries.dataset(~truth))
        found = self._find_supports(recorder.calls)
        seen = [_along(*one, truth) for one in zip(recorder.calls, mirrored, found, strict=True)]
        return _Transcript(recorder.calls, found, seen, truth, recorder.last_release)

    def _shares(self, transcript: _Transcript, seed: int) -> BettingShares | None:
        """Return the shares of right guesses about each canary; None unless all noise is Gaussian."""
        additive = [call for call in transcript.calls if isinstance(call, RecordedAdditive)]
        if not all(call.gaussian for call in additive):
            return None
        truth, fresh = transcript.truth, experiment_generator(seed, "canaries, filled up")
        luck, shift = _Filled.of(truth.size, self._earlier), np.zeros(truth.size)
        for seen in transcript.seen[: transcript.last]:
            weight = luck.next_weight(seen.length)
            luck.noise += weight * (seen.projection - truth * seen.length)
            shift += weight * seen.length
        luck.fill(fresh)
        again = _Filled.of((_times(transcript.supports, truth.size), truth.size), self._total - self._earlier)
        # Independent of the noise of the fit itself.
        random = PrivacyRandom.simulate(seed).spawn("again")
        for index in range(transcript.last, len(transcript.calls)):
            seen = transcript.seen[index]
            weight = again.next_weight(seen.length)
            again.noise += weight * _drawn_again(
                transcript.calls[index],
                seen,
                transcript.supports[index],
                truth.size,
                len(again.noise),
                random,
            )
            shift += weight * seen.length
        again.fill(fresh)
        right = np.mean((luck.noise + again.noise + truth * shift > self._total / 2) == truth, axis=0)
        return BettingShares(right, self._luck(np.where(truth, luck.noise, -luck.noise)))

    def _luck(self, signed: Floats) -> Floats:
        """Return how much more often than on average a guess is right after such noise, if all is revealed.

        The noise is normal with variance `_earlier`, so the mean is exactly 0.
        """
        left = max(math.sqrt(self._total - self._earlier), 1e-12)
        luck: Floats = ndtr((signed + self._total / 2) / left) - ndtr(math.sqrt(self._total) / 2)
        return luck

    def _find_supports(self, recorded: list[MechanismCall]) -> Supports:
        """Return, for every draw, which numbers each canary moves and no other one does.

        Canaries are identified by the binary digits of their index: a number that belongs to one canary moves
        either with those whose digit is set or with the others, and never with both.
        """
        none, count = self._replayed(recorded, self._none), len(self._canaries.rows)
        owner = [np.zeros(_size(call), dtype=np.int64) for call in recorded]
        own = [np.ones(_size(call), dtype=np.bool_) for call in recorded]
        moved = [np.zeros(_size(call), dtype=np.bool_) for call in recorded]
        for digit in range(max(count - 1, 1).bit_length()):
            chosen = np.arange(count) >> digit & 1 == 1
            with_it, without_it = (
                [_moved(*pair) for pair in zip(none, self._replayed(recorded, dataset), strict=True)]
                for dataset in (self._canaries.dataset(chosen), self._canaries.dataset(~chosen))
            )
            for draw in range(len(recorded)):
                owner[draw] |= with_it[draw].astype(np.int64) << digit
                own[draw] &= with_it[draw] ^ without_it[draw]
                moved[draw] |= with_it[draw] | without_it[draw]
        # Index `count`: moved by several canaries; `count + 1`: moved by none.
        return [
            np.where(alone, whose, np.where(some, count, count + 1))
            for alone, whose, some in zip(own, owner, moved, strict=True)
        ]

    def _replayed(self, recorded: list[MechanismCall], data: Interactions) -> list[MechanismCall]:
        player = Player(recorded, to_the_end=False)
        self._run(data, 0, player)
        return player.calls

    def _run(self, data: Interactions, seed: int, recording: Recorder | Player) -> None:
        self.fits += 1
        try:
            self._estimator.rehearse(data, PrivacyRandom.recorded(seed, recording))
        except EnoughError:
            return


@final
@dataclass(slots=True, kw_only=True)
class _Filled:
    """Noise whose squared weights add up to `total` for every canary."""

    noise: Floats
    left: Floats

    @classmethod
    def of(cls, shape: int | tuple[int, int], total: float) -> _Filled:
        noise = np.zeros(shape)
        return cls(noise=noise, left=np.full(noise.shape[-1], total))

    def next_weight(self, length: Floats) -> Floats:
        """Return the weight of the next draw: its length, or less if no more is left."""
        weight: Floats = np.sqrt(np.minimum(length**2, self.left))
        self.left = np.maximum(self.left - weight**2, 0.0)
        return weight

    def fill(self, fresh: np.random.Generator) -> None:
        """Add fresh noise for what is left."""
        self.noise += np.sqrt(self.left) * fresh.standard_normal(self.noise.shape)


def _size(call: MechanismCall) -> int:
    return call.given.size if isinstance(call, RecordedAdditive) else 0


def _moved(before: MechanismCall, after: MechanismCall) -> Truth:
    if not (isinstance(before, RecordedAdditive) and isinstance(after, RecordedAdditive)):
        return np.zeros(0, dtype=np.bool_)
    return np.asarray((after.given != before.given).reshape(-1), dtype=np.bool_)


class _Along(NamedTuple):
    """The length of each canary's difference in units of the noise, and the output's projection on it.

    `direction` has the differences themselves, each canary's of length 1.
    """

    length: Floats
    projection: Floats
    direction: Floats


class _Transcript(NamedTuple):
    """The draws of a fit, the numbers of each canary in them, and where the last release starts."""

    calls: list[MechanismCall]
    supports: Supports
    seen: list[_Along]
    truth: Truth
    last: int

    def revealed(self, *, last: bool = True) -> Floats:
        """Return the squared shift that the draws reveal about each canary, the last release too or not."""
        seen = self.seen if last else self.seen[: self.last]
        squares = [one.length**2 for one in seen]
        return np.asarray(np.sum([np.zeros(self.truth.size), *squares], axis=0), dtype=np.float64)

    def scores(self) -> Floats:
        """Return each canary's log-likelihood ratio, which for Gaussian noise is exact."""
        found: Floats = -self.revealed() / 2
        for one in self.seen:
            found = found + one.length * one.projection
        return found


def _along(here: MechanismCall, there: MechanismCall, supports: Indices, truth: Truth) -> _Along:
    """Project the output on each canary's own difference, measured from the input without the canary.

    The two datasets are mirror images, so for each number exactly one of them has the canary.
    """
    if not (isinstance(here, RecordedAdditive) and isinstance(there, RecordedAdditive)):
        return _Along(np.zeros(truth.size), np.zeros(truth.size), np.zeros(0))
    is_in = np.append(truth, [False, False])[supports]
    given, mirrored, output = (array.reshape(-1) for array in (here.given, there.given, here.output))
    own = np.where(is_in, given - mirrored, mirrored - given) / here.width
    apart = (output - np.where(is_in, mirrored, given)) / here.width
    length = np.sqrt(_summed(own**2, supports, truth.size))
    direction = own / np.append(np.where(length > 0, length, 1.0), [1.0, 1.0])[supports]
    return _Along(length, _summed(direction * apart, supports, truth.size), direction)


def _drawn_again(
    here: MechanismCall, seen: _Along, supports: Indices, count: int, times: int, random: PrivacyRandom
) -> Floats:
    """Return the noise along each canary's direction if this draw is repeated `times` times."""
    if not isinstance(here, RecordedAdditive):
        return np.zeros((times, count))
    (where,) = np.nonzero(supports < count)
    noise = draws.discrete_gaussian(here.width, times * where.size, random).reshape(times, where.size)
    along = noise / here.width * seen.direction[where]
    return np.stack([_summed(row, supports[where], count) for row in along])


def _times(supports: Supports, count: int) -> int:
    """Return how many times to draw the last release, by how many numbers belong to one canary."""
    own = max((int(np.count_nonzero(whose < count)) for whose in supports), default=0)
    return int(np.clip(_NUMBERS // max(own, 1), _FEWEST_TIMES, _MOST_TIMES))


def _summed(numbers: Floats, supports: Indices, count: int) -> Floats:
    """Return each canary's sum."""
    return np.asarray(np.bincount(supports, weights=numbers, minlength=count + 1)[:count], dtype=np.float64)
