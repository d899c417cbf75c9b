"""Neighbors stand out of the noise, which is read off the release itself; what noise made is not named."""

import dataclasses
import math
import pickle

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.models.answers import Listing, SimilarItem, SimilarItems, nothing_similar
from discreet.models.baselines.item_item import Ease, ItemKnn
from discreet.models.scorers.similarity import Directions, KnownVectors, NearestItems, false_discoveries
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.papers.dpimf.neighbors import ItemNeighbors
from discreet.testing import refuses
from toy import toy_interactions

N, D = 600, 8


def release(noise, seed=0):
    """Return true vectors of thirty groups, and the same with noise over the counts, shrunk as in a fit."""
    rng = np.random.default_rng(seed)
    groups = np.arange(N) % 30
    centers = rng.standard_normal((30, D))
    centers *= math.sqrt(D) / np.linalg.norm(centers, axis=1, keepdims=True)
    true = centers[groups] + 0.2 * rng.standard_normal((N, D))
    popularity = 400.0 / np.arange(1, N + 1) ** 0.8
    order = rng.permutation(N)
    variance = (noise / popularity[order]) ** 2
    told = true + rng.standard_normal((N, D)) * np.sqrt(variance)[:, None]
    return groups, true, told / (1 + variance)[:, None], popularity[order]


def noise_of(spread):
    """Return the noise of a release whose vectors are half known at this popularity."""
    return spread / (3 * math.sqrt(D))


def named(found, item, least=None, k=10):
    """Return up to `k` neighbors in which the release has this confidence, or as much as it asks for."""
    sure = found.confidence >= (found.least if least is None else least)
    similarity = np.where(sure, found.similarity, -np.inf)
    similarity[item] = -np.inf
    best = np.argsort(-similarity)[:k]
    return best[np.isfinite(similarity[best])]


