"""What every registered estimator must hold to; a new one is found by itself."""

import dataclasses
from typing import ClassVar, final

import numpy as np
import pytest

from contracts.families import RELATED, REPEATED, mark
from discreet.core.checks import DiscreetError
from discreet.model_settings import MODELS, describe_models, estimator, is_never_private
from discreet.models.estimator import Estimator
from discreet.models.popularity import Popularity
from discreet.models.scorers.item_item import PopularityScorer
from discreet.testing import EstimatorContract, refuses
from discreet.testing.estimator_contract import representatives
from discreet.testing.small_data import toy_data

NAMES = sorted(MODELS)
NON_PRIVATE = {"als", "implicit-als", "ease", "item-knn", "markov-chain"}
# Run as printed, with noise that protects nobody.
NON_PRIVATE |= {"dpimf", "dpmf", "one-bit-objective-printed", "one-bit-output-printed"}


class RegisteredContract(EstimatorContract):
    """The contract with a few settings; the slow test below tries all of them."""

    def spending_cases(self):
        return representatives(self.estimator)


def marked(name, mark):
    """Return a check of the contract with a mark; the contract's own function keeps its marks."""

    def check(self):
        getattr(EstimatorContract, name)(self)

    return mark(check)


# Checks that fit a model again and again.
FITTING = (
    "test_same_simulation_same_model_and_other_noise_other_model",
    "test_permuting_users_permutes_results_without_noise",
    "test_leaves_the_data_alone",
    "test_fit_attaches_the_promise_and_marks_simulated_noise",
    "test_predictions_agree_with_scores",
    "test_recommends_unseen_items_of_the_catalog",
    "test_no_refusal_depends_on_one_user",
)


def suite(name):
    words = "".join(word.capitalize() for word in name.split("-"))
    checks = {"estimator": MODELS[name]}
    checks |= {check: marked(check, found) for check in FITTING} if (found := mark(name)) else {}
    return f"Test{words}", type(f"Test{words}", (RegisteredContract,), checks)


# One class of checks for each name in the registry.
globals().update(map(suite, NAMES))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if not is_never_private(name)])
def test_every_declared_setting_spends_exactly_what_it_guarantees(name, tmp_path):
    whole = type("Whole", (EstimatorContract,), {"estimator": MODELS[name]})()
    whole.test_what_leaves_a_fit_follows_from_its_releases()
    whole.test_it_spends_exactly_what_it_guarantees()
    if whole.make().rows_needed() is None:
        whole.test_it_spends_exactly_on_shards_and_on_a_cluster(tmp_path)
        whole.test_it_spends_exactly_at_a_party()


def test_the_names_are_those_of_the_registry():
    assert set(MODELS) >= REPEATED | RELATED and all(hasattr(EstimatorContract, name) for name in FITTING)
    assert all(MODELS[name].name == name for name in NAMES)
    assert {name for name in NAMES if is_never_private(name)} == NON_PRIVATE


def test_every_model_is_described():
    rows = describe_models()
    assert sorted(row["name"] for row in rows) == NAMES
    assert all(row["summary"] and row["unit"] and row["trust"] for row in rows)


def test_an_unknown_model_is_one_sentence():
    with refuses("unknown-choice", name="model", value="oracle"):
        estimator("oracle", {"epsilon": 1.0})


def test_things_of_another_kind_are_one_sentence():
    """A file's name for a ledger, a mapping for the data: what people try first."""
    explicit = toy_data("explicit")
    model = estimator("biases", {"epsilon": 1.0, "delta": 1e-6})
    for arguments in (
        {"data": {"user": [1], "item": [2]}},
        {"data": explicit, "ledger": "paid.ledger"},
        {"data": explicit, "random": 3},
    ):
        with refuses("wrong-kind"):
            model.fit(**arguments)


def test_a_history_may_be_a_series_and_must_hold_numbers():
    pandas = pytest.importorskip("pandas")
    explicit = toy_data("explicit")
    fitted = estimator("biases", {"epsilon": 1.0, "delta": 1e-6}).fit(explicit)
    history = dict.fromkeys(explicit.catalog.ids[:3].tolist(), 4.0)
    assert fitted.recommend(pandas.Series(history), 5) == fitted.recommend(history, 5)
    for wrong in ("x", None):
        with refuses("bad-history", must="have numbers as ratings"):
            fitted.recommend(dict.fromkeys(history, wrong))


@final
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leaky(Estimator):
    """Count without noise, and refuse what only one user may decide."""

    name: ClassVar[str] = "leaky"
    feedback = "implicit"
    epsilon: float
    delta: float = 1e-6

    def promise(self, facts):
        return Popularity(epsilon=1.0).promise(facts)

    def _train(self, session, progress):
        data = session._source
        if data.n_users < 2:
            raise DiscreetError("Too few.")
        return PopularityScorer(popularity=np.bincount(data.items, minlength=data.n_items) * 1.0)


class LeakySuite(EstimatorContract):
    estimator = Leaky


@pytest.mark.parametrize(
    "check",
    [
        "test_docstring_and_promise_say_the_same",
        "test_promise_states_the_epsilon_that_was_asked_for",
        "test_same_simulation_same_model_and_other_noise_other_model",
        "test_what_leaves_a_fit_follows_from_its_releases",
        "test_no_refusal_depends_on_one_user",
    ],
)
def test_a_leaky_estimator_is_rejected(check):
    """The twin: each of these checks fails for an estimator that breaks its rule."""
    with pytest.raises((AssertionError, DiscreetError)):
        getattr(LeakySuite(), check)()
