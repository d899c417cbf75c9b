"""What a verb writes beside its main work replaces files of its own kind only, and those only by --force."""

import pytest

from command_line import one_sentence, rejected

WORDS = "# My own project\n"


@pytest.fixture
def verbs(discreet, model, tmp_path):
    """Return, by name, the arguments of every verb that writes a page, a card, a draft or a picture."""
    ledger, state, items = tmp_path / "l.ledger", tmp_path / "shop.follow", tmp_path / "items.csv"
    items.write_text("a\nb\n")
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "3")[0] == 0
    year = ("--scale", "1,5,1", "--epsilon", "2", "--releases", "52", "--half-life", "7d")
    assert discreet("follow", "start", state, "--items", items, *year)[0] == 0
    return {
        "card": ("label", model, "--card"),
        "label page": ("label", model, "--html"),
        "draft": ("label", model, "--registry"),
        "ledger page": ("budget", ledger, "--html"),
        "year page": ("follow", "show", state, "--html"),
    }


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["card", "label page", "draft", "ledger page", "year page"])
def test_a_verb_replaces_only_what_it_wrote_and_only_by_force(discreet, verbs, tmp_path, name):
    arguments = verbs[name]
    foreign, own = tmp_path / "README.md", tmp_path / "own.md"
    foreign.write_text(WORDS)
    for force in ((), ("--force",)):
        one_sentence(*discreet(*arguments, foreign, *force))
        assert foreign.read_text() == WORDS
    code, _, error = discreet(*arguments, own)
    assert code == 0, error
    # The same content may be written again after a kill; what someone changed may not.
    changed = own.read_bytes() + b"\n"
    own.write_bytes(changed)
    one_sentence(*discreet(*arguments, own))
    assert own.read_bytes() == changed
    code, _, error = discreet(*arguments, own, "--force")
    assert code == 0, error


def test_a_kind_does_not_replace_another(discreet, verbs, tmp_path):
    page = tmp_path / "page.html"
    assert discreet(*verbs["label page"], page)[0] == 0
    before = page.read_bytes()
    one_sentence(*discreet(*verbs["ledger page"], page, "--force"))
    one_sentence(*discreet(*verbs["label page"], page, "--card", page, "--force"))
    assert page.read_bytes() == before


def test_a_budget_is_not_set_if_its_page_cannot_be_written(discreet, verbs, tmp_path):
    foreign = tmp_path / "index.html"
    foreign.write_text(WORDS)
    ledger = verbs["ledger page"][1]
    one_sentence(*discreet("budget", ledger, "--name", "market", "--epsilon", "1", "--html", foreign))
    assert "market" not in discreet("budget", ledger, "--json")[1]


def test_a_signature_replaces_signatures_only(discreet, model, tmp_path):
    beside, key = model.with_name(model.name + ".sig"), tmp_path / "key.pem"
    beside.write_text(WORDS)
    one_sentence(*discreet("sign", model, "--key", key, "--new-key"))
    assert beside.read_text() == WORDS
    assert not key.exists(), "a key without a signature could not be told from one that is in use"
    beside.unlink()
    assert discreet("sign", model, "--key", key, "--new-key")[0] == 0
    assert discreet("sign", model, "--key", key)[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("model", "label", "missing"),
        ("recommend", "missing", "--history", "me.csv"),
        ("serve", "missing"),
        ("erase", "missing", "--name", "shop"),
    ],
)
def test_a_missing_file_is_named_as_missing(discreet, tmp_path, arguments):
    path = tmp_path / "no.discreet"
    given = [str(path) if one == "missing" else one for one in arguments]
    rejected(discreet(*given), "no-such-file", path=path)
