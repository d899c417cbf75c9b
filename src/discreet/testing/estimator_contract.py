"""Check that an estimator spends before it learns, keeps its guarantee, and can be saved and queried."""

from __future__ import annotations

import copy
import dataclasses
import logging
import math
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
import pytest

from discreet.core import PrivacyRandom, logger, silent
from discreet.core.checks import BudgetError, DataError, FileError, ParameterError
from discreet.data import Interactions, PublicFacts
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.protocols.protocol import StepResult
from discreet.model_settings import MODELS, from_toml, parse_settings, to_toml
from discreet.models import Biases, Estimator, FittedModel, label_of, load, read_label
from discreet.privacy import (
    Basis,
    Fact,
    Guarantee,
    Ledger,
    Neighbors,
    ReleaseEntry,
    Session,
    Trust,
    Unit,
    assumptions_of,
    compose_gaussians,
    gaussian_epsilon,
)
from discreet.sources import ClusterSource, ShardFolder, make_shards, open_shards
from discreet.statistics import DataSource
from discreet.testing.refusals import refuses
from discreet.testing.small_data import fitted_once, never_private, notes_folder, timed_data, toy_data

_FACTS = PublicFacts(n_items=40, n_users=256)


class EstimatorContract:
    """The contract of one estimator.

    `proofs_in` is the folder of the note that the estimator names. `tried` has values of its own settings,
    for the law that it spends exactly what it guarantees. `spending.SETTINGS` has values for usual names.

    Example:
        >>> from discreet import Biases
        >>> class TestBiases(EstimatorContract):
        ...     estimator = Biases
        >>> TestBiases().make().name
        'biases'

    Stability
        Stable.
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

    def test_it_learns_from_bounded_rows(self) -> None:
        """Ratings beyond the scale, and more of them than the cap allows, must not reach a statistic."""
        self._needs_privacy()
        facts = dataclasses.replace(self.data.facts, low=2.0, high=4.0, max_per_user=5)
        wide, estimator = self.data.with_facts(facts), self.make()
        bounded = estimator._bound(wide)
        assert bounded.values.min() >= 2 and bounded.values.max() <= 4
        if estimator.promise(facts).unit is Unit.USER:
            assert np.diff(bounded.indptr).max() == 5
        first, second = (_contents(quiet(estimator, one), self.data) for one in (wide, bounded))
        assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))

    def test_what_is_public_about_items_is_assumed(self) -> None:
        self._needs_privacy()
        facts = self.data.facts
        usual = set(self.make(1.0).promise(facts).assumes)
        for name in {"item_features", "prior"} & self.make().settings.keys():
            for settings in _accepted(self.estimator, self.tried, name):
                assert set(self._at(1.0, **settings).promise(facts).assumes) > usual

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

    def test_what_leaves_a_fit_follows_from_its_releases(self) -> None:
        """A fit on other data that gets the releases of this fit must return and report the same."""
        self._needs_privacy()
        wrong = {
            f"{estimator.named} at {estimator.epsilon:g}": found
            for estimator in self.spending_cases()
            if (found := leaks(estimator, data_for(estimator)))
        }
        assert not wrong

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


#: Settings to try, each as what is passed; a function makes what a fit needs on disk.
Cases = Sequence[Mapping[str, Any] | Callable[[], Mapping[str, Any]]]

# Rounding of epsilon when two accountants compute it.
_CLOSE = 1e-6


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    # Kept until the process ends, and then removed.
    return tempfile.TemporaryDirectory(prefix="discreet-prior-")


@cache
def _earlier_release() -> str:
    """Return the file of an earlier release, to start from."""
    file = Path(_folder().name, "earlier.discreet")
    Biases(epsilon=1.0).fit(timed_data(), random=PrivacyRandom.simulate(1)).save(file)
    return str(file)


def _features() -> Mapping[str, Any]:
    """Return a table of words that two halves of the catalog share."""
    import polars as pl

    ids = timed_data().catalog.ids.tolist()
    words = [
        f"{'east' if place % 2 else 'west'} {'old' if place % 3 else 'new'}" for place in range(len(ids))
    ]
    return {"item_features": pl.DataFrame({"item": ids, "words": words})}


#: What to try for each setting, by its name. A setting that is not here fails the suite until it is declared.
SETTINGS: Mapping[str, Cases] = {
    "feedback": [{"feedback": "implicit"}],
    "purpose": [{"purpose": "lists"}, {"purpose": "ratings"}],
    "item_features": [_features, lambda: {**_features(), "purpose": "lists"}],
    "prior": [lambda: {"prior": _earlier_release()}],
    "for_synthesis": [
        {"for_synthesis": True},
        {"for_synthesis": True, "purpose": "lists"},
        {"for_synthesis": True, "half_life": 7.0, "now": "2000-08-01"},
    ],
    "half_life": [{"half_life": 7.0}, {"half_life": 1e-3}, {"half_life": 7.0, "purpose": "lists"}],
    "now": [{"half_life": 7.0, "now": "2000-08-01"}],
    "rounds": [{"rounds": 1}, {"rounds": 3}],
    "solver": [
        {"solver": "oja"},
        {"solver": "covariance"},
        {"solver": "oja", "rounds": 2},
        {"solver": "weighted-pca"},
    ],
    "schedule": [{"schedule": "growing", "rounds": 3}],
    "steps": [{"steps": 3, "solver": "oja", "rounds": 2}],
    "row_bound": [{"row_bound": 2.0}],
    "radius": [{"radius": 5.0}],
    "biases": [{"biases": False}],
    "release": [{"release": "ahead"}, {"release": "ahead", "cells": 3}],
    "factors": [{"factors": 2}],
    "loss": [{"loss": name} for name in ("symmetric", "complementary", "strawman")],
    "alpha0": [{"alpha0": 0.5, "loss": "symmetric"}],
    "importance_sampling": [{"importance_sampling": True, "delta": 0.0}],
    "neighbors": [{"neighbors": 3}],
    "likeness": [{"likeness": "jaccard"}],
    "iterations": [{"iterations": 2}],
    "directions": [{"directions": 2}],
    "spread": [{"spread": 0.3}],
    "ratings_per_user": [{"ratings_per_user": 5}],
    "seed": [{"seed": 1}],
    "components": [{"components": 2}],
    "regularization": [{"regularization": 0.5}],
    "epochs": [{"epochs": 2}],
    "rate": [{"rate": 0.5}],
    "projected": [{"projected": 4}],
    "most_columns": [{"most_columns": 4}],
    "rho": [{"rho": 0.5}],
    "gamma": [{"gamma": 0.5}],
    "intrinsic": [{"intrinsic": 1.0}],
    "link": [{"link": "probit"}],
    "scale": [{"scale": 2.0}],
    "bound": [{"bound": 2.0}],
    "leveling": [{"leveling": 0.0}],
    "above": [{"above": 3.0}],
    "mean_share": [{"mean_share": 0.2}],
    "tolerance": [{"tolerance": 1e-2}],
    "clamp": [{"clamp": 0.25, "rounds": 2}],
    "step": [{"step": "barzilai-borwein", "rounds": 3}],
    "flip_positive": [{"flip_positive": 0.3, "flip_negative": 0.3}],
    "flip_negative": [{"flip_positive": 0.4, "flip_negative": 0.3}],
    "answer_bound": [{"answer_bound": 0.5}],
    "cells": [{"cells": 3}],
}


@cache
def grouped_data() -> Interactions:
    """Return many users of four groups that prefer their own items, so that factors exceed the noise."""
    rng, users, per_user = np.random.default_rng(3), 2000, 12
    group = np.arange(users) % 4
    catalog = timed_data().catalog
    chances = np.where(np.arange(len(catalog)) % 4 == np.arange(4)[:, None], 9.0, 1.0)
    drawn = rng.random((users, len(catalog))) ** (1 / chances[group])
    items = np.argsort(-drawn, axis=1)[:, :per_user]
    values = np.clip(
        np.round(3 + np.where(items % 4 == group[:, None], 1.5, -1.5) + rng.normal(0, 0.7, items.shape)), 1, 5
    )
    return Interactions.from_arrays(
        np.repeat(np.arange(users), per_user),
        catalog.ids[items.ravel()],
        values.ravel(),
        rng.permutation(items.size) + 964_982_703,
        catalog=catalog,
        facts=timed_data().facts,
        name="groups",
    )


def undeclared(kind: type[Estimator], own: Mapping[str, Cases]) -> set[str]:
    """Return the settings of an estimator for which no values that it accepts are declared."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return {name for name in names - {"epsilon", "delta"} if not _accepted(kind, own, name)}


