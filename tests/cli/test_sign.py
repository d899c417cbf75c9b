"""`discreet model sign` and `discreet model verify`: who signed a file, and whether it changed since."""

import json

from command_line import one_sentence, rejected
from discreet.models.signatures import new_key


def test_a_signed_model_is_verified_and_its_label_tells(discreet, model, tmp_path):
    key = tmp_path / "me.pem"
    assert "not signed" in discreet("label", model, "--markdown")[1]
    assert json.loads(discreet("label", model, "--json")[1])["signed_by"] is None
    one_sentence(*discreet("verify", model, "--key", "00" * 32))
    code, shown, error = discreet("sign", model, "--key", key, "--new-key")
    assert code == 0, error
    public = "".join(shown.split()).rpartition("is")[2].rstrip(".")
    assert len(public) == 64 and key.stat().st_mode & 0o077 == 0
    assert discreet("verify", model, "--key", public)[0] == 0
    written, other = tmp_path / "public.txt", tmp_path / "other.pem"
    written.write_text(public.upper() + "\n")
    for file in (key, written):
        assert discreet("verify", model, "--key", file)[0] == 0
    assert new_key(other) != public
    for wrong in (other, model, tmp_path / "none.pem", tmp_path):
        one_sentence(*discreet("verify", model, "--key", wrong))
    assert public in "".join(discreet("label", model)[1].split()).replace("│", "")
    page = tmp_path / "label.html"
    code, shown, _ = discreet("label", model, "--json", "--html", page)
    assert code == 0 and json.loads(shown)["signed_by"] == public and public in page.read_text()
    assert public in discreet("label", model, "--markdown")[1]
    one_sentence(*discreet("verify", model, "--key", "00" * 32))
    one_sentence(*discreet("sign", model, "--key", key, "--new-key"))
    one_sentence(*discreet("sign", model, "--key", model))
    assert discreet("sign", model, "--key", key)[0] == 0


def test_what_changed_after_signing_is_refused(discreet, model, ratings, tmp_path):
    key = tmp_path / "me.pem"
    assert discreet("sign", model, "--key", key, "--new-key")[0] == 0
    fit = ("fit", ratings, "--model", "popularity", "--implicit", "--epsilon", "1", "--force", "--out", model)
    assert discreet(*fit)[0] == 0
    one_sentence(*discreet("verify", model, "--key", "00" * 32))
    one_sentence(*discreet("label", model))
    model.with_name(model.name + ".sig").write_bytes(b"[" * 3000)
    one_sentence(*discreet("verify", model, "--key", "00" * 32))


def test_a_key_that_is_not_there_is_named(discreet, model, tmp_path):
    rejected(discreet("sign", model, "--key", tmp_path / "my.pem"), "bad-key", path=tmp_path / "my.pem")
