"""Write a dossier to a folder: documents, a registry entry, the certificate, and one page to print.

Documents are what reviewers ask for: questions with answers that come from the evidence alone.

A document names the text that it follows. Its questions are in our own words. A missing human fact is marked.
Answers are made of parts with names, such as {odds}: what two documents state is written once (`parts`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import final

from discreet.core import CannotWrite, FileExists, NotOurs, write_folder
from discreet.core.checks import visible
from discreet.dossier.evidence import Evidence
from discreet.dossier.facts import MEANINGS
from discreet.dossier.registry import registry_entry
from discreet.privacy import Basis, Neighbors, Trust, Unit
from discreet.report import (
    ERASURE,
    PERIOD,
    SIDE_CHANNELS,
    TUNING,
    USE,
    accuracy,
    bounds,
    by_origin,
    columns,
    element,
    is_page,
    listed_assumptions,
    number_above,
    odds_picture,
    page,
    program_of,
    status,
    table,
)

Answers = list[tuple[str, str]]

_UNITS = {
    Unit.USER: "the whole history of one user",
    Unit.RATING: "whether and how one user rated one item",
    Unit.VALUE: "the value of one rating; which items a user rated is public",
}
_NEIGHBORS = {Neighbors.ADD_OR_REMOVE: "present or absent", Neighbors.REPLACE: "replaced by any other"}
_AGAINST = {
    Trust.LOCAL: "everyone, including the collector: noise is added on the user's device",
    Trust.CENTRAL: "everyone who sees the release; the controller is trusted with the data",
    Trust.JOINT: "everyone except the user who receives recommendations computed from their own history; the "
    "controller is trusted with the data",
}
_VERIFY = (
    "`discreet-verify {file}` proves or rejects the epsilon and delta from the stated releases in interval "
    "arithmetic. It shares no code with the program that made the file. {state} It doesn't check the "
    "assumptions, who wrote the file, or that the program made these releases and no others."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document of the dossier: a file name, a title, the text that it follows, and answered questions."""

    slug: str
    title: str
    follows: str
    answers: Answers

    def markdown(self) -> str:
        """Return the document as Markdown."""
        lines = [f"# {self.title}", "", self.follows]
        for question, answer in self.answers:
            lines += ["", f"## {question}", "", answer]
        return "\n".join(lines) + "\n"


def documents(found: Evidence) -> list[Document]:
    """Return all documents of a dossier but the registry entry."""
    known = parts(found)
    return [
        Document(
            slug=slug,
            title=title,
            follows=follows,
            answers=[(question, answer.format_map(known)) for question, answer in answers.items()],
        )
        for slug, title, follows, answers in _DOCUMENTS
    ]


def parts(found: Evidence) -> dict[str, str]:
    """Return everything that documents state, by name."""
    guarantee, label, facts = found.guarantee, found.label, found.facts
    known = label.get("facts", {})
    rated = known.get("low") != known.get("high")
    raw = label["guarantee"].get("read_raw_ratings")
    signals, own = found.signals, "what you rated and how" if rated else "which items you used"
    stated = {name: facts.text(name) for name in MEANINGS}
    delta = f"delta {number_above(guarantee.delta)}" if guarantee.delta else "delta 0 (pure)"
    return {
        **stated,
        "file": found.file,
        "status": status(guarantee),
        "level": f"epsilon {number_above(guarantee.epsilon)}, {delta}",
        "sentence": guarantee.sentence(),
        "odds": found.odds.sentence(),
        "protects": f"Protected is {_UNITS[guarantee.unit]}, {_NEIGHBORS[guarantee.neighbors]}.",
        "against": f"Against {_AGAINST[Trust.CENTRAL if raw else guarantee.trust]}.",
        "assumes": _assumes(found),
        "basis": _basis(found),
        "releases": _releases(found),
        "bounds": bounds(label),
        "history": _NO_LEDGER if found.ledger is None else found.ledger.sentence(),
        "made": _made(found),
        "columns": columns(label),
        "contents": _contents(found),
        "verified": _verified(found),
        "attacked": f"The authors of the package attack their models. {found.attacked}",
        "households": " ".join(
            [*(found.for_people(people) for people in (2, 4)), "The same applies to one user's accounts."]
        ),
        "leak": _LEAK,
        "unprotected": _UNPROTECTED,
        "triggers": _TRIGGERS,
        "signals": NO_MODEL if signals is None else signals.sentences(own),
        "options": _NO_PROFILING if signals is not None and not signals.history else _OPTIONS,
        "use": USE.format_map(stated),
        "period": PERIOD.format_map(stated),
        "tuning": TUNING,
        "side_channels": SIDE_CHANNELS,
        "accuracy": accuracy(facts.published),
        "erasure": ERASURE,
    }


