"""Read the assumptions of a stored guarantee: objects now, sentences in files of 0.1 and 0.2.

Each sentence that those versions wrote is listed here once, word for word. Only a whole sentence counts. A
sentence that isn't listed becomes a condition, since it may have been one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from discreet.core.checks import ParameterError
from discreet.privacy.guarantee import Assumption, Fact, Kind

_Reader = Callable[[re.Match[str]], tuple[Assumption, ...]]
_WHOLE = r"\d{1,3}(?:,?\d{3}){0,6}"
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?"
_FROM_FILE = r"(?P<taken> \(taken from the file\))?"
_RAW = "this fit read the raw ratings: nothing is hidden from whoever ran it"


def read_assumptions(assumes: Any, notes: Any) -> tuple[Assumption, ...]:
    """Return the assumptions in a stored guarantee. Older versions kept the one about raw ratings in a note.

    Raises:
        TypeError, KeyError, ParameterError: Something else is stored there.
    """
    if not isinstance(assumes, list):
        raise TypeError("a list of assumptions was expected")
    found: list[Assumption] = []
    for one in assumes:
        found += assumed_in(one) if isinstance(one, str) else [Assumption.from_json(one)]
    if _RAW in _texts(notes):
        found.append(Assumption.of(Kind.RAW, Fact.RAW_RATINGS))
    return tuple(found)


def read_notes(notes: Any) -> tuple[str, ...]:
    """Return the notes in a stored guarantee."""
    return tuple(note for note in _texts(notes) if note != _RAW)


def assumed_in(sentence: str) -> tuple[Assumption, ...]:
    """Return the assumption of an older version's sentence. An unknown sentence is a condition."""
    try:
        return next(_readings(sentence))
    except (StopIteration, ParameterError, OverflowError):
        return (Assumption.of(Kind.UNKNOWN, Fact.STATEMENT, text=sentence),)


def _readings(sentence: str) -> Iterator[tuple[Assumption, ...]]:
    for pattern, reader in _SENTENCES.items():
        match = re.fullmatch(pattern, sentence, re.ASCII)
        if match is not None:
            yield reader(match)


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("a list of texts was expected")
    return values


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _origin(match: re.Match[str]) -> Kind:
    return Kind.TAKEN if match["taken"] else Kind.DECLARED


def _always(kind: Kind, *facts: Fact) -> _Reader:
    return lambda match: tuple(Assumption.of(kind, fact) for fact in facts)


def _scale(match: re.Match[str]) -> tuple[Assumption, ...]:
    step = None if match["step"] is None else float(match["step"])
    low, high = float(match["low"]), float(match["high"])
    return (Assumption.of(_origin(match), Fact.SCALE, low=low, high=high, step=step),)


def _prior(match: re.Match[str]) -> tuple[Assumption, ...]:
    simulated = match["simulated"] is not None
    epsilon, delta = float(match["epsilon"]), float(match["delta"])
    return (Assumption.of(Kind.EARLIER, Fact.PRIOR, epsilon=epsilon, delta=delta, simulated=simulated),)


def _unstated_prior(match: re.Match[str]) -> tuple[Assumption, ...]:
    return (Assumption.of(Kind.EARLIER, Fact.PRIOR, epsilon=None, delta=None, simulated=None),)


def _most_users(match: re.Match[str]) -> tuple[Assumption, ...]:
    most = (1 << 24) - 1 if match["users"] == "2^24 - 1" else _whole(match["users"])
    return (Assumption.of(Kind.PARTY, Fact.MOST_USERS, users=most),)


