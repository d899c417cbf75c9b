"""Read the state of a continual release, and make its next release inside one transaction.

Where parties follow together with shared noise, a state has one party's share: a release then has a part of
the noise only, leaves behind a mask, and is never shown here.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, final

from discreet.core import CannotWrite, FileExists, PrivacyRandom, instance, integer
from discreet.data import PublicFacts, Vocabulary
from discreet.follow.batches import Batch, Source
from discreet.follow.entries import enter
from discreet.follow.errors import PeriodUsedUp, ShareNotShown, WrongRelease
from discreet.follow.releases import YearPlan
from discreet.follow.settings import FollowSettings
from discreet.follow.state import (
    Draft,
    ItemSums,
    Release,
    State,
    Whole,
    draft_path,
    drafted,
    opened,
    summed,
    written_mark,
)
from discreet.follow.supplies import RatingColumns
from discreet.privacy import (
    PAID_AT_ONCE,
    Assumption,
    Chain,
    Fact,
    Guarantee,
    Kind,
    Ledger,
    Session,
    Spending,
    assumptions_of,
    reading_of,
    spending_in,
)
from discreet.privacy.certificate import certificate
from discreet.privacy.ledger.records import EntryState


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenYear:
    """What every operation reads first.

    `declared` has items' ids by the release before which they were declared. `shares` states how many
    parties' noise hides a release: 1 where a release hides itself. `run` names the one federation that a
    party's state answers. `assumes` is what is assumed of the sources that were added.
    `recorded` states whether a ledger has the cost, None if an earlier version did not write it. `kept` is
    what was stated of files once, for all later releases. `chain` has one event per release.
    """

    name: str
    settings: FollowSettings
    began: datetime
    facts: PublicFacts
    catalog: Vocabulary
    declared: list[tuple[int, list[Any]]]
    promise: Guarantee
    assumes: tuple[Assumption, ...]
    secret: bytes
    releases: list[Release]
    shares: int
    run: str
    recorded: bool | None
    kept: dict[str, str]
    chain: Chain

    @property
    def plan(self) -> YearPlan:
        """Return how the year is released."""
        rated = self.facts.low != self.facts.high
        return YearPlan(settings=self.settings, rated=rated, shares=self.shares)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the year with what is assumed of the sources that were added."""
        return self.promise.assuming(*self.assumes)

    @property
    def end(self) -> str:
        """Return the day on which the year ends."""
        return f"{self.began + timedelta(days=self.settings.days):%Y-%m-%d}"

    def catalog_at(self, release: int) -> Vocabulary:
        """Return the items that were declared when a release was made, counted from 0."""
        return vocabulary_of([one for since, ids in self.declared if since <= release for one in ids])

    def fresh(self, items: Vocabulary) -> list[Any]:
        """Return those items that are not declared yet."""
        found: list[Any] = items.ids[self.catalog.index_of(items.series) < 0].tolist()
        return found

    def missing(self, release: int | None) -> int:
        """Return how many releases are to be made so that the latest has this number, counted from 1."""
        made, most = len(self.releases), self.settings.releases
        wanted = made + 1 if release is None else integer("release", release, least=1)
        if wanted > most:
            raise PeriodUsedUp(most=most, made=made)
        if wanted < made:
            raise WrongRelease(release=wanted, made=made)
        return wanted - made

    def refuse_share(self) -> None:
        """Raise `ShareNotShown` for a share: a part of the noise gives a weaker guarantee."""
        if self.shares > 1:
            raise ShareNotShown()


@final
class YearFile:
    """A continual release on the disk: read once, and again only after a transaction wrote to it.

    If it is `steady`, a reader doesn't look for transactions of others; a writer always does.
    """

    def __init__(self, path: str | Path, *, steady: bool = False) -> None:
        self.path, self._steady = Path(path), steady
        self._known: tuple[bytes, OpenYear] | None = None
        self._next: OpenYear | None = None

    def read(self) -> OpenYear:
        """Return the year as it is now."""
        if self._known is not None and (self._steady or self._known[0] == written_mark(self.path) != b""):
            return self._known[1]
        with opened(self.path, writing=False) as state:
            found = read_year(state)
            self._known = (state.mark, found)
        return found

    @contextlib.contextmanager
    def writing(self) -> Iterator[tuple[State, OpenYear]]:
        """Provide the state and the year to one writer.

        The year is read again afterwards, unless the writer passes it to `remember`.
        """
        self._next = None
        with opened(self.path, writing=True) as state:
            known = self._known
            yield state, known[1] if known and known[0] == state.mark != b"" else read_year(state)
        self._known = None if self._next is None else (state.mark, self._next)

    def remember(self, year: OpenYear) -> None:
        """Keep the year as the present transaction leaves it."""
        self._next = year


