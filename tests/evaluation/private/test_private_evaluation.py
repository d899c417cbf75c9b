"""Private scores: one bounded number a person, noise stated, paid before, the same whoever else is there."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.core.checks import BudgetError, DataError, ParameterError, PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.data import from_frame
from discreet.evaluation.private import (
    PersonalScores,
    choose_privately,
    evaluate_privately,
    fit_and_evaluate,
    fixed_point_scores,
    hide_one_each,
    personal_scores,
    private_metric,
    promise_of_scores,
    read_score,
)
from discreet.evaluation.scoring import measure
from discreet.privacy.accounting.accountant import epsilon_at
from discreet.privacy.accounting.events import event_from_json
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.guarantee import Fact
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.ledger import Period
from discreet.privacy.mechanisms.additive import FixedPoint
from discreet.privacy.session import Session
from discreet.testing import refuses
from toy import toy_interactions

DATA = toy_interactions(n_users=600, n_items=30, per_user=10, seed=4)
MODEL = discreet.Biases(epsilon=4.0).fit(DATA, random=PrivacyRandom.simulate(1))
LISTS = discreet.Popularity(epsilon=4.0).fit(DATA, random=PrivacyRandom.simulate(1))


@pytest.mark.few(1)
@pytest.mark.parametrize("metric", ["hr@5", "ndcg@5", "rmse"])
def test_people_score_what_an_exact_evaluation_says(metric):
    split = hide_one_each(DATA)
    own = personal_scores(MODEL, split, private_metric(metric))
    exact = measure(MODEL, split.train, split.test, [metric])[metric]
    found = 4 * math.sqrt(own.mean()) if metric == "rmse" else own.mean()
    assert found == pytest.approx(exact, rel=1e-6)
    assert own.shape == (600,) and own.min() >= 0 and own.max() <= 1


def test_a_score_is_the_same_with_and_without_anybody_else():
    """One person's contribution depends on their own row only: leave out others and compare bit by bit."""
    metric = private_metric("ndcg@5")
    all_users = personal_scores(MODEL, hide_one_each(DATA), metric)
    for some in (np.arange(0, 600, 7), np.array([3]), np.arange(599, -1, -1)):
        alone = personal_scores(MODEL, hide_one_each(DATA.select_users(some)), metric)
        np.testing.assert_array_equal(alone, all_users[some])


def test_what_is_hidden_is_the_own_latest_item():
    times = np.arange(DATA.n_ratings)[::-1].copy()
    dated = discreet.Interactions.from_arrays(
        DATA.rows(), DATA.catalog.id_at(DATA.items), DATA.values, times=times, facts=DATA.facts
    )
    split = hide_one_each(dated)
    assert np.diff(split.test.indptr).tolist() == [1] * 600
    latest = np.maximum.reduceat(dated.times, dated.indptr[:-1])
    np.testing.assert_array_equal(split.test.times, latest)


class Summed:
    """People whose scores are summed already."""

    facts = DATA.facts

    def __init__(self, contributions):
        self._steps = FixedPoint(fixed_point_scores(contributions), 24)

    def total(self, query):
        return self

    def steps(self, name=None):
        return self._steps


def released(contributions, epsilon, random):
    """Return the noisy sums of scores, and the deviation that the session states."""
    promise = promise_of_scores(DATA, epsilon, 1e-6, Ledger.in_memory(), simulated=True)
    session = Session.open(Summed(contributions), promise, random)
    scores = PersonalScores(models=(None,), metric=private_metric("hr@10"))
    noisy = session.gaussian().release(scores, Fraction(1))
    session.check(promise)
    assert session.unspent() == 0
    return noisy


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_the_noise_on_scores_is_what_it_was_before_sessions(epsilon):
    noisy = released(np.zeros((10, 1)), epsilon, PrivacyRandom.simulate(1))
    before = gaussian_multiplier(epsilon, 1e-6) * math.sqrt(2) / 2
    assert abs(noisy.deviation / before - 1) < 1e-12
    # The twin: a sensitivity that forgets the count of users.
    assert abs(noisy.deviation / (gaussian_multiplier(epsilon, 1e-6) / 2) - 1) > 1e-12


def test_the_released_value_is_the_truth_and_stated_noise():
    """The spread of many releases is the noise that is stated; a claim 30 % off is rejected."""
    random, people = PrivacyRandom.simulate(5), np.full((4000, 1), 0.3)
    found = [released(people, 1.0, random) for _ in range(600)]
    sums, sigma = np.array([noisy.values[0] for noisy in found]), found[0].deviation
    deviation = sums.std()
    slack = 5 / math.sqrt(2 * 600)
    assert abs(deviation / sigma - 1) < slack
    assert abs(deviation / (1.3 * sigma) - 1) > slack
    assert abs(sums.mean() - 1200) < 5 * sigma / math.sqrt(600) + 1e-3
    with pytest.raises(ParameterError):
        fixed_point_scores(np.array([[0.7]]))


