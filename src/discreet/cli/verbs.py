"""Names of the commands in the order of the help, and the function of each.

This module imports nothing, so that `discreet --help` is printed at once.
"""

from __future__ import annotations

# The ten commands that `discreet --help` lists. The value is the line in the help.
ROAD = {
    "demo": "See the main features on embedded data, in a minute.",
    "try": "Check whether a private model beats popular items on your data.",
    "describe": "Write a file's layout as a schema.",
    "fit": "Fit a model, and write it with its privacy label.",
    "recommend": "Recommend items to one user, or to many.",
    "evaluate": "Score a model and baselines on held-out data.",
    "compare": "Score several models and epsilons, and write a report.",
    "refit": "Fit a model again on new data.",
    "follow": "Keep a model fresh all year at one budget.",
    "serve": "Serve a model or a collection over HTTP.",
}
# The other names at the top.
MORE = {
    "model": "Check, explain, sign, export, and extend a model file.",
    "models": "List the models to fit.",
    "budget": "Show, set, and plan privacy budgets.",
    "data": "Get datasets, split large data, make synthetic users.",
    "papers": "Print bounds of papers, and repeat their experiments.",
    "federation": "Train one model with several data owners.",
    "campaign": "Collect ratings from devices that add noise.",
    "errors": "Explain an error code.",
}
# The parts of groups, with their lines.
PARTS = {
    "follow": {
        "start": "Begin a year of releases.",
        "add": "Add new interactions.",
        "release": "Draw the next release without new interactions.",
        "show": "Show the releases and the cost of a continual release.",
        "erase": "Remove a user from future releases.",
        "replay": "Try a year on past data.",
    },
    "model": {
        "choose": "Answer a few questions, and get a command.",
        "label": "Show a model's guarantee, or write it as a card or page.",
        "explain": "Show why an item is recommended.",
        "similar": "List items that are similar to an item.",
        "score": "Score a model file on data that it hasn't seen.",
        "audit": "Try to refute a model's guarantee.",
        "add-items": "Add new items to a model from public features.",
        "export": "Write vectors for a vector store, or ONNX.",
        "bundle": "Write a folder that recommends on the device.",
        "sign": "Sign a model file.",
        "verify": "Check a model's signature.",
        "dossier": "Write the documents that a privacy officer signs.",
        "erase": "State what releases in use reveal about a deleted user.",
    },
    "budget": {
        "show": "Show the releases of a ledger, and the budget spent and left.",
        "set": "Set the budget of a dataset.",
        "plan": "Plan the cost and the accuracy of releases.",
    },
    "data": {
        "datasets": "List known datasets, or download one.",
        "shard": "Split data that is larger than memory.",
        "synthesize": "Make synthetic users from a model.",
    },
    "papers": {
        "theory": "Print the bounds of a paper for your sizes.",
        "reproduce": "Run the experiments of papers.",
    },
    "federation": {
        "init": "Write the agreement and a folder for each member.",
        "simulate": "Try a federation on this machine.",
        "run": "Coordinate a run.",
        "declare": "Declare new items between releases.",
        "party": "Take part in a federation with your own data.",
        "keeper": "Keep the keys of a federation's masks.",
    },
    "campaign": {
        "new": "Write a campaign's settings.",
        "show": "Show what a campaign asks and guarantees.",
        "check": "Check a campaign before it starts.",
        "simulate": "Try a campaign on data that you have.",
        "close": "Stop collecting.",
        "fit": "Fit a model to the reports.",
        "next-round": "Close a round, and begin the next round.",
        "backup": "Copy all reports into a file.",
        "invite": "Make invitations for devices.",
    },
}
# Names of earlier versions, which work for one more version, with a hint.
OLD: dict[str, tuple[str, ...]] = {
    "choose": ("model", "choose"),
    "label": ("model", "label"),
    "explain": ("model", "explain"),
    "similar": ("model", "similar"),
    "score": ("model", "score"),
    "audit": ("model", "audit"),
    "add-items": ("model", "add-items"),
    "export": ("model", "export"),
    "bundle": ("model", "bundle"),
    "sign": ("model", "sign"),
    "verify": ("model", "verify"),
    "dossier": ("model", "dossier"),
    "erase": ("model", "erase"),
    "plan": ("budget", "plan"),
    "datasets": ("data", "datasets"),
    "shard": ("data", "shard"),
    "synthesize": ("data", "synthesize"),
    "theory": ("papers", "theory"),
    "reproduce": ("papers", "reproduce"),
}
# What other programs call a command.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "neighbors": ("model", "similar"),
    "neighbours": ("model", "similar"),
    "similar-items": ("model", "similar"),
    "train": ("fit",),
    "predict": ("recommend",),
    "update": ("refit",),
    "info": ("model", "label"),
    "inspect": ("model", "label"),
    "benchmark": ("compare",),
    "test": ("evaluate",),
}
# Earlier groups: the new command of each part.
OLD_PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "party": {"serve": ("federation", "party")},
    "keeper": {"serve": ("federation", "keeper")},
    "collect": {
        "fit": ("campaign", "fit"),
        "backup": ("campaign", "backup"),
        "invite": ("campaign", "invite"),
    },
}
# Other names for parts of a group, which help does not list.
HIDDEN = {("follow", "init"): ("follow", "start"), ("follow", "status"): ("follow", "show")}

