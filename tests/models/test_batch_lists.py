"""Lists that compiled loops make for many people are, place by place, those that all scores give."""

import dataclasses

import numpy as np
import pytest

import discreet
from discreet.core.arrays import Floats
from discreet.data.interactions import Interactions, Vocabulary
from discreet.models import batch_lists
from discreet.models.batch_lists import Chance, MostLiked
from discreet.models.lists import Best, Wanted, _many, _one_by_one, best_items
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.interactions import InteractionsAndRatings, InteractionScorer
from discreet.models.scorers.item_item import PopularityScorer
from discreet.models.scorers.ranking import Liking, LinearScores, log_chance

N_ITEMS = 5_000


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(4)
    people, each = 70, 40
    items = np.concatenate([random.choice(N_ITEMS, each, replace=False) for _ in range(people)])
    return Interactions.from_arrays(
        np.repeat(np.arange(people), each),
        items,
        random.integers(1, 6, items.size),
        random.integers(0, 99, items.size),
        catalog=Vocabulary.range(N_ITEMS),
        low=1,
        high=5,
        step=1,
    )


def scorers(whole: bool) -> dict[str, object]:
    """Return scorers with random numbers, or with few whole ones, so that many scores are equal."""
    random = np.random.default_rng(3)

    def numbers(*shape) -> Floats:
        return random.integers(-1, 2, shape).astype(float) if whole else random.standard_normal(shape)

    counts = np.exp2(random.integers(0, 3, N_ITEMS)) if whole else random.gamma(0.5, 10.0, N_ITEMS) + 0.5
    interactions = InteractionScorer.of(counts, numbers(N_ITEMS, 5), {})
    shape = {"low": 1.0, "high": 5.0, "mean": 3.0, "ridge": np.full(4, 2.0)}
    stars = RatingScorer(
        item_bias=numbers(N_ITEMS), item_factors=numbers(N_ITEMS, 3), popularity=counts, liking=0.4, **shape
    )
    paired = interactions.with_parts(
        paired=np.sort(random.choice(N_ITEMS, 900, replace=False)),
        neighbors=random.integers(0, 900, (900, 30)).astype(np.int32),
        neighbor_weights=(1 + np.abs(numbers(900, 30))).astype(np.float16) - np.float16(1.2),
        blend=0.6,
    )
    return {
        "interactions": interactions,
        "paired": paired,
        "paired, both": InteractionsAndRatings.of(stars, paired, 1.0, 0.0),
        "both": InteractionsAndRatings.of(stars, interactions, 1.0, 0.0),
        "counted": stars,
        "stars": dataclasses.replace(stars, popularity=np.zeros(0)),
        "popularity": PopularityScorer(popularity=counts),
    }


def model_of(data, scorer):
    fitted = discreet.Popularity(epsilon=8.0).fit(data, random=discreet.PrivacyRandom.simulate(1))
    return dataclasses.replace(fitted, scorer=scorer)


def both_ways(model, data, k, rank_by=None, exclude_seen=True, closed=()):
    closed = np.array(closed, dtype=np.int64)
    wanted = Wanted(k=k, exclude_seen=exclude_seen, closed=closed, rank_by=rank_by)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model.scorer), "ranking", lambda *_: None)
        plain = list(_one_by_one(model, data, wanted))
    few = list(_one_by_one(model, data, wanted))
    fast = list(_many(model, data, wanted))
    return [
        tuple(np.concatenate([block[part] for block in blocks]) for part in (1, 2))
        for blocks in (plain, few, fast)
    ]


def require_equal(plain, *others):
    listed = np.isfinite(plain[1])
    for other in others:
        assert (listed == np.isfinite(other[1])).all()
        assert (plain[0][listed] == other[0][listed]).all()
        np.testing.assert_allclose(plain[1][listed], other[1][listed], rtol=3e-7, atol=3e-7)


@pytest.mark.few(1)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind", sorted(scorers(True)))
def test_every_place_is_what_all_scores_give(data, kind, whole):
    model = model_of(data, scorers(whole)[kind])
    every = np.arange(N_ITEMS)
    for rank_by in (None, *model.scorer.rankings):
        require_equal(*both_ways(model, data, 20, rank_by))
    require_equal(*both_ways(model, data, 7, exclude_seen=False))
    require_equal(*both_ways(model, data, 300, closed=every[::2]))
    # Fewer items are open than a list has places.
    require_equal(*both_ways(model, data, 20, closed=every[9:]))


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", sorted(scorers(True)))
def test_one_user_alone_has_the_list_that_they_have_among_many(data, kind):
    """Bit by bit, scores and expected ratings included; the twin is the list of another user."""
    model = model_of(data, scorers(False)[kind])

    def lists(rows):
        best = best_items(model, data.select_users(rows), Wanted(k=9))
        return [None if part is None else part.reshape(-1, 9).tolist() for part in best[2:]]

    many, alone = lists(np.arange(data.n_users)), [lists(np.array([row])) for row in range(data.n_users)]
    for part, found in enumerate(many):
        assert found is None or found == [one[part][0] for one in alone]
    assert many[0][0] != alone[1][0][0] or model.scorer.same_for_all


