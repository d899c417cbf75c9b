"""Audit a model in full: membership games in every view, some minutes per model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from discreet.audit.canaries.one_run import CanaryFileAttack, one_run_epsilon
from discreet.audit.canaries.planting import Canaries, CanaryAttack, Game
from discreet.audit.errors import NotAuditable
from discreet.audit.findings import Finding
from discreet.audit.games.bounds import curve_of, joined, refuted_by_betting, refuted_without_luck
from discreet.audit.games.playing import FileAttack, TranscriptAttack
from discreet.audit.games.scores import Cuts, Truth
from discreet.audit.games.stopping import CONFIRMING_ERROR, GameOutcome, Plan, play
from discreet.audit.neighboring import Row, SyntheticSpec, Timing, neighboring
from discreet.audit.synthetic import NearestNeighborAttack, has_synthetic, similar_canaries
from discreet.audit.white_box.recording import Recorder
from discreet.audit.white_box.structure import examine
from discreet.core.arrays import Floats
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.models.estimator import Estimator
from discreet.privacy.guarantee import Guarantee, Neighbors, Trust, Unit

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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An estimator, its guarantee on the small dataset, and its total variation by epsilon."""

    name: str
    estimator: Estimator
    promise: Guarantee
    distance: Callable[[float], float] | None

    @classmethod
    def of(cls, name: str, estimator: Estimator) -> Subject:
        """Prepare an estimator."""
        facts = SMALL.facts(implicit=estimator.feedback == "implicit")
        distance = curve_of(estimator, SMALL.items)
        return cls(name=name, estimator=estimator, promise=estimator.promise(facts), distance=distance)

    def finding(self, attack: str, outcome: GameOutcome, fits: int, start: float) -> Finding:
        """Return the finding of an attack."""
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
            seconds=time.process_time() - start,
            notes=(f"{tally.games:,} games, {tally.guesses:,} guesses, {tally.right:,} right",),
            broken=outcome.broken,
        )


def play_view(
    name: str, estimator: Estimator, view: str, *, seconds: float = 60.0, error: float = 0.01, seed: int = 1
) -> Finding:
    """Play games in one view: `transcript`, `file`, `synthetic`, or `report`, which is enumerated instead.

    Raises:
        ParameterError: The model has no such view.
    """
    if view == REPORT:
        return _report(name, estimator)
    if view == SYNTHETIC and not has_synthetic(estimator):
        raise NotAuditable(model=name, view="synthetic data")
    subject, start = Subject.of(name, estimator), time.process_time()
    deadline = start + seconds
    promise = subject.promise
    added = promise.unit is Unit.USER and promise.neighbors is Neighbors.ADD_OR_REMOVE
    if view == SYNTHETIC:
        nearest = NearestNeighborAttack(estimator, similar_canaries(estimator), lessons=_MIRRORED, seed=seed)
        return _many_games(subject, SYNTHETIC, nearest, deadline, error, seed, start)
    if view == FILE and added:
        lessons = CanaryFileAttack(
            estimator, _canaries_in_background(estimator), lessons=_MIRRORED, seed=seed
        )
        return _many_games(subject, FILE, lessons, deadline, error, seed, start)
    pair = costliest_pair(estimator)
    if view == FILE:
        files = FileAttack(estimator, pair, lessons=_LESSONS_OF_FILES, seed=seed)
        return _games(subject, FILE, files, _MOST_FILES, deadline, error, seed, start)
    transcripts = TranscriptAttack(estimator, pair)
    if transcripts.needs_fits and added:
        many = CanaryAttack(estimator, _many_canaries(estimator))
        return _many_games(subject, TRANSCRIPT, many, deadline, error, seed, start)
    games = _MOST_FILES if transcripts.needs_fits else _MOST_DRAWS
    return _games(subject, TRANSCRIPT, transcripts, games, deadline, error, seed, start)


def views_of(estimator: Estimator) -> tuple[str, ...]:
    """Return the views that a model has; only local models have reports that leave a device."""
    promise = Subject.of(estimator.name, estimator).promise
    drawn = (SYNTHETIC,) if has_synthetic(estimator) else ()
    return (TRANSCRIPT, FILE, *drawn, *((REPORT,) if promise.trust is Trust.LOCAL else ()))


def _report(name: str, estimator: Estimator) -> Finding:
    """Return the exact privacy cost of a device's report, by enumerating its finitely many answers."""
    if REPORT not in views_of(estimator):
        raise NotAuditable(model=name, view="reports")
    inside = examine(estimator, SMALL)
    return Finding(
        model=name,
        attack=REPORT,
        promised=inside.promised,
        delta=inside.delta,
        refuted=inside.refuted,
        confidence=1.0,
        fits=inside.fits,
        seconds=inside.seconds,
        notes=("every answer of the worst-case rating enumerated",),
        broken=not inside.holds,
    )


def _games(
    subject: Subject,
    view: str,
    attack: TranscriptAttack | FileAttack,
    games: int,
    deadline: float,
    error: float,
    seed: int,
    start: float,
) -> Finding:
    promise = subject.promise
    seconds = max(deadline - time.process_time(), 0.0)
    plan = Plan(lessons=max(games // 20, 200), games=games, seconds=seconds, error=error)
    outcome = play(
        attack, plan, epsilon=promise.epsilon, delta=promise.delta, distance=subject.distance, seed=seed
    )
    return subject.finding(view, outcome, attack.fits, start)


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


def _many_games(
    subject: Subject,
    view: str,
    attack: CanaryAttack | CanaryFileAttack | NearestNeighborAttack,
    deadline: float,
    error: float,
    seed: int,
    start: float,
) -> Finding:
    """Play fits with many canaries each; confirm a refutation on fresh fits."""
    promise = subject.promise
    games: list[Game] = []
    while len(games) < _FEWEST_FITS or (len(games) < _MOST_FITS and time.process_time() < deadline):
        games.append(attack.play(seed + 1_000 + len(games)))
        if sum(game.truth.size for game in games) >= _MOST_DRAWS:
            break
    outcome = settled(games, promise.delta, subject.distance, error)
    if max(outcome.refuted, outcome.curve or 0.0) > promise.epsilon:
        again = [attack.play(seed + 10_000_000 + number) for number in range(len(games))]
        second = settled(again, promise.delta, subject.distance, CONFIRMING_ERROR)
        outcome = replace(outcome, broken=max(second.refuted, second.curve or 0.0) > promise.epsilon)
    return subject.finding(view, outcome, attack.fits, start)


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


def sample_games(estimator: Estimator, *, seed: int = 1) -> tuple[Floats, Truth]:
    """Return some games on transcripts, for plotting their trade-off curve."""
    attack = TranscriptAttack(estimator, costliest_pair(estimator))
    return attack.play(_FEW_FITTED if attack.needs_fits else _MOST_DRAWS // 4, seed)


def costliest_pair(estimator: Estimator) -> tuple[Interactions, Interactions]:
    """Return the two small neighboring datasets with the highest privacy cost."""
    inside = examine(estimator, SMALL)
    for neighbors in neighboring(estimator, SMALL):
        if inside.dataset in neighbors.others:
            return neighbors.base, neighbors.others[inside.dataset]
    neighbors = next(neighboring(estimator, SMALL))
    return neighbors.base, next(iter(neighbors.others.values()))
