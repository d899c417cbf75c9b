"""Price what a party of a federation sends, as whoever lifts its masks would see it.

A whole run is recorded at one party and replayed with one of its people more, less or other: told the same,
it must send the same bytes, and what its answers differ by must cost no more than its own share of the noise
promises. `discreet audit MODEL --view report` shows it.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from discreet.audit.findings import Finding
from discreet.audit.full import REPORT, SMALL
from discreet.audit.white_box.prices import price
from discreet.audit.white_box.structure import ROUNDING
from discreet.audit.white_box.tape import Player, Recorder, StrayError
from discreet.audit.worlds import neighboring
from discreet.federated.coordinator import Coordinator
from discreet.federated.keeper import Keeper
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.choosing import protocol_for
from discreet.federated.transport import InProcess
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.ledger.book import Ledger
from discreet.randomness import PrivacyRandom

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.federated.protocols.protocol import ItemProtocol
    from discreet.models.estimator import Estimator

_NOISE = SharedNoise(parties=3, missing=1)
_AUDITED, *_OTHERS = "audited", "second", "third"


def price_a_party(name: str, estimator: Estimator) -> Finding:
    """Return the exact price of a party's answers against what its own share of the noise promises.

    Raises:
        ParameterError: The model cannot run over parties.
    """
    start, fits, paid, leaks = time.perf_counter(), 0, 0.0, []
    facts = SMALL.facts(implicit=estimator.feedback == "implicit")
    protocol = protocol_for(estimator, facts, _NOISE)
    delta = estimator.delta
    own = gaussian_multiplier(estimator.epsilon, delta) / math.sqrt(_NOISE.least_parties)
    promised = gaussian_epsilon(own, delta)
    for worlds in neighboring(estimator, SMALL):
        recorder = Recorder()
        sent = _sent(protocol, worlds.base, worlds.base, recorder)
        for world, data in worlds.others.items():
            player = Player(recorder.passages)
            try:
                same = _sent(protocol, data, worlds.base, player) == sent
                player.finish()
            except StrayError as error:
                leaks.append(f"{world}: {error}")
                continue
            leaks += [] if same else [f"{world}: told the same, the party sends something else"]
            paid = max(paid, price(recorder.passages, player.passages).epsilon(delta))
        fits += 1 + len(worlds.others)
    return Finding(
        model=name,
        attack=REPORT,
        promised=promised,
        delta=delta,
        refuted=math.inf if leaks else paid,
        confidence=1.0,
        fits=fits,
        seconds=time.perf_counter() - start,
        notes=(*leaks[:3], f"one of {_NOISE.parties} parties, with its masks lifted"),
        broken=bool(leaks) or paid > promised * (1 + ROUNDING),
    )


def _sent(
    protocol: ItemProtocol, data: Interactions, others: Interactions, tape: Recorder | Player
) -> list[bytes]:
    """Run a federation whose first party's draws pass the tape; return all that this party sends."""
    sent: list[bytes] = []
    everybody = (_AUDITED, *_OTHERS)
    keeper = Keeper(roster=list(everybody), least=_NOISE.least_parties)
    members = {
        name: Party(
            name,
            data if name == _AUDITED else others,
            protocol,
            run="audit",
            ledger=Ledger.in_memory(),
            random=PrivacyRandom.taped(0, tape) if name == _AUDITED else PrivacyRandom.simulate(number),
            keeper=keeper,
        )
        for number, name in enumerate(everybody)
    }

    def audited(question: bytes) -> bytes:
        sent.append(members[_AUDITED].answer(question))
        return sent[-1]

    endpoints = {_AUDITED: audited, **{name: members[name].answer for name in _OTHERS}}
    Coordinator(
        protocol,
        InProcess(endpoints),
        parties=list(everybody),
        shared=others.catalog,
        run="audit",
        keeper=keeper,
    ).train(others.facts)
    return sent
