"""A label is read from a whole file or not at all."""

from command_line import one_sentence
from discreet.cli.label import _short


def test_no_flipped_byte_of_a_model_file_goes_unnoticed_or_ends_in_a_traceback(model):
    import discreet
    from discreet.core.checks import FileError

    whole, before = model.read_bytes(), discreet.load(model)
    for position in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[position] ^= 0x10
        model.write_bytes(changed)
        try:
            after = discreet.load(model)
        except FileError:
            continue
        # Bytes that the zip format does not use may change without changing the model.
        assert after.guarantee == before.guarantee
        assert (after.scorer.item_bias == before.scorer.item_bias).all()


def test_half_a_model_file_is_refused(discreet, ratings, model):
    model.write_bytes(model.read_bytes()[:-200])
    one_sentence(*discreet("label", model))
    one_sentence(*discreet("recommend", model, "--history", ratings, "--user", "1"))


def test_settings_that_were_not_audited_are_told_with_their_values(discreet, ratings, tmp_path):
    model = tmp_path / "implicit.discreet"
    assert discreet("fit", ratings, "--implicit", "--epsilon", "1", "--out", model)[0] == 0
    shown = " ".join(discreet("label", model)[1].split())
    assert "The audit was of the default settings; this model has feedback=implicit" in shown
    assert _short("x" * 99) == "x" * 36 + "..." and _short(None) == "null" and "\x1b" not in _short("\x1b[2J")
