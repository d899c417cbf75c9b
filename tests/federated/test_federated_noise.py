"""Noise of one party and of all together, masks, and the keeper."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from budgets import budget
from discreet.core.checks import PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.federated import keeper as keepers
from discreet.federated.keeper import Keeper, hand_key
from discreet.federated.masks import mask, masked, set_token, unmasked
from discreet.federated.noise import STEP_BITS, OwnNoise, SharedNoise, symmetric_from
from discreet.federated.wire import Message, decode, encode
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.guarantee import Assumption, Fact, Kind
from discreet.privacy.mechanisms.additive import FixedPoint
from discreet.privacy.noise_shares import SharedBudget, upper, with_share
from discreet.privacy.session import Session
from discreet.statistics.counts import ItemVotes, UserCount
from discreet.testing import refuses
from evidence import follows, samples_to_separate
from toy import toy_interactions

KEYS = {name: bytes([number] * 32) for number, name in enumerate("abcd")}


def key_of(name, key, question="votes", least=3):
    fields = {"key": key.hex(), "question": question, "least": least}
    return Message(kind="key", run="run", step=0, sender=name, fields=fields)


def ask_masks(keeper, run, step, question, names, size):
    """Ask for a sum over a set that all of its parties confirmed."""
    tokens = {name: set_token(KEYS[name], question, names) for name in names}
    return keepers.ask_masks(keeper, keepers.SumStep(run, step, question), names, size, tokens=tokens)


def keeper_with_keys(least=3, **changed):
    keeper = Keeper(roster=list(KEYS), least=least)
    for name, key in KEYS.items():
        hand_key(keeper, key_of(name, key, **changed.get(name, {})))
    return keeper


def share_of(policy, values, sigma, seed, *, symmetric=False):
    """Return values with one share of noise, in the ring."""
    units = FixedPoint(np.ldexp(values, STEP_BITS).astype(np.int64), STEP_BITS)
    return with_share(units, sigma, policy.units, PrivacyRandom.simulate(seed), symmetric=symmetric)


def test_triangles_and_matrices():
    matrix = np.array([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
    assert upper(matrix).tolist() == [1, 2, 3, 4, 5, 6]
    assert np.array_equal(symmetric_from(upper(matrix)), matrix)


def test_shares_of_the_least_number_of_parties_make_the_whole_noise():
    """The sum of five of seven shares has the noise that was asked for; with four it has visibly less."""
    policy = SharedNoise(parties=7, missing=2)
    gap = np.max(np.abs(ndtr(np.linspace(-3, 3, 601)) - ndtr(np.linspace(-3, 3, 601) * math.sqrt(5 / 4))))
    size = samples_to_separate(float(gap))
    shares = [share_of(policy, np.zeros(size), 1.5, seed) for seed in range(5)]
    whole, fewer = policy.read(sum(shares)), policy.read(sum(shares[:4]))
    assert follows(whole, lambda x: ndtr(np.asarray(x) / 1.5))
    assert not follows(fewer, lambda x: ndtr(np.asarray(x) / 1.5))
    assert 1.5 <= math.sqrt(5 * policy.units.deviation(1.5) ** 2) < 1.5 * (1 + 1e-6)


def test_entries_off_the_diagonal_get_half_the_variance():
    policy = SharedNoise(parties=2, missing=0)
    parts = [share_of(policy, np.zeros((400, 400)), 2.0, seed, symmetric=True) for seed in (1, 2)]
    released = symmetric_from(policy.read(sum(parts)))
    off = released[np.triu_indices(400, 1)]
    assert follows(off, lambda x: ndtr(np.asarray(x) / math.sqrt(2)))
    assert not follows(off, lambda x: ndtr(np.asarray(x) / 2.0))
    assert abs(released.diagonal().std() - 2.0) < 0.4


def test_without_noise_sums_are_exact():
    policy = SharedNoise(parties=3, missing=1)
    values = np.array([-5.0, 0.0, 2.0**-26, 1e6])
    sent = [share_of(policy, values, 0.0, 0) for _ in range(3)]
    assert np.array_equal(policy.read(sum(sent)), 3 * values)


def opened(data, seed=0):
    return Session.open(data, budget(1.0, 1e-6), PrivacyRandom.simulate(seed))


def test_a_session_adds_one_share_for_all_that_it_has_left():
    toy = toy_interactions()
    policy, whole = SharedNoise(parties=3, missing=1), opened(toy).gaussian()
    half = whole.split(Fraction(1, 2))[0]
    sigma = half.deviation(UserCount(), Fraction(1))
    (part,) = UserCount().parts
    numbers = half.release_share(UserCount(), part.name, policy.units)
    (entry,) = whole.log
    assert entry.scale == Fraction(sigma) and entry.share == Fraction(1, 2) and entry.release is None
    assert numbers.dtype == np.uint64 and half.left == 0
    assert abs(policy.read(numbers)[0] - toy.n_users) < 8 * policy.units.deviation(sigma)
    with pytest.raises(PrivacyError):
        half.release_share(UserCount(), part.name, policy.units)
    with pytest.raises(PrivacyError):
        opened(toy).laplace().release_share(UserCount(), part.name, policy.units)
    assert len(whole.log) == 1
    # Votes fit a pure budget, and shares of Laplace noise don't exist.
    pure, votes = opened(toy).laplace(), ItemVotes(n_items=toy.n_items, norm="l1")
    with refuses("overspent"):
        pure.release_share(votes, votes.parts[0].name, policy.units)
    assert pure.log == () and pure.left == 1


def test_two_parties_hide_behind_each_other_at_least():
    with refuses("broken-rule", name="missing", value=2):
        SharedNoise(parties=3, missing=2)


def test_the_label_says_what_is_left_when_coordinator_and_keeper_collude():
    lines = SharedNoise(parties=10, missing=2).assumes(1.0, 1e-6)
    alone = gaussian_epsilon(gaussian_multiplier(1.0, 1e-6) / math.sqrt(8), 1e-6)
    assert alone > 2.5
    party = Kind.PARTY
    assert lines[-2] == Assumption.of(party, Fact.ONE_SHARE, epsilon=math.ceil(100 * alone) / 100)
    # The coordinator leaves out two honest parties and keeps its friend: seven shares of eight are left.
    seven = gaussian_epsilon(gaussian_multiplier(1.0, 1e-6) * math.sqrt(7 / 8), 1e-6)
    left = math.ceil(100 * seven) / 100
    assert lines[-3] == Assumption.of(party, Fact.KNOWN_SHARE, epsilon=left, coordinator=True)
    curious = SharedNoise(parties=2, missing=0).assumes(1.0, 1e-6)
    assert Assumption.of(party, Fact.KNOWN_SHARE, epsilon=1.46, coordinator=False) in curious
    assert OwnNoise().assumes(1.0, 1e-6) == (Assumption.of(Kind.BACKUP, Fact.PARTY_AND_LEDGER),)


def test_masks_hide_each_answer_and_leave_the_sum():
    answers = {
        name: {"x": np.full(1000, 7, dtype=np.uint64), "y": np.arange(4, dtype=np.uint64)} for name in KEYS
    }
    sent = {name: masked(arrays, KEYS[name]) for name, arrays in answers.items()}
    # A mask is a stream of the cipher: bits of a constant come out even.
    bits = np.unpackbits(sent["a"]["x"].view(np.uint8)).mean()
    assert abs(bits - 0.5) < 0.02
    assert not np.array_equal(sent["a"]["x"], sent["b"]["x"])
    totals = {name: sum(arrays[name] for arrays in sent.values()) for name in ("x", "y")}
    clear = unmasked(totals, ask_masks(keeper_with_keys(), "run", 0, "votes", list(KEYS), 1004))
    assert clear["x"].tolist() == [28] * 1000
    assert clear["y"].tolist() == [0, 4, 8, 12]


def test_the_keeper_reveals_one_sum_a_step():
    keeper = keeper_with_keys()
    first = ask_masks(keeper, "run", 0, "votes", ["a", "b", "c"], 5)
    assert np.array_equal(first, mask(KEYS["a"], 5) + mask(KEYS["b"], 5) + mask(KEYS["c"], 5))
    assert np.array_equal(first, ask_masks(keeper, "run", 0, "votes", ["c", "b", "a"], 5))
    # Another set would give away the party in which they differ; the keeper names the set it spoke for.
    assert ask_masks(keeper, "run", 0, "votes", list(KEYS), 5) == {"a", "b", "c"}
    with refuses("sum-not-revealed"):
        ask_masks(keeper, "run", 0, "votes", ["b", "c", "d"], 5)


def test_the_keeper_never_speaks_for_few_or_unknown_parties():
    keeper = keeper_with_keys()
    with refuses("sum-not-revealed"):
        ask_masks(keeper, "run", 0, "votes", ["a", "b"], 5)
    assert ask_masks(keeper, "run", 1, "votes", list(KEYS), 5) == frozenset()
    stranger = key_of("stranger", bytes(32))
    assert decode(keeper(encode(stranger))).fields["reason"] == "wrong sender"
    assert decode(keeper(encode(key_of("a", b"f" * 32)))).fields["reason"] == "twice"
    with refuses("key-not-accepted"):
        hand_key(keeper, stranger)
    good = {"key": "00" * 32, "question": "votes", "least": 3}
    for bad in ({"key": "zz"}, {"key": 5}, {"key": "00"}, {"question": 1}, {"least": 2.5}, {"least": True}):
        raw = encode(Message(kind="key", run="run", step=5, sender="a", fields=good | bad))
        assert decode(keeper(raw)).kind == "refused"
    for bad in ({"names": "[1]", "size": 3}, {"names": "{", "size": 3}, {"names": "[]", "size": -1}):
        raw = encode(Message(kind="reveal", run="run", step=0, sender="-", fields=bad))
        assert decode(keeper(raw)).kind == "refused"
    assert decode(keeper(b"rubbish")).kind == "refused"
    nobody = Message(kind="reveal", run="run", step=0, sender="-", fields={"names": "[]", "size": 3})
    assert decode(keeper(encode(nobody))).kind == "reply"


def test_the_keeper_sums_only_answers_to_one_question():
    """Otherwise one party's answer could be summed with others' that carry less noise."""
    keeper = keeper_with_keys(a={"question": "moment"})
    assert ask_masks(keeper, "run", 0, "votes", list(KEYS), 5) == {"b", "c", "d"}
    assert ask_masks(keeper, "run", 0, "votes", ["b", "c", "d"], 5).size == 5


def test_a_key_says_how_many_parties_the_noise_needs():
    keeper = keeper_with_keys(least=2, b={"least": 4})
    assert ask_masks(keeper, "run", 0, "votes", ["a", "b", "c"], 5) == {"a", "c"}
    assert ask_masks(keeper, "run", 0, "votes", list(KEYS), 5).size == 5


def test_a_restarted_keeper_remembers_what_it_revealed(tmp_path):
    from discreet.federated.journal import Journal

    path = tmp_path / "keeper"
    journal = Journal(path)
    keeper = Keeper(roster=list(KEYS), least=3, journal=journal)
    for name, key in KEYS.items():
        hand_key(keeper, key_of(name, key))
    first = ask_masks(keeper, "run", 0, "votes", ["a", "b", "c"], 5)
    journal.close()
    again = Keeper(roster=list(KEYS), least=3, journal=Journal(path))
    assert np.array_equal(ask_masks(again, "run", 0, "votes", ["a", "b", "c"], 5), first)
    assert ask_masks(again, "run", 0, "votes", list(KEYS), 5) == {"a", "b", "c"}


def test_without_a_guarantee_answers_cost_nothing():
    budget = SharedBudget(epsilon=math.inf, delta=0.0, parties=3, least=2)
    assert budget.price(1.0, 0.0) == 0 and budget.covers([budget.price(1.0, 0.0)])
