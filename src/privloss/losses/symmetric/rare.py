"""Where to split a composition of symmetric pairs by its largest loss: searched, any choice is sound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri_exp

from privloss.losses.base import PrivacyLoss
from privloss.losses.mixture.largest import Side
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.mixture.rare import RareLosses
from privloss.losses.mixture.sums import Mean
from privloss.losses.mixture.windows import START, at_losses
from privloss.losses.symmetric.pair import SymmetricPair
from privloss.losses.symmetric.step import SymmetricStep, mean_loss
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.floats import Real

_LEFT = math.log(1e-14)  # share of delta that outcomes beyond the last nodes may have
_LAST = math.log(1e-13)  # and beyond the last window
_RATIO = 2.0


@dataclass(frozen=True, eq=False)
class SymmetricRare:
    """Symmetric pairs with counts, and the rest of a plan."""

    pairs: tuple[SymmetricPair, ...]
    counts: Real
    rest: PrivacyLoss | None

    @cached_property
    def _like(self) -> RareLosses:
        """Samples with the same hits in one direction: close enough for searching."""
        rates, sigmas = (np.array([getattr(p, name) for p in self.pairs]) for name in ("rate", "sigma"))
        found = GaussianMixtureLoss(rates, sigmas, self.counts).rare_losses(self.rest)
        if found is None:
            raise TooExpensive("too many kinds of step")
        return found

    @cached_property
    def _means(self) -> list[Mean]:
        return [mean_loss(pair) for pair in self.pairs]

    def rough_epsilon(self, log_delta: float) -> float:
        return self._like.rough_epsilon(log_delta)

    def rough_log_delta(self, eps: float) -> float:
        return self._like.rough_log_delta(eps)

    def decisive(self, eps: float, log_delta: float) -> bool:
        return self._like.decisive(eps, log_delta)

    def sides(self, eps: float, log_delta: float) -> tuple[Side, Side]:
        tops = [self._beyond(pair, n, log_delta + _LEFT) for pair, n in zip(self.pairs, self.counts, strict=True)]
        levels = self._levels(eps, log_delta)
        steps = []
        for pair, top, mean in zip(self.pairs, tops, self._means, strict=True):
            windows = at_losses(pair.rate, pair.sigma, levels)
            top = max(top, windows.start(len(levels)) + pair.sigma)
            steps.append(
                SymmetricStep(pair.rate, pair.sigma, windows, (mean, mean), float(top), two_sided=pair.two_sided)
            )
        back = None if self.rest is None else self.rest.reversed()
        kinds = tuple(steps)
        return Side(kinds, self.counts, self.rest, False, levels), Side(kinds, self.counts, back, False, levels)

    def _beyond(self, pair: SymmetricPair, count: float, log_mass: float) -> float:
        """The outcome that is exceeded, in any step, with about that probability."""
        log_p = log_mass - math.log(count * len(self.pairs)) - math.log(2.0)
        hit = min(log_p - math.log(pair.rate), -1e-3)
        return float(max(-pair.sigma * ndtri_exp(min(log_p, -1.0)), 1 - pair.sigma * ndtri_exp(hit), 1.0))

    def _levels(self, eps: float, log_delta: float) -> Real:
        """As for hits in one direction, but up to losses that never come, and none near the outcome without loss."""
        levels = list(self._like._levels(eps))
        last = 0.0
        for pair, n in zip(self.pairs, self.counts, strict=True):
            y = np.array([self._beyond(pair, n, log_delta + _LAST)])
            last = max(last, float(pair.logs(y)[0][0]))
        while levels[-1] < 1.3 * last:
            levels.append(levels[-1] * _RATIO)
        found = np.array(levels)
        for pair in self.pairs:
            windows = at_losses(pair.rate, pair.sigma, found)
            found = found[windows.centre - START * windows.width >= pair.start + 0.3 * pair.sigma]
        if not len(found):
            raise TooExpensive("no window above no loss")
        return found
