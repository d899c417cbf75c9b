"""A trial: the answer, its interval, and what would change it."""

import json

import numpy as np
import polars
import pytest

import discreet
from discreet.core.checks import DataError, FileError
from discreet.data.interactions import Interactions
from discreet.evaluation.trial import (
    FEWEST_USERS,
    Gain,
    Level,
    RatingErrors,
    Trial,
    gain_of,
    render,
    summary,
    trial,
)
from discreet.testing import refuses
from toy import grouped

N_USERS = 400


def level(epsilon, low):
    return Level(
        epsilon=epsilon, model=0.2, popularity=0.1, gain=Gain(mean=low + 0.05, low=low, high=low + 0.1)
    )


@pytest.fixture(scope="module")
def found():
    return trial(grouped(N_USERS), epsilon=8.0)


def test_a_trial_answers_yes_if_groups_of_users_choose_apart(found):
    assert found.answer == "yes" and found.asked.gain.low > 0
    assert found.needed_epsilon == 8.0 and len(found.levels) == 1
    assert found.split == "leave-one-out" and found.scored_users == N_USERS
    assert found.best[1] >= found.asked.popularity


def test_a_trial_repeats_and_releases_nothing(found):
    again = trial(grouped(N_USERS), epsilon=8.0)
    assert again.to_json() == found.to_json()
    assert json.loads(json.dumps(found.to_json()))["published"] is False


def test_noise_that_drowns_the_groups_is_no_yes():
    drowned = trial(grouped(FEWEST_USERS), epsilon=0.01)
    assert drowned.answer != "yes" and len(drowned.levels) > 1
    assert drowned.needed_users is None or drowned.needed_users > FEWEST_USERS


def test_too_few_users_are_rejected_before_a_fit():
    few = Interactions.from_arrays([0, 0, 1, 1], [0, 1, 0, 1])
    with pytest.raises(DataError):
        trial(few)


def test_the_interval_covers_users_and_noise():
    # Known truth: each fit shifts all users by noise of deviation .1, and users differ by 1.
    random = np.random.default_rng(0)
    covered, covered_without_noise = 0, 0
    for _ in range(400):
        shifts = random.normal(0, 0.1, (5, 1))
        differences = shifts + random.normal(0, 1, (1, 500))
        gain = gain_of(differences)
        covered += gain.low <= 0 <= gain.high
        narrow = 1.96 * differences.mean(axis=0).std(ddof=1) / np.sqrt(500)
        covered_without_noise += abs(gain.mean) <= narrow
    assert covered >= 0.93 * 400
    # The twin: an interval over users alone misses the truth too often.
    assert covered_without_noise < 0.93 * 400


@pytest.mark.parametrize(
    ("lows", "epsilon", "users"),
    [((0.01,), 1.0, 1000), ((-0.2, -0.01, 0.01), 4.0, 4000), ((-0.2, -0.1), None, None)],
)
def test_needed_users_grow_with_the_needed_epsilon(found, lows, epsilon, users):
    levels = tuple(level(2.0**place, low) for place, low in enumerate(lows))
    fields = {name: getattr(found, name) for name in Trial.__slots__}
    changed = Trial(**{**fields, "users": 1000, "levels": levels})
    assert (changed.needed_epsilon, changed.needed_users) == (epsilon, users)
    assert all(summary(changed)[:3]) or summary(changed)[1] == ""
    assert "<svg" in render(changed, "<shop>", "discreet fit") or len(lows) == 1
    assert "<shop>" not in render(changed, "<shop>", "discreet fit")


def gain_from(low):
    return Gain(mean=low + 0.05, low=low, high=low + 0.1)


def with_answers(found, lists, over_mean, over_biases, purpose=None, **more):
    """Return a trial with these lower ends of the gains."""
    errors = RatingErrors(
        model=1,
        biases=1.1,
        mean=1.2,
        of="item mean",
        means={"item mean": 1.2, "global mean": 1.4},
        gain=gain_from(over_biases),
        over_mean=gain_from(over_mean),
        **{"needed_epsilon": 1.0, **more},
    )
    fields = {name: getattr(found, name) for name in Trial.__slots__}
    return Trial(**{**fields, "levels": (level(1.0, lists),), "ratings": errors, "purpose": purpose})


YES, UNDECIDED, NO = 0.01, -0.05, -0.2


@pytest.mark.parametrize(
    ("lists", "over_mean", "over_biases", "purpose", "options"),
    [
        (YES, YES, YES, None, {}),
        (YES, YES, UNDECIDED, None, {"--for": "lists"}),
        (YES, NO, YES, None, {"--for": "lists"}),
        (UNDECIDED, YES, YES, None, {"--for": "ratings"}),
        (UNDECIDED, YES, UNDECIDED, None, {"--model": "biases"}),
        (NO, NO, NO, None, {"--model": "popularity"}),
        (YES, YES, YES, "lists", {"--for": "lists"}),
        (NO, YES, YES, "lists", {"--model": "popularity"}),
        (YES, YES, YES, "ratings", {"--for": "ratings"}),
        (YES, NO, NO, "ratings", {"--model": "biases"}),
    ],
)
def test_the_next_fit_follows_from_the_answers(found, lists, over_mean, over_biases, purpose, options):
    changed = with_answers(found, lists, over_mean, over_biases, purpose)
    assert changed.options == options
    shown = {line.split(".")[0] for line in summary(changed)[2:4]}
    answers = {
        "lists": f"Recommendations: {changed.recommended.upper()}",
        "ratings": f"Ratings: {changed.rated.upper()}",
    }
    for about, answer in answers.items():
        assert (answer in shown) == (purpose in (None, about))
    assert changed.answer == (changed.rated if purpose == "ratings" else changed.recommended)
    assert changed.to_json()["recommendations"]["answer"] == changed.recommended


