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

import numpy as np

from privloss.losses.mixture.grid import Members
from privloss.numerics.floats import Real, padded_down, padded_up

_SAFETY = 1e-9  # relative; swallows the rounding of the sums below
_WIDEST = 2.6  # largest theta_max
_SCALES = np.array([0.45, 2.0])[None, :, None]  # of the bent curves


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
    s: Real  # at the edges
    p: Real  # at the edges
    spread: Real  # p(1-p), at the place in the cell that makes ratio^power largest
    mean_p: Real

    @classmethod
    def on(cls, rows: Members, low: Real, high: Real) -> Decay:
        """Cells between `low` and `high`; any range is sound (an overflow leaves no decay, which is sound too)."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return cls._on(rows, low, high)

    @classmethod
    def _on(cls, rows: Members, low: Real, high: Real) -> Decay:
        q, sigma, c = rows.q[:, None], rows.sigma[:, None], rows.c[:, None]
        low, high = low[:, None], (high if rows.trim is None else rows.trim)[:, None]
        wish = float(np.max((high - low) / (0.22 * sigma**2)))
        cells = int(min(max(wish, 96), 640)) if len(rows.q) <= 32 else 96
        y = low + (high - low) * np.linspace(0.0, 1.0, cells + 1)
        s, _, log_r = rows.log_ratio(y)
        power = -c if rows.flipped else c + 1
        log_rho = -0.5 * (y / sigma) ** 2 + power * log_r
        top = log_rho.max(axis=1, keepdims=True)
        rho = np.exp(log_rho - top)
        width = (high - low) / cells
        p = np.exp(np.minimum(s + np.log(q) - log_r, 0.0))  # (log r)'' = p(1-p)/sigma^4
        ends = (p * (1 - p))[:, :-1], (p * (1 - p))[:, 1:]
        least = np.minimum(*ends)
        most = np.where((p[:, :-1] < 0.5) & (p[:, 1:] > 0.5), 0.25, np.maximum(*ends))
        curve = power * most / sigma**4
        up = np.maximum(curve - 1 / sigma**2, 0.0)  # largest possible (log rho)''
        down = 1 / sigma**2 + np.maximum(-curve, 0.0)  # largest possible -(log rho)''
        mass_low = width * np.sqrt(rho[:, :-1] * rho[:, 1:]) * np.exp(-up * width**2 / 8)
        mass_up = width * 0.5 * (rho[:, :-1] + rho[:, 1:]) * np.exp(np.minimum(down * width**2 / 8, 700.0))
        # beyond the last cell (log rho)' <= -(y - peak)/sigma^2, so the rest is below rho sigma^2 / (y - peak)
        peak = np.zeros_like(c) if rows.flipped else c + 1
        right_up = np.where(high > peak + sigma, rho[:, -1:] * sigma**2 / np.maximum(high - peak, sigma), np.inf)
        last_rho = np.zeros_like(right_up)
        if rows.trim is not None:
            right_up, last_rho = last_rho, rho[:, -1:]
        # before the first cell (log rho)' >= (|y| - c q)/sigma^2, or |y|/sigma^2 for P against Q
        room = -low - (c * q if rows.flipped else 0.0)
        left_up = np.where(room > sigma, rho[:, :1] * sigma**2 / np.maximum(room, sigma), np.inf)
        return cls(
            power=power[:, :, None],
            sigma=sigma[:, :, None],
            odds=(q / (1 - q))[:, :, None],
            log_unit=top - np.log(sigma * np.sqrt(2 * np.pi)),
            total_up=padded_up(mass_up.sum(axis=1, keepdims=True) + left_up + right_up, _SAFETY),
            mass_low=mass_low,
            mass_up=mass_up,
            left_up=left_up,
            right_up=right_up,
            last_rho=last_rho,
            s=s[:, None, :],
            p=p[:, None, :],
            spread=(most if rows.flipped else least)[:, None, :],
            mean_p=((mass_low * p[:, :-1]).sum(axis=1) / mass_low.sum(axis=1))[:, None, None],
        )

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
            theta = widest / (
                1 + onset * np.exp(-np.clip(self.s, -690.0, 690.0))
            )  # onset = e^s0, 0 for a straight line
            low, high = theta[:, :, :-1], theta[:, :, 1:]
            arg = np.arctan2(np.sin(theta) * self.p, 1 - (1 - np.cos(theta)) * self.p)
            versed = 1 - np.cos(np.where(self.power > 0, low, high))
            climb = np.maximum(low * (1 - low / widest), high * (1 - high / widest))
            climb = np.where((low < 0.5 * widest) & (high > 0.5 * widest), 0.25 * widest, climb)
            log_b = 0.5 * (self.sigma * high) ** 2 + 0.5 * np.log1p(climb**2) - t * arg[:, :, :-1]
            excess = np.expm1(log_b + 0.5 * self.power * np.log1p(-2 * self.spread * versed))
            mass = np.where(excess > 0, self.mass_up[:, None, :], self.mass_low[:, None, :])
            change = (excess * mass).sum(axis=2)
            outside = self._outside(theta, widest, arg, t)
            total = self.total_up[:, 0][:, None]
            gain = -(change + outside) / total
            best = np.where(np.isfinite(gain), gain, 0.0).max(axis=1)
        return np.asarray(np.log1p(-np.clip(padded_down(best, _SAFETY), 0.0, 1 - 1e-15)))

    def _curves(self, t: float) -> tuple[Real, Real]:
        """Candidates (theta_max, e^s0), arrays (rows, candidates, 1)."""
        flat = np.clip(t * self.mean_p / self.sigma**2, 1e-300, _WIDEST)
        if self.sigma.min() > 2.5:  # the losses are nearly linear in y: a straight line is best
            return 0.9 * flat, np.zeros_like(flat)
        # where p is small the best theta is t p / (1 + sigma^2), penalty and slope of the curve included
        # and where p is near 1 it is t / sigma^2
        rise = t * self.odds / (1 + self.sigma**2)
        top = np.clip(0.9 * t / self.sigma**2, 1e-300, _WIDEST)
        bent = top / np.maximum(rise * _SCALES, 1e-300)
        tops = np.broadcast_to(top, bent.shape)
        if self.sigma.max() < 0.75:
            return tops, bent
        return np.concatenate([0.9 * flat, tops], axis=1), np.concatenate([np.zeros_like(flat), bent], axis=1)

    def _outside(self, theta: Real, widest: Real, arg: Real, t: float) -> Real:
        """The integral of rho (B - 1) outside the cells, from above; arrays (rows, candidates)."""
        power = self.power[:, :, 0]
        first, widest = theta[:, :, 0], widest[:, :, 0]
        p_first = self.p[:, :, 0]
        spread = np.where(p_first < 0.5, p_first * (1 - p_first), 0.25)
        worst_first = np.where(power < 0, 0.5 * power * np.log1p(-2 * spread * (1 - np.cos(first))), 0.0)
        # left: theta <= theta(first edge), arg >= 0; the slope v' <= theta
        left = np.expm1(0.5 * (self.sigma[:, :, 0] * first) ** 2 + 0.5 * np.log1p(first**2) + worst_first)
        worst_last = np.where(power < 0, 0.5 * power * np.log1p(-0.5 * (1 - np.cos(widest))), 0.0)
        slope = 0.5 * np.log1p((0.25 * widest) ** 2) - t * arg[:, :, -1]
        right = np.expm1(np.maximum(0.5 * (self.sigma[:, :, 0] * widest) ** 2 + worst_last + slope, 0.0))
        # a trimmed integral ends on the axis: |integrand| <= rho(b) e^(v^2/2sigma^2) on the way down (power > 0)
        end = theta[:, :, -1]
        down = self.sigma[:, :, 0] ** 2 * end * np.exp(0.5 * (self.sigma[:, :, 0] * end) ** 2) * self.last_rho
        return np.asarray(down + left * self.left_up[:, 0][:, None] + right * self.right_up[:, 0][:, None])
