"""Members that were restored from older copies: no answer is drawn twice, no mask is used twice.

A run is recorded with a copy of every member's files at every moment. Then one member continues from a copy
of an earlier moment, while the coordinator, honest or hostile, asks on.
"""

import os
import shutil
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.federated import masks
from discreet.federated.errors import FederationError
from discreet.federated.journal import Journal
from discreet.federated.keeper import Keeper, SumStep, ask_masks
from discreet.federated.masks import mask_key
from discreet.federated.party import Party
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.wire import decode, encode, places_to_field
from discreet.privacy.guarantee import Fact, Kind
from discreet.privacy.ledger.chain import Anchor
from discreet.privacy.ledger.ledger import Ledger
from federation import RUN, coordinator, shared_sums, toy_parts

DATA, PARTS = toy_parts(parties=3)
OWN = SummedStatistics(epsilon=30.0, delta=1e-5, rounds=8)
SHARED = shared_sums(DATA, delta=1e-5, parties=3, missing=1)
# All points are tried in slow tests; a few of them always.
POINTS, FEW = 50, 3
at_points = pytest.mark.parametrize("count", [FEW, pytest.param(POINTS, marks=pytest.mark.slow)])


class Federation:
    """Members with files in a folder, who can be closed, copied and started again."""

    def __init__(self, folder, protocol):
        self.folder, self.protocol = folder, protocol
        folder.mkdir(parents=True, exist_ok=True)
        self.questions = []
        self.moments = 0
        self.drawn = []
        self.start()

    def start(self):
        self.keeper_journal = Journal(self.folder / "keeper.state") if self.protocol.noise.masked else None
        self.keeper = (
            Keeper(roster=list(PARTS), least=2, run=RUN, journal=self.keeper_journal)
            if self.protocol.noise.masked
            else None
        )
        self.parties = {name: self.party(name) for name in PARTS}

    def party(self, name):
        return Party(
            name,
            PARTS[name],
            self.protocol,
            run=RUN,
            ledger=Ledger.open(self.folder / f"{name}.ledger"),
            state=self.folder / f"{name}.state",
            random=PrivacyRandom.from_os(),
            keeper=None if self.keeper is None else self.line,
        )

    def line(self, raw):
        """Pass on a message to the keeper, and copy everything before and after it."""
        self.copy()
        reply = self.keeper(raw)
        self.copy()
        return reply

    def copy(self):
        into = self.folder.parent / f"{self.folder.name}-{self.moments}"
        into.mkdir()
        for file in self.folder.iterdir():
            shutil.copyfile(file, into / file.name)
        self.moments += 1

    def endpoint(self, name):
        def answer(raw):
            self.copy()
            self.questions.append((name, raw))
            reply = self.parties[name].answer(raw)
            self.copy()
            return reply

        return answer

    def run(self, until=None):
        endpoints = {name: self.endpoint(name) for name in PARTS}
        line = None if self.keeper is None else self.line
        options = {"keeper": line, "state": self.folder / "coordinator.state"}
        self.leader = coordinator(self.protocol, endpoints, DATA.catalog, **options)
        return self.leader.train(DATA.facts)

    def close(self):
        for party in self.parties.values():
            party.close()
        if self.keeper_journal is not None:
            self.keeper_journal.close()
        if hasattr(self, "leader"):
            self.leader._journal.close()

    def restore(self, moment, *files):
        """Replace files by their copies from an earlier moment; those that did not exist then are deleted."""
        self.close()
        for file in files:
            copied = self.folder.parent / f"{self.folder.name}-{moment}" / file
            (self.folder / file).unlink(missing_ok=True)
            if copied.exists():
                shutil.copyfile(copied, self.folder / file)
        self.start()


