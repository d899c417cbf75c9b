"""A catalog chosen with noise: nobody's own items leave, common ones do, and the price is paid before."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import discreet
from discreet.checks import BudgetError, DataError, ParameterError, PrivacyError
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.private_facts.catalog import PrivateCatalog
from discreet.models.storage import read_label
from discreet.privacy.guarantee import TAKEN
from discreet.privacy.ledger.book import Ledger
from discreet.privacy.mechanisms.fixed_point import WholeSteps
from discreet.privacy.mechanisms.selection import NoisyThreshold
from discreet.randomness import PrivacyRandom
from toy import toy_interactions

CHOICE = PrivateCatalog(epsilon=1.0, delta=1e-6)


def world(people=3000, items=10, secret=True, **declared):
    """Return people who all rated the same few items, and one who rated something else besides."""
    users = np.repeat(np.arange(people), items)
    names = [f"film {number}" for number in range(items)] * people
    values = [1.0 + (row + number) % 5 for row in range(people) for number in range(items)]
    if secret:
        users, names, values = [*users, 0], [*names, "a private film"], [*values, 5.0]
    return Interactions.from_arrays(users, names, values, **({"low": 1, "high": 5} | declared))


def test_common_items_stay_and_a_unique_one_goes(tmp_path):
    model = discreet.Biases(epsilon=1.0).fit(world(), select_items=CHOICE)
    assert sorted(model.catalog.ids) == [f"film {number}" for number in range(10)]
    assert model.guarantee.epsilon == 2.0 and model.guarantee.delta == 2e-6
    assert model.guarantee.conditions == () and "chosen from the data with noise" in model.guarantee.label()
    model.save(tmp_path / "m.discreet")
    assert b"private film" not in (tmp_path / "m.discreet").read_bytes()
    assert discreet.load(tmp_path / "m.discreet").guarantee == model.guarantee
    assert "chosen" in read_label(tmp_path / "m.discreet")["provenance"]["catalog"]
    assert "a private film" in discreet.Biases(epsilon=1.0).fit(world()).catalog.ids, "the twin: it was there"


@pytest.mark.parametrize("most", [1, 10, 1000])
def test_a_name_that_one_person_holds_passes_as_rarely_as_promised(most):
    """Draw what one person's own names would do at a delta that can be seen, for every number of them."""
    mechanism = NoisyThreshold(epsilon=1.0, delta=0.2, most=most)
    allowed = 0.2 / (2 * math.e)
    for held in {1, 2, most}:
        if held > most:
            continue
        own = math.floor(2**24 / math.sqrt(held))
        runs = 1500 if held <= 10 else 200
        sums = WholeSteps(np.full(runs * held, own), 24)
        passed = mechanism.passing(sums, PrivacyRandom.simulate(held)).reshape(runs, held).any(axis=1).sum()
        assert passed <= runs * allowed + 4 * math.sqrt(runs * allowed)


def test_a_lower_threshold_would_be_caught():
    """The twin: without the part of the threshold that pays for unknown names too many pass."""
    mechanism = NoisyThreshold(epsilon=1.0, delta=0.2, most=10)
    low = 1.0 + mechanism.noise().sigma * norm.isf(0.2)
    noisy = [
        mechanism.noise().release(np.array([1.0]), PrivacyRandom.simulate(seed))[0] for seed in range(800)
    ]
    assert np.mean(np.array(noisy) >= low) > 0.2 / (2 * math.e) + 0.05
    assert mechanism.threshold() > low


def test_the_threshold_depends_on_public_numbers_only():
    mechanism = NoisyThreshold(epsilon=0.2, delta=2e-7, most=1000)
    few = mechanism.passing(WholeSteps(np.zeros(3, np.int64), 24), PrivacyRandom.simulate(0))
    assert not few.any() and mechanism._grid() == NoisyThreshold(epsilon=0.2, delta=2e-7, most=5)._grid()
    with pytest.raises(DataError, match="more than"):
        mechanism.passing(
            WholeSteps(np.broadcast_to(np.int64(0), (2**24 + 1,)), 24), PrivacyRandom.simulate(0)
        )


