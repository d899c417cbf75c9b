"""`discreet federation`: set up a federation, simulate a run, coordinate one over Flower, or take part.

A run fits one model. With `--follow` it is a continual release, and each `federation run` makes one release.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from discreet.cli import errors, lib
from discreet.cli.follow import YearTogether, digest, replay_shown
from discreet.cli.options.declared import (
    AllowUnbudgeted,
    Columns,
    Data,
    Duplicates,
    Force,
    Learning,
    Measuring,
    Paying,
    Reading,
    SchemaFile,
    TextFile,
    published,
    rule_for_duplicates,
)
from discreet.cli.options.parsing import checked_name, listed, parse_columns, parse_scale, read_items
from discreet.cli.output.printing import Output, remark, remark_on_delta, show, table_of
from discreet.core import terminal_progress, write_whole

Protocol = Annotated[
    str,
    typer.Option(
        "--protocol",
        help="How parties learn together. `sums` adds up statistics with shared noise. `averages` averages "
        "item factors that each party computes. `dpimf` and `dpmf` always average, as their paper does.",
    ),
]


def init(
    folder: Path,
    *,
    learning: Learning,
    year: YearTogether,
    parties: str,
    items: list[Path],
    scale: str | None = None,
    implicit: bool = False,
    max_per_user: int | None = None,
    users: int | None = None,
    missing: int = 1,
    coordinator: str = "127.0.0.1:9192",
    keeper: str = "127.0.0.1:9193",
    protocol: Protocol = "sums",
    name: str = "run",
) -> Output:
    """Set up a federation: write its agreement, and keys and certificates for a trial.

    Options:
        folder: A new folder, with one subfolder for each member.
        parties: The parties' names, comma-separated.
        items: The public catalog: one ID per line, or a table of items. Repeatable.
        scale: The rating scale: LOW,HIGH or LOW,HIGH,STEP.
        implicit: Learn from implicit feedback, not from ratings.
        max_per_user: Use at most this many ratings per user.
        users: About how many users all parties have together: a public number. Larger sums are rejected.
        missing: Number of parties that may be absent, or reveal their noise.
        coordinator: Address of the coordinator, for the parties: HOST:PORT.
        keeper: Address of the mask keeper, for all members: HOST:PORT.
        name: The name of the run.
    """
    catalog = lib.united_catalog([read_items(path) for path in items])
    low, high, step = parse_scale(scale)
    if implicit:
        low, high, step = 1.0, 1.0, None
    if low is None or high is None:
        raise errors.OptionMissing(options=("--scale LOW,HIGH", "--implicit"))
    facts = lib.PublicFacts(
        n_items=len(catalog), low=low, high=high, step=step, max_per_user=max_per_user, n_users=users
    )
    names = tuple(listed(parties))
    noise = lib.SharedNoise(parties=len(names), missing=missing)
    recipe, promise, called = _agreed(learning, year, facts, noise, protocol, implicit=implicit)
    agreement = lib.found_federation(
        folder,
        recipe=recipe,
        facts=facts,
        catalog=catalog,
        missing=missing,
        parties=names,
        addresses={lib.COORDINATOR: coordinator, lib.KEEPER: keeper},
        label=name,
    )
    return Output(
        {"run": agreement.run, "parties": list(names), "guarantee": promise.to_json()},
        lambda: promise.label(f"The guarantee of each party: {called}"),
        f"Run {agreement.run!r}. Give each member only its own folder under {folder}. Anyone who has "
        f"{folder / 'authority'} can certify new members.",
    )


def _agreed(
    learning: Learning,
    year: YearTogether,
    facts: lib.PublicFacts,
    noise: lib.SharedNoise,
    protocol: str,
    *,
    implicit: bool,
) -> tuple[str, lib.Guarantee, str]:
    """Return the recipe of a run, its guarantee, and its name: that of a model, or of a continual release."""
    settings = year.settings(learning, rated=not implicit)
    way = lib.way_of(protocol)
    if settings is None:
        estimator = learning.estimator(implicit=implicit)
        agreed = lib.item_protocol(estimator, facts, noise, way)
        return fit_recipe(estimator, way), agreed.promise(facts), estimator.name
    if way != "sums":
        raise errors.OptionDoesNotApply(
            options=("--protocol",), to="a continual release", why="a continual release always adds up sums"
        )
    promise = _followed("year", settings, facts, noise).promise()
    return lib.to_recipe(settings), promise, f"a year of {settings.releases:,} releases"


def _followed(
    run: str, settings: lib.FollowSettings, facts: lib.PublicFacts, noise: lib.SharedNoise
) -> lib.FollowAgreement:
    """Return what the parties of a continual release agree on."""
    if facts.max_per_user is not None:
        raise errors.OptionDoesNotApply(
            options=("--max-per-user",),
            to="a continual release",
            why="a continual release weights ratings instead of limiting them",
        )
    return lib.FollowAgreement(run=run, settings=settings, facts=facts, noise=noise)


def simulate(
    data: Data,
    *,
    learning: Learning,
    year: YearTogether,
    reading: Reading,
    paying: Paying,
    measuring: Measuring,
    parties: int,
    missing: int = 1,
    begins: Annotated[str | None, "--from"] = None,
    scored: Annotated[bool, "--evaluate"] = False,
    protocol: Protocol = "sums",
    out: Path | None = None,
    force: Force = False,
) -> Output:
    """Simulate a federation: assign users to parties and run all of them in one process.

    --evaluate measures the gain on held-out data.

    Options:
        parties: The number of parties that share the users.
        missing: Number of parties that may be absent, or reveal their noise.
        begins: When a continual release begins, as in 2026-01-31: a public date.
        scored: Release nothing. Compare all parties together with one owner of all data and with each party
            alone. With --follow, also compare with fits and refits.
        out: Where to write the model.
    """
    paying.check()
    way = lib.way_of(protocol)
    settings = year.settings(learning, rated=not reading.implicit)
    _refuse_contradictions(
        settings, begins, measuring, scored=scored, releases=out is not None or paying.asked
    )
    if paying.ledger is not None and out is None:
        raise errors.OptionNeeds(
            options=("--ledger",),
            needs="--out",
            why="it would record the cost of a model that is not written",
        )
    noise = lib.SharedNoise(parties=parties, missing=missing)
    with paying.releasing(out, data, learning, year, reading, noise, way, begins) as release:
        done = None if out is None else paying.finished(release, out)
        if out is not None and done is not None:
            said = f"Written to {out}. {paying.recorded(done.name, done.model.guarantee)}"
            return Output(_written(done.model, out), said)
        if out is not None:
            lib.refuse_model(out, force=force, inputs=[*reading.files(data), *paying.files()])
        if settings is not None and reading.duplicates is None:
            # As in a continual release, only the first of a user's interactions with an item counts.
            reading = replace(reading, duplicates="first")
        whole = reading.load(data, paying.name)
        if scored:
            if settings is None:
                estimator = learning.estimator(implicit=reading.implicit)
                return _compared_fits(whole, estimator, measuring, noise, way)
            return _compared_year(whole, measuring, noise, settings, begins)
        if settings is None or begins is None:
            run = simulated_fit(learning.estimator(implicit=reading.implicit), whole, noise, way)
        else:
            refuse_empty_year(whole, settings, begins)
            run = simulated_year(settings, whole, noise, begins)
        book = paying.book(whole.name, release)
        return play_simulated(run, whole.name, paying, book, out, release, force=force)


def _refuse_contradictions(
    settings: lib.FollowSettings | None,
    begins: str | None,
    measuring: Measuring,
    *,
    scored: bool,
    releases: bool,
) -> None:
    """Raise for options of a simulation that don't go together, before any data are read."""
    if settings is None and begins is not None:
        raise errors.OptionNeeds(
            options=("--from",), needs="--follow", why="it is the first day of a continual release"
        )
    if settings is not None and begins is None and not scored:
        raise errors.OptionNeeds(
            options=("--follow",), needs="--from DATE", why="a continual release begins on a public date"
        )
    if not scored and measuring != Measuring():
        raise errors.OptionNeeds(
            options=("--split", "--metric", "--repeat", "--seed"),
            needs="--evaluate",
            why="they describe how to measure",
        )
    if scored and releases:
        raise errors.OptionsConflict(
            options=("--evaluate", "--out", "--ledger"),
            why="an evaluation writes no model and spends no budget",
        )


