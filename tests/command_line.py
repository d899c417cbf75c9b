"""What every command owes to a user whose input can't be used."""


class Answer(tuple):
    """The exit code, the output and the messages of a command, and the error that it reported."""

    def __new__(cls, shown, *errors):
        answer = super().__new__(cls, shown)
        answer.error = errors[0] if errors else None
        return answer


def rejected(answer, code, **facts):
    """Assert that a command printed one message, for the error with this code and these fields."""
    # Not before stale kernels are gone.
    from discreet.testing.refusals import check_refusal

    one_sentence(*answer)
    check_refusal(answer.error, code, **facts)


def one_sentence(code, out, error):
    """Assert that a command failed with one message on one line, and printed nothing else."""
    assert code == 1
    assert out == ""
    assert "Traceback" not in error and error.startswith("discreet:")
    assert error.count("\n") == 1 and error.rstrip().endswith((".", ")", "?", "]"))


def other_remarks(error):
    """Return what was remarked besides that the catalog or the scale came from the data."""
    return [line for line in error.splitlines() if "taken from the data without noise" not in line]
