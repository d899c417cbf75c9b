"""An answer computes each vector once, what items need is computed once, and no history is kept."""

import gc
import weakref
from collections import Counter

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.interactions import InteractionScorer
from discreet.models.storage import load
from discreet.models.user_factorization.estimator import UserFactorization


@pytest.fixture(scope="module")
def model():
    data = popularity_skewed(n_users=300, n_items=60, mean_per_user=20, name="prepared")
    return UserFactorization(epsilon=30.0, delta=1e-6).fit(data, random=PrivacyRandom.simulate(1))


def history(model):
    return [[item, 4.0] for item in model.catalog.ids[:12].tolist()]


def test_one_answer_folds_each_part_in_once(model, monkeypatch):
    folds = Counter()
    for kind in (RatingScorer, InteractionScorer):
        whole = kind._vectors
        monkeypatch.setattr(
            kind,
            "_vectors",
            lambda self, rows, kind=kind, whole=whole: folds.update([kind.__name__]) or whole(self, rows),
        )
    model.recommend(history(model), 5)
    assert folds and set(folds.values()) == {1}


def test_what_items_need_is_computed_once(model):
    assert model.scorer.stars is model.scorer.stars
    assert model.scorer.stars._lines() is model.scorer.stars._lines()


def test_answers_are_the_same_before_and_after_anything_is_prepared(model, tmp_path):
    model.save(tmp_path / "m")
    asked = history(model)
    first = load(tmp_path / "m").recommend(asked, 10)
    used = load(tmp_path / "m")
    for start in range(5):
        used.recommend(asked[start:], 10)
        used.recommend_all({"a": asked, "b": asked[:2]}, 3)
    again = used.recommend(asked, 10)
    assert [(one.item, one.score, one.expected_stars) for one in again] == [
        (one.item, one.score, one.expected_stars) for one in first
    ]


def test_vectors_of_other_rows_and_other_scorers_are_not_mixed_up(model):
    one, other = model._person(history(model)), model._person(history(model)[:3])
    rows = np.zeros(1, dtype=np.int64)
    expected = [model.scorer.stars.scores(person, rows) for person in (one, other)]
    for _ in range(2):
        for person, known in zip((one, other), expected, strict=True):
            model.scorer.choice.scores(person, rows)
            assert np.array_equal(model.scorer.stars.scores(person, rows), known)
    assert not np.array_equal(*expected)


def test_no_history_is_kept(model):
    person = model._person(history(model))
    model.worth(person, [0])
    gone = weakref.ref(person)
    del person
    gc.collect()
    assert gone() is None
