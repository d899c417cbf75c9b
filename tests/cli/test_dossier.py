"""A dossier answers a privacy officer's questions by itself, marks gaps, and replaces nothing else.

The questions below were written before the documents. Each has a check that the folder alone must pass: it
sees the files of the dossier, not the model or the ledger.
"""

import hashlib
import json
import math
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
import yaml

import discreet as package
from command_line import one_sentence
from discreet.dossier.facts import MEANINGS, HumanFacts
from discreet.dossier.signals import Signals
from discreet.report.odds import percent, posterior, power
from registry_schema import faults, schema
from toy import grouped

EXAMPLE = Path(__file__).parents[2] / "examples" / "facts.toml"
FACTS = HumanFacts.read(EXAMPLE)
FILES = {
    "summary.md",
    "nist-sp-800-226.md",
    "w3c-note.md",
    "gdpr-article-35-7.md",
    "dsa-article-27.md",
    "edpb-opinion-28-2024.md",
    "facts.toml",
    "registry.yaml",
    "index.html",
}

# What an officer asks before signing, and what the answer must contain for the model of the fixture.
QUESTIONS = {
    "Who is the controller?": [FACTS.controller],
    "Whom do I call?": [FACTS.contact],
    "What are the recommendations for?": [FACTS.purpose],
    "On which legal basis is the data processed?": [FACTS.legal_basis],
    "Whose users are these, and which law applies?": [FACTS.region],
    "How long is what kept, and who may read it?": [FACTS.retention],
    "When do we look at this again?": [FACTS.review],
    "How strong is the guarantee?": ["epsilon 1", "delta 1e-06"],
    "What is one unit of protection?": ["the whole history of one user", "present or absent"],
    "Against whom does it hold, and whom must users trust?": [
        "everyone except the user",
        "the controller is trusted",
    ],
    "How likely is an attacker right about one user?": ["73.2%", "50%"],
    "How many users does a careful attacker detect at 1% and 0.1% false alarms?": ["2.8%", "0.3%"],
    "What about a household of two or four?": [
        "2 users together: epsilon 2",
        "4 users together: epsilon 4",
    ],
    "What must be public for the guarantee to hold?": ["If one of these is false", "40 items"],
    "How is one user's influence bounded?": ["scaled down to a public length"],
    "How many releases were made from this data, what is spent and left?": [
        "Release 1 of 1",
        "'shop'",
        "spent epsilon 1,",
        "Budget: epsilon 3,",
    ],
    "When was it made, with which version and file?": ["Fitted on 20", package.__version__, "m.discreet"],
    "Did tuning spend budget, and which side channels remain?": ["Such fits are releases", "error messages"],
    "Was it attacked, by whom, and can somebody else check the number?": [
        "The authors of the package attack their models. Last audit",
        "discreet-verify m.discreet",
        "It doesn't check the assumptions",
    ],
    "What remains of a user after an erasure?": [
        "isn't changed by an erasure",
        "bounded by the same epsilon",
    ],
}

# A second officer asked these later, after reading an earlier form of one dossier.
LATER = {
    "Is the guarantee unconditional?": [
        "PRIVATE, if the catalog, the scale, and this file's layout are public"
    ],
    "Do the attacker's odds depend on that condition, too?": ["are public, an attacker who"],
    "And the numbers for a household?": ["are public, for 2 users together"],
    "Which columns of our data did the program read?": ["user from", "item from", "rating from"],
    "By what can I recognize the layout that was read?": ["Schema: sha256"],
    "What is inside the file that we publish?": ["computed from noisy releases only"],
    "Is anything in the file copied from the data without noise?": ["taken from the data without noise"],
    "Which build of the program made it?": ["code "],
    "Could somebody have replaced the file since?": ["not signed", "certificate in the file has the digest"],
    "Is the noise real?": ["the operating system's entropy"],
    "How much noise is on each number?": ["discrete Gaussian noise", "times the largest contribution"],
    "Is there a proof that I can give to an expert?": ["Proved in proofs/biases.md"],
    "What did attacks find, and of which settings?": ["Last audit, of biases", "not refuted"],
    "Does the budget come back?": ["counts: all releases"],
    "What do I sign if a user asks for erasure?": ["discreet model erase LEDGER"],
    "How do I keep that user out of the next model?": ["discreet fit --without"],
    "Do logs and running times leak?": ["How long a fit takes"],
    "Who may see a recommendation list?": ["must go to that user only"],
    "Who loses accuracy?": ["groups with few users"],
    "Has accuracy been measured, and at which cost?": ["Not stated", "--private"],
}