@pytest.fixture(scope="module", autouse=True)
def without_syncing():
    """Files are copied by this process, so nothing here needs them on the disk."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="module", params=[OWN, SHARED], ids=["own noise", "shared noise"])
def recorded(request, tmp_path_factory):
    """Return a finished run, of which every moment was copied."""
    federation = Federation(tmp_path_factory.mktemp("run") / "run", request.param)
    federation.outcome = federation.run()
    assert federation.outcome.left_out == {} and federation.moments >= POINTS
    federation.close()
    return federation


def again(recorded, folder):
    """Return a copy of a finished run to continue with."""
    shutil.copytree(recorded.folder, folder)
    for moment in range(recorded.moments):
        (folder.parent / f"{folder.name}-{moment}").symlink_to(
            recorded.folder.parent / f"{recorded.folder.name}-{moment}"
        )
    federation = Federation(folder, recorded.protocol)
    federation.moments = recorded.moments
    return federation


def points(recorded, count):
    return sorted(np.random.default_rng(46).choice(recorded.moments, count, replace=False).tolist())


def hostile_questions(recorded, name):
    """Yield what a hostile coordinator asks a restored party: old questions, and new ones at new steps."""
    asked = [decode(raw) for who, raw in recorded.questions if who == name]
    for question in asked:
        bare = {field: value for field, value in question.fields.items() if field != "chains"}
        yield question
        yield replace(question, fields=bare)
        if question.kind != "confirm":
            yield replace(question, step=question.step + 100, fields=bare)


@pytest.mark.few(1)
@at_points
def test_a_restored_party_draws_nothing_again(recorded, tmp_path, count):
    """Only the party's journal is restored; the coordinator is hostile and states no chains."""
    whole = again(recorded, tmp_path / "whole")
    truth = {raw: whole.parties["p1"].answer(raw) for who, raw in recorded.questions if who == "p1"}
    whole.close()
    late = declined = 0
    for point in points(recorded, count):
        federation = again(recorded, tmp_path / f"at{point}")
        entries = len(federation.parties["p1"]._ledger.entries())
        federation.restore(point, "p1.state")
        party = federation.parties["p1"]
        kept = {(one.step, one.kind) for one in party._own()}
        for question in hostile_questions(recorded, "p1"):
            raw = encode(question)
            answer = party.answer(raw)
            if decode(answer).kind == "declined":
                declined += 1
            else:
                # What is still known is repeated bit by bit.
                assert (question.step, question.kind) in kept and answer == truth[raw]
        lost = party._chain.latest != Anchor.parse(str(party._ledger.anchor(party._counted)))
        if lost:
            late += 1
            fresh = replace(decode(recorded.questions[0][1]), step=77)
            assert decode(party.answer(encode(fresh))).fields["reason"] == "behind"
        assert len(party._ledger.entries()) == entries
        federation.close()
    assert late >= count // 2 and declined > count


@at_points
def test_a_restored_party_and_ledger_are_noticed_by_the_others(recorded, tmp_path, caplog, count):
    """The party's whole folder is restored: the keeper knows more or, with own noise, the coordinator."""
    noticed, last = 0, [decode(raw) for who, raw in recorded.questions if who == "p1"]
    last = max((one for one in last if one.kind != "confirm"), key=lambda one: one.step)
    fields = {**last.fields, "chains": places_to_field(recorded.outcome.rounds[-1].chains)}
    if recorded.protocol.noise.masked:
        # A hostile coordinator keeps to itself what it knows. The keeper does not.
        del fields["chains"]
    for point in points(recorded, count):
        federation = again(recorded, tmp_path / f"at{point}")
        federation.restore(point, "p1.state", "p1.ledger")
        party = federation.parties["p1"]
        if not any(one.step == last.step for one in party._answers()):
            caplog.clear()
            answer = decode(party.answer(encode(replace(last, fields=fields, step=last.step + 1))))
            assert answer.fields["reason"] == "behind" and "older copy" in caplog.text
            noticed += 1
        federation.close()
    assert noticed >= count // 2


@pytest.mark.few(1)
@at_points
def test_a_restored_keeper_reveals_no_second_set(recorded, tmp_path, count):
    if not recorded.protocol.noise.masked:
        pytest.skip("there is no keeper")
    tried = 0
    names, asked = list(PARTS), [decode(raw) for _, raw in recorded.questions]
    for point in points(recorded, count):
        federation = again(recorded, tmp_path / f"at{point}")
        federation.restore(point, "keeper.state")
        for question in asked:
            if question.kind == "confirm":
                continue
            # Parties repeat their answers, and hand their keys again.
            for name in names:
                assert decode(federation.parties[name].answer(encode(question))).kind == question.kind
            for some in (names[:2], names[1:], names[::2]):
                confirm = replace(
                    question,
                    kind="confirm",
                    arrays={},
                    fields={
                        "settings": question.fields["settings"],
                        "shared": question.fields["shared"],
                        "names": str(some).replace("'", '"'),
                        "question": question.digest,
                    },
                )
                found = {name: decode(federation.parties[name].answer(encode(confirm))) for name in some}
                tokens = {name: str(one.fields.get("token")) for name, one in found.items()}
                with pytest.raises(FederationError):
                    result = ask_masks(
                        federation.keeper,
                        SumStep(RUN, question.step, question.digest),
                        some,
                        8,
                        tokens=tokens,
                    )
                    if isinstance(result, frozenset):
                        raise FederationError("a set that was confirmed before")
                tried += 1
        federation.close()
    assert tried >= 3 * count


