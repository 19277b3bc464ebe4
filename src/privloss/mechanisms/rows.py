"""A matrix as a parameter: checked, compared and hashed by its numbers, told by its size.

>>> m = Matrix.of("matrix", [[1, 0], [0.5, 1]])
>>> m, m == Matrix.of("matrix", [[1.0, 0.0], [0.5, 1.0]])
(<2 x 2, sha256 92187586>, True)
"""

from __future__ import annotations

import hashlib
from dataclasses import MISSING
from typing import Any

import numpy as np

from privloss.errors import InvalidInput
from privloss.losses.matrix.strategy import MOST_ENTRIES
from privloss.mechanisms.parameters import Parameter, declare
from privloss.numerics.floats import Real


class Matrix:
    """Rows of finite numbers, not to be changed."""

    def __init__(self, array: Real) -> None:
        self.array = np.array(array, dtype=float, order="C")
        self.array.setflags(write=False)
        self.digest = hashlib.sha256(repr(self.array.shape).encode() + self.array.tobytes()).hexdigest()

    @classmethod
    def of(cls, name: str, value: Any) -> Matrix:
        """A matrix from rows of numbers or an array."""
        if isinstance(value, Matrix):
            return value
        rule = f"{name}: must be rows of equally many finite numbers"
        if isinstance(value, (str, bytes)):
            raise InvalidInput(f"{rule}.")
        try:
            raw = np.asarray(value)
            if raw.dtype.kind not in "iuf":
                raise InvalidInput(f"{rule}, not of {raw.dtype}.")
            array = raw.astype(float)
        except (ValueError, TypeError):
            raise InvalidInput(f"{rule}.") from None
        if array.ndim != 2 or array.size == 0 or not bool(np.isfinite(array).all()):
            raise InvalidInput(f"{rule}; has the shape {array.shape}.")
        if array.size > MOST_ENTRIES:
            raise InvalidInput(f"{name}: has {array.size} entries, at most {MOST_ENTRIES} are supported.")
        return cls(array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matrix) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        rows, columns = self.array.shape
        return f"<{rows} x {columns}, sha256 {self.digest[:8]}>"


def rows(*, default: Any = MISSING, description: str) -> Any:
    """A matrix, row by row."""
    row = {"type": "array", "minItems": 1, "items": {"type": "number"}}
    schema = {"type": "array", "minItems": 1, "items": row, "description": description}
    return declare(Parameter(Matrix.of, schema), default)