def run(
    folder: Path,
    *,
    out: Path,
    seconds: float = 300.0,
    patience: float = 60.0,
    flower: Path | None = None,
    release: int | None = None,
    force: Force = False,
) -> Output:
    """Coordinate all rounds with the parties present and write the model. Start again to resume.

    In a continual release, this requests the next release.

    Options:
        folder: The coordinator's folder that `federation init` wrote.
        out: Where to write the model.
        seconds: How many seconds a round waits for answers.
        patience: How many seconds a round waits for an absent party.
        flower: The folder of Flower's programs. Default: the folder of `discreet`.
        release: Number of this release in a continual release. A release that exists is not requested again.
    """
    agreement = lib.Agreement.read(folder)
    follows = lib.year_recipe(agreement.recipe) is not None
    if release is not None and not follows:
        raise errors.OptionDoesNotApply(
            options=("--release",),
            to="a run that fits one model",
            why="it numbers the releases of a continual release",
        )
    # The model of the release before may be replaced; anything else only with --force.
    last = folder / _LAST
    force = force or (follows and last.is_file() and last.read_text() == _signed(out))
    lib.refuse_model(out, force=force)
    remark(f"Run {agreement.run!r}: {', '.join(agreement.parties)}.")
    protocol = None if follows else agreed_protocol(agreement)[1]
    outcome: lib.RunOutcome | lib.FollowedTogether
    with lib.flower_parties(
        folder, agreement, patience=patience, programs=flower, watched=watched_transport
    ) as parties:
        if protocol is None:
            year = lib.coordinated_year(folder, agreement, parties, seconds=seconds)
            outcome = year.release(number=release)
        else:
            found = lib.coordinated_fit(folder, agreement, protocol, parties, seconds=seconds)
            outcome = found.train(agreement.facts)
    outcome.model.save(out, force=force)
    if follows:
        write_whole(last, _signed(out).encode())
    return outcome_of(outcome, out)


