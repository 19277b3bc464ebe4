"""M(z) of a Gaussian mixture as a sum over quadrature nodes, with its rounding bounded.

With Z the loss (log r for P against Q, -log r for Q against P) and the mean E[Z] computed from an integrand without
cancellation,

    M(z) - 1 = E[ e^(zZ) - 1 - zZ ] + z E[Z],        K = log1p(M - 1),

keeps *relative* accuracy in K both for small losses (10^9 steps lose no more digits than 10) and for small z. E[Z] is
found once; that its own quadrature differs from that of M(z) is part of the majorant (`mixture_grid`).

Nodes with |zZ| < 1 along the whole line enter through the moments of Z: their sum is a polynomial in z. For the others
e^(zZ) on equally spaced heights factors, e^((z_a + i b D) Z) = e^(z_a Z) e^(i b D Z), so that the sum over nodes is a
matrix product of two small tables.

Nodes may lie on a line Im y = v > 0 (see `mixture_grid`); then weights and losses are complex. For Q against P we read
the conjugate, M(c - it), so that |r^(it)| = e^(-t arg r) <= 1 in both directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from privloss.losses.mixture.explicit import mean_grid
from privloss.losses.mixture.grid import Grid, Members, majorant
from privloss.numerics.floats import UNIT, Complex, Real, raised
from privloss.numerics.stable import log1p_polar, product, x_minus_log1p

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)
_DEGREE = 20  # of the polynomial for |zZ| < 1; 2/21! < 1e-19 of the leading term is left out
_FACTORIALS = np.cumprod(np.arange(1.0, _DEGREE + 1))[1:]  # 2!, 3!, ...
_PROBABILITY = 4e-12  # relative error of a normal probability of e^-1; its exponent is off by as much of itself
_TAME = 300.0  # log of what fits into doubles with room to spare
_AXIS = np.zeros(1)
_LEAST = -650.0  # log of a probability that is surely no denormal number


@dataclass(frozen=True)
class Mean:
    """E[Z] with its error, and Var[Z] to a few digits, per row; they do not depend on z."""

    value: Real  # without the term (P - Q)[y > trim] of trimmed rows
    error: Real
    variance: Real

    def part(self, at: slice) -> Mean:
        return Mean(self.value[at], self.error[at], self.variance[at])

    def tiled(self, times: int) -> Mean:
        return Mean(tiled(self.value, times), tiled(self.error, times), tiled(self.variance, times))


def tiled(values: Real, times: int) -> Real:
    """So many copies end to end."""
    return np.concatenate([values] * times)


def means(rows: Members, log_goal: Real) -> tuple[Mean, Mean]:
    """E[Z] for P against Q, E_Q[x log r - (x - log r)], and for Q against P, E_Q[x - log r] (E_Q[x] = 0).

    The quadrature of M(z) errs by at most |z(z+1)|/2 times a constant, so its derivative at 0 by half of it. `rows` are
    those of P against Q; the other direction's majorant at c = 0 is at most 5/4 (1 + 1/(1-q)) times theirs (its factor
    cos(theta/2)^-2 <= 2 is covered as well, since x - log r <= x^2/2 leaves that much room).
    """
    grid = mean_grid(rows, log_goal)
    if grid is None:
        grid = majorant(replace(rows, c=np.zeros_like(rows.c))).grid(0.0, log_goal, False)
    y = grid.start[:, None] + grid.step[:, None] * np.arange(grid.size)
    _, x, log_r = rows.log_ratio(y)
    squared = (y / rows.sigma[:, None]) ** 2
    log_phi = (np.log(grid.step / rows.sigma) - _LOG_SQRT_2PI)[:, None] - 0.5 * squared
    base, mixed = np.exp(log_phi), np.exp(log_phi + log_r)
    near = x < 0.25
    x = np.where(near, x, 0.0)
    gap = x_minus_log1p(x)
    back = np.where(near, base * gap, mixed - base * (1.0 + log_r))
    forth = np.where(near, base * (x * log_r - gap), mixed * (log_r - 1.0) + base)
    slack = UNIT * (64 + grid.size + 2 * squared + 4 * np.abs(log_r))
    error = 0.5 * (np.exp(grid.log_strip) + np.exp(grid.log_tail))
    if grid.edge is not None:
        error = error + np.exp(grid.edge.log_mean_error(rows))
    squares, found = log_r * log_r, []
    for term, weight, growth in ((forth, mixed, 1.0), (back, base, 1.25 * (1 + 1 / (1 - rows.q)))):
        value = term.sum(axis=1)
        rounding = (np.abs(term) * slack).sum(axis=1)
        found.append(Mean(value, growth * error + rounding, (weight * squares).sum(axis=1) - value**2))
    return found[0], found[1]


@dataclass(frozen=True)
class Nodes:
    """Weights and losses at the nodes, arrays (rows, nodes), real or complex."""

    log_weight: Real | Complex  # log of the P-mass of a node
    z: Real | Complex
    slack: Real  # relative rounding error of a node's weight, in units of UNIT

    @classmethod
    def at(cls, rows: Members, start: Real, step: Real, size: int, lift: Real | None = None) -> Nodes:
        """Nodes start + j step (+ i lift)."""
        sigma = rows.sigma[:, None]
        y = start[:, None] + step[:, None] * np.arange(size)
        log_r: Real | Complex
        s, _, log_r = rows.log_ratio(y)
        squared = (y / sigma) ** 2
        slack = 64 + size + 2 * squared + 4 * (1 + np.abs(rows.c[:, None])) * np.abs(log_r)
        log_phi = (np.log(step / rows.sigma) - _LOG_SQRT_2PI)[:, None] - 0.5 * squared
        if lift is not None:
            theta = lift[:, None] / sigma**2
            log_r = complex_log_ratio(rows.q[:, None], s, theta)
            # phi(y + iv) = phi(y) e^(v^2/2sigma^2) e^(-i y v/sigma^2)
            log_phi = log_phi + 0.5 * theta * lift[:, None] - 1j * y * theta
        return cls(log_phi, -log_r, slack) if rows.flipped else cls(log_phi + log_r, log_r, slack)


def read(rows: Members, grid: Grid, mean: Mean, t: Real) -> tuple[Real, Real, Real]:
    """log|M|, arg M and the error e (|exact/computed - 1| <= expm1(e)) at equally spaced t >= 0; (rows, len(t))."""
    lifted = bool(np.any(grid.shift > 0))
    nodes = Nodes.at(rows, grid.start, grid.step, grid.size, grid.shift if lifted else None)
    c = rows.c[:, None]
    point = c + (-1j if rows.flipped else 1j) * t
    farthest = np.hypot(np.abs(rows.c).max(), t[-1])
    tiny = (np.abs(nodes.z) * farthest < 1.0).all(axis=0)
    light = _Part(nodes, tiny)
    heavy = _Part(nodes, ~tiny)
    m1 = point * mean.value[:, None] + light.polynomial(point) - _beyond_trim(rows, point)
    scale = np.zeros_like(c)
    if heavy.z.shape[1]:
        reach = (heavy.log_weight.real + c * heavy.z.real).max(axis=1, keepdims=True)
        scale = np.where(reach > 300.0, reach, 0.0)
        m1 = m1 - heavy.weight.sum(axis=1)[:, None] - point * (heavy.weight * heavy.z).sum(axis=1)[:, None]
        table = heavy.exponentials(rows, t, scale)
        if np.any(scale > 0):
            return _finish_scaled(rows, grid, t, mean, light, heavy, m1, table, scale)
        m1 = m1 + table
    k_re, k_im = log1p_polar(m1.real, m1.imag)
    k_re = np.maximum(k_re, -600.0)  # an exact zero must not hide its error
    log_error = np.logaddexp(grid.log_error(rows, t), _log_rounding(rows, t, mean, light, heavy, scale))
    return k_re, -k_im if rows.flipped else k_im, _relative(_with_trim(rows, t, log_error), k_re)


def upper(rows: Members, grid: Grid, mean: Mean) -> Real:
    """Upper bounds on K at c > 0 of each row, a sum of terms that are all >= 0: weight (e^u - 1 - u), u = cZ.

    Rounding: |e^u - 1 - u| <= u^2/2 max(1, e^u) carries the roundings of its weight; |e^u - 1| <= |u| max(1, e^u)
    bounds what e^u - 1 and its difference to u lose (16 with the products), and what u being off costs: by 8 of itself,
    and by c p (|y| + 1)/sigma^2, p = q e^s/r <= q + max(x, 0), for those of its node.
    """
    q, c, sigma = rows.q[:, None], rows.c[:, None], rows.sigma[:, None]
    y = grid.start[:, None] + grid.step[:, None] * np.arange(grid.size)
    _, x, log_r = rows.log_ratio(y)
    squared = (y / sigma) ** 2
    log_weight = (np.log(grid.step / rows.sigma) - _LOG_SQRT_2PI)[:, None] - 0.5 * squared
    log_weight, u = (log_weight, -c * log_r) if rows.flipped else (log_weight + log_r, c * log_r)
    if u.max() > _TAME:
        k, _, err = read(rows, grid, mean, np.zeros(1))
        return np.asarray(k[:, 0] + err[:, 0])
    weight, grown, size = np.exp(log_weight), np.expm1(u), np.abs(u)
    most = weight * size * (1 + np.maximum(grown, 0.0))
    slack = (96 + grid.size) + 2 * squared + (4 + 4 / c) * size
    off = 16 + 8 * size + 4 * c * np.minimum(q + np.maximum(x, 0.0), 1.0) * (np.abs(y) + 1) / sigma**2
    drawn = rows.c * mean.value
    whole = (weight * (grown - u)).sum(axis=1) + drawn
    rounding = UNIT * ((most * (0.5 * size * slack + off)).sum(axis=1) + 8 * (whole + np.abs(drawn)))
    if rows.trim is not None:
        whole = whole - np.real(_beyond_trim(rows, c + 0j))[:, 0]
    k = np.log1p(whole + (rounding + rows.c * mean.error))
    log_error = _with_trim(rows, _AXIS, grid.log_error(rows, _AXIS))[:, 0]
    return np.asarray(raised(k, 8, np.abs(k)) + raised(_relative(log_error, k), 8))


def _with_trim(rows: Members, t: Real, log_error: Real) -> Real:
    """The rounding of `_beyond_trim`, at most 2 (1 + |w|) P[y > trim] times that of a probability, |w| <= 1 + |z|; all
    of it where probabilities are too small for doubles."""
    if rows.log_beyond is None:
        return log_error
    each = np.where(rows.log_beyond > _LEAST, _PROBABILITY * (1 - rows.log_beyond), 1.0)
    beyond = (rows.log_beyond + np.log(each))[:, None]
    return np.asarray(np.logaddexp(log_error, beyond + np.log(2 + np.hypot(rows.c[:, None], t))))


def _beyond_trim(rows: Members, point: Complex) -> Complex:
    """Q[y > trim] + w (P - Q)[y > trim] with w = z + 1, which trimmed rows do not have (`grid.py`)."""
    if rows.trim is None:
        return np.zeros_like(point)
    plain, shifted = ndtr(-rows.trim / rows.sigma), ndtr((1 - rows.trim) / rows.sigma)
    return np.asarray(plain[:, None] + (1 + point) * (rows.q * (shifted - plain))[:, None])


def _finish_scaled(
    rows: Members, grid: Grid, t: Real, mean: Mean, light: _Part, heavy: _Part, m1: Complex, table: Complex, scale: Real
) -> tuple[Real, Real, Real]:
    """The same where M(c) is beyond the range of doubles: M = e^scale * (table + e^-scale (1 + m1))."""
    total = table + np.exp(-np.minimum(scale, 745.0)) * (1 + m1)
    k_re = scale + np.log(np.maximum(np.abs(total), 1e-300))
    k_im = np.angle(total)
    log_error = np.logaddexp(grid.log_error(rows, t), _log_rounding(rows, t, mean, light, heavy, scale) + scale)
    return k_re, -k_im if rows.flipped else k_im, _relative(_with_trim(rows, t, log_error), k_re)


class _Part:
    """Some of the nodes."""

    def __init__(self, nodes: Nodes, which: Real) -> None:
        self.log_weight = nodes.log_weight[:, which]
        self.z = nodes.z[:, which]
        self.slack = nodes.slack[:, which]
        self.weight = np.exp(self.log_weight)

    def polynomial(self, point: Complex) -> Complex:
        """The sum of weight (e^(zZ) - 1 - zZ) over these nodes, by powers of z."""
        if not self.z.shape[1]:
            return np.zeros_like(point)
        powers = np.repeat(self.z[:, None, :], _DEGREE - 1, axis=1)
        powers[:, 0] = self.weight * self.z * self.z
        moments = np.multiply.accumulate(powers, axis=1).sum(axis=2) / _FACTORIALS
        points = np.repeat(point[:, :, None], _DEGREE - 1, axis=2)
        points[:, :, 0] *= point
        # einsum, not matmul: threads of a linear algebra library cost more than so small a product
        return np.asarray(np.einsum("rtk,rk->rt", np.multiply.accumulate(points, axis=2), moments))

    def exponentials(self, rows: Members, t: Real, scale: Real) -> Complex:
        """The sum of weight e^(zZ - scale) over these nodes at each height."""
        turn = -1j if rows.flipped else 1j
        block = max(1, math.isqrt(len(t)))
        step = float(t[1] - t[0]) if len(t) > 1 else 0.0
        starts = rows.c[:, None] + turn * t[::block]
        first = np.exp((self.log_weight - scale)[:, None, :] + starts[:, :, None] * self.z[:, None, :])
        second = np.exp((turn * step * np.arange(block))[None, None, :] * self.z[:, :, None])
        return np.asarray(product(first, second).reshape(len(self.z), -1)[:, : len(t)])


def complex_log_ratio(q: Real, s: Real, theta: Real) -> Complex:
    """log r at y + iv: r = 1 + q (e^(s + i theta) - 1)."""
    beyond = s > 30.0
    tame = np.where(beyond, 0.0, s)
    re = q * (np.expm1(tame) * np.cos(theta) - 2 * np.sin(theta / 2) ** 2)
    im = q * np.exp(tame) * np.sin(theta)
    log_abs, arg = log1p_polar(re, im)
    whole = (1 - q) + q * np.exp(tame) * np.cos(theta)  # 1 + re, without cancellation near q = 1
    log_abs = np.where(re < -0.5, np.log(np.hypot(whole, im)), log_abs)
    arg = np.where(re < -0.5, np.arctan2(im, whole), arg)
    far = (s + np.log(q)) + 1j * theta + np.log1p((1 - q) / q * np.exp(-np.maximum(s, 30.0) - 1j * theta))
    return np.where(beyond, far, log_abs + 1j * arg)


def _log_rounding(rows: Members, t: Real, mean: Mean, light: _Part, heavy: _Part, scale: Real) -> Real:
    """log of a bound on the rounding error of M e^-scale, shape (rows, len(t)).

    Weights carry `slack` relative roundings and u = zZ eight. Light nodes: |e^u - 1 - u| <= e |u|^2 / 2. Heavy nodes:
    the three sums e^u, 1, u are rounded separately, so the bound is absolute, max(1, e^(cZ)) each.
    """
    size = np.hypot(rows.c[:, None], t)
    shrink = np.exp(-np.minimum(scale, 745.0))
    light_weight, light_z = np.abs(light.weight), np.abs(light.z)
    second = light_weight * light_z**2
    total = 2.72 * size**2 * (0.5 * (second * (light.slack + 32)).sum(axis=1)[:, None])
    total = total + 2.72 * 8 * size**3 * (second * light_z).sum(axis=1)[:, None]
    if heavy.z.shape[1]:
        tilted = np.exp(heavy.log_weight.real + rows.c[:, None] * heavy.z.real - scale)
        most, heavy_z = np.maximum(np.abs(heavy.weight) * shrink, tilted), np.abs(heavy.z)
        large = 2 * (most * heavy.slack).sum(axis=1)[:, None]
        large = large + size * (most * heavy_z * (heavy.slack + 32)).sum(axis=1)[:, None]
        total = total * shrink + large
    return np.asarray(np.log(np.maximum(UNIT * total + size * mean.error[:, None] * shrink, 1e-300)))


def _relative(log_error: Real, log_modulus: Real) -> Real:
    """e with |exact/computed - 1| <= expm1(e), from the logs of the absolute error and of the modulus."""
    return np.logaddexp(0.0, log_error - log_modulus)
