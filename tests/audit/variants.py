"""Estimators with each option of a setting that has few."""

import types
from dataclasses import MISSING, fields
from typing import Literal, Union, get_args, get_origin, get_type_hints

from discreet.core.checks import ParameterError


def variants(kind, epsilon):
    """Yield the estimator with its defaults, and once with every other option of a setting that has few.

    An option that the estimator rejects with the other defaults is skipped.
    """
    yield kind.name, kind(epsilon=epsilon)
    for name, options in _options(kind).items():
        for option in options:
            try:
                variant = kind(epsilon=epsilon, **{name: option})
            except ParameterError:
                continue
            yield f"{kind.name} {name}={str(option).lower()}", variant


def _options(kind):
    """Return the settings with few options, each with the options that are not the default."""
    hints = get_type_hints(kind)
    found = {}
    for entry in fields(kind):
        if entry.default is MISSING:
            continue
        hint = hints[entry.name]
        types_of = list(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else [hint]
        others = [option for one in types_of for option in _listed(one) if option != entry.default]
        if others:
            found[entry.name] = others
    return found


def _listed(hint):
    if get_origin(hint) is Literal:
        return get_args(hint)
    return (True, False) if hint is bool else ()
