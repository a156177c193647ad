"""Types that several packages share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Codes", "Floats", "Indices", "Ints", "PathLike", "Progress"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Indices = NDArray[np.intp]
#: Positions in some table, in whatever width they were stored.
Codes = NDArray[np.integer[Any]]
PathLike = str | os.PathLike[str]
#: A function that is called with the finished and the total amount of work.
Progress = Callable[[int, int], None]
