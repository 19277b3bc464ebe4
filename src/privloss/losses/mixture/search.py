"""K, K' and K'' on the real axis to a few digits: for searching only, nothing here is a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.losses.mixture.grid import Members, quick_range, quick_step
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.floats import Real

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_MOST = 1_000_000  # nodes of all rows together
_LARGE = 300.0  # log of a weight from which on sums are scaled


@dataclass(frozen=True, eq=False)
class SearchNodes:
    """Losses and their weights at the nodes, arrays (rows, nodes): they serve every tilt up to that of the rows."""

    z: Real
    log_weight: Real  # log of the P-mass of a node
    weight: Real

    @classmethod
    def up_to(cls, rows: Members) -> SearchNodes:
        low, high = quick_range(rows)
        size = int(((high - low) / quick_step(rows)).max()) + 2
        if size * len(rows.q) > _MOST:
            raise TooExpensive(f"{size} quadrature nodes")
        step = (high - low) / (size - 1)
        y = low[:, None] + step[:, None] * np.arange(size)
        log_r = rows.log_ratio(y)[2]
        log_phi = (np.log(step / rows.sigma) - _LOG_SQRT_2PI)[:, None] - 0.5 * (y / rows.sigma[:, None]) ** 2
        z, log_weight = (-log_r, log_phi) if rows.flipped else (log_r, log_phi + log_r)
        return cls(z, log_weight, np.exp(log_weight))

    def moments(self, c: float, mean: Real) -> tuple[Real, Real, Real]:
        """K, K', K'' of every row at c."""
        z, weight, u = self.z, self.weight, c * self.z
        exponent = self.log_weight + u
        if exponent.max() > _LARGE:
            scale = np.maximum(exponent.max(axis=1, keepdims=True) - _LARGE, 0.0)
            tilted = np.exp(exponent - scale)
            total, tilted_z = tilted.sum(axis=1), tilted * z
            k1 = tilted_z.sum(axis=1) / total
            return scale[:, 0] + np.log(total), k1, (tilted_z * z).sum(axis=1) / total - k1 * k1
        if u.max() < _LARGE:
            rise = weight * np.expm1(u)
        else:  # large losses of tiny weight
            rise = np.where(u < 1.0, weight * np.expm1(np.minimum(u, 1.0)), np.exp(exponent) - weight)
        m1 = (rise - weight * u).sum(axis=1) + c * mean
        k1 = ((rise * z).sum(axis=1) + mean) / (1 + m1)
        return np.log1p(m1), k1, ((rise + weight) * z * z).sum(axis=1) / (1 + m1) - k1 * k1
