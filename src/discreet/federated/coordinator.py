"""Run Algorithm 1: in each round send a question to all parties, collect their answers and combine them.

A round never waits for a party beyond its deadline and never fails because of one. A party that is silent,
late, repeats itself or sends an invalid answer is excluded from the round and listed. A round's result is
stored before the next one begins, so a coordinator resumes after a crash.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.core.checks import integer, positive, require
from discreet.core.progress import Progress, silent
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.federated.answering import require_keeper
from discreet.federated.chains import CHAINS, own_place, to_field
from discreet.federated.conditions import UNSTATED, assumptions_at, read_facts
from discreet.federated.errors import (
    ImpossibleSum,
    NoModelFromSum,
    SetNotConfirmed,
    StepWaits,
    TooFewAnswers,
    TooManySteps,
    UseRunRounds,
)
from discreet.federated.journal import Journal
from discreet.federated.keeper import Line, SumStep, ask_masks, read_names
from discreet.federated.masks import Words, unmasked
from discreet.federated.protocols.protocol import (
    CONFIRM,
    Exchange,
    ItemProtocol,
    Protocol,
    StepResult,
    names_digest,
)
from discreet.federated.transport import Transport, agreed_terms, collect, confirmations, promised
from discreet.federated.wire import Message, Refusal, Refused, Value
from discreet.models.fitted import FittedModel
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.assumptions import Fact
from discreet.privacy.certificate import certificate
from discreet.privacy.ledger.chain import Anchor

_MOST_STEPS = 1000
Reasons = Mapping[str, str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A finished round: its result, the parties counted with their guarantee, who was excluded and why.

    `refused` counts all rejected messages by reason, including those of parties that were counted. `chains`
    has the place in its chain that each party stated, also if it was excluded. `assumed` has the
    facts that the guarantee of each counted party assumes.
    """

    result: StepResult
    counted: tuple[str, ...]
    left_out: Reasons
    refused: Mapping[str, int]
    epsilon: float
    delta: float
    simulated: bool
    chains: Mapping[str, Anchor]
    assumed: Mapping[str, frozenset[Fact]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The model of a run and its rounds."""

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
        require(len(set(parties)) == len(parties) > 0, "parties", list(parties), must="be different names")
        require_keeper(keeper, protocol.noise)
        self._protocol, self._transport, self._keeper = protocol, transport, keeper
        self._parties, self._shared = tuple(parties), shared
        self._terms = agreed_terms(
            parties, protocol.epsilon, protocol.delta, promises or {}, simulated=simulated
        )
        self._run, self._seconds = run, positive("seconds", seconds)
        self._least = max(integer("least", least, least=1, most=len(parties)), protocol.noise.least_parties)
        self._journal = Journal(state)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Return the rounds finished so far, those before a crash included."""
        return tuple(_read(message) for message in self._own() if "round" in message.fields)

    def _own(self) -> list[Message]:
        return [message for message in self._journal.messages if message.run == self._run]

    def train(self, facts: PublicFacts, progress: Progress = silent) -> RunOutcome:
        """Run all rounds that are not finished yet and return the model of the shared items.

        Raises:
            FederationError: Too few parties answered a round; the run can be resumed.
        """
        protocol = self._protocol
        if not isinstance(protocol, ItemProtocol):
            raise UseRunRounds
        size = len(self._shared)
        require(facts.n_items == size, "facts.n_items", facts.n_items, must="be the size of the catalog")
        with closing(protocol.begin(size)) as run:
            rounds = self._finish(run, progress)
            return self._outcome(protocol, facts, rounds, run)

    def run_rounds(self, progress: Progress = silent) -> tuple[Round, ...]:
        """Run all rounds that are not finished yet and return all of them.

        Raises:
            FederationError: Too few parties answered a round; the run can be resumed.
        """
        with closing(self._protocol.begin(len(self._shared))) as run:
            return self._finish(run, progress)

    def _finish(self, run: Exchange, progress: Progress) -> tuple[Round, ...]:
        """Hand a run the results that were kept, then ask and answer until it ends."""
        for entry in self.rounds:
            run.answer(entry.result)
        for _ in range(_MOST_STEPS):
            rounds = self.rounds
            question = self._question(rounds, run)
            if question is None:
                return rounds
            entry = self._round(question)
            self._go_on(run, entry, question.step)
            self._journal.keep(_kept(entry, self._run, question.step))
            progress(self._protocol.name, len(rounds) + 1, len(rounds) + 2)
        raise TooManySteps(most=_MOST_STEPS)

    def _go_on(self, run: Exchange, entry: Round, step: int) -> None:
        """Hand a result to the run; one that it can't go on with is not kept."""
        try:
            with np.errstate(all="ignore"):
                run.answer(entry.result)
                if run.question() is None and isinstance(self._protocol, ItemProtocol):
                    _require_finite(run.scorer())
        except (ValueError, ArithmeticError) as error:
            parties, why = tuple(sorted(entry.counted)), type(error).__name__
            raise NoModelFromSum(step=step, parties=parties, why=why) from error

    def _question(self, rounds: Sequence[Round], run: Exchange) -> Message | None:
        """Return the next question; one that was sent before a crash is repeated bit for bit."""
        step = len(rounds)
        for message in self._own():
            if message.step == step and "settings" in message.fields and message.kind != CONFIRM:
                return message
        part = run.question()
        if part is None:
            return None
        chains = {name: place for entry in rounds for name, place in entry.chains.items()}
        question = Message(
            kind=part.kind,
            run=self._run,
            step=step,
            sender="coordinator",
            fields={**part.fields, **self._agreed(), CHAINS: to_field(chains)},
            arrays=part.arrays,
        )
        self._journal.keep(question)
        return question

    def _agreed(self) -> dict[str, Value]:
        """Return what every question states of the run."""
        return {"settings": self._protocol.settings(), "shared": names_digest(self._shared)}

    def _round(self, question: Message) -> Round:
        collected = collect(
            question, self._transport, self._terms, self._protocol, len(self._shared), self._seconds
        )
        answers, left_out = collected.answers, collected.left_out
        chains = {name: own_place(answer) for name, answer in answers.items()}
        result = self._result(question, answers, left_out)
        try:
            self._protocol.check_sums(question, result)
        except Refused:
            suspects = tuple(sorted(answers))
            raise ImpossibleSum(what=f"step {question.step}", suspects=suspects) from None
        counted = tuple(name for name in self._parties if name in answers)
        promises = [promised(answers[party]) for party in counted]
        return Round(
            result=result,
            counted=counted,
            left_out=left_out,
            refused=dict(collected.refused),
            epsilon=max(promise[0] for promise in promises),
            delta=max(promise[1] for promise in promises),
            simulated=any(promise[2] for promise in promises),
            chains=chains,
            assumed={party: read_facts(answers[party]) for party in counted},
        )

    def _result(self, question: Message, answers: dict[str, Message], left_out: dict[str, str]) -> StepResult:
        totals = self._totals(question, answers, left_out)
        noises = {
            name: [float(answer.fields[f"noise {name}"]) for answer in answers.values()] for name in totals
        }
        return StepResult(
            kind=question.kind,
            arrays=self._protocol.combine(totals, len(answers)),
            noise={name: self._protocol.combined_noise(deviations) for name, deviations in noises.items()},
            parties=len(answers),
        )

    def _totals(
        self, question: Message, answers: dict[str, Message], left_out: dict[str, str]
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the unmasked sums of the answers; answers without a mask at the keeper are excluded."""
        while True:
            if len(answers) < self._least:
                counts = {"counted": len(answers), "of": len(self._parties), "least": self._least}
                raise TooFewAnswers(**counts, step=question.step)
            totals = summed(list(answers.values()))
            if self._keeper is None or not self._protocol.noise.masked:
                return totals
            size = sum(array.size for array in totals.values())
            keys = {name: str(one.fields["key"]) for name, one in answers.items() if "key" in one.fields}
            masks = self._masks(question, list(answers), size, keys)
            if not isinstance(masks, frozenset):
                return dict(unmasked(totals, masks))
            for name in set(answers) - masks:
                del answers[name]
                left_out[name] = Refusal.WITHOUT_MASK.value

    def _masks(
        self, question: Message, names: Sequence[str], size: int, keys: Mapping[str, str]
    ) -> Words | frozenset[str]:
        """Return the sum of masks over a set that all of it confirmed, or a set that can be asked for."""
        assert self._keeper is not None
        asked = SumStep(self._run, question.step, question.digest())
        try:
            return ask_masks(self._keeper, asked, names, size, keys)
        except SetNotConfirmed:
            pass
        confirm = self._set_of(question, names)
        chosen = read_names(confirm.fields["names"])
        if chosen != frozenset(names):
            return self._instead(question, chosen, names)
        found = confirmations(confirm, self._transport, names, self._seconds)
        sets = {name: read_names(answer.fields["names"]) for name, answer in found.items()}
        for earlier in set(sets.values()) - {chosen}:
            if len(earlier) >= self._least and all(sets.get(name) == earlier for name in earlier):
                # This coordinator lost which set it chose. All parties of that set did not.
                self._journal.keep(replace(confirm, fields={**confirm.fields, "names": _listed(earlier)}))
                return self._instead(question, earlier, names)
        others = sorted(name for name in names if sets.get(name) != chosen)
        if others:
            raise SetNotConfirmed(parties=tuple(others), step=question.step)
        tokens = {name: str(answer.fields.get("token")) for name, answer in found.items()}
        return ask_masks(self._keeper, asked, names, size, keys, tokens)

    def _set_of(self, question: Message, names: Sequence[str]) -> Message:
        """Return the request to confirm the set of a step; it is kept, because a step has one set."""
        kept = [one for one in self._own() if one.kind == CONFIRM and one.step == question.step]
        if kept:
            return kept[-1]
        fields = {"names": _listed(names), "question": question.digest(), **self._agreed()}
        confirm = replace(question, kind=CONFIRM, fields=fields, arrays={})
        self._journal.keep(confirm)
        return confirm

    def _instead(self, question: Message, chosen: frozenset[str], names: Sequence[str]) -> frozenset[str]:
        """Return the set that was chosen for a step before, if all of it answered again."""
        if not chosen < frozenset(names):
            raise StepWaits(parties=tuple(sorted(chosen - set(names))), step=question.step)
        return chosen

    def _outcome(
        self, protocol: ItemProtocol, facts: PublicFacts, rounds: tuple[Round, ...], run: Exchange
    ) -> RunOutcome:
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
            parameters={"settings": protocol.settings(), "parties": len(self._parties)},
            scorer=run.scorer(),
            certificate=None if releases is None else certificate(promise, releases),
        )
        return RunOutcome(model=model, rounds=rounds)


def _listed(names: Iterable[str]) -> str:
    return json.dumps(sorted(names))


def _require_finite(scorer: Scorer) -> None:
    if not all(bool(np.isfinite(array).all()) for array in scorer.arrays().values()):
        raise ArithmeticError("A number of the model is not finite.")


def summed(answers: Sequence[Message]) -> dict[str, npt.NDArray[Any]]:
    """Add up arrays of equal shapes; whole numbers wrap around, as masks need."""
    totals = {name: np.array(array) for name, array in answers[0].arrays.items()}
    for answer in answers[1:]:
        for name, total in totals.items():
            total += answer.arrays[name]
    return totals


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
