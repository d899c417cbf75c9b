"""Hide one item of each person by a rule that looks at that person's own row only.

Splits for experiments draw from one stream for everybody: one more person would change what others hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.data.bounding import keep_per_user
from discreet.data.interactions import Interactions
from discreet.data.splits import Split


@final
@dataclass(frozen=True, slots=True)
class OneEach:
    """Hide everybody's latest item, or without times one by a public hash; who has one item keeps it."""

    def hidden(self, people: Interactions, /) -> npt.NDArray[np.bool_]:
        """Mark the hidden ratings."""
        chosen = keep_per_user(people.indptr, people.items, people.times, people.users, people.catalog, cap=1)
        lengths = np.diff(people.indptr)
        return np.asarray(chosen & np.repeat(lengths > 1, lengths))


def hide_one_each(data: Interactions) -> Split:
    """Return the data parted into what is known and what everybody hides."""
    return Split.by_mask(data, OneEach().hidden(data))