# In the coordinator's folder: which model the last release of a continual release wrote.
_LAST = "last-model"


def _signed(out: Path) -> str:
    """Return a file's path and digest, which identify the model that was written last."""
    return f"{out.absolute()} {digest(out)}"


def declare(folder: Path, items: Path) -> Output:
    """Declare new items between two releases of a continual release.

    Every member must run this, and the coordinator must run it first.

    Options:
        folder: A member's folder: the coordinator's, then each party's.
        items: A file that includes the new items: one ID per line, or a table of items.
    """
    fresh = lib.declare_items(folder, lib.Agreement.read(folder), read_items(items))
    declared = "1 new item is" if fresh == 1 else f"{fresh:,} new items are"
    said = f"{declared} declared. All other members must declare them before the next release."
    return Output({"declared": fresh}, said)


def party(
    folder: Path,
    *,
    data: str,
    ledger: Path,
    text: TextFile,
    name: str | None = None,
    columns: Columns = None,
    schema: SchemaFile = None,
    duplicates: Duplicates = None,
    salt: Path | None = None,
    flower: Path | None = None,
    alone: bool = False,
    allow_unbudgeted: AllowUnbudgeted = False,
    yes: bool = False,
) -> None:
    """Show the run's guarantee and cost for the party's users. After you agree, answer until stopped.

    For a continual release, put new ratings at `--data` before each release. The party skips ratings that it
    already added.

    Options:
        folder: The party's folder that `federation init` wrote.
        data: The party's ratings; they never leave this machine. For a continual release: a Parquet file, or
            a folder of Parquet files, read at each release.
        ledger: The party's ledger, which records the run's cost.
        name: The data's name in the ledger. Required for a continual release. Default: the file's name.
        salt: The shared secret with which item IDs were hashed.
        flower: The folder of Flower's programs. Default: the folder of `discreet`.
        alone: Don't start Flower's SuperNode; it is started elsewhere.
        yes: Accept the guarantee and its cost without a prompt.
    """
    agreement = lib.Agreement.read(folder)
    book, year = lib.Ledger.open(ledger, allow_unbudgeted=allow_unbudgeted), lib.year_of(agreement)
    choice = parse_columns(columns)
    if year is None:
        how = {"columns": choice, "duplicates": duplicates, "schema": schema, **text.written()}
        part = _fit(agreement, book, data, checked_name(name), how, salt)
    elif duplicates is not None or schema is not None or text != TextFile():
        raise errors.OptionDoesNotApply(
            options=("--duplicates", "--schema", "options of text files"),
            to="a continual release",
            why="its files are Parquet, and it uses each user-item pair once",
        )
    elif salt is None:
        part = _follow(folder, agreement, year, book, Path(data), checked_name(name), choice)
    else:
        raise errors.OptionDoesNotApply(
            options=("--salt",),
            to="a continual release",
            why="only runs that fit one model can salt item IDs",
        )
    show(part.promise.label(f"The guarantee and cost of this run for the users of {part.people}"))
    if not part.paid:
        book.refuse_unbudgeted(part.people)
        _require_cover(book, part.people, part.promise)
    if not yes:
        remark("The coordinator waits for your answer. Until then this party is absent.")
    if not yes and not typer.confirm(
        f"Take part in run {agreement.run!r}, with its cost recorded in {ledger}?"
    ):
        raise errors.PartyDeclined()
    with lib.PartyDaemon(folder, agreement, part.join) as daemon:
        if not alone:
            daemon.start_flower(flower)
        remark(f"{daemon.name} answers at {daemon.path}. Stop with Ctrl-C; start again to resume.")
        daemon.run()


