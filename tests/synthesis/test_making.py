"""Synthetic data from fitted models, their files and labels, and the page about them."""

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import discreet
from assumption_examples import stated
from discreet import PrivacyRandom, UserFactorization, synthesize
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.data.synthetic_labels import KEY, label_path, origin_of
from discreet.models.scorers.released_histories import ReleasedHistories
from discreet.privacy.guarantee import Fact, Kind
from discreet.statistics.history_summary import LENGTH_STARTS
from discreet.synthesis import page as comparison
from discreet.synthesis.labels import is_synthetic, read_synthetic_label, summary, write_synthetic
from discreet.synthesis.making import LengthSource, make, number_of_users
from discreet.synthesis.page import Profile, agreement, distance, render_page
from discreet.testing import refuses
from toy import toy_interactions


def fit(data, **settings):
    chosen = {"epsilon": math.inf, "for_synthesis": True, **settings}
    return UserFactorization(**chosen).fit(data, random=PrivacyRandom.simulate(2))


@pytest.fixture(scope="module")
def data():
    return popularity_skewed(n_users=400, n_items=60, mean_per_user=15)


@pytest.fixture(scope="module")
def rated(data):
    return fit(data)


@pytest.fixture(scope="module")
def implicit(data):
    return fit(data, epsilon=3.0, feedback="implicit")


def test_synthetic_data_look_like_the_release(data, rated):
    made = synthesize(rated, users=2000)
    assert made.n_users == 2000 and made.catalog is rated.catalog and made.facts.n_users == 2000
    release, found = Profile.of_release(rated), Profile.of_data(made, rated)
    assert distance(release.popularity, found.popularity) < 0.1
    assert distance(release.lengths, found.lengths) < 0.1
    assert distance(release.levels, found.levels) < 0.05
    # The twin: data of another shape are far from it.
    other = Profile.of_data(toy_interactions(n_users=300, n_items=60), rated)
    assert distance(release.popularity, other.popularity) > 0.2
    assert distance(release.levels, other.levels) > 0.1
    longer = Profile.of_data(synthesize(rated, users=300, length=40), rated)
    assert distance(release.lengths, longer.lengths) > 0.3


def test_implicit_data_have_no_ratings(implicit):
    made = synthesize(implicit)
    assert set(made.values.tolist()) == {1.0} and made.facts.low == made.facts.high == 1.0
    assert made.n_users == round(implicit.scorer.part("history_lengths").sum())


