"""A few outcomes z_k of some parts, and a rest whose profile is in closed form:

    delta(eps) = sum over k of m_k delta_rest(eps - z_k),

a sum of positive terms, at any eps, however rare or close to a line's poles the outcomes are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.table.table import Table
from privloss.numerics.floats import UNIT, Real, log_lowered, log_raised, lowered, raised

MOST_MEANS = (8192, 512)  # outcomes, where a line falls slowly and where it falls fast


@dataclass(frozen=True, eq=False)
class MeanOverOutcomes:
    """A table of all outcomes, and the rest."""

    table: Table
    rest: PrivacyLoss

    def hockey_stick(self, eps: float) -> tuple[float, float]:
        """log of lower and upper bounds on delta of finite losses."""
        values, masses, units = self.table.values, self.table.masses, float(np.max(self.table.slack)) + 8
        off = UNIT * ((float(np.max(self.table.wobble)) + 4) * float(np.abs(values).max()) + self.table.absolute)
        x = eps - values
        off = raised(off + 4 * UNIT * abs(eps), 4)
        low, high = self._at(x + off)[0], self._at(x - off)[1]  # a profile falls
        lower = lowered(math.fsum((masses * low).tolist()), units)
        upper = raised(math.fsum((masses * high).tolist()), units) + self._left
        return (
            log_lowered(math.log(lower), 4) if lower > 0 else -math.inf,
            min(log_raised(math.log(upper), 4), 0.0) if upper > 0 else -math.inf,
        )

    def _at(self, x: Real) -> tuple[Real, Real]:
        found = self.rest.profile(x)
        assert found is not None
        return found

    @property
    def _left(self) -> float:
        """The mass of outcomes that are not listed."""
        return 0.0 if self.table.missing is None else float(self.table.missing[0](0.0, np.zeros(1))[0])