class EntryCounts(NamedTuple):
    """Count a batch, for anyone who has the data."""

    entered: int = 0
    known_pairs: int = 0
    of_erased: int = 0
    undeclared: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class YearTerms:
    """What a year is begun with, all of it public.

    A party's year also states its run, how many parties' noise hides a release, and what that assumes.
    `what` is how the ledger calls the year.
    """

    settings: FollowSettings
    facts: PublicFacts
    shares: int = 1
    run: str = ""
    assumes: tuple[Assumption, ...] = ()
    what: str = "follow"

    def __post_init__(self) -> None:
        instance("settings", self.settings, FollowSettings)

    @property
    def plan(self) -> YearPlan:
        """Return how the year is released."""
        rated = self.facts.low != self.facts.high
        return YearPlan(settings=self.settings, rated=rated, shares=self.shares)


def begin(path: str | Path, items: Vocabulary, terms: YearTerms, *, name: str, ledger: Ledger | None) -> None:
    """Pay for all releases of a year, and write its state."""
    path = Path(path)
    if not path.absolute().parent.is_dir():
        raise CannotWrite(path=path, why="its folder doesn't exist")
    if path.exists() and not draft_path(path).exists():
        raise FileExists(path=path, replaceable=False)
    promise = terms.settings.promise(terms.facts)
    of_ledger = () if ledger is None else ledger.assumptions(name)
    budget = None if ledger is None else ledger.budget(name)
    if budget is not None and budget.renews is not None:
        of_ledger += (PAID_AT_ONCE,)
    promise = promise.assuming(*terms.assumes, *of_ledger)
    token = secrets.token_hex(16)
    content = {
        "name": name,
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": terms.settings.to_json(),
        "facts": terms.facts.to_json(),
        "promise": promise.to_json(),
        "shares": terms.shares,
        "run": terms.run,
        "recorded": ledger is not None,
        "certificate": certificate(promise, [terms.plan.certified()]) if terms.shares == 1 else None,
        # By this name a process finds the spending of one that died.
        "release": token,
    }
    ids = items.ids.tolist()
    # The draft is on the disk before the budget is spent, so that a process that dies can be repeated.
    with drafted(path) as draft:
        left = _interrupted(draft, ledger, terms.what, content, ids)
        if path.exists():
            with left or contextlib.nullcontext():
                pass
            raise FileExists(path=path, replaceable=False)
        if left is None:
            draft.write(content, ids)
        spent = left or spending_in(
            ledger,
            name,
            promise,
            what=terms.what,
            events=terms.settings.events(),
            release=token,
        )
        with spent:
            draft.publish()


def _interrupted(
    draft: Draft, book: Ledger | None, what: str, content: dict[str, Any], ids: list[Any]
) -> Spending | None:
    """Return the spending of a start with the same settings whose process died before it was finished."""
    left = draft.content()
    if left is None or book is None:
        return None
    found, declared = left
    wanted = json.loads(json.dumps(content))
    own = {"began", "release"}
    if declared != ids or any(found.get(name) != wanted[name] for name in wanted.keys() - own):
        return None
    for entry in book.entries(content["name"]):
        if (
            entry.state is EntryState.OPEN
            and entry.what == what
            and entry.release == found.get("release")
            and entry.guarantee.to_json() == content["promise"]
        ):
            return Spending(book, entry)
    return None


