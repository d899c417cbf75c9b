"""Declare options that several verbs share once: a verb takes a group, the command line sees its options."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, get_type_hints

_Group = TypeVar("_Group", bound=type)

_GROUPS: set[type] = set()


def group(kind: _Group) -> _Group:
    """Mark a dataclass as a group: each field is an option, annotated as a verb's parameter would be."""
    _GROUPS.add(kind)
    return kind


def spread(verb: Callable[..., None]) -> Callable[..., None]:
    """Return the verb as the command line calls it: the fields of its groups in the place of each group."""
    hints = get_type_hints(verb, include_extras=True)
    taken = {name: kind for name, kind in hints.items() if isinstance(kind, type) and kind in _GROUPS}

    def run(**options: Any) -> None:
        groups = {
            name: kind(**{field.name: options.pop(field.name) for field in dataclasses.fields(kind)})
            for name, kind in taken.items()
        }
        verb(**options, **groups)

    parameters = list(_parameters(verb, hints, taken))
    run.__name__, run.__doc__, run.__module__ = verb.__name__, verb.__doc__, verb.__module__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _parameters(
    verb: Callable[..., None], hints: dict[str, Any], taken: dict[str, type]
) -> Iterator[inspect.Parameter]:
    """Yield the parameters that the command line sees; all by name, so that their order is free."""
    by_name = inspect.Parameter.KEYWORD_ONLY
    for name, parameter in inspect.signature(verb).parameters.items():
        if name not in taken:
            yield parameter.replace(kind=by_name, annotation=hints[name])
            continue
        kind = taken[name]
        types = get_type_hints(kind, include_extras=True)
        for field in dataclasses.fields(kind):
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            yield inspect.Parameter(field.name, by_name, default=default, annotation=types[field.name])
