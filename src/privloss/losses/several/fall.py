"""How fast the bulk of several hits falls along a line: the curved contour of `mixture/tail.py` for any mixture.

At y + iv, theta = v/sigma^2 <= pi/2, the ratio of r there to r(y) is the sum of w_k e^(i a_k theta), k = 0..K, a_0 = 0:
its squared modulus is 1 - 2 sum over j < k of w_j w_k (1 - cos((a_k - a_j) theta)), and with
u^2/2 - u^4/24 <= 1 - cos u <= u^2/2 it lies between 1 - theta^2 Var and 1 - theta^2 (1 - theta^2/12) Var, Var the
variance of the shift given y (|a_k - a_j| <= 1). It is at least cos^2(theta/2), all terms lying in a sector.

Var = sum over j < k of w_j w_k (a_k - a_j)^2, whose terms are log-concave in y, as log r is convex: on a cell each is
at least its smaller end value, and at most the larger one times e^(D^2 Var_most/4sigma^4). Var_most: the derivative of
Var is a third central moment over sigma^2, at most Var/sigma^2 in size, so that Var grows by e^(D/2sigma^2) at most
from the nearer end of the cell; it never exceeds 1/4, nor h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privloss.losses.mixture.tail import Decay, Shape, cell_edges, decay_fields
from privloss.losses.mixture.windows import Windows
from privloss.losses.several.hits import SeveralHits
from privloss.numerics.floats import Real

_WIDEST = 1.5  # below pi/2
_MOST_PAIRS = 400
_TOPS = np.array([0.08, 0.2, 0.45])
_SCALES = np.array([0.45, 2.0])
_LOOSE = 0.1  # width of windows, over sigma^2, for which those are


@dataclass(frozen=True)
class SeveralDecay(Decay):
    """One row. `p` is h."""

    law: SeveralHits | None = None
    sines: Real | None = None  # w_k at the edges, (hits, edges)
    room: float = 1.0  # of windows

    @classmethod
    def of(
        cls, law: SeveralHits, c: float, backward: bool, ends: tuple[float, float], windows: Windows | None
    ) -> Decay:
        """Cells between the ends; windows of the bulk, or none."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return cls._of(law, c, backward, ends, windows)

    @classmethod
    def _of(
        cls, law: SeveralHits, c: float, backward: bool, ends: tuple[float, float], windows: Windows | None
    ) -> Decay:
        sigma, power = np.array([[law.sigma]]), np.array([[-c if backward else c + 1]])
        y = cell_edges(np.array([[ends[0]]]), np.array([[ends[1]]]), sigma)
        log_r = law.log_ratio(y[0])
        shares = law.shares(y[0], log_r)
        shifts = np.array(law.shifts)
        slope = shifts @ shares
        least, most = _variances(shares, shifts, slope, float(y[0, 1] - y[0, 0]) / law.sigma**2)
        # curves rise like the bulk's own hits
        middle = int(np.argmax(-0.5 * (y[0] / law.sigma) ** 2 + power[0, 0] * log_r))
        steep = float(slope[middle] / max(shares[:, middle].sum(), 1e-300))
        s = steep * (y - 0.5) / law.sigma**2
        odds = slope[middle] * np.exp(-np.minimum(np.maximum(s[0, middle], -300.0), 300.0))
        shape = Shape(s, log_r[None], slope[None], least[None], most[None], np.array([[odds]]))
        width = 1.0 if windows is None else float(windows.width[0]) / (_LOOSE * law.sigma**2)
        fields = decay_fields(y, sigma, power, shape, False, windows)
        return cls(**fields, steep=steep, law=law, sines=shares, room=max(width, 1.0))

    def _arg(self, theta: Real) -> Real:
        assert self.law is not None
        assert self.sines is not None
        up, along = np.zeros_like(theta), np.ones_like(theta)
        for a, share in zip(self.law.shifts, self.sines, strict=True):
            up = up + share * np.sin(a * theta)
            along = along - share * (1 - np.cos(a * theta))
        return np.asarray(np.arctan2(up, along))

    def _log_square(self, theta: Real) -> Real:
        square = theta * theta
        if self.backward:
            return np.asarray(np.log(np.maximum(1 - square * self.spread, np.cos(0.5 * theta) ** 2)))
        return np.asarray(np.log1p(-square * (1 - square / 12) * self.spread))

    def _log_square_before(self, theta: Real) -> Real:
        most = np.minimum(self.p[:, :, 0], 0.25)  # h rises, and bounds the variance
        return np.asarray(np.log(np.maximum(1 - theta * theta * most, np.cos(0.5 * theta) ** 2)))

    def _curves(self, t: float) -> tuple[Real, Real]:
        flat = np.minimum(0.9 * t * self.mean_p / self.sigma**2, _WIDEST)
        rise = t * self.odds / (self.steep**2 + self.sigma**2)
        top = np.minimum(0.9 * t / self.sigma**2, _WIDEST)
        if self.marked is not None:
            tops = np.minimum(_TOPS * self.room, _WIDEST)[None, :, None]
            flat, top = np.minimum(flat, tops), np.minimum(top, tops)
        scales = _SCALES[None, :, None] if self.marked is None else _SCALES[-1]
        bent = top / np.maximum(rise * scales, 1e-300)
        flat, top = np.maximum(flat, 1e-300), np.maximum(top + np.zeros_like(bent), 1e-300)
        return np.concatenate([flat, top], axis=1), np.concatenate([np.zeros_like(flat), bent], axis=1)


def _variances(shares: Real, shifts: Real, slope: Real, width: float) -> tuple[Real, Real]:
    """Bounds on the variance of the shift on cells, from the shares at their edges; `width` over sigma^2."""
    missed = np.maximum(1 - shares.sum(axis=0), 0.0)
    all_shares, all_shifts = np.vstack([missed, shares]), np.append(0.0, shifts)
    at = np.maximum(all_shifts**2 @ all_shares - slope**2, 0.0)
    top = np.maximum(slope[1:], slope[:-1])
    most = np.minimum(np.maximum(at[1:], at[:-1]) * np.exp(0.5 * width) + 1e-15 * top, np.minimum(top, 0.25))
    first, second = np.triu_indices(len(all_shifts), 1)
    if len(first) > _MOST_PAIRS:
        return np.minimum(at[1:], at[:-1]) * np.exp(-width), most
    apart = (all_shifts[second] - all_shifts[first]) ** 2
    products = all_shares[first] * all_shares[second]
    least = apart @ np.minimum(products[:, 1:], products[:, :-1])
    grown = apart @ np.maximum(products[:, 1:], products[:, :-1]) * np.exp(0.25 * width**2 * most)
    return least * (1 - 1e-12), np.minimum(most, grown * (1 + 1e-12))
