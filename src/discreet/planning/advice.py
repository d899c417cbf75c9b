"""Choose a model from a few answers: who sees the ratings, what is hidden, learned from, and wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from discreet.core.checks import integer, one_of

SEES = {
    "us": "we hold the data and publish recommendations or a model",
    "nobody": "nobody but the person: ratings are made private before they leave the device",
    "everybody": "it is not secret: we want to know what privacy costs",
}
HIDES = {
    "person": "everything about a person: the whole history, and that they are in the data",
    "item": "whether and how somebody rated any one item",
    "value": "how a rating turned out; what was rated may be known",
}
FEEDBACK = {
    "ratings": "ratings on a scale",
    "clicks": "implicit feedback only: clicks, purchases, plays",
    "verdicts": "liked or not",
}
WANTS = {
    "lists": "lists: which items somebody would choose next",
    "stars": "stars: how somebody would rate an item",
}
# With fewer people noise drowns all but the items' averages.
_FEW = 1000
# From about so many on, lists at epsilon 1 are clearly better than popular items (docs/accuracy.md).
_ENOUGH = 5000
# Delta is one over this many times the number of people.
_DELTA_PEOPLE = 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A model with what it covers, what it is good for, and why one would take it."""

    model: str
    sees: str
    hides: str
    feedback: str
    why: str
    wants: tuple[str, ...]


