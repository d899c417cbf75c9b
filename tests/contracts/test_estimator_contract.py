"""What every registered estimator must hold to; a new one is found by itself."""

import copy
import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

import discreet
import discreet.models.storage
from discreet.core.checks import BudgetError, DataError, DiscreetError, FileError, ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.estimator import Estimator
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.ledger.book import Ledger
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.recipes import (
    MODELS,
    describe_models,
    estimator,
    from_toml,
    is_never_private,
    parse_settings,
    to_toml,
)
from small_sources import observed
from toy import toy_interactions

ROOT = Path(__file__).parents[2]
NAMES = sorted(MODELS)
NON_PRIVATE = {"als", "implicit-als", "ease", "item-knn"}


@pytest.fixture(scope="module")
def explicit() -> Interactions:
    return toy_interactions(seed=1)


@pytest.fixture(scope="module")
def data(explicit):
    implicit = explicit.with_values(
        np.ones_like(explicit.values), facts=dataclasses.replace(explicit.facts, low=1.0, high=1.0, step=None)
    )

    def choose(name: str) -> Interactions:
        return implicit if make(name).feedback == "implicit" else explicit

    return choose


def make(name: str, epsilon: float = 2.0) -> Estimator:
    return MODELS[name](epsilon=math.inf if name in NON_PRIVATE else epsilon)


def quiet(estimator: Estimator, data: Interactions, seed: int = 3, **options):
    return estimator.fit(data, random=PrivacyRandom.simulate(seed), **options)


@pytest.mark.parametrize("name", NAMES)
def test_is_a_final_frozen_keyword_only_dataclass(name):
    kind = MODELS[name]
    assert kind.name == name
    assert getattr(kind, "__final__", False)
    assert dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen
    assert all(field.kw_only for field in dataclasses.fields(kind))
    assert kind.fit is Estimator.fit


@pytest.mark.parametrize("name", NAMES)
def test_docstring_and_promise_say_the_same(name):
    kind, facts = MODELS[name], PublicFacts(n_items=40, n_users=256)
    promise = make(name).promise(facts)
    text = kind.__doc__ or ""
    assert "Guarantee" in text
    if promise.basis is Basis.PROVED:
        assert promise.proof in text
        note = ROOT / promise.proof
        assert note.is_file() and kind.__name__ in note.read_text(encoding="utf8")
    if name in NON_PRIVATE:
        assert "NOT PRIVATE" in text
    else:
        assert "`epsilon`" in text


@pytest.mark.parametrize("name", NAMES)
def test_promise_states_the_epsilon_that_was_asked_for(name):
    facts = PublicFacts(n_items=40, n_users=256)
    promise = make(name, 1.5).promise(facts)
    assert promise.epsilon == (math.inf if name in NON_PRIVATE else 1.5)
    assert set(facts.assumptions()) <= set(promise.assumes)
    nothing = MODELS[name](epsilon=math.inf).promise(facts)
    assert not nothing.is_private and nothing.sentence().startswith("NOT PRIVATE")


@pytest.mark.parametrize("name", NAMES)
def test_fit_attaches_the_promise_and_marks_simulated_noise(name, data):
    model = quiet(make(name), data(name))
    assert model.guarantee == make(name).promise(data(name).facts).as_simulated()
    assert model.name == name and model.parameters == make(name).settings


@pytest.mark.parametrize("name", NAMES)
def test_pays_before_it_reads_and_a_crash_is_still_paid(name, data, monkeypatch):
    ledger = Ledger.in_memory()

    def crash(self, data, random, progress):
        assert [entry.state for entry in ledger.entries()] == ["open"]
        raise RuntimeError("power cut")

    monkeypatch.setattr(MODELS[name], "_train", crash)
    with pytest.raises(RuntimeError, match="power cut"):
        quiet(make(name), data(name), ledger=ledger)
    (entry,) = ledger.entries()
    assert entry.state == "failed" and entry.what == name
    assert entry.guarantee.epsilon == make(name).promise(data(name).facts).epsilon


