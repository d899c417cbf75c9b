"""A label is read from a whole file or not at all."""

from command_line import one_sentence


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
