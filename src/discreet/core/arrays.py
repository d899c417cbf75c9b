"""Name the arrays that travel between rooms."""

from __future__ import annotations

from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

#: Any array; compiled loops take these.
Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

#: What numpy raises when it reads the header of an array file that a stranger wrote.
STRANGE_HEADER = (SyntaxError, TypeError, RecursionError, TokenError)
