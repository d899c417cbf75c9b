"""Define the array types that packages share."""

from __future__ import annotations

from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

#: Any array, as compiled loops take it.
Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

#: What numpy raises on a malformed header of an array file.
STRANGE_HEADER = (SyntaxError, TypeError, RecursionError, TokenError)
