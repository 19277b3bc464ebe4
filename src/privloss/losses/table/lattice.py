"""The lattice that a sum of atoms lives on, if there is one worth using.

>>> find_unit(np.array([0.3, 0.25]))
(0.05, array([6., 5.]))
>>> find_unit(np.array([1.0, 2**0.5])) is None
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privloss.numerics.contour.transform import Lattice
from privloss.numerics.floats import UNIT, Real, padded_up

_MOST_DECIMALS, _MOST_PARTS, _LARGEST = 7, 12, 1e9


@dataclass(frozen=True)
class Steps:
    """The values of one loss, and how often it is added."""

    values: Real
    count: int
    error: float = 0.0  # absolute error of a value


def find_unit(values: Real) -> tuple[float, Real] | None:
    """A unit of which all values are whole multiples up to a few roundings, and the multiples."""
    positive = np.unique(np.abs(values[values != 0]))
    if len(positive) == 0:
        return None
    candidates = [(10.0**-d, positive * 10.0**d) for d in range(_MOST_DECIMALS + 1)]
    candidates += [(float(positive[0]) / m, positive / positive[0] * m) for m in range(1, _MOST_PARTS + 1)]
    for unit, ratio in candidates:
        whole = np.round(ratio)
        if ratio[-1] < _LARGEST and np.all(np.abs(ratio - whole) <= 8 * UNIT * ratio) and whole[0] >= 1:
            common = math.gcd(*(int(k) for k in whole))
            scaled = unit * common if unit >= 0.5 or common == 1 else common / round(1 / unit)
            return scaled, np.round(values / scaled)
    return None


def common_lattice(steps: Sequence[Steps]) -> Lattice | None:
    """The lattice of the sum: one unit for all, values that differ by multiples of the stride."""
    found = find_unit(np.concatenate([s.values for s in steps]))
    if found is None:
        return None
    unit, _ = found
    stride, offset, shift = 0, 0, 0.0
    for step in steps:
        whole = [round(v / unit) for v in step.values]
        stride = math.gcd(stride, *(k - whole[0] for k in whole[1:]))
        offset += step.count * whole[0]
        worst = max(abs(v - k * unit) for v, k in zip(step.values, whole, strict=True))
        # the residue itself is rounded by less than a unit in the last place of the value
        size = max(abs(v) for v in step.values)
        shift += step.count * (worst + 2 * UNIT * size) if worst > 0 or len(steps) > 1 else 0.0
        shift += step.count * step.error
    if stride == 0:
        return None
    return Lattice(float(unit), stride, offset % stride, padded_up(shift, 1e-9))
