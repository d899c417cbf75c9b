"""The words of a guarantee: its sentence, its label, each of its assumptions, and the notes of a label.

No code reads a note. What decides something is a field or an assumption.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any, Protocol

from discreet.report.pages import html_table


def number_above(value: float, digits: int = 4) -> str:
    """Return a number with this many digits, rounded up: read back, it is never below the number."""
    if math.isinf(value):
        return "∞"
    text = f"{value:.{digits}g}"
    return text if float(text) >= value else _rounded(value, digits, ROUND_CEILING)


def number_below(value: float, digits: int = 4) -> str:
    """Return a number with this many digits, rounded down: what is left of a budget can be spent."""
    if math.isinf(value):
        return "∞"
    text = f"{value:.{digits}g}"
    return text if float(text) <= value else _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> str:
    with localcontext(prec=digits, rounding=rounding):
        return f"{float(+Decimal(value)):.{digits}g}"


#: On scores of an evaluation without privacy.
SCORES_NOT_COVERED = (
    "the scores are computed from held-out ratings without noise, and the guarantee doesn't cover them"
)
#: On the model of a federation.
WEAKEST_PARTY = "this is the weakest guarantee of all parties, and each party has its own ledger"
#: On continual releases over several years.
SEVERAL_YEARS = (
    "a user who is active in Y such years spends Y times as much (sqrt(Y) times in a Gaussian account)"
)
#: On objective perturbation with the probit link.
PROBIT_OBJECTIVE = "the noise of a probit objective doesn't hide ratings, whatever epsilon it was drawn for"
#: On models that release as a paper prints, where the printed guarantee is refuted.
PRINTED_OBJECTIVE = (
    "NOT PRIVATE as printed: the proof omits the Jacobian, and at epsilon 1 238 of 240 ratings were "
    "recovered with the probit link"
)
PRINTED_OUTPUT = (
    "NOT PRIVATE as printed: epsilon is that of one entry, and the whole matrix is released; one rating can "
    "move every entry"
)
PRINTED_DPIMF = (
    "NOT PRIVATE as printed: one user is in every item's problem, profiles are trained on the same rows "
    "without noise, and the noise is scaled to the longest actual profile"
)
PRINTED_DPMF = "NOT PRIVATE as printed: profiles are trained on the same rows without noise"
PRINTED_WEIGHTS = "the noise is for a sum without the sampling weights, which the released sum has"
TRAINED_WITHOUT_NOISE = "trained without noise"


def continual_release(number: int, of: int, until: str | None) -> str:
    """Return which of how many continual releases a model is from, and the last day of all of them."""
    end = "" if until is None else f", and the last day is {until}"
    return f"release {number:,} of {of:,}{end}"


def many_releases(releases: int, days: float) -> str:
    """Return how many releases one cost covers."""
    return f"the cost covers up to {releases:,} releases in {days:g} days together"


def user_with_ratings(ratings: int, epsilon: float) -> str:
    """Return the epsilon of all ratings of a user, if the guarantee is about one rating."""
    return f"for a user with {ratings:,} ratings, all of them together: epsilon = {number_above(epsilon)}"


def user_who_answers(items: int, epsilon: float) -> str:
    """Return the epsilon of all answers of a user whose device answers for unrated items as well."""
    return f"for a user who answers for {items:,} items: epsilon = {number_above(epsilon)}"


def selection_cost(fact: str, epsilon: float, delta: float, proof: str) -> str:
    """Return the part of the cost that selecting a fact with noise had."""
    cost = f"epsilon={number_above(epsilon)}" + (f", delta={number_above(delta)}" if delta else "")
    return f"of this, selecting the {fact} cost {cost} ({proof})"


def answered_entries(epsilon: float, entries: int) -> str:
    """Return the cost of each answered entry of a matrix that isn't released."""
    return (
        f"each answered entry costs epsilon = {number_above(epsilon)}, and the budget covers {entries:,}. "
        "The matrix as a whole is neither protected nor released"
    )


class AssumptionView(Protocol):
    """An assumption, as far as its words need it."""

    @property
    def kind(self) -> str:
        """Return how the fact entered."""

    @property
    def fact(self) -> str:
        """Return which fact it is."""

    @property
    def detail(self) -> Sequence[tuple[str, Any]]:
        """Return its numbers and names."""


