"""A claim is decided beyond two standard errors, from three draws on; each rule has a twin."""

import math

import pytest

from discreet.reproduce.claims import (
    Claim,
    Outcome,
    Paper,
    PaperRow,
    judge,
    over_readings,
    standard_error,
    statements,
    strictly,
    tally,
    together,
)
from discreet.reproduce.running import DrawnValues, ratio_of_means


def claim(name="c", **options):
    settings = {"expected": 0.0, "tolerance": 0.0, "rule": "at-least", "row": "Figure 1", "measure": name}
    return Claim(id=name, where="Figure 1", **(settings | options))


def spread(mean, error, draws=4):
    """Return draws with this mean and this standard error of it."""
    apart = error * math.sqrt(draws) * math.sqrt((draws - 1) / draws)
    return [mean + (apart if draw % 2 else -apart) for draw in range(draws)]


@pytest.mark.parametrize(
    ("rule", "mean", "outcome"),
    [
        ("at-least", 0.21, Outcome.HOLDS),
        ("at-least", 0.19, Outcome.UNDECIDED),
        ("at-least", -0.19, Outcome.UNDECIDED),
        ("at-least", -0.21, Outcome.FAILS),
        ("at-most", -0.21, Outcome.HOLDS),
        ("at-most", 0.19, Outcome.UNDECIDED),
        ("at-most", 0.21, Outcome.FAILS),
        ("within", 0.0, Outcome.HOLDS),
        ("within", 0.9, Outcome.UNDECIDED),
        ("within", -1.21, Outcome.FAILS),
    ],
)
def test_two_standard_errors_decide(rule, mean, outcome):
    values = spread(mean, 0.1)
    assert standard_error(DrawnValues(values, 4)) == pytest.approx(0.1)
    asked = claim(rule=rule, tolerance=1.0 if rule == "within" else 0.0)
    assert judge(asked, values).outcome == outcome


def test_one_or_two_draws_decide_nothing_and_three_do():
    for draws, outcome in ((1, Outcome.UNDECIDED), (2, Outcome.UNDECIDED), (3, Outcome.HOLDS)):
        assert judge(claim(), [5.0] * draws).outcome == outcome
    # One value that stands for many draws needs its error; with it, it decides.
    assert judge(claim(), DrawnValues([5.0], 40)).outcome == Outcome.UNDECIDED
    assert judge(claim(), DrawnValues([5.0], 40, 0.1)).outcome == Outcome.HOLDS
    assert judge(claim(), DrawnValues([5.0], 1, 0.1)).outcome == Outcome.UNDECIDED


def test_a_calculation_needs_no_draws_but_every_value_must_agree():
    assert judge(claim(exact=True), [0.0]).outcome == Outcome.HOLDS
    assert judge(claim(exact=True), [1.0, -1e-9]).outcome == Outcome.FAILS
    assert judge(claim(exact=True), [-1.0]).error is None


def test_another_set_up_decides_nothing_whatever_was_measured():
    for value in (-9.0, 9.0):
        found = judge(claim(setup="Other.", why="few"), [value] * 5)
        assert found.outcome == Outcome.OTHER and found.why == "Other. few"
    assert judge(claim(), [-9.0] * 5).outcome == Outcome.FAILS


def test_settings_that_are_not_printed_let_a_claim_hold_but_not_fail():
    free = claim(unprinted="T.", why="ours: 5")
    assert judge(free, [1.0, 1.1, 0.9]).outcome == Outcome.HOLDS
    missed = judge(free, [-1.0, -1.1, -0.9])
    assert missed.outcome == Outcome.OTHER and missed.why == "T. ours: 5"
    # Pages also count without this excuse.
    assert missed.strict == Outcome.FAILS and strictly([missed])[0].outcome == Outcome.FAILS
    assert judge(free, [-1.0, 1.0, 0.0]).outcome == Outcome.UNDECIDED
    assert judge(claim(), [-1.0, -1.1, -0.9]).outcome == Outcome.FAILS


