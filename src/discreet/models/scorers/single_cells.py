"""Answer single cells of a matrix that is not released, each with its own noise, up to what was paid for."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats, Indices, Singles
from discreet.checks import DataError, DiscreetError, PrivacyError
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.models.scorers.parts import ITEMS, Constant, Ids, Number, Numbers, Stored
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.mechanisms.additive import Laplace
from discreet.randomness import PrivacyRandom
from discreet.solvers.rows import predict_cells


@final
class Vault:
    """Keep the exact factors on the trusted side; they are never written, and leave only noised.

    `noise` is that of one cell. `allowed=None` means that nobody is protected anyway (simulated noise), so an
    experiment may ask for every cell as if it were the only one.
    """

    __slots__ = ("_bound", "_left", "_noise", "_process", "_random", "_right", "allowed")

    def __init__(
        self,
        left: Floats,
        right: Floats,
        *,
        bound: float,
        noise: Laplace,
        allowed: int | None,
        random: PrivacyRandom,
    ) -> None:
        self._left, self._right = left, right
        self._bound, self._noise, self._random = bound, noise, random
        self.allowed = allowed
        self._process = os.getpid()

    def release(self, rows: Indices, items: Indices) -> Floats:
        """Return the cells with noise; cells that change one after another cost epsilon each."""
        if self.allowed is not None and os.getpid() != self._process:
            raise PrivacyError(
                "New cells are drawn only in the process that fitted the model: copies of it would each draw "
                "their own."
            )
        exact = np.clip(predict_cells(self._left, self._right, rows, items), -self._bound, self._bound)
        return self._noise.release(exact, self._random)


@final
class Answers:
    """Remember the noised cells by number, so that asking again tells nothing new."""

    __slots__ = ("_cells", "_lock", "_values")

    def __init__(self, cells: Indices, values: Floats) -> None:
        order = np.argsort(cells)
        self._cells, self._values = cells[order], values[order]
        self._lock = threading.Lock()

    def snapshot(self) -> tuple[Indices, Floats]:
        """Return the cells answered so far and their noised values."""
        with self._lock:
            return self._cells, self._values

    def of(self, cells: Indices, n_items: int, vault: Vault | None) -> Floats:
        """Return the noised values of these cells; new ones are drawn from the vault if they are paid for."""
        with self._lock:
            new = np.setdiff1d(cells, self._cells)
            if new.size:
                self._refuse_unpaid(new.size, vault)
                assert vault is not None
                noised = vault.release(*np.divmod(new, n_items))
                cells_now = np.concatenate([self._cells, new])
                order = np.argsort(cells_now)
                self._cells = cells_now[order]
                self._values = np.concatenate([self._values, noised])[order]
            answered: Floats = self._values[np.searchsorted(self._cells, cells)]
            return answered

    def _refuse_unpaid(self, new: int, vault: Vault | None) -> None:
        if vault is None:
            raise PrivacyError(
                f"{new} of these cells were not released before the model was saved; "
                "the file holds no others."
            )
        if vault.allowed is not None and self._cells.size + new > vault.allowed:
            raise PrivacyError(
                f"{self._cells.size} cells were released and {new} new ones are asked for, but "
                f"cells={vault.allowed} were paid for. Fit with more cells, which costs epsilon for each."
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedCells(Scorer):
    """Answer cells of the people the matrix was completed for; a file holds the answers given, no more."""

    kind: ClassVar[str] = "one-bit-cells"
    stored: ClassVar[Mapping[str, Stored]] = {
        "users": Ids(source="public: the people the promise speaks of", count="people"),
        "cells": Numbers(
            source="public: which cells were asked for", shape=("cells",), dtype=np.int64, least=0, most=2**62
        ),
        "values": Numbers(
            source="noised one by one; each costs epsilon, and only these are in the file", shape=("cells",)
        ),
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "above": Number(optional=True),
        "n_items": Number(least=1, equals=ITEMS),
    }

    users: Vocabulary
    n_items: int
    above: float | None
    cells: Indices
    values: Floats
    vault: Vault | None = None
    answers: Answers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "answers", Answers(self.cells, self.values))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the answered cells, numbered row by row, and their noised values."""
        cells, values = self.answers.snapshot()
        return {"users": self.users.ids, "cells": cells, "values": values}

    def check(self) -> None:
        """Refuse cells of people who are not there, or one cell answered twice."""
        if self.cells.size and int(self.cells.max()) >= len(self.users) * self.n_items:
            raise DataError("A cell belongs to nobody in the file.")
        if np.unique(self.cells).size < self.cells.size:
            raise DataError("A cell has two answers.")

    def fold_in(self, histories: Interactions) -> Floats:
        """Refuse: vectors would tell more than single cells do."""
        raise DiscreetError("This model releases single cells, not vectors. Ask for a cell with predict.")

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the noised cells; the same cell always gets the same answer."""
        known = self.users.index_of(histories.users.series)[rows].astype(np.int64)
        if known.size and known.min() < 0:
            raise DataError("This model answers only about the people it was fitted on.")
        return self.answers.of(known * self.n_items + items, self.n_items, self.vault)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the noised cells of all items: as many releases as there are items, for each person."""
        cells = np.repeat(rows, self.n_items), np.tile(np.arange(self.n_items), rows.size)
        return self.predict(histories, *cells).reshape(rows.size, -1).astype(np.float32)
