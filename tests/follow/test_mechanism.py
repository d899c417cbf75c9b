"""One user's whole year has length at most 1, in whole numbers; what breaks that is caught."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

from discreet.core.randomness import PrivacyRandom
from discreet.follow import Following, FollowSettings
from discreet.follow import entries as entry_book
from discreet.follow import year as followed_year
from discreet.follow.factorization import FACTOR_BITS, Factorization, decay
from discreet.follow.settings import (
    COUNT_PART,
    LEVEL_COUNT,
    LEVEL_VALUE,
    PART_BITS,
    RELEASE_BITS,
    WEIGHT_BITS,
    WHOLE,
    Pace,
)
from discreet.follow.state import State, opened
from evidence import follows, samples_to_separate
from followed_years import CHOICES, ITEMS, N_ITEMS, STARS, batch, weeks, year

ONE = 2**RELEASE_BITS
YEARS = [(12, None), (52, None), (365, None), (52, 1.0), (365, 7.0), (365, 30.0), (1, None), (2, 0.01)]


@pytest.mark.few(3)
@pytest.mark.parametrize(("releases", "half_life"), [*YEARS, (53, 3.3), (1100, None), (1100, 0.2)])
def test_columns_have_norm_at_most_one_in_whole_numbers(releases, half_life):
    whole = Factorization(releases=releases, half_life=half_life).whole
    squares = (whole.astype(object) ** 2).sum(axis=0)
    assert max(squares) <= 2 ** (2 * FACTOR_BITS)
    # Little is lost: the norm that the noise is scaled to is used.
    assert min(squares) >= 0.999 * 2 ** (2 * FACTOR_BITS)
    assert np.array_equal(whole, np.tril(whole)) and whole.min() >= 0


def test_a_column_that_floats_made_too_long_is_shortened():
    from discreet.follow.factorization import _shorten

    long = np.array([[2**16, 0], [5, 2**16]], dtype=np.int64)
    _shorten(long)
    assert long.tolist() == [[2**16 - 1, 0], [5, 2**16]]


def test_noise_of_sums_is_what_the_square_root_allows():
    found = [Factorization(releases=count).deviation(count) for count in (12, 52, 365)]
    assert np.allclose(found, [1.61, 1.95, 2.39], atol=0.006)
    for half_life, most in ((7.0, 1.47), (30.0, 1.89)):
        fading = Factorization(releases=365, half_life=half_life)
        assert max(fading.deviation(count, half_life) for count in range(5, 366, 40)) < most


@pytest.mark.parametrize("half_life", [None, 3.0])
def test_estimates_undo_the_factorization(half_life):
    plan = Factorization(releases=9, half_life=2.0)
    sums = np.random.default_rng(0).integers(0, 100, (9, 4)).astype(float)
    released = np.ldexp(plan.whole.astype(float), -FACTOR_BITS) @ sums
    for count in (1, 5, 9):
        wanted = decay(count, half_life)[::-1] @ sums[:count]
        assert np.allclose(plan.estimator(count, half_life) @ released[:count], wanted)


def hostile_users(releases, count, rng):
    """Return how many new ratings each user has at each release: bursts, all year, late, once, huge."""
    new = np.zeros((count, releases), dtype=np.int64)
    for user in range(count):
        kind, active = user % 6, int(rng.integers(1, min(releases, 80) + 1))
        start = {3: 0, 4: releases - active}.get(kind)
        when = rng.choice(releases, active, replace=False) if start is None else start + np.arange(active)
        when = when[:1] if kind == 5 else when
        new[user, when] = 10 ** rng.uniform(0, 6 if kind == 5 else 3 if kind == 1 else 1, when.size)
    return new


def longest(settings, facts, new, rule=None):
    """Return the largest joint squared norm of these users' years, as a part of what is promised, exactly.

    Of ratings that were scaled together the worst split into counts and values is taken.
    """
    rated = facts is STARS
    squares = [
        (one.whole.astype(object) ** 2).sum(axis=0) for one in (settings.counts(rated=rated), settings.values)
    ]
    used, norms = np.zeros(len(new), dtype=np.int64), np.zeros(len(new), dtype=object)
    own = new.cumsum(axis=1)
    leveled = np.zeros(len(new), dtype=bool)
    part = 1 << (2 * PART_BITS)
    for release in range(settings.releases):
        when = {"release": release, "releases": settings.releases}
        active = new[:, release] > 0
        if rated:
            weights = settings.pace.level_weights(used, **when, own=own[:, release])
            level = np.where(active & ~leveled, weights, 0)
            leveled |= active
            used += level**2
            norms += (level**2).astype(object) * part * squares[1][release]
        weights = (rule or settings.pace.weights)(used, new[:, release], **when, own=own[:, release])
        used += new[:, release] * weights**2
        worst = max(squares[0][release], squares[1][release]) if rated else squares[0][release]
        norms += (new[:, release].astype(object) * weights.astype(object) ** 2) * part * worst
    return max(norms) / ONE**2


def test_scaled_ratings_are_no_longer_than_their_weights():
    """Whole numbers are checked: whatever users rate, they use at most what their weights allow, and most."""
    rng = np.random.default_rng(0)
    new = np.concatenate([rng.integers(1, 40, 3000), [1, 1, 20_000, 3]])
    users = np.repeat(np.arange(new.size), new)
    kinds = rng.integers(0, 4, new.size)[users]
    above = np.select(
        [kinds == 0, kinds == 1, kinds == 2], [-1.4, 0.0, rng.choice([-1.4, 0.6], users.size)], 0.0
    )
    above = np.where(kinds == 3, rng.uniform(-1.4, 0.6, users.size), above)
    weights = Pace(start=1.0, reserve=0.0).weights(new * 0, new, release=0, releases=1)
    counted, valued = entry_book._scaled(weights, users, new, above)
    length = np.zeros(new.size, dtype=object)
    np.add.at(length, users, counted.astype(object) ** 2 + valued.astype(object) ** 2)
    allowed = new.astype(object) * weights.astype(object) ** 2 * 2 ** (2 * PART_BITS)
    assert (length <= allowed).all() and (length[new < 100] > 0.99 * allowed[new < 100]).all()
    # The twin: rounded to the nearest and not scaled below, some are too long.
    squares = np.bincount(users, weights=above**2 + COUNT_PART**2)
    scale = (weights * np.sqrt(new / squares) * 2**PART_BITS)[users]
    longer = np.zeros(new.size, dtype=object)
    nearest = [np.ceil(scale * COUNT_PART), np.sign(above) * np.ceil(np.abs(scale * above))]
    np.add.at(longer, users, sum(np.array(one, dtype=np.int64).astype(object) ** 2 for one in nearest))
    assert (longer > allowed).any()


def test_a_mean_is_no_longer_than_its_weight(monkeypatch):
    """Whatever floats make of a mean, whole numbers hold what enters."""
    above = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 1.0, -1.0, 0.3])
    users, new = np.arange(above.size), np.ones(above.size, dtype=np.int64)
    zeros, nobody = np.zeros_like(new), np.zeros(above.size, dtype=bool)
    before = entry_book.Earlier(zeros, zeros, nobody, np.zeros(0, dtype=bool))

    def squares():
        when = {"release": 0, "releases": 1}
        found = entry_book._levels(Pace(start=1.0), before, users, new, above, when)
        weights = found.weights.astype(object)
        assert min(weights) > 0 and found.items.max() < 0
        length = found.counts.astype(object) ** 2 + found.values.astype(object) ** 2
        return length - (weights**2 << 2 * PART_BITS), found

    over, found = squares()
    assert max(over) <= 0 and found.values[0] == 0 and found.values[5] > 0 > found.values[6]
    # A mean that would be too long contributes zeros.
    monkeypatch.setattr(entry_book, "LEVEL_VALUE", 1000)
    over, found = squares()
    assert max(over) <= 0 and found.counts[5] == found.values[5] == 0 and found.counts[7] > 0
    # The twin: without a check it would be longer, and what a cast makes of no number is anything.
    assert LEVEL_COUNT**2 + 1000**2 > 1 << 2 * PART_BITS
    honest = np.isfinite
    monkeypatch.setattr(np, "isfinite", lambda numbers: honest(numbers) | True)
    monkeypatch.setattr(np, "trunc", lambda numbers: np.where(honest(numbers), numbers, -(2.0**31)))
    over, found = squares()
    assert max(over) <= 0 and found.counts[0] == found.values[0] == 0


@pytest.mark.few(5)
@pytest.mark.parametrize("facts", [STARS, CHOICES], ids=["ratings", "choices"])
@pytest.mark.parametrize(("releases", "half_life"), YEARS)
def test_no_hostile_user_is_longer_than_one(releases, half_life, facts):
    # 16 times 1,300 are 20,800 users over all C and both kinds of years.
    rng = np.random.default_rng(releases)
    paces = [
        Pace(),
        Pace(start=1.0, reserve=0.0),
        Pace(start=0.0, share=0.5, ratings=10, reserve=0.0),
        Pace(reserve=0.0),
        Pace(start=1.0, reserve=1000.0),
    ]
    pace = paces[(releases + (facts is STARS)) % len(paces)]
    settings = FollowSettings(
        releases=releases, epsilon=1.0, half_life=half_life, days=float(releases), pace=pace
    )
    new = hostile_users(releases, 1300, rng)
    assert longest(settings, facts, new) <= 1
    # The twin: weights that forget what was used, in the years that are long enough to notice.
    forgetful = lambda used, new, **when: pace.weights(used * 0, new, **when)  # noqa: E731
    if releases > 2:
        assert longest(settings, facts, new, forgetful) > 1


def test_pace_never_uses_more_than_all():
    pace = Pace(start=1.0, reserve=0.0)
    weights = pace.weights(np.array([0, WHOLE - 1, WHOLE]), np.array([1, 1, 5]), release=0, releases=1)
    assert weights.tolist() == [2**WEIGHT_BITS, 1, 0]
    for setting in ({"start": 1.1}, {"share": 0.0}, {"ratings": 0}, {"reserve": -0.1}, {"reserve": math.inf}):
        with pytest.raises(ValueError):
            Pace(**setting)


def test_a_reserve_leaves_something_for_ratings_that_come_later():
    pace, when = Pace(start=1.0), {"release": 0, "releases": 52}
    used, found = np.array([0]), []
    for own in range(1, 200):
        weights = pace.weights(used, np.array([1]), **when, own=np.array([own]))
        used = used + weights**2
        assert used[0] * (2 * own + 1) <= WHOLE * 2 * own
        found.append(int(weights[0]))
    assert found[0] > found[1] > found[50] > found[-1] > 0
    # One batch of all of them uses no more than single ones may; a bound by the number of ratings is no cap.
    together = pace.weights(np.array([0]), np.array([199]), **when)
    assert 199 * together[0] ** 2 * (2 * 199 + 1) <= WHOLE * 2 * 199 < 2**62
    huge = pace.weights(np.array([0]), np.array([2**40]), **when)
    assert huge[0] == 0
    assert Pace.from_json({"start": 0.3, "share": 0.5, "ratings": 10}).reserve == 0
    assert Pace.from_json(pace.to_json()) == pace


class Recorder:
    """Record the exact numbers that noise is put on, and what was told."""

    def __init__(self):
        self.given, self.told, self.widths = [], [], []

    def passing(self, draw, arguments):
        self.given.append(arguments["target"].copy())
        told = draw(**arguments)
        self.told.append(arguments["target"].copy())
        self.widths.append(arguments["sigma"])
        return told

    def exact(self, mechanism, values):
        raise AssertionError("whole numbers are drawn on directly")


def recorded(folder, batches, facts=STARS, *, at=None, **options):
    """Return what a year put noise on; `at` is called before a release, by its number."""
    recording = Recorder()
    followed = year(folder, facts, releases=len(batches), **options)
    source = PrivacyRandom.recorded(1, recording)
    for number, one in enumerate(batches):
        if at is not None:
            at(number, followed)
        followed.add(one, random=source)
    return recording, followed


def joint_norm(one, other):
    """Return how far apart two years are over all releases together, in units of what is promised."""
    squares = 0
    for first, second in zip(one.given, other.given, strict=True):
        squares += sum(int(number) ** 2 for number in first - second)
    return math.sqrt(squares / ONE**2)


def without(batches, user):
    """Return the batches without a user; a batch that was only theirs is empty."""
    left = [None if one is None else one.without_people([user]) for one in batches]
    return [one if one is not None and one.n_ratings else None for one in left]


def eager(batches):
    """Return batches in which one more user rates everything there is, some of it several times."""
    wide = []
    for number, one in enumerate(batches):
        rows = [
            (one.users.id_at(u), ITEMS.id_at(i), v)
            for u, i, v in zip(one.rows(), one.items, one.values, strict=True)
        ]
        items = range(N_ITEMS) if number % 2 == 0 else range(number, N_ITEMS)
        wide.append(batch([*rows, *(("target", f"i{k}", 1) for k in items)]))
    return wide


def pairs(tmp_path, batches, **options):
    """Return the joint norm between a year with and without the user called target."""
    folders = [tmp_path / name for name in ("with", "without")]
    for folder in folders:
        folder.mkdir()
    here, _ = recorded(folders[0], batches, **options)
    gone, _ = recorded(folders[1], without(batches, "target"), **options)
    return joint_norm(here, gone)


GREEDY = {"pace": Pace(start=1.0, reserve=0.0)}


def test_a_whole_year_differs_by_at_most_one_user(tmp_path):
    norm = pairs(tmp_path, eager(weeks(6)), **GREEDY)
    # Nearly all of the promise is used, so the bound is tight.
    assert 0.99 < norm <= 1


def test_twin_an_item_that_enters_twice_is_caught(tmp_path, monkeypatch):
    from discreet.follow import entries

    honest = entries._earlier

    def forgets_pairs(*given):
        return entries.Earlier(*(np.zeros_like(column) for column in honest(*given)))

    monkeypatch.setattr(entries, "_earlier", forgets_pairs)
    assert pairs(tmp_path, eager(weeks(6)), **GREEDY) > 2


def test_twin_an_entry_that_moves_to_a_later_release_is_caught(tmp_path):
    def lose_entry_days(number, followed):
        if number == 3:
            with opened(followed.path, writing=True) as state:
                columns = "(counts, totals, level)"
                first, second, third = state.sums(N_ITEMS)[:3]
                blank = "(zeroblob(96), zeroblob(96), zeroblob(16))"
                state._run(f"UPDATE sums SET {columns} = {blank} WHERE release < 2")
                state._run(
                    f"UPDATE sums SET {columns} = (?, ?, ?) WHERE release = 2",
                    *(part.tobytes() for part in first.plus(second).plus(third)),
                )

    assert pairs(tmp_path, eager(weeks(6)), at=lose_entry_days, **GREEDY) > 1.02


def test_twin_a_release_that_is_drawn_twice_is_caught(tmp_path):
    def draw_again(number, followed):
        if number == 5:
            # The older copy of the state that a backup brings back.
            copy = Path(str(followed.path) + ".copy")
            copy.write_bytes(followed.path.read_bytes())

    batches = [None] * 5 + [batch([("target", "i0", 1), ("other", "i1", 3)])]
    folders = [tmp_path / name for name in ("with", "without")]
    seen = []
    for folder, given in zip(folders, (batches, without_last(batches)), strict=True):
        folder.mkdir()
        recording, followed = recorded(folder, given, at=draw_again, **GREEDY)
        Following(str(followed.path) + ".copy").add(given[-1], random=PrivacyRandom.recorded(2, recording))
        seen.append(recording)
    assert joint_norm(*seen) == pytest.approx(math.sqrt(2), abs=1e-3)


def without_last(batches):
    return [*batches[:-1], batches[-1].without_people(["target"])]


def test_twin_erasure_by_adding_the_negative_is_caught(tmp_path, monkeypatch):
    batches = [batch([("target", "i0", 1)]), None, *weeks(1), None]
    erase = lambda number, followed: followed.erase("target") if number == 2 else None  # noqa: E731
    (tmp_path / "honest").mkdir()
    assert pairs(tmp_path / "honest", batches, at=erase, **GREEDY) <= 1

    def negate(self, release, gone):
        from discreet.follow.state import summed

        less = summed(gone, N_ITEMS)
        monkeypatch.setattr(followed_year, "summed", lambda entries, count: add(summed(entries, count), less))

    def add(found, less):
        monkeypatch.undo()
        return found.plus(less, sign=-1)

    monkeypatch.setattr(State, "_subtract", negate)
    (tmp_path / "negative").mkdir()
    assert pairs(tmp_path / "negative", batches, at=erase, **GREEDY) > 1.02


def test_noise_is_the_promised_one_and_independent_over_releases(tmp_path):
    settings = FollowSettings(releases=40, epsilon=1.0)
    recording, followed = recorded(tmp_path, [None] * 40, epsilon=1.0)
    assert set(recording.widths) == {followed.status().settings.width} == {settings.width}
    noise = np.concatenate(
        [told - given for told, given in zip(recording.told, recording.given, strict=True)]
    )
    deviation = settings.multiplier * ONE
    assert settings.width == pytest.approx(deviation, rel=1e-9)
    from discreet.privacy.sampling.draws import discrete_gaussian

    count = samples_to_separate(0.04)
    more = discrete_gaussian(settings.width, count, PrivacyRandom.simulate(3))
    sample = np.concatenate([noise, more]) / deviation
    assert follows(sample, ndtr)
    assert not follows(0.85 * sample, ndtr)
    table = noise.reshape(40, -1) / deviation
    together = table[:-1].ravel() * table[1:].ravel()
    assert abs(together.mean()) < 6.5 / math.sqrt(together.size)


def test_audit_of_a_whole_followed_year(tmp_path):
    """Whoever knows everything but whether the target is there gains at most what was promised, jointly."""
    settings = FollowSettings(releases=6, epsilon=2.0, half_life=7.0, days=42.0, **GREEDY)
    norm = pairs(tmp_path, eager(weeks(6)), **GREEDY)
    # The likelihood ratio of all releases together is that of N(0, 1) against N(norm / multiplier, 1).
    shift = norm * ONE / math.sqrt(settings.width**2 - 4)
    assert shift <= 1 / settings.multiplier
    from discreet.privacy.accounting.gaussian import gaussian_delta

    assert gaussian_delta(1 / shift, settings.epsilon) <= settings.delta
    # The twin: with a tenth less noise the year would break its promise.
    assert gaussian_delta(0.9 / shift, settings.epsilon) > settings.delta


def test_parts_of_a_level_are_at_most_all_of_it():
    assert LEVEL_COUNT**2 + LEVEL_VALUE**2 <= 2 ** (2 * PART_BITS)
