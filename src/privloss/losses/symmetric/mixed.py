"""A step that is one of several pairs with given probabilities, which of them it is being public: M(z) is the weighted
sum of theirs, and so are sums over nodes, means and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.losses.mixture.marked import BulkDecay, MarkedLine, MarkedStep, Nodes
from privloss.losses.mixture.sums import Mean
from privloss.numerics.floats import UNIT, Real

_ROUNDINGS = 8.0  # of a weight
_SAFETY = 1e-12


@dataclass(frozen=True, eq=False)
class MixedStep(MarkedStep):
    """The fields of `MarkedStep` are those of the first part, the means excepted; all parts have as many windows."""

    parts: tuple[MarkedStep, ...] = ()
    weights: tuple[float, ...] = ()

    @classmethod
    def of_parts(cls, parts: tuple[MarkedStep, ...], weights: tuple[float, ...]) -> MixedStep:
        first, means = parts[0], (_mean(parts, weights, 0), _mean(parts, weights, 1))
        return cls(first.rate, first.sigma, first.windows, means, first.top, parts=parts, weights=weights)

    @property
    def one_sided(self) -> bool:
        return all(part.one_sided for part in self.parts)

    def finer(self) -> MixedStep:
        return MixedStep.of_parts(tuple(part.finer() for part in self.parts), self.weights)

    def _made(self, j: int) -> Nodes:
        found = []
        for part, weight in zip(self.parts, self.weights, strict=True):
            own = part.of(j)
            slack = own.slack + _ROUNDINGS + abs(math.log(weight))
            found.append(Nodes(own.spacing, own.log_mass + math.log(weight), own.log_r, slack, own.drift))
        return Nodes.joined(found)

    @cached_property
    def rare_strips(self) -> WeightedErrors:  # type: ignore[override]
        return WeightedErrors(self.parts, self.weights)

    @cached_property
    def bulk_strip(self) -> WeightedErrors:  # type: ignore[override]
        return WeightedErrors(self.parts, self.weights)

    def log_beyond(self, power: float) -> float:
        return _weighted(self.weights, [part.log_beyond(power) for part in self.parts])

    def bulk_decay(self, c: float, backward: bool) -> BulkDecay:
        each = [part.bulk_decay(c, backward) for part in self.parts]
        sizes = [MarkedLine(part, c, backward, np.zeros(1)).bulk() for part in self.parts]
        low = [max(1 + float(s.value[0].real) - float(s.error[0]), 0.0) for s in sizes]
        high = [1 + float(s.value[0].real) + float(s.error[0]) for s in sizes]
        return WeightedDecay(tuple(each), self.weights, tuple(low), tuple(high))


@dataclass(frozen=True, eq=False)
class WeightedErrors:
    """Errors and decay of all parts; each has its own spacing, whatever is passed."""

    parts: tuple[MarkedStep, ...]
    weights: tuple[float, ...]

    def _sum(self, one: Callable[[MarkedStep], Real]) -> Real:
        logs = [math.log(w) + one(part) for part, w in zip(self.parts, self.weights, strict=True)]
        return np.asarray(np.logaddexp.reduce(logs, axis=0)) + _SAFETY

    def log_missed(self, power: float, t: float, spacing: Real) -> Real:
        return self._sum(lambda part: part.rare_strips.log_missed(power, t, part.spacings))

    def log_missed_mean(self, power: float, spacing: Real) -> Real:
        return self._sum(lambda part: part.rare_strips.log_missed_mean(power, part.spacings))

    def log_missed_rest(self, c: float, backward: bool, t: float, spacing: Real) -> Real:
        return self._sum(lambda part: part.bulk_strip.log_missed_rest(c, backward, t, np.array([part.of(0).spacing])))

    def log_fallen(self, power: float, t: float) -> Real:
        return self._sum(lambda part: part.rare_strips.log_fallen(power, t))


@dataclass(frozen=True, eq=False)
class WeightedDecay:
    """|sum w M_0(c + iu)| <= sum w |M_0(c + iu)|, each at most its bound times its M_0(c)."""

    parts: tuple[BulkDecay, ...]
    weights: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def log_upper(self, t: float) -> Real:
        members = list(zip(self.parts, self.weights, self.high, strict=True))
        most = math.fsum(w * size * math.exp(float(part.log_upper(t)[0])) for part, w, size in members)
        least = math.fsum(w * size for w, size in zip(self.weights, self.low, strict=True))
        if not 0 < least < math.inf or not most < math.inf:
            return np.zeros(1)
        return np.array([min(math.log(max(most / least, 1e-300)) + _SAFETY, 0.0)])


def _mean(parts: tuple[MarkedStep, ...], weights: tuple[float, ...], direction: int) -> Mean:
    """The weighted mean and its error."""
    each = [(w, part.means[direction]) for part, w in zip(parts, weights, strict=True)]
    value = sum((w * mean.value for w, mean in each), np.zeros(1))
    size = sum((w * np.abs(mean.value) for w, mean in each), np.zeros(1))
    error = sum((w * mean.error for w, mean in each), np.zeros(1)) + 16 * UNIT * size
    variance = sum((w * (mean.variance + mean.value**2) for w, mean in each), np.zeros(1)) - value**2
    return Mean(value, error, variance)


def _weighted(weights: tuple[float, ...], logs: list[float]) -> float:
    terms = [math.log(w) + log for w, log in zip(weights, logs, strict=True)]
    return float(np.logaddexp.reduce(terms)) + _SAFETY
