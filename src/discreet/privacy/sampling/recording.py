"""Let a draw pass the tape of an audit: the one hook at the mechanisms' interface.

A tape sits on a simulated source only, and what such a source touches is marked for ever, so no release that
protects anybody passes one. Without a tape a draw pays one look at an attribute (proofs/sampling.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Output = TypeVar("Output")


def recorded(draw: Callable[Given, Output]) -> Callable[Given, Output]:
    """Return the draw; where its argument `random` carries a tape, what goes in and out passes it."""
    form = signature(draw)
    place = list(form.parameters).index("random")

    @wraps(draw)
    def through(*arguments: Given.args, **options: Given.kwargs) -> Output:
        random: Any = options["random"] if "random" in options else arguments[place]
        if random.recording is None:
            return draw(*arguments, **options)
        given = form.bind(*arguments, **options).arguments
        # What is drawn inside belongs to this draw, and does not pass a second time.
        told: Output = random.recording.passing(draw, {**given, "random": random.unrecorded()})
        return told

    return through