# The function of a command is in the module of its first word and has the name of its last word, except:
_PLACES = {
    ("try",): "trial:trial",
    ("errors",): "error_codes:errors",
    ("compare",): "evaluate:compare",
    ("refit",): "fit:refit",
    ("model", "choose"): "choose:choose",
    ("model", "audit"): "audit:audit",
    ("model", "similar"): "recommend:similar",
    ("model", "explain"): "recommend:explain",
    ("budget", "show"): "budget:show_ledger",
    ("budget", "set"): "budget:set_budget",
    ("data", "datasets"): "models:datasets",
    ("budget",): "budget:budget",
}


def place(words: tuple[str, ...]) -> tuple[str, str]:
    """Return the module and the name of a command's function."""
    if words in _PLACES:
        module, _, function = _PLACES[words].partition(":")
        return module, function
    return words[0], words[-1].replace("-", "_")


def commands() -> list[tuple[str, ...]]:
    """Return the words of every command, in the order of the help."""
    found: list[tuple[str, ...]] = []
    for name in (*ROAD, *MORE):
        found += [(name, part) for part in PARTS[name]] if name in PARTS else [(name,)]
    return found


def names() -> list[str]:
    """Return every name that may come first, those of earlier versions last."""
    return [*ROAD, *MORE, *OLD, *OLD_PARTS]


_OPTIONS = {
    "--version": "Print the version.",
    "--verbose, -v": "Report each step on standard error.",
    "--help": "Show the ten main commands.",
    "--help-all": "Show all commands.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell.",
}


def overview(*, everything: bool) -> str:
    """Return the help of `discreet`: the main commands, or all of them."""
    lines = ["Usage: discreet [OPTIONS] COMMAND [ARGS]...", "", _ABOUT, ""]
    if everything:
        for title, some in (("Main commands", ROAD), ("More", MORE)):
            lines += [f"{title}:", *_rows(some, 11)]
            lines.append("")
        for name, parts in PARTS.items():
            lines += [f"discreet {name}:", *_rows(parts, 11), ""]
        return "\n".join([*lines, "Options:", *_rows(_OPTIONS, 21), "", _HELP])
    lines += ["Commands:", *_rows(ROAD, 11), "", f"More: {', '.join(MORE)}.", ""]
    return "\n".join([*lines, "`discreet --help-all` lists all commands and options.", _HELP])


def part_overview(name: str) -> str:
    """Return the help of a group."""
    line = {**ROAD, **MORE}[name]
    usage = f"Usage: discreet {name} [OPTIONS] COMMAND [ARGS]..."
    helped = f"`discreet {name} COMMAND --help` lists a command's options."
    return "\n".join([usage, "", line, "", "Commands:", *_rows(PARTS[name], 11), "", helped])


_ABOUT = "Recommender systems with a proven differential-privacy guarantee."
_HELP = "`discreet COMMAND --help` lists a command's options."


def _rows(lines: dict[str, str], width: int) -> list[str]:
    return [f"  {name:<{width}} {line}" for name, line in lines.items()]