def _accepted(kind: type[Estimator], own: Mapping[str, Cases], name: str) -> list[Mapping[str, Any]]:
    """Return the declared values of a setting that the estimator accepts.

    A name may have several meanings.
    """
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    given = [case() if callable(case) else case for case in own.get(name, SETTINGS.get(name, ()))]
    return [one for one in given if one.keys() <= names and _allows(kind, one)]


def cases(kind: type[Estimator], own: Mapping[str, Cases]) -> list[Estimator]:
    """Return the estimator with its defaults, and with every declared value of each of its settings."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    tried = [settings for name in names for settings in _accepted(kind, own, name)]
    # With little noise, a fit has other routes: more rounds, item vectors, factors.
    more = [kind(**{"epsilon": epsilon, **settings}) for settings in tried for epsilon in (1.0, 30.0)]
    return representatives(kind) + more


def representatives(kind: type[Estimator]) -> list[Estimator]:
    """Return the estimator with its defaults, with little noise, and with pure releases if it has them."""
    pure = [{"delta": 0.0}] if _allows(kind, {"delta": 0.0}) else []
    tried: list[Mapping[str, Any]] = [{}, {"epsilon": 30.0}, *pure]
    return [kind(**{"epsilon": 1.0, **settings}) for settings in tried]


def _allows(kind: type[Estimator], settings: Mapping[str, Any]) -> bool:
    try:
        kind(**{"epsilon": 1.0, **settings})
    except (ParameterError, TypeError):
        return False
    return True


def metered(estimator: Estimator, data: DataSource) -> tuple[Session, Guarantee]:
    """Return the session of a fit with real noise, after all that the model answers, and its guarantee."""
    source: Any = estimator.without_unread(data)
    promise = estimator.promise(source.facts)
    session = Session.open(source, promise, PrivacyRandom.from_os())
    scorer = estimator._trained(session, silent)
    if estimator.answers_in_process:
        # Entries are released on request. The budget of the fit covers this many.
        count = int(estimator.settings["cells"])
        scorer.predict(source, np.zeros(count, dtype=np.int64), np.arange(count))
    return session, promise


def recounted(log: Sequence[ReleaseEntry], delta: float) -> float:
    """Return the epsilon of all releases at this delta, from noise and bounds alone."""
    pure, multipliers = Fraction(0), []
    for one in log:
        if one.epsilon is not None:
            pure += one.epsilon
        elif one.mechanism == "laplace" and one.scale:
            pure += one.bound / one.scale
        elif one.mechanism == "gaussian" and one.scale:
            multipliers.append(float(one.scale / one.bound))
        else:
            return math.inf
    gaussian = gaussian_epsilon(compose_gaussians(multipliers), delta) if multipliers else 0.0
    return float(pure) + gaussian


def data_for(estimator: Estimator) -> Interactions:
    """Return data on which an estimator with little noise uses all its routes, in a moment."""
    return grouped_data() if estimator.rows_needed() is None else timed_data()


def sharded(data: Interactions, folder: Path, n_shards: int = 3) -> ShardFolder:
    """Return the same ratings as a folder of shards, made from a file in which users' rows are mixed."""
    import polars as pl

    order = np.random.default_rng(0).permutation(data.n_ratings)
    columns = {
        "user": data.users.ids[data.rows()[order]].tolist(),
        "item": data.catalog.ids[data.items[order]].tolist(),
        "rating": data.values[order],
    }
    times = {} if data.times is None else {"time": data.times[order]}
    pl.DataFrame({**columns, **times}).write_parquet(folder / "ratings.parquet")
    facts = data.facts
    make_shards(
        [folder / "ratings.parquet"],
        folder / "shards",
        n_shards=n_shards,
        catalog=data.catalog,
        low=facts.low,
        high=facts.high,
        step=facts.step,
        n_users=facts.n_users,
        max_per_user=facts.max_per_user,
    )
    return open_shards(folder / "shards")


