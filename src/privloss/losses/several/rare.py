"""Where to split a composition of steps with several hits by its largest loss: searched, any choice is sound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.mixture.largest import Side
from privloss.losses.mixture.rare import LEFT, bulk_spread, levels_around
from privloss.losses.mixture.rough import Kind, rough_epsilon, rough_profile
from privloss.losses.mixture.sums import Mean
from privloss.losses.several.hits import SeveralHits
from privloss.losses.several.step import SeveralStep
from privloss.numerics.floats import Real


@dataclass(frozen=True, eq=False)
class SeveralRare:
    """P against Q or `flipped`, and the rest of a plan in the same direction."""

    laws: tuple[SeveralHits, ...]
    counts: Real
    means: tuple[tuple[Mean, Mean], ...]
    rest: PrivacyLoss | None
    flipped: bool = False

    @cached_property
    def _kinds(self) -> list[Kind]:
        return [
            Kind(float(n), float(mean[0].value[0]), law.sigma, law.log_ratio, law.outcome, law.above)
            for law, n, mean in zip(self.laws, self.counts, self.means, strict=True)
        ]

    def rough_epsilon(self, log_delta: float) -> float:
        if self.flipped:  # no large losses: nearly normal, and below the largest
            mean, spread = self._normal(1.0)
            largest = -float(sum(n * law.log_least for n, law in zip(self.counts, self.laws, strict=True)))
            guess = mean + spread * math.sqrt(max(-2 * log_delta - 6.0, 1.0))
            return guess if self.rest is not None else min(guess, 0.8 * largest)
        return rough_epsilon(self._kinds, self.rest, math.exp(max(log_delta, -700.0)))

    def rough_log_delta(self, eps: float) -> float:
        if self.flipped:  # no large losses: nearly normal
            mean, spread = self._normal(eps)
            return -0.5 * ((eps - mean) / spread) ** 2 - 3.0
        with np.errstate(all="ignore"):
            grid, profile = rough_profile(self._kinds, self.rest, 0.0, eps)
        return float(np.interp(eps, grid, np.log(profile)))

    def _normal(self, eps: float) -> tuple[float, float]:
        """Backward: the mean loss, and about its standard deviation."""
        mean = float(sum(n * pair[1].value[0] for n, pair in zip(self.counts, self.means, strict=True)))
        return mean, max(self._bulk(eps), 1e-300)

    def decisive(self, eps: float, log_delta: float) -> bool:
        """Lines of several hits are always read class by class."""
        return 0 < eps < math.inf

    def sides(self, eps: float, log_delta: float) -> tuple[Side, Side]:
        levels = levels_around(eps, self._bulk(eps))
        steps = []
        for law, count, means in zip(self.laws, self.counts, self.means, strict=True):
            windows = law.windows(levels)
            top = law.quantile(log_delta + LEFT - math.log(count * len(self.laws)))
            top = max(top, windows.start(len(levels)) + law.sigma, 1.0)
            steps.append(SeveralStep.marked(law, windows, means, top))
        back = None if self.rest is None else self.rest.reversed()
        kinds, there = tuple(steps), self.flipped
        return Side(kinds, self.counts, self.rest, there, levels), Side(kinds, self.counts, back, not there, levels)

    def _bulk(self, eps: float) -> float:
        rest = 0.0 if self.rest is None else max(self.rest.moments(0.0)[2], 0.0)
        return bulk_spread(self._coarse, self.counts, rest, eps)

    @cached_property
    def _coarse(self) -> list[tuple[Real, Real]]:
        """Losses and their probabilities on a coarse grid of outcomes."""
        return [kind.coarse() for kind in self._kinds]
