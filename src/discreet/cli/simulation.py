"""Simulate a run or a continual release of a federation: record its cost, run it, and print the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.cli.errors import EmptyYear, OptionDoesNotApply
from discreet.cli.options.declared import Paying
from discreet.cli.output.printing import emit, remark_on_delta, show

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.federated.coordinator import RunOutcome
    from discreet.federated.noise import SharedNoise
    from discreet.federated.protocols.choosing import Way
    from discreet.follow import FollowSettings
    from discreet.follow.coordinator import FollowedTogether
    from discreet.models.estimator import Estimator
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger.book import Ledger


class SimulatedRun(NamedTuple):
    """A simulated run: its guarantee, its name, how to run it, and the sentences to print after it."""

    promise: Guarantee
    called: str
    events: Sequence[Any]
    play: Callable[[], RunOutcome | FollowedTogether]
    after: Callable[[], str] | None = None


def simulated_fit(estimator: Estimator, whole: Interactions, noise: SharedNoise, way: Way) -> SimulatedRun:
    """Return a run in which parties fit a model."""
    from discreet.federated.protocols.choosing import simulated_protocol
    from discreet.federated.simulation import simulate
    from discreet.models.recency import refuse_timeless

    refuse_timeless(getattr(estimator, "half_life", None), whole)
    remark_on_delta([estimator], whole.facts)
    protocol = simulated_protocol(estimator, whole.facts, noise, way)

    def play() -> RunOutcome:
        return simulate(protocol, whole, noise.parties)

    return SimulatedRun(protocol.promise(whole.facts), estimator.name, protocol.events(), play)


def simulated_year(
    settings: FollowSettings, whole: Interactions, noise: SharedNoise, begins: str
) -> SimulatedRun:
    """Return a continual release of several parties, from a public date on."""
    from discreet.data.epochs import seconds_of
    from discreet.follow.agreement import FollowAgreement
    from discreet.follow.federation import simulate_year

    if whole.facts.max_per_user is not None:
        raise OptionDoesNotApply(
            options=("--max-per-user",),
            to="a continual release",
            why="a continual release weights ratings instead of limiting them",
        )
    moment = seconds_of(begins, "begins")
    agreed = FollowAgreement(run="simulation", settings=settings, facts=whole.facts, noise=noise)

    def play() -> FollowedTogether:
        return simulate_year(agreed, whole, begins=moment)

    after = partial(_inside, whole, settings, begins)
    return SimulatedRun(agreed.promise(), "follow", settings.events(), play, after)


def _in_year(whole: Interactions, settings: FollowSettings, begins: str) -> tuple[int, int, int]:
    """Return how many interactions are before a year, in it, and after it."""
    import numpy as np

    from discreet.data.epochs import seconds_of

    moment, times = seconds_of(begins, "begins"), np.zeros(0) if whole.times is None else whole.times
    before = int(np.count_nonzero(times < moment))
    after = int(np.count_nonzero(times >= moment + settings.days * 86_400))
    return before, times.size - before - after, after


def refuse_empty_year(whole: Interactions, settings: FollowSettings, begins: str) -> None:
    """Raise for a year without data, as reading rejects an empty file: the date must be wrong."""
    from discreet.models.recency import month_of

    if whole.times is None or _in_year(whole, settings, begins)[1]:
        return
    first, last = (month_of(float(moment)) for moment in (whole.times.min(), whole.times.max()))
    raise EmptyYear(begins=str(begins), first=str(first), last=str(last))


def _inside(whole: Interactions, settings: FollowSettings, begins: str) -> str:
    """Return what was added to the year, without noise, for the data owner alone."""
    before, inside, after = _in_year(whole, settings, begins)
    return (
        "Lists of a continual release are current popularity: all users get the same list, without the items "
        f"they had. For you alone: {before:,} interactions from before the year were added at its first "
        f"release, {inside:,} are from the year, and {after:,} are from later and were not added."
    )


def play_simulated(
    run: SimulatedRun,
    name: str,
    paying: Paying,
    book: Ledger | None,
    out: Path | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Record the cost of a simulated run, run it, and print the outcome."""
    from discreet.cli.output.rounds import outcome_json, show_outcome
    from discreet.privacy.ledger.book import Ledger

    book = book or Ledger.nowhere()
    # Each user is at one party, so the whole run costs a user no more than their party's guarantee.
    with book.spend(name, run.promise, what=f"simulated federation, {run.called}", events=run.events):
        outcome = run.play()
    if out is not None:
        outcome.model.save(out, force=force)
    if as_json:
        emit(outcome_json(outcome, out))
        return
    show_outcome(outcome, out)
    # Interactions of the year are counted only now, after the cost is recorded. Whether there are any was
    # checked before (proofs/reading.md).
    kept = (
        paying.recorded(name, run.promise) if out is not None else "No model was written (--out writes it)."
    )
    lines = (kept, "" if run.after is None else run.after())
    show(*(line for line in lines if line))
    show(
        "A simulation doesn't measure accuracy. To measure it, run the command with --evaluate and without "
        "--out."
    )