def _assumes(found: Evidence) -> str:
    lines = listed_assumptions(found.guarantee)
    if not lines:
        return "Nothing is assumed to be public beyond the format of the data."
    return "If one of these is false, the guarantee doesn't apply: " + "; ".join(lines) + "."


def _basis(found: Evidence) -> str:
    noise = "The noise is drawn from the operating system's entropy."
    if found.guarantee.basis is Basis.PROVED:
        return f"Proved in {found.guarantee.proof}, which is part of the package. {noise}"
    return f"As published. The authors of the package could not prove it. {noise}"


def _releases(found: Evidence) -> str:
    rows = found.releases
    if not rows:
        return "The file lists no releases: it has no certificate. The ledger's events state the noise."
    listed = "; ".join(f"{name}: {mechanism}, {noise}" for name, mechanism, noise, _ in rows)
    return f"{len(rows)} releases. {listed}."


def _made(found: Evidence) -> str:
    origin = found.label.get("origin")
    day = origin.get("date") if isinstance(origin, dict) else None
    ledger = "MISSING (--ledger)" if found.ledger is None else found.ledger.date
    program = program_of(found.label) or "a version that didn't record itself"
    return (
        f"Fitted on {day or ledger} by {program}. Model {found.label['name']!r}, file {found.file!r}, format "
        f"{found.label['version']}, SHA-256 {found.sha256}. If the file has another SHA-256 now, then this "
        f"dossier isn't about it. This dossier was written with discreet {found.version}. {found.signed} "
        f"SHA-256 of the declared facts about the data: {found.facts_digest}."
    )


def _contents(found: Evidence) -> str:
    origins = by_origin(found.label["provenance"])
    return " ".join(f"{names}: {origin}." for origin, names in origins)


def _verified(found: Evidence) -> str:
    certificate = found.label.get("certificate")
    state = (
        f"The certificate in the file has the digest {certificate['digest']}."
        if isinstance(certificate, dict)
        else "This file has no certificate, so the command rejects it."
    )
    return _VERIFY.format(file=found.file, state=state)