@pytest.mark.parametrize("name", sorted(set(NAMES) - NON_PRIVATE))
def test_does_not_train_when_the_budget_is_too_small(name, data, monkeypatch):
    ledger, promise = Ledger.in_memory(), make(name).promise(data(name).facts)
    ledger.set_budget(data(name).name, dataclasses.replace(promise, epsilon=promise.epsilon / 2))

    def train(self, data, random, progress):
        pytest.fail("trained without paying")

    monkeypatch.setattr(MODELS[name], "_train", train)
    with pytest.raises(BudgetError):
        quiet(make(name), data(name), ledger=ledger)
    assert ledger.entries() == []


@pytest.mark.parametrize("name", NAMES)
def test_same_simulation_same_model_and_other_noise_other_model(name, data):
    first, again, other = (asked(quiet(make(name), data(name), seed), data(name)) for seed in (3, 3, 4))
    same = [np.array_equal(a, b) for a, b in zip(contents(first), contents(again), strict=True)]
    assert all(same)
    if name not in NON_PRIVATE:
        assert not all(np.array_equal(a, b) for a, b in zip(contents(first), contents(other), strict=True))


def contents(model):
    return [array for _, array in sorted(model.scorer.arrays().items())]


def asked(model, data):
    """Return the model after a few questions: a release of single cells holds only what was asked for."""
    model.scores(data, np.arange(5))
    return model


@pytest.mark.parametrize("name", NAMES)
def test_saving_and_loading_keeps_promise_and_predictions(name, data, fitted, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "m.discreet")
    loaded = discreet.load(tmp_path / "m.discreet")
    assert loaded.guarantee == model.guarantee and loaded.guarantee.simulated
    assert loaded.facts == model.facts and loaded.parameters == model.parameters
    rows = np.arange(5)
    np.testing.assert_array_equal(loaded.scores(data(name), rows), model.scores(data(name), rows))


@pytest.mark.parametrize("name", NAMES)
def test_file_lists_every_array_and_holds_no_row_of_a_user(name, data, fitted, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "m.discreet")
    label = discreet.models.storage.read_label(tmp_path / "m.discreet")
    stored = set(model.scorer.arrays()) | {"catalog"}
    assert set(label["provenance"]) == stored and all(label["provenance"].values())
    if model.guarantee.unit is Unit.USER:
        for array in model.scorer.arrays().values():
            assert data(name).n_users not in array.shape and data(name).n_ratings not in array.shape


@pytest.mark.parametrize("name", NAMES)
def test_what_is_published_of_users_is_what_mechanisms_returned(name, data, monkeypatch):
    """With mechanisms that ignore what they are given, two data sets must lead to the same model."""
    interactions = data(name)
    promise = make(name).promise(interactions.facts)
    if promise.unit is not Unit.USER or promise.trust is Trust.LOCAL or name in NON_PRIVATE:
        pytest.skip("other frames release noisy numbers person by person")

    def blind(self, values, random):
        values = observed(values, "release")
        return 3 + np.random.default_rng(np.size(values)).standard_normal(np.shape(values))

    def blind_symmetric(self, matrix, random):
        square = blind(self, matrix, random)
        return square + square.T

    for mechanism in (Gaussian, Laplace):
        monkeypatch.setattr(mechanism, "release", blind)
        monkeypatch.setattr(mechanism, "release_symmetric", blind_symmetric)
    others = interactions.select_users(np.arange(100)).with_values(
        interactions.select_users(np.arange(100)).values[::-1].copy()
    )
    first, second = quiet(make(name), interactions), quiet(make(name), others)
    assert first.scorer.settings() == second.scorer.settings()
    for (key, mine), (_, theirs) in zip(
        sorted(first.scorer.arrays().items()), sorted(second.scorer.arrays().items()), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs, err_msg=key)


@pytest.mark.parametrize("name", NAMES)
def test_refuses_a_cut_or_edited_file(name, fitted, tmp_path):
    path = tmp_path / "m.discreet"
    fitted(name).save(path)
    whole = path.read_bytes()
    with pytest.raises(FileError):
        fitted(name).save(path)
    assert path.read_bytes() == whole
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError):
        discreet.load(path)


