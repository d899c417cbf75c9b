"""Ask parties for releases, add them up, and make an ordinary model from the sums.

With own noise every answer is a release that may be seen, so each party's releases are kept: a party that was
away is asked later for what it missed, and until then counts as one with nothing new. With shared noise only
sums over all parties exist; a release then waits until all of them answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np

from discreet.core import integer, require
from discreet.data import PublicFacts, Vocabulary
from discreet.federated.asking import Asking, agreed_terms, promised
from discreet.federated.journal import Journal
from discreet.federated.keeper import Line
from discreet.federated.noise import SharedNoise
from discreet.federated.transport import Transport
from discreet.federated.wire import CHAIN, CHAINS, Message, Value, known_place, own_place, places_to_field
from discreet.follow.agreement import ASSUMED, FARTHEST, FollowAgreement
from discreet.follow.errors import NoReleaseYet, PeriodUsedUp, ReleaseIncomplete, WrongRelease
from discreet.follow.factorization import FACTOR_BITS, Factorization
from discreet.follow.model import FOLLOWED_TOGETHER, Kind, current, labeled, refuse_kind, scorer_of
from discreet.follow.state import ItemSums, Whole
from discreet.models import FittedModel
from discreet.privacy import Anchor, gaussian_multiplier
from discreet.report import WEAKEST_PARTY

_ALL = "all parties"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedTogether:
    """The model of a release, one of so many `releases`, who is in it, and why others lag behind."""

    model: FittedModel
    release: int
    releases: int
    counted: tuple[str, ...]
    left_out: Mapping[str, str]
    refused: Mapping[str, int]

    @property
    def rounds(self) -> tuple[FollowedTogether]:
        """Return the one question that a release is, as a run that fits a model has its rounds."""
        return (self,)


@final
class FollowCoordinator:
    """Follow a year with parties that keep their data and their entry books.

    Use it on one machine that reaches all parties, and call `release` when the next model is due.

    Guarantee
        None of its own: parties guarantee, and need not trust it. A model has the weakest guarantee that a
        party stated, for the whole year.

    Parameters:
        agreement: What all members agreed on.
        parties: The names of the parties.
        catalog: The items as declared so far; `declare` adds more.
        state: A file that makes the coordinator resumable. It has what parties released, which is public
            with own noise; with shared noise it has sums over all of them.
        keeper: The line to the keeper of masks, for shared noise.
        promises: With own noise, the epsilon and delta of parties whose guarantee is not that of `agreement`,
            by name. An answer that states a different guarantee than agreed is rejected.
        simulated: Whether parties may state that their noise is simulated, as in experiments.

    Example:
        >>> import tempfile
        >>> from discreet import PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> from discreet.federated import InProcess, OwnNoise
        >>> from discreet.follow import FollowAgreement, FollowCoordinator, FollowParty, FollowSettings
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> folder = tempfile.TemporaryDirectory()
        >>> settings = FollowSettings(releases=12, epsilon=2.0)
        >>> agreed = FollowAgreement(run="spring", settings=settings, facts=films.facts, noise=OwnNoise())
        >>> party = FollowParty.start("north", f"{folder.name}/north.follow", films.catalog, agreed,
        ...         lambda release: films, random=PrivacyRandom.simulate(0))
        >>> coordinator = FollowCoordinator(agreed, InProcess({"north": party.answer}), parties=["north"],
        ...         catalog=films.catalog, simulated=True)
        >>> coordinator.release().model.guarantee.epsilon
        2.0
        >>> folder.cleanup()

    Stability
        Provisional: names may still change in 0.x.
    """

    def __init__(
        self,
        agreement: FollowAgreement,
        transport: Transport,
        *,
        parties: Sequence[str],
        catalog: Vocabulary,
        promises: Mapping[str, tuple[float, float]] | None = None,
        simulated: bool = False,
        state: str | Path | None = None,
        keeper: Line | None = None,
        seconds: float = 60.0,
    ) -> None:
        require(_ALL not in parties, "parties", list(parties), must=f"not hold {_ALL!r}")
        noise, settings = agreement.noise, agreement.settings
        count = noise.parties if isinstance(noise, SharedNoise) else len(parties)
        require(len(parties) == count, "parties", list(parties), must=f"be the {count} that share the noise")
        terms = agreed_terms(parties, settings.epsilon, settings.delta, promises or {}, simulated=simulated)
        self._agreement, self._parties, self.catalog = agreement, tuple(parties), catalog
        self._journal = Journal(state)
        self._asking = Asking(
            run=agreement.run,
            judge=agreement,
            transport=transport,
            terms=terms,
            # Fewer parties than share the noise would leave less of it once some of them tell theirs.
            least=count if noise.masked else 1,
            seconds=seconds,
            keeper=keeper,
            journal=self._journal,
        )

    def declare(self, items: Vocabulary) -> None:
        """Declare items that are new, as all members do between two releases.

        Raises:
            FederationError: With shared noise the latest release is not complete. Other items make another
                question of it, and the keeper takes one key of a mask a release.
        """
        wanted = self.made
        if self._asking.sent(wanted) is not None:
            raise ReleaseIncomplete(release=wanted + 1)
        fresh = items.ids[self.catalog.index_of(items.series) < 0].tolist()
        self.catalog = Vocabulary.of([*self.catalog.ids.tolist(), *fresh])

    @property
    def made(self) -> int:
        """Return how many releases there are."""
        return max((len(found) for found in self._kept().values()), default=0)

    def release(self, *, kind: Kind = "both", number: int | None = None) -> FollowedTogether:
        """Ask for the next release and for what parties missed, and return a model from all of it.

        `number` is that of the release, counted from 1: if it was made already and is the latest, no party
        is asked, and its model is returned. Without it this is the next one.

        Raises:
            FederationError: No one answered, or with shared noise someone did not; ask again later. A
                release that a party has drawn is not drawn again.
        """
        refuse_kind(kind, None, self._facts())
        made, most = self.made, self._agreement.settings.releases
        if number is None and made >= most:
            raise PeriodUsedUp(most=most, made=made)
        wanted = made + 1 if number is None else integer("number", number, least=1, most=most)
        if wanted not in (made, made + 1):
            raise WrongRelease(release=wanted, made=made)
        left_out, refused = self._asked(made) if wanted > made else ({}, {})
        kept = self._kept()
        counted = [name for name in self._parties if len(kept.get(name, kept.get(_ALL, []))) >= wanted]
        return FollowedTogether(
            model=self.model(kind=kind),
            release=wanted,
            releases=most,
            counted=tuple(counted),
            left_out=left_out,
            refused=refused,
        )

    def model(self, *, kind: Kind = "both") -> FittedModel:
        """Return the model of the latest release; nothing is asked."""
        kept, facts, settings = self._kept(), self._facts(), self._agreement.settings
        made = self.made
        if not made:
            raise NoReleaseYet
        drawn, multiplier = self._sums(kept, made)
        now = current(settings, facts, drawn, multiplier=multiplier)
        states = [promised(one) for found in kept.values() for one in found]
        weakest = replace(
            settings, epsilon=max(one[0] for one in states), delta=max(one[1] for one in states)
        )
        shared = self._agreement.noise.assumes(weakest.epsilon, weakest.delta)
        promise = weakest.promise(facts).assuming(*shared, *ASSUMED)
        promise = replace(promise, notes=(*promise.notes, WEAKEST_PARTY))
        simulated = any(one[2] for one in states)
        return FittedModel(
            guarantee=labeled(promise, settings, made - 1, simulated=simulated, until=None),
            facts=facts,
            catalog=self.catalog,
            name=FOLLOWED_TOGETHER,
            parameters={"release": made, "settings": self._agreement.terms(), "parties": len(self._parties)},
            scorer=scorer_of(now, facts, kind),
        )

    def _facts(self) -> PublicFacts:
        return replace(self._agreement.facts, n_items=len(self.catalog))

    def _kept(self) -> dict[str, list[Message]]:
        """Return the releases that are known, by party; with shared noise those of all together."""
        found: dict[str, list[Message]] = {}
        for message in self._asking.own():
            if message.arrays:
                found.setdefault(message.sender, []).append(message)
        return found

    def _question(self, release: int) -> Message:
        """Return the question for a release; with shared noise it is kept before it is sent."""
        sent = self._asking.sent(release)
        if sent is not None:
            return sent
        question = self._agreement.question(release, self.catalog, self._chains())
        if self._agreement.noise.masked:
            self._journal.keep(question)
        return question

    def _chains(self) -> dict[str, Anchor]:
        """Return the latest place in each party's chain that was kept; earlier versions kept none."""
        found: dict[str, Anchor] = {}
        for releases in self._kept().values():
            for message in releases:
                if CHAINS in message.fields:
                    found |= {name: known_place(message, name) for name in self._parties}
                elif CHAIN in message.fields:
                    found[message.sender] = own_place(message)
        return found

    def _asked(self, wanted: int) -> tuple[dict[str, str], dict[str, int]]:
        """Ask for all releases up to the wanted one that are not known yet; say who lags behind, and why."""
        left_out: dict[str, str] = {}
        refused: Counter[str] = Counter()
        if self._agreement.noise.masked:
            return left_out, self._asked_together(wanted)
        for release in range(wanted + 1):
            kept = self._kept()
            behind = [
                name for name in self._parties if len(kept.get(name, [])) == release and name not in left_out
            ]
            if not behind:
                continue
            found = self._asking.ask(self._question(release), behind, len(self.catalog))
            for name in behind:
                if name in found.answers:
                    self._journal.keep(found.answers[name])
            left_out |= found.left_out
            refused += found.refused
        if self.made <= wanted:
            raise self._asking.too_few(wanted, ())
        return left_out, dict(refused)

    def _asked_together(self, wanted: int) -> dict[str, int]:
        """Ask all parties for one release and keep the sum of their answers without the masks."""
        question = self._question(wanted)
        made = self._asking.round(question, len(self.catalog))
        fields: dict[str, Value] = {
            "epsilon": made.epsilon,
            "delta": made.delta,
            "simulated": made.simulated,
            CHAINS: places_to_field(made.chains),
        }
        self._journal.keep(replace(question, sender=_ALL, fields=fields, arrays=made.result.arrays))
        return dict(made.refused)

    def _sums(self, kept: Mapping[str, list[Message]], made: int) -> tuple[list[ItemSums], float]:
        """Return the sums over parties of every release so far, and how much noise is on them."""
        settings, noise, size = self._agreement.settings, self._agreement.noise, len(self.catalog)
        plans = {
            "counts": settings.counts(rated=self._agreement.rated),
            "values": settings.values,
            "level": settings.values,
        }
        sizes = {"counts": size, "values": size, "level": 2}
        # A number beyond this can't come from users; sums of all parties stay within 63 bits.
        most = FARTHEST // len(kept)
        totals = {
            name: sum(
                np.clip(completed(plan, _rows(found, name, sizes[name]), made), -most, most)
                for found in kept.values()
            )
            for name, plan in plans.items()
        }
        drawn = [ItemSums(*(np.asarray(totals[name])[row] for name in plans)) for row in range(made)]
        if noise.masked:
            return drawn, settings.multiplier * math.sqrt(len(self._parties) / noise.least_parties)
        each = [gaussian_multiplier(*promised(found[-1])[:2]) for found in kept.values()]
        return drawn, math.sqrt(math.fsum(one**2 for one in each))


def _rows(found: Sequence[Message], name: str, size: int) -> Whole:
    rows = np.zeros((len(found), size), dtype=np.int64)
    for row, message in zip(rows, found, strict=True):
        array = message.arrays.get(name)
        if array is not None:
            row[: array.size] = array
    return rows


def completed(factorization: Factorization, rows: Whole, made: int) -> Whole:
    """Return a party's releases, and for those it missed what they would be with nothing new and no noise.

    Estimates from them are those of the releases that the party made.
    """
    known = len(rows)
    if known == made:
        return rows
    whole = np.ldexp(factorization.whole[:made, :known].astype(np.float64), -FACTOR_BITS)
    sums = np.linalg.solve(whole[:known], rows.astype(np.float64))
    return np.concatenate([rows, np.rint(whole[known:] @ sums).astype(np.int64)])
