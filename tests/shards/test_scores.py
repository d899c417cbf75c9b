"""Scores from shards and from a cluster are those of one process, to the last bit where they are released."""

import dataclasses

import numpy as np
import pytest

import discreet
from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.data.splits import Split, parse_split
from discreet.evaluation.distributed_scores import hidings
from discreet.evaluation.private import OneEach, evaluate_privately, fit_and_evaluate, hide_one_each
from discreet.sources.cluster import connected, on_cluster
from discreet.sources.shards import open_shards
from discreet.statistics.data_source import KnownPart
from discreet.testing import refuses


def released(source):
    estimators = [discreet.Biases(epsilon=4.0), discreet.UserFactorization(epsilon=4.0)]
    found = fit_and_evaluate(
        estimators, source, metrics=["hr@5"], share=0.2, random=PrivacyRandom.simulate(3)
    )
    numbers = [(one.value, one.people) for scores in found.scores.values() for one in scores]
    return numbers, [model.scorer.arrays() for model in found.models]


def assert_same(one, other):
    assert one[0] == other[0]
    for ours, theirs in zip(one[1], other[1], strict=True):
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@pytest.mark.thorough
def test_models_and_scores_are_the_same_from_shards(user_data, shard_folders):
    memory = released(user_data)
    assert_same(released(open_shards(shard_folders[8])), memory)
    assert released(user_data.select_users(np.arange(800)))[0] != memory[0]


def test_a_public_model_is_scored_from_shards(user_data, shard_folders):
    model = discreet.Popularity(epsilon=4.0).fit(user_data, random=PrivacyRandom.simulate(1))
    scores = [
        evaluate_privately(model, source, epsilon=1.0, metric="ndcg@5", random=PrivacyRandom.simulate(2))
        for source in (user_data, open_shards(shard_folders[3]))
    ]
    assert dataclasses.replace(scores[0], guarantee=scores[1].guarantee) == scores[1]


def test_what_is_hidden_is_not_summed(user_data):
    """A model of the known part is that of data without the hidden ratings; with them it is another."""
    known, all_of_it = hide_one_each(user_data.bounded()).train, user_data.bounded()
    part = KnownPart(source=all_of_it, hiding=OneEach())
    one, two, three = (
        discreet.Biases(epsilon=4.0).fit(source, random=PrivacyRandom.simulate(1)).scorer.arrays()
        for source in (part, known, all_of_it)
    )
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert any(not np.array_equal(one[name], three[name]) for name in one)


METRICS = ["rmse", "mae", "accuracy", "hr@5", "ndcg@5:liked", "recall@3", "precision@3", "mrr"]


@pytest.mark.few(1)
@pytest.mark.parametrize("split", ["leave-one-out", "random:0.3"])
def test_scores_from_shards_are_those_of_an_evaluation_in_memory(user_data, shard_folders, split):
    """Hidden by the same rule, every metric says the same; that of other shards is equal bit by bit."""
    rule = next(hidings(parse_split(split), experiment_seed()))
    data = user_data.bounded()
    parts = Split.by_mask(data, rule.hidden(data))
    found = [
        discreet.evaluate(discreet.Biases(epsilon=4.0), source, split=shown, metrics=METRICS)
        for source, shown in (
            (data, parts),
            (open_shards(shard_folders[1]), split),
            (open_shards(shard_folders[8]), split),
        )
    ]
    memory, one, eight = ({name: score.mean for name, score in result.metrics.items()} for result in found)
    assert one == eight
    assert one == pytest.approx(memory, rel=1e-5)
    assert found[1].data["users"] == found[0].data["users"]


def experiment_seed():
    return int(experiment_generator(0, "repetition", 0).integers(2**62))


def test_folds_hide_everything_once(user_data):
    rules = list(hidings(parse_split("kfold:4"), 7))
    hidden = np.array([rule.hidden(user_data) for rule in rules])
    assert (hidden.sum(axis=0) == 1).all() and hidden.mean(axis=1) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(
    ("split", "metric", "code"),
    [
        ("time:0.1", "rmse", "split-needs-memory"),
        ("random:0.1", "hr@10:9", "metric-does-not-fit"),
        ("random:0.1", "coverage@5", "metric-does-not-fit"),
    ],
)
def test_what_needs_everybody_at_once_is_a_sentence(shard_folders, split, metric, code):
    with refuses(code):
        discreet.evaluate(
            discreet.Biases(epsilon=4.0), open_shards(shard_folders[3]), split=split, metrics=metric
        )


@pytest.mark.slow
def test_models_and_scores_are_the_same_on_a_cluster(user_data, shard_folders):
    pytest.importorskip("distributed", reason="needs the extra `distributed`")
    with connected("dask://local", workers=2) as client:
        assert_same(released(on_cluster(open_shards(shard_folders[3]), client)), released(user_data))
