"""A few answers end in a model, a command that runs, and the reason."""

import io
import itertools
import json
import shlex

import pytest

from command_line import one_sentence
from discreet import model_settings
from discreet.cli.application import command
from discreet.cli.verbs import PARTS
from discreet.planning.advice import FEEDBACK, HIDES, OPTIONS, SEES, SUMMED, WANTS, advise

# Models that nobody is advised to use, and why.
_COMPARED = "reproduced to compare with; nobody should use it"
UNADVISED = dict.fromkeys(
    ("frank-wolfe-printed", "dpimf", "dpmf", "one-bit-objective-printed", "one-bit-output-printed"), _COMPARED
)
ANSWERS = list(itertools.product(SEES, HIDES, FEEDBACK, WANTS))


def test_every_model_is_reachable_and_every_answer_is_known():
    reached = set()
    for sees, hides, feedback, wants in ANSWERS:
        found = advise(sees=sees, hides=hides, feedback=feedback, wants=wants)
        reached |= {found.model, *(model for model, _ in found.others)}
        assert found.why and any(found.model in command for command in found.commands)
        assert found.trial is None or found.model in found.trial
    assert reached == set(model_settings.MODELS) - set(UNADVISED)


def test_models_of_stars_are_not_advised_for_lists(snapshot):
    told = set()
    for sees, hides, feedback in itertools.product(SEES, HIDES, FEEDBACK):
        for people in (None, 200):
            answers = {"sees": sees, "hides": hides, "feedback": feedback, "people": people}
            lists, stars = (advise(**answers, wants=wants) for wants in WANTS)
            assert "biases" not in {lists.model, *(model for model, _ in lists.others)}
            if stars.model in (
                "popularity",
                "ease",
                "item-knn",
                "markov-chain",
                "implicit-als",
                "implicit-objective",
            ):
                more = set(stars.why[1:]) - set(lists.why)
                assert more, "that it predicts no stars"
                told |= more
    snapshot("\n".join(sorted(told)))
    assert advise(sees="everybody", hides="person", feedback="ratings", wants="stars").model == "als"
    assert advise(sees="everybody", hides="person", feedback="ratings", wants="lists").model == "ease"


def test_what_is_said_of_a_model_is_what_it_promises():
    units = {"person": "user", "item": "rating", "value": "value"}
    kinds = {"ratings": "explicit", "clicks": "implicit", "verdicts": "binary"}
    rows = {row["name"]: row for row in model_settings.describe_models()}
    for option in OPTIONS:
        row = rows[option.model]
        if option.sees == "everybody":
            assert row["trust"] == "nobody"
        else:
            assert (row["trust"] == "local") == (option.sees == "nobody")
            assert row["unit"] == units[option.hides]
        # What learns from choices reads ratings as choices, too.
        # A verdict is a rating of 0 or 1.
        known = {kinds[option.feedback], "implicit"} | (
            {"explicit"} if option.feedback == "verdicts" else set()
        )
        assert any(kind in row["feedback"] for kind in known)


@pytest.mark.parametrize(("sees", "hides", "feedback", "wants"), ANSWERS)
def test_nothing_weaker_than_asked_for_is_recommended_silently(sees, hides, feedback, wants):
    found = advise(sees=sees, hides=hides, feedback=feedback, wants=wants)
    taken = next(option for option in OPTIONS if option.model == found.model and option.sees == sees)
    levels = list(HIDES)
    if sees != "everybody" and levels.index(taken.hides) > levels.index(hides):
        assert any(HIDES[taken.hides] in reason for reason in found.why[1:])