class GuaranteeView(Protocol):
    """A guarantee, as far as its words need it."""

    @property
    def epsilon(self) -> float:
        """Return epsilon."""

    @property
    def delta(self) -> float:
        """Return delta."""

    @property
    def unit(self) -> str:
        """Return the privacy unit."""

    @property
    def neighbors(self) -> str:
        """Return how neighboring datasets differ."""

    @property
    def trust(self) -> str:
        """Return the attackers that the guarantee covers."""

    @property
    def basis(self) -> str:
        """Return why the guarantee should be believed."""

    @property
    def proof(self) -> str:
        """Return the file with the proof."""

    @property
    def simulated(self) -> bool:
        """Return whether the noise was simulated."""

    @property
    def is_private(self) -> bool:
        """Return whether anyone is protected."""

    @property
    def has_large_delta(self) -> bool:
        """Return whether delta alone allows too much."""

    @property
    def large_delta(self) -> float:
        """Return the delta above which it does."""

    @property
    def assumes(self) -> Sequence[AssumptionView]:
        """Return the assumptions."""

    @property
    def conditions(self) -> Sequence[AssumptionView]:
        """Return the assumptions without which the guarantee may be false."""

    @property
    def notes(self) -> Sequence[str]:
        """Return the notes."""


UNIT_WORDS: Mapping[str, str] = {
    "value": "the value of any one rating (which items were rated is public)",
    "rating": "whether and how any one user rated any one item",
    "user": "any one user's whole history",
}
TRUST_WORDS: Mapping[str, str] = {
    "local": "everyone, including the organizer of the collection",
    "central": "everyone who sees the release",
    "joint": "everyone except the user who gets the recommendations",
}
_AGAINST_RAW = "everyone who sees the model or the perturbed reports, except the data owner who ran this fit"
_SHORT_UNITS = {"value": "one rating's value", "rating": "one rating", "user": "a whole user"}
_UNIT_NAMES = {"value": "rating value", "rating": "rating", "user": "user"}
_NEIGHBOR_WORDS = {"replace": "that differ in one", "add-or-remove": "with and without one"}
# The change that an observer can't detect, as the subject of the sentence.
_CHANGES = {
    ("value", "replace"): "changing the value of any one rating (which items were rated is public)",
    ("value", "add-or-remove"): (
        "adding or removing the value of any one rating (which items were rated is public)"
    ),
    ("rating", "replace"): "changing whether and how any one user rated any one item",
    ("rating", "add-or-remove"): "adding or removing any one user's rating of any one item",
    ("user", "replace"): "changing any one user's whole history",
    ("user", "add-or-remove"): "adding or removing any one user, with their whole history,",
}
BASIS_WORDS: Mapping[str, str] = {
    "proved": "proved",
    "as-published": "as published, not proved by us",
    "none": "no guarantee",
}
# Names of facts in a condition; those without a name are unknown statements.
_CONDITION_NAMES = {
    "catalog": "the catalog",
    "scale": "the scale",
    "interactions": "the scale",
    "users": "the number of users",
    "layout": "this file's layout",
    "layouts of parties": "the layout of each party's file",
    "facts of parties": "what parties took from their data",
}
_QUERY = "the query or view handles each row without looking at other users' rows"
_TAKEN = " (taken from the data without noise)"


def _scale(low: float, high: float, step: float | None) -> str:
    steps = "" if step is None else f" in steps of {step:g}"
    return f"ratings are between {low:g} and {high:g}{steps}"


def _epsilon(epsilon: float | None) -> str:
    return f"epsilon={number_above(math.inf if epsilon is None else epsilon)}"


# Budgets of 0.2 began anew with the calendar's years, quarters, or months.
_OF_THE_CALENDAR = ("yearly", "quarterly", "monthly")


def _prior(epsilon: float | None, delta: float | None, simulated: bool | None) -> str:
    start = "this fit starts from an earlier release"
    if epsilon is None or delta is None:
        return f"{start}, whose cost isn't counted here"
    noise = " and simulated noise" if simulated else ""
    cost = f"epsilon={number_above(epsilon)}, delta={number_above(delta)}"
    return f"{start} with {cost}{noise}, which isn't counted here"


def _one_share(epsilon: float | None) -> str:
    start = "if the coordinator and the keeper collude, one party's share guarantees"
    return f"{start} {_epsilon(epsilon)}"


