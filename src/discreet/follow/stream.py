"""Follow a stream of ratings for a year: start it, add to it, look at it, erase a user from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np

from discreet.core.checks import DataError, FileError, PrivacyError, instance, integer
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions, refuse_unsound
from discreet.data.vocabulary import Vocabulary
from discreet.distributed.shards import ShardFolder
from discreet.follow.entries import Batch, enter, user_fingerprint
from discreet.follow.model import Current, Kind, combined, current, labeled, refuse_kind, scorer_of
from discreet.follow.releases import draw
from discreet.follow.settings import FollowSettings
from discreet.follow.state import Release, State, created, opened, summed
from discreet.models.fitted import FittedModel
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.book import Ledger

# An item stands out of the noise from so many standard deviations on.
_STANDS_OUT = 3.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Say how far a year is. All of it is public: settings, and what releases tell."""

    name: str
    settings: FollowSettings
    began: str
    ends: str
    times: tuple[str, ...]
    items: int
    guarantee: Guarantee
    noise: float | None
    stands_out: int | None

    @property
    def left(self) -> int:
        """Return how many releases are left."""
        return self.settings.releases - len(self.times)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "name": self.name,
            "settings": self.settings.to_json(),
            "began": self.began,
            "ends": self.ends,
            "releases": [{"number": place + 1, "time": time} for place, time in enumerate(self.times)],
            "left": self.left,
            "items": self.items,
            "noise": self.noise,
            "items_above_noise": self.stands_out,
            "guarantee": self.guarantee.to_json(),
        }


class Added(NamedTuple):
    """Hold the model of a release, and what its batch was, for whoever holds the data."""

    model: FittedModel
    release: int
    entered: int
    known_pairs: int
    of_erased: int
    repeated: bool


class _Open(NamedTuple):
    """Hold what every operation reads first."""

    name: str
    settings: FollowSettings
    began: datetime
    facts: PublicFacts
    catalog: Vocabulary
    promise: Guarantee
    secret: bytes
    releases: list[Release]