@pytest.mark.thorough
def test_intervals_cover_and_would_not_without_the_noise():
    """Draw people from a known rate many times: about 95 in 100 intervals hold it, noise included."""
    rng, random, rate, games = np.random.default_rng(6), PrivacyRandom.simulate(7), 0.2, 1500
    promise = promise_of_scores(DATA, 0.5, 1e-6, Ledger.in_memory(), simulated=True)
    asked = PersonalScores(models=(None,), metric=private_metric("hr@10"))
    covered = without = 0
    for _ in range(games):
        hits = (rng.random(800) < rate).astype(float)[:, None] - 0.5
        noisy = released(hits, 0.2, random)
        total, count = noisy.values[0], 2 * noisy.values[1]
        score = read_score(asked, total, count, noisy.deviation, DATA.facts, promise)
        covered += score.low <= rate <= score.high
        blind = read_score(asked, total, count, 0.0, DATA.facts, promise)
        without += blind.low <= rate <= blind.high
    assert covered / games > 0.93
    assert without / games < 0.9


def test_two_models_are_compared_and_the_better_one_chosen():
    rated = discreet.Biases(epsilon=math.inf).fit(DATA)
    flat = discreet.Biases(epsilon=0.01).fit(DATA, random=PrivacyRandom.simulate(2))
    random, public = PrivacyRandom.simulate(3), {"models_are_public": True}
    score = evaluate_privately(rated, DATA, epsilon=4.0, metric="rmse", against=flat, random=random, **public)
    assert score.value < 0 and score.metric == "rmse (difference)"
    best, scores = choose_privately(
        {"flat": flat, "rated": rated}, DATA, epsilon=8.0, metric="rmse", random=random, **public
    )
    assert best == "rated" and set(scores) == {"flat", "rated"}


@pytest.mark.thorough
def test_models_are_chosen_and_scored_on_frames_and_files(tmp_path):
    rows = {"user": DATA.users.id_at(DATA.rows()), "item": DATA.catalog.id_at(DATA.items)}
    table = pl.DataFrame({**rows, "rating": DATA.values, "time": np.arange(DATA.n_ratings)})
    same = replace(DATA, times=np.arange(DATA.n_ratings))
    table.write_csv(tmp_path / "held_out.csv")
    models = {"one": MODEL, "two": discreet.Biases(epsilon=4.0).fit(DATA, random=PrivacyRandom.simulate(2))}

    def chosen(data, **how):
        return choose_privately(models, data, epsilon=8.0, random=PrivacyRandom.simulate(3), **how)

    best, scores = chosen(same)
    named = table.to_pandas().rename(columns={"user": "who"})
    for found in (chosen(table), chosen(tmp_path / "held_out.csv"), chosen(named, columns={"user": "who"})):
        assert found[0] == best
        assert all(found[1][name].value == scores[name].value for name in models)
        # A file's layout is one more condition.
        added = [
            one.fact for one in found[1]["one"].guarantee.conditions if one not in MODEL.guarantee.conditions
        ]
        assert set(MODEL.guarantee.conditions) <= set(found[1]["one"].guarantee.conditions)
        assert added in ([], [Fact.LAYOUT])
    score = evaluate_privately(MODEL, table, epsilon=1.0, random=PrivacyRandom.simulate(3))
    assert score.value == evaluate_privately(MODEL, same, epsilon=1.0, random=PrivacyRandom.simulate(3)).value
    together = fit_and_evaluate([discreet.Biases(epsilon=2.0)], table, low=1, high=9, catalog=DATA.catalog)
    assert together.models[0].facts.high == 9 and together.guarantee.conditions == ()
    with refuses("not-declared", count=6000, of=6000, what="item ids", declared=30, example="item 00"):
        chosen(table.with_columns(item=pl.lit("another")))
    with refuses("unknown-argument", argument="hihg"):
        fit_and_evaluate([discreet.Biases(epsilon=2.0)], table, hihg=5)


def test_fit_and_score_cost_one_promise():
    ledger = Ledger.in_memory()
    estimators = [discreet.Biases(epsilon=2.0), discreet.UserFactorization(epsilon=2.0)]
    found = fit_and_evaluate(estimators, DATA, metrics=["rmse", "hr@5"], share=0.1, ledger=ledger)
    (entry,) = ledger.entries()
    events = [event_from_json(record) for record in entry.events]
    assert epsilon_at(events, 1e-6) <= 2.0
    assert epsilon_at(events, 1e-6) == pytest.approx(2.0, rel=1e-6)
    assert len(found.models) == 2 and set(found.scores) == {"rmse", "hr@5"}
    assert all(model.guarantee.epsilon < 2.0 for model in found.models)


