"""What parties of a continual release agreed on, and what a question can choose: one number.

A question names the run, what was agreed, the catalog and the number of a release. All but the number must be
what the party knows already; the number must be that of a release it made, or of the next one. So a hostile
coordinator decides when releases are made, and nothing else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.core import integer, require
from discreet.data import PublicFacts, Vocabulary
from discreet.federated.noise import OwnNoise, SharedNoise
from discreet.federated.protocols.protocol import Judge, Shapes, StepResult, names_digest, number, only_fields
from discreet.federated.wire import CHAINS, Arrays, Message, Refusal, Refused, places_to_field
from discreet.follow.entries import MOST_USERS
from discreet.follow.settings import (
    COUNT_PART,
    LEVEL_COUNT,
    LEVEL_VALUE,
    PART_BITS,
    RELEASE_BITS,
    USUAL,
    WEIGHT_BITS,
    FollowSettings,
)
from discreet.privacy import Anchor, Assumption, Fact, Guarantee, Kind

_KIND = "release"
_COORDINATOR = "coordinator"
#: What every label of parties that follow together assumes.
ASSUMED = (
    Assumption.of(Kind.PARTY, Fact.ONE_PARTY),
    Assumption.of(Kind.PARTY, Fact.READABLE),
    Assumption.of(Kind.PARTY, Fact.ROWS),
    Assumption.of(Kind.PARTY, Fact.UNICODE),
    Assumption.of(Kind.PARTY, Fact.MOST_USERS, users=MOST_USERS),
    Assumption.of(Kind.BACKUP, Fact.RESTART),
)
#: Sums of all parties stay strictly within this, in whole multiples of 2^-38.
FARTHEST = 1 << 62
_LARGEST = float(np.finfo(np.float32).max)
# Noise beyond so many deviations doesn't happen: 1e-57 for one number.
_TAILS = 16.0
# "About" so many users are at most so many times as many.
_ABOUT = 4.0
# Parts of a contribution are cut to whole numbers, one unit each.
_CUT = 2.0 ** -(WEIGHT_BITS + PART_BITS)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FollowAgreement(Judge):
    """What all members of a federation that follows a year agreed on. Each member has an equal copy.

    Guarantee
        `promise()` is what a party with these settings guarantees its users for the whole year.

    With `OwnNoise` every party has its own epsilon and delta, those in its copy of `settings`, and adds all
    the noise that they need. With `SharedNoise` all guarantee the same, each adds a share, and only sums
    over all parties are seen. `facts` are those of the catalog at the start; items may be declared later.

    Example:
        >>> year = FollowSettings(releases=52, half_life=7.0, epsilon=2.0)
        >>> agreed = FollowAgreement(run="spring", settings=year, facts=PublicFacts(n_items=3, low=1, high=5),
        ...                          noise=SharedNoise(parties=4, missing=1))
        >>> agreed.noise.least_parties, agreed.number_type
        (3, '<u8')

    Stability
        Provisional: names may still change in 0.x.
    """

    run: str
    settings: FollowSettings
    facts: PublicFacts
    noise: OwnNoise | SharedNoise

    def __post_init__(self) -> None:
        require(0 < len(self.run) <= 200, "run", self.run, must="be a name of 1 to 200 letters")
        # Ratings are held as singles. Beyond them one user's rating would decide whether all can be held.
        for name, end in (("low", self.facts.low), ("high", self.facts.high)):
            require(abs(end) <= _LARGEST, name, end, must=f"be within {_LARGEST:g} of 0")

    @property
    def number_type(self) -> str:
        """Return the type of an answer's numbers: whole, and behind a mask modulo 2^64."""
        return "<u8" if self.noise.masked else "<i8"

    @property
    def rated(self) -> bool:
        """Return whether ratings are followed, not interactions alone."""
        return self.facts.low != self.facts.high

    def assumes(self) -> tuple[Assumption, ...]:
        """Return what a party's guarantee assumes in addition to that of every continual release."""
        return (*self.noise.assumes(self.settings.epsilon, self.settings.delta), *ASSUMED)

    def promise(self) -> Guarantee:
        """Return what a party guarantees its users for the whole year."""
        return self.settings.promise(self.facts).assuming(*self.assumes())

    def terms(self) -> str:
        """Return what all members must have in common; with own noise, guarantees may differ."""
        year = self.settings.to_json()
        if not self.noise.masked:
            year = {name: value for name, value in year.items() if name not in ("epsilon", "delta")}
        scale = [self.facts.low, self.facts.high, self.facts.step]
        return json.dumps({"year": year, "scale": scale, "noise": repr(self.noise)}, sort_keys=True)

    def question(
        self, release: int, catalog: Vocabulary, chains: Mapping[str, Anchor] | None = None
    ) -> Message:
        """Return the question for a release, with what is known of the parties' chains."""
        integer("release", release, least=0, most=self.settings.releases - 1)
        fields = {"settings": self.terms(), "shared": names_digest(catalog)}
        return Message(
            kind=_KIND,
            run=self.run,
            step=release,
            sender=_COORDINATOR,
            fields=fields if chains is None else {**fields, CHAINS: places_to_field(chains)},
        )

    def deviations(self, question: Message, epsilon: float, delta: float) -> Mapping[str, float]:
        """Return the standard deviation of a party's noise on each array, by what was agreed with it."""
        own = replace(self.settings, epsilon=epsilon, delta=delta)
        deviation = math.ldexp(own.share_width(self.noise.least_parties), -RELEASE_BITS)
        return dict.fromkeys(self.shapes(question, 0), deviation)

    def check_question(self, question: Message, catalog: Vocabulary) -> None:
        """Raise `Refused` unless a question asks for a release of this year, over this catalog."""
        if question.run != self.run:
            raise Refused(Refusal.WRONG_RUN)
        if question.kind != _KIND:
            raise Refused(Refusal.WRONG_KIND)
        only_fields(question, (), ())
        if question.sender != _COORDINATOR:
            raise Refused(Refusal.WRONG_SENDER)
        if question.fields.get("settings") != self.terms():
            raise Refused(Refusal.WRONG_VERSION)
        if question.fields.get("shared") != names_digest(catalog):
            raise Refused(Refusal.WRONG_NAMES)
        if not 0 <= question.step < self.settings.releases:
            raise Refused(Refusal.WRONG_ROUND)

    def shapes(self, question: Message, n_shared: int) -> Shapes:
        """Return the arrays that answer a question."""
        counts: Shapes = {"counts": (n_shared,)}
        return {**counts, "values": (n_shared,), "level": (2,)} if self.rated else counts

    def check_answer(self, question: Message, answer: Message) -> None:
        """Reject numbers that no party can send; behind a mask every number can be.

        A release that is kept is part of every later model, so one that can't be is rejected before.
        """
        if not self.noise.masked:
            self._check(answer.arrays, number(answer, "noise counts", 0.0, math.inf), 1)

    def check_sums(self, question: Message, results: StepResult) -> None:
        """Reject sums that users of all parties, with the noise on them, can't give."""
        self._check(results.arrays, results.noise["counts"], results.parties)

    def _check(self, arrays: Arrays, noise: float, parties: int) -> None:
        declared = self.facts.n_users
        for array in arrays.values():
            if array.min(initial=0) <= -FARTHEST or array.max(initial=0) >= FARTHEST:
                raise Refused(Refusal.OUT_OF_RANGE)
        _check_release(arrays, noise, parties * MOST_USERS if declared is None else _ABOUT * declared)

    def combine(self, totals: Arrays, parties: int) -> Arrays:
        """Return sums of all parties as whole numbers; the upper half of the ring is negative."""
        return {name: array.view(np.int64) for name, array in totals.items()}

    def called(self, step: int) -> str:
        """Return what users call a step."""
        return f"release {step + 1}"


