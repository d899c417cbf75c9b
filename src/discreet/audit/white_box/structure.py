"""Compute the exact privacy cost of a fit over neighboring datasets, and find leaks.

No statistics are involved. A fit is recorded on one dataset and replayed on its neighbors. Every difference
either passes a mechanism and has a cost, or reaches the file without noise and is a leak.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import final

import numpy as np

from discreet.audit.errors import AuditStopped, NotReplayable, StrayError
from discreet.audit.findings import ROUNDING, Finding
from discreet.audit.neighboring import (
    NeighboringDatasets,
    SyntheticSpec,
    Timing,
    additive_neighbors,
    neighboring,
)
from discreet.audit.white_box.costs import price
from discreet.audit.white_box.recording import NoiseScale, Player, Recorder
from discreet.core import PrivacyRandom, silent
from discreet.core.checks import DiscreetError
from discreet.data import Interactions
from discreet.models import Estimator, Scorer
from discreet.privacy import Neighbors, Unit


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WhiteBox:
    """A model's guarantee, the cost on the worst pair of neighboring datasets, and the leaks.

    The number of draws can depend on earlier outputs: `paid_by_all` is the highest cost among the fits with
    the most draws, which is `draws`.
    """

    promised: float
    delta: float
    paid: float
    dataset: str
    draws: int
    paid_by_all: float
    leaks: tuple[str, ...]
    additive: bool
    fits: int
    seconds: float

    @property
    def refuted(self) -> float:
        """Return the epsilon below which every guarantee is refuted; infinite if something leaks."""
        return math.inf if self.leaks else self.paid

    @property
    def holds(self) -> bool:
        """Return whether nothing leaked and no cost exceeds the guarantee."""
        return self.refuted <= self.promised * (1 + ROUNDING)

    def finding(self, model: str, attack: str, notes: tuple[str, ...]) -> Finding:
        """Return the finding; no chance is involved."""
        return Finding(
            model=model,
            attack=attack,
            promised=self.promised,
            delta=self.delta,
            refuted=self.refuted,
            confidence=1.0,
            fits=self.fits,
            seconds=self.seconds,
            notes=notes,
            broken=not self.holds,
        )

    @property
    def ratio(self) -> float:
        """Return the cost over the guarantee: 1 if the guarantee is tight."""
        return self.refuted / self.promised


def examine(estimator: Estimator, spec: SyntheticSpec | None = None) -> WhiteBox:
    """Record and replay the estimator over neighboring datasets.

    Raises:
        PrivacyError: the model draws noise outside the recorded mechanisms, so it cannot be audited.
    """
    start, fits, leaks = time.perf_counter(), 0, []
    promise = estimator.promise((spec or SyntheticSpec()).facts(implicit=estimator.feedback == "implicit"))
    seen = [
        (neighbors, _replayed(estimator, neighbors, outcomes, promise.delta))
        for neighbors in neighboring(estimator, spec)
        for outcomes in neighbors.outcomes
    ]
    for neighbors, one in seen:
        fits += 2 + len(neighbors.others)
        leaks += one.leaks
    costliest = max((one for _, one in seen), key=lambda one: one.paid)
    most_draws = max(one.draws for _, one in seen)
    return WhiteBox(
        promised=promise.epsilon,
        delta=promise.delta,
        paid=costliest.paid,
        dataset=costliest.dataset,
        draws=most_draws,
        paid_by_all=max(one.paid for _, one in seen if one.draws == most_draws),
        leaks=tuple(leaks),
        additive=_is_additive(estimator, spec or SyntheticSpec()),
        fits=fits,
        seconds=time.perf_counter() - start,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    draws: int
    paid: float
    dataset: str
    leaks: list[str]


def _replayed(
    estimator: Estimator, neighbors: NeighboringDatasets, outcomes: NoiseScale | None, delta: float
) -> _Seen:
    recorder = Recorder(noise_scale=outcomes)
    file = _file(estimator, neighbors.base, PrivacyRandom.recorded(0, recorder))
    _require_hook(estimator, neighbors.base, recorder, file)
    paid, costliest, leaks = 0.0, "", []
    for name, dataset in neighbors.others.items():
        player = Player(recorder.calls)
        try:
            same = _file(estimator, dataset, PrivacyRandom.recorded(0, player)) == file
            player.finish()
        except StrayError as error:
            leaks.append(f"{name}: {error}")
            continue
        except DiscreetError as error:
            leaks.append(f"{name}: rejected, which reveals the canary: {error}")
            continue
        if not same:
            leaks.append(f"{name}: given the same mechanism outputs, the two fits publish different files")
        cost = price(recorder.calls, player.calls).epsilon(delta)
        if cost > paid:
            paid, costliest = cost, name
    return _Seen(draws=len(recorder.calls), paid=paid, dataset=costliest, leaks=leaks)


def _require_hook(estimator: Estimator, data: Interactions, recorder: Recorder, file: bytes) -> None:
    """Raise for a model whose fit is not reproduced by replaying its own mechanism outputs."""
    player = Player(recorder.calls)
    try:
        again = _file(estimator, data, PrivacyRandom.recorded(0, player))
        player.finish()
    except StrayError as error:
        raise AuditStopped(model=estimator.name, reason=str(error)) from error
    if again != file or not recorder.calls:
        raise NotReplayable(model=estimator.name)


def _file(estimator: Estimator, data: Interactions, random: PrivacyRandom) -> bytes:
    """Return the bytes of the published model file."""
    model = estimator.fit(data, random=random, progress=silent)
    ask(estimator, model.scorer, data)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.read_bytes()


def ask(estimator: Estimator, scorer: Scorer, data: Interactions) -> None:
    """Query a model that answers in its process for as many predictions as were budgeted."""
    if estimator.answers_in_process:
        cells = np.arange(int(estimator.settings.get("cells", 1)))
        scorer.predict(data, cells // data.n_items, cells % data.n_items)


def _is_additive(estimator: Estimator, spec: SyntheticSpec) -> bool:
    """Return whether a canary moves every statistic by the same vector, bit for bit, among any other users.

    Only a guarantee about adding or removing one user rests on that; for others this is true.
    """
    facts = spec.facts(implicit=estimator.feedback == "implicit")
    promise = estimator.promise(facts)
    if promise.unit is not Unit.USER or promise.neighbors is not Neighbors.ADD_OR_REMOVE:
        return True
    recorder, statistics = Recorder(), []
    many, few = additive_neighbors(facts, spec, Timing.of(estimator))
    estimator.rehearse(many[0], PrivacyRandom.recorded(0, recorder))
    for dataset in (*many, *few):
        player = Player(recorder.calls)
        try:
            estimator.rehearse(dataset, PrivacyRandom.recorded(0, player))
        except DiscreetError:
            return False
        statistics.append(player.statistics)
    return all(
        np.array_equal(with_many - without_many, with_few - without_few)
        for without_many, with_many, without_few, with_few in zip(*statistics, strict=True)
    )
