"""Choose a model from a few answers: who sees the ratings, what is hidden, learned from, and wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from discreet.core import integer, one_of

SEES = {
    "us": "we hold the data and publish recommendations or a model",
    "nobody": "only the user: ratings are made private before they leave the device",
    "everybody": "it is not secret: we want to know what privacy costs",
}
HIDES = {
    "person": "everything about a user: the whole history, and that they are in the data",
    "item": "whether and how a user rated any one item",
    "value": "how a rating turned out; what was rated may be known",
}
FEEDBACK = {
    "ratings": "stars or points on a scale",
    "clicks": "implicit feedback only: clicks, purchases, plays",
    "verdicts": "liked or not, as 1 and 0",
}
WANTS = {
    "lists": "which items a user would choose next",
    "stars": "how a user would rate an item",
}
# With fewer users noise drowns all but the items' averages.
_FEW = 1000
# From about so many on, lists at epsilon 1 are clearly better than popular items (docs/accuracy.md).
_ENOUGH = 5000


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

    @property
    def private(self) -> bool:
        """Return whether anything is hidden from anybody."""
        return self.sees != "everybody"


_PUBLISHED = "a published method, to compare with"
_ACCURATE = "the most accurate one in our measurements"
_ACCURATE_WITH_MANY = "the most accurate one in our measurements for many users"
# By who sees the ratings, what is hidden, and the feedback; the first of each group is recommended.
_TABLE = {
    ("us", "person", "ratings"): {
        "user-factorization": _ACCURATE,
        "biases": "simple, and as good for few users",
        "popularity": "simple, and hard to beat for few users",
        "frank-wolfe": _PUBLISHED,
        "covariance-svd": _PUBLISHED,
        "projected-gradient": _PUBLISHED,
    },
    ("us", "person", "clicks"): {
        "user-factorization": "personal recommendations, not only what is popular",
        "popularity": "simple, and hard to beat for few users",
        "implicit-objective": "preference profiles; also with pure epsilon, without a delta",
    },
    ("us", "person", "verdicts"): {
        "user-factorization": "hides whole histories; a like or dislike is a rating of 0 or 1",
        "biases": "simple, and as good for few users",
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
        "local-channel": "knows how ratings become reports, so little is lost",
        "one-bit-input": "binary ratings are flipped on the device, with a known probability",
    },
    ("nobody", "item", "ratings"): {
        "local-nuclear": "also hides on the device which items were rated",
        "local-nuclear-plain": _PUBLISHED,
    },
    ("nobody", "item", "verdicts"): {
        "local-nuclear": "also hides on the device which items were rated",
    },
    ("nobody", "item", "clicks"): {
        "neighbours": "bits are flipped on the device, with a known probability",
    },
    ("nobody", "person", "ratings"): {
        "private-gradients": "a whole history, against anyone; needs very many users",
    },
    ("everybody", "person", "ratings"): {
        "als": "the baseline without privacy",
        "ease": "a baseline without privacy that is hard to beat",
    },
    ("everybody", "person", "verdicts"): {
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
# Models that read no ratings.
_CHOICES_ONLY = tuple(model for model, wants in _ONLY.items() if wants == ("lists",))
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
    """The recommended model, its commands in order, the reasons, and the alternatives.

    `trial` is a command to try it first on data that one may see, where `commands` collect or federate.
    """

    model: str
    commands: tuple[str, ...]
    trial: str | None
    why: tuple[str, ...]
    others: tuple[tuple[str, str], ...]

    @property
    def command(self) -> str:
        """Return the first command."""
        return self.commands[0]


def advise(
    *,
    sees: str,
    hides: str,
    feedback: str,
    wants: str = "lists",
    people: int | None = None,
    parties: int = 1,
    spends: str = "--name mine --ledger mine.ledger",
) -> Advice:
    """Return which model fits these answers, as a command line and in words.

    Stars come from ratings: from clicks and likes all models make lists. `spends` are the options that
    name the account.
    """
    one_of("sees", sees, SEES)
    one_of("hides", hides, HIDES)
    one_of("feedback", feedback, FEEDBACK)
    one_of("wants", wants, WANTS)
    integer("parties", parties, least=1)
    if people is not None:
        integer("people", people, least=1)
    options, notes = _fitting(sees, hides, feedback)
    if sees == "nobody":
        # Before the reason for lists: the model that is collected makes them.
        options, more = _collected(options)
        notes += more
    options, more = _wanted(options, wants)
    notes += more
    stars = wants == "stars" and options[0].feedback == "ratings"
    simple = "biases" if stars else "popularity"
    if people is not None and people < _FEW and sees == "us":
        options = sorted(options, key=lambda option: option.model != simple)
        notes.append(f"With {people:,} users little can be learned beyond which items are liked in general.")
    elif people is not None and people < _ENOUGH and sees == "us":
        options = [
            replace(option, why=_ACCURATE_WITH_MANY) if option.why == _ACCURATE else option
            for option in options
        ]
        notes.append(_few_people(people, stars=stars))
    if sees != "nobody" and parties > 1:
        options, more = _federated(options, wants)
        notes += more
    best, *others = options
    commands, trial, said = _commands(best, people, wants, parties, spends)
    notes += said
    if best.model in _CHOICES_ONLY and feedback == "verdicts":
        notes.append("It learns from what was chosen, so a dislike counts like a like: leave dislikes out.")
    unique = {option.model: option.why for option in others if option.model != best.model}
    return Advice(
        model=best.model,
        commands=commands,
        trial=trial,
        why=(f"{best.model}: {best.why}.", *notes),
        others=tuple(unique.items()),
    )


def _few_people(people: int, *, stars: bool) -> str:
    """Return what may be as good with so few users."""
    if stars:
        return (
            f"With {people:,} users stars at epsilon 1 may be no better than those of biases, which knows "
            "only how items and users rate on average; compare the two."
        )
    return (
        f"With {people:,} users lists at epsilon 1 may be little better than popular items; compare the "
        "two. Epsilon 5 makes them more personal, but that is a weak guarantee."
    )


def _fitting(sees: str, hides: str, feedback: str) -> tuple[list[Option], list[str]]:
    """Return the options that fit the answers; where none fits exactly, those with a stronger guarantee."""
    notes: list[str] = []
    if sees == "everybody":
        notes.append(
            "NOT PRIVATE: this is for ratings that everyone may see, so nothing is hidden, whatever --hides "
            "states. If something must stay hidden, choose with `--sees us` or `--sees nobody`."
        )
    there = [option for option in OPTIONS if option.sees == sees]
    learned = [option for option in there if option.feedback == feedback]
    if not learned:
        notes.append(f"No model learns from {feedback} under this guarantee; these learn from ratings.")
        learned = [option for option in there if option.feedback == "ratings"]
    levels = list(HIDES)
    # HIDES is ordered from the strongest protection to the weakest.
    enough = [option for option in learned if levels.index(option.hides) <= levels.index(hides)]
    if not enough:
        learned.sort(key=lambda option: levels.index(option.hides))
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


def _collected(options: list[Option]) -> tuple[list[Option], list[str]]:
    """Return the options with a model first that learns from the reports of a collection."""
    first = options[0]
    if first.model in COLLECTED:
        return options, []
    learner = COLLECTED[first.hides != "value"]
    option = next(option for option in OPTIONS if option.model == learner)
    notes = [
        f"No command collects for {first.model}, so this model takes its place. `discreet fit --model "
        f"{first.model}` simulates that one on data you may see."
    ]
    levels = list(HIDES)
    if levels.index(option.hides) > levels.index(first.hides):
        notes.append(f"It hides less, {HIDES[option.hides]}: read its label.")
    return [replace(option, hides=first.hides, feedback=first.feedback), *options], notes


def _federated(options: list[Option], wants: str) -> tuple[list[Option], list[str]]:
    """Return the options that parties can learn together; where there is none, others, and say so."""
    found = [option for option in options if option.model in SUMMED]
    if found:
        return found, []
    first = options[0]
    feedback = "clicks" if first.feedback == "clicks" else "ratings"
    found = [
        replace(option, sees=first.sees)
        for option in OPTIONS
        if option.model in SUMMED and option.feedback == feedback and wants in option.wants
    ]
    return found, [f"It replaces {first.model}, which does not learn from sums over parties."]


def _commands(
    best: Option, people: int | None, wants: str, parties: int, spends: str
) -> tuple[tuple[str, ...], str | None, list[str]]:
    """Return the commands, one to try first on data that you may see, and remarks about them."""
    if best.sees != "nobody" and parties > 1:
        commands, trial = _federation_commands(best, wants, people, parties)
        noise = ": each adds noise before it answers" if best.private else ""
        return commands, trial, [f"{parties} parties learn together without sharing data{noise}."]
    fit = _fit_command(best, wants, people, spends)
    if best.sees != "nobody":
        return (fit,), None, []
    commands, notes = _collection_commands(best)
    if parties > 1:
        notes.append(f"Devices report to one collection, so the {parties} parties need no federation.")
    # Users are asked what they like, so a log of clicks shows nothing about it.
    return commands, None if best.feedback == "clicks" else fit, notes


#: Models that learn from sums, so that parties can learn them together (docs/federated.md).
SUMMED = ("user-factorization", "popularity", "biases", "covariance-svd", "frank-wolfe", "implicit-objective")
#: Models that learn from the reports of a collection: of values, and of hidden items.
COLLECTED = ("local-channel", "local-nuclear")
# Delta is one over this many times the number of users.
_DELTA_PEOPLE = 10
# So many parties' commands are written out; the others are alike.
_MOST_PARTIES = 5
_STORE = "sqlite:///reports.db"


def _fit_command(best: Option, wants: str, people: int | None, spends: str) -> str:
    """Return the command that fits a model to data of one owner."""
    if best.model == "one-bit-output":
        return f"discreet evaluate ratings.csv --model {best.model} --epsilon 1 --metric accuracy"
    joint = best.sees == "us" and best.hides == "person"
    parts = [f"discreet fit {_file(best.feedback)}", *_model(best, wants)]
    if people is not None:
        parts += [f"--people {people}", *_delta(people if joint else None)]
    if joint:
        parts.append(spends)
    return " ".join([*parts, "--out mine.discreet"])


def _federation_commands(
    best: Option, wants: str, people: int | None, parties: int
) -> tuple[tuple[str, ...], str]:
    """Return the commands of a federation, and one that simulates it on data that one may see."""
    feedback = best.feedback
    settings = [*_model(best, wants), *_delta(people if best.private else None)]
    names = [f"party{place}" for place in range(1, parties + 1)]
    scale = [] if "--implicit" in settings else [f"--scale {_scale(feedback)}"]
    init = ["discreet federation init together", f"--parties {','.join(names)}", "--items items.txt"]
    simulate = [f"discreet federation simulate {_file(feedback)}", f"--parties {parties}"]
    return (
        " ".join([*init, *settings, *scale]),
        "discreet federation keeper together/keeper",
        *(
            f"discreet federation party together/{name} --data {_file(feedback)} "
            f"--name {name} --ledger {name}.ledger"
            for name in names[:_MOST_PARTIES]
        ),
        "discreet federation run together/coordinator --out mine.discreet",
    ), " ".join([*simulate, *settings, "--evaluate"])


def _collection_commands(best: Option) -> tuple[tuple[str, ...], list[str]]:
    """Return the commands of a collection on devices, and remarks about it."""
    hidden, feedback = best.model == COLLECTED[1], best.feedback
    notes = ["Devices add the noise, and the service stores nothing else; items.txt has one id per line."]
    if feedback == "clicks":
        notes.append(
            "It asks users which items they like, and hides which ones they answered for; a log of clicks "
            "cannot be sent to it."
        )
    if best.hides == "person":
        notes.append(
            "Its epsilon is for one item. A whole history costs as many times epsilon as there are items; "
            "`campaign new` prints it. Divide epsilon by their number to hide whole histories."
        )
    new = [
        "discreet campaign new",
        '--name "Our items"',
        "--items items.txt",
        f"--scale {_scale(feedback)}",
        "--epsilon 1",
    ]
    new += ["--hide-items"] if hidden else []
    return (
        " ".join([*new, "--out mine.campaign"]),
        f"discreet serve mine.campaign --store {_STORE}",
        f"discreet campaign fit {_STORE} --model {best.model} --out mine.discreet",
        f"discreet campaign close {_STORE}",
    ), notes


def _scale(feedback: str) -> str:
    return "1,5,1" if feedback == "ratings" else "0,1,1"


def _file(feedback: str) -> str:
    return "clicks.csv" if feedback == "clicks" else "ratings.csv"


def _model(best: Option, wants: str) -> list[str]:
    model, feedback = best.model, best.feedback
    parts = [f"--model {model}", f"--epsilon {1 if best.private else 'inf'}"]
    if model == "user-factorization" and feedback == "ratings":
        parts.append(f"--for {'ratings' if wants == 'stars' else 'lists'}")
    # Lists of interactions alone would count a dislike as a choice.
    if model == "user-factorization" and feedback == "verdicts":
        parts.append(f"--for {'ratings' if wants == 'stars' else 'both'}")
    if feedback == "clicks" or model in ("popularity", "ease"):
        parts.append("--implicit")
    return parts


def _delta(people: int | None) -> list[str]:
    """Return a delta where the models' own would be too large for so many users."""
    if people is None or 1 / (_DELTA_PEOPLE * people) >= 1e-6:
        return []
    return [f"--delta {1 / (_DELTA_PEOPLE * people):.0e}"]
