"""A few uses of tables with hundreds of outcomes: too many sums to be listed, too few for a line that falls or for
classes that are blurred. What is far rarer than delta is left out, and uses are blocks on a grid (`table/blocks.py`).

Without outcomes of mass m in all, delta(eps) = sum m_i (1 - e^(eps - v_i))_+ is smaller, by at most m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privloss.losses.table.blocks import Blocks
from privloss.losses.table.table import Table
from privloss.numerics.floats import Real, log_lowered, log_raised, padded_up

MOST_FEW_USES = 64
_LEFT = 1e-14  # share of delta that may be left out
_FARTHEST = -650.0  # log of the least delta


@dataclass(frozen=True, eq=False)
class FewOnGrid:
    """Uses on a grid, and the mass of what they leave out."""

    blocks: Blocks
    left: float

    @classmethod
    def of(cls, rows: list[tuple[Table, int]], log_delta: float) -> FewOnGrid:
        """For questions about this delta."""
        count = sum(n for _, n in rows)
        share = _LEFT * math.exp(max(log_delta, _FARTHEST)) / count
        kept, left = [], 0.0
        for row, n in rows:
            seen, lost = _without(row, share)
            kept += [(seen, 1)] * n
            left += n * lost
        return cls(Blocks(kept), padded_up(left, 1e-12))

    def epsilon(self, level: tuple[float, float], tolerance: float) -> tuple[float, float] | None:
        """(lower, upper) with delta(upper) <= delta <= delta(lower), delta known by its `level`; None if too coarse."""
        least = math.exp(level[0])
        if not self.left < 0.5 * least:
            return None
        return self.blocks.epsilon((log_lowered(math.log1p(-self.left / least) + level[0], 8), level[1]), tolerance)

    def delta(self, eps: float, tolerance: float) -> tuple[float, float] | None:
        """log of lower and upper bounds on delta of finite losses."""
        found = self.blocks.delta(eps, tolerance)
        if found is None or not self.left > 0:
            return found
        return found[0], min(log_raised(float(np.logaddexp(found[1], math.log(self.left))), 8), 0.0)


def _without(row: Table, share: float) -> tuple[Table, float]:
    """The row without its rarest outcomes, of about this mass at most, and a bound on what it lost, tails included."""
    order = np.argsort(row.masses)
    rare = order[np.cumsum(row.masses[order]) <= share]
    kept = np.ones(len(row.masses), dtype=bool)
    kept[rare] = False
    lost = math.fsum(row.masses[rare].tolist()) * (1 + 1e-9)
    if row.missing is not None:
        lost += float(row.missing[0](0.0, np.zeros(1))[0])
    seen = replace(
        row,
        values=row.values[kept],
        masses=row.masses[kept],
        slack=_picked(row.slack, kept),
        wobble=_picked(row.wobble, kept),
        missing=None,
    )
    return seen, lost


def _picked(units: float | Real, kept: Real) -> float | Real:
    return units if isinstance(units, float) else units[kept]
