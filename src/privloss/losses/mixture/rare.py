"""Where to split a composition of sampled Gaussian noise by its largest loss: searched, any choice is sound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri_exp

from privloss.losses.base import PrivacyLoss
from privloss.losses.mixture.largest import Side
from privloss.losses.mixture.marked import MarkedStep
from privloss.losses.mixture.rough import Kind, rough_epsilon, rough_profile
from privloss.losses.mixture.sums import Mean
from privloss.losses.mixture.windows import at_losses
from privloss.numerics.floats import Real

_TOP = 4.0  # the last window, in units of eps
_RATIO = 2.0  # from one window to the next
_LOWEST = 1 / 12  # the first window, in units of eps, unless the bulk reaches further
_BULK = 2.0  # standard deviations of the bulk below which there is no window
_DECISIVE = 1e60  # weight in K of losses above eps from which on a single line is not even tried
_USUAL = 1.0  # times that a loss is expected, below which it does not belong to the bulk
LEFT = math.log(1e-14)  # share of delta that outcomes beyond the last nodes may have


@dataclass(frozen=True, eq=False)
class RareLosses:
    """Poisson samples of Gaussian noise, P against Q or `flipped`, and the rest of a plan in the same direction."""

    rates: Real
    sigmas: Real
    counts: Real
    means: tuple[Mean, Mean]
    rest: PrivacyLoss | None
    flipped: bool = False

    def rough_epsilon(self, log_delta: float) -> float:
        """About the eps that belongs to delta; nan where the grid cannot tell."""
        if self.flipped:
            return math.nan
        delta = math.exp(max(log_delta, -700.0))
        return rough_epsilon(self._kinds, self.rest, delta)

    def rough_log_delta(self, eps: float) -> float:
        """About log delta(eps), or what the grid can tell of it."""
        if self.flipped:  # no large losses: nearly normal
            mean, spread = float(self.counts @ self.means[1].value), max(self._bulk(eps), 1e-300)
            return -0.5 * ((eps - mean) / spread) ** 2 - 3.0
        with np.errstate(all="ignore"):
            grid, profile = rough_profile(self._kinds, self.rest, 0.0, eps)
        return float(np.interp(eps, grid, np.log(profile)))

    def sides(self, eps: float, log_delta: float) -> tuple[Side, Side]:
        """All classes, forward and backward, for reading near eps."""
        levels = self.levels(eps)
        steps = []
        for i, (rate, sigma, count) in enumerate(zip(self.rates, self.sigmas, self.counts, strict=True)):
            windows = at_losses(float(rate), float(sigma), levels)
            log_p = log_delta + LEFT - math.log(count * len(self.rates)) - math.log(2.0)
            hit = min(log_p - math.log(rate), -1e-3)
            top = max(
                -sigma * ndtri_exp(min(log_p, -1.0)),
                1 - sigma * ndtri_exp(hit),
                windows.start(len(levels)) + sigma,
                1.0,
            )
            first, second = (mean.part(slice(i, i + 1)) for mean in self.means)
            steps.append(MarkedStep(float(rate), float(sigma), windows, (first, second), float(top)))
        back = None if self.rest is None else self.rest.reversed()
        kinds, there = tuple(steps), self.flipped
        return Side(kinds, self.counts, self.rest, there, levels), Side(kinds, self.counts, back, not there, levels)

    def levels(self, eps: float) -> Real:
        """Losses at the centres of the windows."""
        return levels_around(eps, self._bulk(eps))

    def _bulk(self, eps: float) -> float:
        rest = 0.0 if self.rest is None else max(self.rest.moments(0.0)[2], 0.0)
        return bulk_spread(self._coarse, self.counts, rest, eps)

    def decisive(self, eps: float, log_delta: float) -> bool:
        """At about the tilt of a sum of normal shape, do losses above eps weigh in K?"""
        if self.flipped or not 0 < eps < math.inf:
            return False
        tilt = min(1.5 * -log_delta, 600.0) / eps
        heavy = 0.0
        for (z, weight), count in zip(self._coarse, self.counts, strict=True):
            above = z > eps
            with np.errstate(all="ignore"):
                heavy += count * float(weight[above] @ np.exp(np.minimum(tilt * z[above], 700.0)))
        return heavy > _DECISIVE

    @cached_property
    def _coarse(self) -> list[tuple[Real, Real]]:
        """Losses and their probabilities on a coarse grid of outcomes."""
        return [kind.coarse() for kind in self._kinds]

    @cached_property
    def _kinds(self) -> list[Kind]:
        rows = zip(self.rates.tolist(), self.sigmas.tolist(), self.counts, self.means[0].value, strict=True)
        return [Kind.one_hit(rate, sigma, float(count), float(mean)) for rate, sigma, count, mean in rows]


def levels_around(eps: float, bulk: float) -> Real:
    """From the bulk, of that standard deviation, to well above eps."""
    lowest = max(_BULK * bulk, _LOWEST * eps)
    top = max(_TOP * eps, 2 * _RATIO * lowest, 2.5 * (eps + 9 * bulk))
    count = max(int(math.log(top / lowest) / math.log(_RATIO)), 1)
    return np.asarray(top * _RATIO ** np.arange(-count, 1.0))


def bulk_spread(coarse: Sequence[tuple[Real, Real]], counts: Real, rest: float, eps: float) -> float:
    """The standard deviation of all losses, `rest` the variance of other kinds; losses above eps count as eps, and of
    each kind those that are not even expected once in a while as the largest that is."""
    total = rest
    for (z, weight), count in zip(coarse, counts, strict=True):
        expected = count * np.cumsum(weight[::-1])[::-1]
        usual = float(z[int(np.argmax(expected < _USUAL))]) if expected[-1] < _USUAL else eps
        total += count * float(weight @ np.minimum(z, min(max(usual, 0.0), eps)) ** 2)
    return math.sqrt(total)
