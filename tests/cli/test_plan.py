"""A plan needs numbers, says them plainly and as JSON, and a dry run pays nothing."""

import json

import pytest

from command_line import one_sentence
from discreet.planning.schedules import plan, schedule


def test_a_year_in_json(discreet):
    code, shown, _ = discreet(
        "plan", "--epsilon", "5", "--delta", "1e-6", "--releases", "12", "--people", "6000", "--json"
    )
    found = json.loads(shown)
    assert code == 0
    assert found["per_release"]["epsilon"] == pytest.approx(1.266, abs=1e-3)
    assert found["adding"]["epsilon"] == pytest.approx(5 / 12)
    assert 0.5 < found["attacker"]["one"] < found["attacker"]["all"] < 1
    assert 0.7 < found["expected"]["measured"][0]["value"] < 1.1
    share = found["expected"]["share_kept"]
    assert 0 <= share["low"] < share["high"] < 1


def test_a_plan_is_said(discreet, snapshot):
    code, shown, _ = discreet("plan", "--epsilon", "2", "--people", "20000", "--releases", "4")
    assert code == 0
    snapshot(shown)
    code, shown, _ = discreet("plan", "--people", "6000", "--wanted", "0.9")
    assert code == 0 and "needs epsilon" in " ".join(shown.split())


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--epsilon", "0"),
        ("--epsilon", "1", "--releases", "0"),
        ("--wanted", "0.9"),
        ("--wanted", "0.01", "--people", "100"),
        ("--epsilon", "1", "--metric", "joy", "--people", "100"),
    ],
)
def test_a_plan_without_numbers_is_one_sentence(discreet, arguments):
    one_sentence(*discreet("plan", *arguments))


def test_a_dry_run_tells_the_price_and_pays_nothing(discreet, ratings, tmp_path, snapshot):
    ledger, out = tmp_path / "year.ledger", tmp_path / "m.discreet"
    year = ("budget", ledger, "--name", "shop", "--epsilon", "5", "--delta", "1e-6", "--account", "gaussian")
    assert discreet(*year, "--renews", "yearly")[0] == 0
    fit = ("fit", ratings, "--model", "biases", "--out", out, "--ledger", ledger, "--name", "shop")
    code, shown, _ = discreet(*fit, "--epsilon", "1.26", "--dry-run", "--json")
    assert code == 0 and not out.exists()
    assert json.loads(shown)["left"]["share_spent"] == pytest.approx(1 / 12, rel=0.02)
    code, shown, _ = discreet(*fit, "--epsilon", "1.26", "--dry-run")
    assert code == 0
    snapshot(shown)
    one_sentence(*discreet(*fit, "--epsilon", "6", "--dry-run"))
    code, shown, _ = discreet("budget", ledger, "--json")
    assert json.loads(shown)["datasets"][0]["entries"] == []


def test_a_budget_keeps_its_account_and_says_when_it_is_overdrawn(discreet, ratings, tmp_path, snapshot):
    ledger, out, page = tmp_path / "y.ledger", tmp_path / "m.discreet", tmp_path / "year.html"
    year = ("budget", ledger, "--name", "shop", "--epsilon", "5", "--delta", "1e-6")
    assert discreet(*year, "--account", "gaussian")[0] == 0
    fit = ("fit", ratings, "--model", "biases", "--out", out, "--ledger", ledger, "--name", "shop")
    assert discreet(*fit, "--epsilon", "2")[0] == 0
    one_sentence(*discreet(*year, "--account", "adding", "--reason", "simpler"))
    one_sentence(*discreet(*year, "--account", "guessing"))
    one_sentence(*discreet("budget", ledger, "--account", "gaussian"))
    lowered = ("budget", ledger, "--name", "shop", "--epsilon", "1", "--delta", "1e-6")
    code, _, error = discreet(*lowered)
    assert code == 0
    snapshot(error)
    code, shown, _ = discreet("budget", ledger, "--html", page)
    assert code == 0 and "gaussian" in shown
    text = page.read_text()
    assert "<svg" in text and "http" not in text.replace("http-equiv", "")


