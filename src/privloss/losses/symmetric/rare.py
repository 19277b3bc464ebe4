"""Where to split a composition of pairs of sampled noise by its largest loss: searched, any choice is sound."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtri_exp

from privloss.losses.base import PrivacyLoss
from privloss.losses.mixture.largest import Side
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.mixture.marked import MarkedStep
from privloss.losses.mixture.rare import RareLosses
from privloss.losses.mixture.sums import Mean
from privloss.losses.mixture.windows import START, at_losses
from privloss.losses.symmetric.mixed import MixedStep
from privloss.losses.symmetric.pair import HitPair, Pair, Split, SymmetricPair
from privloss.losses.symmetric.step import SymmetricStep, mean_loss
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.floats import Real
from privloss.numerics.stable import log_sampled

_LEFT = math.log(1e-14)  # share of delta that outcomes beyond the last nodes may have
_LAST = math.log(1e-13)  # and beyond the last window, where classes above eps are not read backward
_RATIO = 2.0


@dataclass(frozen=True, eq=False)
class PairedRare:
    """Kinds of step with counts, all in the same direction, and the rest of a plan."""

    kinds: tuple[Split, ...]
    counts: Real
    rest: PrivacyLoss | None
    _means: dict[Pair, tuple[Mean, Mean]] = field(default_factory=dict, repr=False)

    @property
    def _turned(self) -> bool:
        return self.kinds[0].turned

    @property
    def _one_sided(self) -> bool:
        return all(kind.one_sided for kind in self.kinds)

    @cached_property
    def _like(self) -> RareLosses:
        """Samples with the most frequent hits, in one direction: close enough for searching."""
        main = [kind.main for kind in self.kinds]
        rates, sigmas = np.array([pair.rate for pair in main]), np.array([pair.sigma for pair in main])
        flipped = self._turned and self._one_sided
        found = GaussianMixtureLoss(rates, sigmas, self.counts, flipped).rare_losses(self.rest)
        if found is None:
            raise TooExpensive("too many kinds of step")
        return found

    def rough_epsilon(self, log_delta: float) -> float:
        return self._like.rough_epsilon(log_delta)

    def rough_log_delta(self, eps: float) -> float:
        return self._like.rough_log_delta(eps)

    def decisive(self, eps: float, log_delta: float) -> bool:
        return self._like.decisive(eps, log_delta)

    def sides(self, eps: float, log_delta: float) -> tuple[Side, Side]:
        levels = self._levels(eps, log_delta)
        steps = []
        for kind, n in zip(self.kinds, self.counts, strict=True):
            parts = tuple(self._marked(pair, float(n) * w, log_delta, levels) for w, pair in kind.pairs)
            weights = tuple(w for w, _ in kind.pairs)
            steps.append(parts[0] if len(parts) == 1 else MixedStep.of_parts(parts, weights))
        back = None if self.rest is None else self.rest.reversed()
        here, there = (self._turned, not self._turned) if not self._symmetric else (False, False)
        kinds = tuple(steps)
        return Side(kinds, self.counts, self.rest, here, levels), Side(kinds, self.counts, back, there, levels)

    @property
    def _symmetric(self) -> bool:
        """Whether both directions are the same."""
        return all(isinstance(pair, SymmetricPair) for kind in self.kinds for _, pair in kind.pairs)

    def _marked(self, pair: Pair, count: float, log_delta: float, levels: Real) -> MarkedStep:
        windows = at_losses(pair.rate, pair.sigma, levels)
        top = max(self._beyond(pair, count, log_delta + _LEFT), windows.start(len(levels)) + pair.sigma)
        if pair not in self._means:
            self._means[pair] = _means(pair, self.counts.max(keepdims=True))
        if isinstance(pair, HitPair):
            return MarkedStep(pair.rate, pair.sigma, windows, self._means[pair], top)
        return SymmetricStep(pair.rate, pair.sigma, windows, self._means[pair], top, two_sided=pair.two_sided)

    def _beyond(self, pair: Pair, count: float, log_mass: float) -> float:
        """The outcome that is exceeded, in any step, with about that probability."""
        log_p = log_mass - math.log(count * len(self.kinds)) - math.log(2.0)
        hit = min(log_p - math.log(pair.rate), -1e-3)
        return float(max(-pair.sigma * ndtri_exp(min(log_p, -1.0)), 1 - pair.sigma * ndtri_exp(hit), 1.0))

    def _levels(self, eps: float, log_delta: float) -> Real:
        """As for hits in one direction; where classes above eps cannot be read backward, up to losses that never come,
        and never down to the outcome without loss."""
        found = self._like.levels(eps)
        if self._one_sided:
            return found
        levels, last = list(found), 0.0
        for kind, n in zip(self.kinds, self.counts, strict=True):
            for weight, pair in kind.pairs:
                y = self._beyond(pair, float(n) * weight, log_delta + _LAST)
                last = max(last, float(log_sampled(pair.rate, (y - 0.5) / pair.sigma**2)))
        while levels[-1] < 1.3 * last:
            levels.append(levels[-1] * _RATIO)
        found = np.array(levels)
        for kind in self.kinds:
            for _, pair in kind.pairs:
                if isinstance(pair, SymmetricPair):
                    windows = at_losses(pair.rate, pair.sigma, found)
                    found = found[windows.centre - START * windows.width >= pair.start + 0.3 * pair.sigma]
        if not len(found):
            raise TooExpensive("no window above no loss")
        return found


def _means(pair: Pair, count: Real) -> tuple[Mean, Mean]:
    """Forward and backward, good enough for so many steps."""
    if isinstance(pair, HitPair):
        return GaussianMixtureLoss(np.array([pair.rate]), np.array([pair.sigma]), count).means
    mean = mean_loss(pair)
    return mean, mean
