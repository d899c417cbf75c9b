"""Write the sampling tables of a campaign as integers, so that any device can sample and check the guarantee.

A table row lists, for each outcome, the first of the 2^64 random words that yield it: 64-bit big-endian
numbers in base64. Rows computed on another machine may differ in the last digits of an exponential. So a
campaign's tables are compared with those of its mechanism up to that, and their loss is computed exactly.
"""

from __future__ import annotations

import base64
import binascii
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.collect.errors import BadTables, NoSamplingTable
from discreet.collect.mechanisms import RatingMechanism
from discreet.core import Floats, require
from discreet.privacy.mechanisms.cells import HiddenNumbers, HiddenStars
from discreet.privacy.mechanisms.channel import WORDS
from discreet.privacy.mechanisms.grid import GridMechanism
from discreet.privacy.mechanisms.local import numbers_loss, stars_loss, table_loss
from discreet.privacy.sampling.draws import geometric_digits

Words = npt.NDArray[np.uint64]

# Sixteen megabytes: a scale without steps has a row for every value of a report.
_MOST_WORDS = 1 << 21
# Exponentials of two machines differ by less than this many of the 2^64 words.
_LAST_DIGITS = 1 << 32


def rating_draws(mechanism: RatingMechanism, step: float | None) -> dict[str, Any]:
    """Return the table rows of all ratings of the scale, or of all report values if it has no steps."""
    if not isinstance(mechanism, GridMechanism):
        raise NoSamplingTable(mechanism=type(mechanism).__name__)
    outputs = mechanism.grid()
    ratings = _ratings(mechanism, step)
    words = ratings.size * outputs.size
    do = "Declare the scale's step, or lower points."
    require(words <= _MOST_WORDS, "points", outputs.size, must="be fewer for this scale", do=do)
    return {
        "ratings": ratings.tolist(),
        "first": float(outputs[0]),
        "width": float(outputs[-1] - outputs[0]) / (outputs.size - 1),
        "outcomes": outputs.size,
        "starts": _text(mechanism.table(ratings).starts),
    }


def cell_draws(mechanism: HiddenStars | HiddenNumbers) -> dict[str, Any]:
    """Return the tables for answers about rated items and for gaps between falsely reported unrated items."""
    high, low = geometric_digits(mechanism.gap)
    outputs = mechanism.outputs()
    shared = {
        "first": float(outputs[0]),
        "width": float(outputs[-1] - outputs[0]) / max(outputs.size - 1, 1),
        "outcomes": outputs.size,
        "gap": {"scale": mechanism.gap, "high": _text(high), "low": _text(low)},
    }
    if isinstance(mechanism, HiddenStars):
        return {**shared, "ratings": outputs.tolist(), "starts": _text(mechanism.table().starts)}
    coin, noise = mechanism.tables()
    return {
        **shared,
        "ratings": np.linspace(mechanism.low, mechanism.high, mechanism.points).tolist(),
        "coin": _text(coin.starts),
        "noise": _text(noise.table.starts),
        "half": noise.half,
        "reach": noise.reach,
    }


def check_draws(draws: Any, own: dict[str, Any], epsilon: float) -> None:
    """Raise for tables that differ from the mechanism's beyond last digits, or lose more than epsilon."""
    if not isinstance(draws, dict) or set(draws) != set(own):
        raise BadTables(rule="parts")
    computed = {"starts", "noise"} & set(own)
    if any(draws[name] != own[name] for name in set(own) - computed):
        raise BadTables(rule="mechanism")
    for name in computed:
        words, expected = read_words(draws[name]), read_words(own[name])
        if words.size != expected.size or _farthest(words, expected) > _LAST_DIGITS:
            raise BadTables(rule="mechanism")
    if reported_loss(draws) > epsilon:
        raise BadTables(rule="loss")


def reported_loss(draws: dict[str, Any]) -> float:
    """Return the largest log-ratio of the tables, unrated items included; exact and rounded up."""
    if "noise" in draws:
        noise = _rising(read_words(draws["noise"])[None, :])
        _, coin = _rising(read_words(draws["coin"])[None, :])[0].tolist()
        return numbers_loss(
            noise, half=draws["half"], reach=draws["reach"], coin=coin, pretends=_pretends(draws["gap"])
        )
    starts = _rising(read_words(draws["starts"]).reshape(len(draws["ratings"]), -1))
    if "gap" not in draws:
        return table_loss(starts)
    return stars_loss(starts, outcomes=draws["outcomes"], pretends=_pretends(draws["gap"]))


def _pretends(gap: dict[str, Any]) -> Fraction:
    """Return the exact probability that an unrated item is reported: no digit of the gap before it is set."""
    chance = Fraction(1)
    for high, low in zip(read_words(gap["high"]).tolist(), read_words(gap["low"]).tolist(), strict=True):
        chance *= 1 - Fraction(high * WORDS + low, WORDS**2)
    return chance


def _rising(starts: Words) -> Words:
    if starts[:, 0].any() or (starts[:, 1:] <= starts[:, :-1]).any():
        raise BadTables(rule="words")
    return starts


def read_words(text: Any) -> Words:
    """Return the 64-bit words of a table."""
    try:
        raw = base64.b64decode(text, validate=True)
        return np.frombuffer(raw, dtype=">u8").astype(np.uint64)
    except (TypeError, ValueError, binascii.Error) as error:
        raise BadTables(rule="words") from error


def _text(words: Words) -> str:
    return base64.b64encode(words.astype(">u8").tobytes()).decode()


def _farthest(one: Words, other: Words) -> int:
    return int(np.where(one > other, one - other, other - one).max(initial=0))


def _ratings(mechanism: GridMechanism, step: float | None) -> Floats:
    if step is None:
        return mechanism.grid()
    count = round((mechanism.high - mechanism.low) / step) + 1
    require(count <= mechanism.points, "step", step, must="be no finer than the mechanism's reports")
    return np.linspace(mechanism.low, mechanism.high, count)
