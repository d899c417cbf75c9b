"""Ranking metrics: by hand, by enumerating every order of ties, and against an independent library."""

import importlib.util
import itertools
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from discreet.evaluation import ranking_metrics as ranking
from discreet.evaluation.ranking_metrics import Ranks

PER_PERSON = {
    "hit_rate": ranking.hit_rate,
    "mrr": ranking.reciprocal_rank,
    "recall": ranking.recall,
    "precision": ranking.precision,
    "ndcg": ranking.ndcg,
    "average precision": ranking.average_precision,
}
# The library divides average precision by all relevant items, also if they do not fit into the list.
IN_RANX = PER_PERSON.keys() - {"average precision"}


def ranks_of(scores, relevant, depth=None):
    """Return the ranks of the relevant items of each row of scores."""
    scores = np.asarray(scores, dtype=np.float32)
    rows, items = np.nonzero(relevant)
    better, tied = ranking.rank_counts(scores, rows, scores[rows, items], depth)
    sizes = np.count_nonzero(relevant, axis=1)
    return Ranks(starts=np.cumsum(sizes) - sizes, better=better, tied=tied)


def in_order(relevance, k):
    """Return the metrics of one list without ties, by their definitions."""
    top = relevance[:k]
    first = next((rank for rank, hit in enumerate(top, 1) if hit), None)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, sum(relevance)) + 1))
    return {
        "hit_rate": float(any(top)),
        "mrr": 1 / first if first else 0.0,
        "recall": sum(top) / sum(relevance),
        "precision": sum(top) / k,
        "ndcg": sum(hit / math.log2(rank + 1) for rank, hit in enumerate(top, 1)) / ideal,
        "average precision": sum(hit * sum(top[:rank]) / rank for rank, hit in enumerate(top, 1))
        / min(k, sum(relevance)),
    }


def test_by_hand():
    ranks = ranks_of([[9, 8, 7, 6, 5]], [[False, True, False, False, True]])
    assert ranks.better.tolist() == [1, 4]
    assert ranks.tied.tolist() == [1, 1]
    assert ranking.hit_rate(ranks, 1).tolist() == [0.0]
    assert ranking.hit_rate(ranks, 2).tolist() == [1.0]
    assert ranking.reciprocal_rank(ranks).tolist() == [0.5]
    assert ranking.recall(ranks, 3).tolist() == [0.5]
    assert ranking.capped_recall(ranks, 1).tolist() == [0.0]
    assert ranking.capped_recall(ranks, 2).tolist() == [0.5]
    assert ranking.precision(ranks, 4).tolist() == [0.25]
    assert ranking.ndcg(ranks, 5)[0] == pytest.approx(
        (1 / math.log2(3) + 1 / math.log2(6)) / (1 + 1 / math.log2(3)),
    )