# Of twenty more questions that were written down first, earlier dossiers left these without an answer.
LEFT_OPEN = {
    "Is a leak of the file a data breach?": ["a leak of the file reveals no more than stated here"],
    "Can something sensitive be inferred from what groups have in common?": ["isn't hidden", "sensitive"],
    "Why was the budget set?": ["Its stated reason: approved by the board"],
    "Is the file that I have the one that I sign for?": ["SHA-256 {sha256}"],
    "What makes an earlier review necessary?": ["Review earlier if"],
}


@pytest.fixture
def folder(discreet, ratings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    approved = ("--epsilon", "3", "--reason", "approved by the board")
    assert discreet("budget", "l.ledger", "--name", "shop", *approved)[0] == 0
    fit = ["fit", ratings, "--model", "biases", "--epsilon", "1", "--ledger", "l.ledger", "--name", "shop"]
    assert discreet(*fit, "--out", "m.discreet")[0] == 0
    arguments = ["m.discreet", "--ledger", "l.ledger", "--facts", EXAMPLE, "--out", "dossier"]
    code, _, error = discreet("dossier", *arguments)
    assert code == 0, error
    return tmp_path / "dossier"


def plain(folder):
    """Return the text of the summary and of the page, with blanks and escapes as a reader sees them."""
    found = {path.name: path.read_text(encoding="utf8") for path in folder.iterdir()}
    page = re.sub(r"<[^>]+>", " ", found["index.html"])
    for escaped, letter in (("&#x27;", "'"), ("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
        page = page.replace(escaped, letter)
    return {"summary.md": " ".join(found["summary.md"].split()), "index.html": " ".join(page.split())}


def test_questions_of_officers_are_answered_by_the_page_and_by_the_summary(folder):
    assert len(QUESTIONS) == len(LATER) == 20
    every = QUESTIONS | LATER | LEFT_OPEN
    sha256 = hashlib.sha256((folder.parent / "m.discreet").read_bytes()).hexdigest()
    for name, text in plain(folder).items():
        unanswered = [
            asked
            for asked, parts in every.items()
            if not all(part.replace("{sha256}", sha256) in text for part in parts)
        ]
        assert unanswered == [], name


def test_all_documents_are_there_and_the_entry_is_valid(folder):
    names = {path.name for path in folder.iterdir()}
    assert names - {"certificate.json"} == FILES
    entry = yaml.safe_load((folder / "registry.yaml").read_text(encoding="utf8"))
    assert faults(entry, schema()) == []
    assert entry["deployment"]["basic"]["publication_date"].startswith("20")
    assert "publication_date" not in entry["deployment"]["administrative"]["notes"]
    for name in FILES:
        assert "MISSING" not in (folder / name).read_text(encoding="utf8"), name


def test_articles_are_covered(folder):
    annex = (folder / "gdpr-article-35-7.md").read_text(encoding="utf8")
    assert all(f"## ({letter})" in annex for letter in "abcd")
    terms = (folder / "dsa-article-27.md").read_text(encoding="utf8")
    assert "without profiling" in terms and "Main parameters" in terms
    evidence = (folder / "edpb-opinion-28-2024.md").read_text(encoding="utf8")
    assert "Last audit" in evidence and "by queries" in evidence


def test_the_page_prints_and_loads_nothing(folder):
    page = (folder / "index.html").read_text(encoding="utf8")
    assert "@media print" in page and "<svg" in page and "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_missing_facts_and_a_missing_ledger_are_marked_everywhere(discreet, model, tmp_path):
    out = tmp_path / "dossier"
    code, shown, _ = discreet("dossier", model, "--out", out, "--json")
    assert code == 0
    assert json.loads(shown)["missing"] == list(MEANINGS)
    text = plain(out)["summary.md"]
    assert all(f"MISSING (facts.toml: {name})" in text for name in MEANINGS)
    assert text.count("MISSING (--ledger)") == 1
    assert "Film Club" not in text


def test_a_folder_of_somebody_else_is_left_alone(discreet, model, tmp_path):
    out = tmp_path / "dossier"
    out.mkdir()
    (out / "index.html").write_text("mine")
    one_sentence(*discreet("dossier", model, "--out", out, "--force"))
    assert (out / "index.html").read_text() == "mine" and len(list(out.iterdir())) == 1
    one_sentence(*discreet("dossier", model, "--out", model))
    one_sentence(*discreet("dossier", model, "--out", tmp_path / "a" / "b"))


def test_an_older_dossier_is_replaced_with_force_only(discreet, model, tmp_path):
    out = tmp_path / "dossier"
    assert discreet("dossier", model, "--out", out)[0] == 0
    one_sentence(*discreet("dossier", model, "--out", out))
    assert discreet("dossier", model, "--out", out, "--force")[0] == 0


def test_a_model_without_a_guarantee_and_a_foreign_ledger_have_no_dossier(discreet, ratings, model, tmp_path):
    bare, other = tmp_path / "bar.discreet", tmp_path / "other.ledger"
    assert discreet("fit", ratings, "--model", "als", "--epsilon", "inf", "--out", bare)[0] == 0
    one_sentence(*discreet("dossier", bare, "--out", tmp_path / "one"))
    assert discreet("budget", other, "--name", "shop", "--epsilon", "3")[0] == 0
    one_sentence(*discreet("dossier", model, "--ledger", other, "--out", tmp_path / "two"))
    one_sentence(*discreet("dossier", model, "--name", "shop", "--out", tmp_path / "three"))
    assert not any((tmp_path / name).exists() for name in ("one", "two", "three"))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 50.0, 1e4])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5])
