"""Functions that lose digits when written the obvious way.

>>> float(exp_minus_1_minus(1e-9)) / 0.5e-18
1.0000000003333...
>>> float(x_minus_log1p(1e-9)) / 0.5e-18
0.9999999993333...
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from privloss.numerics.floats import Complex, Real

# Below this size the Taylor series of e^u - 1 - u, cut after u^13, is exact to a rounding (2 * 0.25^12/14! < 2e-18);
# above it the direct form loses at most a factor 40 to cancellation.
_SERIES_RADIUS = 0.25
_SERIES = [1 / math.factorial(k) for k in range(13, 1, -1)]
_UNTHREADED = 40_000  # multiplications
_TILE = 32  # rows and columns


def exp_minus_1_minus(u: Real | Complex | float) -> Real | Complex:
    """e^u - 1 - u, real or complex, to a few roundings of |u|^2/2 when |u| is small."""
    u = np.asarray(u)
    small = np.abs(u) < _SERIES_RADIUS
    if np.all(small):
        return _exp_series(u)
    with np.errstate(over="ignore", invalid="ignore"):
        direct = np.exp(u) - 1.0 - u
    if np.any(small):
        direct[small] = _exp_series(u[small])
    return direct


def _exp_series(u: Real | Complex) -> Real | Complex:
    """By Horner's rule in one array: u^2 times a sum that is nearly 1/2, so that all roundings are small."""
    total = np.full(u.shape, _SERIES[0], dtype=np.result_type(u, float))
    for coefficient in _SERIES[1:]:
        total *= u
        total += coefficient
    total *= u
    total *= u
    return total[()]


def x_minus_log1p(x: Real | Complex | float) -> Real | Complex:
    """x - log(1 + x), real or complex, to a few roundings of itself.

    log(1+x) = 2 artanh(w) with w = x/(2+x), hence x - log(1+x) = x w - 2 (w^3/3 + w^5/5 + ...); for |x| <= 1/4 the
    series has |w| <= 1/7 and 10 terms leave less than 1e-17 of the result.
    """
    x = np.asarray(x)
    small = np.abs(x) < _SERIES_RADIUS
    w = np.where(small, x, 0.0)
    w = w / (2.0 + w)
    square = w * w
    total = np.zeros_like(w)
    for k in range(21, 1, -2):
        total = 1.0 / k + square * total
    series = np.where(small, x, 0.0) * w - 2.0 * w * square * total
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = x - np.log(np.where(small, 1.0, 1.0 + x))
    return np.where(small, series, direct)


def log1p_polar(re: Real, im: Real) -> tuple[Real, Real]:
    """log|1 + m| and arg(1 + m) for m = re + i im; the modulus keeps relative accuracy for small m."""
    small = np.maximum(np.abs(re), np.abs(im)) < 0.5
    with np.errstate(divide="ignore"):
        near = 0.5 * np.log1p(np.where(small, re * (2.0 + re) + im * im, 0.0))
        far = np.log(np.hypot(1.0 + re, im))
    return np.where(small, near, far), np.arctan2(im, 1.0 + re)


def exp_or_inf(x: float) -> float:
    """e^x, inf beyond the range of doubles: a bound must never be clipped."""
    return math.exp(x) if x <= 709 else math.inf


def log_sampled(rate: float, x: Real | float) -> Real:
    """log(1 - q + q e^x), with its digits where the sum is near 1 and where it is near 1 - q; 0 < q < 1.

    >>> float(log_sampled(1 - 2.0**-40, -50.0)), float(log_sampled(0.5, 1000.0))
    (-27.72588722218..., 999.306852819...)
    """
    x = np.asarray(x, dtype=float)
    with np.errstate(divide="ignore", over="ignore"):
        rise = rate * np.expm1(np.minimum(x, 600.0))
        low = np.log((1 - rate) + rate * np.exp(np.minimum(x, 0.0)))  # 1 - q is exact where q is near 1
        high = np.logaddexp(math.log1p(-rate), x + math.log(rate))
    return np.asarray(np.where(x > 600, high, np.where(rise < -0.4, low, np.log1p(np.maximum(rise, -0.5)))))


def log_sum_exp(values: Real) -> Real:
    """log of the sum of e^values over the last axis, which is kept; all -inf gives -inf.

    >>> log_sum_exp(np.array([[1000.0, 1000.0], [-math.inf, -math.inf]]))
    array([[1000.69314718],
           [        -inf]])
    """
    most = values.max(axis=-1, keepdims=True)
    safe = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(values - safe).sum(axis=-1, keepdims=True)))


def product(first: Complex, second: Complex) -> Complex:
    """The matrix product over the last two axes, in parts so small that no linear algebra library starts threads for
    them: waiting for threads costs more than the product. Tables with many rows and columns are tiled, so that a part
    is never a few columns against a few rows: adding those up costs more than multiplying them.

    >>> product(np.ones((2, 3)) + 0j, np.ones((3, 2)) + 0j)
    array([[3.+0.j, 3.+0.j],
           [3.+0.j, 3.+0.j]])
    """
    inner, rows, columns = first.shape[-1], first.shape[-2], second.shape[-1]
    if rows * columns * inner <= _UNTHREADED:
        return np.asarray(np.matmul(first, second))
    if rows * columns <= _TILE * _TILE:
        return _in_parts(first, second)
    high, wide = min(rows, max(_TILE, _TILE * _TILE // columns)), min(columns, max(_TILE, _TILE * _TILE // rows))
    total = np.empty((*np.broadcast_shapes(first.shape[:-2], second.shape[:-2]), rows, columns), dtype=complex)
    for top, left in itertools.product(range(0, rows, high), range(0, columns, wide)):
        total[..., top : top + high, left : left + wide] = _in_parts(
            first[..., top : top + high, :], second[..., left : left + wide]
        )
    return total


def _in_parts(first: Complex, second: Complex) -> Complex:
    """One tile: the sum over the inner axis, part by part."""
    inner = first.shape[-1]
    most = max(1, _UNTHREADED // (first.shape[-2] * second.shape[-1]))
    total = np.matmul(first[..., :most], second[..., :most, :])
    for start in range(most, inner, most):
        total += np.matmul(first[..., start : start + most], second[..., start : start + most, :])
    return np.asarray(total)
