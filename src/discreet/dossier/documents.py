"""Write the documents that reviewers ask for: questions with answers that come from the evidence alone.

A document names the text that it follows. Its questions are in our own words. A missing human fact is marked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from discreet.dossier.evidence import Evidence
from discreet.privacy.guarantee import Basis, Neighbors, Trust, Unit
from discreet.report.guarantee import listed_assumptions
from discreet.report.numbers import number_above

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
_SIDE_CHANNELS = (
    "Noise is drawn as whole numbers on a public grid, so no floating-point artifact depends on the data. "
    "How long a fit takes, error messages, and logs of the fit aren't protected; they are for the controller "
    "only. A list that a user requests is computed from that user's history and must go to that user only."
)
_TUNING = (
    "The file doesn't state whether settings were chosen by fits on the same data. Such fits are releases: "
    "the ledger lists each one that was recorded. A choice by public data, by defaults, or by `discreet "
    "plan` costs nothing."
)
_ERASURE = (
    "The release was made with the user's data and isn't changed by an erasure. What it can reveal about an "
    "erased user stays bounded by the same epsilon and delta, permanently, whatever else becomes known. The "
    "next fit leaves the user out (`discreet fit --without`), and `discreet follow erase` takes a user "
    "out of later releases."
)
_ACCURACY = (
    "The file doesn't contain measured accuracy. `discreet evaluate --private` measures it at a recorded "
    "cost. Noise hides rare behavior first, so items and groups with few users get less accurate "
    "recommendations."
)
_VERIFY = (
    "`discreet-verify {file}` proves or rejects the epsilon and delta from the stated releases in interval "
    "arithmetic. It shares no code with the program that made the file. {state}"
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
    makers: list[Callable[[Evidence], Document]] = [_summary, _nist, _w3c, _gdpr, _dsa, _edpb]
    return [make(found) for make in makers]


def _level(found: Evidence) -> str:
    guarantee = found.guarantee
    delta = f"delta {number_above(guarantee.delta)}" if guarantee.delta else "delta 0 (pure)"
    return f"epsilon {number_above(guarantee.epsilon)}, {delta}"


def _protects(found: Evidence) -> str:
    guarantee = found.guarantee
    return f"Protected is {_UNITS[guarantee.unit]}, {_NEIGHBORS[guarantee.neighbors]}."


def _against(found: Evidence) -> str:
    raw = found.label["guarantee"].get("read_raw_ratings")
    return f"Against {_AGAINST[Trust.CENTRAL if raw else found.guarantee.trust]}."


def _assumes(found: Evidence) -> str:
    lines = listed_assumptions(found.guarantee)
    if not lines:
        return "Nothing is assumed to be public beyond the format of the data."
    return "If one of these is false, the guarantee doesn't apply: " + "; ".join(lines) + "."


def _basis(found: Evidence) -> str:
    if found.guarantee.basis is Basis.PROVED:
        return f"Proved in {found.guarantee.proof}, which is part of the package."
    return "As published. The authors of the package could not prove it."


def _releases(found: Evidence) -> str:
    rows = found.releases
    if not rows:
        return "The file lists no releases: it has no certificate. The ledger's events state the noise."
    listed = "; ".join(f"{name}: {mechanism}, {noise}" for name, mechanism, noise, _ in rows)
    return f"{len(rows)} releases. {listed}."


def _bounds(found: Evidence) -> str:
    cap = found.label.get("facts", {}).get("max_per_user")
    limit = "" if cap is None else f" At most {cap} ratings per user are used."
    bounds = sorted({bound for *_, bound in found.releases})
    said = f" In the releases {'; '.join(bounds)}." if bounds else ""
    return (
        "Each user's contribution is scaled down to a public length before it is added to any sum, whatever "
        f"the user did and however much.{limit}{said}"
    )


def _history(found: Evidence) -> str:
    if found.ledger is None:
        return "MISSING (--ledger): no ledger was given, so other releases from the same data are unknown."
    return found.ledger.sentence()


def _made(found: Evidence) -> str:
    day = "MISSING (--ledger)" if found.ledger is None else found.ledger.date
    return (
        f"Fitted on {day}. Model {found.label['name']!r}, file {found.file!r}, format "
        f"{found.label['version']}. This dossier was written with discreet {found.version}. {found.signed} "
        f"SHA-256 of the declared facts about the data: {found.schema_digest}."
    )


def _verified(found: Evidence) -> str:
    certificate = found.label.get("certificate")
    state = (
        f"The certificate in the file has the digest {certificate['digest']}."
        if isinstance(certificate, dict)
        else "This file has no certificate, so the command rejects it."
    )
    return _VERIFY.format(file=found.file, state=state)


def _attacked(found: Evidence) -> str:
    if found.audit is None:
        return "This kind of model has not been audited in full. An audit isn't a proof."
    return f"Last audit of this kind of model: {found.audit.sentence()}"


def _households(found: Evidence) -> str:
    return " ".join(found.for_people(people) for people in (2, 4))


def _summary(found: Evidence) -> Document:
    facts = found.facts
    return Document(
        slug="summary",
        title="Summary for the privacy officer",
        follows="One page with everything that the other documents rest on.",
        answers=[
            (
                "Who is responsible?",
                f"Controller: {facts.text('controller')}. Contact: {facts.text('contact')}.",
            ),
            ("What is it for, and on which legal basis?", _purpose(found)),
            ("Where does it apply, and how long?", _period(found)),
            ("What is guaranteed?", f"{_level(found)}. {found.guarantee.sentence()}"),
            ("Who is protected from whom?", f"{_protects(found)} {_against(found)}"),
            ("What can an attacker achieve?", found.odds.sentence()),
            ("What about households?", _households(found)),
            ("What does it rest on?", f"{_basis(found)} {_assumes(found)}"),
            ("Which noise was added to which release?", _releases(found)),
            ("How is one user's influence bounded?", _bounds(found)),
            ("Which releases share the budget?", _history(found)),
            ("When was it made, and from what?", _made(found)),
            ("Did tuning spend budget?", _TUNING),
            ("Which side channels remain?", _SIDE_CHANNELS),
            ("Was it attacked?", _attacked(found)),
            ("Can a stranger check it?", _verified(found)),
            ("How accurate is it, also for small groups?", _ACCURACY),
            ("What is left after an erasure?", _ERASURE),
        ],
    )


def _purpose(found: Evidence) -> str:
    return f"Purpose: {found.facts.text('purpose')}. Legal basis: {found.facts.text('legal_basis')}."


def _period(found: Evidence) -> str:
    facts = found.facts
    return (
        f"Region: {facts.text('region')}. Sector: {facts.text('sector')}. Retention: "
        f"{facts.text('retention')}. Next review: {facts.text('review')}."
    )


def _nist(found: Evidence) -> Document:
    return Document(
        slug="nist-sp-800-226",
        title="Evaluation by NIST SP 800-226",
        follows="Follows the layers of Guidelines for Evaluating Differential Privacy Guarantees (NIST, "
        "2025), from the top of its pyramid to the bottom.",
        answers=[
            ("Privacy parameters", f"{_level(found)}. {found.odds.sentence()}"),
            ("Unit of privacy", f"{_protects(found)} {_households(found)}"),
            ("Definition and composition", f"{found.guarantee.sentence()} {_history(found)}"),
            ("Mechanisms and sensitivity", f"{_releases(found)} {_bounds(found)}"),
            ("Correctness of the implementation", f"{_basis(found)} {_verified(found)} {_attacked(found)}"),
            ("Utility", _ACCURACY),
            (
                "Bias",
                "Noise and bounded contributions favor what many users do. Neither corrects bias in the "
                "data.",
            ),
            ("Trust model", _against(found)),
            ("Side channels", _SIDE_CHANNELS),
            ("Security and access control", f"{found.facts.text('retention')}."),
            ("Data collection exposure", f"{_assumes(found)} {_purpose(found)}"),
        ],
    )


def _w3c(found: Evidence) -> Document:
    return Document(
        slug="w3c-note",
        title="Answers for reviewers who aren't experts",
        follows="Follows Considerations for Reviewing Differential Privacy Systems (W3C Privacy Working "
        "Group, note draft, 2026).",
        answers=[
            (
                "What is released, to whom?",
                f"One file, {found.file!r}, to everyone who receives it. {_against(found)}",
            ),
            ("What is protected?", _protects(found)),
            ("How strong is the protection, in plain words?", found.odds.sentence()),
            ("How does it add up over time?", _history(found)),
            ("Which parties are trusted?", _against(found)),
            ("What is given up for it?", _ACCURACY),
            ("What isn't protected?", f"{_assumes(found)} What many users have in common isn't hidden."),
            ("How can the claim be checked?", f"{_verified(found)} {_attacked(found)}"),
        ],
    )


def _gdpr(found: Evidence) -> Document:
    return Document(
        slug="gdpr-article-35-7",
        title="Annex for a data protection impact assessment",
        follows="Follows Article 35(7)(a) to (d) of Regulation (EU) 2016/679. It supports the assessment of "
        "the controller and doesn't replace it.",
        answers=[
            (
                "(a) Description of the processing and its purposes",
                f"{_purpose(found)} Interactions of users with items are bounded per user and summed. Noise "
                f"is added, and a recommender is computed from the noisy sums alone. {_made(found)} "
                f"{_period(found)}",
            ),
            (
                "(b) Necessity and proportionality",
                f"{_bounds(found)} No row of a user is stored in the file. The amount of privacy is "
                f"{_level(found)}. Why it was chosen: {found.facts.text('purpose')}",
            ),
            (
                "(c) Risks to users",
                f"{found.odds.sentence()} {_households(found)} {_assumes(found)} {_SIDE_CHANNELS}",
            ),
            (
                "(d) Measures and safeguards",
                f"{_releases(found)} {_history(found)} {_basis(found)} {_verified(found)} {_attacked(found)} "
                f"{_ERASURE} Access and retention: {found.facts.text('retention')}.",
            ),
        ],
    )


def _dsa(found: Evidence) -> Document:
    rated = found.label.get("facts", {}).get("low") != found.label.get("facts", {}).get("high")
    signals = "what you rated and how" if rated else "which items you used"
    return Document(
        slug="dsa-article-27",
        title="Text for the terms: main parameters of recommendations",
        follows="Follows Articles 27 and 38 of Regulation (EU) 2022/2065. To be shown to recipients of "
        "the service.",
        answers=[
            (
                "Main parameters",
                f"We order items by three signals. The most important one is your own history: {signals}, "
                "and in which order if times are known. The second one is what users with a similar history "
                "chose, from noisy sums over all users. The third one is how popular an item is.",
            ),
            (
                "Why these parameters",
                f"They predict what a user chooses next. Purpose: {found.facts.text('purpose')}. No user's "
                f"data can change a list of another user by more than the guarantee allows "
                f"({_level(found)}).",
            ),
            (
                "Your options",
                "You can choose recommendations without profiling: the model `popularity` lists what is "
                "popular with all users and doesn't use your history. You can also change or delete your "
                "history. Lists are computed from the history that is sent with a request.",
            ),
            ("Contact", f"{found.facts.text('contact')}."),
        ],
    )


def _edpb(found: Evidence) -> Document:
    return Document(
        slug="edpb-opinion-28-2024",
        title="Evidence on the anonymity of the model",
        follows="Follows Opinion 28/2024 of the European Data Protection Board on AI models. Whether the "
        "likelihoods below are insignificant is for the controller and the authority to decide.",
        answers=[
            ("Likelihood of extracting personal data from the model", found.odds.sentence()),
            (
                "Likelihood of obtaining personal data by queries",
                "Every answer is computed from the released numbers and from the history in the query. By "
                f"post-processing, queries can't reveal more about other users than the file: "
                f"{_level(found)}.",
            ),
            ("Design: which data is used, and how it is reduced", f"{_bounds(found)} {_assumes(found)}"),
            ("Design: how the model learns", f"{_releases(found)} {_basis(found)}"),
            ("Tests and resistance to attacks", f"{_attacked(found)} {_verified(found)}"),
            ("Later releases from the same data", _history(found)),
            ("Documentation", f"{_made(found)} {_purpose(found)}"),
        ],
    )
