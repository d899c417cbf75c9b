"""`discreet party`: take part in a federation with one's own data.

The audit of a party is here, too. It records a whole run at one party and replays it with one of its users
added, removed or replaced. With the same mechanism outputs the party must send the same bytes, and the
difference of its answers must cost no more than its own share of the noise promises.
`discreet audit MODEL --view report` runs it.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.audit.findings import Finding
from discreet.audit.full import REPORT, SMALL
from discreet.audit.neighboring import neighboring
from discreet.audit.white_box.costs import price
from discreet.audit.white_box.recording import Player, Recorder, StrayError
from discreet.audit.white_box.structure import ROUNDING
from discreet.cli.options.declared import AllowUnbudgeted, Columns
from discreet.cli.options.parsing import checked_name, parse_columns
from discreet.cli.output.printing import remark, show
from discreet.core.checks import BudgetError, PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.federated.coordinator import Coordinator
from discreet.federated.keeper import Keeper
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.transport import InProcess
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.ledger.book import Ledger

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.federated.protocols.protocol import ItemProtocol
    from discreet.models.estimator import Estimator
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger.book import Ledger


def serve(
    folder: Annotated[Path, typer.Argument(help="The party's folder that `federation init` wrote.")],
    data: Annotated[str, typer.Option("--data", help="The party's ratings; they never leave this machine.")],
    ledger: Annotated[Path, typer.Option("--ledger", help="The party's ledger, which pays for the run.")],
    name: Annotated[str | None, typer.Option("--name", help="The data's name in the ledger.")] = None,
    columns: Columns = None,
    salt: Annotated[
        Path | None, typer.Option("--salt", help="The shared secret with which item ids were hashed.")
    ] = None,
    flower: Annotated[
        Path | None, typer.Option("--flower", help="The folder of Flower's programs. Default: beside ours.")
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Do not start Flower's SuperNode; it is started elsewhere.")
    ] = False,
    allow_unbudgeted: AllowUnbudgeted = False,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to the promise without a prompt.")] = False,
) -> None:
    """Show the run's promise and cost for the party's people; after consent, answer until stopped."""
    from discreet import recipes
    from discreet.data.inputs import open_data
    from discreet.federated.catalogs import read_salt, salted_data
    from discreet.federated.identity.agreement import Agreement
    from discreet.federated.protocols.estimator_sums import protocol_for
    from discreet.federated.serving.party import PartyDaemon
    from discreet.privacy.ledger.book import Ledger

    agreement = Agreement.read(folder)
    estimator = recipes.from_toml(agreement.recipe)
    protocol = protocol_for(estimator, agreement.facts, agreement.noise)
    facts, implicit = agreement.facts, estimator.feedback == "implicit"
    people = open_data(
        data,
        columns=parse_columns(columns),
        name=checked_name(name),
        implicit=implicit,
        low=facts.low,
        high=facts.high,
        step=facts.step,
        max_per_user=facts.max_per_user,
        catalog=None if salt is not None else agreement.catalog,
    )
    if salt is not None:
        people = salted_data(people, read_salt(salt), agreement.catalog, facts)
    book = Ledger.open(ledger, allow_unbudgeted=allow_unbudgeted)
    book.refuse_unbudgeted(people.name)
    promise = protocol.promise(facts)
    show(promise.label(f"What this run promises {people.name}'s people, and costs them"))
    _require_cover(book, people.name, promise)
    if not yes and not typer.confirm(f"Take part in run {agreement.run!r}, paid from {ledger}?"):
        raise PrivacyError("Nothing was answered and nothing was paid.")
    with PartyDaemon(folder, agreement, protocol, people, book) as daemon:
        if not alone:
            daemon.start_flower(flower)
        remark(f"{daemon.name} listens at {daemon.path}. Stop with Ctrl-C; start again to resume.")
        daemon.run()


def _require_cover(book: Ledger, name: str, promise: Guarantee) -> None:
    """Refuse a run that the ledger's budget does not cover, before other members wait for this party."""
    left = book.remaining(name)
    paid = any(entry.guarantee.epsilon == promise.epsilon for entry in book.entries(name))
    if left is not None and left.epsilon < promise.epsilon and not paid:
        raise BudgetError(
            f"The run costs epsilon={promise.epsilon:g}, and {name!r} has {left.epsilon:g} left. "
            "Nothing was paid. Raise the budget with `discreet budget`."
        )


_NOISE = SharedNoise(parties=3, missing=1)
_AUDITED, *_OTHERS = "audited", "second", "third"


def price_a_party(name: str, estimator: Estimator) -> Finding:
    """Return the exact privacy loss of a party's answers against the promise of its own share of the noise.

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
    ).train(others.facts)
    return sent
