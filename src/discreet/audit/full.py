"""Audit a model: in seconds by its mechanism calls and its noise, or in full by games in every view."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from discreet.audit.canaries.one_run import CanaryFileAttack, one_run_epsilon
from discreet.audit.canaries.planting import Canaries, CanaryAttack, Game
from discreet.audit.errors import NotAuditable
from discreet.audit.findings import ExactSearch, Finding
from discreet.audit.games.bounds import curve_of, joined, refuted_by_betting, refuted_without_luck
from discreet.audit.games.playing import (
    CONFIRMING_ERROR,
    Attack,
    FileAttack,
    GameOutcome,
    Plan,
    TranscriptAttack,
    play,
)
from discreet.audit.games.scores import Cuts, Truth
from discreet.audit.neighboring import Row, SyntheticSpec, Timing, neighboring
from discreet.audit.synthetic import NearestNeighborAttack, has_synthetic, similar_canaries
from discreet.audit.white_box.noise import ERROR, examine_noise
from discreet.audit.white_box.recording import Recorder
from discreet.audit.white_box.structure import examine
from discreet.core import Floats, PrivacyRandom
from discreet.data import Interactions
from discreet.models import Estimator
from discreet.privacy import Guarantee, Neighbors, Trust, Unit

TRANSCRIPT, FILE, SYNTHETIC, REPORT = "transcript", "file", "synthetic", "report"
VIEWS = (TRANSCRIPT, FILE, SYNTHETIC, REPORT)
# Small datasets: fits are fast, and a guarantee applies to any size.
SMALL = SyntheticSpec(people=4, items=5, per_person=2, wide=0)
_MOST_DRAWS = 400_000
_MOST_FILES = 12_000
_LESSONS_OF_FILES = 600
_MIRRORED = 30
_FEW_FITTED = 400
# One fit serves a whole batch of canaries, so the catalog is large; the key is whether matrices are released.
_ITEMS = {False: 1_600, True: 384}
_ITEMS_OF_FILES = 300
_FEWEST_FITS, _MOST_FITS = 20, 4_000


def quick_audit(name: str, estimator: Estimator) -> list[Finding]:
    """Run the white-box audit and test the noise, in seconds; only the noise test can err by chance."""
    inside = examine(estimator)
    notes = (*inside.leaks[:3], *(() if inside.additive else ("sums depend on the other users",)))
    costliest: tuple[str, ...] = (f"worst case: {inside.dataset}",) if inside.dataset else ()
    if inside.paid_by_all < inside.paid:
        costliest += (f"the longest fits, with {inside.draws} draws, cost {inside.paid_by_all:.4g}",)
    search = ExactSearch(promised=inside.promised, delta=inside.delta)
    test = examine_noise(estimator, next(neighboring(estimator, SyntheticSpec())).base)
    search.fits, search.leaks = test.fits, {fault: fault for fault in test.faults}
    drawn = test.faults or (f"{test.draws:,} draws tested",)
    return [
        inside.finding(name, "white box", notes or costliest),
        search.finding(name, "noise", drawn, confidence=1 - ERROR),
    ]


def _promised(estimator: Estimator) -> Guarantee:
    """Return the guarantee on the small dataset."""
    return estimator.promise(SMALL.facts(implicit=estimator.feedback == "implicit"))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Match:
    """Games against one estimator: its guarantee, its total variation by epsilon, and how long to play."""

    name: str
    promise: Guarantee
    distance: Callable[[float], float] | None
    seconds: float
    error: float
    seed: int
    start: float = field(default_factory=time.process_time)

    @property
    def left(self) -> float:
        """Return the processor time that is left."""
        return max(self.start + self.seconds - time.process_time(), 0.0)

    def one_by_one(self, view: str, attack: Attack, games: int) -> Finding:
        """Play games that are a draw or a fit each."""
        plan = Plan(lessons=max(games // 20, 200), games=games, seconds=self.left, error=self.error)
        promise, shape = self.promise, self.distance
        outcome = play(
            attack, plan, epsilon=promise.epsilon, delta=promise.delta, distance=shape, seed=self.seed
        )
        return self._finding(view, outcome, attack.fits)

    def many_at_once(
        self, view: str, attack: CanaryAttack | CanaryFileAttack | NearestNeighborAttack
    ) -> Finding:
        """Play fits with many canaries each; confirm a refutation on fresh fits."""
        promise = self.promise
        games: list[Game] = []
        while len(games) < _FEWEST_FITS or (len(games) < _MOST_FITS and self.left > 0):
            games.append(attack.play(self.seed + 1_000 + len(games)))
            if sum(game.truth.size for game in games) >= _MOST_DRAWS:
                break
        outcome = settled(games, promise.delta, self.distance, self.error)
        if max(outcome.refuted, outcome.curve or 0.0) > promise.epsilon:
            again = [attack.play(self.seed + 10_000_000 + number) for number in range(len(games))]
            second = settled(again, promise.delta, self.distance, CONFIRMING_ERROR)
            outcome = replace(outcome, broken=max(second.refuted, second.curve or 0.0) > promise.epsilon)
        return self._finding(view, outcome, attack.fits)

    def _finding(self, attack: str, outcome: GameOutcome, fits: int) -> Finding:
        tally = outcome.tally
        return Finding(
            model=self.name,
            attack=attack,
            promised=self.promise.epsilon,
            delta=self.promise.delta,
            refuted=outcome.refuted,
            curve=outcome.curve,
            confidence=1 - outcome.error,
            fits=fits,
            seconds=time.process_time() - self.start,
            notes=(f"{tally.games:,} games, {tally.guesses:,} guesses, {tally.right:,} right",),
            broken=outcome.broken,
        )


def play_view(
    name: str, estimator: Estimator, view: str, *, seconds: float = 60.0, error: float = 0.01
) -> Finding:
    """Play games in one view: `transcript`, `file`, `synthetic`, or `report`, which is enumerated instead.

    Raises:
        ParameterError: The model has no such view.
    """
    if view == REPORT:
        if REPORT not in views_of(estimator):
            raise NotAuditable(model=name, view="reports")
        # A device's report has finitely many answers.
        notes = ("every answer of the worst-case rating enumerated",)
        return examine(estimator, SMALL).finding(name, REPORT, notes)
    if view == SYNTHETIC and not has_synthetic(estimator):
        raise NotAuditable(model=name, view="synthetic data")
    promise, seed = _promised(estimator), 1
    match = _Match(
        name=name,
        promise=promise,
        distance=curve_of(estimator, SMALL.items),
        seconds=seconds,
        error=error,
        seed=seed,
    )
    added = promise.unit is Unit.USER and promise.neighbors is Neighbors.ADD_OR_REMOVE
    if view == SYNTHETIC:
        nearest = NearestNeighborAttack(estimator, similar_canaries(estimator), lessons=_MIRRORED, seed=seed)
        return match.many_at_once(SYNTHETIC, nearest)
    if view == FILE and added:
        lessons = CanaryFileAttack(
            estimator, _canaries_in_background(estimator), lessons=_MIRRORED, seed=seed
        )
        return match.many_at_once(FILE, lessons)
    pair = costliest_pair(estimator)
    if view == FILE:
        files = FileAttack(estimator, pair, lessons=_LESSONS_OF_FILES, seed=seed)
        return match.one_by_one(FILE, files, _MOST_FILES)
    transcripts = TranscriptAttack(estimator, pair)
    if transcripts.needs_fits and added:
        return match.many_at_once(TRANSCRIPT, CanaryAttack(estimator, _many_canaries(estimator)))
    games = _MOST_FILES if transcripts.needs_fits else _MOST_DRAWS
    return match.one_by_one(TRANSCRIPT, transcripts, games)


def views_of(estimator: Estimator) -> tuple[str, ...]:
    """Return the views that a model has; only local models have reports that leave a device."""
    promise = _promised(estimator)
    drawn = (SYNTHETIC,) if has_synthetic(estimator) else ()
    return (TRANSCRIPT, FILE, *drawn, *((REPORT,) if promise.trust is Trust.LOCAL else ()))


def _canaries_in_background(estimator: Estimator) -> Canaries:
    """Return canaries that each like one item more than others do, among users with similar ratings.

    With implicit feedback no estimate is shrunk by the ratings, so fewer other users hide a canary less.
    """
    implicit = estimator.feedback == "implicit"
    people, each = (1_000, 1) if implicit else (4_000, 5)
    spec = SyntheticSpec(people=people, items=_ITEMS_OF_FILES, per_person=each, similar=True)
    facts = spec.facts(implicit=implicit)
    rows: dict[str, Row] = {f"user {number:05d}": row for number, row in enumerate(spec.rows(facts))}
    return Canaries.disjoint(rows, facts, 1, Timing.of(estimator))


def _many_canaries(estimator: Estimator) -> Canaries:
    """Return two background users and many canaries; fewer where item-by-item matrices are released.

    The number of users is not declared, so models that plan by it plan at least one round.
    """
    small = next(neighboring(estimator, SMALL)).base
    recorder = Recorder()
    estimator.rehearse(
        small.with_facts(replace(small.facts, n_users=None)), PrivacyRandom.recorded(0, recorder)
    )
    matrices = any(statistic.shape == (SMALL.items, SMALL.items) for statistic in recorder.statistics)
    spec = SyntheticSpec(people=2, items=_ITEMS[matrices], per_person=1)
    facts = replace(spec.facts(implicit=estimator.feedback == "implicit"), n_users=None)
    people: dict[str, Row] = {f"user {number}": row for number, row in enumerate(spec.rows(facts))}
    return Canaries.costliest(estimator, people, facts)


def settled(
    games: list[Game], delta: float, distance: Callable[[float], float] | None, error: float
) -> GameOutcome:
    """Learn the cuts on a fifth of the fits and bound epsilon on the others, each bound at half the error."""
    lessons = max(len(games) // 5, 1)
    scores, truth = (np.concatenate(column) for column in zip(*(game[:2] for game in games), strict=True))
    taught = sum(game.truth.size for game in games[:lessons])
    cuts = Cuts.learned(scores[:taught], truth[:taught].astype(np.bool_), delta, error)
    tally = cuts.tally(scores[taught:], truth[taught:])
    curve = None if distance is None else _on_curve(games, lessons, cuts, distance, error / 2)
    # Guesses about one fit are dependent; the one-run bound allows that, for many fits as for one.
    counts = (tally.games, tally.guesses, tally.right)
    free = one_run_epsilon(*counts, delta, error / 2) if tally.guesses else 0.0
    return GameOutcome(refuted=free, curve=curve, broken=False, tally=tally, error=error)


def _on_curve(
    games: list[Game], lessons: int, cuts: Cuts, distance: Callable[[float], float], error: float
) -> float:
    """Return the epsilon refuted on the curve: per canary if canaries are independent, else per fit."""
    shares = [game.shares for game in games if game.shares is not None]
    if len(shares) == len(games):
        return refuted_without_luck(joined(shares[:lessons]), joined(shares[lessons:]), distance, error)
    right = np.array([np.mean((game.scores > cuts.middle) == game.truth) for game in games])
    return refuted_by_betting(right[:lessons], right[lessons:], distance, error)


def sample_games(estimator: Estimator) -> tuple[Floats, Truth]:
    """Return some games on transcripts, for plotting their trade-off curve."""
    attack = TranscriptAttack(estimator, costliest_pair(estimator))
    return attack.play(_FEW_FITTED if attack.needs_fits else _MOST_DRAWS // 4, 1)


def costliest_pair(estimator: Estimator) -> tuple[Interactions, Interactions]:
    """Return the two small neighboring datasets with the highest privacy cost."""
    inside = examine(estimator, SMALL)
    for neighbors in neighboring(estimator, SMALL):
        if inside.dataset in neighbors.others:
            return neighbors.base, neighbors.others[inside.dataset]
    neighbors = next(neighboring(estimator, SMALL))
    return neighbors.base, next(iter(neighbors.others.values()))
