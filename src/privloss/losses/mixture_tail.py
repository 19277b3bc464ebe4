"""How fast the line of a Gaussian mixture decays, with a bound that holds for every larger height at once.

With rho = phi r^(c+1) (P against Q) or phi r^(-c) (Q against P), M(c) = integral of rho. Move the y-integration to a
contour that runs on the real axis up to y*, climbs to y* + iv and goes on at height v = theta sigma^2 (for Q against P
mirrored below the axis). At height v, with p = q e^s / r, r(y+iv)/r(y) = 1 - p + p e^(i theta); call its modulus
`ratio` and its argument `arg`, 0 <= arg, increasing in y. Hence for all u >= t, with power = c+1 or -c,

    |M(c+iu)| <= M(c) + (pen - 1) R(y*) + climb(y*) - pen G(y*),              pen = e^(v^2 / 2 sigma^2),
    R(y*) = integral_{y > y*} rho,      G(y*) = integral_{y > y*} rho (1 - ratio^power e^(-t arg)),

any theta in (0, pi) and any y* giving a valid bound; y* = -inf has no climb, while a y* in the valley between "not
sampled" and "sampled" avoids paying `pen` on the unsampled mass. The climb is at most pen rho(y*) times
max(1, ratio^power) times the integral of e^(-t arg r(y*+iu)) over 0 <= u <= v.

On a cell of width D the curvature of log rho gives mass >= D sqrt(rho1 rho2) e^(-up D^2/8) and
mass <= D (rho1 + rho2)/2 e^(down D^2/8). `arg` is taken at the left end; ratio^2 = 1 - 2 p(1-p)(1 - cos theta) at the
end, or at p = 1/2 if the cell contains it, that makes ratio^power largest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privloss.losses.mixture_grid import Rows
from privloss.numerics.small import Real

_SAFETY = 1e-9  # relative; swallows the rounding of the sums of positive terms below


@dataclass(frozen=True)
class Decay:
    """Everything about one vertical line that does not depend on the height; arrays (rows, cells)."""

    power: Real
    sigma: Real
    log_unit: Real  # log of the unit in which the masses below are given
    total_up: Real  # upper bound on M(c)
    rho: Real  # at the left edge of each cell
    mass_low: Real
    mass_up: Real
    right_up: Real  # upper bound on R(left edge); inf where the cells do not reach far enough to tell
    right_rest: Real  # upper bound on the mass of rho to the right of all cells
    left_up: Real  # upper bound on the mass of rho to the left of all cells
    hit: Real  # p at the left edge
    last_hit: Real
    spread: Real  # p(1-p), at the place in the cell that makes ratio^power largest
    mean_hit: Real

    @classmethod
    def on(cls, rows: Rows, low: Real, high: Real) -> Decay:
        """Cells between `low` and `high`; any range is sound."""
        cells = 64 if len(rows.q) > 32 else 128
        q, sigma, c = rows.q[:, None], rows.sigma[:, None], rows.c[:, None]
        low, high = low[:, None], high[:, None]
        y = low + (high - low) * np.linspace(0.0, 1.0, cells + 1)
        s, _, log_r = rows.log_ratio(y)
        power = -c if rows.flipped else c + 1
        log_rho = -0.5 * (y / sigma) ** 2 + power * log_r
        top = log_rho.max(axis=1, keepdims=True)
        rho = np.exp(log_rho - top)
        width = (high - low) / cells
        p = np.exp(np.minimum(s + np.log(q) - log_r, 0.0))  # (log r)'' = p(1-p)/sigma^4
        hit, next_hit = p[:, :-1], p[:, 1:]
        ends = hit * (1 - hit), next_hit * (1 - next_hit)
        least, most = np.minimum(*ends), np.where((hit < 0.5) & (next_hit > 0.5), 0.25, np.maximum(*ends))
        curve = power * most / sigma**4
        up = np.maximum(curve - 1 / sigma**2, 0.0)  # largest possible (log rho)''
        down = 1 / sigma**2 + np.maximum(-curve, 0.0)  # largest possible -(log rho)''
        mass_low = width * np.sqrt(rho[:, :-1] * rho[:, 1:]) * np.exp(-up * width**2 / 8)
        mass_up = width * 0.5 * (rho[:, :-1] + rho[:, 1:]) * np.exp(np.minimum(down * width**2 / 8, 700.0))
        # beyond the last cell (log rho)' <= -(y - peak)/sigma^2, so the rest is below rho sigma^2 / (y - peak)
        peak = np.zeros_like(c) if rows.flipped else c + 1
        rest = np.where(high > peak + sigma, rho[:, -1:] * sigma**2 / np.maximum(high - peak, sigma), np.inf)
        # before the first cell (log rho)' >= (|y| - c q)/sigma^2, or |y|/sigma^2 for P against Q
        room = -low - (c * q if rows.flipped else 0.0)
        left_up = np.where(room > sigma, rho[:, :1] * sigma**2 / np.maximum(room, sigma), np.inf)
        return cls(
            power=power,
            sigma=sigma,
            log_unit=top - np.log(sigma * np.sqrt(2 * np.pi)),
            total_up=(mass_up.sum(axis=1, keepdims=True) + left_up + rest) * (1 + _SAFETY),
            rho=rho[:, :-1],
            mass_low=mass_low,
            mass_up=mass_up,
            right_up=np.cumsum(mass_up[:, ::-1], axis=1)[:, ::-1] + rest,
            right_rest=rest,
            left_up=left_up,
            hit=hit,
            last_hit=p[:, -1:],
            spread=most if rows.flipped else least,
            mean_hit=(mass_low * hit).sum(axis=1, keepdims=True) / mass_low.sum(axis=1, keepdims=True),
        )

    def with_total(self, log_mgf_upper: Real) -> Decay:
        """The same with M(c) bounded through K(c): for rows whose cells do not reach far enough."""
        return replace(self, total_up=np.exp(np.minimum(log_mgf_upper[:, None] - self.log_unit, 700.0)) * (1 + _SAFETY))

    def log_upper(self, t: float) -> Real:
        """Per row, an upper bound (<= 0) on log |M(c+iu)| - log M(c) valid for all u >= t."""
        widest = 2.9
        start = np.minimum(0.5 * t * self.mean_hit / self.sigma**2, 0.5 * widest)
        angles = 3 if len(self.sigma) > 32 else 4
        theta = (start * (widest / start) ** np.linspace(0.0, 1.0, angles))[:, :, None]  # (rows, angles, 1)
        sigma, power, versed = self.sigma[:, :, None], self.power[:, :, None], 1 - np.cos(theta)
        hit = self.hit[:, None, :]
        arg = np.arctan2(np.sin(theta) * hit, 1 - versed * hit)
        with np.errstate(over="ignore", invalid="ignore"):
            log_pen = 0.5 * (theta * sigma) ** 2
            pen, extra = np.exp(log_pen), np.expm1(log_pen)
            kept_log = 0.5 * power * np.log1p(-2 * self.spread[:, None, :] * versed) - t * arg
            gain = -np.expm1(kept_log)
            gain = gain * np.where(gain > 0, self.mass_low[:, None, :], self.mass_up[:, None, :])
            gains = np.cumsum(gain[:, :, ::-1], axis=2)[:, :, ::-1]
            gains = gains - np.abs(gains) * _SAFETY - self._beyond(power, versed, theta, t)
            # arg r(y* + iu) is concave in u for p <= 1/2 and convex for p >= 1/2: at least this slope times u
            slope = t * np.minimum(arg / theta, hit)
            lift = np.maximum(1.0, np.exp(0.5 * power * np.log1p(-2 * (hit * (1 - hit)) * versed)))
            climb = pen * lift * sigma**2 * self.rho[:, None, :] * -np.expm1(-slope * theta) / slope
            bent = pen * gains - (extra * self.right_up[:, None, :] + climb) * (1 + _SAFETY)
            bent = bent / self.total_up[:, :, None]
            first = self.hit[:, None, :1]
            edge = np.maximum(np.exp(0.5 * power * np.log1p(-2 * (first * (1 - first)) * versed)) - 1, 0.0)
            edge = np.where(edge > 0, edge * self.left_up[:, :, None], 0.0)
            straight = pen * (gains[:, :, :1] - edge) / self.total_up[:, :, None] - extra * (1 + _SAFETY)
        best = np.maximum(_best(bent), _best(straight))
        return np.asarray(np.log1p(-np.clip(best, 0.0, 1 - 1e-15)))

    def _beyond(self, power: Real, versed: Real, theta: Real, t: float) -> Real:
        """What the region right of all cells may add to the bound: only if ratio^power e^(-t arg) can exceed 1."""
        last = self.last_hit[:, :, None]
        arg = np.arctan2(np.sin(theta) * last, 1 - versed * last)
        most = np.where(power < 0, 0.5 * power * np.log1p(-0.5 * versed), 0.0) - t * arg
        return np.where(most > 0, np.expm1(np.maximum(most, 0.0)) * self.right_rest[:, :, None], 0.0)


def _best(choices: Real) -> Real:
    """The largest finite choice of each row (overflowing choices are no choices)."""
    return np.asarray(np.where(np.isfinite(choices), choices, -np.inf).max(axis=(1, 2)))
