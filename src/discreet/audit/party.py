"""Compute what a party of a federation reveals to an attacker who removes its masks."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from discreet.audit.errors import StrayError
from discreet.audit.findings import Finding
from discreet.audit.full import REPORT, SMALL
from discreet.audit.neighboring import neighboring
from discreet.audit.white_box.costs import price
from discreet.audit.white_box.recording import Player, Recorder
from discreet.audit.white_box.structure import ROUNDING
from discreet.core.randomness import PrivacyRandom
from discreet.federated.coordinator import Coordinator
from discreet.federated.keeper import Keeper
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.transport import InProcess
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.ledger.ledger import Ledger

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.federated.protocols.protocol import ItemProtocol
    from discreet.models.estimator import Estimator
    from discreet.privacy.ledger.ledger import Ledger


_AUDITED, *_OTHERS = "audited", "second", "third"
_NOISE = SharedNoise(parties=3, missing=1)


def price_a_party(name: str, estimator: Estimator) -> Finding:
    """Return the exact privacy loss of a party's answers against the guarantee of its own share of the noise.

    Raises:
        ParameterError: The model cannot run over parties.
    """
    start, fits, paid, leaks = time.perf_counter(), 0, 0.0, []
    facts = SMALL.facts(implicit=estimator.feedback == "implicit")
    protocol = protocol_for(estimator, facts, _NOISE)
    delta = estimator.delta
    own = gaussian_multiplier(estimator.epsilon, delta) / math.sqrt(_NOISE.least_parties)
    promised = gaussian_epsilon(own, delta)
    for neighbors in neighboring(estimator, SMALL):
        recorder = Recorder()
        sent = _sent(protocol, neighbors.base, neighbors.base, recorder)
        for dataset, data in neighbors.others.items():
            player = Player(recorder.calls)
            try:
                same = _sent(protocol, data, neighbors.base, player) == sent
                player.finish()
            except StrayError as error:
                leaks.append(f"{dataset}: {error}")
                continue
            leaks += (
                [] if same else [f"{dataset}: with the same mechanism outputs the party sends other bytes"]
            )
            paid = max(paid, price(recorder.calls, player.calls).epsilon(delta))
        fits += 1 + len(neighbors.others)
    return Finding(
        model=name,
        attack=REPORT,
        promised=promised,
        delta=delta,
        refuted=math.inf if leaks else paid,
        confidence=1.0,
        fits=fits,
        seconds=time.perf_counter() - start,
        notes=(*leaks[:3], f"one of {_NOISE.parties} parties, with its masks removed"),
        broken=bool(leaks) or paid > promised * (1 + ROUNDING),
    )


def _sent(
    protocol: ItemProtocol, data: Interactions, others: Interactions, recording: Recorder | Player
) -> list[bytes]:
    """Run a federation with the first party's mechanism calls recorded; return all that this party sends."""
    sent: list[bytes] = []
    member_names = (_AUDITED, *_OTHERS)
    keeper = Keeper(roster=list(member_names), least=_NOISE.least_parties)
    members = {
        name: Party(
            name,
            data if name == _AUDITED else others,
            protocol,
            run="audit",
            ledger=Ledger.in_memory(),
            random=PrivacyRandom.recorded(0, recording)
            if name == _AUDITED
            else PrivacyRandom.simulate(number),
            keeper=keeper,
        )
        for number, name in enumerate(member_names)
    }

    def audited(question: bytes) -> bytes:
        sent.append(members[_AUDITED].answer(question))
        return sent[-1]

    endpoints = {_AUDITED: audited, **{name: members[name].answer for name in _OTHERS}}
    Coordinator(
        protocol,
        InProcess(endpoints),
        parties=list(member_names),
        shared=others.catalog,
        run="audit",
        keeper=keeper,
        simulated=True,
    ).train(others.facts)
    return sent
