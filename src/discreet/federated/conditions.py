"""State in each answer what a party's guarantee assumes about how its data were read.

A coordinator reads no party's data, so only the party knows whether its file's layout was guessed. An answer
names facts, never their values: a layout quotes names of columns, and no party may write onto the label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from discreet.data import PublicFacts
from discreet.federated.wire import Message, Refusal, Refused
from discreet.privacy import Assumption, Fact, Kind, assumptions_of, reading_of

#: The field of an answer that names the facts.
ASSUMES = "assumes"
_DECLARED = frozenset({Fact.FRAME, Fact.READABLE, Fact.QUOTES})
_TAKEN = frozenset({Fact.LAYOUTS_OF_PARTIES, Fact.FACTS_OF_PARTIES})
#: Answers of earlier versions name nothing, so the party may have taken any fact from its data.
UNSTATED = frozenset({Fact.FACTS_OF_PARTIES})


def named_facts(facts: PublicFacts) -> str:
    """Return the value of the field for a party whose data have these facts."""
    conditions = [one for one in assumptions_of(facts) if one.is_condition]
    return ",".join(sorted({_name(one) for one in (*conditions, *reading_of(facts))}))


def _name(one: Assumption) -> Fact:
    """Return the name of an assumption on the wire, which every version knows."""
    if one.fact is Fact.LAYOUT:
        return Fact.LAYOUTS_OF_PARTIES
    if one.fact in _DECLARED and not one.is_condition:
        return one.fact
    # Such as a choice of rows or a query. It has values, so the label names the party in their place.
    return Fact.FACTS_OF_PARTIES


def read_facts(answer: Message) -> frozenset[Fact]:
    """Return the facts that an answer names; raise `Refused` if it names anything else."""
    value = answer.fields.get(ASSUMES)
    if value is None:
        return UNSTATED
    known = {fact.value: fact for fact in _DECLARED | _TAKEN}
    names = str(value).split(",") if value else []
    if not isinstance(value, str) or not set(names) <= set(known) or len(set(names)) < len(names):
        raise Refused(Refusal.MALFORMED)
    return frozenset(known[name] for name in names)


def assumptions_at(parties: Iterable[tuple[str, Iterable[Fact]]]) -> tuple[Assumption, ...]:
    """Return what the model's guarantee assumes about the data of all counted parties, by party and facts."""
    members: Mapping[Fact, set[str]] = {fact: set() for fact in (*sorted(_TAKEN), *sorted(_DECLARED))}
    for name, facts in parties:
        for fact in facts:
            members[fact].add(name)
    return tuple(
        Assumption.of(Kind.TAKEN, fact, members=", ".join(sorted(names)))
        if fact in _TAKEN
        else Assumption.of(Kind.DECLARED, fact)
        for fact, names in members.items()
        if names
    )
