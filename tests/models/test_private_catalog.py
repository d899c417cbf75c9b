"""A catalog chosen with noise: nobody's own items leave, common ones do, and the price is paid before."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import discreet
from assumption_examples import conditions, stated
from discreet.core.checks import BudgetError, DataError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.model_settings import MODELS, is_never_private
from discreet.models.private_catalog import PrivateCatalog, PrivateFacts, whole_events, whole_promise
from discreet.models.storage import read_label
from discreet.privacy.accounting.accountant import delta_at
from discreet.privacy.guarantee import Fact, Kind, Neighbors, Trust, Unit, assumptions_of
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.mechanisms.additive import FixedPoint
from discreet.privacy.mechanisms.selection import MOST_NAMES, NoisyThreshold
from discreet.report.guarantee_wording import condition_text
from discreet.testing import refuses
from toy import toy_interactions

CHOICE = PrivateCatalog(epsilon=1.0, delta=1e-6)


def dataset(people=3000, items=10, secret=True, **declared):
    """Return people who all rated the same few items, and one who rated something else besides."""
    users = np.repeat(np.arange(people), items)
    names = [f"film {number}" for number in range(items)] * people
    values = [1.0 + (row + number) % 5 for row in range(people) for number in range(items)]
    if secret:
        users, names, values = [*users, 0], [*names, "a private film"], [*values, 5.0]
    return Interactions.from_arrays(users, names, values, **({"low": 1, "high": 5} | declared))


def test_common_items_stay_and_a_unique_one_goes(tmp_path):
    model = discreet.Biases(epsilon=1.0).fit(dataset(), select_items=CHOICE)
    assert sorted(model.catalog.ids) == [f"film {number}" for number in range(10)]
    assert model.guarantee.epsilon == 2.0 and model.guarantee.delta == 2e-6
    assert model.guarantee.conditions == () and (Kind.SELECTED, Fact.CATALOG) in stated(model.guarantee)
    model.save(tmp_path / "m.discreet")
    assert b"private film" not in (tmp_path / "m.discreet").read_bytes()
    assert discreet.load(tmp_path / "m.discreet").guarantee == model.guarantee
    assert "chosen" in read_label(tmp_path / "m.discreet")["provenance"]["catalog"]
    # The twin: it was there.
    assert len(discreet.Biases(epsilon=1.0).fit(dataset()).catalog.ids) == 11


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
        sums = FixedPoint(np.full(runs * held, own), 24)
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
    few = mechanism.passing(FixedPoint(np.zeros(3, np.int64), 24), PrivacyRandom.simulate(0))
    assert not few.any() and mechanism._grid() == NoisyThreshold(epsilon=0.2, delta=2e-7, most=5)._grid()
    with refuses("too-many-names", most=2147483647):
        mechanism.passing(FixedPoint(np.broadcast_to(np.int64(0), (2**31,)), 24), PrivacyRandom.simulate(0))


def test_it_is_paid_for_before_anything_is_chosen():
    ledger, data = Ledger.in_memory(), dataset()
    model = discreet.Biases(epsilon=1.0).fit(data, select_items=CHOICE, ledger=ledger)
    assert ledger.spent(data.name) == (model.guarantee.epsilon, model.guarantee.delta) == (2.0, 2e-6)
    poor = Ledger.in_memory()
    poor.set_budget(data.name, replace(model.guarantee, epsilon=1.5))
    with pytest.raises(BudgetError):
        discreet.Biases(epsilon=1.0).fit(data, select_items=CHOICE, ledger=poor)
    few = dataset(people=5)
    with pytest.raises(DataError) as caught:
        discreet.Biases(epsilon=1.0).fit(few, select_items=CHOICE, ledger=ledger)
    assert caught.value.spent == (2.0, 2e-6, few.name)
    assert ledger.spent(few.name).epsilon == 4.0


ODD_IDS = ["zebra", "007", "+20", "-0", "20.0", "1e3", "\uff12\uff10", str(2**63), "-5", "15", "0", "a,b"]


def columns(extra=()):
    """Return people and items of a file in which everybody rated the same ten whole numbers."""
    users = [str(user) for user in range(1500) for _ in range(10)]
    items = [str(10 * (item + 1)) for _ in range(1500) for item in range(10)]
    return [*users, *("9" * 9 for _ in extra)], [*items, *extra]


@pytest.mark.few(3)
@pytest.mark.parametrize("odd", ODD_IDS)
def test_type_and_order_of_a_chosen_catalog_follow_from_its_ids_alone(odd, tmp_path):
    """One person's id turns the column to text, or stands among the numbers; what is published stays."""
    found = []
    for extra in ((), (odd,)):
        path = tmp_path / "r.csv"
        users, items = columns(extra)
        rows = (f'{user},"{item}",4' for user, item in zip(users, items, strict=True))
        path.write_text("\n".join(["user,item,rating", *rows]) + "\n", encoding="utf-8")
        data = discreet.read(path, low=1, high=5)
        assert data.n_items == 10 + len(extra)
        model = discreet.Popularity(epsilon=1.0, delta=0).fit(data, select_items=CHOICE)
        found.append(model.catalog)
    assert found[0].ids.dtype == found[1].ids.dtype == np.int64
    assert found[0] == found[1] and found[0].ids.tolist() == [10 * (item + 1) for item in range(10)]
    assert discreet.Popularity(epsilon=1.0).fit(data).catalog.is_text == (odd not in ("-5", "15", "0")), (
        "twin"
    )


