"""Decompose dp-accounting's events: which are supported, how often each occurs, and their JSON form.

Repetition is counted here and nowhere else. dp-accounting 0.6.0 counts it separately for each event type, and
its privacy-loss accountant omits it for randomized response.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, final

from discreet.core import failure_probability, integer, non_negative, positive, positive_finite, probability
from discreet.privacy.accounting.gaussian import compose_gaussians
from discreet.privacy.errors import DamagedRecord, SampledEvent, UnknownEvent

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_MODULE = "dp_accounting.dp_event"


_LOADING = Lock()


def event_types() -> ModuleType:
    """Return dp-accounting's module of events without the rest of that package.

    Events are plain records, but the package imports all accountants, which takes seconds. A later import of
    the package finds this module loaded, so there is one class of each event.
    """
    with _LOADING:
        if _MODULE in sys.modules:
            return sys.modules[_MODULE]
        package = importlib.util.find_spec(_MODULE.partition(".")[0])
        places = package.submodule_search_locations if package else None
        spec = PathFinder.find_spec(_MODULE, places)
        if spec is None or spec.loader is None:
            return importlib.import_module(_MODULE)
        module = sys.modules[_MODULE] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[_MODULE]
            raise
        return module


class Leaf(NamedTuple):
    """One mechanism and its parameters. Equal leaves cost the same."""

    kind: str
    values: tuple[float, ...]


def _some_noise(name: str, value: object) -> float:
    positive(name, value)
    return probability(name, value)


def _whole(name: str, value: object) -> float:
    return float(integer(name, value, least=1))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FailureEvent:
    """An event that reveals something with at most this probability. dp-accounting has no such event.

    Otherwise the outcome is the same with and without the user: (0, `probability`)-private.
    """

    probability: float


_RULES: dict[str, dict[str, Callable[[str, object], float]]] = {
    "GaussianDpEvent": {"noise_multiplier": positive},
    "LaplaceDpEvent": {"noise_multiplier": positive},
    "DiscreteLaplaceDpEvent": {"noise_parameter": positive_finite, "sensitivity": _whole},
    "RandomizedResponseDpEvent": {"noise_parameter": _some_noise, "num_buckets": _whole},
    "ZCDpEvent": {"rho": non_negative, "xi": non_negative},
    "FailureEvent": {"probability": failure_probability},
}
_SAMPLED = ("GaussianDpEvent", "LaplaceDpEvent", "DiscreteLaplaceDpEvent")
_STRUCTURE = {
    "NoOpDpEvent": (),
    "ComposedDpEvent": ("events",),
    "SelfComposedDpEvent": ("event", "count"),
    "PoissonSampledDpEvent": ("sampling_probability", "event"),
}


def supported_events() -> tuple[str, ...]:
    """Return the names of the dp-accounting events with a known cost. All others are rejected."""
    return tuple(sorted((*_RULES, *_STRUCTURE)))


def pure_event(epsilon: float) -> DpEvent:
    """Return the event of a mechanism that is known only to be `epsilon`-private.

    A loss of `epsilon` at every Renyi order is the same statement. LaplaceDpEvent would claim more: only
    Laplace noise composes as well as Laplace noise.
    """
    return event_types().ZCDpEvent(rho=0.0, xi=positive_finite("epsilon", epsilon))


def tally(events: DpEvent | Iterable[DpEvent]) -> dict[Leaf, int]:
    """Return how often each mechanism occurs, in an order that doesn't depend on the events' order."""
    counts: Counter[Leaf] = Counter()
    for event in events if isinstance(events, Iterable) else [events]:
        _count(event, 1, counts)
    return dict(sorted(counts.items()))


def _kind(event: object) -> str:
    """Return the class name of an event that dp-accounting or this module defines, or else an empty text."""
    return type(event).__name__ if type(event).__module__ in (_MODULE, __name__) else ""


def _count(event: Any, times: int, counts: Counter[Leaf]) -> None:
    kind = _kind(event)
    if kind == "ComposedDpEvent":
        for part in event.events:
            _count(part, times, counts)
    elif kind == "SelfComposedDpEvent":
        _count(event.event, times * integer("count", event.count, least=1), counts)
    elif kind == "PoissonSampledDpEvent":
        counts.update(dict.fromkeys(_sampled(event), times))
    elif kind != "NoOpDpEvent":
        counts[_leaf(event)] += times


def _leaf(event: Any) -> Leaf:
    rules = _RULES.get(_kind(event))
    if rules is None:
        raise UnknownEvent(event=type(event).__name__, known=tuple(supported_events()))
    return Leaf(_kind(event), tuple(check(name, getattr(event, name)) for name, check in rules.items()))


def _sampled(event: Any) -> list[Leaf]:
    """Return the leaf of a mechanism on a Poisson sample; Gaussians on one sample compose to one."""
    share = probability("sampling_probability", event.sampling_probability)
    inner: Counter[Leaf] = Counter()
    _count(event.event, 1, inner)
    leaves = list(inner)
    if inner.total() > 1 and all(leaf.kind == "GaussianDpEvent" for leaf in inner):
        leaves = [Leaf("GaussianDpEvent", (compose_gaussians(leaf.values[0] for leaf in inner.elements()),))]
    elif inner.total() != 1 or leaves[0].kind not in _SAMPLED:
        raise SampledEvent()
    if share == 1:
        return leaves
    return [Leaf(f"PoissonSampled{leaf.kind}", (share, *leaf.values)) for leaf in leaves] if share else []


def event_to_json(event: DpEvent) -> dict[str, Any]:
    """Return a JSON object that `event_from_json` reads back; infinity is the text "inf"."""
    tally(event)
    kind = _kind(event)
    names = _STRUCTURE.get(kind, tuple(_RULES.get(kind, ())))
    return {"kind": kind, **{name: _value_to_json(getattr(event, name)) for name in names}}


def _value_to_json(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [event_to_json(part) for part in value]
    if _kind(value):
        return event_to_json(value)
    return "inf" if value == math.inf else value if isinstance(value, int) else float(value)


def event_from_json(record: Mapping[str, Any]) -> DpEvent:
    """Return the event that `event_to_json` wrote. Raise for anything else."""
    try:
        kind = str(record["kind"])
        names = _STRUCTURE[kind] if kind in _STRUCTURE else tuple(_RULES[kind])
        values = {name: _value_from_json(record[name]) for name in names}
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedRecord(kind="event", reason=str(error)) from error
    made = FailureEvent if kind == FailureEvent.__name__ else getattr(event_types(), kind)
    event = made(**values)
    tally(event)
    return event


def _value_from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [event_from_json(part) for part in value]
    if isinstance(value, Mapping):
        return event_from_json(value)
    return float(value) if isinstance(value, str) else value


def describe(events: DpEvent | Iterable[DpEvent]) -> str:
    """Return a line that lists the mechanisms and how often each ran.

    Example:
        >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
        >>> describe(SelfComposedDpEvent(GaussianDpEvent(2.0), 3))
        '3 x Gaussian(2)'
    """
    parts = []
    for leaf, times in tally(events).items():
        values = ", ".join(f"{value:g}" for value in leaf.values)
        name = f"{leaf.kind.removesuffix('Event').removesuffix('Dp')}({values})"
        parts.append(name if times == 1 else f"{times} x {name}")
    return " + ".join(parts) or "nothing"