def test_what_was_not_measured_cannot_be_said():
    assert judge(claim(), [], absent="no data").why == "no data"
    for values in ([], [math.nan, 1.0, 1.0], [math.inf] * 3):
        found = judge(claim(exact=True), values)
        assert found.outcome == Outcome.UNSAID and found.measured is None


def test_one_statement_counts_once_and_the_paper_apart_from_us():
    rows = (
        PaperRow(what="Figure 1", code="a.py", printed="x", why="y"),
        PaperRow(what="Theorem 3", code="a.py", printed="private", why="y", verdict="fails"),
    )
    claims = [
        *(claim(f"refuted-{place}", group="refutation") for place in range(7)),
        claim("alone"),
        claim("ours", by="ours"),
        claim("check", kind="sanity"),
    ]
    verdicts = [judge(one, [-1.0 if one.group else 1.0] * 3) for one in claims]
    paper = Paper(title="t", rows=rows, claims=tuple(claims))
    assert tally(paper, verdicts, "paper") == {Outcome.FAILS: 2, Outcome.HOLDS: 1}
    assert tally(paper, verdicts, "ours") == {Outcome.HOLDS: 1}
    assert [row for row, _, _ in statements(rows, verdicts, "paper")] == ["Figure 1", "Figure 1", "Theorem 3"]
    # The twin: without the group every measurement counts.
    apart = [judge(claim(f"refuted-{place}"), [-1.0] * 3) for place in range(7)]
    assert tally(Paper(title="t", rows=rows[:1], claims=()), apart, "paper") == {Outcome.FAILS: 7}


def test_of_several_measurements_the_strongest_speaks():
    assert together([Outcome.HOLDS, Outcome.UNDECIDED, Outcome.FAILS]) == Outcome.FAILS
    assert together([Outcome.HOLDS, Outcome.UNDECIDED]) == Outcome.UNDECIDED
    assert together([Outcome.HOLDS, Outcome.OTHER]) == Outcome.HOLDS
    assert together([Outcome.OTHER, Outcome.UNSAID]) == Outcome.OTHER


def test_a_ratio_of_means_knows_its_error():
    """Two columns that rise together have a steady ratio; two that do not have not."""
    beside = [1.0, 2.0, 3.0, 4.0]
    steady = ratio_of_means([2 * value for value in beside], beside)
    loose = ratio_of_means([8.0, 6.0, 4.0, 2.0], beside)
    assert steady.values == [2.0] and steady.error == pytest.approx(0.0)
    assert loose.values == [2.0] and loose.error > 0.5
    assert ratio_of_means([1.0], [2.0]).error is None


def test_readings_that_disagree_are_counted_as_such():
    """One reading that holds and one that fails depend; the twin without readings fails."""

    def verdicts(*readings):
        return [
            judge(claim(f"c{place}", group="g", reading=reading), [value] * 3)
            for place, (reading, value) in enumerate(readings)
        ]

    both = verdicts(("plain", 1.0), ("projected", -1.0))
    assert over_readings(both) == Outcome.DEPENDS
    assert over_readings(verdicts(("", 1.0), ("", -1.0))) == Outcome.FAILS
    # A reading fails as soon as one of its measurements does, and then two readings agree.
    assert over_readings(verdicts(("plain", 1.0), ("plain", -1.0), ("projected", -1.0))) == Outcome.FAILS
    assert over_readings(verdicts(("plain", 1.0), ("projected", 2.0))) == Outcome.HOLDS
    # A reading that was not measured, or is too close to call, leaves the statement open.
    unsaid = judge(claim("u", group="g", reading="other"), [])
    assert over_readings([both[0], unsaid]) == over_readings([both[1], unsaid]) == Outcome.UNDECIDED
    close = judge(claim("n", group="g", reading="other"), spread(0.0, 1.0))
    assert over_readings([both[1], close]) == Outcome.UNDECIDED
    other = judge(claim("o", group="g", reading="other", setup="Other data."), [1.0] * 3)
    assert over_readings([both[1], other]) == Outcome.FAILS
    assert over_readings([unsaid]) == Outcome.UNSAID
