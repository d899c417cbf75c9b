"""Follow a stream of ratings for a year: start it, add to it, look at it, erase a user from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, final

from discreet.core import PrivacyRandom, instance
from discreet.data import PublicFacts, Vocabulary
from discreet.follow.batches import Source, batches, canonical_ids, check_source
from discreet.follow.entries import user_fingerprint
from discreet.follow.errors import DrawnBefore, MadeWithoutBatch, NoReleaseYet
from discreet.follow.model import FOLLOWED, Current, Kind, combined, current, labeled, refuse_kind, scorer_of
from discreet.follow.settings import FollowSettings
from discreet.follow.state import State
from discreet.follow.year import (
    EntryCounts,
    OpenYear,
    YearFile,
    YearTerms,
    assume,
    begin,
    declare,
    make_release,
    vocabulary_of,
)
from discreet.models import FittedModel
from discreet.privacy import Guarantee, Ledger
from discreet.privacy.certificate import certificate

# An item is out of the noise from so many standard deviations on.
_STANDS_OUT = 3.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How far a continual release is. All of it is public: settings and released numbers.

    `half_life`, in days, is what lists count with now: longer than declared where the noise asks for it, None
    if nothing fades or nothing was released. `recorded` states whether a ledger has the cost, None if the
    period began with a version that did not write that.

    Example:
        >>> import tempfile
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> from discreet.follow import Following, FollowSettings
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> folder = tempfile.TemporaryDirectory()
        >>> settings = FollowSettings(releases=12, epsilon=2.0)
        >>> year = Following.start(f"{folder.name}/films.follow", films.catalog, films.facts, settings)
        >>> year.status().left, year.status().noise is None
        (12, True)
        >>> folder.cleanup()

    Stability
        Provisional: names may still change in 0.x.
    """

    name: str
    settings: FollowSettings
    began: str
    ends: str
    times: tuple[str, ...]
    items: int
    guarantee: Guarantee
    noise: float | None
    stands_out: int | None
    half_life: float | None
    recorded: bool | None = None

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
            "recorded": self.recorded,
            "items": self.items,
            "noise": self.noise,
            "items_above_noise": self.stands_out,
            "half_life_used": self.half_life,
            "guarantee": self.guarantee.to_json(),
        }


class Added(NamedTuple):
    """The model of a release, and what its batch was, for anyone who has the data.

    `empty` counts the missed releases that were made without new ratings.
    """

    model: FittedModel
    release: int
    entered: int
    known_pairs: int
    of_erased: int
    repeated: bool
    empty: int = 0


#: Returns what to keep of a release that was drawn, for later ones; called before the release is on the disk.
Keeping = Callable[[Added], Mapping[str, str]]