@final
class InProcessCluster:
    """A client without a cluster: it runs each task at once, through bytes as a cluster would."""

    def submit(self, job: Callable[..., Any], *arguments: Any, pure: bool) -> Any:
        """Return a finished task. Arguments that are tasks are replaced by their results."""
        known = [_result(one) for one in arguments]
        return _Finished(pickle.loads(pickle.dumps(job(*pickle.loads(pickle.dumps(known))))))

    def ncores(self) -> dict[str, int]:
        """Return the threads of each worker."""
        return {"here": 1}

    def cancel(self, futures: Sequence[Any]) -> None:
        """Forget tasks, which have ended already."""


class _Finished(NamedTuple):
    value: Any

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        callback(self)

    def cancelled(self) -> bool:
        return False

    def result(self) -> Any:
        return self.value


def _result(one: Any) -> Any:
    if isinstance(one, list):
        return [_result(part) for part in one]
    return one.value if isinstance(one, _Finished) else one


def sources(data: Interactions, folder: Path) -> dict[str, DataSource]:
    """Return the same ratings on shards, and on shards that a cluster sums over."""
    shards = sharded(data, folder)
    return {"shards": shards, "cluster": ClusterSource(shards=shards, client=InProcessCluster())}


def spends_exactly(estimator: Estimator, data: DataSource) -> str:
    """Return what is wrong with an estimator's spending on these data, or nothing."""
    session, promise = metered(estimator, data)
    if math.isinf(promise.epsilon):
        return ""
    session.check(promise)
    if session.unspent() > Fraction(1, 10**9):
        return f"{float(session.unspent()):.3g} of an account was never spent"
    return _compared(session.log, promise)


