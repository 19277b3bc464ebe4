"""Soft classes of outcomes: which step had the largest loss, told with a little randomness.

Every outcome y of a step is marked with a class j = 0..J. With centres b_0 < b_1 < ... and widths tau_i let

    V_i(y) = Phi((b_i - y)/tau_i) for y <= e_i = b_i + END tau_i, 0 beyond;    W_j = V_j V_(j+1) ... V_(J-1), W_J = 1;

the mark is at most j with probability W_j(y), so it is j with probability w_j = W_j - W_(j-1) = W_j (1 - V_(j-1)) >= 0.
Marks of different steps are independent. Summing over the *largest* mark of all steps is an identity, whatever the
windows are (`largest.py`); sharp ones would do. Soft ones keep the transform of each class in the band of frequencies
of its own losses: an edge would let it fall like 1/t only.

Phi is entire and |Phi(x + iy)| <= e^(y^2/2) Phi(x), as Phi(x + iy) is an integral of e^(-(x + iy - s)^2/2) over s > 0.
With Phi(-x) = 1 - Phi(x) also |Phi(x + iy)| <= 1 + e^(y^2/2) Phi(-x). The smaller of the two serves below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from privloss.numerics.floats import Real

END = 9.0  # a window ends this many widths beyond its centre: what is left there is 1e-19
START = 16.0  # nodes begin this many widths before it: what is left out there is below 1e-57
_FAR = -45.0  # nats from which on a window is as good as open
SOFTNESS = 0.1  # a window's width over its centre, measured in losses


@dataclass(frozen=True, eq=False)
class Windows:
    """Centres and widths of the J windows of one kind of step, in units of its outcome y."""

    centre: Real
    width: Real

    @property
    def count(self) -> int:
        return len(self.centre)

    def start(self, j: int) -> float:
        """Where class j >= 1 begins to matter."""
        return float(self.centre[j - 1] - START * self.width[j - 1])

    def end(self, j: int) -> float:
        """Where class j ends; inf for the last."""
        return float(self.centre[j] + END * self.width[j]) if j < self.count else np.inf

    def log_weights(self, j: int, y: Real) -> Real:
        """log w_j at outcomes y <= end(j); beyond e_(j-1) the jump of V_(j-1) by Phi(-END) is left out."""
        above = self._standard(slice(j, None), y)
        total = log_ndtr(-above).sum(axis=0)
        return np.asarray(total + log_ndtr(self._standard(slice(j - 1, j), y)[0]) if j else total)

    def left_out(self, y: Real) -> Real:
        """1 - W_0, without cancellation: 1 - prod (1 - u_i) = sum of u_i times the V before it."""
        up = ndtr(self._standard(slice(None), y))
        down = ndtr(-self._standard(slice(None), y))
        before = np.cumprod(np.concatenate([np.ones((1, up.shape[1])), down[:-1]]), axis=0)
        return np.asarray((up * before).sum(axis=0))

    def slack(self, j: int, y: Real) -> Real:
        """Relative roundings of w_j at a node y that itself is off by a rounding.

        Phi(-k) changes by at most (k^2 + k |y|/tau + 8) roundings in its tail and, above one half, by phi(k) in place
        of k; each counted four times.
        """
        first = max(j - 1, 0)
        k = self._standard(slice(first, None), y)
        reach = np.abs(y) / self.width[first:, None]
        k[1 if j else 0 :] *= -1.0  # the argument of Phi: U_(j-1) rises, the V fall
        tail = np.where(k < 0, -k, 0.0)
        body = np.where(k < 0, 0.0, np.exp(-0.5 * k * k))
        return np.asarray((4 * (tail + body) * (tail + 1.0 + reach) + 32.0).sum(axis=0))

    def log_bound(self, j: int, left: Real, right: Real, lift: Real) -> Real:
        """log of a bound on |w_j(y + iv)| on cells left <= y <= right, v = `lift` (broadcast against cells)."""
        return self.cells(j, left, right).log_bound(lift)

    def end_growth(self, j: int, end: float, lift: Real) -> Real:
        """What of that bound, at `end`, is e^(v^2/2tau^2) of window j; nothing where the nodes end before it closes and
        the other bound serves."""
        if j == self.count:
            return np.zeros_like(lift)
        growth = 0.5 * (lift / self.width[j]) ** 2
        away = (end - self.centre[j]) / self.width[j]
        closed = growth + log_ndtr(-away) <= np.logaddexp(0.0, growth + log_ndtr(away))
        return np.where(closed, growth, 0.0)

    def cells(self, j: int, left: Real, right: Real) -> Cells:
        """What of that does not depend on the height."""
        first = max(j - 1, 0)
        centre, width = self.centre[first:, None], self.width[first:, None]
        far, near = (centre - left) / width, (right - centre) / width  # of Phi((b - y)/tau), falling
        if j:  # the first is U_(j-1) = Phi((y - b)/tau), rising
            far[0], near[0] = near[0].copy(), far[0].copy()
        return Cells(self.width[first:], log_ndtr(far), log_ndtr(near))

    def _standard(self, which: slice, y: Real) -> Real:
        return np.asarray((y - self.centre[which, None]) / self.width[which, None])


@dataclass(frozen=True, eq=False)
class Cells:
    """On each cell, the log of the largest |Phi(x)| of each window, and that of the largest Phi(-x)."""

    width: Real
    far: Real
    near: Real

    def log_bound(self, lift: Real) -> Real:
        """The sum over windows of log min(e^g Phi(x), 1 + e^g Phi(-x)), g = v^2 / 2 tau^2."""
        most = 0.5 * (float(np.max(lift)) / self.width) ** 2
        seen = np.flatnonzero(self.near.max(axis=1) + most >= _FAR)
        # far below its window: log(1 + e^x) <= e^x
        total = np.full(np.broadcast_shapes(np.shape(lift), self.far.shape[1:]), len(self.width) * math.exp(_FAR))
        for i in seen if self.far.shape[1] > 1 else ():
            inside = np.flatnonzero(self.near[i] + most[i] >= _FAR)
            part = slice(int(inside[0]), int(inside[-1]) + 1)
            growth = 0.5 * ((lift if np.shape(lift)[-1] == 1 else lift[..., part]) / self.width[i]) ** 2
            total[..., part] += np.minimum(growth + self.far[i, part], np.logaddexp(0.0, growth + self.near[i, part]))
        if self.far.shape[1] == 1 and len(seen):
            growth = 0.5 * np.divide.outer(lift, self.width[seen]) ** 2
            far, near = self.far[seen, 0], self.near[seen, 0]
            total += np.minimum(growth + far, np.logaddexp(0.0, growth + near)).sum(axis=-1)
        return total


def at_losses(rate: float, sigma: float, levels: Real) -> Windows:
    """Windows around the outcomes whose losses are `levels` (rising, > 0), a tenth of them wide."""
    odds = np.where(levels > 30.0, np.exp(-np.minimum(levels, 700.0)), 0.0)
    rise = np.where(
        levels > 30.0, levels - np.log(rate) + np.log1p(-odds), np.log1p(np.expm1(np.minimum(levels, 30.0)) / rate)
    )
    centre = 0.5 + sigma**2 * rise
    slope = -np.expm1(-levels) + rate * np.exp(-levels)  # p = 1 - (1-q)/r
    # small losses grow like e^(y/sigma^2), large ones like y/sigma^2, where a window must not reach down to no loss
    return Windows(centre, SOFTNESS * sigma**2 * (1 + 0.5 * (levels / slope - 1)))
