"""Play many games in one fit: canaries whose rows share no item are in or out by a coin each.

What two of them tell falls on different numbers, so that one fit and two replays, with all of them and with
none, score every game. How many items a canary needs to pay most is tried first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.arrays import Floats, Indices
from discreet.audit.games.scores import Truth
from discreet.audit.white_box.prices import price
from discreet.audit.white_box.tape import Additive, EnoughError, Passage, Player, Recorder
from discreet.audit.worlds import Row, build
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.estimator import Estimator
from discreet.randomness import PrivacyRandom, experiment_generator

Supports = list[list[Indices]]
# A person's contribution has a bounded length; rows of one item reach it in most statistics, moments of rows
# need longer ones.
_LENGTHS = (1, 2, 4, 8, 12)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Canaries:
    """Hold a crowd and the canaries that may join it, by name."""

    crowd: dict[str, Row]
    rows: dict[str, Row]
    facts: PublicFacts

    @classmethod
    def disjoint(cls, crowd: dict[str, Row], facts: PublicFacts, length: int) -> Canaries:
        """Return canaries with so many items each, liked and disliked by turns."""
        low, high = facts.low, facts.high
        rows: dict[str, Row] = {
            f"~{first:06d}": {
                item: low if (item - first) % 2 else high for item in range(first, first + length)
            }
            for first in range(0, facts.n_items - length + 1, length)
        }
        return cls(crowd=crowd, rows=rows, facts=facts)

    @classmethod
    def costliest(cls, estimator: Estimator, crowd: dict[str, Row], facts: PublicFacts) -> Canaries:
        """Return canaries of the length that pays most."""
        delta = estimator.promise(facts).delta

        def paid(length: int) -> float:
            canaries = cls.disjoint(crowd, facts, length)
            present = np.zeros(len(canaries.rows), dtype=np.bool_)
            recorder = Recorder()
            estimator.rehearse(canaries.world(present), PrivacyRandom.taped(0, recorder))
            present[0] = True
            player = Player(recorder.passages)
            estimator.rehearse(canaries.world(present), PrivacyRandom.taped(0, player))
            return price(recorder.passages, player.passages).epsilon(delta)

        lengths = [length for length in _LENGTHS if length * 2 <= facts.n_items]
        return cls.disjoint(crowd, facts, max(lengths, key=paid))

    def world(self, present: Truth) -> Interactions:
        """Return the data with some of the canaries."""
        some = {name: row for (name, row), there in zip(self.rows.items(), present, strict=True) if there}
        return build({**self.crowd, **some}, self.facts)


@final
class CanaryAttack:
    """Score every canary of a fit by what the draws told about its own numbers."""

    def __init__(self, estimator: Estimator, canaries: Canaries) -> None:
        self._estimator, self._canaries, self.fits = estimator, canaries, 0
        self._none = canaries.world(np.zeros(len(canaries.rows), dtype=np.bool_))
        self._all = canaries.world(np.ones(len(canaries.rows), dtype=np.bool_))
        recorder = Recorder()
        self._run(self._none, 0, recorder)
        self._draws = len(recorder.passages)
        self._supports = self._find_supports(recorder.passages)

    def play(self, seed: int) -> tuple[Floats, Truth]:
        """Return the scores of all canaries in one fit, and which of them were in it."""
        truth = experiment_generator(seed, "canaries").random(len(self._canaries.rows)) < 0.5
        recorder = Recorder(most=self._draws)
        self._run(self._canaries.world(truth), seed, recorder)
        without, with_all = (self._replayed(recorder.passages, data) for data in (self._none, self._all))
        scores = np.zeros(truth.size)
        for told, none, every, supports in zip(
            recorder.passages, without, with_all, self._supports, strict=True
        ):
            if isinstance(told, Additive) and isinstance(none, Additive) and isinstance(every, Additive):
                scores += _scores(told, none, every, supports)
        return scores, truth

    def _find_supports(self, recorded: list[Passage]) -> Supports:
        """Return, for every draw, which numbers each canary moves and no other one does.

        Canaries are told apart by the binary digits of their place: a number that is one canary's own moves
        either with those whose digit is set or with the others, and never with both.
        """
        none, count = self._replayed(recorded, self._none), len(self._canaries.rows)
        owner = [np.zeros(_size(passage), dtype=np.int64) for passage in recorded]
        own = [np.ones(_size(passage), dtype=np.bool_) for passage in recorded]
        for digit in range(max(count - 1, 1).bit_length()):
            chosen = np.arange(count) >> digit & 1 == 1
            with_it, without_it = (
                [_moved(*pair) for pair in zip(none, self._replayed(recorded, world), strict=True)]
                for world in (self._canaries.world(chosen), self._canaries.world(~chosen))
            )
            for draw in range(len(recorded)):
                owner[draw] |= with_it[draw].astype(np.int64) << digit
                own[draw] &= with_it[draw] ^ without_it[draw]
        return [
            [np.flatnonzero(alone & (whose == place)) for place in range(count)]
            for alone, whose in zip(own, owner, strict=True)
        ]

    def _replayed(self, recorded: list[Passage], data: Interactions) -> list[Passage]:
        player = Player(recorded, to_the_end=False)
        self._run(data, 0, player)
        return player.passages

    def _run(self, data: Interactions, seed: int, tape: Recorder | Player) -> None:
        self.fits += 1
        try:
            self._estimator.rehearse(data, PrivacyRandom.taped(seed, tape))
        except EnoughError:
            return


def _size(passage: Passage) -> int:
    return passage.given.size if isinstance(passage, Additive) else 0


def _moved(before: Passage, after: Passage) -> Truth:
    if not (isinstance(before, Additive) and isinstance(after, Additive)):
        return np.zeros(0, dtype=np.bool_)
    return np.asarray((after.given != before.given).reshape(-1), dtype=np.bool_)


def _scores(told: Additive, none: Additive, every: Additive, supports: list[Indices]) -> Floats:
    """Return each canary's log-likelihood ratio on the numbers that are its own."""
    noise = (told.told - none.given).reshape(-1) / told.width
    own = (every.given - none.given).reshape(-1) / told.width
    gain = own * (noise - own / 2) if told.gaussian else np.abs(noise) - np.abs(noise - own)
    return np.array([float(gain[support].sum()) for support in supports])
