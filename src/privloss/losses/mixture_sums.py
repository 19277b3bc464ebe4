"""M(z) of a Gaussian mixture as a sum over quadrature nodes, with its rounding bounded.

With Z the loss (log r for P against Q, -log r for Q against P) and the mean E[Z] computed from an integrand without
cancellation,

    M(z) - 1 = E[ e^(zZ) - 1 - zZ ] + z E[Z],        K = log1p(M - 1),

keeps *relative* accuracy in K both for small losses (10^9 steps lose no more digits than 10) and for small z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privloss.losses.mixture_grid import Grid, Rows
from privloss.numerics.small import (
    UNIT,
    Complex,
    Real,
    angle_minus_sine,
    exp_minus_1_minus,
    log1p_polar,
    x_minus_log1p,
)

_RECURRENCE_FROM = 30_000  # nodes (over all rows) from which turning by recurrence beats calling sin and cos
_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Nodes:
    """Weights and losses at the nodes on the real axis, all arrays (rows, nodes)."""

    c: Real
    weight: Real  # P-mass of a node
    tilted: Real  # weight * e^(cZ - scale)
    z: Real
    excess: Real  # weight * (e^(cZ) - 1 - cZ)
    excess_first: Real  # weight * (e^(cZ) - 1)
    mean: Real  # E[Z], per row
    mean_error: Real
    scale: Real  # per row; 0 unless e^(cZ) would overflow
    slack: Real  # relative rounding error of each node's weight, in units of UNIT

    @classmethod
    def at(cls, rows: Rows, start: Real, step: Real, size: int) -> Nodes:
        y = start[:, None] + step[:, None] * np.arange(size)
        _, x, log_r = rows.log_ratio(y)
        c = rows.c[:, None]
        squared = (y / rows.sigma[:, None]) ** 2
        log_phi = (np.log(step / rows.sigma) - _LOG_SQRT_2PI)[:, None] - 0.5 * squared
        base = np.exp(log_phi)
        near = x < 0.25
        gap = x_minus_log1p(np.where(near, x, 0.0))
        with np.errstate(over="ignore", invalid="ignore"):
            log_mixed = log_phi + log_r
            mixed = np.exp(log_mixed)
            if rows.flipped:  # E_Q[x] = 0, so E[Z] = E_Q[x - log r]
                log_weight, weight, z = log_phi, base, -log_r
                term = np.where(near, base * gap, mixed - base * (1.0 + log_r))
            else:  # E[Z] = E_Q[r log r - x], and r log r - x = x log r - (x - log r)
                log_weight, weight, z = log_mixed, mixed, log_r
                term = np.where(near, base * (x * log_r - gap), mixed * (log_r - 1.0) + base)
            cz = c * z
            exponent = log_weight + cz
            top = exponent.max(axis=1, keepdims=True)
            scale = np.where(top > 300.0, top, 0.0)
            tilted = np.exp(exponent - scale)
        small = np.abs(cz) < 0.25
        tame = np.where(small, cz, 0.0)
        slack = 64 + size + 2 * squared + 4 * (1 + np.abs(c)) * np.abs(log_r)
        return cls(
            c=rows.c,
            weight=weight,
            tilted=tilted,
            z=z,
            excess=np.where(small, weight * np.real(exp_minus_1_minus(tame)), tilted - weight * (1 + cz)),
            excess_first=np.where(small, weight * np.expm1(tame), tilted - weight),
            mean=term.sum(axis=1),
            mean_error=UNIT * (np.abs(term) * slack).sum(axis=1),
            scale=scale[:, 0],
            slack=slack,
        )

    def moments(self) -> tuple[Real, Real, Real]:
        """K, K', K'' at c."""
        unscaled = self.scale == 0
        total = self.tilted.sum(axis=1)
        m1 = np.where(unscaled, self.excess.sum(axis=1) + self.c * self.mean, 0.0)
        k = np.where(unscaled, np.log1p(m1), self.scale + np.log(total))
        first = (self.excess_first * self.z).sum(axis=1) + self.mean
        k1 = np.where(unscaled, first / (1 + m1), (self.tilted * self.z).sum(axis=1) / total)
        second = (self.tilted * self.z * self.z).sum(axis=1)
        return k, k1, second / np.where(unscaled, 1 + m1, total) - k1 * k1


