"""Scoring one model on one split, against a slow and plain computation of the same thing."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from discreet.data.interactions import Interactions
from discreet.evaluation import list_scores as module
from discreet.evaluation.list_scores import sample_negatives
from discreet.evaluation.scoring import PREFIX, baselines, measure
from discreet.testing import refuses


@dataclass
class Fixed:
    """Predict from a full matrix."""

    matrix: np.ndarray
    above: float | None = None

    def predict(self, histories, rows, items):
        return self.matrix[rows, items].astype(np.float64)

    def worth(self, histories, rows):
        return self.matrix[rows].astype(np.float32)


def ratings(n_users=40, n_items=30, density=0.4, seed=0):
    """Return all, train and test; some people have no held-out rating, one has no training rating."""
    generator = np.random.default_rng(seed)
    known = generator.random((n_users, n_items)) < density
    known[:, 0] = True
    rows, items = np.nonzero(known)
    values = generator.integers(1, 6, rows.size)
    data = Interactions.from_arrays(rows, items, values, low=1, high=5, step=1, n_items=n_items)
    held_out = generator.random(data.n_ratings) < 0.25
    held_out &= data.rows() % 5 != 0
    held_out |= data.rows() == 7
    return data, data.where(~held_out), data.where(held_out)


def slow(scores, train, test, k, *, negatives=None):
    """Return hr, recall, ndcg, precision, mrr of scores without ties, person by person."""
    met, held = train.to_scipy().toarray() > 0, test.to_scipy().toarray() > 0
    found = []
    for position, person in enumerate(np.flatnonzero(held.any(axis=1))):
        allowed = ~met[person]
        if negatives is not None:
            allowed = held[person].copy()
            allowed[negatives[position]] = True
        items = [item for item in np.argsort(-scores[person]) if allowed[item]]
        hits = [bool(held[person, item]) for item in items]
        gain = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits[:k]))
        ideal = sum(1 / math.log2(rank + 2) for rank in range(min(k, sum(hits))))
        found.append(
            (
                any(hits[:k]),
                sum(hits[:k]) / sum(hits),
                gain / ideal,
                sum(hits[:k]) / k,
                1 / (1 + hits.index(True)),
            )
        )
    return np.mean(found, axis=0)


def test_ratings_by_hand():
    data, train, test = ratings()
    model = Fixed(np.full((data.n_users, data.n_items), 3.5))
    truth = test.values.astype(np.float64)
    assert measure(model, train, test, "rmse,mae,are,accuracy") == pytest.approx(
        {
            "rmse": math.sqrt(np.mean((truth - 3.5) ** 2)),
            "mae": np.mean(np.abs(truth - 3.5)),
            "are": np.sum((truth - 3.5) ** 2) / np.sum(truth**2),
            "accuracy": np.mean(truth > 3),
        }
    )


def test_accuracy_takes_the_threshold_it_is_given():
    data, train, test = ratings()
    model = Fixed(np.full((data.n_users, data.n_items), 3.5))
    assert measure(model, train, test, "accuracy", above=4)["accuracy"] == pytest.approx(
        np.mean(test.values <= 4)
    )


def test_verdict_models_are_scored_by_sign_only():
    data, train, test = ratings()
    model = Fixed(np.full((data.n_users, data.n_items), 0.01), above=2.0)
    assert measure(model, train, test, "accuracy")["accuracy"] == pytest.approx(np.mean(test.values > 2))
    assert measure(model, train, test, "accuracy", above=2.0)["accuracy"] == pytest.approx(
        np.mean(test.values > 2)
    )
    for name in ("rmse", "mae", "are"):
        with refuses("metric-does-not-fit"):
            measure(model, train, test, name)
    with refuses("thresholds-differ", above=3, own=2.0):
        measure(model, train, test, "accuracy", above=3)


@pytest.mark.parametrize("block", [1 << 23, 60])
@pytest.mark.parametrize("k", [1, 5, 50])
def test_lists_over_the_whole_catalog(monkeypatch, block, k):
    monkeypatch.setattr(module, "_SCORES_PER_BLOCK", block)
    data, train, test = ratings()
    scores = (
        np.random.default_rng(1).permuted(np.arange(data.n_users * data.n_items)).reshape(data.n_users, -1)
    )
    found = measure(
        Fixed(scores), train, test, [f"hr@{k}", f"recall@{k}", f"ndcg@{k}", f"precision@{k}", "mrr"]
    )
    assert list(found.values()) == pytest.approx(slow(scores, train, test, k))


@pytest.mark.parametrize("block", [1 << 23, 60])
def test_lists_among_sampled_items(monkeypatch, block):
    monkeypatch.setattr(module, "_SCORES_PER_BLOCK", block)
    data, train, test = ratings()
    scores = (
        np.random.default_rng(2).permuted(np.arange(data.n_users * data.n_items)).reshape(data.n_users, -1)
    )
    people = np.flatnonzero(np.diff(test.indptr))
    drawn = sample_negatives(train, test, people, 6, seed=9, run=2)
    found = measure(
        Fixed(scores),
        train,
        test,
        ["hr@3:6", "recall@3:6", "ndcg@3:6", "precision@3:6", "mrr:6"],
        seed=9,
        run=2,
    )
    assert list(found.values()) == pytest.approx(slow(scores, train, test, 3, negatives=drawn))


def test_both_protocols_stand_side_by_side():
    data, train, test = ratings()
    found = measure(
        Fixed(np.random.default_rng(3).random((data.n_users, data.n_items))), train, test, "hr@3,hr@3:5"
    )
    assert list(found) == ["hr@3", "hr@3:5"]
    assert found["hr@3"] < found["hr@3:5"]


def test_coverage_is_the_part_of_the_catalog_that_is_ever_shown():
    data, train, test = ratings()
    rows = np.flatnonzero(np.diff(test.indptr))
    met = train.to_scipy().toarray() > 0
    scores = np.tile(np.arange(data.n_items, 0, -1.0), (data.n_users, 1))
    shown = {int(item) for row in rows for item in np.flatnonzero(~met[row])[:3]}
    assert measure(Fixed(scores), train, test, "coverage@3")["coverage@3"] == len(shown) / data.n_items


def test_only_liked_items_count_when_asked_for():
    data, train, test = ratings()
    scores = (
        np.random.default_rng(4).permuted(np.arange(data.n_users * data.n_items)).reshape(data.n_users, -1)
    )
    liked = test.where(test.values > 3)
    for names, above, kept in (("hr@4:liked,ndcg@4:liked", None, liked), ("hr@4:liked", 4, None)):
        kept = test.where(test.values > 4) if kept is None else kept
        found = measure(Fixed(scores), train, test, names, above=above)
        plain = measure(Fixed(scores), train, kept, names.replace(":liked", ""))
        assert list(found.values()) == pytest.approx(list(plain.values()))
    sampled = measure(Fixed(scores), train, test, "hr@4:6:liked,hr@4:6")
    assert sampled["hr@4:6:liked"] != sampled["hr@4:6"]


def test_what_cannot_be_liked_is_refused():
    data, train, test = ratings()
    model = Fixed(np.ones((data.n_users, data.n_items)))
    with refuses("nothing-held-out", metric="hr@4:liked"):
        measure(model, train, test, "hr@4:liked", above=5)
    choices = Interactions.from_arrays([1, 1, 2, 2], [0, 1, 0, 2], n_items=20)
    hidden = np.array([False, True, False, True])
    with refuses("metric-does-not-fit", metric="hr@4:liked", subject="implicit feedback"):
        measure(Fixed(np.ones((2, 20))), choices.where(~hidden), choices.where(hidden), "hr@4:liked")
    for name in ("rmse:liked", "coverage@5:liked", "novelty@5:9", "hr@5:few:liked", "novelty", "hr@5:9:9"):
        with refuses("unknown-metric"):
            measure(model, train, test, name)


def test_people_with_few_and_with_many_ratings_are_scored_separately():
    data, train, test = ratings()
    scores = (
        np.random.default_rng(5).permuted(np.arange(data.n_users * data.n_items)).reshape(data.n_users, -1)
    )
    model, lengths = Fixed(scores / scores.max() * 5), np.diff(train.indptr)
    people = np.flatnonzero(np.diff(test.indptr))
    low, high = np.quantile(lengths[people], [0.25, 0.75])
    for name, who in (("few", lengths <= low), ("many", lengths >= high)):
        part = test.where(who[test.rows()])
        for metric in ("hr@4", "rmse", "hr@4:liked", "coverage@2", "novelty@2"):
            found = measure(model, train, test, f"{metric}:{name}")
            (plain,) = measure(model, train, part, metric).values()
            assert found == {f"{metric}:{name}": pytest.approx(plain)}


def test_novelty_is_the_surprise_of_what_is_shown():
    data = Interactions.from_arrays([0, 0, 1, 1, 2, 2, 3], [0, 1, 0, 2, 0, 1, 4], n_items=5)
    hidden = np.array([False, True, False, True, False, False, False])
    train, test = data.where(~hidden), data.where(hidden)
    scores = np.tile(np.array([5.0, 4, 3, 2, 1]), (4, 1))
    # Both tested people have met item 0 and are shown 1 (one of four people) and 2 (nobody: as one).
    assert measure(Fixed(scores), train, test, "novelty@2")["novelty@2"] == pytest.approx(2.0)
    popular_first = measure(Fixed(scores[:, ::-1].copy()), train, test, "novelty@1")["novelty@1"]
    assert popular_first == pytest.approx(2.0)
    everything = measure(Fixed(scores), train.where(train.items > 0), test, "novelty@1")["novelty@1"]
    assert everything == pytest.approx(np.log2(2))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("metric", ["rmse", "hr@3", "hr@3:3"])
def test_broken_predictions_have_no_score(bad, metric):
    data, train, test = ratings()
    matrix = np.ones((data.n_users, data.n_items))
    matrix[test.rows()[0], test.items[0]] = bad
    with refuses("model-broken"):
        measure(Fixed(matrix), train, test, metric)


def test_the_model_keeps_its_own_numbers():
    data, train, test = ratings()
    matrix = np.random.default_rng(0).random((data.n_users, data.n_items)).astype(np.float32)
    matrix.flags.writeable = False
    measure(Fixed(matrix), train, test, "hr@3,mrr,coverage@5")


def test_splits_that_leak_or_hold_nothing_are_refused():
    data, train, test = ratings()
    model = Fixed(np.ones((data.n_users, data.n_items)))
    with refuses("nothing-held-out", metric="the metrics"):
        measure(model, train, test.where(np.zeros(test.n_ratings, dtype=bool)), "rmse")
    with refuses("split-overlaps", count=105):
        measure(model, data, test, "rmse")
    with refuses("split-mismatch"):
        measure(model, train.select_users(np.arange(5)), test, "rmse")
    nothing = train.where(np.zeros(train.n_ratings, dtype=bool))
    assert measure(model, nothing, test, "mae")["mae"] == pytest.approx(np.mean(test.values - 1))


def test_references_are_the_plain_means_and_counts():
    _, train, test = ratings()
    found = baselines(train, test, "rmse,hr@5")
    assert set(found) == {
        PREFIX + name for name in ("global mean", "user mean", "item mean", "popularity", "chance")
    }
    assert "NOT PRIVATE" in PREFIX
    truth, mean = test.values.astype(np.float64), train.values.mean(dtype=np.float64)
    assert found[PREFIX + "global mean"] == pytest.approx({"rmse": math.sqrt(np.mean((truth - mean) ** 2))})
    dense = train.to_scipy().toarray()
    counts = (dense > 0).sum(axis=1)
    means = np.where(counts > 0, dense.sum(axis=1, dtype=np.float64) / np.maximum(counts, 1), mean)
    assert counts[7] == 0
    assert found[PREFIX + "user mean"]["rmse"] == pytest.approx(
        math.sqrt(np.mean((truth - means[test.rows()]) ** 2))
    )
    assert 0 < found[PREFIX + "chance"]["hr@5"] < 1


def test_chance_is_the_depth_over_the_candidates():
    data = Interactions.from_arrays([1, 1, 2, 2], [0, 1, 0, 2], [1, 2, 3, 4], low=1, high=5, n_items=20)
    held_out = np.array([False, True, False, True])
    found = baselines(data.where(~held_out), data.where(held_out), "hr@5,ndcg@5,hr@5:9")
    assert found[PREFIX + "chance"]["hr@5"] == pytest.approx(5 / 19)
    assert found[PREFIX + "chance"]["hr@5:9"] == pytest.approx(5 / 10)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("ndcg", "ndcg@10"),
        ("ndgc@10", "ndcg@10"),
        ("mapp@10", "map@10"),
        ("map", "map@10"),
        ("RMS", "rmse"),
    ],
)
def test_a_metric_that_is_nearly_right_gets_a_suggestion(asked, meant):
    with refuses("unknown-metric"):
        measure(Fixed(np.zeros((1, 1))), *ratings()[1:], asked)
