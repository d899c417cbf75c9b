"""A followed year: what enters and what does not, what is drawn, and what a model says."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import discreet
from assumption_examples import stated
from discreet.core.checks import BudgetError, ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.follow import Following, FollowSettings
from discreet.follow.entries import influence_left
from discreet.follow.releases import YearPlan
from discreet.follow.state import LEVEL, Entries, ItemSums, opened, summed
from discreet.models.fitted import FittedModel
from discreet.models.storage import label_of
from discreet.privacy import continual
from discreet.privacy.guarantee import Fact, Kind, reading_of
from discreet.privacy.ledger.ledger import Ledger
from discreet.testing import refuses
from followed_years import CHOICES, ITEMS, N_ITEMS, STARS, batch, weeks, year


def all_entries(followed):
    """Return every entry with its release."""
    with opened(followed.path, writing=False) as state:
        return [(release, block) for release, block in state.entries()]


def stored_sums(followed):
    with opened(followed.path, writing=False) as state:
        return state.sums(N_ITEMS)


def simulated(followed, one, seed=0, **options):
    return followed.add(one, random=PrivacyRandom.simulate(seed), **options)


@pytest.mark.parametrize("facts", [STARS, CHOICES], ids=["ratings", "choices"])
def test_sums_are_exactly_those_of_what_entered(tmp_path, facts):
    followed = year(tmp_path, facts)
    for one in weeks(4):
        simulated(followed, one.with_values(np.ones(one.n_ratings), CHOICES) if facts is CHOICES else one)
    for number, sums in enumerate(stored_sums(followed)):
        # A user's own mean stands behind the last item.
        counts, values = [0] * (N_ITEMS + 1), [0] * (N_ITEMS + 1)
        for release, block in all_entries(followed):
            for item, count, value in zip(block.items, block.counts, block.values, strict=True):
                counts[item] += int(count) * (release == number)
                values[item] += int(value) * (release == number)
        assert [*sums.counts.tolist(), sums.level[0]] == counts
        assert [*sums.values.tolist(), sums.level[1]] == values
    # What is released, before noise, is C times the sums, in whole numbers.
    settings = followed.status().settings
    exact = YearPlan(settings=settings, rated=facts is STARS).exact(stored_sums(followed))
    row = [int(entry) for entry in settings.counts(rated=facts is STARS).whole[3, :4]]
    wanted = [
        sum(r * int(s.counts[k]) for r, s in zip(row, stored_sums(followed), strict=True))
        for k in range(N_ITEMS)
    ]
    assert exact.counts.tolist() == wanted and exact.values.size == (N_ITEMS if facts is STARS else 0)


def test_a_pair_enters_once_and_the_first_rating_counts(tmp_path):
    followed = year(tmp_path)
    first = simulated(followed, batch([("ann", "i1", 5), ("ann", "i2", 1), ("bob", "i1", 3)]))
    again = simulated(followed, batch([("ann", "i1", 1), ("ann", "i3", 4)]))
    assert (first.entered, first.known_pairs, again.entered, again.known_pairs) == (3, 0, 1, 1)
    pairs = [
        (user, item)
        for _, one in all_entries(followed)
        for user, item in zip(one.users, one.items, strict=True)
    ]
    # Four ratings, and each user's mean once.
    assert len(pairs) == len(set(pairs)) == 6 and sum(item == LEVEL for _, item in pairs) == 2
    assert all_entries(followed)[0][1].values[0] > 0


def test_users_are_known_again_however_their_id_is_written(tmp_path):
    followed = year(tmp_path)
    numbers = Interactions.from_arrays([7, 8], ["i1", "i1"], [5, 4], facts=STARS, catalog=ITEMS)
    texts = Interactions.from_arrays(["7", "x "], ["i1", "i1"], [5, 4], facts=STARS, catalog=ITEMS)
    blanks = Interactions.from_arrays([" 8", "x"], ["i1", "i1"], [5, 4], facts=STARS, catalog=ITEMS)
    entered = [simulated(followed, one).entered for one in (numbers, texts, blanks)]
    assert entered == [2, 1, 0]
    matrix = Interactions.from_arrays(
        [0], ["i1"], [5], facts=STARS, catalog=ITEMS, people=Vocabulary.range(1)
    )
    with refuses("users-unnamed"):
        simulated(followed, matrix)


def test_late_ratings_missed_weeks_and_repeated_calls(tmp_path):
    followed = year(tmp_path)
    simulated(followed, batch([("ann", "i1", 5)]), release=1)
    late = simulated(followed, batch([("bob", "i1", 5)]), release=4)
    assert late.release == 4 and len(followed.status().times) == 4
    assert {release for release, _ in all_entries(followed)} == {0, 3}
    again = simulated(followed, batch([("carl", "i1", 5)]), seed=9, release=4)
    assert again.repeated and again.entered == 0 and len(followed.status().times) == 4
    assert np.array_equal(again.model.scorer.part("popularity"), late.model.scorer.part("popularity"))
    with refuses("wrong-release", release=2, made=4):
        simulated(followed, None, release=2)
    with refuses("period-used-up", most=6, made=4):
        simulated(followed, None, release=7)
    simulated(followed, None, release=6)
    with refuses("period-used-up", most=6, made=6):
        simulated(followed, None)


def test_new_items_are_declared_and_have_no_noise_from_before(tmp_path):
    followed = year(tmp_path)
    simulated(followed, weeks(1)[0])
    more = Vocabulary.of([*ITEMS.ids.tolist(), "new"])
    wide = batch([("ann", "new", 5)], STARS.__class__(n_items=13, low=1, high=5, step=1), more)
    with refuses("undeclared-items", count=1, of=1):
        simulated(followed, wide)
    added = simulated(followed, wide, items=Vocabulary.of(["new", "i1"]))
    assert stated(added.model.guarantee)[Kind.DECLARED, Fact.CATALOG] == {"items": 13}
    assert added.model.facts.n_items == 13 and added.model.catalog.ids.tolist()[-1] == "new"
    with opened(followed.path, writing=False) as state:
        first, second = state.releases(13)
    assert first.drawn.counts[12] == 0 and second.drawn.counts[12] != 0


def test_erasure_takes_out_everything_and_keeps_out(tmp_path):
    followed, never = year(tmp_path), tmp_path / "never"
    never.mkdir()
    other = year(never)
    ours = weeks(3)
    gone, stays = ours[0].users.id_at(0), ours[0].users.id_at(1)
    for number, one in enumerate(ours[:2]):
        simulated(followed, one, seed=number)
        simulated(other, one.without_people([gone]), seed=number)
    taken = followed.erase(gone)
    assert taken > 0 and followed.erase(gone) == 0 and followed.erase("nobody") == 0
    for here, there in zip(stored_sums(followed), stored_sums(other), strict=True):
        assert all(np.array_equal(one, other) for one, other in zip(here, there, strict=True))
    back = simulated(followed, batch([(gone, "i1", 5), ("nobody", "i1", 5), ("new", "i1", 5)]))
    assert back.of_erased == 2 and back.entered == 1
    assert f'"{gone}"'.encode() not in followed.path.read_bytes()
    assert f'"{stays}"'.encode() in followed.path.read_bytes()


def test_the_user_who_asks_is_erased_and_nobody_else(tmp_path):
    """Python strips more than the reader of files does: a control character is part of an id."""
    followed = year(tmp_path)
    simulated(followed, batch([("a\x1f", "i1", 5), ("a\x1f", "i2", 5), ("a", "i1", 5)]))
    assert followed.erase(" a\x1f ") == 2
    assert followed.erase("a") == 1


def test_influence_of_the_erased_fades():
    left = influence_left(FollowSettings(releases=365, epsilon=1.0, days=365.0), 60)
    # The law of the arc sine.
    for more, part in left.items():
        assert part == pytest.approx(2 / math.pi * math.asin(math.sqrt(60 / (60 + more))), abs=0.02)
    fading = influence_left(FollowSettings(releases=52, epsilon=1.0, half_life=7.0), 10)
    assert max(map(abs, fading.values())) < 0.01
    assert influence_left(FollowSettings(releases=52, epsilon=1.0), 0) == {}


def test_the_year_is_paid_once(tmp_path):
    ledger = Ledger.open(tmp_path / "a.ledger")
    settings = FollowSettings(releases=6, epsilon=2.0, delta=1e-6)
    followed = Following.start(tmp_path / "a.follow", ITEMS, STARS, settings, name="shop", ledger=ledger)
    for one in weeks(3):
        simulated(followed, one)
    spent = ledger.spent("shop")
    assert spent.epsilon == 2.0 and spent.delta == 1e-6 and len(ledger.entries()) == 1
    recounted = ledger.recounted("shop", 1e-6)
    assert recounted == pytest.approx(2.0, rel=1e-6) and recounted <= 2.0
    with refuses("file-exists", replaceable=False):
        Following.start(tmp_path / "a.follow", ITEMS, STARS, settings, name="shop", ledger=ledger)
    ledger.set_budget("shop", settings.promise(STARS))
    with pytest.raises(BudgetError):
        Following.start(tmp_path / "b.follow", ITEMS, STARS, settings, name="shop", ledger=ledger)
    assert not (tmp_path / "b.follow").exists() and len(ledger.entries()) == 1


def test_what_leaves_a_year_follows_from_its_releases(tmp_path, monkeypatch):
    """A year of other ratings that gets the same releases must show the same; the twin gets its own."""

    def shown(folder, seed):
        folder.mkdir()
        followed, found = year(folder), []
        for one in weeks(3, seed=seed, users=30 + seed, each=40 + 9 * seed):
            model = followed.add(one, random=PrivacyRandom.simulate(0)).model
            arrays = {name: part.tobytes() for name, part in model.scorer.arrays().items()}
            status = {**followed.status().to_json(), "releases": None}
            found.append((label_of(model), arrays, status))
        return found

    def drawn(target, width, random):
        target[:] = 1 << 30

    assert shown(tmp_path / "a", 0) != shown(tmp_path / "b", 1)
    monkeypatch.setattr(continual, "add_discrete_gaussian", drawn)
    assert shown(tmp_path / "c", 0) == shown(tmp_path / "d", 1)


def test_a_stored_release_is_never_stored_again(tmp_path):
    followed = year(tmp_path)
    simulated(followed, weeks(1)[0])
    with opened(followed.path, writing=False) as state:
        (first,) = state.releases(N_ITEMS)
    other = replace(first, drawn=ItemSums(*(part + 1 for part in first.drawn)))
    for again in (lambda state: state.publish(other), lambda state: state.add_sums(0, other.drawn)):
        with refuses("drawn-before"), opened(followed.path, writing=True) as state:
            again(state)
    with opened(followed.path, writing=False) as state:
        np.testing.assert_array_equal(state.releases(N_ITEMS)[0].drawn.counts, first.drawn.counts)


def test_one_release_with_simulated_noise_is_one_too_many(tmp_path):
    """The twin is a year whose noise is all real."""
    (tmp_path / "other").mkdir()
    followed, other = year(tmp_path), year(tmp_path / "other")
    first, second = weeks(2)
    assert simulated(followed, first).model.guarantee.simulated
    assert followed.add(second).model.guarantee.simulated
    assert not other.add(first).model.guarantee.simulated


def test_models_are_ordinary(tmp_path, snapshot):
    followed = year(tmp_path)
    for number, one in enumerate(weeks(3, users=400, each=600)):
        added = followed.add(one, random=PrivacyRandom.from_os() if number else None)
    added.model.save(tmp_path / "a.discreet")
    model = discreet.load(tmp_path / "a.discreet")
    assert isinstance(model, FittedModel) and model.guarantee.is_private
    snapshot("\n".join(model.guarantee.notes))
    assert (
        len(model.recommend({"i1": 5}, k=3)) == 3 and 1 <= model.predict_items({"i1": 5}, ["i2"])["i2"] <= 5
    )
    for kind in ("popularity", "biases"):
        followed.model(kind=kind).save(tmp_path / f"{kind}.discreet")
        assert len(discreet.load(tmp_path / f"{kind}.discreet").recommend({"i1": 5}, k=3)) == 3
    with refuses("unknown-choice", name="kind", value="trees"):
        followed.model(kind="trees")
    made = len(followed.status().times)
    with refuses("unknown-choice", name="kind", value="trees"):
        simulated(followed, None, kind="trees")
    with refuses("not-combinable", model="follow"):
        simulated(followed, None, model=followed.model(kind="popularity"))
    # What is refused draws nothing.
    assert len(followed.status().times) == made
    assert simulated(followed, None).model.guarantee.simulated


def test_estimates_find_what_is_current(tmp_path):
    """Without privacy to speak of, what was chosen lately leads, and effects are those of the ratings."""
    followed = year(tmp_path, epsilon=30.0)
    rng = np.random.default_rng(0)
    for week in range(4):
        rows = [(f"w{week}-{u}", f"i{week + k}", 5 if k else 2) for u in range(300) for k in range(2)]
        added = simulated(followed, batch(rows), seed=int(rng.integers(99)))
    assert np.argmax(followed.current().recent.sums) in (3, 4)
    bias = added.model.scorer.part("item_bias")
    assert bias[4] > 0.5 and bias[0] < -0.5
    status = followed.status()
    assert 2 <= status.stands_out <= 6 and status.noise > 0 and status.to_json()["left"] == 2


def test_combined_with_embeddings(tmp_path):
    followed = year(tmp_path)
    data = weeks(1, users=400, each=900)[0]
    fitted = discreet.UserFactorization(epsilon=3.0).fit(data, random=PrivacyRandom.simulate(1))
    added = simulated(followed, data, model=fitted)
    promise = added.model.guarantee
    assert promise.epsilon >= 5.0 and promise.delta >= 2e-6 and promise.proof == "proofs/follow.md"
    assert np.array_equal(added.model.scorer.part("popularity"), followed.current().popularity)
    choices = discreet.UserFactorization(epsilon=3.0, feedback="implicit").fit(
        data, random=PrivacyRandom.simulate(1)
    )
    both = followed.model(model=choices)
    assert len(both.recommend(["i1"], k=3)) == 3
    # A user without a history gets what is current: the fitted model's own popularity has no part in it, and
    # a user's own place is drawn further to the origin.
    newcomer = both.worth(both._person([]), [0])[0]
    assert np.array_equal(newcomer, np.log(followed.current().popularity).astype(np.float32))
    assert (
        both.scorer.ridge > choices.scorer.ridge
        and both.scorer.following.blend <= choices.scorer.following.blend
    )
    biases = discreet.Biases(epsilon=3.0).fit(data, random=PrivacyRandom.simulate(1))
    with refuses("not-combinable", model="biases"):
        followed.model(model=biases)


@pytest.mark.parametrize("feedback", ["implicit", "explicit"])
def test_weights_between_items_follow_the_catalog(tmp_path, feedback):
    """They name items of the followed catalog, in whatever order it stands; none if it lacks one of them."""
    data = weeks(1, users=400, each=900)[0]
    fitted = discreet.UserFactorization(epsilon=math.inf, feedback=feedback).fit(data)
    assert fitted.scorer.following if feedback == "implicit" else fitted.scorer.choice.following
    names = [data.catalog.id_at(place) for place in range(len(data.catalog))]
    for catalog, kept in ((names[::-1], True), (names[3:], False)):
        facts = replace(data.facts, n_items=len(catalog))
        path = tmp_path / f"{len(catalog)}.follow"
        settings = FollowSettings(releases=2, epsilon=2.0)
        followed = Following.start(path, Vocabulary.of(catalog), facts, settings)
        simulated(followed, None)
        model = followed.model(model=replace(fitted, guarantee=followed.status().guarantee))
        before, after = fitted.scorer.part("paired"), model.scorer.part("paired")
        wanted = [names[place] for place in before] if kept else []
        assert [model.catalog.id_at(place) for place in after] == wanted
        assert len(model.recommend({names[-1]: 5}, k=3)) == 3


def test_other_files_are_left_alone(tmp_path):
    other = tmp_path / "a.follow"
    other.write_text("my notes")
    with refuses("not-a-release-state"):
        Following(other).status()
    assert other.read_text() == "my notes"
    with refuses("no-state"):
        Following(tmp_path / "b.follow").status()
    followed = year(tmp_path)
    raw = bytearray(followed.path.read_bytes())
    # Years of version 2 had another C for counts beside ratings; one year must not have columns of both.
    for version in (1, 2, 9):
        raw[60:64] = version.to_bytes(4, "big")
        followed.path.write_bytes(raw)
        with refuses("other-state-version", found=version, read=3):
            followed.status()
    raw[60:64] = (3).to_bytes(4, "big")
    followed.path.write_bytes(raw)
    assert not followed.status().times
    with refuses("cannot-write"):
        Following.start(tmp_path / "no" / "a.follow", ITEMS, STARS, FollowSettings(releases=2, epsilon=1.0))


def test_settings_are_checked():
    for wrong in (
        {"releases": 0},
        {"releases": 2000},
        {"epsilon": math.inf},
        {"delta": 0.0},
        {"half_life": 0.0},
    ):
        with pytest.raises(ParameterError):
            FollowSettings(**{"releases": 12, "epsilon": 1.0, **wrong})
    settings = FollowSettings(releases=12, epsilon=1.0, half_life=30.0)
    assert FollowSettings.from_json(settings.to_json()) == settings
    with refuses("bad-period-settings"):
        FollowSettings.from_json({"pace": settings.pace.to_json(), "colour": 3})


def test_sums_of_nothing():
    nothing = np.zeros(0, dtype=np.int32)
    found = summed(Entries(nothing, nothing, nothing, nothing, nothing), 3)
    assert isinstance(found, ItemSums) and found.counts.tolist() == [0, 0, 0]


READ = {"layout": "UTF-8, comma, header", "rows": "event=buy", "reading": ("query", "frame", "quotes")}


def about_reading(guarantee):
    return {one for one in guarantee.assumes if one.fact.value in ("layout", "rows", *READ["reading"])}


def test_how_each_source_was_read_is_assumed_of_all_later_models(tmp_path):
    followed, (first, second, third) = year(tmp_path), weeks(3)
    first = first.with_facts(replace(first.facts, reading=()))
    assert not about_reading(simulated(followed, first).model.guarantee)
    odd = second.with_facts(replace(second.facts, from_file=("picked",), **READ))
    model = simulated(followed, odd).model
    # The same as a fit states of this source.
    wanted = set(reading_of(odd.facts))
    assert wanted <= set(model.guarantee.assumes) and len(wanted) == 6
    assert [one.fact for one in model.guarantee.conditions] == [Fact.LAYOUT, Fact.QUERY]
    other = third.with_facts(replace(third.facts, layout="UTF-16, tab", reading=("frame",)))
    again = Following(followed.path)
    assert wanted <= set(again.model().guarantee.assumes)
    later = simulated(again, other).model.guarantee
    assert about_reading(later) == about_reading(model.guarantee) | set(reading_of(other.facts))
    assert Following(followed.path).status().guarantee.conditions == later.conditions
    # A repeated call enters nothing, so nothing more is assumed.
    unread = third.with_facts(replace(third.facts, reading=("readable",)))
    assert simulated(again, unread, release=3).model.guarantee.assumes == later.assumes
    assert again.kept() == {}


def test_what_is_assumed_is_kept_with_the_release_or_not_at_all(tmp_path):
    followed, (one,) = year(tmp_path), weeks(1)
    odd = one.with_facts(replace(one.facts, **READ))

    def dies(added):
        assert about_reading(added.model.guarantee)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulated(followed, odd, keeping=dies)
    assert followed.made == 0 and not about_reading(followed.status().guarantee)


def test_a_year_of_earlier_versions_keeps_its_layouts(tmp_path):
    followed, (one,) = year(tmp_path), weeks(1)
    followed.keep(layouts=json.dumps(["UTF-8, semicolon"]))
    guarantee = simulated(Following(followed.path), one).model.guarantee
    assert stated(guarantee)[Kind.TAKEN, Fact.LAYOUT] == {"layout": "UTF-8, semicolon"}
