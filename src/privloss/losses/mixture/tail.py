"""How fast the line of a Gaussian mixture decays, with a bound that holds for every larger height at once.

With rho = phi r^(c+1) (P against Q) or phi r^(-c) (Q against P), M(c) = integral of rho. Move the y-integration to the
curve y + i v(y), v = sigma^2 theta(y), theta rising from 0 to theta_max < pi (for Q against P mirrored below the axis).
With p = q e^s / r the likelihood ratio there is r(y) (1 - p + p e^(i theta)); call the modulus of the bracket `ratio`
and its argument `arg` (0 <= arg, rising in y as long as sin theta + theta (1 - theta/theta_max) cos theta > 0, which
holds for theta_max <= 2.6). Hence for all u >= t, with power = c+1 or -c,

    |M(c+iu)| <= integral of rho B,      B = e^(sigma^2 theta^2 / 2) ratio^power e^(-t arg) sqrt(1 + v'^2).

Any curve gives a valid bound. We take theta = theta_max / (1 + e^(s0 - s)), so v' = theta (1 - theta/theta_max): for
s0 = -inf a straight line (best for large sigma), otherwise a curve that leaves the unsampled mass alone and bends only
where the record shows. On a cell every factor is taken at its worst end: theta and p rise with y, ratio^2 =
1 - 2 p(1-p)(1 - cos theta). The sum over cells of (B - 1) times the mass of rho, from above where B > 1 and from below
where B < 1, bounds |M(c+iu)| - M(c). The curvature of log rho on a cell of width D gives
mass >= D sqrt(rho1 rho2) e^(-up D^2/8) and mass <= D (rho1 + rho2)/2 e^(down D^2/8).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privloss.losses.mixture.grid import Members
from privloss.losses.mixture.windows import Cells, Windows
from privloss.numerics.floats import Real, padded_down, padded_up

_SAFETY = 1e-9  # relative; swallows the rounding of the sums below
_WIDEST = 2.6  # largest theta_max
_SCALES = np.array([0.45, 2.0])[None, :, None]  # of the bent curves
_TOPS = np.array([0.08, 0.2, 0.45])[None, :, None]  # of curves through windows


@dataclass(frozen=True, eq=False)
class _Marked:
    """The bulk of marked outcomes: |W_0| off the axis on the cells, below the first and at the end of the last, and
    1 - W_0 at their right ends."""

    cells: Cells
    start: Cells
    end: Cells
    gone: Real

    @classmethod
    def on(cls, windows: Windows, y: Real, gone: Real) -> _Marked:
        inside, start = windows.cells(0, y[:-1], y[1:]), windows.cells(0, np.array([-np.inf]), y[:1])
        return cls(inside, start, windows.cells(0, y[-1:], y[-1:]), gone[1:])


@dataclass(frozen=True)
class Shape:
    """A likelihood ratio at the edges of cells; arrays (rows, edges), or (rows, cells) for what holds on a cell."""

    s: Real  # along which curves rise
    log_r: Real
    p: Real  # sigma^2 (log r)'
    least: Real  # on each cell, of sigma^4 (log r)''
    most: Real
    odds: Real  # p at s = 0, about


def cell_edges(low: Real, high: Real, sigma: Real) -> Real:
    """So fine that log r hardly bends on a cell; arrays (rows, 1)."""
    wish = float(np.max((high - low) / (0.22 * sigma**2)))
    cells = int(min(max(wish, 96), 640)) if len(low) <= 32 else 96
    return np.asarray(low + (high - low) * np.linspace(0.0, 1.0, cells + 1))


def decay_fields(
    y: Real, sigma: Real, power: Real, shape: Shape, trimmed: bool, windows: Windows | None
) -> dict[str, Any]:
    """The fields of `Decay` from what is known at the edges y of its cells."""
    low, high, s, p = y[:, :1], y[:, -1:], shape.s, shape.p
    log_rho = -0.5 * (y / sigma) ** 2 + power * shape.log_r
    top = log_rho.max(axis=1, keepdims=True)
    rho = np.exp(log_rho - top)
    width = (high - low) / (y.shape[1] - 1)
    backward = bool(power[0, 0] <= 0)
    curve = power * shape.most / sigma**4
    up = np.maximum(curve - 1 / sigma**2, 0.0)  # largest possible (log rho)''
    down = 1 / sigma**2 + np.maximum(-curve, 0.0)  # largest possible -(log rho)''
    mass_low = width * np.sqrt(rho[:, :-1] * rho[:, 1:]) * np.exp(-up * width**2 / 8)
    whole_up = width * 0.5 * (rho[:, :-1] + rho[:, 1:]) * np.exp(np.minimum(down * width**2 / 8, 700.0))
    mass_up = whole_up
    # beyond the last cell (log rho)' <= -(y - peak)/sigma^2, so the rest is below rho sigma^2 / (y - peak)
    peak = np.maximum(power, 0.0)
    right_up = np.where(high > peak + sigma, rho[:, -1:] * sigma**2 / np.maximum(high - peak, sigma), np.inf)
    last_rho = np.zeros_like(right_up)
    marked = None
    if trimmed:
        right_up, last_rho = last_rho, rho[:, -1:]
    if windows is not None:  # the bulk of marked outcomes ends at `high`
        right_up, last_rho = np.zeros_like(right_up), rho[:, -1:]
        gone = windows.left_out(y[0])
        mass_up = mass_up * (1 - gone[:-1])
        marked = _Marked.on(windows, y[0], gone)
    # before the first cell (log rho)' >= (|y| - c p)/sigma^2, or |y|/sigma^2 for P against Q
    room = -low + np.minimum(power, 0.0) * p[:, :1]
    left_up = np.where(room > sigma, rho[:, :1] * sigma**2 / np.maximum(room, sigma), np.inf)
    return {
        "power": power[:, :, None],
        "sigma": sigma[:, :, None],
        "odds": shape.odds[:, :, None],
        "log_unit": top - np.log(sigma * np.sqrt(2 * np.pi)),
        "total_up": padded_up(mass_up.sum(axis=1, keepdims=True) + left_up + right_up, _SAFETY),
        "mass_low": mass_low,
        "mass_up": whole_up,
        "left_up": left_up,
        "right_up": right_up,
        "last_rho": last_rho,
        "fade": np.exp(np.minimum(np.maximum(-s, -690.0), 690.0))[:, None, :],
        "p": p[:, None, :],
        "spread": (shape.most if backward else shape.least)[:, None, :],
        "mean_p": ((mass_low * p[:, :-1]).sum(axis=1) / mass_low.sum(axis=1))[:, None, None],
        "marked": marked,
    }


@dataclass(frozen=True)
class Decay:
    """Everything about one vertical line that does not depend on the height; arrays (rows, cells) or (rows, edges)."""

    power: Real
    sigma: Real
    odds: Real  # q / (1-q)
    log_unit: Real  # log of the unit in which the masses below are given
    total_up: Real  # upper bound on M(c)
    mass_low: Real
    mass_up: Real
    left_up: Real  # upper bound on the mass of rho to the left of all cells
    right_up: Real  # the same to the right
    last_rho: Real  # rho at a trim, where the curve comes down to the axis again; 0 without a trim
    fade: Real  # e^-s at the edges
    p: Real  # at the edges
    spread: Real  # p(1-p), at the place in the cell that makes ratio^power largest
    mean_p: Real
    marked: _Marked | None = None
    steep: float = 1.0  # of the curves: theta = theta_max / (1 + e^(s0 - s)) with ds/dy = steep / sigma^2

    @classmethod
    def on(cls, rows: Members, low: Real, high: Real, windows: Windows | None = None) -> Decay:
        """Cells between `low` and `high`; any range is sound (an overflow leaves no decay, which is sound too)."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return cls._on(rows, low, high, windows)

    @classmethod
    def _on(cls, rows: Members, low: Real, high: Real, windows: Windows | None) -> Decay:
        q, sigma, c = rows.q[:, None], rows.sigma[:, None], rows.c[:, None]
        low, high = low[:, None], (high if rows.trim is None else rows.trim)[:, None]
        y = cell_edges(low, high, sigma)
        s, _, log_r = rows.log_ratio(y)
        p = np.exp(np.minimum(s + np.log(q) - log_r, 0.0))  # (log r)'' = p(1-p)/sigma^4
        ends = (p * (1 - p))[:, :-1], (p * (1 - p))[:, 1:]
        most = np.where((p[:, :-1] < 0.5) & (p[:, 1:] > 0.5), 0.25, np.maximum(*ends))
        shape = Shape(s, log_r, p, np.minimum(*ends), most, q / (1 - q))
        power = -c if rows.flipped else c + 1
        return cls(**decay_fields(y, sigma, power, shape, rows.trim is not None, windows))

    def with_total(self, log_mgf_upper: Real) -> Decay:
        """The same with M(c), and so the mass outside the cells, bounded through K(c)."""
        total = padded_up(np.exp(np.minimum(log_mgf_upper[:, None] - self.log_unit, 700.0)), _SAFETY)
        inside = padded_down(self.mass_low.sum(axis=1, keepdims=True), _SAFETY)
        outside = np.maximum(total - inside, 0.0) + _SAFETY * total
        return replace(
            self,
            total_up=total,
            left_up=np.where(np.isfinite(self.left_up), self.left_up, outside),
            right_up=np.where(np.isfinite(self.right_up), self.right_up, outside),
        )

    def log_upper(self, t: float) -> Real:
        """Per row, an upper bound (<= 0) on log |M(c+iu)| - log M(c) valid for all u >= t."""
        widest, onset = self._curves(t)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            theta = widest / (1 + onset * self.fade)  # onset = e^s0, 0 for a straight line
            high, slope = theta[:, :, 1:], self.steep * theta * (1 - theta / widest)
            arg = self._arg(theta)
            half = theta < 0.5 * widest
            climb = np.where(
                half[:, :, :-1] & ~half[:, :, 1:],
                0.25 * self.steep * widest,
                np.maximum(slope[:, :, :-1], slope[:, :, 1:]),
            )
            log_b = 0.5 * ((self.sigma * high) ** 2 + np.log1p(climb * climb)) - t * arg[:, :, :-1]
            log_b = log_b + 0.5 * self.power * self._log_square(high if self.backward else theta[:, :, :-1])
            if self.marked is not None:  # |W_0| on the curve against W_0 on the axis
                log_b = log_b + self.marked.cells.log_bound(self.sigma**2 * high)
            excess = np.expm1(log_b)
            if self.marked is not None:
                excess = excess + self.marked.gone
            mass = np.where(excess > 0, self.mass_up[:, None, :], self.mass_low[:, None, :])
            change = (excess * mass).sum(axis=2)
            outside = self._outside(theta, widest, arg[:, :, -1], t)
            total = self.total_up[:, 0][:, None]
            gain = -(change + outside) / total
            best = np.where(np.isfinite(gain), gain, 0.0).max(axis=1)
        return np.asarray(np.log1p(-np.minimum(np.maximum(padded_down(best, _SAFETY), 0.0), 1 - 1e-15)))

    @property
    def backward(self) -> bool:
        """Q against P: powers -c <= 0."""
        return bool(self.power[0, 0, 0] <= 0)

    def _arg(self, theta: Real) -> Real:
        """arg r at the edges, which rises along the curve."""
        return np.asarray(np.arctan2(np.sin(theta) * self.p, 1 - (1 - np.cos(theta)) * self.p))

    def _log_square(self, theta: Real) -> Real:
        """log of ratio^2 at the end of each cell that makes ratio^power largest."""
        return np.asarray(np.log1p(-2 * self.spread * (1 - np.cos(theta))))

    def _log_square_before(self, theta: Real) -> Real:
        """The same before the first cell, from below."""
        p = self.p[:, :, 0]
        return np.asarray(np.log1p(-2 * np.where(p < 0.5, p * (1 - p), 0.25) * (1 - np.cos(theta))))

    def _curves(self, t: float) -> tuple[Real, Real]:
        """Candidates (theta_max, e^s0), arrays (rows, candidates, 1)."""
        if self.marked is not None:
            return self._marked_curves(t)
        flat = _angle(t * self.mean_p / self.sigma**2)
        if self.sigma.min() > 2.5:  # the losses are nearly linear in y: a straight line is best
            return 0.9 * flat, np.zeros_like(flat)
        # where p is small the best theta is t p / (1 + sigma^2), penalty and slope of the curve included
        # and where p is near 1 it is t / sigma^2
        rise = t * self.odds / (1 + self.sigma**2)
        top = _angle(0.9 * t / self.sigma**2)
        bent = top / np.maximum(rise * _SCALES, 1e-300)
        tops = top + np.zeros_like(bent)
        if self.sigma.max() < 0.75:
            return tops, bent
        return np.concatenate([0.9 * flat, tops], axis=1), np.concatenate([np.zeros_like(flat), bent], axis=1)

    def _marked_curves(self, t: float) -> tuple[Real, Real]:
        """The same where windows allow small angles only: several tops, straight and bent."""
        flat = np.minimum(0.9 * _angle(t * self.mean_p / self.sigma**2), _TOPS)
        top = np.minimum(_angle(0.9 * t / self.sigma**2), _TOPS)
        rise = t * self.odds / (1 + self.sigma**2)
        bent = top / np.maximum(rise * _SCALES[0, -1, 0], 1e-300)
        return np.concatenate([flat, top], axis=1), np.concatenate([np.zeros_like(flat), bent], axis=1)

    def _outside(self, theta: Real, widest: Real, last_arg: Real, t: float) -> Real:
        """The integral of rho (B - 1) outside the cells, from above; arrays (rows, candidates)."""
        power, sigma = self.power[:, :, 0], self.sigma[:, :, 0]
        first, widest = theta[:, :, 0], widest[:, :, 0]
        # left: theta <= theta(first edge), arg >= 0; the slope v' <= theta
        below = 0.0 if self.marked is None else self.marked.start.log_bound(sigma**2 * first)
        left = 0.5 * ((sigma * first) ** 2 + np.log1p(first * first)) + below
        right = 0.5 * ((sigma * widest) ** 2 + np.log1p((0.25 * widest) ** 2)) - t * last_arg
        if self.backward:
            left = left + 0.5 * power * self._log_square_before(first)
            # |r| rises with y: beyond the cells it is at least what it is at their end
            right = right + 0.5 * power * self._log_square(widest[:, :, None])[:, :, -1]
        outside = np.expm1(left) * self.left_up + np.expm1(np.maximum(right, 0.0)) * self.right_up
        if not self.last_rho.any():
            return np.asarray(outside)
        # a trimmed integral ends on the axis: |integrand| <= rho(b) e^(v^2/2sigma^2) on the way down (power > 0)
        end = theta[:, :, -1]
        lift = sigma**2 * end
        down = lift * np.exp(0.5 * (sigma * end) ** 2) * self.last_rho
        if self.marked is not None:  # for power < 0, |r| falls on the way up
            worst_end = 0.5 * power * self._log_square(end[:, :, None])[:, :, -1] if self.backward else 0.0
            down = down * np.exp(worst_end + self.marked.end.log_bound(lift))
        return np.asarray(outside + down)


def _angle(theta: Real) -> Real:
    """Inside what curves may have."""
    return np.asarray(np.minimum(np.maximum(theta, 1e-300), _WIDEST))