class _Part(NamedTuple):
    """One party's part in a run: its guarantee and cost, whether the cost is recorded, and how to answer."""

    people: str
    promise: lib.Guarantee
    paid: bool
    join: lib.Joining


def _fit(
    agreement: lib.Agreement,
    book: lib.Ledger,
    data: str,
    name: str | None,
    how: dict[str, Any],
    salt: Path | None,
) -> _Part:
    """Return a part in a run that fits a model to the party's current data."""
    (estimator, protocol), facts = agreed_protocol(agreement), agreement.facts
    implicit = estimator.feedback == "implicit"
    how["duplicates"] = rule_for_duplicates(
        how["duplicates"], how["schema"], implicit=implicit, weights=how.get("weights")
    )
    people = lib.open_data(
        data,
        name=name,
        implicit=implicit,
        low=facts.low,
        high=facts.high,
        step=facts.step,
        max_per_user=facts.max_per_user,
        catalog=None if salt is not None else agreement.catalog,
        **how,
    )
    # Whether data have times is public. Without times, a request for ages would fail.
    lib.refuse_timeless(getattr(estimator, "half_life", None), people)
    assumed = lib.reading_of(people.facts)
    if salt is not None:
        people = lib.salted_data(people, lib.read_salt(salt), agreement.catalog, facts)
    promise = protocol.promise(facts).assuming(*assumed)
    return _Part(people.name, promise, False, lib.joining(agreement, protocol, people, book))


