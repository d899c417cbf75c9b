"""Run Algorithm 1: in each round send a question to all parties, collect their answers and combine them.

A round's result is stored before the next one begins, so a coordinator resumes after a crash.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np

from discreet.core import Progress, integer, require, silent
from discreet.data import PublicFacts, Vocabulary
from discreet.federated.asking import Asking, Round, agreed_terms
from discreet.federated.conditions import UNSTATED, assumptions_at
from discreet.federated.errors import NoModelFromSum, TooManySteps, UseRunRounds
from discreet.federated.journal import Journal
from discreet.federated.keeper import Line
from discreet.federated.protocols.protocol import Exchange, Protocol, StepResult, names_digest
from discreet.federated.transport import Transport
from discreet.federated.wire import CHAINS, Message, places_to_field
from discreet.models import FittedModel, Scorer
from discreet.privacy import Anchor, Fact
from discreet.privacy.certificate import certificate

_MOST_STEPS = 1000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The model of a run and its rounds, as `Coordinator.train` returns them.

    Example:
        >>> from discreet import PrivacyRandom
        >>> from discreet.federated import SummedStatistics, simulate_parties
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> protocol = SummedStatistics(epsilon=2.0)
        >>> run = simulate_parties(protocol, films.without_ratings(), 3, random=PrivacyRandom.simulate(0))
        >>> len(run.rounds) > 1, run.model.guarantee.simulated
        (True, True)

    Stability
        Stable.
    """

    model: FittedModel
    rounds: tuple[Round, ...]

    @property
    def left_out(self) -> dict[str, int]:
        """Return how often parties were excluded from a round, by reason."""
        return dict(Counter(reason for entry in self.rounds for reason in entry.left_out.values()))

    @property
    def refused(self) -> dict[str, int]:
        """Return how many messages were rejected, by reason."""
        total: Counter[str] = Counter()
        for entry in self.rounds:
            total.update(entry.refused)
        return dict(total)