def test_a_seed_repeats_and_another_differs(implicit):
    one, two, other = (synthesize(implicit, users=50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.items, two.items)
    assert one.items.tolist() != other.items.tolist()


def test_an_order_is_what_the_release_or_the_caller_says(implicit):
    plain = synthesize(implicit, users=20)
    has_order = implicit.scorer.part("history_order")[0] >= 0.5
    assert (plain.times is not None) == has_order
    ordered = synthesize(implicit, users=20, order=True)
    for row in range(20):
        times = ordered.times[ordered.indptr[row] : ordered.indptr[row + 1]]
        assert sorted(times) == list(range(times.size))
    assert synthesize(implicit, users=20, order=False).times is None


def test_declared_lengths_are_named_in_the_label(data, snapshot):
    plain = fit(data, for_synthesis=False, epsilon=3.0)
    with refuses("users-unknown"):
        synthesize(plain)
    made = make(plain, 30, length=5)
    snapshot("\n".join(made.sentences))
    snapshot("\n".join(make(fit(data, epsilon=3.0)).sentences))


def test_other_models_are_refused_with_one_sentence(data):
    model = discreet.Biases(epsilon=1.0).fit(data, random=PrivacyRandom.simulate(0))
    with refuses("no-histories-in", model="biases"):
        synthesize(model, users=5)
    with refuses("out-of-range", name="users", value=0):
        synthesize(fit(data), users=0)
    with refuses("out-of-range", name="length", value=61):
        synthesize(fit(data), users=5, length=61)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_label_travels_with_the_data(tmp_path, rated, implicit, suffix):
    for name, model in (("rated", rated), ("implicit", implicit)):
        out = tmp_path / f"{name}.{suffix}"
        made = make(model, 40)
        write_synthetic(model, made, out)
        label = read_synthetic_label(out)
        assert label["sentence"] == summary(model.guarantee) in label["guarantee"]["notes"]
        assert set(made.sentences) <= set(label["guarantee"]["notes"])
        table = pl.read_parquet(out) if suffix == "parquet" else pl.read_csv(out)
        assert table.height == made.data.n_ratings and table.columns[:2] == ["user", "item"]
        assert ("rating" in table.columns) == (name == "rated")
        again = discreet.read(out, implicit=name == "implicit")
        assert again.n_ratings == made.data.n_ratings and again.n_users == 40
        with refuses("file-exists", replaceable=True):
            write_synthetic(model, made, out)
        write_synthetic(model, made, out, force=True)


def test_summaries_say_what_covers_the_data(rated, implicit, snapshot):
    assert "NOT PRIVATE" in summary(rated.guarantee)
    snapshot(summary(implicit.guarantee))


def test_foreign_and_damaged_files_are_refused(tmp_path, implicit):
    out = tmp_path / "s.csv"
    write_synthetic(implicit, make(implicit, 10), out)
    assert is_synthetic(out)
    out.write_text(out.read_text() + "\n")
    with refuses("not-synthetic"):
        read_synthetic_label(out)
    plain = tmp_path / "plain.parquet"
    pl.DataFrame({"user": [1]}).write_parquet(plain)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(b"PAR1" + bytes(50))
    for path in (plain, cut, tmp_path / "none.parquet", tmp_path):
        assert not is_synthetic(path)
    for text in ("[]", "{}", '{"format": 1}', "{" * 5000, json.dumps({"format": "discreet-synthetic"})):
        label_path(out).write_text(text)
        assert not is_synthetic(out)
    with refuses("bad-ending", endings=(".parquet", ".csv")):
        write_synthetic(implicit, make(implicit, 5), tmp_path / "s.txt")


def test_the_page_marks_what_is_for_the_holder_only(data, rated, snapshot):
    made = make(rated, 300)
    public = render_page(rated, made)
    assert "<script" not in public
    snapshot(public, numbers=False)
    snapshot(render_page(rated, made, data), numbers=False)


def test_pairs_agree_only_where_there_is_something(data, rated):
    found = Profile.of_data(synthesize(rated, users=2000), rated).lifts
    real = Profile.of_data(data, rated).lifts
    assert agreement(real, real) == pytest.approx(1.0)
    shuffled = np.random.default_rng(0).permutation(found)
    assert abs(agreement(real, shuffled)) < 0.1
    assert agreement(real, np.zeros(real.size)) is None and agreement(real, real[:-1]) is None


def changed(model, path, **arrays):
    """Return the file of a model whose scorer has other arrays."""
    replace(model, scorer=replace(model.scorer, **arrays)).save(path)
    return path


def test_a_hostile_model_cannot_ask_for_any_number_of_users(tmp_path, implicit):
    many = discreet.load(changed(implicit, tmp_path / "many", history_lengths=np.array([2.0**34, 0.0])))
    with refuses("out-of-range", name="users", most=16777216):
        synthesize(many)
    with refuses("out-of-range", name="users", value=2**40):
        synthesize(many, users=2**40)
    # The twin: whoever says how many gets them.
    assert synthesize(many, users=5).n_users == 5
    for name, lengths in (("more", [1e18]), ("bins", [1.0] * (LENGTH_STARTS.size + 1))):
        with refuses("other-version"):
            discreet.load(changed(implicit, tmp_path / name, history_lengths=np.array(lengths)))
    with refuses("other-version"):
        discreet.load(changed(implicit, tmp_path / "levels", rating_levels=np.ones(22)))


def test_all_bins_of_lengths_can_be_drawn():
    every = ReleasedHistories(lengths=np.ones(LENGTH_STARTS.size), ordered=1.0, levels=np.ones(1))
    drawn = LengthSource.of(every, None, 40).draw(500, np.random.default_rng(0))
    assert drawn.min() >= 1 and drawn.max() == 40
    assert number_of_users(every, None) == LENGTH_STARTS.size


def test_pairs_are_counted_in_blocks(monkeypatch, data):
    items = np.arange(20)
    whole = comparison.pair_lifts(data, items)
    monkeypatch.setattr(comparison, "_USERS", 7)
    np.testing.assert_array_equal(comparison.pair_lifts(data, items), whole)
    # The twin: other users, other lifts.
    assert not np.array_equal(comparison.pair_lifts(data.span(0, 393), items), whole)


@pytest.mark.few(1)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_fit_on_synthetic_data_says_what_they_come_from(tmp_path, data, rated, suffix):
    out = tmp_path / f"s.{suffix}"
    made = make(rated, 60)
    write_synthetic(rated, made, out)
    learner = discreet.Popularity(epsilon=0.1)
    for source in (made.data, made.data.select_users(np.arange(50)), out, str(out), discreet.read(out)):
        promise = learner.fit(source, random=PrivacyRandom.simulate(0)).guarantee
        assert stated(promise)[Kind.SYNTHETIC, Fact.DATA] == {"origin": summary(rated.guarantee)}
        assert "synthetic" in promise.sentence() and "synthetic" in promise.short()
        assert len(promise.conditions) <= 2
    # The twin: nothing is said of data of people, nor of a file whose label is something else.
    of_users = learner.fit(data, random=PrivacyRandom.simulate(0)).guarantee
    assert (Kind.SYNTHETIC, Fact.DATA) not in stated(of_users) and "synthetic" not in of_users.sentence()
    label_path(out).write_text("{}")
    assert (origin_of(out) is None) == (suffix == "csv")


def test_no_other_text_of_a_label_gets_onto_a_promise(tmp_path, snapshot):
    out, origins = tmp_path / "s.csv", set()
    out.write_text("user,item\n1,2\n")
    for text in ("private and (taken from the file)", "synthetic, from a release \x1b[2J", 7, "x" * 5000):
        label_path(out).write_text(json.dumps({"format": "discreet-synthetic", "sentence": text}))
        assert origin_of(out) not in (None, text)
        origins.add(origin_of(out))
    snapshot("\n".join(origins))
    said = "synthetic, from a release with epsilon 1, delta 1e-06, proved"
    label_path(out).write_text(json.dumps({"format": "discreet-synthetic", "sentence": said}))
    assert origin_of(out) == said


def test_rows_under_a_copied_label_are_found_out_where_a_digest_is(tmp_path, implicit):
    out = tmp_path / "s.parquet"
    write_synthetic(implicit, make(implicit, 10), out)
    copied = pl.read_parquet_metadata(out)[KEY]
    assert is_synthetic(out)
    pl.DataFrame({"user": ["alice"], "item": ["secret"]}).write_parquet(out, metadata={KEY: copied})
    with refuses("not-synthetic"):
        read_synthetic_label(out)


def test_a_file_that_does_not_begin_as_parquet_has_no_label_in_it(tmp_path, implicit):
    out = tmp_path / "s.parquet"
    write_synthetic(implicit, make(implicit, 10), out)
    label_path(out).unlink(missing_ok=True)
    assert origin_of(out) is not None, "the twin"
    out.write_bytes(b"none" + out.read_bytes()[4:])
    assert origin_of(out) is None


def test_lengths_that_nobody_declared_are_assumed():
    assert "assumed (mean 20" in LengthSource.of(None, None, 50).sentence()
    assert "declared (mean 20)" in LengthSource.of(None, 20, 50).sentence()
