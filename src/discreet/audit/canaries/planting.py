"""Play many membership games in one fit: canaries with disjoint items are in or out by a coin each.

The contributions of two canaries fall on different numbers. So one fit and one replay, in which exactly the
other canaries are in, score every game: a number that one canary moves is known with it and without it. The
number of items with which a canary costs most is tried first.

The games use the transcript of the fit itself. The estimator's own code calls the official mechanisms, their
inputs are recorded to the last bit, and each output is the sampler's. A later query may depend on earlier
outputs, so every game needs a fit; with a large catalog one fit has hundreds of games.

Why the games count as independent, where the noise is Gaussian. In each draw the attacker projects on the
canary's own difference, a direction of length 1, and adds up draws with weights that were fixed beforehand. A
direction is known before its draw, the noise along it is a fresh standard normal number, and no two canaries
share a number. So the noise in the scores is independent from canary to canary and from fit to fit, whatever
was queried. A canary that is in moves its own score alone, by at most the shift that the guarantee allows
(Cauchy, Schwarz). Right guesses are then at most binomial, with the share that the curve allows.

The last release takes most of the budget and no query follows it. So it is drawn many times for the same
query, by the same sampler, on the numbers that belong to one canary. This gives the share of right guesses
conditional on the earlier outputs, and each canary counts with that share instead of with one guess. Most of
the variance of these shares is the luck of the earlier draws: the noise along the canary's direction. It is
known here and zero on average, so it serves as a control variate and is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from discreet.audit.games.bounds import MOST_LUCK, BettingShares
from discreet.audit.games.scores import Truth
from discreet.audit.neighboring import Row, build
from discreet.audit.white_box.costs import price
from discreet.audit.white_box.recording import EnoughError, MechanismCall, Player, RecordedAdditive, Recorder
from discreet.core.arrays import Floats, Indices
from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.estimator import Estimator
from discreet.privacy.sampling import draws

# For each draw, the canary that each number belongs to.
Supports = list[Indices]
# A user's contribution has a bounded norm; rows of one item reach it in most statistics, moments of rows need
# longer ones.
_LENGTHS = (1, 2, 4, 8, 12, 24)
# How often the last release is drawn for one query, and for about how many numbers in total.
_FEWEST_TIMES, _MOST_TIMES, _NUMBERS = 8, 64, 150_000
# Shorter rows that reach this share of the highest cost are preferred: they allow more canaries.
_NEARLY = 0.97


@final
@dataclass(frozen=True, kw_only=True)
class Canaries:
    """The background users and the canaries that may be added, by name."""

    background: dict[str, Row]
    rows: dict[str, Row]
    facts: PublicFacts

    @classmethod
    def disjoint(cls, background: dict[str, Row], facts: PublicFacts, length: int) -> Canaries:
        """Return canaries with `length` items each, liked and disliked in turn."""
        low, high = facts.low, facts.high
        rows: dict[str, Row] = {
            f"~{first:06d}": {
                item: low if (item - first) % 2 else high for item in range(first, first + length)
            }
            for first in range(0, facts.n_items - length + 1, length)
        }
        return cls(background=background, rows=rows, facts=facts)

    @classmethod
    def costliest(cls, estimator: Estimator, background: dict[str, Row], facts: PublicFacts) -> Canaries:
        """Return canaries of the shortest length whose cost is about the highest."""
        delta = estimator.promise(facts).delta

        def paid(length: int) -> float:
            canaries = cls.disjoint(background, facts, length)
            present = np.zeros(len(canaries.rows), dtype=np.bool_)
            recorder = Recorder()
            estimator.rehearse(canaries.dataset(present), PrivacyRandom.recorded(0, recorder))
            present[0] = True
            player = Player(recorder.calls)
            estimator.rehearse(canaries.dataset(present), PrivacyRandom.recorded(0, player))
            return price(recorder.calls, player.calls).epsilon(delta)

        prices = {length: paid(length) for length in _LENGTHS if length * 2 <= facts.n_items}
        enough = _NEARLY * max(prices.values())
        return cls.disjoint(background, facts, min(length for length, one in prices.items() if one >= enough))

    @cached_property
    def _all_users(self) -> Interactions:
        return build({**self.background, **self.rows}, self.facts)

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
        recorder = Recorder()
        self._run(self._none, 0, recorder)
        self._draws = len(recorder.calls)
        self._supports = self._find_supports(recorder.calls)
        all_users = canaries.dataset(np.ones(len(canaries.rows), dtype=np.bool_))
        with_all = self._replayed(recorder.calls, all_users)
        absent = np.zeros(len(canaries.rows), dtype=np.bool_)
        self._weights = [
            _along(*draw, absent).length
            for draw in zip(recorder.calls, with_all, self._supports, strict=True)
        ]
        self.is_independent = all(
            call.gaussian for call in recorder.calls if isinstance(call, RecordedAdditive)
        )

    def play(self, seed: int, *, once: bool = False) -> Game:
        """Return the scores of all canaries in one fit, and which of them were in it.

        The numbers of each canary are usually those of the first fit; a draw where they are not is ignored.
        With `once` they are found again for this fit.
        """
        draw = experiment_generator(seed, "canaries")
        truth = draw.random(len(self._canaries.rows)) < 0.5
        recorder = Recorder(most=self._draws)
        self._run(self._canaries.dataset(truth), seed, recorder)
        mirrored = self._replayed(recorder.calls, self._canaries.dataset(~truth))
        found = self._find_supports(recorder.calls) if once else self._supports
        before = -np.sum(np.square(self._weights), axis=0) / 2
        luck, last = np.zeros(truth.size), np.zeros(truth.size)
        again = np.zeros((_times(found, truth.size), truth.size))
        # Independent of the noise of the fit itself.
        random = PrivacyRandom.simulate(seed).spawn("again")
        for index, weight in enumerate(self._weights):
            # Where a draw reveals nothing about a canary, fresh random numbers replace its noise.
            output, more = draw.standard_normal(truth.size), draw.standard_normal(again.shape)
            noise = output
            if index < len(mirrored) and _agree(
                recorder.calls[index], mirrored[index], found[index], truth.size
            ):
                here, supports = recorder.calls[index], found[index]
                seen = _along(here, mirrored[index], supports, truth)
                noise = np.where(seen.length > 0, seen.projection - truth * seen.length, output)
                output = np.where(seen.length > 0, seen.projection, output)
                if index >= recorder.last_release:
                    drawn = _drawn_again(here, seen, supports, truth, len(again), random)
                    more = np.where(seen.length > 0, drawn, more)
            if index < recorder.last_release:
                before, luck = before + weight * output, luck + weight * noise
            else:
                last, again = last + weight * output, again + weight * more
        right = np.mean((before + again > 0) == truth, axis=0)
        spread = np.sqrt(np.sum(np.square(self._weights[: recorder.last_release]), axis=0))
        signed = np.where(truth, luck, -luck) / np.where(spread > 0, spread, 1.0)
        shares = BettingShares(right, np.clip(signed, -MOST_LUCK, MOST_LUCK))
        return Game(before + last, truth, shares if self.is_independent else None)

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


def _size(call: MechanismCall) -> int:
    return call.given.size if isinstance(call, RecordedAdditive) else 0


def _moved(before: MechanismCall, after: MechanismCall) -> Truth:
    if not (isinstance(before, RecordedAdditive) and isinstance(after, RecordedAdditive)):
        return np.zeros(0, dtype=np.bool_)
    return np.asarray((after.given != before.given).reshape(-1), dtype=np.bool_)


def _agree(here: MechanismCall, there: MechanismCall, supports: Indices, count: int) -> bool:
    """Return whether only numbers that some canary moves differ between a dataset and its mirror image."""
    moved = _moved(here, there)
    return moved.size == supports.size and not bool(np.any(moved & (supports > count)))


class _Along(NamedTuple):
    """The length of each canary's difference in units of the noise, and the output's projection on it.

    `direction` has the differences themselves, each canary's of length 1.
    """

    length: Floats
    projection: Floats
    direction: Floats


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
    here: MechanismCall, seen: _Along, supports: Indices, truth: Truth, times: int, random: PrivacyRandom
) -> Floats:
    """Return the projections of each canary's output when this draw is repeated `times` times."""
    if not isinstance(here, RecordedAdditive) or not here.gaussian:
        return np.zeros((times, truth.size))
    (where,) = np.nonzero(supports < truth.size)
    noise = draws.discrete_gaussian(here.width, times * where.size, random).reshape(times, where.size)
    along = noise / here.width * seen.direction[where]
    projections = np.stack([_summed(row, supports[where], truth.size) for row in along])
    return projections + np.where(truth, seen.length, 0.0)


def _times(supports: Supports, count: int) -> int:
    """Return how many times to draw the last release, by how many numbers belong to one canary."""
    own = max((int(np.count_nonzero(whose < count)) for whose in supports), default=0)
    return int(np.clip(_NUMBERS // max(own, 1), _FEWEST_TIMES, _MOST_TIMES))


def _summed(numbers: Floats, supports: Indices, count: int) -> Floats:
    """Return each canary's sum."""
    return np.asarray(np.bincount(supports, weights=numbers, minlength=count + 1)[:count], dtype=np.float64)
