"""What every verb owes to somebody whose input cannot be used."""


def one_sentence(code, out, error):
    assert code == 1
    assert out == ""
    assert "Traceback" not in error and error.startswith("discreet:")
    assert error.count("\n") == 1 and error.rstrip().endswith((".", ")"))