@final
class Coordinator:
    """Send questions and combine answers until the protocol is finished.

    Use it on one machine that reaches all parties. It needs no data. `discreet federation run` does this over
    Flower.

    Guarantee
        None of its own: parties guarantee, and need not trust it. The model has the weakest guarantee that a
        counted party stated.

    Parameters:
        protocol: The protocol that the parties agreed on.
        parties: The names of the parties; messages of others are rejected.
        shared: What the parties share: the catalog of items, or the names of users.
        run: The run's name, new for every run.
        seconds: How long a round waits for answers.
        least: The fewest answers a round may have; more if the noise is shared.
        state: A file that makes the run resumable after a crash.
        keeper: The line to the keeper of masks, for protocols with shared noise.
        promises: The epsilon and delta of parties whose guarantee is not the protocol's, by name. An answer
            that states a different guarantee than agreed is rejected, and its party is excluded by name.
        simulated: Whether parties may state that their noise is simulated, as in experiments.

    Example:
        >>> from discreet import Popularity, PrivacyRandom
        >>> from discreet.federated import Coordinator, InProcess, Keeper, Party, SharedNoise, protocol_for
        >>> from discreet.federated.simulation import split_users
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> own = split_users(films, 3)
        >>> protocol = protocol_for(Popularity(epsilon=2.0), films.facts, SharedNoise(parties=3, missing=1))
        >>> keeper = Keeper(roster=list(own), least=protocol.noise.least_parties)
        >>> parties = {name: Party(name, data, protocol, run="spring", keeper=keeper,
        ...         random=PrivacyRandom.simulate(0)).answer for name, data in own.items()}
        >>> coordinator = Coordinator(protocol, InProcess(parties), parties=list(own), shared=films.catalog,
        ...         run="spring", simulated=True, keeper=keeper)
        >>> coordinator.train(films.facts).model.guarantee.epsilon
        2.0

    Stability
        Stable.
    """

    def __init__(
        self,
        protocol: Protocol,
        transport: Transport,
        *,
        parties: Sequence[str],
        shared: Vocabulary,
        run: str,
        promises: Mapping[str, tuple[float, float]] | None = None,
        simulated: bool = False,
        seconds: float = 60.0,
        least: int = 1,
        state: str | Path | None = None,
        keeper: Line | None = None,
    ) -> None:
        self._protocol, self._shared, self._run = protocol, shared, run
        terms = agreed_terms(parties, protocol.epsilon, protocol.delta, promises or {}, simulated=simulated)
        integer("least", least, least=1, most=len(parties))
        self._journal = Journal(state)
        self._asking = Asking(
            run=run,
            judge=protocol,
            transport=transport,
            terms=terms,
            least=max(least, protocol.noise.least_parties),
            seconds=seconds,
            keeper=keeper,
            journal=self._journal,
        )

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Return the rounds finished so far, those before a crash included."""
        return tuple(_read(message) for message in self._asking.own() if "round" in message.fields)

    def train(self, facts: PublicFacts, progress: Progress = silent) -> RunOutcome:
        """Run all rounds that are not finished yet and return the model of the shared items.

        Raises:
            FederationError: Too few parties answered a round; the run can be resumed.
        """
        if not self._protocol.joint:
            raise UseRunRounds
        size = len(self._shared)
        require(facts.n_items == size, "facts.n_items", facts.n_items, must="be the size of the catalog")
        with closing(self._protocol.begin(size)) as run:
            return self._outcome(facts, self._finish(run, progress), run)

    def run_rounds(self, progress: Progress = silent) -> tuple[Round, ...]:
        """Run all rounds that are not finished yet and return all of them.

        Raises:
            FederationError: Too few parties answered a round; the run can be resumed.
        """
        with closing(self._protocol.begin(len(self._shared))) as run:
            return self._finish(run, progress)

    def _finish(self, run: Exchange, progress: Progress) -> tuple[Round, ...]:
        """Hand a run the results that were kept, then ask and answer until it ends."""
        rounds = list(self.rounds)
        for entry in rounds:
            run.answer(entry.result)
        for _ in range(_MOST_STEPS):
            question = self._question(rounds, run)
            if question is None:
                return tuple(rounds)
            entry = self._asking.round(question, len(self._shared))
            self._go_on(run, entry, question.step)
            self._journal.keep(_kept(entry, self._run, question.step))
            rounds.append(entry)
            progress(self._protocol.name, len(rounds), len(rounds) + 1)
        raise TooManySteps(most=_MOST_STEPS)

    def _go_on(self, run: Exchange, entry: Round, step: int) -> None:
        """Hand a result to the run; one that it can't go on with is not kept."""
        try:
            with np.errstate(all="ignore"):
                run.answer(entry.result)
                if run.question() is None and self._protocol.joint:
                    _require_finite(run.scorer())
        except (ValueError, ArithmeticError) as error:
            parties, why = tuple(sorted(entry.counted)), type(error).__name__
            raise NoModelFromSum(step=step, parties=parties, why=why) from error

    def _question(self, rounds: Sequence[Round], run: Exchange) -> Message | None:
        """Return the next question; one that was sent before a crash is repeated bit for bit."""
        step = len(rounds)
        sent = self._asking.sent(step)
        part = run.question() if sent is None else None
        if part is None:
            return sent
        chains = {name: place for entry in rounds for name, place in entry.chains.items()}
        agreed = {"settings": self._protocol.settings(), "shared": names_digest(self._shared)}
        fields = {**part.fields, **agreed, CHAINS: places_to_field(chains)}
        question = replace(part, run=self._run, step=step, sender="coordinator", fields=fields)
        self._journal.keep(question)
        return question

    def _outcome(self, facts: PublicFacts, rounds: tuple[Round, ...], run: Exchange) -> RunOutcome:
        protocol = self._protocol
        weakest = (max(entry.epsilon for entry in rounds), max(entry.delta for entry in rounds))
        assumed = assumptions_at(one for entry in rounds for one in entry.assumed.items())
        promise = protocol.outcome(facts, *weakest)
        promise = promise.assuming(*(one for one in assumed if one not in promise.assumes))
        releases = run.certified()
        model = FittedModel(
            guarantee=promise.as_simulated() if any(entry.simulated for entry in rounds) else promise,
            facts=facts,
            catalog=self._shared,
            name=f"federated-{protocol.name}",
            parameters={"settings": protocol.settings(), "parties": len(self._asking.terms)},
            scorer=run.scorer(),
            certificate=None if releases is None else certificate(promise, releases),
        )
        return RunOutcome(model=model, rounds=rounds)


def _require_finite(scorer: Scorer) -> None:
    if not all(bool(np.isfinite(array).all()) for array in scorer.arrays().values()):
        raise ArithmeticError("A number of the model is not finite.")


def _kept(entry: Round, run: str, step: int) -> Message:
    """Return a round as a message for the journal."""
    facts = {
        "noise": dict(entry.result.noise),
        "parties": entry.result.parties,
        "heard": list(entry.counted),
        "left_out": dict(entry.left_out),
        "refused": dict(entry.refused),
        "epsilon": "inf" if math.isinf(entry.epsilon) else entry.epsilon,
        "delta": entry.delta,
        "simulated": entry.simulated,
        "chains": {name: str(place) for name, place in entry.chains.items()},
        "assumed": {name: sorted(facts) for name, facts in entry.assumed.items()},
    }
    return Message(
        kind=entry.result.kind,
        run=run,
        step=step,
        sender="coordinator",
        fields={"round": json.dumps(facts)},
        arrays=entry.result.arrays,
    )


def _read(message: Message) -> Round:
    facts = json.loads(str(message.fields["round"]))
    result = StepResult(
        kind=message.kind, arrays=message.arrays, noise=facts["noise"], parties=facts["parties"]
    )
    return Round(
        result=result,
        counted=tuple(facts["heard"]),
        left_out=facts["left_out"],
        refused=facts["refused"],
        epsilon=float(facts["epsilon"]),
        delta=facts["delta"],
        simulated=facts["simulated"],
        # Earlier versions kept none.
        chains={name: Anchor.parse(text) for name, text in facts.get("chains", {}).items()},
        assumed={
            name: frozenset(map(Fact, facts["assumed"][name])) if "assumed" in facts else UNSTATED
            for name in facts["heard"]
        },
    )
