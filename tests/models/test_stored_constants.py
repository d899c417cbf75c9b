"""Constants of a model file that a stranger wrote: what is declared is taken, anything else is refused."""

from discreet.models.scorers.scorer import _MOST_NOTE, Notes, Word
from discreet.testing import refuses


def test_remarks_are_a_dictionary_that_is_not_too_long():
    assert Notes().read("notes", {"a": 1}, {}) == {"a": 1}
    fitting = {"a": "x" * (_MOST_NOTE - len(repr({"a": ""})))}
    assert Notes().read("notes", fitting, {}) == fitting
    for wrong in ([1], "text", 7, None, {"a": fitting["a"] + "x"}, "x" * (_MOST_NOTE + 1)):
        with refuses("malformed-part", part="notes"):
            Notes().read("notes", wrong, {})


def test_a_word_is_one_of_those_allowed():
    word = Word(allowed=("l1", "l2"))
    assert word.read("norm", "l2", {}) == "l2"
    for wrong in ("l3", "", 1, None, ["l1"]):
        with refuses("malformed-part", part="norm"):
            word.read("norm", wrong, {})
