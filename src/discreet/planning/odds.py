"""Say in plain odds what an attacker gains: the best chance of telling whether somebody is in the data.

The attacker knows everything but that one person's presence, and finds both cases equally likely beforehand.
"""

from __future__ import annotations

import math

from scipy.special import ndtr

from discreet.checks import failure_probability, positive


def best_chance(epsilon: float, delta: float) -> float:
    """Return the best chance that any (epsilon, delta) release leaves.

    Example:
        >>> round(best_chance(1.0, 0.0), 3)
        0.731
    """
    positive("epsilon", epsilon)
    failure_probability("delta", delta)
    # (e^epsilon + delta) / (1 + e^epsilon), written so that it does not overflow.
    doubt = math.exp(-epsilon)
    return min((1 + delta * doubt) / (1 + doubt), 1.0)


def best_chance_gaussian(multiplier: float) -> float:
    """Return the best chance against Gaussian noise, which is less than its epsilon allows.

    Example:
        >>> round(best_chance_gaussian(1.0), 3)
        0.691
    """
    positive("multiplier", multiplier)
    return float(ndtr(0.5 / multiplier))


def in_words(chance: float) -> str:
    """Say a chance as a bet.

    Example:
        >>> in_words(0.731)
        'right 74 times in 100, where guessing is right 50 times'
    """
    return f"right {math.ceil(100 * chance - 1e-9)} times in 100, where guessing is right 50 times"
