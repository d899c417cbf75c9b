"""Record draws for an audit: the only hook at the interface of the mechanisms.

Only a simulated source can have a recording, and everything such a source touches is marked, so no release
that protects a user is recorded. Without a recording, a draw costs one more attribute lookup
(proofs/sampling.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Output = TypeVar("Output")


def recorded(draw: Callable[Given, Output]) -> Callable[Given, Output]:
    """Return a wrapped draw: if its argument `random` has a recording, arguments and result go through it."""
    form = signature(draw)
    position = list(form.parameters).index("random")

    @wraps(draw)
    def through(*arguments: Given.args, **options: Given.kwargs) -> Output:
        random: Any = options["random"] if "random" in options else arguments[position]
        if random.recording is None:
            return draw(*arguments, **options)
        given = form.bind(*arguments, **options).arguments
        # Nested draws belong to this draw and are not recorded again.
        drawn: Output = random.recording.passing(draw, {**given, "random": random.unrecorded()})
        return drawn

    return through