def _known_share(epsilon: float | None, coordinator: bool) -> str:
    who = "a coordinator that colludes with one party" if coordinator else "another party"
    whom = "them" if coordinator else "that party"
    return f"{who} knows a share of the noise. Against {whom}, the guarantee is {_epsilon(epsilon)}"


_Words = str | Callable[..., str]
#: The words of each assumption, by kind and fact. A text is filled in with the details.
ASSUMPTION_WORDS: Mapping[tuple[str, str], _Words] = {
    ("declared", "catalog"): "the catalog of {items:,} items is public",
    ("selected", "catalog"): "the catalog was selected from the data with noise, and its cost is counted",
    ("declared", "scale"): _scale,
    ("selected", "scale"): (
        "the scale was selected from the data with noise, its cost is counted, and ratings are clipped"
    ),
    ("declared", "interactions"): "each row means only that a user interacted with an item",
    ("declared", "picked items"): "items were picked from the catalog without looking at the ratings",
    ("declared", "cap"): "at most {ratings:,} ratings per user are used",
    ("declared", "users"): "the approximate number of users ({users:,}) is public",
    ("taken", "layout"): "this file's layout is public. Layout read from this file: {layout}",
    ("taken", "layouts of parties"): (
        "the layout of each party's file is public. Parties whose layout was guessed: {members}"
    ),
    ("taken", "facts of parties"): (
        "facts that parties took from their data, and how they chose rows, are public, and a query handles "
        "each row by itself. Parties with such facts: {members}"
    ),
    ("declared", "frame"): (
        "before `discreet` read the data, no step removed or changed a user's rows because of other users"
    ),
    ("declared", "readable"): "the fact that no rule for reading rejected the data is public",
    ("declared", "quotes"): "every quoted field that spans lines stays within one user's row",
    ("taken", "query"): _QUERY,
    ("declared", "rows"): "only rows with {rows} are used, which is a public choice",
    ("declared", "weights"): "each row weighs {weights}, which is a public choice",
    ("declared", "times"): "the presence of times in the data is public",
    ("declared", "date"): "the date from which ages count ({date}) is public",
    ("declared", "item features"): "the table of item features is public",
    ("declared", "participation"): "the list of participating users is public",
    ("declared", "rated items"): "the items that each user rated are public",
    ("declared", "ratings per user"): "a user has at most {ratings:,} ratings",
    ("declared", "threshold"): "ratings above {threshold:g} are likes, which is a public choice",
    ("selected", "threshold"): "ratings above their mean are likes, and the mean's cost is counted",
    ("use", "devices"): "each device draws its own noise and answers once per item",
    ("earlier", "prior"): _prior,
    ("earlier", "scored model"): lambda model, epsilon, definition: (
        f"the scored model ({model}) is an earlier release with {_epsilon(epsilon)}, "
        f"{definition}, which isn't counted here"
    ),
    ("declared", "scored model"): "the scored model ({model}) was fitted on public data",
    ("synthetic", "data"): "the data are {origin}. This guarantee is about the synthetic users only",
    ("ledger", "renewal"): lambda period: (
        f"the budget is {period}, and releases of earlier periods aren't counted"
        if period in _OF_THE_CALENDAR
        else f"the budget limits the releases of any {period}, and earlier releases aren't counted"
    ),
    ("ledger", "new start"): "the budget was started anew: {reason}",
    ("ledger", "period of a year"): (
        "all continual releases are counted on the date on which their cost was recorded"
    ),
    ("declared", "release times"): "the times of releases and item declarations are public",
    ("use", "one id"): "a user has one ID in all continual releases",
    ("backup", "state"): "no one redraws a release from an older copy of the state",
    ("party", "one party"): "each user's data are at one party, or the guarantees of their parties are added",
    ("backup", "members"): (
        "no one replaces a party's state, its ledger, and the keeper's state with older copies"
    ),
    ("backup", "party and ledger"): "no one replaces a party's state and ledger with older copies",
    ("backup", "restart"): "no party restarts its releases after losing its state",
    ("party", "readable"): "the fact that a party's new ratings can be read is public",
    ("party", "rows"): "how a party chooses and reads rows is public, and it reads each row by itself",
    ("party", "unicode"): "text in a party's Parquet files is valid Unicode",
    ("party", "most users"): "no party has more than {users:,} users per year",
    ("party", "collusion"): (
        "the coordinator and the keeper of masks don't collude, and the keeper reveals one sum per step"
    ),
    ("party", "noise shares"): (
        "in each sum, at least {parties:,} parties add their share of the noise and keep it secret"
    ),
    ("party", "known share"): _known_share,
    ("party", "one share"): _one_share,
    ("raw", "raw ratings"): "this fit read the raw ratings: nothing is hidden from the data owner who ran it",
    ("declared", "statement"): "{text}",
    ("unknown", "statement"): "{text}",
}