def read_real(rows: Rows, grid: Grid, t: Real) -> tuple[Real, Real, Real]:
    """log|M|, arg M and error for nodes on the real axis; arrays (rows, len(t))."""
    nodes = Nodes.at(rows, grid.start, grid.step, grid.size)
    drop, turned, lag, turned_all, extra_slack = _trigonometric_sums(nodes, t)
    mean = nodes.mean[:, None]
    # e^(zZ) - 1 - zZ = [e^a - 1 - a - 2 e^a sin^2(b/2)] + i [(e^a - 1) sin b - (b - sin b)],  a = cZ, b = tZ
    re = nodes.excess.sum(axis=1)[:, None] - 2 * drop + rows.c[:, None] * mean
    im = turned - lag + t * mean
    k_re, k_im = log1p_polar(re, im)
    scaled = nodes.scale[:, None]
    if turned_all is not None:
        total_re = nodes.tilted.sum(axis=1)[:, None] - 2 * drop
        k_re = np.where(scaled > 0, scaled + _log(np.hypot(total_re, turned_all)), k_re)
        k_im = np.where(scaled > 0, np.arctan2(turned_all, total_re), k_im)
    majorant = np.maximum(nodes.weight * np.exp(-np.minimum(scaled, 700.0)), nodes.tilted)
    slack = nodes.slack + extra_slack
    log_rounding = _log_rounding(np.hypot(rows.c[:, None], t), nodes.z, majorant, slack, nodes.mean_error) + scaled
    log_error = np.logaddexp(grid.log_error(rows, t), log_rounding)
    return k_re, k_im, _relative(log_error, k_re)


def _trigonometric_sums(nodes: Nodes, t: Real) -> tuple[Real, Real, Real, Real | None, float]:
    """With b = tZ: sums of tilted sin^2(b/2), excess_first sin b, weight (b - sin b), (where some row is scaled)
    tilted sin b, and the rounding slack this way of computing them needs."""
    scaled = bool(np.any(nodes.scale > 0))
    if nodes.z.size < _RECURRENCE_FROM or len(t) < 8:
        angle = t[None, :, None] * nodes.z[:, None, :]
        half = np.sin(0.5 * angle)
        sine = 2 * half * np.cos(0.5 * angle)
        every = _dot(sine, nodes.tilted) if scaled else None
        lag = _dot(angle_minus_sine(angle), nodes.weight)
        return _dot(half * half, nodes.tilted), _dot(sine, nodes.excess_first), lag, every, 0.0
    drop, turned, lag, all_turned = (np.zeros((len(nodes.z), len(t))) for _ in range(4))
    step = 0.5 * nodes.z * (t[1] - t[0])
    s1, c1 = np.sin(step), np.cos(step)
    s, c = np.sin(0.5 * nodes.z * t[0]), np.cos(0.5 * nodes.z * t[0])
    for n, height in enumerate(t):
        sine = 2 * s * c
        drop[:, n] = np.einsum("ij,ij->i", s * s, nodes.tilted)
        turned[:, n] = np.einsum("ij,ij->i", sine, nodes.excess_first)
        angle = height * nodes.z
        square = angle * angle
        series = angle * square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72 * (1 - square / 110))))
        lag[:, n] = np.einsum("ij,ij->i", np.where(square < 0.25, series, angle - sine), nodes.weight)
        if scaled:
            all_turned[:, n] = np.einsum("ij,ij->i", sine, nodes.tilted)
        s, c = s * c1 + c * s1, c * c1 - s * s1
    return drop, turned, lag, all_turned if scaled else None, 8.0 * len(t)