def test_odds_are_those_of_randomized_response_with_failures(epsilon, delta):
    """The worst mechanism reveals the truth with probability delta, and else answers at random."""
    likely = 1 / (1 + math.exp(-epsilon))
    assert posterior(epsilon, delta) == pytest.approx(delta + (1 - delta) * likely, rel=1e-9)
    for alarms in (0.01, 0.001):
        detected = power(epsilon, delta, alarms)
        assert alarms <= detected <= 1
        assert detected <= math.exp(min(epsilon, 600)) * alarms + delta + 1e-12
        assert 1 - detected >= math.exp(-epsilon) * (1 - delta - alarms) - 1e-12
    assert float(percent(posterior(epsilon, delta)).rstrip("%")) >= 100 * posterior(epsilon, delta) - 1e-6


def test_a_label_states_odds_releases_and_households(discreet, model):
    code, shown, _ = discreet("label", model, "--people", "3", "--full")
    text = " ".join(shown.split())
    assert code == 0 and "73.2%" in text and "for 3 users together" in text and "Gaussian" in text
    found = json.loads(discreet("label", model, "--people", "3", "--json")[1])
    assert found["odds"]["posterior"] == pytest.approx(0.731, abs=1e-3)
    assert found["group"]["epsilon"] == 3.0 and found["group"]["delta"] > 1e-6
    plain = json.loads(discreet("label", model, "--json")[1])
    assert "group" not in plain
    assert "73.2%" in discreet("label", model, "--markdown")[1]


