"""Write numbers for readers, on the safe side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal, localcontext


def number_above(value: float, digits: int = 4) -> str:
    """Return a number with this many digits, rounded up: read back, it is never below the number."""
    if math.isinf(value):
        return "∞"
    text = f"{value:.{digits}g}"
    if float(text) >= value:
        return text
    with localcontext(prec=digits, rounding=ROUND_CEILING):
        return f"{float(+Decimal(value)):.{digits}g}"
