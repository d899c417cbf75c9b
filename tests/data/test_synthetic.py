import numpy as np
import pytest
from scipy.special import expit, ndtr

from discreet.core.checks import ParameterError
from discreet.data.datasets.synthetic import invented_items, one_bit, popularity_skewed, rank_one


def _sorted_without_repeats(data):
    rises = np.diff(data.items) > 0
    starts = data.indptr[1:-1]
    rises[starts[(starts > 0) & (starts < data.n_ratings)] - 1] = True
    return bool(rises.all()) and data.items.min() >= 0 and data.items.max() < data.n_items


def _same(left, right):
    return (
        np.array_equal(left.indptr, right.indptr)
        and np.array_equal(left.items, right.items)
        and np.array_equal(left.values, right.values)
    )


@pytest.fixture(scope="module")
def demo():
    return popularity_skewed()


def test_one_bit_matrix_has_the_rank_and_bound_asked_for():
    sample = one_bit(n_users=40, n_items=30, rank=3, bound=2.0, observed=0.5, seed=1)
    assert np.linalg.matrix_rank(sample.truth) == 3
    assert np.abs(sample.truth).max() == pytest.approx(2.0)
    assert sample.data.n_ratings == 600
    assert set(sample.data.values.tolist()) == {-1.0, 1.0}
    assert _sorted_without_repeats(sample.data)
    assert (sample.data.facts.low, sample.data.facts.high, sample.data.facts.step) == (-1, 1, 2)


_LINKS = {"logistic": expit, "probit": ndtr}


@pytest.mark.parametrize(("link", "other"), [("logistic", "probit"), ("probit", "logistic")])
def test_verdicts_follow_their_link_and_not_the_other(link, other):
    sample = one_bit(n_users=20_000, n_items=1, link=link, observed=1.0, seed=2)
    strength = np.abs(sample.truth[:, 0])
    agree = np.mean(sample.data.values == np.sign(sample.truth[:, 0]))
    # Hoeffding: the share strays this far with a chance below 2e-9; the links are over twice as far apart.
    stray = np.sqrt(np.log(1e9) / (2 * 20_000))
    assert abs(agree - _LINKS[link](strength).mean()) < stray
    assert abs(agree - _LINKS[other](strength).mean()) > stray


def test_rank_one_ratings_are_the_product_and_each_person_has_as_many():
    sample = rank_one(n_users=500, n_items=40, per_user=8, seed=3)
    data = sample.data
    assert np.array_equal(np.diff(data.indptr), np.full(500, 8))
    assert _sorted_without_repeats(data)
    product = sample.user_factor[data.rows()] * sample.item_factor[data.items]
    np.testing.assert_allclose(data.values, product, rtol=1e-6)
    assert data.facts.max_per_user == 8 and data.facts.step is None


def test_rank_one_spreads_over_all_items():
    counts = np.bincount(rank_one(n_users=4_000, n_items=40, per_user=8, seed=4).data.items, minlength=40)
    # A count is Binomial(4000, 1/5); 800 +- 6.5 standard deviations.
    assert abs(counts - 800).max() < 165


def test_rank_one_is_the_same_in_blocks_of_any_rows(monkeypatch):
    whole = rank_one(n_users=200, n_items=30, per_user=5, seed=5)
    monkeypatch.setattr("discreet.data.datasets.synthetic._KEYS_AT_ONCE", 64)
    assert _same(whole.data, rank_one(n_users=200, n_items=30, per_user=5, seed=5).data)


def test_demo_is_repeated_by_its_seed_and_changed_by_another():
    small = {"n_users": 200, "n_items": 100, "mean_per_user": 30}
    first, again = popularity_skewed(**small), popularity_skewed(**small)
    other = popularity_skewed(**small, seed=1)
    assert _same(first, again) and np.array_equal(first.times, again.times)
    assert first.catalog.ids.tolist() == again.catalog.ids.tolist()
    assert first.n_ratings != other.n_ratings or not _same(first, other)


def test_demo_is_well_formed(demo):
    assert (demo.n_users, demo.n_items, demo.name) == (6_000, 600, "discreet-demo")
    assert _sorted_without_repeats(demo)
    assert set(demo.values.tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}
    per_user = np.diff(demo.indptr)
    assert per_user.min() >= 15 and per_user.max() <= 300 and 50 < per_user.mean() < 70
    assert demo.facts.from_file == ()


def test_demo_popularity_is_skewed(demo):
    counts = np.sort(np.bincount(demo.items, minlength=600))[::-1]
    assert counts[:60].sum() > 0.3 * demo.n_ratings
    assert counts[-1] > 20


def test_demo_has_half_stars_on_request():
    data = popularity_skewed(n_users=50, n_items=60, mean_per_user=20, step=0.5)
    assert np.all(data.values * 2 == np.round(data.values * 2)) and (data.values % 1 == 0.5).any()


def test_titles_are_unique_sorted_and_line_up_with_the_catalog(demo):
    items = invented_items()
    assert len(set(items.titles)) == 600 and list(items.titles) == sorted(items.titles)
    assert demo.catalog.ids.tolist() == list(items.titles)
    assert items.weights.shape == (600, len(items.genres))
    assert np.array_equal((items.weights == 1).sum(axis=1), np.ones(600))
    assert "The Last Comet" in invented_items(2_400).titles


def test_people_rate_their_favorite_genre_above_the_opposite_one(demo):
    # Whoever gave space films their best marks in one half of their ratings also does in the other half.
    items = invented_items()
    space, western = (items.weights[:, items.genres.index(name)] == 1 for name in ("space", "western"))
    rows, half = demo.rows(), np.arange(demo.n_ratings) % 2

    def preference(which):
        means = []
        for genre in (space, western):
            cells = which & genre[demo.items]
            count = np.bincount(rows[cells], minlength=demo.n_users)
            total = np.bincount(rows[cells], demo.values[cells], minlength=demo.n_users)
            means.append(np.where(count >= 2, total / np.maximum(count, 1), np.nan))
        return means[0] - means[1]

    first, second = preference(half == 0), preference(half == 1)
    known = np.isfinite(first) & np.isfinite(second)
    assert known.sum() > 500
    assert np.corrcoef(first[known], second[known])[0, 1] > 0.6


@pytest.mark.thorough
def test_two_factors_explain_much_more_than_biases(demo):
    """The residuals' Gram matrix over items has two directions far above the rest."""
    values = demo.values.astype(np.float64)
    residual = values - values.mean()
    residual -= (np.bincount(demo.items, residual) / np.bincount(demo.items))[demo.items]
    residual -= (np.bincount(demo.rows(), residual) / np.bincount(demo.rows()))[demo.rows()]
    spectrum = np.linalg.svd(demo.with_values(residual).to_scipy().toarray(), compute_uv=False)
    assert spectrum[1] > 2 * spectrum[2]


@pytest.mark.parametrize(
    "bad",
    [
        {"n_users": 0},
        {"n_items": 3},
        {"n_items": 10**6},
        {"mean_per_user": 500},
        {"step": 0.25},
        {"seed": -1},
    ],
)
def test_demo_refuses_impossible_shapes(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        popularity_skewed(**bad)


@pytest.mark.parametrize(
    "bad",
    [{"rank": 0}, {"rank": 101}, {"bound": 0.0}, {"link": "linear"}, {"observed": 1.5}, {"scale": -1.0}],
)
def test_one_bit_refuses_impossible_shapes(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        one_bit(**bad)