def read_lifted(rows: Rows, grid: Grid, t: Real) -> tuple[Real, Real, Real]:
    """The same for nodes on Im y = v, t >= 0. The integrand is f(y + iv); for Q against P we read the conjugate
    E_Q[r^(-c + it)], so that |r^(it)| = e^(-t arg r) <= 1 in both directions."""
    q, sigma, c = rows.q[:, None], rows.sigma[:, None], rows.c[:, None]
    y = grid.start[:, None] + grid.step[:, None] * np.arange(grid.size)
    v = grid.shift[:, None]
    theta = v / sigma**2
    s, _, log_r_axis = rows.log_ratio(y)
    log_r, x = _complex_ratio(q, s, theta)
    squared = (y / sigma) ** 2
    # phi(y + iv) = phi(y) e^(v^2/2sigma^2) e^(-i y v/sigma^2)
    log_phi = (np.log(grid.step / rows.sigma) - _LOG_SQRT_2PI)[:, None] - 0.5 * squared + 0.5 * theta * v
    phi = np.exp(log_phi)
    turn = np.exp(-1j * y * theta)
    w = (-c if rows.flipped else 1 + c) + 1j * t[None, :]
    u = w[:, :, None] * log_r[:, None, :]
    small = np.abs(u) < 0.25
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.exp(log_phi[:, None, :] + u) - phi[:, None, :] * (1 + u)
    excess = np.where(small, phi[:, None, :] * exp_minus_1_minus(np.where(small, u, 0.0)), far)
    # phi (x - log r), the part linear in w; far right through e^(log phi + log r), which cannot overflow
    close = np.abs(x) < 0.25
    gap = np.where(
        close, phi * x_minus_log1p(np.where(close, x, 0.0)), np.exp(log_phi + log_r) - phi * (1 + log_r)
    )
    m1 = (excess * turn[:, None, :]).sum(axis=2) - w * (gap * turn).sum(axis=1)[:, None]
    k_re, k_im = log1p_polar(m1.real, m1.imag)
    growth = np.maximum((-c if rows.flipped else 1 + c) * log_r.real, 0.0)
    slack = 64 + grid.size + 2 * squared + 4 * (2 + c) * np.abs(log_r_axis)
    mean_error = UNIT * (np.abs(gap) * slack).sum(axis=1)
    size = np.hypot(1 + c, t)
    log_rounding = _log_rounding(size, np.abs(log_r), np.exp(log_phi + growth), slack, mean_error)
    log_error = np.logaddexp(grid.log_error(rows, t), log_rounding)
    return k_re, -k_im if rows.flipped else k_im, _relative(log_error, k_re)


def _complex_ratio(q: Real, s: Real, theta: Real) -> tuple[Complex, Complex]:
    """log r and x = r - 1 at y + iv: x = q (e^(s + i theta) - 1)."""
    beyond = s > 30.0
    tame = np.where(beyond, 0.0, s)
    re = q * (np.expm1(tame) * np.cos(theta) - 2 * np.sin(theta / 2) ** 2)
    im = q * np.exp(tame) * np.sin(theta)
    log_abs, arg = log1p_polar(re, im)
    far = (s + np.log(q)) + 1j * theta + np.log1p((1 - q) / q * np.exp(-np.maximum(s, 30.0) - 1j * theta))
    return np.where(beyond, far, log_abs + 1j * arg), np.where(beyond, 1.0, re + 1j * im)


def _log_rounding(size: Real, z: Real, majorant: Real, slack: Real, mean_error: Real) -> Real:
    """log of a bound on the rounding error of M, shape (rows, len(t)); `size` is |z| (or |w| for lifted nodes).

    With |e^u - 1 - u| <= max(1, e^a) min(|u|^2/2, 2 + |u|), u = (point) * Z, relative weight errors `slack` and a
    relative error of 8 roundings in u, the sum over nodes is at most the smaller of the two expressions below.
    """
    first = majorant * np.abs(z)
    second = first * np.abs(z)
    cubic = (second * np.abs(z)).sum(axis=1)[:, None]
    small = size**2 * (0.5 * (second * (slack + 16)).sum(axis=1)[:, None] + 8 * size * cubic)
    large = 2 * (majorant * slack).sum(axis=1)[:, None] + size * (first * (slack + 32)).sum(axis=1)[:, None]
    return _log(UNIT * np.minimum(small, large) + size * mean_error[:, None])


def _relative(log_error: Real, log_modulus: Real) -> Real:
    """e with |exact/computed - 1| <= expm1(e), from the logs of the absolute error and of the modulus."""
    return np.logaddexp(0.0, np.minimum(log_error - np.maximum(log_modulus, -600.0), 700.0))


def _dot(values: Real, weights: Real) -> Real:
    """Sum over nodes: (rows, t, nodes) x (rows, nodes) -> (rows, t)."""
    return np.asarray(np.matmul(values, weights[:, :, None])[:, :, 0])


def _log(x: Real) -> Real:
    return np.asarray(np.log(np.maximum(x, 1e-300)))
