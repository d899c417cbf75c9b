"""Repeated evaluation: what repeats, what is fresh, what is refused before anything is spent."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import discreet
from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets import catalog
from discreet.data.interactions import Interactions
from discreet.data.splits import Split, leave_one_out, random_split
from discreet.evaluation import Evaluation, Score, baselines, evaluate
from discreet.evaluation.scoring import PREFIX
from discreet.models.estimator import Estimator
from discreet.models.scorers.scorer import Constant, Scorer, Stored, StoredNumber, StoredNumbers
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.ledger.ledger import Ledger
from discreet.report.guarantee_wording import SCORES_NOT_COVERED
from discreet.testing import refuses


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyItemMeansScorer(Scorer):
    kind: ClassVar[str] = "test-noisy-item-means"
    stored: ClassVar[Mapping[str, Stored]] = {"means": StoredNumbers(source="a test", shape=("items",))}
    constants: ClassVar[Mapping[str, Constant]] = {"above": StoredNumber(optional=True)}
    means: np.ndarray
    above: float | None = None

    def fold_in(self, histories):
        return np.zeros((histories.n_users, 0))

    def predict(self, histories, rows, items):
        return self.means[items]

    def scores(self, histories, rows):
        return np.tile(self.means.astype(np.float32), (len(rows), 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyItemMeans(Estimator):
    """Means plus one byte of noise an item: enough to see whose noise it was."""

    name: ClassVar[str] = "test-noisy-item-means"
    epsilon: float = 1.0
    delta: float = 0.0
    layers: tuple[int, ...] = (2, 1)

    def promise(self, facts):
        return Guarantee(
            epsilon=self.epsilon,
            unit=Unit.USER,
            neighbors=Neighbors.ADD_OR_REMOVE,
            trust=Trust.CENTRAL,
            basis=Basis.NONE if math.isinf(self.epsilon) else Basis.PROVED,
        )

    def _train(self, session, progress):
        data, random = session._source, session._random
        progress("means", 1, 1)
        sums = np.bincount(data.items, weights=data.values, minlength=data.n_items)
        counts = np.bincount(data.items, minlength=data.n_items)
        noise = 0 if math.isinf(self.epsilon) else random.bytes(data.n_items) / 256
        return NoisyItemMeansScorer(means=sums / np.maximum(counts, 1) + noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts(NoisyItemMeans):
    name: ClassVar[str] = "test-verdicts"
    feedback: ClassVar[str] = "binary"

    def _train(self, session, progress):
        return NoisyItemMeansScorer(means=np.ones(session.n_items), above=4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices(NoisyItemMeans):
    name: ClassVar[str] = "test-choices"
    feedback: ClassVar[str] = "implicit"


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    rows, items = np.nonzero(generator.random((60, 40)) < 0.5)
    values = np.clip(np.rint(1 + items / 10 + generator.normal(size=rows.size)), 1, 5)
    return Interactions.from_arrays(rows, items, values, rows + items, low=1, high=5, step=1, n_items=40)


def test_an_evaluation_with_a_seed_repeats_to_the_last_bit(data):
    def found(seed):
        return evaluate(NoisyItemMeans(), data, metrics="rmse,hr@5,hr@5:9", repeat=3, seed=seed).metrics

    assert found(0) == found(0)
    assert found(0) != found(1)


def test_seed_none_draws_real_noise_on_the_splits_of_seed_0(data):
    private, quiet = NoisyItemMeans(), NoisyItemMeans(epsilon=math.inf)
    assert evaluate(quiet, data, seed=None).metrics == evaluate(quiet, data, seed=0).metrics
    first, second = evaluate(private, data, seed=None), evaluate(private, data, seed=None)
    assert first.metrics != second.metrics
    assert first.guarantee.is_private
    assert evaluate(private, data).guarantee.simulated


def test_a_source_of_noise_may_be_given(data):
    simulated = [
        evaluate(NoisyItemMeans(), data, seed=None, random=PrivacyRandom.simulate(3)) for _ in range(2)
    ]
    assert simulated[0].metrics == simulated[1].metrics
    assert simulated[0].guarantee.simulated
    assert not evaluate(NoisyItemMeans(), data, seed=0, random=PrivacyRandom.from_os()).guarantee.simulated


def test_every_repetition_is_fresh(data):
    values = evaluate(NoisyItemMeans(epsilon=math.inf), data, repeat=4).metrics["rmse"].values
    assert len(set(values)) == 4
    fixed = random_split(data, 0.2, seed=0)
    assert len(set(evaluate(NoisyItemMeans(), data, split=fixed, repeat=4).metrics["rmse"].values)) == 4
    quiet = evaluate(NoisyItemMeans(epsilon=math.inf), data, split=fixed, repeat=4).metrics["rmse"]
    assert len(set(quiet.values)) == 1
    assert quiet.std == 0


def test_folds_are_all_run_and_repeated(data):
    assert len(evaluate(NoisyItemMeans(), data, split="kfold:4", repeat=2).metrics["rmse"].values) == 8


def test_leave_one_out_has_one_choice_a_person(data):
    names = "hr@2,recall@2,hr@2:9,recall@2:9"
    found = evaluate(NoisyItemMeans(), data, split="leave-one-out", metrics=names).metrics
    assert found["hr@2"] == found["recall@2"]
    assert found["hr@2:9"] == found["recall@2:9"]
    assert found["hr@2"].mean < found["hr@2:9"].mean


def test_given_files_are_read(data, tmp_path):
    train, test = Path(tmp_path, "a.csv"), Path(tmp_path, "b.csv")
    train.write_text("user,item,rating\n1,1,5\n1,2,1\n2,1,4\n3,2,2\n")
    test.write_text("user,item,rating\n2,2,1\n3,1,5\n")
    whole = Interactions.from_arrays(
        [1, 1, 2, 3, 2, 3], [1, 2, 1, 2, 2, 1], [5, 1, 4, 2, 1, 5], low=1, high=5
    )
    found = evaluate(NoisyItemMeans(epsilon=math.inf), whole, split="given:a.csv,b.csv", folder=tmp_path)
    assert found.metrics["rmse"].mean == pytest.approx(0.5)


def test_every_run_is_paid_for(data):
    ledger = Ledger.in_memory()
    evaluate(NoisyItemMeans(), data, repeat=3, seed=None, ledger=ledger)
    assert ledger.spent(data.name).epsilon == pytest.approx(3)


@pytest.mark.parametrize(
    ("estimator", "metrics", "code", "metric"),
    [
        (Choices(), "hr@5,rmse", "metric-does-not-fit", "rmse"),
        (Choices(), "accuracy", "metric-does-not-fit", "accuracy"),
        (Verdicts(), "accuracy,rmse", "metric-does-not-fit", "rmse"),
        (Verdicts(), "are", "metric-does-not-fit", "are"),
        (NoisyItemMeans(), "auc", "unknown-metric", "auc"),
    ],
)
def test_meaningless_metrics_are_refused_before_anything_is_spent(data, estimator, metrics, code, metric):
    ledger = Ledger.in_memory()
    with refuses(code, metric=metric):
        evaluate(estimator, data, metrics=metrics, ledger=ledger)
    assert ledger.spent(data.name).epsilon == 0


@pytest.mark.parametrize("wrong", [{"split": "half"}, {"repeat": 0}, {"seed": -1}])
def test_other_bad_arguments_spend_nothing(data, wrong):
    ledger = Ledger.in_memory()
    with pytest.raises(ParameterError):
        evaluate(NoisyItemMeans(), data, ledger=ledger, **wrong)
    assert ledger.spent(data.name).epsilon == 0


def test_a_split_that_leaks_spends_nothing(data):
    ledger = Ledger.in_memory()
    leaky = Split(train=data, test=random_split(data, 0.5, 0).test)
    with refuses("split-overlaps", count=612):
        evaluate(NoisyItemMeans(), data, ledger=ledger, split=leaky)
    assert ledger.spent(data.name).epsilon == 0


def test_verdicts_are_scored_against_the_models_own_threshold(data):
    fixed = random_split(data, 0.3, seed=1)
    found = evaluate(Verdicts(), data, split=fixed, metrics="accuracy,hr@5", references=True)
    assert found.metrics["accuracy"].mean == pytest.approx(np.mean(fixed.test.values > 4))
    mean = fixed.train.values.mean(dtype=np.float64)
    assert mean < 4
    beside = found.references[PREFIX + "global mean"]["accuracy"].mean
    assert beside == pytest.approx(np.mean(fixed.test.values <= 4))


def test_progress_reaches_the_fit(data):
    seen = []
    evaluate(NoisyItemMeans(), data, repeat=2, progress=lambda *step: seen.append(step))
    assert seen == [("means", 1, 1), ("scoring", 0, 0)] * 2


def test_what_comes_out_is_json(data):
    found = evaluate(NoisyItemMeans(epsilon=math.inf), data, metrics="rmse,hr@5", repeat=2, references=True)
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    expected = ["model", "parameters", "data", "guarantee", "metrics", "seconds", "peak_mb", "references"]
    assert list(record) == expected
    assert record["model"] == "test-noisy-item-means"
    assert record["parameters"] == {"epsilon": "inf", "delta": 0.0, "layers": [2, 1]}
    assert record["data"] == {"users": 60, "items": 40, "ratings": data.n_ratings}
    assert SCORES_NOT_COVERED in record["guarantee"]["notes"]
    rmse = record["metrics"]["rmse"]
    assert rmse["runs"] == 2 == len(rmse["values"])
    assert rmse["mean"] == pytest.approx(np.mean(rmse["values"]))
    assert rmse["std"] == pytest.approx(np.std(rmse["values"], ddof=1))
    assert record["seconds"]["fit"] > 0 < record["seconds"]["predict"]
    assert record["peak_mb"] > 1
    assert all("NOT PRIVATE" in name for name in record["references"])
    assert record["references"][PREFIX + "user mean"]["rmse"]["runs"] == 2
    assert "references" not in evaluate(NoisyItemMeans(), data).to_json()
    assert isinstance(found, Evaluation)


def test_one_run_has_no_spread():
    assert Score((0.5,)).to_json() == {"mean": 0.5, "std": 0.0, "runs": 1, "values": [0.5]}


@pytest.mark.skipif("DISCREET_DATA" not in os.environ, reason="needs the real data in DISCREET_DATA")
def test_popularity_without_noise_hits_what_is_known_of_movielens_100k():
    split = leave_one_out(catalog.load("movielens-100k"))
    found = baselines(split.train, split.test, "hr@10:99,hr@10")
    assert found[PREFIX + "popularity"]["hr@10:99"] == pytest.approx(0.41, abs=0.02)
    assert found[PREFIX + "chance"]["hr@10:99"] == pytest.approx(0.1)
    assert found[PREFIX + "popularity"]["hr@10"] < 0.1


def test_only_estimators_are_fitted_and_scored():
    data = catalog.load("discreet-demo")
    fitted = discreet.Popularity(epsilon=1.0).fit(data)
    with refuses("not-an-estimator", function="evaluate", found="a FittedModel"):
        evaluate(fitted, data)
    with refuses("not-an-estimator", function="compare"):
        discreet.compare([discreet.Popularity(epsilon=1.0), fitted], data)