class Transcript:
    """What sessions returned in one fit, for another fit on other data.

    The other fit computes its own answers, too, and gets the answers of the first instead.
    """

    def __init__(self) -> None:
        self._answers: list[Any] = []
        self._replayed: Iterator[Any] | None = None

    def replay(self) -> None:
        """Answer with what was recorded, from the first answer on."""
        self._replayed = iter(self._answers)

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method of sessions that records what it returns, or returns what was recorded."""

        def answered(*given: Any, **named: Any) -> Any:
            found = _read_through(method(*given, **named))
            if self._replayed is None:
                self._answers.append(copy.deepcopy(found))
                return found
            return copy.deepcopy(next(self._replayed))

        return answered


def _read_through(found: Any) -> Any:
    """Return an answer with lists in place of iterators, which read data later."""
    if isinstance(found, Iterator):
        return list(found)
    return type(found)(*map(_read_through, found)) if hasattr(found, "_fields") else found


def leaks(estimator: Estimator, data: Interactions) -> list[str]:
    """Return what a fit returns or reports that depends on the data in other ways than through releases."""
    promise = estimator.promise(data.facts)
    if not promise.is_private:
        return []
    transcript, found = Transcript(), []
    with pytest.MonkeyPatch.context() as patched:
        for name in ("_drawn", "perturb", "sampled", "names"):
            patched.setattr(Session, name, transcript.around(getattr(Session, name)))
        for one in (data, _protected_changes(data, promise)):
            found.append(_leaving(estimator, one))
            transcript.replay()
    return [name for name, value in found[0].items() if found[1].get(name) != value]


def _protected_changes(data: Interactions, promise: Guarantee) -> Interactions:
    """Return data with other users, or with other values if users and their items are not protected."""
    if promise.unit is Unit.USER and promise.trust is not Trust.LOCAL:
        data = data.select_users(np.arange(data.n_users // 3, data.n_users))
    return data.with_values(data.values[::-1].copy())


def _leaving(estimator: Estimator, data: Interactions) -> dict[str, str]:
    """Return all that leaves a fit: the label and the arrays of the model, its log, reports, and messages."""
    messages, steps = _Messages(), []
    logger.addHandler(messages)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        model = quiet(estimator, data, progress=lambda *step: steps.append(step))
    finally:
        logger.removeHandler(messages)
        logger.setLevel(level)
    label = label_of(model)
    label.pop("origin", None)
    arrays = {name: (one.dtype.str, one.shape, one.tobytes()) for name, one in model.scorer.arrays().items()}
    left = {**label, **arrays, "log": model.releases, "progress": steps, "messages": messages.texts}
    return {name: repr(value) for name, value in left.items()}


class _Messages(logging.Handler):
    """What is logged."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def runs_over_parties(estimator: Estimator) -> bool:
    """Return whether parties can train an estimator: it needs sums, Gaussian noise, and no facts of items."""
    about_items = any(estimator.settings.get(name) is not None for name in ("item_features", "prior"))
    return estimator.rows_needed() is None and estimator.delta > 0 and not about_items


def spends_exactly_at_a_party(estimator: Estimator, data: Interactions) -> str:
    """Return what is wrong with what a party spends if an estimator trains over parties, or nothing.

    The party has all of the data and adds a third of the noise. Its log states the noise that the fewest
    parties add together.
    """
    protocol = protocol_for(estimator, data.facts, SharedNoise(parties=3, missing=1))
    run, random = protocol.begin(data.n_items), PrivacyRandom.from_os()
    log: list[ReleaseEntry] = []
    try:
        while (question := run.question()) is not None:
            session = protocol.session(data, random, protocol.price(question))
            answer = protocol.answer(session, question)
            log += session.log
            sums = protocol.combine(answer.arrays, 1)
            run.answer(StepResult(kind=question.kind, arrays=sums, noise={}, parties=1))
        run.scorer()
    finally:
        run.close()
    return _compared(log, protocol.promise(data.facts))


def _compared(log: Sequence[ReleaseEntry], promise: Guarantee) -> str:
    found = recounted(log, promise.delta)
    if abs(found / promise.epsilon - 1) > _CLOSE:
        return f"the log costs epsilon={found:.9g}, but the guarantee states {promise.epsilon:.9g}"
    return ""
