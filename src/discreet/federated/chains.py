"""Places in the parties' chains of answered questions, as messages state them.

A party's answer states the latest place in its chain. The coordinator puts the places that it knows into its
next question, and signs the question. The keeper records the place that comes with a key, and returns it when
the party asks. So a party that was restored from an older copy sees that others know more than it does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from discreet.core.progress import logger
from discreet.federated.wire import Message, Refusal, Refused, read_json
from discreet.privacy.ledger.chain import Anchor, Chain

#: The field of a question with a place for each party, and of an answer with the party's own.
CHAINS, CHAIN = "chains", "chain"


def to_field(known: Mapping[str, Anchor]) -> str:
    """Return places by party as one field of a question."""
    return json.dumps({name: str(anchor) for name, anchor in sorted(known.items())})


def known_place(question: Message, name: str) -> Anchor:
    """Return the place that a question states for a party; the start if it states none."""
    stated = read_json(question.fields.get(CHAINS, "{}"), dict)
    try:
        return Anchor.parse(stated[name]) if name in stated else Anchor()
    except ValueError:
        raise Refused(Refusal.MALFORMED) from None


def own_place(answer: Message) -> Anchor:
    """Return the place that an answer states for its sender."""
    try:
        return Anchor.parse(answer.fields.get(CHAIN))
    except ValueError:
        raise Refused(Refusal.MALFORMED) from None


def require_contained(chain: Chain, known: Mapping[str, Anchor], run: str) -> None:
    """Raise `Refused` if a member knows a place that the party's own chain doesn't contain."""
    for member, anchor in known.items():
        if not chain.contains(anchor):
            logger.error(
                "This party's state of run %s is an older copy: the %s knows %d events of it, and the state "
                "has %d. Nothing was drawn or sent. The party can't continue this run. Agree on a new run, "
                "and keep the ledger as it is.",
                run,
                member,
                anchor.events,
                chain.latest.events,
            )
            raise Refused(Refusal.BEHIND)
