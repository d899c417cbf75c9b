"""The largest log-ratio of reports about one item, "not rated" included, is found whatever causes it."""

import math
from fractions import Fraction

import pytest

from discreet.privacy.mechanisms.channel import WORDS
from discreet.privacy.mechanisms.clamped_noise import ClampedNoise, clamped_noise
from discreet.privacy.mechanisms.local import numbers_loss
from discreet.testing import refuses

NOISE = clamped_noise(0.5, 2)


def loss(coin, pretends):
    starts = NOISE.table.starts
    return numbers_loss(
        starts, half=NOISE.half, reach=NOISE.reach, coin=int(coin * WORDS), pretends=Fraction(pretends)
    )


@pytest.mark.parametrize(
    ("coin", "pretends", "expected"),
    [
        # A rated item is hardly ever silent, and an unrated one mostly is.
        (Fraction(1, 64), Fraction(1, 4), math.log(Fraction(3, 4) / Fraction(1, 64))),
        # The other way around.
        (Fraction(3, 4), Fraction(63, 64), math.log(Fraction(3, 4) / Fraction(1, 64))),
        # Equally often: the noise alone tells ratings apart.
        (Fraction(1, 2), Fraction(1, 2), NOISE.losses()[0]),
    ],
)
def test_silence_and_numbers_are_both_counted(coin, pretends, expected):
    found = loss(coin, pretends)
    assert expected * (1 - 1e-12) <= found <= expected * (1 + 1e-6)


@pytest.mark.parametrize("found", [(0.51, 0.25), (0.5, 0.26)])
def test_noise_that_reveals_too_much_is_not_used(found, monkeypatch):
    monkeypatch.setattr(ClampedNoise, "losses", lambda noise: found)
    with refuses("table-reveals"):
        clamped_noise.__wrapped__(0.5, 2)
