"""Simulate a run of a federation, or a year that parties follow: pay, run, and print what came of it."""

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
    """Hold what a simulated run promises, what it is called, how to run it, and what to say after it."""

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
    """Return a year that parties follow, from a public date on."""
    from discreet.data.reading.epochs import seconds_of
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
    """Return how many interactions came before a year, inside it, and after it."""
    import numpy as np

    from discreet.data.reading.epochs import seconds_of

    moment, times = seconds_of(begins, "begins"), np.zeros(0) if whole.times is None else whole.times
    before = int(np.count_nonzero(times < moment))
    after = int(np.count_nonzero(times >= moment + settings.days * 86_400))
    return before, times.size - before - after, after


def refuse_empty_year(whole: Interactions, settings: FollowSettings, begins: str) -> None:
    """Refuse a year in which nothing lies, as reading refuses an empty file: the date must be wrong."""
    from discreet.models.recency import month_of

    if whole.times is None or _in_year(whole, settings, begins)[1]:
        return
    first, last = (month_of(float(moment)) for moment in (whole.times.min(), whole.times.max()))
    raise EmptyYear(begins=str(begins), first=str(first), last=str(last))


def _inside(whole: Interactions, settings: FollowSettings, begins: str) -> str:
    """Say to the holder alone, without noise, what entered the year."""
    before, inside, after = _in_year(whole, settings, begins)
    return (
        "Followed lists are current popularity: everybody gets the same list, less what they had. For you "
        f"alone: {before:,} interactions came before the year and entered at its first release, {inside:,} "
        f"lie inside the year, and {after:,} came later and did not enter."
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
    """Pay for a simulated run, run it, and print what came of it."""
    from discreet.cli.output.rounds import outcome_json, show_outcome
    from discreet.privacy.ledger.book import Ledger

    book = book or Ledger.nowhere()
    # Each user is at one party, so the whole run costs a user what their party promises.
    with book.spend(name, run.promise, what=f"simulated federation, {run.called}", events=run.events):
        outcome = run.play()
    if out is not None:
        outcome.model.save(out, force=force)
    if as_json:
        emit(outcome_json(outcome, out))
        return
    show_outcome(outcome, out)
    # How much lies in a year is counted only now, after it is paid for; that something does was checked
    # before (proofs/reading.md).
    kept = (
        paying.recorded(name, run.promise) if out is not None else "No model was written (--out writes it)."
    )
    lines = (kept, "" if run.after is None else run.after())
    show(*(line for line in lines if line))
    show("A simulation does not measure accuracy. The same command with --evaluate, without --out, does.")