@pytest.mark.parametrize("name", NAMES)
def test_recommends_unseen_items_of_the_catalog(name, data, fitted):
    interactions, model = data(name), fitted(name)
    if model.guarantee.unit is not Unit.USER:
        pytest.skip("this release holds rows of its own users and serves only them")
    span = slice(*interactions.indptr[:2])
    ids = interactions.catalog.id_at(interactions.items[span]).tolist()
    history = dict(zip(ids, interactions.values[span].tolist(), strict=True))
    best = model.recommend(history, k=5)
    assert len(best) == 5 and not {item for item, _ in best} & set(ids)
    scores = [score for _, score in best]
    assert scores == sorted(scores, reverse=True) and np.isfinite(scores).all()
    assert len(model.recommend(history, k=10**6)) == interactions.n_items - len(ids)
    assert len(model.recommend({}, k=3)) == 3
    with pytest.raises(DataError, match="not in the model's catalog"):
        model.recommend({"no such item": 3.0})
    with pytest.raises(ParameterError):
        model.recommend(history, k=0)


@pytest.mark.parametrize("name", NAMES)
def test_predictions_agree_with_scores(name, data, fitted):
    model, interactions = fitted(name), data(name)
    rows, items = np.repeat(np.arange(4), 3), np.tile(np.array([0, 5, 9]), 4)
    cells = model.predict(interactions, rows, items)
    assert cells.shape == (12,) and np.isfinite(cells).all()
    everything = model.scores(interactions, np.arange(4))
    assert everything.shape == (4, interactions.n_items)
    low, high = interactions.facts.low, interactions.facts.high
    clipped = everything if low == high or model.above is not None else np.clip(everything, low, high)
    np.testing.assert_allclose(cells.reshape(4, 3), clipped[:, [0, 5, 9]], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_permuting_users_permutes_results_without_noise(name, data):
    interactions = data(name)
    order = np.random.default_rng(0).permutation(interactions.n_users)
    shuffled = interactions.select_users(order)
    plain = quiet(MODELS[name](epsilon=math.inf), interactions).scores(interactions, order)
    moved = quiet(MODELS[name](epsilon=math.inf), shuffled).scores(shuffled, np.arange(len(order)))
    np.testing.assert_allclose(moved, plain, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", NAMES)
def test_leaves_the_data_alone(name, data):
    interactions = data(name)
    before = [array.copy() for array in (interactions.indptr, interactions.items, interactions.values)]
    quiet(make(name), interactions)
    after = (interactions.indptr, interactions.items, interactions.values)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, "1", None])
