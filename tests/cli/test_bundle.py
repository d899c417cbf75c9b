"""What recommends on the device, from the command line."""

import json

from command_line import one_sentence


def test_a_bundle_is_written_and_says_what_it_lost(discreet, ratings, tmp_path):
    model, out = tmp_path / "m.discreet", tmp_path / "device"
    assert discreet("fit", ratings, "--implicit", "--epsilon", "5", "--out", model)[0] == 0
    code, shown, error = discreet("bundle", model, "--out", out, "--title", "Films", "--json")
    told = json.loads(shown)
    assert code == 0 and set(told["models"]) == {"int8", "float16"} and told["title"] == "Films", error
    assert told["bytes"] == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert json.loads((out / "label.json").read_text())["guarantee"]["epsilon"] == 5.0
    code, shown, error = discreet("bundle", model, "--out", tmp_path / "exact", "--precision", "float32")
    assert code == 0 and "100.0% of lists" in " ".join(shown.split()), error
    assert sorted(path.name for path in (tmp_path / "exact").glob("*.bin")) == ["model.float32.bin"]


def test_a_bundle_says_whether_the_model_is_private(discreet, ratings, tmp_path):
    model = tmp_path / "m.discreet"
    for epsilon, said in (("5", "PRIVATE, if"), ("inf", "NOT PRIVATE: no guarantee")):
        fitted = discreet("fit", ratings, "--implicit", "--epsilon", epsilon, "--out", model, "--force")
        assert fitted[0] == 0, fitted[2]
        for verb in ("bundle", "export"):
            out = tmp_path / f"{verb}-{epsilon}"
            code, shown, error = discreet(verb, model, "--out", out)
            assert code == 0 and said in " ".join(shown.split()), error
            assert ("NOT PRIVATE" in shown) == (epsilon == "inf")
            code, shown, error = discreet(verb, model, "--out", tmp_path / f"{verb}-{epsilon}-json", "--json")
            assert code == 0 and json.loads(shown)["promise"].startswith(said), error


def test_what_cannot_be_bundled_is_one_sentence(discreet, ratings, model, tmp_path):
    one_sentence(*discreet("bundle", model, "--out", tmp_path / "out", "--precision", "int4"))
    one_sentence(*discreet("bundle", model, "--out", tmp_path / "no" / "out"))
    one_sentence(*discreet("bundle", model, "--out", tmp_path / "out", "--package", "Not A Name"))
    one_sentence(*discreet("bundle", tmp_path / "none.discreet", "--out", tmp_path / "out"))
    other = tmp_path / "als.discreet"
    assert discreet("fit", ratings, "--model", "als", "--epsilon", "inf", "--out", other)[0] == 0
    code, shown, error = discreet("bundle", other, "--out", tmp_path / "out")
    one_sentence(code, shown, error)
    assert "user-factorization" in error
    assert not (tmp_path / "out").exists()
