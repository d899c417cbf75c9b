"""Parties that follow a year together: one release a question, drawn once, from entry books of their own."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from discreet.core.checks import BudgetError
from discreet.core.errors import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.federated import InProcess, Keeper, OwnNoise, SharedNoise, asking
from discreet.federated import party as answering
from discreet.federated.keeper import SumStep, ask_masks
from discreet.federated.masks import set_token
from discreet.federated.wire import decode, encode
from discreet.follow import FollowAgreement, FollowCoordinator, Following, FollowParty, FollowSettings
from discreet.follow import entries as entry_book
from discreet.follow.coordinator import completed
from discreet.follow.settings import RELEASE_BITS, Pace
from discreet.privacy import continual as drawing
from discreet.privacy.guarantee import Assumption, Fact, Kind, reading_of
from discreet.privacy.ledger.ledger import Ledger
from discreet.report.guarantee_wording import WEAKEST_PARTY
from discreet.testing import refuses
from followed_years import CHOICES, ITEMS, STARS, Recorder, batch, weeks

NAMES = ("north", "east", "south")
SETTINGS = FollowSettings(releases=6, epsilon=2.0, half_life=7.0, days=42.0)
OWN = FollowAgreement(run="spring", settings=SETTINGS, facts=STARS, noise=OwnNoise())
SHARED = replace(OWN, noise=SharedNoise(parties=3, missing=1))


def part(one, number):
    """Return the rows of every third user: each user is at one party."""
    own = [user for user in one.users.ids.tolist() if int(user[1:]) % 3 == number]
    return one.select_users(np.flatnonzero(np.isin(one.users.ids, own)))


def founded(folder, agreement=OWN, given=None, names=NAMES, random=None, **more):
    """Return parties with new states, and the keeper of their masks."""
    given, noise = weeks(6) if given is None else given, agreement.noise
    folder.mkdir(exist_ok=True)
    keeper = Keeper(roster=list(names), least=noise.least_parties) if noise.masked else None
    parties = {
        name: FollowParty.start(
            name,
            folder / f"{name}.follow",
            ITEMS,
            agreement,
            lambda release, number=number: part(given[release], number),
            keeper=keeper,
            random=PrivacyRandom.simulate(number) if random is None else random,
            **more,
        )
        for number, name in enumerate(names)
    }
    return parties, keeper


def coordinated(parties, keeper=None, agreement=OWN, endpoints=None, **more):
    ask = endpoints or {name: party.answer for name, party in parties.items()}
    return FollowCoordinator(
        agreement, InProcess(ask), parties=list(parties), catalog=ITEMS, keeper=keeper, simulated=True, **more
    )


def arrays(model):
    return {name: array.tolist() for name, array in model.scorer.arrays().items()}


@pytest.mark.few(1)
@pytest.mark.parametrize("agreement", [OWN, SHARED], ids=["own noise", "shared noise"])
def test_without_noise_parties_are_one_holder_bit_by_bit(tmp_path, monkeypatch, agreement):
    monkeypatch.setattr(drawing, "add_discrete_gaussian", lambda *given: None)
    parties, keeper = founded(tmp_path, agreement)
    coordinator = coordinated(parties, keeper, agreement)
    alone = Following.start(tmp_path / "alone.follow", ITEMS, STARS, SETTINGS)
    for one in weeks(3):
        together = coordinator.release(kind="popularity")
        added = alone.add(one, kind="popularity", random=PrivacyRandom.simulate(0))
        assert arrays(together.model) == arrays(added.model)
    assert together.counted == NAMES and not together.left_out and together.release == 3
    assert together.model.guarantee.notes[0] == "release 3 of 6" and together.model.guarantee.simulated
    # The twin: a party whose sums were lost is noticed.
    lost, keeper = founded(tmp_path / "lost", agreement)
    lost["east"]._supply = lambda release: None
    other = coordinated(lost, keeper, agreement).release(kind="popularity").model
    assert arrays(other) != arrays(alone.model(kind="popularity"))


def asked(party, question):
    return decode(party.answer(encode(question)))


def test_a_repeated_question_gets_the_stored_answer(tmp_path):
    parties, _ = founded(tmp_path, names=("north",), random=PrivacyRandom.from_os())
    north, question = parties["north"], OWN.question(0, ITEMS)
    first = north.answer(encode(question))
    assert decode(first).kind == "release" and decode(first).arrays["counts"].dtype == np.int64
    again = FollowParty("north", north.path, OWN, north._supply)
    assert first == north.answer(encode(question)) == again.answer(encode(question))
    second = north.answer(encode(OWN.question(1, ITEMS)))
    assert second != first and north.answer(encode(question)) == first
    # The twin: a state that was set back draws another answer, if no ledger knows of the first one.
    kept = north.path.read_bytes()
    third = asked(north, OWN.question(2, ITEMS))
    north.path.write_bytes(kept)
    assert asked(north, OWN.question(2, ITEMS)).fields["reason"] == "behind"
    redrawn = asked(FollowParty("north", north.path, OWN, north._supply), OWN.question(2, ITEMS))
    assert not np.array_equal(third.arrays["counts"], redrawn.arrays["counts"])


def test_a_question_chooses_nothing_but_the_release(tmp_path):
    parties, _ = founded(tmp_path, names=("north",))
    north, question = parties["north"], OWN.question(0, ITEMS)
    other = FollowSettings(releases=6, epsilon=2.0, half_life=1.0, days=42.0)
    wrong = {
        "wrong run": replace(question, run="summer"),
        "wrong kind": replace(question, kind="sum"),
        "wrong sender": replace(question, sender="north"),
        "wrong version": replace(OWN, settings=other).question(0, ITEMS),
        "wrong names": OWN.question(0, Vocabulary.of(ITEMS.ids.tolist()[::-1])),
        "unknown field": replace(question, fields={**question.fields, "weight": 2.0}),
        "wrong shape": replace(question, arrays={"counts": np.zeros(3)}),
        "malformed": replace(question, step=2**31),
    }
    for reason, message in wrong.items():
        answer = asked(north, message)
        assert answer.kind == "declined" and answer.fields["reason"] == reason
    for step in (-1, 1, 5, 6, 1100):
        assert asked(north, replace(question, step=step)).fields["reason"] == "wrong round"
    assert decode(north.answer(b"junk")).fields["reason"] == "malformed"
    assert not Following(north.path).status().times
    for release in (-1, 1100, 1.5, True):
        with pytest.raises(ParameterError):
            OWN.question(release, ITEMS)
    # Own promises may differ; with shared noise all promise the same.
    cheaper = replace(SETTINGS, epsilon=1.0)
    assert replace(OWN, settings=cheaper).terms() == OWN.terms()
    assert replace(SHARED, settings=cheaper).terms() != SHARED.terms()


def hostile(folder, given):
    """Ask in every order, again and ahead, while the same pairs are supplied; return what was drawn."""
    folder.mkdir()
    greedy = replace(OWN, settings=replace(SETTINGS, pace=Pace(start=1.0, reserve=0.0)))
    recording = Recorder()
    party = FollowParty.start(
        "north",
        folder / "a.follow",
        ITEMS,
        greedy,
        lambda release: given,
        random=PrivacyRandom.recorded(1, recording),
    )
    rng = np.random.default_rng(0)
    for step in [*rng.integers(0, 8, 60).tolist(), *range(6)]:
        party.answer(encode(replace(greedy.question(0, ITEMS), step=step)))
    assert len(Following(party.path).status().times) == 6 and len(recording.given) == 18
    return recording.given


def apart(folder):
    rows = [(f"u{k}", f"i{k}", 3) for k in range(5)]
    target = [("target", f"i{k}", 1) for k in range(12)]
    here, gone = hostile(folder / "with", batch([*rows, *target])), hostile(folder / "without", batch(rows))
    squares = sum(int(x) ** 2 for one, two in zip(here, gone, strict=True) for x in one - two)
    return math.sqrt(squares) / 2**RELEASE_BITS


def test_no_order_of_questions_lets_a_pair_enter_twice(tmp_path, monkeypatch):
    (tmp_path / "honest").mkdir()
    assert 0.9 < apart(tmp_path / "honest") <= 1
    honest = entry_book._earlier

    def forgets(*given):
        return entry_book.Earlier(*(np.zeros_like(column) for column in honest(*given)))

    monkeypatch.setattr(entry_book, "_earlier", forgets)
    (tmp_path / "twin").mkdir()
    assert apart(tmp_path / "twin") > 2


def test_no_row_decides_whether_there_is_an_answer(tmp_path):
    """Ratings that are no numbers, or of undeclared items, change nothing about there being an answer."""
    wide = batch([("u0", "new", 5), ("u0", "i1", 5)], replace(STARS, n_items=2), Vocabulary.of(["i1", "new"]))
    broken = batch([("u0", "i1", 5)]).with_values(np.array([np.nan]), STARS)
    supplied = [broken, wide, batch([("u0", "i2", 4)])]
    path = tmp_path / "a.follow"
    party = FollowParty.start("north", path, ITEMS, OWN, lambda release: supplied[release])
    for release in range(3):
        assert asked(party, OWN.question(release, ITEMS)).kind == "release"
    from discreet.follow.state import opened

    with opened(path, writing=False) as state:
        found = [(release, block.items.tolist()) for release, block in state.entries()]
    assert found == [(1, [1, -1]), (2, [2])]


def test_a_party_that_was_away_catches_up(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "add_discrete_gaussian", lambda *given: None)
    parties, _ = founded(tmp_path)
    away = {"east"}

    def ask(name):
        def answer(raw):
            if name in away:
                raise OSError("away")
            return parties[name].answer(raw)

        return answer

    coordinator = coordinated(parties, endpoints={name: ask(name) for name in parties})
    first = coordinator.release(kind="popularity")
    assert first.left_out == {"east": "silent"} and first.counted == ("north", "south")
    second = coordinator.release(kind="popularity")
    away.clear()
    third = coordinator.release(kind="popularity")
    assert third.counted == NAMES and first.left_out and not third.left_out
    everybody = [model.scorer.part("popularity").sum() for model in (second.model, third.model)]
    assert everybody[1] > everybody[0]
    away |= set(NAMES)
    with refuses("too-few-answers", what="release 4", absent=tuple(sorted(NAMES))):
        coordinator.release()
    # What a party missed is taken as nothing new: its estimates are those from what it released.
    rows = np.random.default_rng(0).integers(-(2**50), 2**50, (3, 4))
    plan = SETTINGS.counts(rated=False)
    for half_life in (None, 1.0):
        faded = 1.0 if half_life is None else 0.5 ** (2 / half_life)
        wanted = faded * (plan.estimator(3, half_life) @ rows)
        assert np.allclose(
            plan.estimator(5, half_life) @ completed(plan, rows, 5), wanted, rtol=1e-9, atol=64
        )


def test_a_coordinator_goes_on_from_its_file(tmp_path):
    parties, _ = founded(tmp_path)
    coordinator = coordinated(parties, state=tmp_path / "coordinator.state")
    first = coordinator.release().model
    coordinator._journal.close()
    again = coordinated(parties, state=tmp_path / "coordinator.state")
    assert again.made == 1 and arrays(again.model()) == arrays(first)
    again.declare(Vocabulary.of(["new"]))
    for party in parties.values():
        party.declare(Vocabulary.of(["new", "i1"]))
    assert again.release().model.facts.n_items == len(ITEMS) + 1
    for _ in range(4):
        again.release()
    with refuses("period-used-up"):
        again.release()


def test_shared_noise_leaves_behind_masks_and_waits_for_all(tmp_path):
    parties, keeper = founded(tmp_path, SHARED, random=PrivacyRandom.from_os())
    away, seen = {"south"}, []

    def ask(name):
        def answer(raw):
            if name in away:
                raise OSError("away")
            seen.append(parties[name].answer(raw))
            return seen[-1]

        return answer

    coordinator = coordinated(parties, keeper, SHARED, {name: ask(name) for name in parties})
    with refuses("too-few-answers", absent=("south",), least=3):
        coordinator.release()
    # Other items would make another question of this release, which the keeper has no second key for.
    with refuses("release-incomplete", release=1):
        coordinator.declare(Vocabulary.of(["new"]))
    assert coordinator.catalog == ITEMS
    away.clear()
    found = coordinator.release()
    assert found.model.guarantee.is_private and found.counted == NAMES
    # Asked again, parties sent the same bytes.
    assert seen[:2] == seen[2:4]
    # Behind a mask numbers are anywhere modulo 2^64: the chance that all 72 are small is below 2^-200.
    masked = np.concatenate([decode(one).arrays[name] for one in seen[2:] for name in ("counts", "values")])
    assert masked.dtype == np.uint64 and (masked > 2**60).any()
    # Another question for the same release would get another mask, and the keeper takes no second key.
    for party in parties.values():
        party.declare(Vocabulary.of(["new"]))
    wider = Vocabulary.of([*ITEMS.ids.tolist(), "new"])
    coordinator.declare(Vocabulary.of(["new"]))
    assert coordinator.catalog == wider and coordinator.release().release == 2
    assert asked(parties["north"], SHARED.question(0, wider)).fields == {"reason": "declined"}
    # A share is never shown alone.
    alone = Following(parties["north"].path)
    assert alone.status().noise is None
    for show in (alone.model, alone.current, lambda: alone.add(None)):
        with refuses("share-not-shown"):
            show()


def test_masks_of_fewer_than_all_parties_are_never_revealed(tmp_path, monkeypatch):
    question = SHARED.question(0, ITEMS)

    def revealed(folder, names):
        parties, keeper = founded(folder, SHARED)
        answers = [asked(one, question) for one in parties.values()]
        size = sum(array.size for array in answers[0].arrays.values())
        digest = question.digest
        tokens = {name: set_token(handed[name], digest, names) for name in names if name in handed}
        masks = ask_masks(
            keeper, SumStep(question.run, question.step, digest), list(names), size, tokens=tokens
        )
        return isinstance(masks, np.ndarray)

    handed = {}

    assert revealed(tmp_path / "all", NAMES)
    with refuses("sum-not-revealed"):
        revealed(tmp_path / "few", NAMES[:2])
    # The twin: two are enough if parties ask for as many as must keep their noise; one of them may tell.
    honest = answering.hand_key

    def modest(line, message):
        handed[message.sender] = bytes.fromhex(message.fields["key"])
        honest(line, replace(message, fields={**message.fields, "least": SHARED.noise.least_parties}))

    monkeypatch.setattr(answering, "hand_key", modest)
    assert revealed(tmp_path / "twin", NAMES[:2])


def test_shares_add_up_to_the_noise(tmp_path):
    for shares in (1, 2, 7, 1000):
        width = SETTINGS.share_width(shares)
        assert shares * (width**2 - 4) >= (SETTINGS.multiplier * 2**RELEASE_BITS) ** 2
    # The twin: a share of one party more is not enough.
    for few, many in pairwise((2, 3, 8)):
        width = SETTINGS.share_width(many)
        assert few * (width**2 - 4) < (SETTINGS.multiplier * 2**RELEASE_BITS) ** 2


def test_every_party_pays_its_own_year(tmp_path):
    ledger = Ledger.open(tmp_path / "north.ledger")
    parties, _ = founded(tmp_path, names=("north",), ledger=ledger, dataset="shop")
    for release in range(3):
        asked(parties["north"], OWN.question(release, ITEMS))
    assert ledger.spent("shop").epsilon == 2.0 and len(ledger.entries()) == 1
    ledger.set_budget("shop", SETTINGS.promise(STARS))
    with pytest.raises(BudgetError):
        founded(tmp_path / "b", names=("b",), ledger=ledger, dataset="shop")
    for other in (replace(OWN, run="summer"), SHARED, replace(OWN, facts=CHOICES)):
        with refuses("other-agreement", run="spring"):
            FollowParty("north", parties["north"].path, other, lambda release: None, keeper=lambda raw: raw)
    with refuses("broken-rule", name="keeper"):
        FollowParty("north", parties["north"].path, SHARED, lambda release: None)


def test_promises_that_differ_are_labeled_by_the_weakest(tmp_path):
    strict = replace(OWN, settings=replace(SETTINGS, epsilon=0.5))
    ours, _ = founded(tmp_path, names=("north",))
    theirs = FollowParty.start("east", tmp_path / "e.follow", ITEMS, strict, lambda release: None)
    agreed = {"east": (0.5, 1e-6)}
    found = coordinated({**ours, "east": theirs}, promises=agreed).release()
    model = found.model
    assert found.counted == ("north", "east")
    assert model.guarantee.epsilon == 2.0 and model.guarantee.proof == "proofs/follow.md"
    assert WEAKEST_PARTY in model.guarantee.notes


def test_promises_that_were_not_agreed_on_are_refused_before_they_are_kept(tmp_path, monkeypatch):
    ours, _ = founded(tmp_path, names=("north", "east"))
    stated = {}

    def lying(raw):
        answer = decode(ours["east"].answer(raw))
        return encode(replace(answer, fields={**answer.fields, **stated}))

    def coordinator(name):
        ask = {"north": ours["north"].answer, "east": lying}
        return coordinated(ours, endpoints=ask, state=tmp_path / name)

    here = coordinator("here")
    wrong = [("inf", 1e-6), (1e6, 1e-6), (33.0, 1e-6), (2.0, 0.0), (2.0, 1e-300)]
    for release, (epsilon, delta) in enumerate(wrong, start=1):
        stated.update(epsilon=epsilon, delta=delta)
        found = here.release()
        assert found.release == release and found.left_out == {"east": "wrong guarantee"}
    # Nothing of it was kept, so the party is back once it says what it is held to.
    stated.clear()
    last = here.release()
    assert last.counted == ("north", "east") and last.model.guarantee.epsilon == 2.0
    # The twin: what is kept unseen breaks this release and all later ones.
    monkeypatch.setattr(asking, "_check_terms", lambda *given: None)
    stated.update(epsilon=33.0)
    there = coordinator("there")
    for _ in range(2):
        with refuses("out-of-range", name="epsilon", value=33.0, most=32.0):
            there.release()


def test_how_a_party_read_its_ratings_is_assumed_of_all_labels(tmp_path):
    given = [one.with_facts(replace(one.facts, layout="UTF-8, comma", rows="event=buy")) for one in weeks(6)]
    parties, _ = founded(tmp_path / "a", given=given)
    together = coordinated(parties).release().model.guarantee
    assert Assumption.of(Kind.PARTY, Fact.ROWS) in together.assumes
    # No party may write onto the label of all; its own states how its files were read.
    assert Fact.LAYOUT not in {one.fact for one in together.assumes}
    own = Following(parties["north"].path).status().guarantee
    assert set(reading_of(given[0].facts)) <= set(own.assumes)
