"""|sum w e^(itv)| at many heights t."""

from __future__ import annotations

import math

import numpy as np

from privloss.numerics.floats import UNIT, Real
from privloss.numerics.stable import product

_FEW = 32  # heights, below which tables of turns do not pay


def turned(values: Real, weights: Real, t: Real) -> Real:
    """The modulus for every height t >= 0, with weights that sum to one or less. Besides what the values are off by, it
    is wrong by less than 64 + 2 len(weights) + 12 t |v|_max roundings: a turn is off by two roundings of its angle;
    where heights are equally spaced it is the product of two, and off by those of both, and by four of tv for a height
    that is not quite where it should be.

    >>> turned(np.array([0.0, math.pi]), np.array([0.5, 0.5]), np.array([0.0, 1.0, 2.0]))
    array([1.000000e+00, 6.123...e-17, 1.000000e+00])
    """
    count = len(t)
    width = float(t[-1] - t[0]) / (count - 1) if count >= _FEW else 0.0
    if count < _FEW or np.any(np.abs(t[0] + width * np.arange(count) - t) > 4 * UNIT * t):
        angle = np.multiply.outer(t, values)
        return np.hypot(np.cos(angle) @ weights, np.sin(angle) @ weights)
    block = math.isqrt(count)
    first = np.exp(1j * np.multiply.outer(t[0] + block * width * np.arange(-(-count // block)), values)) * weights
    second = np.exp(1j * np.multiply.outer(width * np.arange(block), values))
    return np.abs(product(first, second.T).reshape(-1)[:count])