def test_a_full_label_states_the_same_everywhere(discreet, model, tmp_path):
    """The table is compared by its words: its cells are wrapped."""
    lines = json.loads(discreet("label", model, "--full", "--json")[1])["officer"]
    page, card = tmp_path / "label.html", tmp_path / "README.md"
    assert discreet("label", model, "--full", "--html", page, "--card", card)[0] == 0
    forms = {
        "page": page.read_text(encoding="utf8"),
        "card": card.read_text(encoding="utf8"),
        "markdown": discreet("label", model, "--full", "--markdown")[1],
        "notebook": package.load(model)._repr_html_(),
    }
    human = ("Controller", "Use", "Period")
    for form, text in forms.items():
        words = set(re.findall(r"\w+", unescape(text)))
        for what, answer in lines.items():
            # A notebook shows a model, which knows no human facts.
            if form != "notebook" or what not in human:
                assert {what.split()[0], *re.findall(r"\w+", answer)} <= words, (form, what)


def test_accuracy_is_stated_only_if_its_owner_publishes_it(discreet, model, tmp_path):
    def stated(*facts):
        path = tmp_path / "facts.toml"
        path.write_text("\n".join(facts))
        return json.loads(discreet("label", model, "--full", "--json", "--facts", path)[1])["officer"][
            "Accuracy"
        ]

    assert stated().count("ot stated") == 2
    some = stated('accuracy = "HR@10 is 0.12 (0.10 to 0.14), measured with noise"')
    assert "0.12" in some and some.count("ot stated") == 1
    every = stated('accuracy = "HR@10 0.12"', 'accuracy_by_group = "new users 0.09"')
    assert "0.12" in every and "0.09" in every and "ot stated" not in every


def test_a_model_without_a_guarantee_has_no_odds(discreet, ratings, tmp_path):
    bare = tmp_path / "bar.discreet"
    assert discreet("fit", ratings, "--model", "als", "--epsilon", "inf", "--out", bare)[0] == 0
    assert "odds" not in json.loads(discreet("label", bare, "--json")[1])


def measured(discreet, tmp_path, *fit):
    """Return the signals of a fit, after the text for users was checked to state them."""
    model, out = tmp_path / "m.discreet", tmp_path / "dossier"
    assert discreet("fit", *fit, "--out", model, "--force")[0] == 0
    assert discreet("dossier", model, "--out", out, "--force")[0] == 0
    found = Signals.of(package.load(model))
    terms = (out / "dsa-article-27.md").read_text(encoding="utf8")
    assert any(found.sentences(own) in terms for own in ("what you rated and how", "which items you used"))
    # A way without profiling is offered where histories are used.
    assert ("`popularity`" in terms) == found.history
    return found


@pytest.mark.parametrize("fit", [("popularity", "1"), ("user-factorization", "0.01")])
def test_a_model_of_popularity_alone_uses_no_history(discreet, ratings, tmp_path, fit):
    found = measured(discreet, tmp_path, ratings, "--model", fit[0], "--epsilon", fit[1])
    assert not found.history and not found.order and found.usual == 1


def test_a_model_that_follows_histories_names_what_leads(discreet, tmp_path):
    data = grouped(600)
    path = tmp_path / "clicks.csv"
    rows = [f"u{row},i{item}" for row, item in zip(data.rows(), data.items, strict=True)]
    path.write_text("\n".join(["user,item", *rows]) + "\n")
    found = measured(discreet, tmp_path, path, "--implicit", "--epsilon", "32")
    assert found.history and found.usual < 0.5


def test_rows_of_own_users_are_seen(discreet, ratings, tmp_path):
    found = measured(discreet, tmp_path, ratings, "--model", "one-bit-input", "--epsilon", "1")
    assert found.rows
    assert found.sentences("x") != replace(found, rows=False).sentences("x")


def test_the_part_of_usual_items_decides_what_leads():
    for usual, first in ((0.8, "BASE"), (0.2, "OWN")):
        said = Signals(base="BASE", history=True, order=True, usual=usual).sentences("OWN")
        assert min(("BASE", "OWN"), key=said.index) == first
