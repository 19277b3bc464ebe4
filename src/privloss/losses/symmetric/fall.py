"""How far |M_0(c + iu)| of the bulk of a symmetric pair has fallen for all u >= t.

Up to some height U it is computed on a grid: between neighbours at a distance D it exceeds the larger of the two by at
most D^2/8 times the largest |M_0''| = E[Z^2 e^(cZ); mark 0] (linear interpolation). Beyond U, for every u >= U, the way
from the outcome without loss up to Im y = v, along it and down at the end bounds each branch: the first part by
|f| sigma^2/(U kappa), since arg A(y_0 + iv') >= sin arg = Im A/|A| >= kappa v'/sigma^2 there with
kappa = q e^s/A(y_0) * sin(theta)/theta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.losses.mixture.marked import Nodes
from privloss.losses.mixture.windows import Windows
from privloss.losses.symmetric.bulk import Panels
from privloss.losses.symmetric.pair import SymmetricPair
from privloss.numerics.floats import UNIT, Real, padded_up
from privloss.numerics.stable import exp_or_inf, log_sum_exp
from privloss.numerics.work import charge

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_ANGLES = np.array([0.08, 0.2, 0.4, 0.8])[:, None]
_CELLS = 256
_RATIO, _SPACING = 1.1, 0.25  # of heights: from one to the next, and at most, in units of 1/spread
_FAR = 12.0 * 2.0 ** np.arange(10)  # where the grid may end, in units of 1/spread
_GONE = 0.8  # share of M_0(c) below which the rest may stay
_MOST = 4_000_000  # nodes times heights
_SAFETY = 1e-9


@dataclass(frozen=True, eq=False)
class BulkFall:
    """On Re z = c."""

    pair: SymmetricPair
    windows: Windows
    nodes: Nodes
    panels: Panels
    end: float
    c: float

    @cached_property
    def _tilted(self) -> Real:
        """Masses times e^(cZ); beyond the range of doubles, where nothing is known, inf."""
        with np.errstate(over="ignore"):
            return np.exp(self.nodes.log_mass + (1 + self.c) * self.nodes.log_r)

    @cached_property
    def _total(self) -> float:
        return float(self._tilted.sum())

    @cached_property
    def _bend(self) -> float:
        """E[Z^2 e^(cZ); mark 0] from above."""
        found = float(self._tilted @ (np.abs(self.nodes.log_r) + UNIT * self.nodes.drift) ** 2)
        return padded_up(found, 1e-6) + math.exp(min(self.panels.log_missed_square(self.c), 700.0))

    def log_upper(self, t: float) -> Real:
        """log of the bound over M_0(c), at most 0."""
        if not self._total < math.inf:
            return np.zeros(1)
        heights, most = self._profile
        if t < heights[0]:
            return np.zeros(1)
        if t >= heights[-1]:
            with np.errstate(all="ignore"):
                bound = math.log(self._beyond(t) / self._least) + _SAFETY
        else:
            bound = float(most[int(np.searchsorted(heights, t, side="right")) - 1])
        return np.array([min(bound, 0.0)])

    @cached_property
    def _least(self) -> float:
        """A lower bound on M_0(c), or at least a positive number that makes bounds useless."""
        missed = math.exp(min(self.panels.log_missed(self.c, 0.0, False), 700.0))
        flat, slope = self._rounding
        return max(self._total - missed - UNIT * (flat + (1 + self.c) * slope), 1e-300)

    @cached_property
    def _rounding(self) -> tuple[float, float]:
        """Roundings of sums over nodes at any height, and those that grow with 1 + c + u."""
        flat = float(self._tilted @ (self.nodes.slack + len(self._tilted) + 64))
        return flat, float(self._tilted @ (self.nodes.drift + 8 * np.abs(self.nodes.log_r)))

    @cached_property
    def _profile(self) -> tuple[Real, Real]:
        """Heights, and from each on the log of a bound over M_0(c)."""
        with np.errstate(all="ignore"):
            return self._drawn()

    def _drawn(self) -> tuple[Real, Real]:
        spread = math.sqrt(self._bend / self._total)
        far = [(float(x) / spread, self._beyond(float(x) / spread)) for x in _FAR]
        good = [end for end, bound in far if bound < _GONE * self._total]
        last = good[0] if good else far[-1][0]
        first = 1e-4 / spread
        ratios = math.log(_SPACING / (_RATIO - 1) / 1e-4) / math.log(_RATIO)
        near = first * _RATIO ** np.arange(int(ratios) + 1)
        heights = np.concatenate([near, np.arange(near[-1], last, _SPACING / spread)[1:], [last]])
        if len(heights) * len(self.nodes.log_r) > _MOST:
            return np.array([last]), np.zeros(0)
        charge(4.0 * len(heights) * len(self.nodes.log_r))
        turned = np.multiply.outer(heights, self.nodes.log_r)
        value = np.hypot(np.cos(turned) @ self._tilted, np.sin(turned) @ self._tilted)
        missed = np.array([math.exp(min(self.panels.log_missed(self.c, float(u), False), 700.0)) for u in heights])
        flat, slope = self._rounding
        value = value + missed + UNIT * (flat + (1 + self.c + heights) * slope)
        between = np.maximum(value[1:], value[:-1]) + np.diff(heights) ** 2 / 8 * self._bend
        bounds = np.append(between, self._beyond(last))
        suffix = np.maximum.accumulate(bounds[::-1])[::-1][:-1]
        suffix = np.where(np.isnan(suffix), np.inf, suffix)
        return heights, np.log(suffix / self._least) + _SAFETY

    @cached_property
    def _kappa(self) -> Real:
        """For each angle: arg A(y_0 + iv) >= kappa v/sigma^2 up to it."""
        y, log_a = self.pair.start, float(self.pair.logs(np.array([self.pair.start]))[0][0])
        hit = math.exp(math.log(self.pair.rate) + (y - 0.5) / self.pair.sigma**2 - log_a)
        return np.asarray(hit * np.sin(_ANGLES[:, 0]) / _ANGLES[:, 0])

    def _beyond(self, u: float) -> float:
        """A bound on |M_0| for all heights from u on."""
        pair, c = self.pair, self.c
        edges = np.linspace(pair.start, self.end, _CELLS + 1)
        lift = _ANGLES * pair.sigma**2
        a, b = pair.complex_logs(edges[None, :], _ANGLES)
        left, right, nearest = edges[:-1], edges[1:], edges[:-1]
        scale = 0.5 * _ANGLES * lift - _LOG_SQRT_2PI - math.log(pair.sigma)
        weight = scale - 0.5 * (nearest / pair.sigma) ** 2 + self.windows.log_bound(0, left, right, lift)
        along = weight + np.log(right - left) - u * a.imag[:, :-1]
        up = (1 + c) * a.real[:, 1:] - c * b.real[:, 1:]
        down = (1 + c) * b.real[:, :-1] - c * a.real[:, :-1]
        inside = log_sum_exp(along + np.logaddexp(up, down))[:, 0]
        ends = []
        for y, low in ((pair.start, True), (self.end, False)):
            at = np.array([y])
            real_a, real_b = (float(x.real[0]) for x in pair.complex_logs(at, np.zeros(1)))
            turned_a, turned_b = (x.real[:, 0] for x in pair.complex_logs(at[None, :], _ANGLES))
            most = np.logaddexp((1 + c) * real_a - c * turned_b, (1 + c) * real_b - c * turned_a)
            size = scale[:, 0] - 0.5 * (y / pair.sigma) ** 2 + self.windows.log_bound(0, at, at, lift)[:, 0]
            way = np.log(lift[:, 0])
            if low:
                way = np.minimum(way, np.log(pair.sigma**2 / (u * self._kappa)))
            ends.append(size + most + way)
        total = np.logaddexp(inside, np.logaddexp(*ends))
        return exp_or_inf(float(total.min())) * (1 + _SAFETY) + pair.at_zero
