"""The protocol behind the tables: leave one out, rank the held-out item among 99 sampled ones, cut at 10."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from discreet.data.splits import Split, leave_one_out
from discreet.evaluation.negatives import sample_negatives
from discreet.reproduce import copies

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Hold the choices to train on, and for each person the held-out item and 99 others."""

    split: Split
    clicks: csr_matrix
    leaked: csr_matrix
    people: npt.NDArray[np.int64]
    held_out: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]

    def score(self, users: Floats, items: Floats) -> tuple[float, float]:
        """Return HR@10 and NDCG@10 of scores `user . item`; ties count half."""
        own = np.einsum("ij,ij->i", users[self.people], items[self.held_out])
        rest = np.einsum("ij,ikj->ik", users[self.people], items[self.others])
        rank = np.sum(rest > own[:, None], axis=1) + 0.5 * np.sum(rest == own[:, None], axis=1)
        hit = rank < 10
        return float(hit.mean()), float(np.where(hit, 1 / np.log2(rank + 2), 0.0).mean())

    def popularity(self) -> tuple[float, float]:
        """Return the scores of the list of most chosen items, without any noise."""
        counts = np.asarray(self.clicks.sum(axis=0)).ravel()
        return self.score(np.ones((self.clicks.shape[0], 1)), counts[:, None])


def bench(name: str, seed: int) -> Bench | None:
    """Return the protocol on a data set, every rating a choice; None where the data is not at hand."""
    if copies.find(name) is None:
        return None
    data = copies.load(name)
    split = leave_one_out(data)
    people = split.test.rows().astype(np.int64)
    return Bench(
        split=split,
        clicks=_ones(split.train),
        leaked=_ones(data),
        people=people,
        held_out=split.test.items.astype(np.int64),
        others=sample_negatives(split.train, split.test, people, 99, seed=seed).astype(np.int64),
    )


def _ones(data: object) -> csr_matrix:
    matrix = csr_matrix(data.to_scipy(), dtype=np.float64)  # type: ignore[attr-defined]
    matrix.data[:] = 1.0
    return matrix