def _follow(
    folder: Path,
    agreement: lib.Agreement,
    year: lib.FollowAgreement,
    book: lib.Ledger,
    data: Path,
    name: str | None,
    columns: dict[str, str | None] | None,
) -> _Part:
    """Return a part in a continual release. Files at a path are read when a release is requested."""
    if name is None:
        raise errors.OptionNeeds(
            options=("A continual release",),
            needs="--name",
            why="the files change, so the ledger needs one name for the same users",
        )
    # A path that can't be used is reported to the operator now, not at the first question.
    lib.files_at(data)
    join = lib.following(
        agreement, lib.supply_from(data, columns, rated=year.rated), ledger=book, dataset=name
    )
    return _Part(name, year.promise(), (folder / lib.FOLLOWED_STATE).exists(), join)


def _require_cover(book: lib.Ledger, name: str, promise: lib.Guarantee) -> None:
    """Raise for a run that the ledger's budget doesn't cover, before other members wait for this party."""
    left = book.remaining(name)
    paid = any(entry.guarantee.epsilon == promise.epsilon for entry in book.entries(name))
    if left is not None and left.epsilon < promise.epsilon and not paid:
        raise errors.RunTooExpensive(epsilon=promise.epsilon, name=name, left=left.epsilon)


def keeper(folder: Path) -> None:
    """Serve the mask keys of one run over mutual TLS, until stopped.

    Options:
        folder: The keeper's folder that `federation init` wrote.
    """
    agreement = lib.Agreement.read(folder)
    keeper = lib.Keeper(
        roster=agreement.parties,
        least=agreement.noise.least_parties,
        run=agreement.run,
        journal=lib.Journal(folder / "keeper.state"),
    )
    members, service = agreement.members(), lib.keeper_service(keeper)
    server = lib.TlsServer(agreement.address(lib.KEEPER), folder, members, service, most=lib.KEEPER_BYTES)
    remark(f"The keeper of {agreement.run!r} answers at {server.address[0]}:{server.address[1]}.")
    server.run()


_AVERAGES = 'protocol = "averages"\n'


def fit_recipe(estimator: lib.Estimator, way: lib.ProtocolWay) -> str:
    """Return the text of an agreement that names a model and a protocol."""
    return (_AVERAGES if way == "averages" else "") + lib.model_settings.to_toml(estimator)


def agreed_protocol(agreement: lib.Agreement) -> tuple[lib.Estimator, lib.FederatedProtocol]:
    """Return the model and the protocol that the members of a federation agreed on."""
    text = agreement.recipe
    estimator = lib.model_settings.from_toml(text.removeprefix(_AVERAGES))
    way: lib.ProtocolWay = "averages" if text.startswith(_AVERAGES) else "sums"
    return estimator, lib.item_protocol(estimator, agreement.facts, agreement.noise, way)


def _compared_fits(
    whole: lib.Interactions,
    estimator: lib.Estimator,
    measuring: Measuring,
    noise: lib.SharedNoise,
    way: lib.ProtocolWay,
) -> Output:
    """Return how good a model of all parties would be; nothing is released."""
    remark_on_delta([estimator], whole.facts)
    with terminal_progress(None) as report:
        found = lib.compare_parties(
            estimator,
            whole,
            noise,
            way=way,
            split=measuring.split,
            metrics=measuring.metrics,
            repeat=measuring.repeat,
            seed=measuring.seed,
            progress=report,
        )
    private = estimator.promise(whole.facts).is_private
    same = (
        f"All rows with noise have the same guarantee. Together, parties add more noise than one data owner "
        f"would, so that {noise.missing} may be absent."
        if private
        else "No row has a guarantee: the noise is the printed noise, which protects no user."
    )
    one = "" if measuring.repeat > 1 else " One run can't show small differences: use --repeat 5."
    return Output(
        found.to_json(),
        _table(found, f"{estimator.name}, {noise.parties} parties, epsilon {estimator.epsilon:g} each"),
        f"{_directions(found)} {same} A party alone learns from its own users and is scored on them.",
        f"Nothing was released, and no budget was spent. Scores have no noise: don't publish them.{one}",
        *measuring.hints(next(iter(found.ways.values())), timed=whole.times is not None),
    )


