"""Check that an estimator spends before it learns, keeps its guarantee, and can be saved and queried."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from discreet.core.checks import BudgetError, DataError, FileError, ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.estimator import Estimator
from discreet.models.fitted import FittedModel
from discreet.models.storage import load, read_label
from discreet.privacy.assumptions import Fact, assumptions_of
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.ledger.book import Ledger
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.recipes import MODELS, from_toml, parse_settings, to_toml
from discreet.testing.refusals import refuses
from discreet.testing.small_data import (
    fitted_once,
    never_private,
    notes_folder,
    observed,
    timed_data,
    toy_data,
)
from discreet.testing.spending import (
    Cases,
    cases,
    data_for,
    runs_over_parties,
    sources,
    spends_exactly,
    spends_exactly_at_a_party,
    undeclared,
)

_FACTS = PublicFacts(n_items=40, n_users=256)


class EstimatorContract:
    """The contract of one estimator.

    `proofs_in` is the folder of the note that the estimator names. `tried` has values of its own settings,
    for the law that it spends exactly what it guarantees. `spending.SETTINGS` has values for usual names.
    """

    estimator: ClassVar[type[Estimator]]
    proofs_in: ClassVar[Path | None] = None
    tried: ClassVar[Mapping[str, Cases]] = {}

    def make(self, epsilon: float = 2.0) -> Estimator:
        """Return the estimator with default settings; without privacy if it has no private version."""
        return self._at(math.inf if self.never_private else epsilon)

    def _at(self, epsilon: Any, **settings: Any) -> Estimator:
        return self.estimator(epsilon=epsilon, **settings)

    @property
    def never_private(self) -> bool:
        """Return whether the estimator has no private version."""
        return never_private(self.estimator)

    @property
    def data(self) -> Interactions:
        """Return small data with the feedback that the estimator learns from."""
        return toy_data(self.make().feedback)

    @property
    def fitted(self) -> FittedModel:
        """Return a model that was fitted once for all checks."""
        return fitted_once(self.estimator)

    def _needs_privacy(self) -> None:
        if self.never_private:
            pytest.skip("it has no private version")

    # What it is

    def test_is_a_final_frozen_keyword_only_dataclass(self) -> None:
        kind: Any = self.estimator
        assert getattr(kind, "__final__", False)
        assert "__dataclass_fields__" in vars(kind) and kind.__dataclass_params__.frozen
        assert all(field.kw_only for field in dataclasses.fields(kind))
        assert kind.fit is Estimator.fit

    def test_a_registered_name_is_its_own(self) -> None:
        name = self.estimator.name
        if name not in MODELS:
            pytest.skip("not registered; give it an entry point in the group discreet.estimators")
        assert MODELS[name] is self.estimator

    def test_docstring_and_promise_say_the_same(self) -> None:
        promise, text = self.make().promise(_FACTS), self.estimator.__doc__ or ""
        assert "Guarantee" in text
        if promise.basis is Basis.PROVED:
            assert promise.proof is not None and promise.proof in text
            note = (self.proofs_in or notes_folder()) / promise.proof
            assert note.is_file() and self.estimator.__name__ in note.read_text(encoding="utf8")
        if self.never_private:
            assert "NOT PRIVATE" in text
        else:
            assert "`epsilon`" in text

    def test_its_docstring_has_a_promise_the_noise_and_an_example(self) -> None:
        text = self.estimator.__doc__ or ""
        assert "\n    Guarantee\n" in text and ">>> model = " in text
        assert self.never_private or "\n    Noise\n" in text

    def test_it_can_be_copied_and_asked_for_its_settings(self) -> None:
        recipe = self.make()
        assert type(recipe)(**recipe.get_params()) == recipe.clone() == recipe
        other = recipe.clone(epsilon=math.inf)
        assert other.epsilon == math.inf and type(other) is type(recipe)
        assert repr(recipe).startswith(type(recipe).__name__) and "\n" not in repr(recipe)
        with pytest.raises(ParameterError, match="no setting"):
            recipe.clone(nonsense=1)

    def test_scikit_learn_can_clone_it(self) -> None:
        # The requirements of `sklearn.base.clone`, so that scikit-learn doesn't have to be installed.
        recipe = self.make()
        settings = {key: copy.deepcopy(value) for key, value in recipe.get_params(deep=False).items()}
        again = type(recipe)(**settings)
        assert again == recipe
        for key, value in again.get_params(deep=False).items():
            assert value is settings[key], key

    def test_recipe_survives_toml_and_text(self) -> None:
        estimator, name = self.make(), self.estimator.name
        if name not in MODELS:
            pytest.skip("not registered; give it an entry point in the group discreet.estimators")
        assert from_toml(to_toml(estimator)) == estimator
        assert parse_settings(name, ["epsilon=0.5"]) == {"epsilon": 0.5}
        with pytest.raises(ParameterError, match="no setting"):
            parse_settings(name, ["no_such_setting=1"])

    @pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, "1", None])
    def test_refuses_a_bad_epsilon(self, epsilon: Any) -> None:
        with pytest.raises(ParameterError, match="epsilon"):
            self._at(epsilon)

    @pytest.mark.parametrize("delta", [-0.1, -1e-6, 1.0, 1.5, 2.0, math.nan, math.inf, "x"])
    def test_refuses_a_bad_delta(self, delta: Any) -> None:
        if "delta" not in {field.name for field in dataclasses.fields(self.make())}:  # type: ignore[arg-type]
            pytest.skip("this guarantee is always pure")
        for epsilon in (1.0, self.make(1.0).epsilon):
            with pytest.raises(ParameterError, match=r"^delta\b"):
                self._at(epsilon, delta=delta)

    # What it guarantees, and when it spends

    def test_promise_states_the_epsilon_that_was_asked_for(self) -> None:
        promise = self.make(1.5).promise(_FACTS)
        assert promise.epsilon == (math.inf if self.never_private else 1.5)
        assert set(assumptions_of(_FACTS)) <= set(promise.assumes)
        assert promise.reads_raw_ratings == (promise.trust is Trust.LOCAL and not self.never_private)
        nothing = self._at(math.inf).promise(_FACTS)
        assert not nothing.is_private and nothing.sentence().startswith("NOT PRIVATE")
        assert Guarantee.from_json(promise.to_json()) == promise

    def test_fit_attaches_the_promise_and_marks_simulated_noise(self) -> None:
        model, recipe = self.fitted, self.make(30.0)
        assert model.guarantee == recipe.promise(self.data.facts).as_simulated()
        assert model.name == self.estimator.name and model.parameters == recipe.settings

    def test_pays_before_it_reads_and_a_crash_is_still_paid(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ledger = Ledger.in_memory()

        def crash(*_: Any) -> None:
            assert [entry.state for entry in ledger.entries()] == ["open"]
            raise RuntimeError("power cut")

        monkeypatch.setattr(self.estimator, "_train", crash)
        with pytest.raises(RuntimeError, match="power cut"):
            quiet(self.make(), self.data, ledger=ledger)
        (entry,) = ledger.entries()
        assert entry.state == "failed" and entry.what == self.estimator.name
        assert entry.guarantee.epsilon == self.make().promise(self.data.facts).epsilon

    def test_does_not_train_when_the_budget_is_too_small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._needs_privacy()
        ledger, promise = Ledger.in_memory(), self.make().promise(self.data.facts)
        ledger.set_budget(self.data.name, dataclasses.replace(promise, epsilon=promise.epsilon / 2))
        monkeypatch.setattr(self.estimator, "_train", lambda *_: pytest.fail("trained before spending"))
        with pytest.raises(BudgetError):
            quiet(self.make(), self.data, ledger=ledger)
        assert ledger.entries() == []

    def test_refuses_data_that_teaches_nothing_and_pays_nothing(self) -> None:
        data, ledger = self.data, Ledger.in_memory()
        poor = [data.select_items(np.arange(1))]
        counted = self.make().promise(data.facts).neighbors is Neighbors.ADD_OR_REMOVE
        if self.never_private or not counted:
            poor.append(data.select_users(np.arange(1)))
        if self.make().feedback == "explicit" and self.never_private:
            poor.append(data.with_values(np.full_like(data.values, 3.0)))
        for one in poor:
            with pytest.raises(DataError):
                quiet(self.make(), one, ledger=ledger)
        assert ledger.entries() == []

    def test_no_refusal_depends_on_one_user(self) -> None:
        """An error for equal ratings would reveal the one user who disagrees.

        An error for one user would, too.
        """
        self._needs_privacy()
        data = self.data
        equal = data.with_values(np.full_like(data.values, data.facts.high))
        model = quiet(self.make(), equal)
        assert np.isfinite(model.scores(equal, np.arange(3))).all()
        if self.make().promise(data.facts).neighbors is Neighbors.ADD_OR_REMOVE:
            for few in (0, 1):
                lonely = quiet(self.make(), data.select_users(np.arange(few)))
                assert np.isfinite(lonely.scores(data, np.arange(3))).all()

    def test_one_more_rating_changes_one_rating_of_what_is_used(self) -> None:
        """If a cap dropped a different rating, a guarantee about single ratings would cost twice."""
        data = self.data
        if self.make().promise(data.facts).unit is not Unit.RATING:
            pytest.skip("the guarantee is not about single ratings")
        capped = data.with_facts(dataclasses.replace(data.facts, max_per_user=5))
        fewer = np.ones(data.n_ratings, dtype=bool)
        fewer[3] = False
        used, without = (self.make()._bound(one) for one in (capped, capped.where(fewer)))
        assert used.n_ratings - without.n_ratings == 1
        assert Fact.CAP not in {one.fact for one in self.make().promise(capped.facts).assumes}

    def test_every_setting_has_values_to_try(self) -> None:
        self._needs_privacy()
        missing = undeclared(self.estimator, self.tried)
        assert not missing, f"Declare values of {sorted(missing)} in `tried`: any may change a release."

    def spending_cases(self) -> list[Estimator]:
        """Return the settings with which spending is checked: all declared ones, each by itself."""
        return cases(self.estimator, self.tried)

    def test_it_spends_exactly_what_it_guarantees(self) -> None:
        self._needs_privacy()
        wrong = {
            f"{estimator.named} at {estimator.epsilon:g}": found
            for estimator in self.spending_cases()
            if (found := spends_exactly(estimator, data_for(estimator)))
        }
        assert not wrong

    def test_it_spends_exactly_on_shards_and_on_a_cluster(self, tmp_path: Path) -> None:
        self._needs_privacy()
        if self.make().rows_needed() is not None:
            pytest.skip("it needs rows in memory")
        wrong = {
            f"{estimator.named} at {estimator.epsilon:g} on {kind}": found
            for kind, source in sources(timed_data(), tmp_path).items()
            for estimator in self.spending_cases()
            if estimator.rows_needed() is None and (found := spends_exactly(estimator, source))
        }
        assert not wrong

    def test_it_spends_exactly_at_a_party(self) -> None:
        self._needs_privacy()
        if self.make().rows_needed() is not None:
            pytest.skip("it needs rows in memory")
        wrong = {
            f"{estimator.named} at {estimator.epsilon:g}": found
            for estimator in self.spending_cases()
            if runs_over_parties(estimator) and (found := spends_exactly_at_a_party(estimator, timed_data()))
        }
        assert not wrong

    # What it releases

    def test_same_simulation_same_model_and_other_noise_other_model(self) -> None:
        first, again, other = (
            _contents(quiet(self.make(), self.data, seed), self.data) for seed in (3, 3, 4)
        )
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
        if not self.never_private:
            assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))

    def test_what_is_published_of_users_is_what_mechanisms_returned(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With mechanisms that ignore their input, two datasets must lead to the same model."""
        data = self.data
        promise = self.make().promise(data.facts)
        if promise.unit is not Unit.USER or promise.trust is Trust.LOCAL or self.never_private:
            pytest.skip("other privacy definitions release noisy numbers user by user")

        def blind(mechanism: object, values: Any, random: PrivacyRandom) -> Any:
            values = observed(values, "release")
            return 3 + np.random.default_rng(np.size(values)).standard_normal(np.shape(values))

        def blind_symmetric(mechanism: object, matrix: Any, random: PrivacyRandom) -> Any:
            square = blind(mechanism, matrix, random)
            return square + square.T

        for mechanism in (Gaussian, Laplace):
            monkeypatch.setattr(mechanism, "release", blind)
            monkeypatch.setattr(mechanism, "release_symmetric", blind_symmetric)
        some = data.select_users(np.arange(100))
        others = some.with_values(some.values[::-1].copy())
        first, second = quiet(self.make(), data), quiet(self.make(), others)
        assert first.scorer.settings() == second.scorer.settings()
        mine, theirs = (dict(sorted(one.scorer.arrays().items())) for one in (first, second))
        assert mine.keys() == theirs.keys()
        for key, array in mine.items():
            np.testing.assert_array_equal(array, theirs[key], err_msg=key)

    def test_leaves_the_data_alone(self) -> None:
        data = self.data
        before = data.indptr.copy(), data.items.copy(), data.values.copy()
        quiet(self.make(), data)
        np.testing.assert_array_equal(data.indptr, before[0])
        np.testing.assert_array_equal(data.items, before[1])
        np.testing.assert_array_equal(data.values, before[2])

    def test_permuting_users_permutes_results_without_noise(self) -> None:
        order = np.random.default_rng(0).permutation(self.data.n_users)
        shuffled = self.data.select_users(order)
        plain = quiet(self._at(math.inf), self.data).scores(self.data, order)
        moved = quiet(self._at(math.inf), shuffled).scores(shuffled, np.arange(len(order)))
        np.testing.assert_allclose(moved, plain, rtol=2e-2, atol=2e-2)

    # Files and answers

    def test_saving_and_loading_keeps_promise_and_predictions(self, tmp_path: Path) -> None:
        model, rows = self.fitted, np.arange(5)
        model.save(tmp_path / "m.discreet")
        loaded = load(tmp_path / "m.discreet")
        assert loaded.guarantee == model.guarantee and loaded.guarantee.simulated
        assert loaded.facts == model.facts and loaded.parameters == model.parameters
        np.testing.assert_array_equal(loaded.scores(self.data, rows), model.scores(self.data, rows))

    def test_file_lists_every_array_and_holds_no_row_of_a_user(self, tmp_path: Path) -> None:
        model, data = self.fitted, self.data
        model.save(tmp_path / "m.discreet")
        label = read_label(tmp_path / "m.discreet")
        stored = set(model.scorer.arrays()) | {"catalog"}
        assert set(label["provenance"]) == stored and all(label["provenance"].values())
        if model.guarantee.unit is Unit.USER:
            for array in model.scorer.arrays().values():
                assert data.n_users not in array.shape and data.n_ratings not in array.shape

    def test_refuses_a_cut_or_edited_file(self, tmp_path: Path) -> None:
        path = tmp_path / "m.discreet"
        self.fitted.save(path)
        whole = path.read_bytes()
        with pytest.raises(FileError):
            self.fitted.save(path)
        assert path.read_bytes() == whole
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(FileError):
            load(path)

    def test_recommends_unseen_items_of_the_catalog(self) -> None:
        data, model = self.data, self.fitted
        if model.guarantee.unit is not Unit.USER:
            pytest.skip("this release contains rows of its own users and serves only them")
        span = slice(*data.indptr[:2])
        ids = data.catalog.id_at(data.items[span]).tolist()
        history = dict(zip(ids, data.values[span].tolist(), strict=True))
        best = model.recommend(history, k=5)
        assert len(best) == 5 and not {item for item, _ in best} & set(ids)
        scores = [score for _, score in best]
        assert scores == sorted(scores, reverse=True) and np.isfinite(scores).all()
        assert len(model.recommend(history, k=10**6)) == data.n_items - len(ids)
        assert len(model.recommend({}, k=3)) == 3
        with refuses("unknown-items", count=1, of=1):
            model.recommend({"no such item": 3.0})
        with pytest.raises(ParameterError):
            model.recommend(history, k=0)

    def test_predictions_agree_with_scores(self) -> None:
        model, data = self.fitted, self.data
        rows, items = np.repeat(np.arange(4), 3), np.tile(np.array([0, 5, 9]), 4)
        cells = model.predict(data, rows, items)
        assert cells.shape == (12,) and np.isfinite(cells).all()
        everything = model.scores(data, np.arange(4))
        assert everything.shape == (4, data.n_items)
        low, high = data.facts.low, data.facts.high
        clipped = everything if low == high or model.above is not None else np.clip(everything, low, high)
        np.testing.assert_allclose(cells.reshape(4, 3), clipped[:, [0, 5, 9]], rtol=1e-4, atol=1e-4)


def quiet(estimator: Estimator, data: Interactions, seed: int = 3, **options: Any) -> FittedModel:
    """Fit with simulated noise."""
    return estimator.fit(data, random=PrivacyRandom.simulate(seed), **options)


def _contents(model: FittedModel, data: Interactions) -> list[Any]:
    # A release of single cells contains only the requested cells.
    model.scores(data, np.arange(5))
    return [array for _, array in sorted(model.scorer.arrays().items())]
