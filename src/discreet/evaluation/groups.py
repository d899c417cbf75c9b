"""Score groups of held-out rows apart, to see what noise costs each. For the data owner: NOT PRIVATE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack, final

import numpy as np

from discreet.core import Indices, UnknownChoice
from discreet.data import Interactions, Vocabulary, item_frame, words_of
from discreet.evaluation.errors import GroupsNeedTable
from discreet.evaluation.metrics import Flags, Metric, Predictor
from discreet.evaluation.results import GroupRun
from discreet.evaluation.scoring import HowScored, measure
from discreet.evaluation.shown_metrics import popularity_thirds

#: Groups that need no table.
ACTIVITY, POPULARITY = "activity", "popularity"
_ACTIVITY = ("least active quarter", "second quarter", "third quarter", "most active quarter")
_POPULARITY = ("head items", "middle items", "tail items")
# Values beyond the most frequent ones of a column are one group.
_MOST_VALUES, _OTHERS = 12, "others"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How held-out rows are grouped: by `activity`, by `popularity`, or by a column of a table.

    The column is one of `user_features` or of `item_features`, whose first column has IDs.
    """

    by: str
    user_features: Any = None
    item_features: Any = None

    def of(self, train: Interactions, test: Interactions) -> dict[str, Flags]:
        """Return the held-out rows of each group that has some, as flags. Groups may overlap."""
        if self.by == ACTIVITY:
            found = _marked(_ACTIVITY, _quarters(train, test)[test.rows()])
        elif self.by == POPULARITY:
            found = _marked(_POPULARITY, popularity_thirds(train)[test.items])
        else:
            found = self._by_column(test)
        return {name: flags for name, flags in found.items() if flags.any()}

    def _by_column(self, test: Interactions) -> dict[str, Flags]:
        tables = (
            (self.user_features, test.users, test.rows().astype(np.int64)),
            (self.item_features, test.catalog, test.items.astype(np.int64)),
        )
        given = [(item_frame(table), ids, of) for table, ids, of in tables if table is not None]
        if not given:
            raise GroupsNeedTable(column=self.by)
        for table, ids, of in given:
            if self.by in table.columns[1:]:
                words = words_of(table[self.by], apart=False)
                return _by_words(ids, table.to_series(0), words, of)
        columns = [name for table, _, _ in given for name in table.columns[1:]]
        raise UnknownChoice(name="by", value=self.by, choices=[ACTIVITY, POPULARITY, *columns])


def score_groups(
    grouping: Grouping,
    model: Predictor,
    plain: Predictor | None,
    train: Interactions,
    test: Interactions,
    metrics: Iterable[Metric],
    **how: Unpack[HowScored],
) -> dict[str, GroupRun]:
    """Return each group's scores by the model and, if there is one, by the model without noise."""
    metrics, found = tuple(metrics), dict[str, GroupRun]()
    for name, flags in grouping.of(train, test).items():
        own = test.where(flags)
        without = {} if plain is None else measure(plain, train, own, metrics, **how)
        found[name] = GroupRun(own.n_ratings, measure(model, train, own, metrics, **how), without)
    return found


def _marked(names: Sequence[str], group: Indices) -> dict[str, Flags]:
    return {name: group == place for place, name in enumerate(names)}


def _quarters(train: Interactions, test: Interactions) -> Indices:
    """Return the quarter of each user by training rows, among users with held-out rows."""
    lengths = np.diff(train.indptr)
    tested = lengths[np.diff(test.indptr) > 0]
    return np.searchsorted(np.quantile(tested, (0.25, 0.5, 0.75)), lengths)


def _by_words(ids: Vocabulary, named: Any, words: list[list[str]], of: Indices) -> dict[str, Flags]:
    """Return the rows `of` users or items that have each word."""
    places = ids.index_of(named)
    known = [(int(place), set(own)) for place, own in zip(places, words, strict=True) if place >= 0]
    common = [word for word, _ in Counter(word for _, own in known for word in own).most_common()]
    shown, rest = common[:_MOST_VALUES], set(common[_MOST_VALUES:])
    groups = {word: [place for place, own in known if word in own] for word in sorted(shown)}
    if rest:
        groups[_OTHERS] = [place for place, own in known if own & rest]
    found = {}
    for word, members in groups.items():
        has = np.zeros(len(ids), dtype=np.bool_)
        has[members] = True
        found[word] = has[of]
    return found
