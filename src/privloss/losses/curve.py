"""Boxes of which only Renyi divergences are known: zCDP and finite Renyi curves. Curves add under composition."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.numerics.small import UNIT, Real


@dataclass(frozen=True)
class RenyiCurve:
    """D_alpha <= rho alpha + sum over tables of count * (its value at the next order >= alpha)."""

    rho: float
    tables: tuple[tuple[tuple[float, ...], tuple[float, ...], int], ...]

    @property
    def empty(self) -> bool:
        """No box at all (or only boxes that give nothing away)."""
        return self.rho == 0 and all(min(epsilons) == 0 for _, epsilons, _ in self.tables)

    @property
    def attained_mu_squared(self) -> float:
        """mu^2 of a Gaussian (D_alpha = mu^2 alpha / 2) that satisfies the curve: a member of what the curve allows."""
        least = [n * min(e / a for a, e in zip(orders, epsilons, strict=True)) for orders, epsilons, n in self.tables]
        return (2 * self.rho + 2 * math.fsum(least)) * (1 - 8 * UNIT)

    @property
    def points(self) -> Real | None:
        """The c = alpha - 1 worth asking, or None if every c is as good as its neighbours."""
        if not self.tables:
            return None
        top = min(orders[-1] for orders, _, _ in self.tables)
        return np.array(sorted({a - 1 for orders, _, _ in self.tables for a in orders if a <= top}))

    def log_mgf_upper(self, c: Real) -> Real:
        """c D_(c+1): monotonicity of D in alpha fills the gaps of a table from above; inf beyond its last order."""
        total = self.rho * (c + 1)
        for orders, epsilons, n in self.tables:
            at = np.searchsorted(np.array(orders), (c + 1) * (1 - 4 * UNIT))
            total = total + n * np.append(np.array(epsilons), math.inf)[at]
        return np.asarray(c * total * (1 + 16 * UNIT))