def _directions(found: lib.PartyScores) -> str:
    """Return a sentence that states which direction is better for each metric."""
    named: dict[str, list[str]] = {}
    for name in next(iter(found.ways.values())):
        named.setdefault("Lower" if lib.Metric.parse(name).lower_is_better else "Higher", []).append(name)
    return " ".join(f"{way} {' and '.join(names)} is better." for way, names in named.items())


def _table(found: lib.PartyScores, title: str) -> lib.Table:
    metrics = list(next(iter(found.ways.values())))
    simple = {
        f"{name.removeprefix(lib.BASELINE_PREFIX)}, without noise": scores
        for name, scores in found.simple.items()
    }
    rows = [
        [way, *(f"{scores[name].mean:.4f}" if name in scores else "-" for name in metrics)]
        for way, scores in {**found.ways, **simple}.items()
    ]
    return table_of(("who learns", *metrics), rows, title=title, right=1)


def _compared_year(
    whole: lib.Interactions,
    measuring: Measuring,
    noise: lib.SharedNoise,
    settings: lib.FollowSettings,
    begins: str | None,
) -> Output:
    """Return how good a continual release of all parties would be; nothing is released."""
    if measuring != Measuring(seed=measuring.seed):
        raise errors.OptionDoesNotApply(
            options=("--split", "--metric", "--repeat"),
            to="--follow",
            why="a replayed continual release has its own measurement",
        )
    moment = None if begins is None else lib.seconds_of(begins, "begins")
    with terminal_progress(None) as report:
        found = lib.replay_year(
            whole, settings, begins=moment, noise=noise, seed=measuring.seed, progress=report
        )
    together = f"{noise.parties} parties follow together; fits and refits are those of one owner of all data."
    return Output(found.to_json(), together, *replay_shown(found))


class SimulatedRun(NamedTuple):
    """A simulated run: its guarantee, its name, how to run it, and the sentences to print after it."""

    promise: lib.Guarantee
    called: str
    events: Sequence[Any]
    play: Callable[[], lib.RunOutcome | lib.FollowedTogether]
    after: Callable[[], str] | None = None


def simulated_fit(
    estimator: lib.Estimator, whole: lib.Interactions, noise: lib.SharedNoise, way: lib.ProtocolWay
) -> SimulatedRun:
    """Return a run in which parties fit a model."""
    lib.refuse_timeless(getattr(estimator, "half_life", None), whole)
    remark_on_delta([estimator], whole.facts)
    protocol = lib.simulated_protocol(estimator, whole.facts, noise, way)
    play = partial(lib.simulate_run, protocol, whole, noise.parties)
    return SimulatedRun(protocol.promise(whole.facts), estimator.name, protocol.events(), play)


def simulated_year(
    settings: lib.FollowSettings, whole: lib.Interactions, noise: lib.SharedNoise, begins: str
) -> SimulatedRun:
    """Return a continual release of several parties, from a public date on."""
    moment = lib.seconds_of(begins, "begins")
    agreed = _followed("simulation", settings, whole.facts, noise)

    def play() -> lib.FollowedTogether:
        return deque(lib.releases_together(agreed, whole, begins=moment), maxlen=1)[0]

    after = partial(_inside, whole, settings, begins)
    return SimulatedRun(agreed.promise(), "follow", settings.events(), play, after)


def _in_year(whole: lib.Interactions, settings: lib.FollowSettings, begins: str) -> tuple[int, int, int]:
    """Return how many interactions are before a year, in it, and after it."""
    import numpy as np

    moment, times = lib.seconds_of(begins, "begins"), np.zeros(0) if whole.times is None else whole.times
    before = int(np.count_nonzero(times < moment))
    after = int(np.count_nonzero(times >= moment + settings.days * 86_400))
    return before, times.size - before - after, after


def refuse_empty_year(whole: lib.Interactions, settings: lib.FollowSettings, begins: str) -> None:
    """Raise for a year without data, as reading rejects an empty file: the date must be wrong."""
    if whole.times is None or _in_year(whole, settings, begins)[1]:
        return
    first, last = (lib.month_of(float(moment)) for moment in (whole.times.min(), whole.times.max()))
    raise errors.EmptyYear(begins=str(begins), first=str(first), last=str(last))


