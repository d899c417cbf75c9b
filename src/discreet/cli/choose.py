"""`discreet model choose`: answer a few questions and get a model, with the reason."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated

from discreet.cli.errors import OptionMissing
from discreet.cli.options.accounts import account_for
from discreet.cli.output.printing import Output, show, write
from discreet.core import one_of, suggestion
from discreet.core.checks import visible
from discreet.planning.advice import FEEDBACK, HIDES, SEES, WANTS, Advice, advise

_MOST_PEOPLE, _MOST_PARTIES = 10**11, 1000
_QUESTIONS: dict[str, tuple[str, Mapping[str, str]]] = {
    "--sees": ("Who may see users' ratings or interactions?", SEES),
    "--hides": ("What must stay hidden?", HIDES),
    "--from": ("What is there to learn from?", FEEDBACK),
    "--wants": ("What do users want: recommendations or predicted ratings?", WANTS),
}


def choose(
    *,
    sees: str | None = None,
    hides: str | None = None,
    feedback: Annotated[str | None, "--from"] = None,
    wants: str | None = None,
    people: int | None = None,
    parties: int | None = None,
) -> Output:
    """Choose a model by options or by questions. Prints a command line and the reason.

    Options:
        sees: `us`, `nobody`, or `everybody`.
        hides: `person`, `item`, or `value`.
        feedback: `ratings`, `clicks`, or `verdicts`.
        wants: `lists` or `stars`. Asked only for ratings.
        people: About how many users there are.
        parties: How many parties have data. Default: one.
    """
    answers = {"--sees": sees, "--hides": hides, "--from": feedback, "--wants": wants}
    asks = None in (sees, hides, feedback)
    for option, (question, words) in _QUESTIONS.items():
        given = answers[option]
        # If everyone may see the data, there is nothing to hide.
        if option == "--hides" and given is None and answers["--sees"] == "everybody":
            given = "person"
        # Clicks contain no ratings.
        if option == "--wants" and given is None and answers["--from"] == "clicks":
            given = "lists"
        answers[option] = _ask(option, question, words) if given is None else given
        one_of(option, answers[option], words)
    if people is None and asks and answers["--sees"] == "us":
        people = _ask_number(
            "About how many users are in the data? Press Enter if you don't know.", _MOST_PEOPLE
        )
    if parties is None and asks and answers["--sees"] == "us":
        parties = _ask_number("How many organizations have data? Press Enter for one.", _MOST_PARTIES)
    found = advise(
        sees=str(answers["--sees"]),
        hides=str(answers["--hides"]),
        feedback=str(answers["--from"]),
        wants=str(answers["--wants"]),
        people=people,
        parties=1 if parties is None else parties,
        spends=account_for("mine").options,
    )
    content = {
        "model": found.model,
        "command": found.command,
        "why": list(found.why),
        "others": [{"model": model, "why": why} for model, why in found.others],
        "commands": list(found.commands),
        "try_first": found.trial,
    }
    return Output(content, lambda: _show(found, "0,1,1" if answers["--from"] == "verdicts" else "1,5,1"))


def _show(found: Advice, scale: str) -> None:
    """Print the reasons, the commands in order, and the alternatives."""
    show(*found.why, "")
    if found.trial:
        show("Try it first, on data you may see: this command reads the raw data.")
        write(f"    {found.trial}")
        show("\nThen for real:")
    for command in found.commands:
        write(f"    {command}")
    if found.command.startswith("discreet fit") and "--epsilon inf" not in found.command:
        show(
            f"\nTo declare what is public, add --items FILE (and --scale {scale} for ratings). Otherwise the "
            "guarantee applies only if the catalog and scale are public. To see the accuracy next to simple "
            "baselines, use `evaluate` instead of `fit`, without --out and --ledger. If interests change "
            "within weeks, `discreet budget plan --follow` compares refits with a model that stays fresh at "
            "one budget."
        )
    if found.others:
        show("\nAlso possible:", *(f"  {model}: {why}" for model, why in found.others))


def _ask(option: str, question: str, words: Mapping[str, str]) -> str:
    """Ask on the terminal, and ask again after a mistake. Without a terminal, name the missing option."""
    if not sys.stdin.isatty():
        raise OptionMissing(options=(f"{option} {'|'.join(words)}",))
    names = list(words)
    show(question, *(f"  {place}. {name}: {words[name]}" for place, name in enumerate(names, start=1)))
    while True:
        answer = input(f"[1-{len(names)}, Enter for 1] ").strip() or "1"
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]
        if answer.lower() in words:
            return answer.lower()
        close = suggestion(answer, names)
        show(
            f"{visible(answer)!r} isn't one of the answers.{close} Type a number from 1 to {len(names)}, or "
            "a word."
        )


def _ask_number(question: str, most: int) -> int | None:
    """Ask for a number on the terminal, and ask again after a mistake. An empty answer is None."""
    show(question)
    while True:
        answer = input("[a number] ").strip().replace(",", "").replace("_", "")
        if not answer:
            return None
        if answer.isdecimal() and 0 < int(answer) <= most:
            return int(answer)
        show(f"{visible(answer)!r} isn't a number in the range. Type a number such as 3, or press Enter.")