def test_a_simple_private_model_that_beats_the_mean_gets_a_yes(found):
    changed = with_answers(found, UNDECIDED, YES, UNDECIDED)
    ratings = changed.to_json()["ratings"]
    assert (ratings["answer"], ratings["best"], ratings["better_than"]) == ("yes", "biases", "item mean")
    changed = with_answers(found, UNDECIDED, YES, UNDECIDED, needed_epsilon=changed.asked.epsilon)
    assert changed.to_json()["ratings"]["needed_users"] == changed.users


def test_ratings_that_their_mean_predicts_as_well_get_a_no(found):
    changed = with_answers(found, YES, NO, YES, needed_epsilon=4.0)
    assert changed.rated == "no" and changed.options == {"--for": "lists"}
    assert changed.to_json()["ratings"]["mean"] == 1.2
    assert changed.to_json()["ratings"]["needed_users"] == changed.needed_users_for_ratings
    assert 3.9 < changed.needed_users_for_ratings / changed.users < 4.5
    assert f"{changed.needed_users_for_ratings:,} users" in " ".join(summary(changed))


def test_ratings_by_items_and_users_are_predicted_better_by_biases_than_by_a_mean():
    random = np.random.default_rng(5)
    rows = np.repeat(np.arange(600), 12)
    items = np.concatenate([random.choice(30, 12, replace=False) for _ in range(600)])
    effects = random.normal(0, 1, 600)[rows] + random.normal(0, 1, 30)[items]
    values = np.clip(np.rint(3 + effects), 1, 5)
    asked = trial(
        Interactions.from_arrays(rows, items, values, low=1, high=5), epsilon=4.0, purpose="ratings"
    )
    assert asked.answer == asked.rated == "yes" and asked.ratings.needed_epsilon == 4.0
    assert asked.ratings.mean == min(asked.ratings.means.values()) > asked.ratings.biases
    # The twin: no model predicts ratings that depend on nothing.
    drawn = random.integers(1, 6, rows.size)
    chance = trial(Interactions.from_arrays(rows, items, drawn, low=1, high=5), purpose="ratings")
    assert chance.rated != "yes" and chance.ratings.needed_epsilon is None


def test_a_question_that_the_data_cannot_answer_is_rejected():
    with refuses("no-ratings-to-predict"):
        trial(grouped(FEWEST_USERS), purpose="ratings")
    with refuses("unknown-choice", name="purpose"):
        trial(grouped(FEWEST_USERS), purpose="stars")
    assert trial(grouped(FEWEST_USERS), purpose="lists").ratings is None


def test_a_path_and_a_frame_give_the_answer_of_the_command(tmp_path, caplog):
    data = grouped(150)
    frame = polars.DataFrame({"user": data.rows(), "item": data.items})
    frame.write_csv(tmp_path / "clicks.csv")
    with caplog.at_level("WARNING", "discreet"):
        of_frame = discreet.trial(frame, epsilon=4.0)
    assert len(caplog.records) == 1
    assert discreet.trial(tmp_path / "clicks.csv", epsilon=4.0).to_json() == of_frame.to_json()
    assert discreet.trial(frame, epsilon=4.0, implicit=True) == of_frame
    renamed = frame.rename({"user": "who", "item": "sku"})
    assert discreet.trial(renamed, epsilon=4.0, columns={"user": "who", "item": "sku"}) == of_frame
    with pytest.raises(DataError):
        discreet.trial(renamed)
    with refuses("columns-unused"):
        discreet.trial(data, low=1.0)


def test_a_trial_shows_itself(found, tmp_path):
    assert isinstance(found, discreet.Trial) and found.answer in found._repr_html_()
    assert found.__rich__().row_count == 2 * len(found.levels) + len(found.not_private)
    found.to_page(tmp_path / "trial.html", title="clicks")
    page = (tmp_path / "trial.html").read_text()
    plain, with_command = render(found, "clicks"), render(found, "clicks", "COMMAND")
    assert page == plain and "COMMAND" in with_command
    found.to_page(tmp_path / "trial.html", force=True)
    with pytest.raises(FileError):
        found.to_page(tmp_path / "trial.html")


def test_a_trial_with_weights_states_that_they_do_not_count_in_what_is_held_out():
    rows = [
        (user, (3 * user + place) % 20, "view" if place else "buy")
        for user in range(150)
        for place in range(4)
    ]
    events = polars.DataFrame(rows, schema=["user", "item", "event"], orient="row")
    plain, weighed = (
        trial(events, implicit=True, duplicates="count", **options)
        for options in ({}, {"weights": "event=view:1,buy:5"})
    )
    assert any("--only" in line for line in summary(weighed)) and not any(
        "--only" in line for line in summary(plain)
    )