@pytest.mark.few(1)
def test_the_twin_a_keeper_without_confirmed_sets_reveals_two(recorded, tmp_path, monkeypatch):
    """Proof that the test above can fail: the same attack on a keeper that asks nobody."""
    if not recorded.protocol.noise.masked:
        pytest.skip("there is no keeper")
    monkeypatch.setattr(Keeper, "_confirmed", lambda *given: True)
    federation = again(recorded, tmp_path / "twin")
    federation.restore(0, "keeper.state")
    question = decode(recorded.questions[0][1])
    for name in PARTS:
        federation.parties[name].answer(encode(question))
    some = list(PARTS)[:2]
    assert ask_masks(federation.keeper, SumStep(RUN, 0, question.digest), some, 8).size == 8
    federation.close()


@pytest.mark.few(1)
@at_points
def test_a_restored_coordinator_continues_or_says_for_whom_it_waits(recorded, tmp_path, count):
    finished = 0
    for point in points(recorded, count):
        federation = again(recorded, tmp_path / f"at{point}")
        counts = {name: len(party._own()) for name, party in federation.parties.items()}
        federation.restore(point, "coordinator.state")
        try:
            federation.run()
            finished += 1
        except FederationError as error:
            assert "esume" in str(error) or "new run" in str(error)
        # Nobody drew anything again.
        assert {name: len(party._own()) for name, party in federation.parties.items()} == counts
        federation.close()
    assert finished >= count // 2


def test_the_label_states_what_is_assumed_about_older_copies(recorded):
    """With own noise nobody else surely remembers, and the label assumes more."""
    masked = recorded.protocol.noise.masked
    stated = [one.fact for one in recorded.outcome.model.guarantee.assumes if one.kind is Kind.BACKUP]
    assert stated == [Fact.MEMBERS if masked else Fact.PARTY_AND_LEDGER]


def test_without_a_keeper_a_party_and_ledger_restored_together_draw_again(recorded, tmp_path):
    """The limit that the label states: the coordinator is hostile, and states no chains."""
    if recorded.protocol.noise.masked:
        pytest.skip("the keeper remembers")
    federation = again(recorded, tmp_path / "both")
    raw = next(raw for who, raw in recorded.questions if who == "p1")
    first = federation.parties["p1"].answer(raw)
    federation.restore(0, "p1.state", "p1.ledger")
    second = federation.parties["p1"].answer(raw)
    federation.close()
    assert decode(second).kind == decode(first).kind == "votes" and first != second


def test_a_mask_depends_on_the_question_and_on_the_answer():
    secret, first = bytes(32), {"x": np.arange(3, dtype=np.uint64)}
    key = mask_key(secret, "q", first)
    others = [
        mask_key(secret, "other", first),
        mask_key(secret, "q", {"x": np.arange(3, dtype=np.uint64) + np.uint64(1)}),
        mask_key(secret, "q", {"y": np.arange(3, dtype=np.uint64)}),
        mask_key(secret, "q", {"x": np.arange(3, dtype=np.uint64).reshape(1, 3)}),
        mask_key(bytes([1] * 32), "q", first),
    ]
    assert mask_key(secret, "q", first) == key and len({key, *others}) == 6


def test_a_clone_with_the_same_randomness_never_reuses_a_mask(tmp_path, monkeypatch):
    """A machine that was cloned draws the same bytes: with other data behind them the mask differs, too."""
    seen = []
    honest = masks.masked

    def watching(arrays, key):
        seen.append((key, {name: array.tobytes() for name, array in arrays.items()}))
        return honest(arrays, key)

    monkeypatch.setattr("discreet.federated.masks.masked", watching)
    question = None
    for number, data in enumerate((PARTS["p0"], PARTS["p1"])):
        party = Party(
            "p0",
            data,
            SHARED,
            run=RUN,
            state=tmp_path / f"{number}.state",
            random=PrivacyRandom.simulate(1),
            keeper=Keeper(roster=list(PARTS), least=2),
        )
        if question is None:
            leader = coordinator(SHARED, dict.fromkeys(PARTS), DATA.catalog, keeper=lambda raw: raw)
            with closing(SHARED.begin(len(DATA.catalog))) as run:
                question = leader._question((), run)
        assert decode(party.answer(encode(question))).kind == "sum"
    (one, first), (two, second) = seen
    assert first != second and one != two
