"""The Gaussian mechanism in closed form, for numbers and for vectors.

>>> gaussian_delta(1.0, sensitivity=1.0, sigma=2.0)
Bound(0.00682959498311..., 0.00682959498311...)
>>> gaussian_delta(1.0, sensitivity=[0.6, 0.8], sigma=[2.0, 2.0]) == gaussian_delta(1.0, sensitivity=1.0, sigma=2.0)
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from privloss.answers import exact
from privloss.errors import InvalidInput
from privloss.mechanisms.gdp import GDP
from privloss.numerics import check
from privloss.numerics.bound import Bound


def gaussian_mu(sensitivity: float | Sequence[float], sigma: float | Sequence[float]) -> float:
    """The distance in units of noise: |sensitivity/sigma|, the l2 norm of the quotients for vectors."""
    shifts = list(sensitivity) if isinstance(sensitivity, Sequence) else [sensitivity]
    noises = list(sigma) if isinstance(sigma, Sequence) else [sigma] * len(shifts)
    if len(shifts) != len(noises) or not shifts:
        raise InvalidInput(f"sensitivity has {len(shifts)} entries, sigma {len(noises)}: must be equal and not zero.")
    a = [check.number(f"sensitivity[{i}]", s, low=0) for i, s in enumerate(shifts)]
    b = [check.number(f"sigma[{i}]", s, low=0, above=True) for i, s in enumerate(noises)]
    return math.hypot(*(x / y for x, y in zip(a, b, strict=True)))


def gaussian_delta(epsilon: float, sensitivity: float | Sequence[float], sigma: float | Sequence[float]) -> Bound:
    """delta(epsilon) of Gaussian noise (Cor. gauss_adp_exact and, for vectors, gauss_adp_exact_multi)."""
    return exact.one_delta(GDP(gaussian_mu(sensitivity, sigma)).as_plan(), epsilon)


def gaussian_epsilon(delta: float, sensitivity: float | Sequence[float], sigma: float | Sequence[float]) -> Bound:
    """epsilon(delta) of Gaussian noise."""
    return exact.one_epsilon(GDP(gaussian_mu(sensitivity, sigma)).as_plan(), delta)