def test_the_canonical_order_does_not_depend_on_the_type_of_a_column():
    numbers = discreet.Vocabulary.of([100, 20, 3, -1])
    texts = discreet.Vocabulary.of(["zebra", "100", "20", "007", "3", "-1"])
    assert numbers.canonical().ids.tolist() == [-1, 3, 20, 100] and not numbers.canonical().is_text
    assert texts.canonical().ids.tolist() == ["-1", "3", "20", "100", "007", "zebra"]
    assert texts.take(np.array([1, 2, 4, 5])).canonical() == numbers.canonical()
    assert discreet.Vocabulary.of(["7", "+7"]).canonical().ids.tolist() == ["7", "+7"]


@pytest.mark.parametrize("extra", [(), ("20",)])
def test_how_many_items_a_file_has_refuses_nothing_before_it_is_paid(extra):
    """Without the second item the fit used to end unpaid, and with it paid."""
    users = [*range(400), *("x" for _ in extra)]
    data = Interactions.from_arrays([str(user) for user in users], ["10"] * 400 + [*extra], low=1, high=5)
    ledger = Ledger.in_memory()
    with refuses("selection-too-small", what="catalog"):
        discreet.Biases(epsilon=1.0).fit(data, select_items=CHOICE, ledger=ledger)
    assert len(ledger.entries()) == 1
    with refuses("too-few-to-learn"):
        discreet.Biases(epsilon=1.0).fit(data.select_items([0]))


def test_how_many_items_a_file_has_steers_no_plan():
    chosen = PrivateFacts(catalog=CHOICE)
    few, many = dataset(people=3, items=3, secret=False), dataset(people=1, items=8000, secret=False)
    for name in MODELS:
        if is_never_private(name):
            continue
        estimator = MODELS[name](epsilon=1.0)
        promise = estimator.promise(few.facts)
        if promise.definition != (Unit.USER, Neighbors.ADD_OR_REMOVE, Trust.JOINT) or not promise.is_private:
            continue
        here, there = (whole_events(estimator, data, chosen) for data in (few, many))
        assert here == there and whole_promise(estimator, few, chosen) == whole_promise(
            estimator, many, chosen
        )
        # The plan for the fewest items costs what that for any number of items does.
        for size in (2, 50, 5000):
            events = estimator.events(replace(few.facts, n_items=size))
            assert delta_at(events, promise.epsilon) <= promise.delta * (1 + 1e-9)
            assert account_weight(events) == pytest.approx(account_weight(estimator.events(few.facts)))


