import numpy as np
import polars as pl
import pytest
from scipy.special import expit, ndtr

from discreet.core.checks import ParameterError
from discreet.data.datasets.synthetic import invented_items, one_bit, popularity_skewed, rank_one
from discreet.data.reading.readers import read
from discreet.testing import refuses
from discreet.testing.large_data import LargeShape, large, write_large, write_log


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


@pytest.fixture(scope="module")
def shape():
    return LargeShape.of(200_000)


def test_large_has_exactly_the_ratings_asked_for(shape, monkeypatch):
    monkeypatch.setattr("discreet.testing.large_data._BLOCK", 7_000)
    data = large(shape)
    assert (data.n_users, data.n_items, data.n_ratings) == (shape.n_users, shape.n_items, 200_000)
    assert np.diff(data.indptr).min() >= 1
    assert _sorted_without_repeats(data)
    assert set(np.unique(data.values).tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}


@pytest.mark.thorough
def test_large_is_skewed_and_people_agree_in_crowds(shape):
    data = large(shape)
    counts = np.sort(np.bincount(data.items, minlength=data.n_items))[::-1]
    assert counts[: data.n_items // 10].sum() > 0.2 * data.n_ratings
    residual = (
        data.values - np.bincount(data.rows(), data.values)[data.rows()] / np.diff(data.indptr)[data.rows()]
    )
    spectrum = np.linalg.svd(data.with_values(residual).to_scipy().toarray(), compute_uv=False)
    assert spectrum[0] > 2 * spectrum[20]


def test_large_shape_keeps_the_proportions_of_a_film_service():
    top = LargeShape.of(100_000_000)
    assert (top.n_users, top.n_items) == (480_000, 17_770)
    assert LargeShape.of(1_000_000).n_users == 4_800
    billion = LargeShape.of(10**9)
    assert (billion.n_users, billion.n_items) == (2_000_000, 100_000)
    assert all(LargeShape.of(n_ratings).n_ratings == n_ratings for n_ratings in (1_000, 2_000, 5_000, 15_000))


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_written_file_holds_the_same_ratings(kind, shape, tmp_path):
    path = write_large(tmp_path / f"ratings.{kind}", shape, seed=6)
    frame = pl.read_parquet(path) if kind == "parquet" else pl.read_csv(path)
    data = large(shape, seed=6)
    assert frame.columns == ["user", "item", "rating"]
    assert np.array_equal(frame["user"].to_numpy(), data.rows())
    assert np.array_equal(frame["item"].to_numpy(), data.items)
    assert np.array_equal(frame["rating"].to_numpy().astype(np.float32), data.values)


def test_large_refuses_other_files_crowded_shapes_and_missing_folders(shape, tmp_path):
    with refuses("broken-rule", name="path", value="ratings.txt"):
        write_large(tmp_path / "ratings.txt", shape)
    with refuses("broken-rule", name="n_ratings", value=90):
        LargeShape(n_users=10, n_items=10, n_ratings=90)
    with refuses("cannot-write"):
        write_large(tmp_path / "nowhere" / "ratings.csv", shape)


def test_a_log_has_the_same_ratings_in_the_order_of_time_in_many_files(shape, tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.testing.large_data._BLOCK", 30_000)
    monkeypatch.setattr("discreet.testing.large_data._FILE_ROWS", 2_000)
    folder = write_log(tmp_path / "log", shape, seed=6)
    files = [pl.read_parquet(file) for file in sorted(folder.glob("*.parquet"))]
    assert len(files) > 16 and all(file["time"].is_sorted() for file in files)
    assert sum(file["user"].n_unique() for file in files) > 1.5 * shape.n_users
    log = pl.concat(files).sort("user", "item")
    whole = pl.read_parquet(write_large(tmp_path / "rows.parquet", shape, seed=6, times=True))
    assert log.equals(whole.sort("user", "item"))


def test_times_leave_the_ratings_as_they_are(shape, tmp_path):
    plain = read(write_large(tmp_path / "plain.parquet", shape, seed=6), low=1, high=5)
    timed = read(write_large(tmp_path / "timed.parquet", shape, seed=6, times=True), low=1, high=5)
    assert plain.times is None and timed.times is not None
    np.testing.assert_array_equal(plain.items, timed.items)
    np.testing.assert_array_equal(plain.values, timed.values)
    assert np.unique(timed.times).size > 0.9 * timed.n_ratings and (np.diff(timed.times) < 0).any()