def test_it_is_paid_for_before_anything_is_chosen():
    ledger, data = Ledger.in_memory(), world()
    model = discreet.Biases(epsilon=1.0).fit(data, select_items=CHOICE, ledger=ledger)
    assert ledger.spent(data.name) == (model.guarantee.epsilon, model.guarantee.delta) == (2.0, 2e-6)
    poor = Ledger.in_memory()
    poor.set_budget(data.name, replace(model.guarantee, epsilon=1.5))
    with pytest.raises(BudgetError):
        discreet.Biases(epsilon=1.0).fit(data, select_items=CHOICE, ledger=poor)
    few = world(people=5)
    with pytest.raises(DataError, match="Fewer than two"):
        discreet.Biases(epsilon=1.0).fit(few, select_items=CHOICE, ledger=ledger)
    assert ledger.spent(few.name).epsilon == 4.0


def test_what_would_leave_a_condition_is_refused():
    with pytest.raises(ParameterError, match="scale"):
        discreet.Biases(epsilon=1.0).fit(world(low=None, high=None), select_items=CHOICE)
    with pytest.raises(PrivacyError, match="something else"):
        discreet.OneBitInput(epsilon=1.0).fit(world(), select_items=CHOICE)
    with pytest.raises(PrivacyError, match="without privacy"):
        discreet.Biases(epsilon=math.inf).fit(world(), select_items=CHOICE)


def test_facts_from_the_data_make_the_sentence_conditional():
    both = discreet.Biases(epsilon=0.1).promise(world(low=None, high=None).facts)
    assert both.sentence().startswith("If the catalog and the scale are public: whether any one person")
    assert both.rows()[0] == ("Promise", "PRIVATE, if the catalog and the scale are public")
    one = discreet.Biases(epsilon=0.1).promise(world().facts)
    assert one.sentence().startswith("If the catalog is public: whether")
    declared = Interactions.from_arrays([1, 2], ["a", "b"], [1, 5], catalog=ids_of("a", "b"), low=1, high=5)
    promise = discreet.Biases(epsilon=0.1).promise(declared.facts)
    assert promise.conditions == () and promise.sentence().startswith("Whether")
    assert declared.facts.assumptions() == promise.assumes and not any(
        TAKEN in line for line in promise.assumes
    )


def ids_of(*ids):
    return discreet.Vocabulary.of(list(ids))


def test_facts_without_a_catalog_and_picked_items_show():
    facts = PublicFacts(n_items=2, low=1, high=5)
    quiet = Interactions.from_arrays(["x", "y"], ["a", "b"], [1, 5], facts=facts)
    assert any(line.endswith(TAKEN) for line in quiet.facts.assumptions())
    listed = Interactions.from_arrays(["x", "y"], ["a", "b"], [1, 5], facts=facts, catalog=ids_of("a", "b"))
    assert not any(line.endswith(TAKEN) for line in listed.facts.assumptions())
    picked = listed.select_items([1]).facts.assumptions()
    assert any("picked" in line for line in picked)
    assert PublicFacts.from_json(listed.select_items([1]).facts.to_json()) == listed.select_items([1]).facts


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"items": lambda items: np.zeros_like(items)}, "twice"),
        ({"items": lambda items: items[::-1]}, "order|twice"),
        ({"items": lambda items: items + 1000}, "outside the catalog"),
        ({"values": lambda values: values * np.nan}, "NaN"),
        ({"indptr": lambda indptr: np.r_[0, indptr[-1], indptr[2:]]}, "follow"),
    ],
)
def test_fit_refuses_rows_that_no_bound_holds_for(change, match):
    data = toy_interactions(n_users=30, n_items=12, per_user=5)
    ledger = Ledger.in_memory()
    broken = replace(data, **{name: make(getattr(data, name)) for name, make in change.items()})
    for estimator in (discreet.Biases(epsilon=1.0), discreet.Popularity(epsilon=1.0)):
        with pytest.raises(DataError, match=match):
            estimator.fit(broken, ledger=ledger)
    assert ledger.entries() == []