_LEAK = (
    "The guarantee already assumes that attackers have the file, so a leak of the file reveals no more than "
    "stated here. It doesn't cover the raw data, backups, or logs of a fit: a leak of these is a leak of "
    "personal data."
)
_UNPROTECTED = (
    "What many users have in common isn't hidden: from a pattern, an attacker who knows a part of a history "
    "can infer the rest, also a sensitive one, whether or not the user is in the data."
)
_TRIGGERS = (
    "Review earlier if an assumption becomes false, the budget is raised, an audit refutes the guarantee, or "
    "a new version of the package corrects the proof."
)
#: What stands for signals if no model was measured, as for synthetic data.
NO_MODEL = (
    "MISSING: this file orders no items. State the main parameters of the recommender that you make from it."
)
_OPTIONS = (
    "You can choose recommendations without profiling: the model `popularity` lists what is popular with all "
    "users and doesn't use your history. You can also change or delete your history. Lists are computed from "
    "the history that is sent with a request."
)
_NO_PROFILING = (
    "These recommendations are without profiling: they don't use your history. A history that is sent with a "
    "request only removes the items that you know already."
)
_NO_LEDGER = "MISSING (--ledger): no ledger was given, so other releases from the same data are unknown."
_DOCUMENTS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    (
        "summary",
        "Summary for the privacy officer",
        "One page with everything that the other documents rest on.",
        {
            "Who is responsible?": "Controller: {controller}. Contact: {contact}.",
            "What is it for, and on which legal basis?": "{use}",
            "Where does it apply, how long, and when is the next review?": "{period} {triggers}",
            "What is guaranteed?": "{status}: {level}. {sentence}",
            "Who is protected from whom?": "{protects} {against}",
            "What can an attacker achieve?": "{odds}",
            "What about households?": "{households}",
            "What isn't protected?": "{unprotected}",
            "What if the file leaks?": "{leak}",
            "What does it rest on?": "{basis} {assumes}",
            "Which noise was added to which release?": "{releases}",
            "How is one user's influence bounded?": "{bounds}",
            "Which releases share the budget?": "{history}",
            "When was it made, and from what?": "{made}",
            "Which personal data does the fit read?": "{columns}",
            "What does the file contain?": "{contents}",
            "Did tuning spend budget?": "{tuning}",
            "Which side channels remain?": "{side_channels}",
            "Was it attacked?": "{attacked}",
            "Can a stranger check it?": "{verified}",
            "How accurate is it, also for small groups?": "{accuracy}",
            "What is left after an erasure?": "{erasure}",
        },
    ),
    (
        "nist-sp-800-226",
        "Evaluation by NIST SP 800-226",
        "Follows the layers of Guidelines for Evaluating Differential Privacy Guarantees (NIST, 2025), "
        "from the top of its pyramid to the bottom.",
        {
            "Privacy parameters": "{status}: {level}. {odds}",
            "Unit of privacy": "{protects} {households}",
            "Definition and composition": "{sentence} {history}",
            "Mechanisms and sensitivity": "{releases} {bounds}",
            "Correctness of the implementation": "{basis} {verified} {attacked}",
            "Utility": "{accuracy}",
            "Bias": "Noise and bounded contributions favor what many users do. Neither corrects bias in the "
            "data.",
            "Trust model": "{against}",
            "Side channels": "{side_channels}",
            "Security and access control": "{retention}.",
            "Data collection exposure": "{columns} {assumes} {use}",
        },
    ),
    (
        "w3c-note",
        "Answers for reviewers who aren't experts",
        "Follows Considerations for Reviewing Differential Privacy Systems (W3C Privacy Working Group, note "
        "draft, 2026).",
        {
            "What is released, to whom?": "One file, '{file}', to everyone who receives it. {against}",
            "What is protected?": "{protects}",
            "How strong is the protection, in plain words?": "{odds}",
            "How does it add up over time?": "{history}",
            "Which parties are trusted?": "{against}",
            "What is given up for it?": "{accuracy}",
            "What isn't protected?": "{assumes} {unprotected}",
            "How can the claim be checked?": "{verified} {attacked}",
        },
    ),
    (
        "gdpr-article-35-7",
        "Annex for a data protection impact assessment",
        "Follows Article 35(7)(a) to (d) of Regulation (EU) 2016/679. It supports the assessment of the "
        "controller and doesn't replace it.",
        {
            "(a) Description of the processing and its purposes": "{use} Interactions of users with items "
            "are bounded per user and summed. Noise is added, and a recommender is computed from the "
            "noisy sums alone. {columns} {made} {period}",
            "(b) Necessity and proportionality": "{bounds} {contents} The amount of privacy is "
            "{level}. Why it was chosen: {purpose}",
            "(c) Risks to users": "{odds} {households} {unprotected} {leak} {assumes} {side_channels}",
            "(d) Measures and safeguards": "{releases} {history} {basis} {verified} {attacked} {erasure} "
            "Access and retention: {retention}.",
        },
    ),
    (
        "dsa-article-27",
        "Text for the terms: main parameters of recommendations",
        "Follows Articles 27 and 38 of Regulation (EU) 2022/2065. To be shown to recipients of the service.",
        {
            "Main parameters": "{signals}",
            "Why these parameters": "They predict what a user chooses next. Purpose: {purpose}. No user's "
            "data can change a list of another user by more than the guarantee allows ({level}).",
            "Your options": "{options}",
            "Contact": "{contact}.",
        },
    ),
    (
        "edpb-opinion-28-2024",
        "Evidence on the anonymity of the model",
        "Follows Opinion 28/2024 of the European Data Protection Board on AI models. Whether the likelihoods "
        "below are insignificant is for the controller and the authority to decide.",
        {
            "Likelihood of extracting personal data from the model": "{odds}",
            "Likelihood of obtaining personal data by queries": "Every answer is computed from the released "
            "numbers and from the history in the query. By post-processing, queries can't reveal more "
            "about other users than the file. {status}: {level}.",
            "Design: which data is used, and how it is reduced": "{columns} {bounds} {assumes}",
            "Design: how the model learns": "{releases} {basis}",
            "Tests and resistance to attacks": "{attacked} {verified}",
            "Later releases from the same data": "{history}",
            "Documentation": "{made} {use}",
        },
    ),
)