def account_weight(events):
    """Return what Gaussian events weigh together; a pure one weighs what it loses."""
    return sum(getattr(event, "noise_multiplier", 1.0) ** -2 for event in events)


def test_a_table_that_names_none_of_the_items_is_no_reason_to_refuse_before_payment(tmp_path):
    table, ledger = tmp_path / "items.csv", Ledger.in_memory()
    table.write_text("id,genre\n" + "".join(f"other {row},{'ab'[row % 2]}\n" for row in range(20)))
    with refuses("public-table-wrong", why="foreign"):
        discreet.UserFactorization(epsilon=1.0, item_features=str(table)).fit(
            dataset(), select_items=CHOICE, ledger=ledger
        )
    assert len(ledger.entries()) == 1, "it was paid: which items there are is the secret"
    table.write_text("id\n1\n")
    with refuses("public-table-wrong", why="columns"):
        discreet.UserFactorization(epsilon=1.0, item_features=str(table)).fit(
            dataset(), select_items=CHOICE, ledger=ledger
        )
    assert len(ledger.entries()) == 1, "it cannot be read whatever the data are"


def test_what_would_leave_a_condition_is_refused():
    with refuses("scale-from-data"):
        discreet.Biases(epsilon=1.0).fit(dataset(low=None, high=None), select_items=CHOICE)
    with refuses("selection-mismatch", model="The model"):
        discreet.OneBitInput(epsilon=1.0).fit(dataset(), select_items=CHOICE)
    with refuses("selection-mismatch"):
        discreet.Biases(epsilon=math.inf).fit(dataset(), select_items=CHOICE)


def test_facts_from_the_data_make_the_sentence_conditional():
    both = discreet.Biases(epsilon=0.1).promise(dataset(low=None, high=None).facts)
    assert conditions(both) == [Fact.CATALOG, Fact.SCALE]
    assert both.sentence().startswith(f"If {condition_text(both.conditions)}, ")
    one = discreet.Biases(epsilon=0.1).promise(dataset().facts)
    assert conditions(one) == [Fact.CATALOG]
    assert one.sentence().startswith(f"If {condition_text(one.conditions)}, ")
    declared = Interactions.from_arrays([1, 2], ["a", "b"], [1, 5], catalog=ids_of("a", "b"), low=1, high=5)
    promise = discreet.Biases(epsilon=0.1).promise(declared.facts)
    assert promise.conditions == () and not promise.sentence().startswith("If")
    assert assumptions_of(declared.facts) == promise.assumes


def ids_of(*ids):
    return discreet.Vocabulary.of(list(ids))


def test_facts_without_a_catalog_and_picked_items_show():
    facts = PublicFacts(n_items=2, low=1, high=5)
    quiet = Interactions.from_arrays(["x", "y"], ["a", "b"], [1, 5], facts=facts)
    assert any(one.kind is Kind.TAKEN for one in assumptions_of(quiet.facts))
    listed = Interactions.from_arrays(["x", "y"], ["a", "b"], [1, 5], facts=facts, catalog=ids_of("a", "b"))
    assert not any(one.is_condition for one in assumptions_of(listed.facts))
    picked = assumptions_of(listed.select_items([1]).facts)
    assert Fact.PICKED_ITEMS in {one.fact for one in picked}
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


@pytest.mark.parametrize("most", [0, (1 << 20) + 1])
def test_a_threshold_is_for_one_name_or_more_and_not_for_any_number(most):
    with refuses("out-of-range", name="most"):
        NoisyThreshold(epsilon=1.0, delta=1e-6, most=most)


def test_limits_of_a_private_catalog_are_those_that_labels_and_certificates_state():
    assert PrivateCatalog(epsilon=1.0, delta=1e-6).max_per_user == 1000
    # Names are numbered with 32 bits.
    assert np.iinfo(np.int32).max == MOST_NAMES
