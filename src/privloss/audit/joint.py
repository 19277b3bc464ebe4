"""The joint exact test: counts of true and false positives at once, much stronger than two separate limits.

Outcomes (tp, fp) are ordered by a statistic T that rises with tp and falls with fp. Under a null in which TPR <=
F(FPR), F non-decreasing, and for a false positive rate in a cell [x_k, x_(k+1)],

    P[T >= t] <= sum over j of Bin(j; n0, x_k) P[Bin(n1, F(x_(k+1))) >= crit(j)],
    crit(j) = the least tp with T(tp, j) >= t,

because {T >= t} grows with tp and shrinks with fp and binomial laws are stochastically monotone in their rates. The
largest over all cells is a p-value: a proof, not a grid search. Cells are halved where they matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaln, xlog1py, xlogy

from privloss.numerics.floats import Real

MOST = 4000  # trials on both sides together
_CELLS, _NEAR, _ENOUGH, _ROUNDS = 400, 0.03, 1e-5, 12
_ROUNDED = 1 + 1e-10  # what p-values are multiplied by: far above the errors of SciPy's incomplete beta function
_LEAST = 1e-18  # probabilities of counts that are added up instead of weighed
Rates = Callable[[Real], Real]


@dataclass(frozen=True, eq=False)
class JointTest:
    """Which outcomes count as at least as extreme as the one seen: for each fp the least tp."""

    positives: int
    negatives: int
    critical: Real  # crit(j), j = 0..n0; n1 + 1 where none is

    def p_value(self, most_true: Rates, enough: float = 0.0) -> float:
        """An upper bound on P[T >= t] over all nulls; the search may stop once it is above `enough` (if positive)."""
        edges = np.sin(0.5 * np.pi * np.arange(_CELLS + 1) / _CELLS) ** 2
        edges[-1] = 1.0
        low, high = edges[:-1], edges[1:]
        bounds = self._cells(low, high, most_true)
        best = float(bounds.max())
        for k in range(_ROUNDS):
            if 0 < best * _ROUNDED <= enough:
                break  # refuted already: finer cells only lower it
            near = bounds > best * (1 - _NEAR / 2**k)  # what a cell is off by halves with it
            middle = 0.5 * (low[near] + high[near])
            fresh_low = np.concatenate([low[near], middle])
            fresh_high = np.concatenate([middle, high[near]])
            fresh = self._cells(fresh_low, fresh_high, most_true)
            low, high = np.concatenate([low[~near], fresh_low]), np.concatenate([high[~near], fresh_high])
            bounds = np.concatenate([bounds[~near], fresh])
            before, best = best, float(bounds.max())
            if before - best < _ENOUGH * best:
                break
        return min(best * _ROUNDED, 1.0)

    def _cells(self, low: Real, high: Real, most_true: Rates) -> Real:
        n0, n1 = self.negatives, self.positives
        j = np.arange(n0 + 1.0)
        log_ways = gammaln(n0 + 1) - gammaln(j + 1) - gammaln(n0 - j + 1)
        true = most_true(high)
        found = np.empty(len(low))
        for i, (x, y) in enumerate(zip(low, true, strict=True)):
            weight = np.exp(log_ways + xlogy(j, x) + xlog1py(n0 - j, -x))
            some = weight > _LEAST
            critical = self.critical[some]
            tail = np.where(critical > n1, 0.0, 1.0)
            inside = (critical >= 1) & (critical <= n1)
            tail[inside] = betainc(critical[inside], n1 - critical[inside] + 1, y)
            # e^x of a sum of gammaln of numbers up to 4000: a relative error below 1e-11, in p's last factor
            found[i] = min(float(weight[some] @ tail) + (n0 + 1) * _LEAST, 1.0)
        return found


def critical(statistic: Real, seen: float) -> Real:
    """For each fp (columns) the least tp (rows) whose statistic is at least `seen`; rows + 1 if none."""
    return np.asarray((statistic < seen).sum(axis=0), dtype=float)