def test_named_neighbors_are_as_real_as_is_said_and_ten_of_them_would_not_be():
    _, true, vectors, popularity = release(noise=7.0)
    known = KnownVectors.of(vectors, popularity, noise=noise_of(7.0))
    nearest = np.argsort(-(true @ true.T), axis=1)[:, : N // 10]
    right, told, twin = [], [], []
    for item in range(N):
        found = known.neighbors(item, 10)
        chosen = named(found, item)
        told += found.confidence[chosen].tolist()
        right += np.isin(chosen, nearest[item]).tolist()
        # The twin names ten, whatever they are.
        twin += np.isin(named(found, item, least=-1.0), nearest[item]).tolist()
    assert 50 < len(right) < 5 * N and np.mean(right) > np.mean(told) - 0.05
    assert np.mean(twin) < 0.5 < 0.7 < np.mean(right)


@pytest.mark.thorough
def test_two_releases_share_more_of_what_is_named():
    """One truth, noised twice: the twin that names ten of every item shares less of them."""
    rng, (_, true, _, popularity) = np.random.default_rng(9), release(0.0)
    variance = ((10.0 / popularity) ** 2)[:, None]
    fits = [(true + rng.standard_normal((N, D)) * np.sqrt(variance)) / (1 + variance) for _ in range(2)]
    known = [KnownVectors.of(vectors, popularity, noise=noise_of(10.0)) for vectors in fits]
    shared = {}
    for least in (None, -1.0):
        both = [
            [set(named(fit.neighbors(item, 10), item, least).tolist()) for fit in known] for item in range(N)
        ]
        met = sum(len(first & second) for first, second in both)
        shared[least] = 2 * met / sum(len(first) + len(second) for first, second in both)
    assert shared[None] > 1.5 * shared[-1.0]


def test_large_catalogs_of_noise_name_nobody():
    """Counts and directions of noise alone: the largest counts aren't users. The twin has as many users."""
    rng = np.random.default_rng(4)
    items, named_ones = 9000, []
    popularity = np.maximum(np.abs(1.7 * rng.standard_normal(items)), 0.05)
    vectors = rng.standard_normal((items, 4)) * np.sqrt(0.2 + popularity / 20)[:, None]
    top = np.argsort(-popularity)[:40]
    for more in (0.0, 100.0):
        known = KnownVectors.of(vectors, popularity + more, noise=1.0)
        named_ones.append(sum(named(known.neighbors(item, 10), item).size for item in top))
    assert named_ones[0] == 0 and named_ones[1] > 300


def test_little_noise_leaves_ten_neighbors_of_every_item():
    groups, _, vectors, popularity = release(noise=0.01)
    known = KnownVectors.of(vectors, popularity, noise=noise_of(0.01))
    for item in range(0, N, 25):
        chosen = named(known.neighbors(item, 10), item)
        assert chosen.size == 10 and (groups[chosen] == groups[item]).all()


def test_random_directions_are_nobodys_neighbors():
    """Vectors that nothing shortens: pure noise names nearly nobody, groups are found all the same."""
    rng = np.random.default_rng(3)
    noise = Directions.of(rng.standard_normal((N, 10)), noised=True)
    assert np.mean([named(noise.neighbors(item, 10), item).size for item in range(N)]) < 0.3
    groups, true, _, _ = release(0.0)
    clear = Directions.of(true, noised=True)
    right = [groups[named(clear.neighbors(item, 10), item)] == groups[item] for item in range(N)]
    assert np.mean([one.size for one in right]) > 5 and np.concatenate(right).mean() > 0.95
    assert Directions.of(true, noised=False).neighbors(0, 10).confidence is None


def test_false_discoveries_are_those_of_the_book():
    chance = np.array([0.01, 0.04, 0.03, 0.005, 0.5])
    np.testing.assert_allclose(false_discoveries(chance), [0.025, 0.05, 0.05, 0.025, 0.5])


@pytest.mark.parametrize("estimator", [Ease(), ItemKnn()])
def test_baselines_of_lists_name_what_goes_together(estimator):
    data = toy_interactions(n_users=300, seed=8)
    model = estimator.fit(data)
    items = data.catalog.ids.tolist()
    found = model.similar_items(items, 5)
    assert list(found) == items and any(found.values())
    assert all(one.above_noise is None and one[1] > 0 for near in found.values() for one in near)
    assert all(item not in dict(near) for item, near in found.items())
    unweighed = dataclasses.replace(
        model.scorer, items=model.scorer.items[:-1], weights=model.scorer.weights[:-1, :-1].copy()
    )
    silent = data.catalog.id_at([int(model.scorer.items[-1])]).tolist()[0]
    assert dataclasses.replace(model, scorer=unweighed).similar_items(silent) == []


def test_flipped_bits_name_nobody_where_they_lie_most_of_the_time():
    data = toy_interactions(n_users=300, seed=8)
    sizes = {}
    for epsilon in (0.1, 30.0, math.inf):
        model = ItemNeighbors(epsilon=epsilon, neighbors=15).fit(data, random=PrivacyRandom.simulate(0))
        found = model.similar_items(data.catalog.ids.tolist(), 5)
        sizes[epsilon] = np.mean([len(near) for near in found.values()])
    assert sizes[0.1] < 0.5 and sizes[math.inf] == 5


def test_a_batch_refuses_what_is_unknown():
    data = toy_interactions(n_users=60, seed=8)
    model = Ease().fit(data)
    with refuses("unknown-item", item="a secret", near=(), example="item 00", of=40):
        model.similar_items([data.catalog.ids.tolist()[0], "a secret"])
    assert model.similar_items([]) == {}
    assert isinstance(model.scorer.similarities(noise=0.0)(0, 3), NearestItems)


@pytest.mark.parametrize("kept", [1, 2])
def test_nothing_is_named_in_one_or_two_directions(kept):
    """The rest of what sets items apart is hidden then. The twin names neighbors in all directions."""
    _, _, vectors, popularity = release(1.0)
    few, all_ = (
        KnownVectors.of(some, popularity, noise=noise_of(1.0)) for some in (vectors[:, :kept], vectors)
    )
    assert not any(named(few.neighbors(item, 10), item).size for item in range(50))
    assert any(named(all_.neighbors(item, 10), item).size for item in range(50))
    # Without noise nothing is hidden.
    assert KnownVectors.of(vectors[:, :kept], popularity, noise=0.0).neighbors(0, 10).confidence is None


def test_lists_of_neighbors_say_why_they_are_empty_and_are_one_table():
    model = Ease().fit(toy_interactions(seed=3))
    first, second, third = model.catalog.ids.tolist()[:3]
    found = model.similar_items([first, second], 3)
    frame = found.to_frame()
    assert frame.columns == ["similar_to", "rank", "item", "similarity"]
    assert frame["item"].to_list() == [one.item for near in found.values() for one in near]
    assert frame["rank"].to_list() == [1, 2, 3, 1, 2, 3]
    assert found._repr_html_().count("<tr>") == 7 and str(first) in found._repr_html_()
    empty = Listing[SimilarItem](why_empty=nothing_similar(third))
    assert empty.why_empty in repr(empty) and empty.why_empty in empty._repr_html_()
    assert empty.to_frame().columns == ["rank", "item", "similarity"] and empty == []
    with_empty = SimilarItems({**found, third: empty})
    assert f"similar to {third}" in with_empty._repr_html_() and with_empty.to_frame().equals(frame)
    assert repr(Listing()) == "[]" and pickle.loads(pickle.dumps(empty)).why_empty == empty.why_empty


def test_a_noisy_model_says_why_it_names_nothing():
    model = UserFactorization(epsilon=32.0).fit(toy_interactions(seed=3), random=PrivacyRandom.simulate(3))
    item = model.catalog.ids.tolist()[0]
    found = model.similar_items(item)
    assert found == [] and found.why_empty == nothing_similar(item)
    assert model.similar_items([item])[item].why_empty == found.why_empty


def test_vectors_of_which_little_is_known_are_not_named():
    """The twin has the same vectors, and all of each is known."""
    _, _, vectors, popularity = release(noise=10.0)
    known = KnownVectors.of(vectors, popularity, noise=noise_of(10.0))
    wholly = known._replace(known=np.full(N, 0.999))
    for item in np.flatnonzero(known.known < 0.8)[:20].tolist():
        assert named(known.neighbors(item, 10), item).size == 0
        assert named(wholly.neighbors(item, 10), item).size
    named_ones = [named(known.neighbors(item, 10), item) for item in range(N)]
    assert all((known.known[near] * known.known[item] > 0.77).all() for item, near in enumerate(named_ones))


def test_the_chance_of_a_neighbor_is_named_for_the_noise_alone():
    found = SimilarItem("b", 0.5, 0.9999)
    assert found.above_noise == 0.999 and SimilarItem("b", 0.5).above_noise is None
    with pytest.warns(DeprecationWarning):
        assert found.confidence == found.above_noise
    listed = Listing([SimilarItem("b", 0.5, 0.9)])
    assert listed.to_frame()["above_noise"].to_list() == [0.9]


@pytest.mark.parametrize(
    ("member", "instead"),
    [
        ("similar", "similar_items"),
        ("neighbours", "similar_items"),
        ("recommend_for_user", "recommend(history"),
        ("user_factors", "contains no users"),
        ("recomend", "recommend"),
    ],
)
def test_names_of_other_libraries_name_the_present_call(member, instead):
    model = Ease().fit(toy_interactions(n_users=60, seed=8))
    assert not hasattr(model, member)
    with pytest.raises(AttributeError) as caught:
        getattr(model, member)
    assert caught.value.code == "no-such-member" and instead in caught.value.instead
    assert pickle.loads(pickle.dumps(caught.value)).member == member
