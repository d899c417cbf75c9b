"""Hide one item of each person by a rule that looks at that person's own row only.

Splits for experiments draw from one stream for everybody: one more person would change what others hide.
"""

from __future__ import annotations

import numpy as np

from discreet.data.bounding import keep_per_user
from discreet.data.interactions import Interactions
from discreet.data.splits import Split


def hide_one_each(data: Interactions) -> Split:
    """Hide everybody's latest item, or without times one by a public hash; who has one item keeps it."""
    chosen = keep_per_user(data.indptr, data.items, data.times, data.users, data.catalog, cap=1)
    lengths = np.diff(data.indptr)
    chosen &= np.repeat(lengths > 1, lengths)
    return Split.by_mask(data, chosen)