_PUBLISHED = "a published method, to compare with"
# By who sees the ratings, what is hidden, and the feedback; the first of each group is recommended.
_TABLE = {
    ("us", "person", "ratings"): {
        "user-factorization": "the most accurate one in our measurements",
        "biases": "simple, and as good where there are few people",
        "popularity": "simple, and hard to beat where there are few people",
        "frank-wolfe": _PUBLISHED,
        "covariance-svd": _PUBLISHED,
        "projected-gradient": _PUBLISHED,
    },
    ("us", "person", "clicks"): {
        "user-factorization": "personal recommendations, not only what is popular",
        "popularity": "simple, and hard to beat where there are few people",
        "implicit-objective": "preference profiles; also with pure epsilon, without a delta",
    },
    ("us", "value", "verdicts"): {
        "one-bit-objective": "noise enters the objective once, the rest is post-processing",
        "one-bit-gradient": "needs no exact minimum for its proof",
        "one-bit-output": "answers a few predictions; the matrix itself is not released",
    },
    ("nobody", "value", "ratings"): {
        "local-channel": "knows how ratings become reports, so little is lost",
        "local-mixture": _PUBLISHED,
        "local-sgd": _PUBLISHED,
    },
    ("nobody", "value", "verdicts"): {
        "one-bit-input": "binary ratings are flipped on the device, with a known probability",
    },
    ("nobody", "item", "ratings"): {
        "local-nuclear": "also hides on the device which items were rated",
        "local-nuclear-plain": _PUBLISHED,
    },
    ("nobody", "item", "clicks"): {
        "neighbours": "bits are flipped on the device, with a known probability",
    },
    ("nobody", "person", "ratings"): {
        "private-gradients": "a whole history, against anyone; needs very many people",
    },
    ("everybody", "person", "ratings"): {
        "als": "the baseline without privacy",
        "ease": "a baseline without privacy that is hard to beat",
    },
    ("everybody", "person", "clicks"): {
        "ease": "a baseline without privacy that is hard to beat",
        "implicit-als": "a baseline without privacy",
        "item-knn": "the classic baseline without privacy",
        "markov-chain": "the baseline without privacy where the order of interactions is known",
    },
}
# Models that know nothing about one of both: stars, or which items are chosen at all.
_ONLY = {
    "biases": ("stars",),
    "als": ("stars",),
    "private-gradients": ("stars",),
    **dict.fromkeys(
        ("popularity", "ease", "implicit-als", "item-knn", "markov-chain", "implicit-objective"), ("lists",)
    ),
}
OPTIONS = tuple(
    Option(
        model=model,
        sees=sees,
        hides=hides,
        feedback=feedback,
        why=why,
        wants=_ONLY.get(model, tuple(WANTS)),
    )
    for (sees, hides, feedback), models in _TABLE.items()
    for model, why in models.items()
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Hold the recommended model, its command line, the reasons, and the alternatives."""

    model: str
    command: str
    why: tuple[str, ...]
    others: tuple[tuple[str, str], ...]


def advise(
    *,
    sees: str,
    hides: str,
    feedback: str,
    wants: str = "lists",
    people: int | None = None,
    parties: int = 1,
) -> Advice:
    """Return which model fits these answers, as a command line and in words.

    Stars come from ratings: from clicks and verdicts all models make lists.
    """
    one_of("sees", sees, SEES)
    one_of("hides", hides, HIDES)
    one_of("feedback", feedback, FEEDBACK)
    one_of("wants", wants, WANTS)
    integer("parties", parties, least=1)
    if people is not None:
        integer("people", people, least=1)
    options, notes = _fitting(sees, hides, feedback)
    options, more = _wanted(options, wants)
    notes += more
    stars = wants == "stars" and options[0].feedback == "ratings"
    simple = "biases" if stars else "popularity"
    if people is not None and people < _FEW and sees == "us":
        options = sorted(options, key=lambda option: option.model != simple)
        notes.append(f"With {people:,} people little can be learned beyond which items are liked in general.")
    elif people is not None and people < _ENOUGH and sees == "us" and wants == "lists":
        notes.append(
            f"With {people:,} people lists at epsilon 1 may be little better than popular items; compare the "
            "two. Epsilon 5 makes them more personal, but that is a weak guarantee."
        )
    best, *others = options
    why = (f"{best.model}: {best.why}.", *notes)
    if parties > 1:
        why = (
            f"{parties} parties learn together without sharing data: each adds noise before it answers.",
            "Try it on one machine first: `discreet federation simulate`.",
            *why,
        )
    unique = {option.model: option.why for option in others if option.model != best.model}
    return Advice(
        model=best.model, command=_command(best, people, wants), why=why, others=tuple(unique.items())
    )


def _fitting(sees: str, hides: str, feedback: str) -> tuple[list[Option], list[str]]:
    """Return the options that fit the answers; where none fits exactly, those that promise more."""
    notes: list[str] = []
    there = [option for option in OPTIONS if option.sees == sees]
    learned = [option for option in there if option.feedback == feedback]
    if not learned:
        notes.append(f"No model learns from {feedback} under this promise; these learn from ratings.")
        learned = [option for option in there if option.feedback == "ratings"]
    levels = list(HIDES)
    # HIDES is ordered from the strongest protection to the weakest.
    enough = [option for option in learned if levels.index(option.hides) <= levels.index(hides)]
    if not enough:
        notes.append(f"No model hides more than {HIDES[learned[0].hides]} here: read its label.")
        return learned, notes
    closest = max(levels.index(option.hides) for option in enough)
    if levels[closest] != hides and sees != "everybody":
        notes.append(f"It hides more than you ask for: {HIDES[levels[closest]]}.")
    first = [option for option in enough if option.hides == levels[closest]]
    return [*first, *(option for option in enough if option not in first)], notes


def _wanted(options: list[Option], wants: str) -> tuple[list[Option], list[str]]:
    """Return the options that are good for what is wanted; where none is, all of them, and say so."""
    found = [option for option in options if wants in option.wants]
    if found:
        return found, []
    if wants == "stars":
        return options, ["It makes lists and predicts no stars: those are learned from ratings."]
    return options, ["It predicts stars, and its lists are ordered by them alone: expect little of those."]


def _command(best: Option, people: int | None, wants: str) -> str:
    epsilon = "inf" if best.sees == "everybody" else "1"
    clicks = best.feedback == "clicks"
    file = "clicks.csv" if clicks else "ratings.csv"
    parts = [f"discreet fit {file}", f"--model {best.model}", f"--epsilon {epsilon}"]
    if best.model == "user-factorization" and best.feedback == "ratings":
        parts.append(f"--for {'ratings' if wants == 'stars' else 'lists'}")
    if clicks or best.model in ("popularity", "ease"):
        parts.append("--implicit")
    if clicks:
        # Logs repeat events, and a model of interactions uses that there was one.
        parts.append("--duplicates last")
    if people is not None:
        parts.append(f"--people {people}")
        needs_delta = best.sees == "us" and best.hides == "person"
        if needs_delta and 1 / (_DELTA_PEOPLE * people) < 1e-6:
            parts.append(f"--delta {1 / (_DELTA_PEOPLE * people):.0e}")
    if best.model == "one-bit-output":
        return f"discreet evaluate ratings.csv --model {best.model} --epsilon 1 --metric accuracy"
    return " ".join([*parts, "--out mine.discreet"])