def assumption_text(assumption: AssumptionView) -> str:
    """Return an assumption in words."""
    key = (assumption.kind, assumption.fact)
    taken = assumption.kind == "taken"
    words = ASSUMPTION_WORDS.get(key) or ASSUMPTION_WORDS["declared", assumption.fact]
    detail = dict(assumption.detail)
    text = words.format(**detail) if isinstance(words, str) else words(**detail)
    return text + _TAKEN if taken and key not in ASSUMPTION_WORDS else text


def assumption_texts(assumptions: Iterable[AssumptionView]) -> list[str]:
    """Return assumptions in words."""
    return [assumption_text(one) for one in assumptions]


def listed_assumptions(guarantee: GuaranteeView) -> list[str]:
    """Return the assumptions in words, as labels list them; the one about raw ratings is a note there."""
    return [assumption_text(one) for one in guarantee.assumes if one.kind != "raw"]


def condition_names(conditions: Iterable[AssumptionView]) -> list[str]:
    """Return the names of the facts that must be public, each once; unknown statements have no name."""
    names = (_CONDITION_NAMES.get(one.fact) for one in conditions)
    return list(dict.fromkeys(name for name in names if name is not None))


def condition_text(conditions: Sequence[AssumptionView]) -> str:
    """Return the clause that must be true for the guarantee to hold, or an empty text.

    A statement of a file that this version doesn't know may be anything, so the clause asks to check it.
    """
    names, facts = condition_names(conditions), {one.fact for one in conditions}
    clauses = []
    if names:
        clauses.append(f"{listing(names)} {'is' if len(names) == 1 else 'are'} public")
    if "query" in facts:
        clauses.append(_QUERY)
    if facts - {"query", *_CONDITION_NAMES}:
        clauses.append("the assumptions that this version doesn't know are true")
    return " and ".join(clauses)


def under_condition(guarantee: GuaranteeView, text: str) -> str:
    """Return a sentence with the guarantee's condition before it: no number applies without its condition."""
    condition = condition_text(guarantee.conditions)
    return f"If {condition}, {text[0].lower()}{text[1:]}" if condition else text


def listing(names: Sequence[str]) -> str:
    """Return names as "a", "a and b" or "a, b, and c"."""
    if len(names) <= 2:
        return " and ".join(names)
    return f"{', '.join(names[:-1])}, and {names[-1]}"


def against(guarantee: GuaranteeView) -> str:
    """Return the attackers that the guarantee covers."""
    read = any(one.kind == "raw" for one in guarantee.assumes)
    return _AGAINST_RAW if read else TRUST_WORDS[guarantee.trust]


def level(guarantee: GuaranteeView) -> str:
    """Return epsilon and delta, rounded up."""
    text = f"ε = {number_above(guarantee.epsilon)}"
    return f"{text}, δ = {number_above(guarantee.delta)}" if guarantee.delta else text


def status(guarantee: GuaranteeView) -> str:
    """Return PRIVATE, NOT PRIVATE, SIMULATED or HARDLY PRIVATE, with the condition if there is one."""
    if math.isinf(guarantee.epsilon):
        return "NOT PRIVATE"
    if guarantee.simulated:
        return "SIMULATED"
    weak = f"HARDLY PRIVATE (delta is above {guarantee.large_delta:g})"
    condition = condition_text(guarantee.conditions)
    return (weak if guarantee.has_large_delta else "PRIVATE") + (f", if {condition}" if condition else "")