# Each pattern must match a whole sentence.
_SENTENCES: dict[str, _Reader] = {
    rf"the catalog of (?P<items>{_WHOLE}) items is public{_FROM_FILE}": lambda match: (
        Assumption.of(_origin(match), Fact.CATALOG, items=_whole(match["items"])),
    ),
    r"the catalog was chosen from the data with noise, which is paid for": _always(
        Kind.SELECTED, Fact.CATALOG
    ),
    (
        rf"ratings lie in (?P<low>{_NUMBER}) to (?P<high>{_NUMBER})(?: in steps of (?P<step>{_NUMBER}))?"
        rf"{_FROM_FILE}"
    ): _scale,
    rf"(?:ratings lie in one value only|a row says only that something was chosen){_FROM_FILE}": (
        lambda match: (Assumption.of(_origin(match), Fact.INTERACTIONS),)
    ),
    r"the scale was chosen from the data with noise, which is paid for; ratings are clipped": _always(
        Kind.SELECTED, Fact.SCALE
    ),
    r"which items were picked from the catalog was decided without looking at the ratings": _always(
        Kind.DECLARED, Fact.PICKED_ITEMS
    ),
    rf"at most (?P<ratings>{_WHOLE}) ratings of a person are used": lambda match: (
        Assumption.of(Kind.DECLARED, Fact.CAP, ratings=_whole(match["ratings"])),
    ),
    (
        rf"it is known that there are about (?P<users>{_WHOLE}) people"
        r"(?P<taken> \(taken from the file(?: and rounded to a power of two)?\))?"
    ): lambda match: (Assumption.of(_origin(match), Fact.USERS, users=_whole(match["users"])),),
    r"which items were rated is public": _always(Kind.DECLARED, Fact.RATED_ITEMS),
    rf"a person has at most (?P<ratings>{_WHOLE}) ratings": lambda match: (
        Assumption.of(Kind.DECLARED, Fact.RATINGS_PER_USER, ratings=_whole(match["ratings"])),
    ),
    r"whether the data have times is public": _always(Kind.DECLARED, Fact.TIMES),
    r"the table of item features is public": _always(Kind.DECLARED, Fact.ITEM_FEATURES),
    r"who takes part is public": _always(Kind.DECLARED, Fact.PARTICIPATION),
    r"who took part and which items each person rated is public": _always(
        Kind.DECLARED, Fact.PARTICIPATION, Fact.RATED_ITEMS
    ),
    rf"ratings above (?P<above>{_NUMBER}) are likes: a public choice": lambda match: (
        Assumption.of(Kind.DECLARED, Fact.THRESHOLD, threshold=float(match["above"])),
    ),
    r"ratings above their mean, which is paid for, are likes": _always(Kind.SELECTED, Fact.THRESHOLD),
    r"devices draw their own noise and answer once for an item": _always(Kind.USE, Fact.DEVICES),
    (
        rf"the model that this fit starts from is an earlier release with epsilon=(?P<epsilon>{_NUMBER}), "
        rf"delta=(?P<delta>{_NUMBER}) of its own(?P<simulated>; its noise was simulated)?"
    ): _prior,
    r"the model that this fit starts from is an earlier release(?:, whatever it promises)?": _unstated_prior,
    (
        rf"the scored model \((?P<model>.*)\) was released before, with epsilon=(?P<epsilon>{_NUMBER}), "
        r"(?P<definition>[a-z-]+/[a-z-]+/[a-z-]+), of its own"
    ): lambda match: (
        Assumption.of(
            Kind.EARLIER,
            Fact.SCORED_MODEL,
            model=match["model"],
            epsilon=float(match["epsilon"]),
            definition=match["definition"],
        ),
    ),
    r"the scored model \((?P<model>.*)\) was learned from public data": lambda match: (
        Assumption.of(Kind.DECLARED, Fact.SCORED_MODEL, model=match["model"]),
    ),
    r"the data are (?P<origin>synthetic.*); this promise is about the synthetic users alone": lambda match: (
        Assumption.of(Kind.SYNTHETIC, Fact.DATA, origin=match["origin"]),
    ),
    r"the budget is (?P<period>[a-z]+); what earlier periods released is not counted": lambda match: (
        Assumption.of(Kind.LEDGER, Fact.RENEWAL, period=match["period"]),
    ),
    r"the budget was started anew: (?P<reason>(?s:.*))": lambda match: (
        Assumption.of(Kind.LEDGER, Fact.NEW_START, reason=match["reason"]),
    ),
    r"all releases of a followed year are counted in the budget's period in which it was paid": _always(
        Kind.LEDGER, Fact.PERIOD_OF_A_YEAR
    ),
    r"when releases are made and when items were declared is public": _always(
        Kind.DECLARED, Fact.RELEASE_TIMES
    ),
    r"a user has one id all year": _always(Kind.USE, Fact.ONE_ID),
    r"no release is drawn again from an older copy of the state": _always(Kind.BACKUP, Fact.STATE),
    r"each person's choices are held by one party, or each party's promise is added": _always(
        Kind.PARTY, Fact.ONE_PARTY
    ),
    r"whether a party's new ratings can be read is public": _always(Kind.PARTY, Fact.READABLE),
    (
        r"whether a party's new ratings can be read is public; "
        r"text in its Parquet files is (?:valid Unicode|UTF-8)"
    ): _always(Kind.PARTY, Fact.READABLE, Fact.UNICODE),
    (
        r"whether a party's new ratings can be read is public, "
        r"and no party has more than (?P<users>2\^24 - 1) users a year"
    ): lambda match: (*_always(Kind.PARTY, Fact.READABLE)(match), *_most_users(match)),
    (
        rf"no party has more than (?P<users>2\^24 - 1|{_WHOLE}) users a year, "
        r"and none began its year again after its state was lost"
    ): lambda match: (*_most_users(match), *_always(Kind.BACKUP, Fact.RESTART)(match)),
    (
        r"the coordinator and the keeper of masks (?:do not work together; the keeper reveals one sum a step"
        r"|follow the rounds and do not work together)"
    ): _always(Kind.PARTY, Fact.COLLUSION),
    (
        rf"(?:of the parties in each sum at least (?P<now>{_WHOLE})|at least (?P<before>{_WHOLE}) of "
        rf"{_WHOLE} parties) add their share of noise and tell nobody"
    ): lambda match: (
        Assumption.of(Kind.PARTY, Fact.NOISE_SHARES, parties=_whole(match["now"] or match["before"])),
    ),
    (
        r"(?:(?P<coordinator>a coordinator that works with one party)|another party) knows "
        rf"(?:a share of the noise|its own share); against it the promise is epsilon=(?P<epsilon>{_NUMBER})"
    ): lambda match: (
        Assumption.of(
            Kind.PARTY,
            Fact.KNOWN_SHARE,
            epsilon=float(match["epsilon"]),
            coordinator=match["coordinator"] is not None,
        ),
    ),
    (
        r"if coordinator and keeper work together, a party's own share promises "
        rf"epsilon=(?P<epsilon>{_NUMBER})"
    ): lambda match: (Assumption.of(Kind.PARTY, Fact.ONE_SHARE, epsilon=float(match["epsilon"])),),
}