@pytest.mark.parametrize("kind", ["paired", "paired, both"])
def test_weights_between_items_need_no_other_way(data, kind, monkeypatch):
    """The twin: without a ranking all scores are computed."""
    model = model_of(data, scorers(False)[kind])
    monkeypatch.setattr(type(model.scorer), "worth_by", None)
    assert list(_many(model, data, Wanted(k=5)))
    monkeypatch.setattr(type(model.scorer), "ranking", lambda *_: None)
    with pytest.raises(TypeError):
        list(_many(model, data, Wanted(k=5)))


def test_whoever_speaks_for_no_item_is_listed_by_the_other_scores(data):
    """Nobody's weights count, scores beyond what exponentials hold, and a newcomer without a history."""
    paired = scorers(False)["paired"]
    silent = paired.with_parts(neighbor_weights=np.full((900, 30), -1, dtype=np.float16))
    far = dataclasses.replace(paired, popularity=paired.popularity * np.exp(np.arange(N_ITEMS) % 340.0))
    for scorer in (silent, far):
        require_equal(*both_ways(model_of(data, scorer), data, 20))
    alone = data.where(data.rows() != 3)
    require_equal(*both_ways(model_of(data, paired), alone, 20))


def test_a_list_of_the_whole_catalog(data):
    few = data.select_items(np.arange(50))
    small = {name: scorers(False)[name] for name in ("interactions", "popularity")}
    small["interactions"] = dataclasses.replace(
        small["interactions"],
        popularity=small["interactions"].popularity[:50],
        item_factors=small["interactions"].item_factors[:50],
    )
    small["popularity"] = PopularityScorer(popularity=small["popularity"].popularity[:50])
    for scorer in small.values():
        require_equal(*both_ways(model_of(few, scorer), few, 99))


def test_equal_scores_keep_the_order_of_the_catalog(data):
    """The twin: where all items are equal any other rule for ties gives another list."""
    flat = InteractionScorer.of(np.ones(N_ITEMS), np.zeros((N_ITEMS, 2)), {})
    for scorer in (flat, PopularityScorer(popularity=np.ones(N_ITEMS))):
        best = best_items(model_of(data, scorer), data, Wanted(k=5, exclude_seen=False))
        assert isinstance(best, Best) and (best.items.reshape(-1, 5) == np.arange(5)).all()


def test_rough_scores_alone_would_not_do(data, monkeypatch):
    """The twin: with margins that are too small some places are lost, so the comparison above can fail."""
    random = np.random.default_rng(5)
    near = InteractionScorer.of(np.ones(N_ITEMS), np.zeros((N_ITEMS, 1)), {})
    # Biases that single precision still tells apart, beside products that cost it their last digits.
    near = dataclasses.replace(near, popularity=np.exp(1e-6 * random.standard_normal(N_ITEMS)))
    near = dataclasses.replace(near, item_factors=np.full((N_ITEMS, 1), 1e-3), length=0.0)
    model = model_of(data, near)
    require_equal(*both_ways(model, data, 20))
    monkeypatch.setattr(batch_lists, "_ROUNDING_MARGIN", -1e-3)
    with pytest.raises(AssertionError):
        require_equal(*both_ways(model, data, 20))


def test_numbers_too_large_for_single_precision_are_ranked_from_all_scores(data):
    vectors = np.full((N_ITEMS, 2), 1e-200)
    vectors[7] = 1e30
    large = InteractionScorer.of(np.ones(N_ITEMS), vectors, {})
    large = dataclasses.replace(large, length=0.0)
    with np.errstate(over="ignore"):
        require_equal(*both_ways(model_of(data, large), data, 20))


def test_many_chances_are_those_of_few():
    points = np.concatenate([np.linspace(-60, 20, (1 << 17) + 1), [np.nan, np.inf, -36.0, 9.0]])
    many = log_chance(points)
    few = np.concatenate([log_chance(part) for part in np.array_split(points, 2)])
    np.testing.assert_allclose(many, few, rtol=1e-12, atol=1e-15)
    assert not np.allclose(many[:-4], log_chance(points[:1000]).mean())


@pytest.mark.parametrize("size", [0.0, 1.0, 1e6, 1e18])
@pytest.mark.parametrize("link", ["normal", "logistic"])
def test_no_chance_is_larger_than_what_its_cell_leaves(size, link):
    """The twin: half of what the cells leave is less than some chance."""
    random = np.random.default_rng(4)
    people, items, bias = (size * random.standard_normal(shape) for shape in ((40, 3), (200, 3), 200))
    liking = Liking(0.4, LinearScores(people, items, bias), 2 + random.standard_normal(40), 0.7, link)
    chance = Chance.of(liking, 40)
    most = MostLiked.of(chance, np.arange(200))
    with np.errstate(over="ignore", invalid="ignore"):
        places = most.scale * most.ratings(0, 40).astype(np.float64) + most.shifts[:, None]
    last = most.factors.size - 1
    left = most.factors[np.where(places < last, np.maximum(places, 0), last).astype(int)]
    chances = np.exp([liking.of_one(user, np.arange(200)) for user in range(40)])
    assert (left >= chances).all()
    assert (left / 2 < chances).any()