def read_year(state: State) -> OpenYear:
    """Return the year as it is on the disk."""
    content, secret = state.settings()
    declared = state.item_ids()
    catalog = vocabulary_of([one for _, ids in declared for one in ids])
    at_start = PublicFacts.from_json(content["facts"])
    facts = replace(at_start, n_items=len(catalog))
    promise = Guarantee.from_json(content["promise"])
    # The label is about the catalog as it is now.
    stated = {one.fact for one in assumptions_of(at_start)}
    kept = (one for one in promise.assumes if one.fact not in stated)
    promise = replace(promise, assumes=(*assumptions_of(facts), *kept))
    return OpenYear(
        name=str(content["name"]),
        settings=FollowSettings.from_json(content["settings"]),
        began=datetime.fromisoformat(content["began"]),
        facts=facts,
        catalog=catalog,
        declared=declared,
        promise=promise,
        assumes=_assumed(content),
        secret=secret,
        releases=state.releases(len(catalog)),
        shares=int(content.get("shares", 1)),
        run=str(content.get("run", "")),
        recorded=content.get("recorded"),
        kept={str(key): str(value) for key, value in content.get("kept", {}).items()},
        chain=Chain(state.events(secret)),
    )


def _assumed(content: Mapping[str, Any]) -> tuple[Assumption, ...]:
    """Return what is assumed of the sources so far. Earlier versions kept layouts only, in `kept`."""
    layouts = json.loads(content.get("kept", {}).get("layouts", "[]"))
    return (
        *(Assumption.of(Kind.TAKEN, Fact.LAYOUT, layout=str(layout)) for layout in layouts),
        *map(Assumption.from_json, content.get("assumes", [])),
    )


def assume(state: State, found: OpenYear, data: Source | RatingColumns | None) -> OpenYear:
    """Keep what is assumed of a source that is about to enter, for this release and all later ones."""
    if data is None or isinstance(data, RatingColumns):
        return found
    assumes = tuple(dict.fromkeys((*found.assumes, *reading_of(data.facts))))
    if assumes == found.assumes:
        return found
    state.remember(assumes=[one.to_json() for one in assumes])
    return replace(found, assumes=assumes)


def vocabulary_of(ids: list[Any]) -> Vocabulary:
    """Return ids as whole numbers if all of them are, else as text."""
    return Vocabulary.of(ids if all(isinstance(one, int) for one in ids) else [str(one) for one in ids])


def declare(state: State, found: OpenYear, items: Vocabulary) -> OpenYear:
    """Append the items that are not declared yet."""
    fresh = found.fresh(items)
    if not fresh:
        return found
    state.declare(len(found.releases), fresh)
    return read_year(state)


class MadeRelease(NamedTuple):
    """The year with one more release, and the counts of the batches that entered."""

    year: OpenYear
    counts: EntryCounts


def make_release(state: State, found: OpenYear, given: Iterable[Batch], random: PrivacyRandom) -> MadeRelease:
    """Enter batches one after the other and draw the next release, all in the transaction of `state`.

    Each batch sees what earlier ones entered, so it does not matter how users are spread over them.
    """
    number, settings = len(found.releases), found.settings
    rated, n_items = found.plan.rated, found.facts.n_items
    session = Session.open(found, found.promise, random).gaussian()
    drawn = DrawnYear(state, n_items)
    stream = session.stream(found.plan, drawn)
    total = summed(None, n_items)
    counts = EntryCounts()
    for batch in given:
        made = enter(batch, state, settings, number, found.secret, rated=rated)
        state.add_users(made.new_users)
        state.enter(number, made.entries)
        total = total.plus(summed(made.entries, n_items))
        counted = (made.entries.ratings, made.known_pairs, made.of_erased, batch.undeclared)
        counts = EntryCounts(*(int(one + more) for one, more in zip(counts, counted, strict=True)))
    state.add_sums(number, total)
    stream.release()
    releases, chain = [*found.releases, *drawn.stored], Chain(state.events(found.secret))
    return MadeRelease(replace(found, releases=releases, chain=chain), counts)


@final
class DrawnYear:
    """The state of a year as a stream sees it: exact sums, and releases that are drawn once."""

    def __init__(self, state: State, n_items: int) -> None:
        self._state, self._n_items = state, n_items
        self.stored: list[Release] = []

    @property
    def made(self) -> int:
        """Return how many releases were drawn."""
        return self._state.made()

    def sums(self) -> Sequence[ItemSums]:
        """Return the exact sums of every release so far."""
        return self._state.sums(self._n_items)

    def store(self, number: int, drawn: Sequence[Whole], *, simulated: bool) -> None:
        """Store a release in the transaction of the state; one number is stored once."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        made = Release(number=number, time=time, simulated=simulated, drawn=ItemSums(*drawn))
        self._state.publish(made)
        self.stored.append(made)