#: The kind of its page, by which we know our own.
PAGE = "dossier"
INDEX, ENTRY, CERTIFICATE = "index.html", "registry.yaml", "certificate.json"
#: The facts of a human, with a comment for each missing one.
FACTS = "facts.toml"


def refuse_folder(out: Path, *, force: bool) -> None:
    """Raise unless a folder is new, empty, or a dossier that may be replaced."""
    if not out.exists():
        if not out.absolute().parent.is_dir():
            raise CannotWrite(path=out, why="its parent folder doesn't exist")
        return
    if not out.is_dir():
        raise NotOurs(path=out, kind="folder")
    ours = is_page(out / INDEX, kind=PAGE)
    if any(out.iterdir()) and not (ours and force):
        raise FileExists(path=out) if ours else NotOurs(path=out, kind="dossier")


def write_dossier(found: Evidence, out: Path, *, force: bool = False) -> list[str]:
    """Write all files of a dossier and return their names.

    Raises:
        FileError: The folder contains other files, or a dossier and `force` isn't set.
    """
    refuse_folder(out, force=force)
    published = None if found.ledger is None else found.ledger.date
    made = documents(found)
    files = {f"{one.slug}.md": visible(one.markdown()) for one in made}
    files[ENTRY] = registry_entry(found.label, found.facts, published=published)
    files[FACTS] = found.facts.to_toml()
    files[INDEX] = visible(_page(found, made))
    if isinstance(found.label.get("certificate"), dict):
        files[CERTIFICATE] = json.dumps(found.label["certificate"], indent=1) + "\n"
    # A folder with files that no dossier has is left as it is: it would be replaced whole.
    write_folder(
        out,
        {name: text.encode("utf-8") for name, text in files.items()},
        replaces=lambda old: {one.name for one in old.iterdir()} <= {*files, CERTIFICATE},
    )
    return sorted(files)


def _page(found: Evidence, made: list[Document]) -> str:
    title = f"Privacy dossier: {found.label['name']}"
    missing = found.facts.missing
    body = [element("h1", title)]
    if missing:
        body.append(element("p", f"Missing human facts: {', '.join(missing)}.", "warning"))
    body.append(odds_picture(found.odds))
    for one in made:
        body += [element("h2", one.title), element("p", one.follows, "quiet")]
        for question, answer in one.answers:
            body += [element("h3", question), element("p", answer)]
    if found.releases:
        body += [
            element("h2", "Releases"),
            table(("release", "mechanism", "noise", "bound"), found.releases, "Releases and their noise"),
        ]
    body += [
        element("h2", "Signature"),
        element("p", f"{found.facts.text('contact')}, for {found.facts.text('controller')}"),
        element("p", "Date and signature: ______________________________"),
    ]
    return page(title, body, kind=PAGE)
