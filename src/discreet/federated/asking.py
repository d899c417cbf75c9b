"""Ask parties one question and add up their answers, as the coordinator of any run does.

A round never waits for a party beyond its deadline and never fails because of one. A party that is silent,
late, repeats itself or sends an invalid answer is excluded from the round and listed. Where answers leave
behind masks, the keeper takes them off one sum.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core import positive, require
from discreet.federated.conditions import ASSUMES, read_facts
from discreet.federated.errors import ImpossibleSum, SetNotConfirmed, StepWaits, TooFewAnswers
from discreet.federated.journal import Journal
from discreet.federated.keeper import Line, SumStep, ask_masks, require_keeper
from discreet.federated.masks import Words, unmasked
from discreet.federated.protocols.protocol import CONFIRM, Judge, StepResult, check_arrays, number
from discreet.federated.transport import Transport
from discreet.federated.wire import CHAIN, Message, Refusal, Refused, decode, encode, own_place, read_names
from discreet.privacy import Anchor, Fact

# What an answer states next to the noise on its arrays.
_STATED = frozenset({"epsilon", "delta", "simulated", "question", CHAIN, "key", ASSUMES})
_TOKEN = re.compile("[0-9a-f]{32}")
# Platforms may round a standard deviation differently, and nothing else in it.
_ROUNDING = 1e-9
# An answer to an earlier question may be followed by one to this question.
_EARLIER = (Refusal.WRONG_ROUND, Refusal.WRONG_KIND, Refusal.WRONG_QUESTION)


class Terms(NamedTuple):
    """A party's guarantee, and whether its noise is, or may be, simulated."""

    epsilon: float
    delta: float
    simulated: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundAnswers:
    """The valid answers to a question, why other parties are excluded, and the rejected messages."""

    answers: dict[str, Message] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)


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
    left_out: Mapping[str, str]
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

    run: str
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

    def own(self) -> list[Message]:
        """Return what the journal has of this run."""
        return [message for message in self.journal.messages if message.run == self.run]

    def sent(self, step: int) -> Message | None:
        """Return the question of a step that was sent before a crash: it is repeated bit for bit."""
        asked = (one for one in self.own() if "settings" in one.fields and one.kind != CONFIRM)
        return next((one for one in asked if one.step == step), None)

    def ask(self, question: Message, parties: Iterable[str], n_shared: int) -> RoundAnswers:
        """Return the valid answers of these parties to a question, and why others are excluded."""
        shapes = self.judge.shapes(question, n_shared)
        deviations = cache(partial(self.judge.deviations, question))

        def check(name: str, answer: Message) -> None:
            check_arrays(answer, shapes, self.judge.number_type)
            agreed = self.terms[name]
            _check_terms(answer, agreed, deviations(agreed.epsilon, agreed.delta))
            self.judge.check_answer(question, answer)

        return self._heard(question, parties, check)

    def _heard(
        self, question: Message, parties: Iterable[str], check: Callable[[str, Message], None]
    ) -> RoundAnswers:
        """Ask once. A party's first valid answer counts; a second one, equal or not, changes nothing."""
        asked, gone, found = list(parties), set[str](), RoundAnswers()
        for name, raw in self.transport.ask(encode(question), asked, self.seconds):
            if raw is None:
                gone.add(name)
            elif name not in asked or name in found.answers:
                again = name in found.answers
                found.refused[Refusal.TWICE.value if again else Refusal.WRONG_SENDER.value] += 1
            else:
                try:
                    answer = addressed(question, name, self.transport.opened(name, raw))
                    check(name, answer)
                    found.answers[name] = answer
                    found.left_out.pop(name, None)
                except Refused as error:
                    found.refused[error.reason.value] += 1
                    found.left_out[name] = error.reason.value
                    if error.reason not in _EARLIER:
                        gone.add(name)
            if found.answers.keys() | gone >= set(asked):
                break
        for name in asked:
            if name not in found.answers:
                found.left_out.setdefault(name, Refusal.SILENT.value)
        return found

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
        stated = [promised(answers[party]) for party in counted]
        return Round(
            result=result,
            counted=counted,
            left_out=left_out,
            refused=dict(collected.refused),
            epsilon=max(one.epsilon for one in stated),
            delta=max(one.delta for one in stated),
            simulated=any(one.simulated for one in stated),
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
        asked = SumStep(question.run, question.step, question.digest)
        try:
            return ask_masks(self.keeper, asked, names, size, keys)
        except SetNotConfirmed:
            pass
        confirm = self._set_of(question, names)
        chosen = read_names(confirm.fields["names"])
        if chosen != frozenset(names):
            return self._instead(question, chosen, names)
        found = self._heard(confirm, names, _check_confirmation).answers
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
        kept = [one for one in self.own() if (one.kind, one.step) == (CONFIRM, question.step)]
        if kept:
            return kept[-1]
        agreed = {name: question.fields[name] for name in ("settings", "shared")}
        fields = {"names": _listed(names), "question": question.digest, **agreed}
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


def addressed(question: Message, name: str, raw: bytes) -> Message:
    """Return a party's message if it answers this question; raise `Refused` with the reason otherwise."""
    answer = decode(raw)
    if answer.sender != name:
        raise Refused(Refusal.WRONG_SENDER)
    if answer.run != question.run:
        raise Refused(Refusal.WRONG_RUN)
    if answer.kind == "declined":
        # If a party or the coordinator was restored, a new run is needed. Other reasons are the party's own.
        stated = [one for one in (Refusal.BEHIND, Refusal.DROPPED) if one == answer.fields.get("reason")]
        raise Refused(stated[0] if stated else Refusal.DECLINED)
    if answer.step != question.step:
        raise Refused(Refusal.WRONG_ROUND)
    if answer.kind != question.kind:
        raise Refused(Refusal.WRONG_KIND)
    if answer.fields.get("question") != question.digest:
        raise Refused(Refusal.WRONG_QUESTION)
    own_place(answer)
    return answer


def _check_terms(answer: Message, agreed: Terms, deviations: Mapping[str, float]) -> None:
    """Raise `Refused` if a party states a guarantee or noise that was not agreed with it."""
    stated = promised(answer)
    if stated[:2] != agreed[:2] or stated.simulated > agreed.simulated:
        raise Refused(Refusal.WRONG_GUARANTEE)
    read_facts(answer)
    if not answer.fields.keys() <= _STATED | {f"noise {array}" for array in deviations}:
        raise Refused(Refusal.UNKNOWN_FIELD)
    for array, expected in deviations.items():
        noise = number(answer, f"noise {array}", 0.0, math.inf)
        if not math.isclose(noise, expected, rel_tol=_ROUNDING):
            raise Refused(Refusal.WRONG_GUARANTEE)


def _check_confirmation(name: str, answer: Message) -> None:
    """Raise `Refused` unless a party confirms a set that it is in, with a token."""
    token = str(answer.fields.get("token"))
    if name not in read_names(answer.fields.get("names")) or not _TOKEN.fullmatch(token):
        raise Refused(Refusal.MALFORMED)


def agreed_terms(
    parties: Sequence[str],
    epsilon: float,
    delta: float,
    promises: Mapping[str, tuple[float, float]],
    *,
    simulated: bool,
) -> dict[str, Terms]:
    """Return what was agreed with each party: its own guarantee, or that of the run."""
    require(len(set(parties)) == len(parties) > 0, "parties", list(parties), must="be different names")
    require(set(promises) <= set(parties), "promises", sorted(promises), must="be of parties of the run")
    pairs = {name: promises.get(name, (epsilon, delta)) for name in parties}
    # Without noise there is nothing that a delta could be about.
    return {
        name: Terms(one, 0.0 if math.isinf(one) else other, simulated) for name, (one, other) in pairs.items()
    }


def promised(answer: Message) -> Terms:
    """Return the guarantee that a party states."""
    fields = answer.fields
    epsilon = math.inf if fields.get("epsilon") == "inf" else number(answer, "epsilon", 1e-12, 1e6)
    simulated = fields.get("simulated")
    if not isinstance(simulated, bool):
        raise Refused(Refusal.MALFORMED)
    return Terms(epsilon, number(answer, "delta", 0.0, 0.999), simulated)