def test_the_command_runs_as_it_is_printed(discreet, ratings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clicks.csv").write_text(ratings.read_text())
    for feedback in ("ratings", "clicks"):
        for more in (["--wants", "lists"], ["--wants", "lists", "--people", "200"], ["--wants", "stars"]):
            answers = ("--sees", "us", "--hides", "person", "--from", feedback, *more)
            code, shown, error = discreet("choose", *answers, "--json")
            assert code == 0, error
            words = shlex.split(json.loads(shown)["command"])
            assert discreet(*words[1:], "--force")[0] == 0


def test_it_asks_where_somebody_can_answer(discreet, monkeypatch):
    one_sentence(*discreet("choose", "--sees", "us"))
    one_sentence(*discreet("choose", "--sees", "you", "--hides", "person", "--from", "clicks"))
    one_sentence(*discreet("choose", "--sees", "us", "--hides", "person", "--from", "ratings"))
    for typed, model in (("2\nvalue\n1\nlists\n", "local-channel"), ("\n\n\n\n", "user-factorization")):
        answers = io.StringIO(typed)
        answers.isatty = lambda: True
        monkeypatch.setattr("sys.stdin", answers)
        code, shown, error = discreet("model", "choose", "--people", "200", "--parties", "1")
        assert code == 0 and model in shown, error
    answers = io.StringIO("2\nvalue\n1\nlists\n")
    answers.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", answers)
    code, shown, error = discreet("choose", "--people", "200", "--parties", "3")
    assert code == 0 and "--model local-channel" in shown and "3 parties" in shown, error


def _parses(line):
    """Check that a command's words are options and arguments that it declares."""
    _, *words = shlex.split(line)
    count = 2 if words[0] in PARTS else 1
    command(tuple(words[:count])).make_context(words[0], words[count:])


def test_ratings_that_nobody_may_see_are_collected_on_devices(discreet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.txt").write_text("a\nb\nc\n")
    for hides, feedback, wants in itertools.product(HIDES, FEEDBACK, WANTS):
        found = advise(sees="nobody", hides=hides, feedback=feedback, wants=wants)
        starts = [" ".join(shlex.split(command)[1:3]) for command in found.commands]
        assert starts == ["campaign new", "serve mine.campaign", "campaign fit", "campaign close"]
        # What is tried first is what is collected; a log of clicks cannot show what people would answer.
        assert found.trial is None if feedback == "clicks" else f"--model {found.model} " in found.trial
        assert f"--model {found.model} " in found.commands[2]
        code, _, error = discreet(*shlex.split(found.command)[1:], "--force")
        assert code == 0, error
        for line in found.commands:
            _parses(line)


@pytest.mark.parametrize("sees", ["us", "everybody"])
def test_parties_end_in_a_federation(sees, discreet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.txt").write_text("a\nb\nc\n")
    seen = set()
    for hides, feedback, wants in itertools.product(HIDES, FEEDBACK, WANTS):
        found = advise(sees=sees, hides=hides, feedback=feedback, wants=wants, parties=3)
        assert found.model in SUMMED and shlex.split(found.trial)[1:3] == ["federation", "simulate"]
        starts = [" ".join(shlex.split(command)[1:3]) for command in found.commands]
        assert starts == ["federation init", "federation keeper", *["federation party"] * 3, "federation run"]
        if found.command in seen:
            continue
        seen.add(found.command)
        words = shlex.split(found.command)
        code, _, error = discreet(*words[1:3], f"together{len(seen)}", *words[4:])
        assert code == 0, error
        for line in (*found.commands, found.trial):
            _parses(line)


def test_models_for_parties_learn_from_sums():
    for name in model_settings.MODELS:
        if name not in UNADVISED and not model_settings.is_never_private(name):
            summed = model_settings.estimator(name, {"epsilon": 1.0}).rows_needed() is None
            assert summed == (name in SUMMED)


def test_it_asks_how_many_people_there_are_until_it_is_told(discreet, monkeypatch, snapshot):
    for typed, said in (("3,000", "--people 3000"), ("", "--implicit --name")):
        answers = io.StringIO(f"us\n1\nclicks\nmany\n0\n{typed}\n\n")
        answers.isatty = lambda: True
        monkeypatch.setattr("sys.stdin", answers)
        code, shown, error = discreet("choose")
        assert code == 0 and said in shown, error
        snapshot(shown)


def test_it_asks_for_parties_and_not_for_what_everybody_may_see(discreet, monkeypatch):
    for typed, said in (
        ("us\nperson\nclicks\n\n3\n", "federation init"),
        ("everybody\nclicks\n", "NOT PRIVATE"),
    ):
        answers = io.StringIO(typed)
        answers.isatty = lambda: True
        monkeypatch.setattr("sys.stdin", answers)
        code, shown, error = discreet("choose")
        assert code == 0 and said in shown, error


def test_verdicts_can_hide_a_person(discreet):
    found = advise(sees="us", hides="person", feedback="verdicts")
    assert found.model == "user-factorization" and len(found.why) == 1
    assert advise(sees="us", hides="value", feedback="verdicts").model == "one-bit-objective"
    assert "--scale 0,1,1" in advise(sees="us", hides="person", feedback="verdicts", parties=2).command


def test_few_people_get_the_simple_thing():
    few = {"sees": "us", "hides": "person", "feedback": "ratings", "people": 200}
    assert advise(**few, wants="stars").model == "biases"
    assert advise(**few, wants="lists").model == "popularity"
    assert advise(sees="us", hides="person", feedback="clicks", people=200).model == "popularity"
    many = advise(sees="us", hides="person", feedback="ratings", people=5_000_000)
    assert many.model == "user-factorization" and "--delta 2e-08" in many.command


def test_clicks_have_a_file_of_their_own():
    found = advise(sees="us", hides="person", feedback="clicks", wants="lists").command
    words = shlex.split(found)
    assert words[:3] == ["discreet", "fit", "clicks.csv"] and "--implicit" in words
    rated = advise(sees="us", hides="person", feedback="ratings", wants="lists").command
    assert "ratings.csv" in rated and "--implicit" not in rated


def test_the_options_of_the_command_also_evaluate(discreet, ratings):
    answers = (
        "--sees",
        "us",
        "--hides",
        "person",
        "--from",
        "ratings",
        "--wants",
        "stars",
        "--people",
        "900",
    )
    said = discreet("choose", *answers)[1]
    assert "--ledger mine.ledger" in said and "`evaluate`" in said
    command = json.loads(discreet("choose", *answers, "--json")[1])["command"]
    options = shlex.split(command.partition(" --name")[0])[3:]
    assert discreet("evaluate", ratings, *options)[0] == 0
    free = ("--sees", "everybody", *answers[2:])
    assert "--ledger" not in discreet("choose", *free)[1]


def test_what_everybody_may_see_is_called_not_private():
    for sees, hides, feedback, wants in ANSWERS:
        for parties in (1, 3):
            found = advise(sees=sees, hides=hides, feedback=feedback, wants=wants, parties=parties)
            free = any("--epsilon inf" in command for command in found.commands)
            told = any("NOT PRIVATE" in reason and "--hides" in reason for reason in found.why)
            assert free == told == (sees == "everybody")


def test_few_people_are_told_of_the_simple_model_for_stars_and_for_lists(snapshot):
    asked = {"sees": "us", "hides": "person", "feedback": "ratings"}
    stars, lists = (advise(**asked, wants=wants, people=4000) for wants in ("stars", "lists"))
    assert "--for ratings" in stars.command
    many = advise(**asked, wants="stars", people=50_000)
    snapshot("\n".join([*stars.why, *lists.why, *many.why]))