@final
class Following:
    """Follow a year of ratings: one charge at the start, then a model from every `add`.

    Use it if models must be fresh, and fits that share the year's budget would have too much noise.
    `discreet follow replay` compares both on a past year.

    Guarantee
        All models of the year together guarantee the epsilon and delta of `settings` to each user
        (proofs/follow.md).

    The file is read again if another process wrote to it, unless the year is `steady`: then it is read once,
    as a command does, and only a call that writes looks again.

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

    Stability
        Provisional: names may still change in 0.x.
    """

    def __init__(self, path: str | Path, *, steady: bool = False) -> None:
        self.path = Path(path)
        self._year = YearFile(path, steady=steady)

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
            FileError: There is such a file already; nothing was spent.
            BudgetError: The ledger's budget does not cover the year; nothing was spent.
        """
        begin(path, items, YearTerms(settings=settings, facts=facts), name=name, ledger=ledger)
        return cls(path)

    def add(
        self,
        data: Source | None,
        *,
        items: Vocabulary | None = None,
        kind: Kind = "both",
        model: FittedModel | None = None,
        release: int | None = None,
        batch: str | None = None,
        again: bool = False,
        random: PrivacyRandom | None = None,
        keeping: Keeping | None = None,
    ) -> Added:
        """Enter new ratings, draw the next release once, and return a model from all releases so far.

        Pairs of user and item that entered before are excluded: the first rating counts. Late ratings enter
        now. `data` may be a folder of shards, on a cluster or not. None is a release without new ratings.
        `items` are declared from now on. `model` supplies embeddings. `release` states which release this is,
        counted from 1. Those that were missed are made without new ratings; if the latest has this number
        already, nothing enters or is drawn again, and its model is returned: after a crash repeat the call.
        Without it this is the next release.

        `batch` is a public name of the new ratings, such as a date. It must not depend on who rated: a name
        that was added before is rejected, so that a file is not added twice by mistake, unless `again`.
        `keeping` returns what `keep` would be given, and may not let anything of the release out.

        Raises:
            DataError: Some items were not declared.
            PrivacyError: All releases of the year were made, this one was made and others after it, or the
                batch was added before. Nothing was drawn.
        """
        if random is not None:
            instance("random", random, PrivacyRandom)
        check_source(data)
        with self._year.writing() as (state, found):
            found.refuse_share()
            refuse_kind(kind, model, found.facts)
            missing = found.missing(release)
            counts = EntryCounts()
            if missing and batch is not None:
                _refuse_again(state, batch, again=again)
            if not missing and batch is not None and not state.batch_known(batch):
                raise MadeWithoutBatch(release=release or 0, batch=str(batch))
            if missing:
                source = random or PrivacyRandom.from_os()
                found = assume(state, found if items is None else declare(state, found, items), data)
                for left in reversed(range(missing)):
                    given = data if left == 0 else None
                    given_now = batches(given, found.catalog, found.facts)
                    found, counts = make_release(state, found, given_now, source)
            added = Added(
                _model(found, kind, model),
                len(found.releases),
                *counts[:3],
                repeated=not missing,
                empty=max(missing - 1, 0),
            )
            if keeping is not None:
                found = _keep(state, found, keeping(added))
            self._year.remember(found)
        # The release is on the disk; only now does anything of it leave.
        return added

    def model(self, *, kind: Kind = "both", model: FittedModel | None = None) -> FittedModel:
        """Return the model of the latest release again; nothing is drawn and nothing is spent."""
        found = self._found()
        found.refuse_share()
        if not found.releases:
            raise NoReleaseYet()
        refuse_kind(kind, model, found.facts)
        return _model(found, kind, model)

    def catalog(self, more: Vocabulary | None = None) -> tuple[Vocabulary, PublicFacts]:
        """Return the declared items, with `more` that are about to be declared, and the public facts."""
        found = self._found()
        if more is None:
            return found.catalog, found.facts
        ids = [*found.catalog.ids.tolist(), *found.fresh(more)]
        return vocabulary_of(ids), replace(found.facts, n_items=len(ids))

    def current(self) -> Current:
        """Return what the releases so far show about items now."""
        found = self._found()
        found.refuse_share()
        return current(found.settings, found.facts, [one.drawn for one in found.releases])

    def status(self) -> Status:
        """Return how far the year is."""
        found = self._found()
        now = self.current() if found.releases and found.shares == 1 else None
        out = None if now is None else int((now.recent.sums > _STANDS_OUT * now.recent.noise).sum())
        return Status(
            name=found.name,
            settings=found.settings,
            began=f"{found.began:%Y-%m-%d}",
            ends=found.end,
            times=tuple(one.time for one in found.releases),
            items=found.facts.n_items,
            guarantee=found.guarantee,
            noise=None if now is None else now.recent.noise,
            stands_out=out,
            half_life=None if now is None else found.settings.in_days(now.recent.half_life),
            recorded=found.recorded,
        )

    @property
    def made(self) -> int:
        """Return how many releases were made."""
        return len(self._found().releases)

    def kept(self) -> dict[str, str]:
        """Return what `keep` was given; all of it is public."""
        return self._found().kept

    def keep(self, **settings: str) -> None:
        """Keep public settings for later releases: how files are read, where titles and the model are."""
        with self._year.writing() as (state, found):
            self._year.remember(_keep(state, found, settings))

    def erase(self, user: str | int) -> int:
        """Stop adding a user's ratings from the next release on; return how many were taken out.

        What was released stays released, and its influence on later models fades; the user's ratings do not
        enter again this year. Taking them back by adding their negatives would cost more privacy, not less.
        """
        with self._year.writing() as (state, found):
            wanted = canonical_ids([user])[0]
            known = state.user_ids()
            mark = user_fingerprint(found.secret, wanted)
            self._year.remember(found)
            # For the data owner only: ratings of an unknown user that come later are excluded all the same.
            return state.erase(known.index(wanted) if wanted in known else -1, mark)

    def _found(self) -> OpenYear:
        return self._year.read()


def _keep(state: State, found: OpenYear, settings: Mapping[str, str]) -> OpenYear:
    """Keep public settings; return the year with them."""
    kept = {**found.kept, **settings}
    state.remember(kept=kept)
    return replace(found, kept=kept)


def _refuse_again(state: State, batch: str, *, again: bool) -> None:
    """Reject a batch whose public name was added before, and remember a new one."""
    if state.batch_known(batch) and not again:
        raise DrawnBefore(what=str(batch))
    state.keep_batch(batch)


def _model(found: OpenYear, kind: Kind, model: FittedModel | None) -> FittedModel:
    now = current(found.settings, found.facts, [one.drawn for one in found.releases])
    last = found.releases[-1].number
    simulated = any(one.simulated for one in found.releases)
    promise = labeled(found.guarantee, found.settings, last, simulated=simulated, until=found.end)
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
        name=FOLLOWED,
        parameters=parameters,
        scorer=scorer,
        certificate=_certificate(found, promise, model),
    )


def _certificate(found: OpenYear, promise: Guarantee, model: FittedModel | None) -> dict[str, Any] | None:
    """Return the certificate of all releases, and of the model that they were combined with."""
    more = None if model is None else model.certificate
    if found.shares > 1 or (model is not None and more is None):
        return None
    return certificate(promise, [found.plan.certified(), *([] if more is None else more["releases"])])