def test_refuses_a_bad_epsilon(name, epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        MODELS[name](epsilon=epsilon)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delta", [-0.1, 1.0, 2.0, math.nan])
def test_refuses_a_bad_delta(name, delta):
    if "delta" not in {field.name for field in dataclasses.fields(MODELS[name])}:
        pytest.skip("this promise is always pure")
    with pytest.raises(ParameterError, match="delta"):
        MODELS[name](epsilon=math.inf if name in NON_PRIVATE else 1.0, delta=delta)


@pytest.mark.parametrize("name", NAMES)
def test_refuses_data_that_teaches_nothing_and_pays_nothing(name, data):
    interactions, ledger = data(name), Ledger.in_memory()
    poor = [interactions.select_items(np.arange(1))]
    counted = make(name).promise(interactions.facts).neighbors is Neighbors.ADD_OR_REMOVE
    if name in NON_PRIVATE or not counted:
        poor.append(interactions.select_users(np.arange(1)))
    if make(name).feedback == "explicit" and name in NON_PRIVATE:
        poor.append(interactions.with_values(np.full_like(interactions.values, 3.0)))
    for one in poor:
        with pytest.raises(DataError):
            quiet(make(name), one, ledger=ledger)
    assert ledger.entries() == []


@pytest.mark.parametrize("name", sorted(set(NAMES) - NON_PRIVATE))
def test_nobody_is_told_of_by_a_refusal(name, data):
    """To refuse equal ratings would tell of the one person who disagrees; one person, of the second."""
    interactions = data(name)
    equal = interactions.with_values(np.full_like(interactions.values, interactions.facts.high))
    model = quiet(make(name), equal)
    assert np.isfinite(model.scores(equal, np.arange(3))).all()
    if make(name).promise(interactions.facts).neighbors is Neighbors.ADD_OR_REMOVE:
        for few in (0, 1):
            lonely = quiet(make(name), interactions.select_users(np.arange(few)))
            assert np.isfinite(lonely.scores(interactions, np.arange(3))).all()


@pytest.mark.parametrize("name", NAMES)
def test_recipe_survives_toml_and_text(name):
    estimator = make(name)
    assert from_toml(to_toml(estimator)) == estimator
    assert parse_settings(name, ["epsilon=0.5"]) == {"epsilon": 0.5}
    with pytest.raises(ParameterError, match="no setting"):
        parse_settings(name, ["no_such_setting=1"])


def test_every_model_is_described():
    rows = describe_models()
    assert sorted(row["name"] for row in rows) == NAMES
    assert all(row["summary"] and row["unit"] and row["trust"] for row in rows)


def test_guarantee_survives_a_pickle_free_round_trip():
    for name in NAMES:
        promise = make(name).promise(PublicFacts(n_items=40, n_users=256))
        assert Guarantee.from_json(promise.to_json()) == promise


def test_an_unknown_model_is_one_sentence():
    with pytest.raises(DiscreetError, match="is not known"):
        estimator("oracle", {"epsilon": 1.0})


@pytest.mark.parametrize("name", NAMES)
def test_one_more_cell_changes_one_cell_of_what_is_used(name, data):
    """A cap that pushes another cell out would make a promise about single cells cost twice."""
    interactions = data(name)
    if make(name).promise(interactions.facts).unit is not Unit.RATING:
        pytest.skip("the promise is not about single cells")
    capped = interactions.with_facts(dataclasses.replace(interactions.facts, max_per_user=5))
    fewer = np.ones(interactions.n_ratings, dtype=bool)
    fewer[3] = False
    used, without = (make(name)._bound(one) for one in (capped, capped.where(fewer)))
    assert used.n_ratings - without.n_ratings == 1
    assert not any("of a person are used" in line for line in make(name).promise(capped.facts).assumes)


def test_things_of_another_kind_are_one_sentence(explicit):
    """A file's name for a ledger, a mapping for the data: what people try first."""
    model = estimator("biases", {"epsilon": 1.0, "delta": 1e-6})
    for arguments in (
        {"data": {"user": [1], "item": [2]}},
        {"data": explicit, "ledger": "paid.ledger"},
        {"data": explicit, "random": 3},
    ):
        with pytest.raises(ParameterError, match=r"must be (of type|interactions)"):
            model.fit(**arguments)


def test_a_history_may_be_a_series_and_must_hold_numbers(explicit):
    pandas = pytest.importorskip("pandas")
    fitted = estimator("biases", {"epsilon": 1.0, "delta": 1e-6}).fit(explicit)
    history = dict.fromkeys(explicit.catalog.ids[:3].tolist(), 4.0)
    assert fitted.recommend(pandas.Series(history), 5) == fitted.recommend(history, 5)
    for wrong in ("x", None):
        with pytest.raises(DataError, match="must be numbers"):
            fitted.recommend(dict.fromkeys(history, wrong))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_its_docstring_has_a_promise_the_noise_and_an_example(name):
    """The examples themselves run as doctests."""
    text = MODELS[name].__doc__
    assert "\n    Guarantee\n" in text and ">>> model = " in text
    assert is_never_private(name) or "\n    Noise\n" in text


@pytest.mark.parametrize("name", sorted(MODELS))
def test_it_can_be_copied_and_asked_for_its_settings(name):
    recipe = make(name)
    assert type(recipe)(**recipe.get_params()) == recipe.clone() == recipe
    other = recipe.clone(epsilon=math.inf)
    assert other.epsilon == math.inf and type(other) is type(recipe)
    assert repr(recipe).startswith(type(recipe).__name__) and "\n" not in repr(recipe)
    with pytest.raises(ParameterError, match="no setting"):
        recipe.clone(nonsense=1)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_scikit_learn_can_clone_it(name):
    # What `sklearn.base.clone` does and insists on, so that it need not be installed to be held to.
    recipe = make(name)
    settings = {key: copy.deepcopy(value) for key, value in recipe.get_params(deep=False).items()}
    again = type(recipe)(**settings)
    assert again == recipe
    for key, value in again.get_params(deep=False).items():
        assert value is settings[key], key
