"""Turn sparse rows into data, so that a statistic of people can be asked about them."""

import numpy as np

from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.fixed_point import FixedPoint


def people_of(rows, n_items):
    """Return these rows as the ratings of numbered people, whatever the values are."""
    return Interactions(
        indptr=rows.indptr,
        items=rows.columns,
        values=rows.values,
        users=Vocabulary.range(rows.n_rows),
        catalog=Vocabulary.range(n_items),
        facts=PublicFacts(n_items=n_items, low=-1.0, high=1.0),
    )


def observed(value, release):
    """Return what a mechanism's method was given, as floats; of a symmetric matrix all of it."""
    if not isinstance(value, FixedPoint):
        return np.array(value)
    numbers = np.ldexp(value.counts.astype(np.float64), -value.bits)
    return numbers + np.triu(numbers, 1).T if release == "release_symmetric" else numbers
