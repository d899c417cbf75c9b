"""Followed years with a party that lies, and with members that were restored from older copies."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.federated import InProcess, Keeper, OwnNoise, SharedNoise
from discreet.federated.errors import ImpossibleSum
from discreet.federated.journal import Journal
from discreet.federated.masks import masked
from discreet.federated.wire import Refusal, decode, encode
from discreet.follow import FollowAgreement, FollowCoordinator, FollowParty, FollowSettings
from discreet.follow import coordinator as coordinators
from discreet.follow.settings import RELEASE_BITS
from discreet.privacy.ledger.ledger import Ledger
from discreet.testing import refuses
from followed_years import CHOICES, ITEMS, STARS, weeks

NAMES = ("north", "east", "south")
SETTINGS = FollowSettings(releases=6, epsilon=2.0, half_life=7.0, days=42.0)
OWN = FollowAgreement(run="spring", settings=SETTINGS, facts=STARS, noise=OwnNoise())
SHARED = replace(OWN, noise=SharedNoise(parties=3, missing=1))
AGREEMENTS = {
    "own": OWN,
    "shared": SHARED,
    "own choices": replace(OWN, facts=CHOICES),
    "shared choices": replace(SHARED, facts=CHOICES),
    "own, users declared": replace(OWN, facts=replace(STARS, n_users=30)),
    "shared, users declared": replace(SHARED, facts=replace(STARS, n_users=30)),
}
ONE = 1 << RELEASE_BITS
# All points are tried in a slow test; a few of them always.
POINTS, FEW = 50, 5


def part(one, number, facts):
    own = [user for user in one.users.ids.tolist() if int(user[1:]) % 3 == number]
    rows = one.select_users(np.flatnonzero(np.isin(one.users.ids, own)))
    return rows if facts.low != facts.high else rows.without_ratings()


class Year:
    """Parties that follow a year, with their states and ledgers in a folder."""

    def __init__(self, folder, agreement, given=None):
        self.folder, self.agreement = folder, agreement
        folder.mkdir(parents=True, exist_ok=True)
        self.given = weeks(6) if given is None else given
        self.start()

    def start(self):
        shared = self.agreement.noise.masked
        self.journal = Journal(self.folder / "keeper.state") if shared else None
        self.keeper = Keeper(roster=list(NAMES), least=2, journal=self.journal) if shared else None
        self.parties = {name: self.party(number, name) for number, name in enumerate(NAMES)}

    def party(self, number, name):
        path = self.folder / f"{name}.follow"
        options = {
            "ledger": Ledger.open(self.folder / f"{name}.ledger"),
            "keeper": self.keeper,
            "random": PrivacyRandom.from_os(),
        }

        def supply(release):
            return part(self.given[release], number, self.agreement.facts)

        if path.exists():
            return FollowParty(name, path, self.agreement, supply, **options)
        return FollowParty.start(name, path, ITEMS, self.agreement, supply, **options)

    def coordinator(self, **endpoints):
        ask = {name: party.answer for name, party in self.parties.items()} | endpoints
        return FollowCoordinator(
            self.agreement,
            InProcess(ask),
            parties=NAMES,
            catalog=ITEMS,
            keeper=self.keeper,
            state=self.folder / "coordinator.state",
        )

    def restore(self, copy, *files):
        if self.journal is not None:
            self.journal.close()
        for file in files:
            (self.folder / file).unlink(missing_ok=True)
            if (copy / file).exists():
                shutil.copyfile(copy / file, self.folder / file)
        self.start()


def lying(honest, lie):
    """Return an endpoint that changes the numbers of an answer, as they are without its mask."""

    def answer(raw):
        message = decode(honest(raw))
        if message.kind != "release":
            return encode(message)
        return encode(
            replace(message, arrays={name: lie(name, array) for name, array in message.arrays.items()})
        )

    return answer


def anywhere(name, array):
    rng = np.random.default_rng(46)
    return rng.integers(0, 2**64, array.size, dtype=np.uint64).view(array.dtype)


def added(amount, *names):
    def lie(name, array):
        more = np.full(array.size, amount, dtype=np.int64).view(array.dtype)
        return array + more if not names or name in names else array

    return lie


LIES = {
    "any numbers": anywhere,
    "all far below": added(-(10**6) * ONE),
    "counts below zero": added(-300 * ONE, "counts"),
    "one count below zero": lambda name, array: (
        array - (np.arange(array.size) == 3).astype(array.dtype) * array.dtype.type(300 * ONE)
    ),
    "larger than all users": added(1 << 62),
    "the smallest number": lambda name, array: array + np.full(array.size, -(2**63)).astype(array.dtype),
}
RATED_LIES = {
    "values without counts": added(10**4 * ONE, "values"),
    "values below their counts": added(-(10**4) * ONE, "values"),
    "means without users": lambda name, array: (
        array + (name == "level") * np.array([0, 10**4 * ONE] * (array.size // 2), dtype=array.dtype)
    ),
}


# Every lie is told under two agreements by default, and under all of them by `make test-slow`.
@pytest.mark.few(3)
@pytest.mark.parametrize(
    "agreement",
    [one if one in ("own", "shared") else pytest.param(one, marks=pytest.mark.slow) for one in AGREEMENTS],
)
@pytest.mark.parametrize("lie", [*LIES, *RATED_LIES])
def test_a_release_that_nobody_can_give_is_not_kept_and_its_suspects_are_named(tmp_path, agreement, lie):
    agreed = AGREEMENTS[agreement]
    if lie in RATED_LIES and not agreed.rated:
        pytest.skip("nothing is rated")
    year = Year(tmp_path, agreed)
    change = {**LIES, **RATED_LIES}[lie]
    coordinator = year.coordinator(east=lying(year.parties["east"].answer, change))
    if agreed.noise.masked:
        with pytest.raises(ImpossibleSum) as found:
            coordinator.release()
        assert found.value.suspects == tuple(sorted(NAMES))
        assert coordinator.made == 0
    else:
        released = coordinator.release()
        assert released.left_out == {"east": Refusal.OUT_OF_RANGE} and released.counted == ("north", "south")
        assert "east" not in coordinator._kept()


def test_the_twin_without_the_check_the_lie_is_published(tmp_path, monkeypatch):
    monkeypatch.setattr(FollowAgreement, "check_sums", lambda *given: None)
    year = Year(tmp_path, SHARED)
    found = year.coordinator(east=lying(year.parties["east"].answer, anywhere)).release(kind="popularity")
    assert float(np.abs(found.model.scorer.part("popularity")).max()) > 1e5


@pytest.mark.few(2)
@pytest.mark.parametrize("seeds", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("agreement", AGREEMENTS)
def test_honest_years_pass_the_check(tmp_path, agreement, seeds):
    for seed in range(seeds):
        year = Year(tmp_path / str(seed), AGREEMENTS[agreement], weeks(6, seed=seed, each=100))
        coordinator = year.coordinator()
        for _ in range(6):
            assert not coordinator.release().left_out
            # A user who was erased takes from later sums what earlier ones had.
            for party in year.parties.values():
                party.erase("u1")


STATED = [{"epsilon": 1e6}, {"epsilon": "inf"}, {"delta": 0.9}, {"epsilon": 1.0}, {"simulated": True}]


@pytest.mark.few(3)
@pytest.mark.parametrize("stated", STATED, ids=str)
@pytest.mark.parametrize("agreement", ["own", "shared"])
def test_a_guarantee_that_was_not_agreed_on_names_its_party(tmp_path, agreement, stated):
    year = Year(tmp_path, AGREEMENTS[agreement])

    def liar(raw):
        answer = decode(year.parties["east"].answer(raw))
        return encode(replace(answer, fields={**answer.fields, **stated}))

    coordinator = year.coordinator(east=liar)
    if agreement == "shared":
        with refuses("too-few-answers", absent=("east",)):
            coordinator.release()
        assert coordinator.made == 0
    else:
        found = coordinator.release()
        assert found.left_out == {"east": "wrong guarantee"} and found.model.guarantee.epsilon == 2.0


def test_an_answer_to_another_question_is_not_counted(tmp_path):
    year = Year(tmp_path, OWN)
    other = OWN.question(0, ITEMS, {"east": coordinators.Anchor(0)})

    def replays(raw):
        return encode(replace(decode(year.parties["east"].answer(encode(other))), step=decode(raw).step))

    found = year.coordinator(east=replays).release()
    assert found.left_out == {"east": "wrong question"}


@pytest.mark.few(1)
@pytest.mark.parametrize("points", [FEW, pytest.param(POINTS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("agreement", ["own", "shared"])
def test_a_restored_following_party_draws_nothing_again(tmp_path, agreement, points, caplog):
    """At moments of a year the party's state is restored, alone or with its ledger."""
    year = Year(tmp_path / "year", AGREEMENTS[agreement])
    leader, moments = year.coordinator(), []
    for number in range(6):
        # Ten copies or so for each release: before, between and after the parties' answers.
        for when in range(3):
            copy = tmp_path / f"copy {number} {when}"
            shutil.copytree(year.folder, copy)
            moments.append((number, copy))
            if when == 1:
                leader.release()
    leader._journal.close()
    behind, rng = 0, np.random.default_rng(46)
    for _ in range(points):
        number, copy = moments[rng.integers(len(moments))]
        files = [["east.follow"], ["east.follow", "east.ledger"]][rng.integers(2)]
        trial = tmp_path / "trial"
        shutil.rmtree(trial, ignore_errors=True)
        shutil.copytree(year.folder, trial)
        again = Year(trial, year.agreement)
        again.restore(copy, *files)
        chief = again.coordinator()
        made = len(again.parties["east"]._year.read().releases)
        truth = {one: year.parties["east"]._year.read().releases[one].drawn.counts for one in range(6)}
        for release in range(6):
            # A hostile coordinator states no chains; the keeper and the ledger know.
            bare = len(files) == 1 or agreement == "shared"
            known = None if bare else chief._chains()
            question = year.agreement.question(release, ITEMS, known)
            answer = decode(again.parties["east"].answer(encode(question)))
            if release >= made:
                assert answer.fields["reason"] in ("behind", "wrong round")
                behind += answer.fields["reason"] == "behind"
            elif agreement == "own" and answer.kind == "release":
                assert np.array_equal(answer.arrays["counts"], truth[release])
        found = again.parties["east"]._year.read()
        assert len(found.releases) == made
        if made < 6:
            assert "older copy" in caplog.text
        caplog.clear()
        chief._journal.close()
        if again.journal is not None:
            again.journal.close()
    assert behind > points // 2


