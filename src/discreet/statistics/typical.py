"""Typical sizes of ratings, in units in which the scale runs from -1 to 1; public, and light to import."""

from __future__ import annotations

#: Weight of the counts against the residuals in a user's contribution.
COUNT_PART = 0.2
#: A user's own mean is shrunk as if they had rated this many average items more.
USER_RIDGE = 3.0
#: Typical deviation of a rating from its prediction; without noise this alone sets the shrinkage.
TYPICAL_RESIDUAL = 0.45
