"""Ask parties one question and add up their answers, as the coordinator of any run does.

A round never waits for a party beyond its deadline and never fails because of one. A party that is silent,
late, repeats itself or sends an invalid answer is excluded from the round and listed. Where answers leave
behind masks, the keeper takes them off one sum.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.core.checks import positive
from discreet.federated.chains import own_place
from discreet.federated.conditions import read_facts
from discreet.federated.errors import ImpossibleSum, SetNotConfirmed, StepWaits, TooFewAnswers
from discreet.federated.journal import Journal
from discreet.federated.keeper import Line, SumStep, ask_masks, read_names, require_keeper
from discreet.federated.masks import Words, unmasked
from discreet.federated.protocols.protocol import CONFIRM, StepResult
from discreet.federated.transport import (
    Judge,
    RoundAnswers,
    Terms,
    Transport,
    collect,
    confirmations,
    promised,
)
from discreet.federated.wire import Message, Refusal, Refused
from discreet.privacy.guarantee import Fact
from discreet.privacy.ledger.chain import Anchor

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
class Asking:
    """How a coordinator reaches the parties of a run, and what it checks their answers by.

    `terms` has what was agreed with each party, and `least` is the fewest answers that a sum may have.
    """

    judge: Judge
    transport: Transport
    terms: Mapping[str, Terms]
    least: int
    seconds: float
    keeper: Line | None
    journal: Journal

    def __post_init__(self) -> None:
        positive("seconds", self.seconds)
        require_keeper(self.keeper, self.judge.noise)

    def ask(self, question: Message, parties: Iterable[str], n_shared: int) -> RoundAnswers:
        """Return the valid answers of these parties to a question, and why others are excluded."""
        terms = {name: self.terms[name] for name in parties}
        return collect(question, self.transport, terms, self.judge, n_shared, self.seconds)

    def round(self, question: Message, n_shared: int) -> Round:
        """Ask all parties and return what their answers add up to.

        Raises:
            FederationError: Too few parties answered, or the sum is not one that users and noise can give.
        """
        collected = self.ask(question, self.terms, n_shared)
        answers, left_out = collected.answers, collected.left_out
        chains = {name: own_place(answer) for name, answer in answers.items()}
        result = self._result(question, answers, left_out)
        try:
            self.judge.check_sums(question, result)
        except Refused:
            suspects = tuple(sorted(answers))
            raise ImpossibleSum(what=self.judge.called(question.step), suspects=suspects) from None
        counted = tuple(name for name in self.terms if name in answers)
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
            arrays=self.judge.combine(totals, len(answers)),
            noise={name: self.judge.combined_noise(deviations) for name, deviations in noises.items()},
            parties=len(answers),
        )

    def _totals(
        self, question: Message, answers: dict[str, Message], left_out: dict[str, str]
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the unmasked sums of the answers; answers without a mask at the keeper are excluded."""
        while True:
            if len(answers) < self.least:
                raise self.too_few(question.step, answers)
            totals = summed(list(answers.values()))
            if self.keeper is None or not self.judge.noise.masked:
                return totals
            size = sum(array.size for array in totals.values())
            keys = {name: str(one.fields["key"]) for name, one in answers.items() if "key" in one.fields}
            masks = self._masks(question, list(answers), size, keys)
            if not isinstance(masks, frozenset):
                return dict(unmasked(totals, masks))
            for name in set(answers) - masks:
                del answers[name]
                left_out[name] = Refusal.WITHOUT_MASK.value

    def too_few(self, step: int, answered: Iterable[str]) -> TooFewAnswers:
        """Return the error that names the parties which a sum waits for."""
        absent = tuple(sorted(set(self.terms) - set(answered)))
        return TooFewAnswers(
            what=self.judge.called(step), absent=absent, of=len(self.terms), least=self.least
        )

    def _masks(
        self, question: Message, names: Sequence[str], size: int, keys: Mapping[str, str]
    ) -> Words | frozenset[str]:
        """Return the sum of masks over a set that all of it confirmed, or a set that can be asked for."""
        assert self.keeper is not None
        asked = SumStep(question.run, question.step, question.digest())
        try:
            return ask_masks(self.keeper, asked, names, size, keys)
        except SetNotConfirmed:
            pass
        confirm = self._set_of(question, names)
        chosen = read_names(confirm.fields["names"])
        if chosen != frozenset(names):
            return self._instead(question, chosen, names)
        found = confirmations(confirm, self.transport, names, self.seconds)
        sets = {name: read_names(answer.fields["names"]) for name, answer in found.items()}
        for earlier in set(sets.values()) - {chosen}:
            if len(earlier) >= self.least and all(sets.get(name) == earlier for name in earlier):
                # This coordinator lost which set it chose. All parties of that set did not.
                self.journal.keep(replace(confirm, fields={**confirm.fields, "names": _listed(earlier)}))
                return self._instead(question, earlier, names)
        others = sorted(name for name in names if sets.get(name) != chosen)
        if others:
            raise SetNotConfirmed(parties=tuple(others), step=question.step)
        tokens = {name: str(answer.fields.get("token")) for name, answer in found.items()}
        return ask_masks(self.keeper, asked, names, size, keys, tokens)

    def _set_of(self, question: Message, names: Sequence[str]) -> Message:
        """Return the request to confirm the set of a step; it is kept, because a step has one set."""
        wanted = (CONFIRM, question.run, question.step)
        kept = [one for one in self.journal.messages if (one.kind, one.run, one.step) == wanted]
        if kept:
            return kept[-1]
        agreed = {name: question.fields[name] for name in ("settings", "shared")}
        fields = {"names": _listed(names), "question": question.digest(), **agreed}
        confirm = replace(question, kind=CONFIRM, fields=fields, arrays={})
        self.journal.keep(confirm)
        return confirm

    def _instead(self, question: Message, chosen: frozenset[str], names: Sequence[str]) -> frozenset[str]:
        """Return the set that was chosen for a step before, if all of it answered again."""
        if not chosen < frozenset(names):
            raise StepWaits(parties=tuple(sorted(chosen - set(names))), step=question.step)
        return chosen


def _listed(names: Iterable[str]) -> str:
    return json.dumps(sorted(names))


def summed(answers: Sequence[Message]) -> dict[str, npt.NDArray[Any]]:
    """Add up arrays of equal shapes; whole numbers wrap around, as masks need."""
    totals = {name: np.array(array) for name, array in answers[0].arrays.items()}
    for answer in answers[1:]:
        for name, total in totals.items():
            total += answer.arrays[name]
    return totals
