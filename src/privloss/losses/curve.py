"""Boxes of which only Renyi divergences are known: zCDP and finite Renyi curves. Curves add under composition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from privloss.numerics.floats import Real, lowered, raised

OrderTable = tuple[tuple[float, ...], tuple[float, ...], int]  # orders, divergences, count
WHOLE_ORDERS = (*range(2, 65), *range(72, 257, 8), 320, 384, 512)


@dataclass(frozen=True)
class RenyiCurve:
    """D_alpha <= rho alpha + sum over tables of count * (its value at the next order >= alpha, or its chord)."""

    rho: float = 0.0
    tables: tuple[OrderTable, ...] = ()
    sampled: tuple[OrderTable, ...] = ()  # tables of boxes on a sample, which no plain Gaussian stands for

    def times(self, count: int) -> RenyiCurve:
        """The curve of `count` uses."""
        more = [tuple((a, e, count * n) for a, e, n in tables) for tables in (self.tables, self.sampled)]
        return RenyiCurve(count * self.rho, *more)

    @classmethod
    def merged(cls, curves: Sequence[RenyiCurve]) -> RenyiCurve:
        """Curves add (Lem. rdp_composition)."""
        tables, sampled = (tuple(t for c in curves for t in getattr(c, name)) for name in ("tables", "sampled"))
        return cls(math.fsum(c.rho for c in curves), tables, sampled)

    @property
    def empty(self) -> bool:
        """No box at all (or only boxes that give nothing away)."""
        return self.rho == 0 and all(min(epsilons) == 0 for _, epsilons, _ in self.all_tables)

    @property
    def all_tables(self) -> tuple[OrderTable, ...]:
        return self.tables + self.sampled

    @property
    def points(self) -> Real | None:
        """The c = alpha - 1 worth asking, or None if every c is as good as its neighbours."""
        if not self.all_tables:
            return None
        top = min(orders[-1] for orders, _, _ in self.all_tables)
        return np.array(sorted({a - 1 for orders, _, _ in self.all_tables for a in orders if a <= top}))

    def log_mgf_upper(self, c: Real) -> Real:
        """c D_(c+1): between its orders a table lies below the next value (D rises in alpha) and below the chord, since
        c D_(c+1) = log E[e^(cZ)] is convex and 0 at c = 0; inf beyond its last order."""
        total = c * (self.rho * (c + 1))
        for orders, epsilons, n in self.all_tables:
            places, values = np.array(orders) - 1, np.array(epsilons)
            next_one = c * np.append(values, math.inf)[np.searchsorted(np.array(orders), lowered(c + 1, 4))]
            with np.errstate(invalid="ignore"):
                chord = np.interp(c, np.append(0.0, places), np.append(0.0, places * values))
            total = total + n * np.where(np.isfinite(next_one), np.fmin(next_one, chord), next_one)
        return np.asarray(raised(total, 16))


def gaussian_below(orders: Sequence[float], epsilons: Sequence[float]) -> float:
    """mu^2 of the Gaussian with the least noise whose divergences mu^2 alpha / 2 stay below a table."""
    return lowered(2 * min(e / a for a, e in zip(orders, epsilons, strict=True)), 8)


def poisson_divergence(order: int, rate: float, divergence: Callable[[int], float]) -> float:
    """Thm. rdp_subsampling at a whole order, rounded up, for 0 < rate < 1.

    e^((alpha-1) eps') = 1 + sum over k >= 2 of C(alpha, k) (1-p)^(alpha-k) p^k (e^((k-1) eps(k)) - 1), where the sum of
    all binomial terms has been taken as 1.
    """
    k = np.arange(2, order + 1)
    moments = (k - 1) * np.array([divergence(int(j)) for j in k])
    log_excess = _log_expm1(moments)
    binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    logs = binomial + (order - k) * math.log1p(-rate) + k * math.log(rate) + log_excess
    size = 4 + gammaln(order + 1) + order * abs(math.log(rate)) + np.where(np.isfinite(moments), moments, 0.0).max()
    total = raised(float(logsumexp(logs)), 16, size + order)
    return raised(float(np.logaddexp(0.0, total)) / (order - 1), 8)


def fixed_size_divergence(order: int, rate: float, divergence: Callable[[int], float], largest: float) -> float:
    """Batches of fixed size under replace-one (Wang, Balle, Kasiviswanathan 2019, Thm. 9), at a whole order, rounded
    up, for 0 < rate <= 1:

    log(1 + p^2 C(a,2) min{4 (e^D2 - 1), e^D2 min{2, (e^D_inf - 1)^2}}
          + sum_{j>=3} p^j C(a,j) e^((j-1) D_j) min{2, (e^D_inf - 1)^j}) / (a - 1),

    and never more than D_a: sampling never hurts.
    """
    j = np.arange(2, order + 1)
    divergences = np.array([divergence(int(k)) for k in j])
    log_top = float(_log_expm1(np.array(largest))) if largest < math.inf else math.inf
    terms = (j - 1) * divergences + np.minimum(math.log(2), j * log_top)
    terms[0] = min(terms[0], math.log(4) + float(_log_expm1(divergences[:1])[0]))
    binomial = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
    logs = j * math.log(rate) + binomial + terms
    finite = logs[np.isfinite(logs)]
    # each logarithm is a sum of terms no larger than these
    size = 4 + 3 * gammaln(order + 1) + order * abs(math.log(rate)) + np.abs(terms[np.isfinite(terms)]).max(initial=0.0)
    if np.any(logs == math.inf):
        return math.inf
    excess = raised(float(logsumexp(finite)), 16, size + order) if len(finite) else -math.inf
    value = raised(float(np.logaddexp(0.0, excess)) / (order - 1), 8)
    return min(value, raised(float(divergences[-1]), 4))


def _log_expm1(x: Real) -> Real:
    """log(e^x - 1) for x >= 0, without overflow; -inf at 0."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(x > 40, x, np.log(np.expm1(np.minimum(x, 50.0))))
