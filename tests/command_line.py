"""What every verb owes to somebody whose input cannot be used."""


def one_sentence(code, out, error):
    assert code == 1
    assert out == ""
    assert "Traceback" not in error and error.startswith("discreet:")
    assert error.count("\n") == 1 and error.rstrip().endswith((".", ")", "?"))


def other_remarks(error):
    """Return what was remarked besides that the catalog or the scale came from the data."""
    return [line for line in error.splitlines() if "taken from the data without noise" not in line]
