"""Say what is typical of ratings, in units in which the scale runs from -1 to 1; settled once and public."""

from __future__ import annotations

#: The part of a person's vector that counts ratings, against the part that sums residuals.
COUNT_PART = 0.2
#: A person's own mean is shrunk as if they had rated this many average items more.
USER_RIDGE = 3.0
#: What one rating typically deviates from its prediction: without noise this alone says how far to shrink.
TYPICAL_RESIDUAL = 0.45