def sentence(guarantee: GuaranteeView) -> str:
    """Return the guarantee in sentences for users."""
    if math.isinf(guarantee.epsilon):
        return "NOT PRIVATE: this release has no guarantee about any user's data."
    more = f", plus at most δ = {number_above(guarantee.delta)}" if guarantee.delta else ""
    factor = number_above(math.exp(guarantee.epsilon) if guarantee.epsilon < 700 else math.inf, digits=3)
    subject = _CHANGES[guarantee.unit, guarantee.neighbors]
    condition = condition_text(guarantee.conditions)
    subject = f"If {condition}, {subject}" if condition else subject[0].upper() + subject[1:]
    parts = [
        f"{subject} changes the probability of any released result by a factor of at most {factor} (e^ε, "
        f"rounded up){more} ({level(guarantee)}, {BASIS_WORDS[guarantee.basis]}).",
        f"This protects against {against(guarantee)}.",
    ]
    if guarantee.has_large_delta:
        parts.append(f"{_capitalized(_too_large(guarantee))}.")
    parts += [f"{_capitalized(assumption_text(one))}." for one in guarantee.assumes if _is_stated(one)]
    text = " ".join(parts)
    if guarantee.simulated:
        return f"SIMULATED NOISE, protects no user. With real noise the guarantee would be: {text}"
    return text


def _too_large(guarantee: GuaranteeView) -> str:
    limit = f"{guarantee.large_delta:g}"
    return f"delta is above {limit}: publishing all data outright in that share of runs would satisfy it"


def _is_stated(assumption: AssumptionView) -> bool:
    """Return whether the sentence names an assumption: one that changes what the numbers cover."""
    return assumption.kind in ("raw", "synthetic") or assumption.fact == "prior"


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def short(guarantee: GuaranteeView) -> str:
    """Return the guarantee in one line, for places where the label is a command away."""
    if math.isinf(guarantee.epsilon):
        return "NOT PRIVATE: no guarantee."
    head = "SIMULATED, protects no user" if guarantee.simulated else status(guarantee)
    doubt = "" if guarantee.basis == "proved" else f" ({BASIS_WORDS[guarantee.basis]})"
    more = [_SHORT_STATED[one.kind] for one in guarantee.assumes if _is_stated(one)]
    tail = "".join(f", {text}" for text in dict.fromkeys(more))
    return f"{head}: {level(guarantee)} for {_SHORT_UNITS[guarantee.unit]}{doubt}{tail}."


_SHORT_STATED = {
    "earlier": "the release it starts from isn't counted",
    "synthetic": "the data are synthetic",
    "raw": "this fit read the raw ratings",
}


def rows(guarantee: GuaranteeView) -> list[tuple[str, str]]:
    """Return the lines of the label: name and value."""
    noise = "simulated from a seed: protects no user" if guarantee.simulated else "operating system entropy"
    proof = f" ({guarantee.proof})" if guarantee.proof else ""
    lines = [
        ("Guarantee", status(guarantee)),
        ("epsilon", number_above(guarantee.epsilon)),
        ("delta", number_above(guarantee.delta) if guarantee.delta else "0 (pure)"),
        ("Protects", UNIT_WORDS[guarantee.unit]),
        ("Neighbors", f"datasets {_NEIGHBOR_WORDS[guarantee.neighbors]} {_UNIT_NAMES[guarantee.unit]}"),
        ("Against", against(guarantee)),
        ("Basis", BASIS_WORDS[guarantee.basis] + proof),
        ("Noise", noise),
    ]
    if math.isinf(guarantee.epsilon):
        lines = [line for line in lines if line[0] in ("Guarantee", "epsilon", "Basis")]
    lines += [("Assumed", text) for text in listed_assumptions(guarantee)]
    lines += [("Note", _too_large(guarantee))] * guarantee.has_large_delta
    lines += [("Note", assumption_text(one)) for one in guarantee.assumes if one.kind == "raw"]
    lines += [("Note", text) for text in guarantee.notes]
    return lines


def label(guarantee: GuaranteeView, title: str) -> str:
    """Return the label as text, one line per fact, for logs and notebooks."""
    return "\n".join([title, *(f"{what:<9}  {value}" for what, value in rows(guarantee))])


def html(guarantee: GuaranteeView) -> str:
    """Return the label as a table for notebooks."""
    return html_table(rows(guarantee), caption="Privacy facts")


def one_line(guarantee: GuaranteeView) -> str:
    """Return the guarantee for `repr`."""
    if math.isinf(guarantee.epsilon):
        return f"Guarantee({status(guarantee)})"
    cost = f"epsilon={number_above(guarantee.epsilon)}, delta={number_above(guarantee.delta)}"
    definition = f"{guarantee.unit!s}, {guarantee.trust!s}, {guarantee.basis!s}"
    return f"Guarantee({status(guarantee)}; {cost}, {definition})"
