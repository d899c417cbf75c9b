"""State what the best attacker can achieve against a release, as a sentence and as a small picture."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

from discreet.report.guarantee_wording import GuaranteeView, under_condition
from discreet.report.pages import Html

# What the attacker wants to know, by the unit and the neighbors of a guarantee.
_SECRETS = {
    ("user", "add-or-remove"): "whether one user is in the data",
    ("user", "replace"): "which of two histories one user has",
    ("rating", "add-or-remove"): "whether one user rated one item",
    ("rating", "replace"): "whether and how one user rated one item",
    ("value", "add-or-remove"): "whether the value of one rating is in the data",
    ("value", "replace"): "which of two values one rating has",
}


class Odds(NamedTuple):
    """What the best attacker can achieve against any release with an epsilon and a delta.

    The attacker knows all of the data but one secret, and tests between two possibilities. `posterior` is the
    best chance to be right if both are equally likely. A test's power is the chance to detect the first one.
    """

    posterior: float
    power_at_1_percent: float
    power_at_1_permille: float
    secret: str
    said: str

    @classmethod
    def of(cls, guarantee: GuaranteeView) -> Self:
        """Return the odds against a release with this guarantee."""
        epsilon, delta = guarantee.epsilon, guarantee.delta
        secret = _SECRETS[str(guarantee.unit), str(guarantee.neighbors)]
        chances = (posterior(epsilon, delta), power(epsilon, delta, 0.01), power(epsilon, delta, 0.001))
        return cls(*chances, secret, under_condition(guarantee, _said(*chances, secret)))

    def sentence(self) -> str:
        """Return the odds in words, with the guarantee's condition; every number is rounded up."""
        return self.said

    def to_json(self) -> dict[str, float | str]:
        """Return the odds as JSON."""
        numbers = {key: value for key, value in self._asdict().items() if key != "said"}
        return {"prior": 0.5, **numbers, "sentence": self.said}


def _said(right: float, detected: float, rarely: float, secret: str) -> str:
    return (
        f"An attacker who knows everything except {secret}, and who considers both cases equally likely, "
        f"is right at most {percent(right)} of the time. A random guess is right 50% of the time. At a "
        f"false-alarm rate of 1%, the attacker's detection rate is at most {percent(detected)}; at 0.1%, at "
        f"most {percent(rarely)}."
    )


def posterior(epsilon: float, delta: float) -> float:
    """Return the best chance to distinguish two equally likely cases: (e^epsilon + delta) / (1 + e^epsilon).

    Example:
        >>> round(posterior(1.0, 0.0), 3)
        0.731
    """
    doubt = math.exp(-epsilon)
    return min((1 + delta * doubt) / (1 + doubt), 1.0)


def power(epsilon: float, delta: float, alarms: float) -> float:
    """Return the largest chance to detect a case with this chance of a false alarm.

    Example:
        >>> round(power(1.0, 0.0, 0.01), 4)
        0.0272
    """
    doubt = math.exp(-epsilon)
    steep = (alarms / doubt if doubt > 0 else math.inf) + delta
    return min(1.0, steep, 1 - doubt * (1 - delta - alarms))


def percent(chance: float) -> str:
    """Return a chance in percent with one digit after the point, rounded up."""
    return f"{math.ceil(1000 * chance - 1e-9) / 10:g}%"


def odds_picture(odds: Odds) -> Html:
    """Return a small picture of the odds: a guess, the bound, and certainty."""
    width, middle, most = 400, 200, math.ceil(400 * odds.posterior)
    right = percent(odds.posterior)
    text = '<text y="43" font-size="11" fill="currentColor"'
    drawn = [
        f'<rect x="0" y="8" width="{width}" height="16" fill="none" stroke="currentColor"/>',
        f'<rect x="0" y="8" width="{most}" height="16" fill="currentColor" opacity="0.35"/>',
        f'<line x1="{middle}" y1="2" x2="{middle}" y2="30" stroke="currentColor"/>',
        f'{text} x="{middle}" text-anchor="middle">guess</text>',
        f'{text} x="{width}" text-anchor="end">certain</text>',
    ]
    words = f"A random guess is right 50% of the time, the best attacker at most {right}"
    opening = f'<svg viewBox="0 0 {width} 46" width="{width}" role="img" aria-label="{words}">'
    caption = f"<figcaption>The best attacker is right at most {right} of the time</figcaption>"
    return Html(f"<figure>{caption}{opening}{''.join(drawn)}</svg></figure>")


def odds_bar(odds: Odds, width: int = 40) -> str:
    """Return the picture as one line of text: a guess is in the middle, certainty at the end."""
    filled = math.ceil(width * odds.posterior)
    return f"guess {'█' * (width // 2)}|{'█' * (filled - width // 2)}{'░' * (width - filled)} certain"