def _inside(whole: lib.Interactions, settings: lib.FollowSettings, begins: str) -> str:
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
    book: lib.Ledger | None,
    out: Path | None,
    release: lib.PaidRelease | None = None,
    *,
    force: bool,
) -> Output:
    """Record the cost of a simulated run, run it, and return the outcome."""
    # Each user is at one party, so the whole run costs a user no more than their party's guarantee.
    what = f"simulated federation, {run.called}"
    with lib.spending_in(book, name, run.promise, what=what, events=run.events):
        outcome = run.play()
    if out is not None:
        published(outcome.model, out, release, force=force)
    # Interactions of the year are counted only now, after the cost is recorded. Whether there are any was
    # checked before (proofs/reading.md).
    kept = (
        paying.recorded(name, run.promise) if out is not None else "No model was written (--out writes it)."
    )
    lines = (kept, "" if run.after is None else run.after())
    return outcome_of(
        outcome,
        out,
        *(line for line in lines if line),
        "A simulation doesn't measure accuracy. To measure it, run the command with --evaluate and without "
        "--out.",
    )


# A party answers only after its operator agreed at a prompt.
_ABSENT = "is absent (`discreet federation party` may be waiting for a yes there, or isn't running)"


def watched_transport(inner: lib.Transport) -> lib.Transport:
    """Return a transport that reports on standard error which parties answered and which are awaited."""

    class Watched(lib.Transport):
        asked = 0

        def ask(self, question: bytes, parties: Sequence[str], seconds: float) -> Iterator[lib.Answered]:
            self.asked += 1
            waiting = list(parties)
            remark(f"Question {self.asked} to {', '.join(parties)}: {len(question):,} bytes.")
            for name, raw in inner.ask(question, parties, seconds):
                if name in waiting:
                    waiting.remove(name)
                outcome = _ABSENT if raw is None else f"sent {len(raw):,} bytes"
                remark(f"  {name} {outcome}; waiting for {', '.join(waiting) or 'nobody'}.")
                yield name, raw

        def opened(self, name: str, raw: bytes) -> bytes:
            return inner.opened(name, raw)

    return Watched()


def outcome_of(outcome: lib.RunOutcome | lib.FollowedTogether, out: Path | None, *after: str) -> Output:
    """Return every round, or the release of a continual release, and the model's label."""
    followed = isinstance(outcome, lib.FollowedTogether)
    made = {"release": outcome.release} if isinstance(outcome, lib.FollowedTogether) else {}
    first, title = ("release", "The latest release") if followed else ("round", "Rounds")
    rows, rounds = [], []
    asked: Sequence[lib.Round | lib.FollowedTogether] = outcome.rounds
    for number, entry in enumerate(asked, start=1):
        reasons = ", ".join(f"{name}: {why}" for name, why in entry.left_out.items())
        if isinstance(entry, lib.FollowedTogether):
            place, what = f"{entry.release:,} of {entry.releases:,}", "current sums"
        else:
            place, what = str(number), entry.result.kind
        rows.append((place, what, str(len(entry.counted)), reasons or "-"))
        rounds.append(
            {"heard": list(entry.counted), "left_out": dict(entry.left_out), "refused": dict(entry.refused)}
        )
    promise, written = outcome.model.guarantee, "" if out is None else f"Written to {out}. "
    return Output(
        {**_written(outcome.model, out), **made, "rounds": rounds, "guarantee": promise.to_json()},
        lambda: table_of((first, "what", "parties counted", "skipped, and why"), rows, title=title),
        lambda: lib.label_table(promise, f"Privacy facts: {outcome.model.name}"),
        lambda: f"{written}{promise.short()}",
        *after,
    )


def _written(model: lib.FittedModel, out: Path | None) -> dict[str, Any]:
    return {"model": model.name, "file": None if out is None else str(out)}