def test_a_plan_ends_in_commands_that_run_and_spend_the_budget(discreet, ratings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, shown, _ = discreet(
        "plan", "--epsilon", "5", "--delta", "1e-6", "--releases", "2", "--people", "900"
    )
    commands = [line.split()[1:] for line in shown.splitlines() if line.startswith("  discreet ")]
    assert code == 0 and [command[0] for command in commands] == ["evaluate", "budget", "fit", "refit"], shown
    assert discreet(*commands[1])[0] == 0
    for command in (commands[2], commands[3][: commands[3].index("#")]):
        code, _, error = discreet(*command)
        assert code == 0, error
    one_sentence(*discreet(*commands[2], "--force"))


def test_following_is_compared_and_not_always_advised(discreet, snapshot):
    code, out, _ = discreet("plan", "--follow", "--epsilon", "2", "--half-life", "30d", "--json")
    found = json.loads(out)
    ways = {way["way"]: way for way in found["follow"]}
    assert code == 0 and list(ways) == ["one fit", "monthly refits", "weekly refits", "follow"]
    assert ways["follow"]["noise"] < ways["monthly refits"]["noise"] < ways["weekly refits"]["noise"]
    fresh = [way["freshness"] for way in found["follow"]]
    assert fresh == sorted(fresh)
    once = discreet("plan", "--follow", "--epsilon", "2", "--half-life", "7d", "--users-come-once")
    steady = discreet("plan", "--follow", "--epsilon", "2", "--half-life", "2d")
    snapshot(once[1])
    snapshot(steady[1])
    assert "epsilon" in discreet("plan", "--follow")[2]
    often = discreet("plan", "--follow", "--epsilon", "1", "--half-life", "30d", "--releases", "365")[1]
    snapshot(often)
    many = discreet("plan", "--follow", "--epsilon", "2", "--ratings-per-person", "25", "--json")[1]
    for one, other in zip(found["follow"], json.loads(many)["follow"], strict=True):
        assert other["people_needed"] == pytest.approx(5 * one["people_needed"])
        assert one["people_needed"] == pytest.approx(3 / one["signal_to_noise"])
    hourly = discreet("plan", "--follow", "--epsilon", "1", "--half-life", "3d", "--releases", "365")[1]
    # Where daily releases are as good, weekly ones aren't advised.
    snapshot(hourly)


@pytest.mark.parametrize("purpose", ["lists", "ratings"])
def test_a_plan_to_follow_is_balanced_and_ends_in_both_commands(
    discreet, ratings, tmp_path, monkeypatch, purpose
):
    monkeypatch.chdir(tmp_path)
    asked = ("plan", "--people", "900", "--epsilon", "2", "--follow", "--for", purpose)
    code, shown, error = discreet(*asked)
    said = {"lists": "all users get the same", "ratings": "item effects"}[purpose]
    assert code == 0 and said in " ".join(shown.split()), error
    commands = [line.split()[1:] for line in shown.splitlines() if line.startswith("  discreet ")]
    assert [command[0] for command in commands] == ["follow", "follow", "follow", "budget", "fit", "fit"]
    assert commands[0][1] == "replay"
    (tmp_path / "items.csv").write_text("1\n2\n")
    # These ratings have no times, so nothing of them can fade.
    for command in (commands[1], commands[3], [word for word in commands[4] if "half_life" not in word]):
        if command[0] == "fit" and "--set" in command:
            command.remove("--set")
        words = [str(ratings) if word in ("clicks.csv", "ratings.csv") else word for word in command]
        code, _, error = discreet(*words)
        assert code == 0, error
        (tmp_path / "mine.ledger").unlink(missing_ok=True)
    told = json.loads(discreet(*asked, "--json")[1])
    assert told["commands"][1].split()[1] == "follow" and told["caution"].startswith("Continual releases")


def test_a_plan_in_python_is_that_of_the_command_line(discreet, snapshot):
    arguments = "--epsilon 5 --releases 12 --people 6000 --items 3700 --ratings-per-person 40 --for lists"
    code, shown, _ = discreet("plan", *arguments.split(), "--json")
    sizes = {"people": 6000, "items": 3700, "ratings_per_person": 40}
    found = plan(5.0, releases=12, **sizes, metric="hr@10")
    assert code == 0 and found.to_json() == json.loads(shown)
    code, shown, _ = discreet("plan", "--wanted", "0.92", "--people", 6000, "--json")
    assert code == 0 and plan(wanted=0.92, people=6000).to_json() == json.loads(shown)
    assert found.per_release == schedule(5.0, 1e-6, 12).per_release
    snapshot(found._repr_html_())
    assert len(repr(found)) < 200 and plan(1.0).expected is None


def test_one_release_is_told_in_the_singular(discreet, snapshot):
    code, shown, _ = discreet("plan", "--epsilon", "2", "--releases", "1")
    assert code == 0
    snapshot(shown)


@pytest.mark.parametrize(("releases", "renews"), [("12", True), ("52", True), ("1", False), ("3", False)])
def test_a_plan_for_a_year_sets_a_budget_that_renews(discreet, releases, renews):
    code, shown, error = discreet("budget", "plan", "--epsilon", "3", "--releases", releases)
    assert code == 0, error
    (line,) = (line for line in shown.splitlines() if "budget set" in line)
    assert ("--renews yearly" in line) is renews


def test_a_plan_names_the_option_for_lists_unless_its_purpose_is_stated(discreet):
    asked = ("budget", "plan", "--epsilon", "3", "--releases", "12", "--people", "9000", "--items", "600")
    for chosen, named in (((), True), (("--for", "ratings"), False), (("--metric", "hr@10"), False)):
        code, shown, error = discreet(*asked, *chosen)
        assert code == 0 and ("--for lists" in shown) is named, error
