"""Enumerate finite local mechanisms: the loss of a report, exactly, from the counts that are drawn from.

No games are needed where every outcome of every input can be listed; they serve as a cross-check only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.white_box.costs import cell_answers
from discreet.audit.white_box.recording import RecordedTable, Recorder
from discreet.core.arrays import Floats
from discreet.core.checks import DataError
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.mechanisms.bounded import ModifiedLaplace
from discreet.privacy.mechanisms.cells import CellMechanism
from discreet.privacy.mechanisms.channel import WORDS


def answers_of(mechanism: Any, inputs: npt.ArrayLike) -> Floats:
    """Return the probability of every answer, one row an input.

    Cells come with their own inputs, the empty cell first. For others the rows are read off the draw itself,
    as it passes the hook, and not off a formula beside it.

    Raises:
        DataError: The mechanism does not draw each input's answer from one table.
    """
    if isinstance(mechanism, CellMechanism):
        return cell_answers(mechanism)
    if isinstance(mechanism, ModifiedLaplace):
        rated = mechanism.keep() * mechanism.channel().transition
        empty = mechanism.likelihood_missing(mechanism.channel().outputs)
        silent = np.array([1 - mechanism.fake(), *np.full(len(rated), 1 - mechanism.keep())])
        return np.hstack([silent[:, None], np.vstack([empty, rated])])
    recorder = Recorder()
    mechanism.release(np.asarray(inputs), PrivacyRandom.recorded(0, recorder))
    tables = [call for call in recorder.calls if isinstance(call, RecordedTable)]
    if len(tables) != 1 or len(recorder.calls) != 1:
        raise DataError("Only a mechanism that draws every answer from one table can be enumerated.")
    rows = tables[0].starts[tables[0].rows.reshape(-1)]
    return np.asarray(np.diff(rows, axis=1, append=np.uint64(0)) / float(WORDS))


def exact_loss(mechanism: Any, inputs: npt.ArrayLike = ()) -> float:
    """Return the largest log-ratio of an answer between any two inputs.

    Example:
        >>> from discreet.privacy.mechanisms.randomized_response import SignFlip
        >>> round(exact_loss(SignFlip(epsilon=1.0), [-1, 1]), 9)
        1.0
    """
    answers = answers_of(mechanism, inputs)
    with np.errstate(divide="ignore"):
        logarithms = np.log(answers)
    return float(np.max(logarithms.max(axis=0) - logarithms.min(axis=0)))
