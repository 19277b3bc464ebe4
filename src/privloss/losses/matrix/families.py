"""Well known Toeplitz matrices C, by the coefficients of their first column (in doubles: C is what they say).

- square root: C C is the matrix of prefix sums, c_j = c_(j-1) (2j-1)/(2j); non-negative and decreasing. Its inverse has
  the coefficients c_j - c_(j-1).
- BLT (buffered linear Toeplitz): c_0 = 1, c_j = sum_i omega_i theta_i^(j-1), 0 <= theta_i <= 1.
- banded inverse: the noise is a moving sum with a few coefficients a_0, a_1, ..., that is, C has the power series of
  1/(a_0 + a_1 x + ...); with those of the inverse square root this is the banded inverse square root (BISR).

>>> square_root(4)
array([1.    , 0.5   , 0.375 , 0.3125])
>>> inverse_square_root(4)
array([ 1.    , -0.5   , -0.125 , -0.0625])
>>> banded_inverse(np.array([1.0, -0.5]), 4)
array([1.   , 0.5  , 0.25 , 0.125])
>>> blt(np.array([0.5]), np.array([0.5]), 4)
array([1.   , 0.5  , 0.25 , 0.125])
"""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from privloss.numerics.floats import Real


def square_root(steps: int) -> Real:
    """C with C C = prefix sums."""
    j = np.arange(1, steps)
    return np.concatenate([[1.0], np.cumprod((2 * j - 1) / (2 * j))])


def inverse_square_root(steps: int) -> Real:
    """Its inverse: -c_j / (2j - 1), without the cancellation of c_j - c_(j-1)."""
    j = np.arange(1, steps)
    return np.concatenate([[1.0], -square_root(steps)[1:] / (2 * j - 1)])


def banded_inverse(noise: Real, steps: int) -> Real:
    """The inverse of the Toeplitz matrix with these few coefficients, by the recurrence of its power series."""
    return np.asarray(lfilter([1.0], noise, np.eye(1, steps)[0]))


def blt(omega: Real, theta: Real, steps: int) -> Real:
    """A sum of geometric sequences behind a one."""
    powers = theta[:, None] ** np.arange(max(steps - 1, 0))[None, :]
    return np.concatenate([[1.0], omega @ powers])[:steps]
