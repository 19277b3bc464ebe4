"""The joint exact test: counts of true and false positives at once, much stronger than two separate limits.

Outcomes (tp, fp) are ordered by a statistic T that rises with tp and falls with fp. Under a null in which TPR <=
F(FPR), F non-decreasing, and for a false positive rate in a cell [x_k, x_(k+1)],

    P[T >= t] <= sum over j of Bin(j; n0, x_k) P[Bin(n1, F(x_(k+1))) >= crit(j)],
    crit(j) = the least tp with T(tp, j) >= t,

because {T >= t} grows with tp and shrinks with fp and binomial laws are stochastically monotone in their rates. The
largest over all cells is a p-value: a proof, not a grid search. Cells are halved where they matter: until their bounds
are those of single nulls (cells of no width), or until it is clear on which side of a level p lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import betainc, gammaln, xlog1py, xlogy

from privloss.numerics.floats import Real

MOST = 4000  # trials on both sides together
_ENOUGH, _ROUNDS = 1e-5, 24
_ROUNDED = 1 + 1e-10  # what p-values are multiplied by: far above the errors of SciPy's incomplete beta function
_LEAST = 1e-18  # probabilities of counts that are added up instead of weighed
_AT_ONCE = 2**18  # entries of a table of cells and counts
_MANY = 20_000  # cells that are not halved any more
Rates = Callable[[Real], Real]


@dataclass(frozen=True, eq=False)
class JointTest:
    """Which outcomes count as at least as extreme as the one seen: for each fp the least tp."""

    positives: int
    negatives: int
    critical: Real  # crit(j), j = 0..n0; n1 + 1 where none is
    tried: list[float] = field(default_factory=list)  # false positive rates at which a null reached some level

    def p_value(self, most_true: Rates, level: float = 0.0) -> float:
        """An upper bound on P[T >= t] over all nulls, a part in 1e5 above it at most. With a level, only so sharp that
        it is seen on which side of it p lies: what stops early is still an upper bound."""
        cells = math.ceil(8 * math.sqrt(max(self.negatives, 64)))  # some for each standard deviation
        edges = np.sin(0.5 * np.pi * np.arange(cells + 1) / cells) ** 2
        edges[-1] = 1.0
        low, high = edges[:-1], edges[1:]
        attained = 0.0  # the largest P[T >= t] known of a single null
        if level > 0 and self.tried:
            at = np.array(self.tried[-2:])
            attained = float(self._cells(at, at, most_true).max())
        bounds = np.ones(1) if attained > level > 0 else self._cells(low, high, most_true)
        closed = 0.0  # the largest bound of the cells that were left as they are
        for _ in range(_ROUNDS):
            best = max(float(bounds.max(initial=0.0)), closed)
            if level > 0 and (best * _ROUNDED <= level or attained > level):
                break
            top = int(np.argmax(bounds))
            middle = 0.5 * (low[top] + high[top])
            attained = max(attained, float(self._cells(middle[None], middle[None], most_true)[0]))
            if attained > level > 0:
                self.tried.append(float(middle))
            opened = bounds > max(attained * (1 + _ENOUGH), level / _ROUNDED)
            closed = max(closed, float(bounds[~opened].max(initial=0.0)))
            if not 0 < opened.sum() < _MANY:
                break
            middles = 0.5 * (low[opened] + high[opened])
            low, high = np.concatenate([low[opened], middles]), np.concatenate([middles, high[opened]])
            bounds = self._cells(low, high, most_true)
        return min(max(float(bounds.max(initial=0.0)), closed) * _ROUNDED, 1.0)

    def _cells(self, low: Real, high: Real, most_true: Rates) -> Real:
        """Of each cell; of cells of no width, P[T >= t] itself."""
        step = max(_AT_ONCE // (self.negatives + 1), 1)
        true = most_true(high)
        return np.concatenate([self._some(low[i : i + step], true[i : i + step]) for i in range(0, len(low), step)])

    def _some(self, false: Real, true: Real) -> Real:
        n0, n1 = self.negatives, self.positives
        j = np.arange(n0 + 1.0)
        log_ways = gammaln(n0 + 1) - gammaln(j + 1) - gammaln(n0 - j + 1)
        x = false[:, None]
        weight = np.exp(log_ways + xlogy(j, x) + xlog1py(n0 - j, -x))
        tail = np.where(self.critical > n1, 0.0, np.ones(weight.shape))
        some = (weight > _LEAST) & (self.critical >= 1) & (self.critical <= n1)
        of, count = np.nonzero(some)
        least = self.critical[count]
        tail[some] = betainc(least, n1 - least + 1, true[of])
        # e^x of a sum of gammaln of numbers up to 4000: a relative error below 1e-11, in p's last factor
        found = (np.where(weight > _LEAST, weight, 0.0) * tail).sum(axis=1)
        return np.asarray(np.minimum(found + (n0 + 1) * _LEAST, 1.0))


def critical(statistic: Real, seen: float) -> Real:
    """For each fp (columns) the least tp (rows) whose statistic is at least `seen`; rows + 1 if none."""
    return np.asarray((statistic < seen).sum(axis=0), dtype=float)