@pytest.mark.few(1)
@pytest.mark.parametrize("agreement", ["own", "shared"])
def test_a_restored_coordinator_gets_the_same_releases_again(tmp_path, agreement):
    """At any release: its questions are those that were answered, so that nothing is drawn again."""
    year = Year(tmp_path / "year", AGREEMENTS[agreement])
    leader, copies = year.coordinator(), []
    for _ in range(3):
        copies.append((year.folder / "coordinator.state").read_bytes())
        last = leader.release(kind="popularity").model.scorer.part("popularity")
    leader._journal.close()
    for made, copy in enumerate(copies):
        (year.folder / "coordinator.state").write_bytes(copy)
        again = year.coordinator()
        found = [again.release(kind="popularity") for _ in range(made, 3)]
        assert np.array_equal(found[-1].model.scorer.part("popularity"), last)
        again._journal.close()
    assert all(len(party._year.read().releases) == 3 for party in year.parties.values())


def test_a_restored_party_never_reuses_a_mask(tmp_path, monkeypatch):
    """Also a keeper that forgets everything, and a party without a ledger, give no two answers one mask."""
    seen = []

    def watching(arrays, key):
        seen.append((key, {name: array.tobytes() for name, array in arrays.items()}))
        return masked(arrays, key)

    monkeypatch.setattr("discreet.federated.masks.masked", watching)
    year = Year(tmp_path / "year", SHARED)
    shutil.copytree(year.folder, tmp_path / "copy")
    question = encode(SHARED.question(0, ITEMS))
    first = decode(year.parties["east"].answer(question))
    for file in ("east.follow", "east.ledger", "keeper.state"):
        year.journal.close()
        shutil.copyfile(tmp_path / "copy" / file, year.folder / file)
    year.start()
    second = decode(year.parties["east"].answer(question))
    assert first.kind == second.kind == "release"
    assert seen[0][1] != seen[1][1] and seen[0][0] != seen[1][0]
    # The twin: with a key of the question alone the difference of the two answers has no mask.
    plain = {name: np.frombuffer(raw, dtype=np.uint64) for name, raw in seen[0][1].items()}
    other = {name: np.frombuffer(raw, dtype=np.uint64) for name, raw in seen[1][1].items()}
    one, two = masked(plain, bytes(32)), masked(other, bytes(32))
    assert np.array_equal(two["counts"] - one["counts"], other["counts"] - plain["counts"])
    difference = second.arrays["counts"] - first.arrays["counts"]
    assert not np.array_equal(difference, other["counts"] - plain["counts"])
