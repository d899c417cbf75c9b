"""Follow a year as one of several parties: each question is one release, drawn once from the own entry book.

A party spends for the whole year in its own ledger when it starts. Its state is that of any followed year:
who entered what, when and with which weight. Nothing in a question changes what enters or how. A release that
was made is read from the disk, however often and by whomever it is asked for again.

Every release extends a hash chain, whose latest place is in the party's ledger before a release is sent, in
the answer and, with shared noise, at the keeper. A party whose state was replaced by an older copy finds a
later place there, and declines (proofs/rollback.md).

Once a question is accepted no row can change whether an answer is sent, or what others contribute: a row that
cannot be used is excluded by itself. Should new ratings not be readable at all, because a disk is gone say,
nothing is entered or drawn, and the question is declined until they are. That is assumed to be public.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core import PrivacyRandom
from discreet.data import Vocabulary
from discreet.federated.keeper import Line
from discreet.federated.masks import hidden
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Answering, Kept
from discreet.federated.wire import CHAIN, Message, Refusal, Refused, Value
from discreet.follow.agreement import FollowAgreement
from discreet.follow.batches import Source, batches, check_kind
from discreet.follow.errors import OtherAgreement, StateMissing
from discreet.follow.stream import Following
from discreet.follow.supplies import RatingColumns
from discreet.follow.year import OpenYear, YearFile, YearTerms, assume, begin, declare, make_release
from discreet.privacy import Chain, Ledger
from discreet.privacy.ledger.ledger import EntryState

#: What is new at a release, counted from 0; None if nothing is. What entered before is excluded again.
Supply = Callable[[int], Source | RatingColumns | None]


@final
class FollowParty(Answering):
    """Answer a coordinator's questions from one party's followed year.

    Use it on the machine that has the data, as `discreet federation party` does. Begin with `start`.

    Guarantee
        That of `agreement`, for each user of this party, for the whole year and whatever it is asked
        (proofs/follow.md).

    Parameters:
        name: How the coordinator's roster calls this party.
        path: The party's state, which `FollowParty.start` wrote; private to the party.
        agreement: What was agreed, with this party's own epsilon and delta.
        supply: Returns the new ratings of a release that is asked for and was not made. Whether it fails is
            assumed to be public, so no user's row may decide it: return `RatingColumns`, which are cleaned
            row by row, not what a reader makes of them that rejects rows.
        ledger: The ledger with the year's cost. It also counts the releases that were drawn, so that an
            older copy of the state is noticed.
        keeper: The line to the keeper of masks, for shared noise.

    Example:
        >>> import tempfile
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> from discreet.federated import OwnNoise
        >>> from discreet.follow import FollowAgreement, FollowParty, FollowSettings
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> folder, year = tempfile.TemporaryDirectory(), FollowSettings(releases=12, epsilon=2.0)
        >>> agreed = FollowAgreement(run="spring", settings=year, facts=films.facts, noise=OwnNoise())
        >>> party = FollowParty.start("north", f"{folder.name}/north.follow", films.catalog, agreed,
        ...         lambda release: films)
        >>> party.declare(Vocabulary.of(["a new film"]))
        1
        >>> folder.cleanup()

    Stability
        Provisional: names may still change in 0.x.
    """

    def __init__(
        self,
        name: str,
        path: str | Path,
        agreement: FollowAgreement,
        supply: Supply,
        *,
        ledger: Ledger | None = None,
        keeper: Line | None = None,
        random: PrivacyRandom | None = None,
    ) -> None:
        super().__init__(name, agreement.run, agreement.noise, ledger, keeper, random)
        self.agreement, self.path = agreement, Path(path)
        self._supply = supply
        self._year = YearFile(path)
        _refuse_other(self._year.read(), agreement)

    @classmethod
    def start(
        cls,
        name: str,
        path: str | Path,
        items: Vocabulary,
        agreement: FollowAgreement,
        supply: Supply,
        *,
        dataset: str | None = None,
        ledger: Ledger | None = None,
        keeper: Line | None = None,
        random: PrivacyRandom | None = None,
    ) -> Self:
        """Pay for the whole year in the party's own ledger, write its state, and return the party.

        Raises:
            PrivacyError: The ledger has a cost of this run for this party. Its users would enter again.
        """
        what = _called(agreement, name)
        if ledger is not None and not Path(path).exists():
            _refuse_again(ledger, what, agreement.run)
        terms = YearTerms(
            settings=agreement.settings,
            facts=replace(agreement.facts, n_items=len(items)),
            shares=agreement.noise.least_parties,
            run=agreement.run,
            assumes=agreement.assumes(),
            what=what,
        )
        begin(path, items, terms, name=dataset or name, ledger=ledger)
        return cls(name, path, agreement, supply, ledger=ledger, keeper=keeper, random=random)

    def declare(self, items: Vocabulary) -> int:
        """Declare items that are new, as all members do between two releases, in the same order.

        Returns how many of them are new.

        From then on releases are made for the wider catalog only; what was released before is still answered
        as it was. With shared noise let the coordinator declare first: it rejects while a release that other
        parties answered waits for this one.
        """
        with self._year.writing() as (state, before):
            return declare(state, before, items).facts.n_items - before.facts.n_items

    def erase(self, user: str | int) -> int:
        """Stop adding a user's ratings from the next release on; return how many were taken out."""
        return Following(self.path).erase(user)

    @property
    def _chain(self) -> Chain:
        return self._year.read().chain

    @property
    def _counted(self) -> str:
        return _called(self.agreement, self.name)

    def _kept(self, question: Message) -> Kept | None:
        found = self._year.read()
        catalog = self._catalog(question, found)
        if question.step > len(found.releases):
            raise Refused(Refusal.WRONG_ROUND)
        return self._sealed(question, found, len(catalog)) if question.step < len(found.releases) else None

    def _draw(self, question: Message) -> Kept:
        """Enter what is new and draw a release, or do nothing: a release without what is new is never made.

        It would say that someone's rows failed, by everyone's being away. A transaction that failed is
        undone, and no one has seen what was drawn in it.
        """
        self._require_current(question)
        data = self._supply(question.step)
        with self._year.writing() as (state, found):
            # Another process may have made it since.
            if len(found.releases) == question.step:
                # If items were declared since, a release of them answers another question.
                self._catalog(question, found)
                data = data.usable(found.catalog, found.facts) if isinstance(data, RatingColumns) else data
                check_kind(data)
                found = assume(state, found, data)
                given = batches(data, found.catalog, found.facts, drop_unknown=True)
                make_release(state, found, given, self._random)
        kept = self._kept(question)
        assert kept is not None
        return kept

    def _catalog(self, question: Message, found: OpenYear) -> Vocabulary:
        """Return the catalog of a question, or raise: the present one, or that of a release made then.

        A question that was answered before items were declared gets the same bytes after it.
        """
        try:
            self.agreement.check_question(question, found.catalog)
            return found.catalog
        except Refused as error:
            if error.reason != Refusal.WRONG_NAMES or not 0 <= question.step < len(found.releases):
                raise
        earlier = found.catalog_at(question.step)
        self.agreement.check_question(question, earlier)
        return earlier

    def _sealed(self, question: Message, found: OpenYear, n_items: int) -> Kept:
        """Return a release as it was drawn, behind a mask where the noise is shared."""
        kept, settings = found.releases[question.step], self.agreement.settings
        # Items that came later have no numbers in it.
        arrays: dict[str, npt.NDArray[Any]] = {"counts": kept.drawn.counts[:n_items]}
        if self.agreement.rated:
            arrays |= {"values": kept.drawn.values[:n_items], "level": kept.drawn.level}
        stated = self.agreement.deviations(question, settings.epsilon, settings.delta)
        fields: dict[str, Value] = {f"noise {name}": stated[name] for name in arrays}
        fields |= {
            "epsilon": settings.epsilon,
            "delta": settings.delta,
            "simulated": any(one.simulated for one in found.releases),
            "question": question.digest,
            CHAIN: str(found.chain.place(question.step + 1)),
        }
        noise, key = self.agreement.noise, None
        if isinstance(noise, SharedNoise):
            drawn = {name: one.view(np.uint64) for name, one in arrays.items()}
            # A sum over fewer would have less noise once those who may reveal theirs are among them.
            behind = hidden(drawn, found.secret, question.digest, noise.parties)
            key = replace(question, kind="key", sender=self.name, fields=behind.sealed)
            arrays, fields["key"] = {**behind.arrays}, behind.fingerprint
        return Kept(replace(question, sender=self.name, fields=fields, arrays=arrays), key)


def _called(agreement: FollowAgreement, name: str) -> str:
    """Return how a ledger calls a party's part in a run."""
    return f"follow, run {agreement.run} as {name}"


def _refuse_again(ledger: Ledger, what: str, run: str) -> None:
    """Reject to begin a run that the ledger states was begun, under whatever name of the data.

    A year that failed to begin has no state, so nothing was answered in it.
    """
    begun = [entry for entry in ledger.entries() if entry.what == what]
    if any(entry.state is not EntryState.FAILED for entry in begun):
        raise StateMissing(run=run)


def _refuse_other(found: OpenYear, agreement: FollowAgreement) -> None:
    """Raise `OtherAgreement` for a state of another run, or with other settings."""
    here = (found.run, found.settings, found.shares, found.facts.low, found.facts.high, found.facts.step)
    facts = agreement.facts
    there = (agreement.run, agreement.settings, agreement.noise.least_parties, facts.low, facts.high)
    if here != (*there, facts.step):
        raise OtherAgreement(run=found.run)