def test_models_fitted_with_scores_use_weights_and_all_labels_list_them():
    draw = np.random.default_rng(3)
    users = np.repeat(np.arange(200), 6)
    events = pl.DataFrame(
        {
            "user": users,
            "item": draw.integers(0, 12, users.size),
            "event": np.where(draw.integers(0, 6, users.size) == 0, "buy", "view"),
        }
    )

    def fitted(*estimators, **weights):
        data = from_frame(events, implicit=True, duplicates="count", **weights)
        return fit_and_evaluate(estimators, data, random=PrivacyRandom.simulate(0))

    def states_weights(promise):
        return any(one.fact is Fact.WEIGHTS for one in promise.assumes)

    weights = {"weights": "event=view:1,buy:900"}
    plain, weighted = (
        fitted(discreet.Popularity(epsilon=5.0)),
        fitted(discreet.Popularity(epsilon=5.0), **weights),
    )
    assert not states_weights(plain.guarantee) and states_weights(weighted.guarantee)
    assert states_weights(weighted.models[0].guarantee)
    assert not np.array_equal(*(one.models[0].scorer.popularity for one in (plain, weighted)))


def test_a_budget_is_asked_before_anybody_is_scored(monkeypatch):
    ledger = Ledger.in_memory()
    promise = discreet.Biases(epsilon=0.5).promise(DATA.facts)
    ledger.set_budget(DATA.name, promise)
    monkeypatch.setattr(
        "discreet.evaluation.private.personal_scores",
        lambda *_: pytest.fail("scored without paying"),
    )
    with pytest.raises(BudgetError):
        evaluate_privately(MODEL, DATA, epsilon=1.0, ledger=ledger)


@pytest.mark.parametrize("metric", ["mrr", "hr@10:99", "accuracy", "coverage@10", "hr@10:liked", "joy"])
def test_other_metrics_are_refused(metric):
    with pytest.raises(ParameterError):
        evaluate_privately(MODEL, DATA, epsilon=1.0, metric=metric)


def test_bad_arguments_are_one_sentence():
    other = toy_interactions(n_users=50, n_items=12, per_user=5)
    with pytest.raises(DataError):
        evaluate_privately(MODEL, other, epsilon=1.0)
    with pytest.raises(ParameterError):
        evaluate_privately(MODEL, DATA, epsilon=math.inf)
    with pytest.raises(ParameterError):
        choose_privately({"one": MODEL}, DATA, epsilon=1.0)
    with pytest.raises(ParameterError):
        fit_and_evaluate([discreet.Biases(epsilon=1.0), discreet.Biases(epsilon=2.0)], DATA)
    with pytest.raises(PrivacyError):
        fit_and_evaluate([discreet.OneBitInput(epsilon=1.0)], DATA)
    with pytest.raises(ParameterError):
        fit_and_evaluate([discreet.Als()], DATA)


def test_models_that_cannot_be_scored_cost_nothing():
    ledger, other = Ledger.in_memory(), toy_interactions(n_users=40, n_items=12, per_user=5, seed=1)
    foreign = discreet.Biases(epsilon=4.0).fit(other, random=PrivacyRandom.simulate(1))
    with refuses("catalogs-differ"):
        choose_privately({"one": MODEL, "two": foreign}, DATA, epsilon=1.0, ledger=ledger)
    with refuses("catalogs-differ"):
        evaluate_privately(MODEL, DATA, epsilon=1.0, against=foreign, ledger=ledger)
    with refuses("out-of-range", name="epsilon", above=0):
        choose_privately({"one": MODEL, "two": LISTS}, DATA, epsilon=math.inf, ledger=ledger)
    assert ledger.entries() == []


def test_labels_say_what_a_renewing_budget_takes_for_granted():
    ledger = Ledger.in_memory()
    limit = discreet.Biases(epsilon=5.0, delta=1e-5).promise(DATA.facts)
    ledger.set_budget(DATA.name, limit, renews=Period.YEARLY)
    found = fit_and_evaluate([discreet.Biases(epsilon=1.0)], DATA, metrics=["rmse"], ledger=ledger)
    score = evaluate_privately(MODEL, DATA, epsilon=1.0, ledger=ledger)
    for promise in (found.models[0].guarantee, found.guarantee, score.guarantee):
        assert set(ledger.assumptions(DATA.name)) <= set(promise.assumes)
