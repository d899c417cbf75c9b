"""Write the commands that an advice ends in: a fit, a collection on devices, or a federation of parties."""

from __future__ import annotations

#: Models that learn from sums, so that parties can learn them together (docs/federated.md).
SUMMED = ("user-factorization", "popularity", "biases", "covariance-svd", "frank-wolfe", "implicit-objective")
#: Models that learn from the reports of a collection: of values, and of hidden items.
COLLECTED = ("local-channel", "local-nuclear")
# Delta is one over this many times the number of users.
_DELTA_PEOPLE = 10
# So many parties' commands are written out; the others are alike.
_MOST_PARTIES = 5
_STORE = "sqlite:///reports.db"


def fit_command(
    model: str, *, private: bool, joint: bool, feedback: str, wants: str, people: int | None
) -> str:
    """Return the command that fits a model to data of one owner."""
    if model == "one-bit-output":
        return f"discreet evaluate ratings.csv --model {model} --epsilon 1 --metric accuracy"
    parts = [f"discreet fit {_file(feedback)}", *_model(model, private, feedback, wants)]
    parts += _duplicates(feedback)
    if people is not None:
        parts += [f"--people {people}", *_delta(people if joint else None)]
    if private and joint:
        parts.append("--name mine --ledger mine.ledger")
    return " ".join([*parts, "--out mine.discreet"])


def federation_commands(
    model: str, *, parties: int, private: bool, feedback: str, wants: str, people: int | None
) -> tuple[tuple[str, ...], str]:
    """Return the commands of a federation, and one that simulates it on data that one may see."""
    settings = [*_model(model, private, feedback, wants), *_delta(people if private else None)]
    names = [f"party{place}" for place in range(1, parties + 1)]
    scale = [] if "--implicit" in settings else [f"--scale {_scale(feedback)}"]
    init = ["discreet federation init together", f"--parties {','.join(names)}", "--items items.txt"]
    simulate = [f"discreet federation simulate {_file(feedback)}", f"--parties {parties}"]
    return (
        " ".join([*init, *settings, *scale]),
        "discreet federation keeper together/keeper",
        *(_party(name, feedback) for name in names[:_MOST_PARTIES]),
        "discreet federation run together/coordinator --out mine.discreet",
    ), " ".join([*simulate, *settings, *_duplicates(feedback), "--evaluate"])


def _party(name: str, feedback: str) -> str:
    parts = [f"discreet federation party together/{name} --data {_file(feedback)}", *_duplicates(feedback)]
    return " ".join([*parts, f"--name {name} --ledger {name}.ledger"])


def collection_commands(model: str, *, hides: str, feedback: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the commands of a collection on devices, and remarks about it."""
    hidden = model == COLLECTED[1]
    notes = ["Devices add the noise, and the service stores nothing else; items.txt has one id per line."]
    if feedback == "clicks":
        notes.append(
            "It asks users which items they like, and hides which ones they answered for; a log of clicks "
            "cannot be sent to it."
        )
    if hides == "person":
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
        f"discreet campaign fit {_STORE} --model {model} --out mine.discreet",
        f"discreet campaign close {_STORE}",
    ), notes


def _scale(feedback: str) -> str:
    return "1,5,1" if feedback == "ratings" else "0,1,1"


def _file(feedback: str) -> str:
    return "clicks.csv" if feedback == "clicks" else "ratings.csv"


def _model(model: str, private: bool, feedback: str, wants: str) -> list[str]:
    parts = [f"--model {model}", f"--epsilon {1 if private else 'inf'}"]
    if model == "user-factorization" and feedback == "ratings":
        parts.append(f"--for {'ratings' if wants == 'stars' else 'lists'}")
    # Lists of interactions alone would count a dislike as a choice.
    if model == "user-factorization" and feedback == "verdicts":
        parts.append(f"--for {'ratings' if wants == 'stars' else 'both'}")
    if feedback == "clicks" or model in ("popularity", "ease"):
        parts.append("--implicit")
    return parts


def _duplicates(feedback: str) -> list[str]:
    # Logs repeat events, and a model of interactions uses that there was one.
    return ["--duplicates last"] if feedback == "clicks" else []


def _delta(people: int | None) -> list[str]:
    """Return a delta where the models' own would be too large for so many users."""
    if people is None or 1 / (_DELTA_PEOPLE * people) >= 1e-6:
        return []
    return [f"--delta {1 / (_DELTA_PEOPLE * people):.0e}"]