@final
class Following:
    """Follow a year of ratings: one charge at the start, then a model from every `add`.

    Example:
        >>> import tempfile
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> folder = tempfile.TemporaryDirectory()
        >>> year = Following.start(Path(folder.name) / "films.follow", films.catalog, films.facts,
        ...                        FollowSettings(releases=12, epsilon=2.0))
        >>> added = year.add(films, random=PrivacyRandom.simulate(0))
        >>> added.model.guarantee.notes[0][:15], year.status().left
        ('release 1 of 12', 11)
        >>> folder.cleanup()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def start(
        cls,
        path: str | Path,
        items: Vocabulary,
        facts: PublicFacts,
        settings: FollowSettings,
        *,
        name: str = "data",
        ledger: Ledger | None = None,
    ) -> Self:
        """Pay for all releases of a year, and write its state.

        Raises:
            FileError: There is such a file already; nothing was paid.
            BudgetError: The ledger's budget does not cover the year; nothing was paid.
        """
        instance("settings", settings, FollowSettings)
        path = Path(path)
        if path.exists():
            raise FileError(f"{path} exists already and was left as it is. Choose another file.")
        if not path.absolute().parent.is_dir():
            raise FileError(f"{path} cannot be written: its folder does not exist.")
        promise = settings.promise(facts)
        if ledger is not None:
            promise = replace(promise, assumes=(*promise.assumes, *ledger.assumptions(name)))
        book = ledger or Ledger.nowhere()
        with book.spend(name, promise, what="follow", events=settings.events()), created(path) as state:
            state.found(
                {
                    "name": name,
                    "began": datetime.now(UTC).isoformat(timespec="seconds"),
                    "settings": settings.to_json(),
                    "facts": facts.to_json(),
                    "promise": promise.to_json(),
                }
            )
            state.declare(0, items.ids.tolist())
        return cls(path)

    def add(
        self,
        data: Interactions | ShardFolder | None,
        *,
        items: Vocabulary | None = None,
        kind: Kind = "both",
        model: FittedModel | None = None,
        release: int | None = None,
        random: PrivacyRandom | None = None,
    ) -> Added:
        """Enter new ratings, draw the next release once, and return a model from all releases so far.

        Pairs of user and item that entered before are left out: the first rating counts. Late ratings enter
        now. None is a release without new ratings. `items` are declared from now on. `model` supplies
        embeddings. `release` says which release this is, counted from 1. Those that were missed are made
        without new ratings; if the latest has this number already, nothing enters or is drawn again, and
        its model is returned: after a crash repeat the call. Without it this is the next release.

        Raises:
            DataError: Some items were not declared.
            PrivacyError: All releases of the year were made, or this one was made and others after it.
        """
        if random is not None:
            instance("random", random, PrivacyRandom, "Leave it out, or PrivacyRandom.simulate(seed).")
        if data is not None and not isinstance(data, ShardFolder):
            instance("data", data, Interactions, "Read a file with discreet.read, or open shards.")
            refuse_unsound(data)
        with opened(self.path, writing=True) as state:
            found = _read(state)
            refuse_kind(kind, model, found.facts)
            missing = _missing(found, release)
            counted = (0, 0, 0)
            if missing:
                source = random or PrivacyRandom.from_os()
                found = found if items is None else _declare(state, found, items)
                batch = _batch(found, data)
                for _ in range(missing - 1):
                    _entered(state, found, Batch.empty(), source)
                    found = _read(state)
                counted = _entered(state, found, batch, source)
                found = _read(state)
        # The release is on the disk; only now does anything of it leave.
        return Added(_model(found, kind, model), len(found.releases), *counted, repeated=not missing)

    def model(self, *, kind: Kind = "both", model: FittedModel | None = None) -> FittedModel:
        """Return the model of the latest release again; nothing is drawn and nothing is paid."""
        found = self._found()
        if not found.releases:
            raise DataError("There is no release yet; `add` makes the first one.")
        refuse_kind(kind, model, found.facts)
        return _model(found, kind, model)

    def catalog(self, more: Vocabulary | None = None) -> tuple[Vocabulary, PublicFacts]:
        """Return the declared items, with `more` that are about to be declared, and the public facts."""
        found = self._found()
        if more is None:
            return found.catalog, found.facts
        ids = [*found.catalog.ids.tolist(), *_fresh(found, more)]
        return _vocabulary(ids), replace(found.facts, n_items=len(ids))

    def current(self) -> Current:
        """Return what the releases so far tell about items now."""
        found = self._found()
        return current(found.settings, found.facts, [one.drawn for one in found.releases])

    def status(self) -> Status:
        """Return how far the year is."""
        found = self._found()
        now = self.current() if found.releases else None
        out = None if now is None else int((now.recent.sums > _STANDS_OUT * now.recent.noise).sum())
        return Status(
            name=found.name,
            settings=found.settings,
            began=f"{found.began:%Y-%m-%d}",
            ends=_end(found),
            times=tuple(one.time for one in found.releases),
            items=found.facts.n_items,
            guarantee=found.promise,
            noise=None if now is None else now.recent.noise,
            stands_out=out,
        )

    def erase(self, user: str | int) -> int:
        """Stop adding a user's ratings from the next release on; return how many were taken out.

        What was released stays released, and its influence on later models fades; the user's ratings do not
        enter again this year. Taking them back by adding their negatives would cost more privacy, not less.
        """
        with opened(self.path, writing=True) as state:
            found = _read(state)
            wanted = str(user).strip()
            known = state.user_ids()
            mark = user_fingerprint(found.secret, wanted)
            if wanted not in known:
                # Said to whoever holds the data; ratings that come later are left out all the same.
                return state.erase(-1, mark, found.settings.parts(found.facts))
            return state.erase(known.index(wanted), mark, found.settings.parts(found.facts))

    def _found(self) -> _Open:
        with opened(self.path, writing=False) as state:
            return _read(state)


def _read(state: State) -> _Open:
    content, secret = state.settings()
    catalog = _vocabulary([one for _, declared in state.item_ids() for one in declared])
    declared = PublicFacts.from_json(content["facts"])
    facts = replace(declared, n_items=len(catalog))
    promise = Guarantee.from_json(content["promise"])
    # The label speaks of the catalog as it is now.
    kept = [line for line in promise.assumes if line not in declared.assumptions()]
    promise = replace(promise, assumes=(*facts.assumptions(), *kept))
    return _Open(
        name=str(content["name"]),
        settings=FollowSettings.from_json(content["settings"]),
        began=datetime.fromisoformat(content["began"]),
        facts=facts,
        catalog=catalog,
        promise=promise,
        secret=secret,
        releases=state.releases(len(catalog)),
    )


def _missing(found: _Open, release: int | None) -> int:
    """Return how many releases are to be made so that the latest has this number."""
    made, most = len(found.releases), found.settings.releases
    wanted = made + 1 if release is None else integer("release", release, least=1)
    if wanted > most:
        raise PrivacyError(
            f"A year of {most:,} releases was paid for, and {made:,} were made. For more start a new year, "
            "which is paid anew."
        )
    if wanted < made:
        raise PrivacyError(
            f"Release {wanted:,} was made, and {made - wanted:,} after it; none is drawn again."
        )
    return wanted - made


def _batch(found: _Open, data: Interactions | ShardFolder | None) -> Batch:
    """Return new ratings; a folder of shards is read run by run."""
    if not isinstance(data, ShardFolder):
        return Batch.empty() if data is None else Batch.of(data, found.catalog, found.facts)
    runs = (one for shard in range(data.n_shards) for one in data.people(shard))
    return Batch.joined(Batch.of(one, found.catalog, found.facts) for one in runs)


def _declare(state: State, found: _Open, items: Vocabulary) -> _Open:
    """Append the items that are not declared yet."""
    fresh = _fresh(found, items)
    if not fresh:
        return found
    state.declare(len(found.releases), fresh)
    return _read(state)


def _fresh(found: _Open, items: Vocabulary) -> list[Any]:
    fresh: list[Any] = items.ids[found.catalog.index_of(items.series) < 0].tolist()
    return fresh


def _vocabulary(ids: list[Any]) -> Vocabulary:
    """Return ids as whole numbers if all of them are, else as text."""
    return Vocabulary.of(ids if all(isinstance(one, int) for one in ids) else [str(one) for one in ids])


def _entered(state: State, found: _Open, batch: Batch, random: PrivacyRandom) -> tuple[int, int, int]:
    """Enter a batch and draw its release, all in the transaction of `state`; return what is counted."""
    number, settings = len(found.releases), found.settings
    parts = settings.parts(found.facts)
    made = enter(batch, state, settings, parts, number, found.secret)
    state.add_users(made.new_users)
    state.enter(number, made.entries, summed(made.entries, found.facts.n_items, parts))
    drawn = draw(settings, state.sums(found.facts.n_items), random, rated=parts[1] > 0)
    state.publish(
        Release(
            number=number,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            simulated=random.simulated,
            drawn=drawn,
        )
    )
    return int(np.size(made.entries.users)), made.known_pairs, made.of_erased


def _end(found: _Open) -> str:
    return f"{found.began + timedelta(days=found.settings.days):%Y-%m-%d}"


def _model(found: _Open, kind: Kind, model: FittedModel | None) -> FittedModel:
    now = current(found.settings, found.facts, [one.drawn for one in found.releases])
    last = found.releases[-1].number
    simulated = any(one.simulated for one in found.releases)
    promise = labeled(found.promise, found.settings, last, simulated=simulated, until=_end(found))
    if model is None:
        scorer = scorer_of(now, found.facts, kind)
    else:
        scorer = combined(now, model, found.catalog, found.facts)
        promise = replace(promise + model.guarantee, proof=promise.proof)
    parameters = {"release": last + 1, **found.settings.to_json(), "pace": str(found.settings.pace.to_json())}
    return FittedModel(
        guarantee=promise,
        facts=found.facts,
        catalog=found.catalog,
        name="follow",
        parameters=parameters,
        scorer=scorer,
    )