def _check_release(arrays: Arrays, noise: float, users: float) -> None:
    """Raise `Refused` unless at most `users` users and noise of this deviation can give a release."""
    numbers = {name: np.ldexp(array.astype(np.float64), -RELEASE_BITS) for name, array in arrays.items()}
    far = _TAILS * noise
    whole = np.concatenate(list(numbers.values()))
    too_far = np.abs(whole).max(initial=0.0) > users + far
    too_long = np.linalg.norm(whole) > users + noise * math.sqrt(whole.size) + far
    if too_far or too_long or numbers["counts"].min(initial=0.0) < -far:
        raise Refused(Refusal.OUT_OF_RANGE)
    if "values" in numbers:
        ends = ((-1 - USUAL) / COUNT_PART, (1 - USUAL) / COUNT_PART)
        _check_ratio(numbers["counts"], numbers["values"], ends, noise, users)
        means = LEVEL_VALUE / LEVEL_COUNT
        counted, valued = numbers["level"][:1], numbers["level"][1:]
        _check_ratio(counted, valued, (-means, means), noise, users)


def _check_ratio(
    counts: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    ends: tuple[float, float],
    noise: float,
    users: float,
) -> None:
    """Raise `Refused` if values are not between two multiples of their counts, or counts are below zero."""
    steepest = max(map(abs, ends))
    slack = _TAILS * noise * (1 + steepest) + _CUT * users * (1 + steepest)
    most = np.maximum(counts, 0.0)
    below, above = values < ends[0] * most - slack, values > ends[1] * most + slack
    if below.any() or above.any() or counts.min(initial=0.0) < -_TAILS * noise:
        raise Refused(Refusal.OUT_OF_RANGE)