def test_capped_recall_is_one_when_the_list_is_full_of_hits():
    ranks = ranks_of([[4, 3, 2, 1]], [[True, True, True, False]])
    assert ranking.capped_recall(ranks, 2).tolist() == [1.0]
    assert ranking.recall(ranks, 2)[0] == pytest.approx(2 / 3)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "scores", [[3, 3, 3, 3, 3, 3], [5, 3, 3, 3, 1, 1], [2, 2, 1, 1, 1, 0], [6, 5, 4, 3, 2, 1]]
)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
def test_ties_are_the_mean_over_every_order(scores, k):
    orders = [
        order
        for order in itertools.permutations(range(6))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    for n_relevant in (1, 2, 3):
        for chosen in itertools.combinations(range(6), n_relevant):
            relevant = np.isin(np.arange(6), chosen)
            values = [in_order([bool(relevant[item]) for item in order], k) for order in orders]
            ranks = ranks_of([scores], relevant[None])
            for name, metric in PER_PERSON.items():
                expected = np.mean([value[name] for value in values])
                assert metric(ranks, k)[0] == pytest.approx(expected, abs=1e-12), (name, chosen)


def test_a_constant_scorer_is_no_better_than_chance():
    n_items, k = 200, 10
    ranks = ranks_of(np.zeros((3, n_items)), np.eye(3, n_items, dtype=bool))
    assert ranking.hit_rate(ranks, k) == pytest.approx(np.full(3, k / n_items))
    assert ranking.recall(ranks, k) == pytest.approx(np.full(3, k / n_items))
    harmonic = sum(1 / rank for rank in range(1, n_items + 1)) / n_items
    assert ranking.reciprocal_rank(ranks) == pytest.approx(np.full(3, harmonic))


def test_ties_are_resolved_in_chunks_alike(monkeypatch):
    generator = np.random.default_rng(3)
    scores = generator.integers(0, 4, size=(50, 40))
    relevant = generator.random((50, 40)) < 0.1
    relevant[:, 0] = True
    whole = ranking.reciprocal_rank(ranks_of(scores, relevant))
    monkeypatch.setattr(ranking, "_CHUNK", 1)
    assert ranking.reciprocal_rank(ranks_of(scores, relevant)) == pytest.approx(whole)


@pytest.mark.parametrize("kinds", [3, 1000])
def test_ranks_beyond_the_depth_change_nothing(kinds):
    generator = np.random.default_rng(5)
    scores = generator.integers(0, kinds, size=(40, 50)).astype(np.float32)
    scores[generator.random(scores.shape) < 0.3] = -np.inf
    relevant = (generator.random(scores.shape) < 0.2) & (scores > -np.inf)
    relevant[np.arange(40), scores.argmax(axis=1)] = True
    whole = ranks_of(scores.copy(), relevant)
    for depth in (1, 2, 7, 30, 49, 50, 60):
        cut = ranks_of(scores.copy(), relevant, depth)
        for name, metric in PER_PERSON.items():
            for k in {1, min(depth, 5), depth}:
                assert metric(cut, k) == pytest.approx(metric(whole, k)), (name, k)


def test_ranks_count_what_is_above_and_level():
    generator = np.random.default_rng(1)
    scores = generator.integers(-3, 3, size=(20, 33)).astype(np.float32)
    scores[generator.random(scores.shape) < 0.3] = -np.inf
    rows = generator.integers(0, 20, size=500)
    targets = generator.integers(-4, 4, size=500).astype(np.float32)
    better, tied = ranking.rank_counts(scores.copy(), rows, targets)
    assert better.tolist() == (scores[rows] > targets[:, None]).sum(axis=1).tolist()
    assert tied.tolist() == (scores[rows] == targets[:, None]).sum(axis=1).tolist()


# ranx compiles for a minute on first use; interpreted, in a process of its own, it takes seconds.
ASK_RANX = """
import json, sys, warnings
warnings.simplefilter("ignore")
import ranx
asked = json.load(sys.stdin)
truth, run = ranx.Qrels(asked["truth"]), ranx.Run(asked["run"])
scores = ranx.evaluate(truth, run, asked["metrics"], make_comparable=True)
json.dump({name: float(score) for name, score in scores.items()}, sys.stdout)
"""


@pytest.mark.slow
def test_agrees_with_ranx():
    if importlib.util.find_spec("ranx") is None:
        pytest.skip("ranx is not installed")
    generator = np.random.default_rng(4)
    n_people, n_items = 60, 40
    # Distinct scores: libraries need not agree on ties.
    scores = np.argsort(generator.random((n_people, n_items)), axis=1)
    relevant = generator.random((n_people, n_items)) < 0.15
    relevant[np.arange(n_people), generator.integers(0, n_items, n_people)] = True
    asked = {
        "truth": {str(u): {str(i): 1 for i in np.flatnonzero(relevant[u])} for u in range(n_people)},
        "run": {str(u): {str(i): float(scores[u, i]) for i in range(n_items)} for u in range(n_people)},
        "metrics": [f"{name}@{k}" for name in IN_RANX for k in (1, 5, 10, 30)],
    }
    answer = subprocess.run(
        [sys.executable, "-c", ASK_RANX],
        input=json.dumps(asked),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(answer.stdout)
    ranks = ranks_of(scores, relevant)
    ours = {f"{name}@{k}": PER_PERSON[name](ranks, k).mean() for name in IN_RANX for k in (1, 5, 10, 30)}
    assert len(ours) == 20
    assert ours == pytest.approx(theirs)


def test_shown_items_are_the_top_of_each_row():
    generator = np.random.default_rng(2)
    scores = generator.integers(0, 6, size=(8, 30)).astype(np.float32)
    scores[generator.random(scores.shape) < 0.4] = -np.inf
    scores[3] = -np.inf
    expected = np.zeros(30, dtype=int)
    for row in scores:
        order = np.argsort(-row, kind="stable")[:4]
        expected[order[row[order] > -np.inf]] += 1
    assert ranking.shown(scores, 4).tolist() == expected.tolist()


def test_gini_by_hand():
    assert ranking.gini(np.array([2, 2, 2, 2]), None) == 0.0
    assert ranking.gini(np.array([0, 0, 0, 8]), None) == pytest.approx(0.75)
    assert ranking.gini(np.array([3, 1]), None) == pytest.approx(0.25)
    assert ranking.gini(np.zeros(4, dtype=int), None) == 0.0


def test_a_constant_scorer_shows_the_same_few_items_to_everybody():
    assert ranking.shown(np.zeros((50, 20), dtype=np.float32), 5).tolist() == [50] * 5 + [0] * 15
    assert ranking.shown(np.zeros((2, 3), dtype=np.float32), 10).all()
