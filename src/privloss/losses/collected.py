"""Parameters gathered over the steps of a plan, kind by kind: the one place where counts meet losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from privloss.losses.atoms import AtomsLoss
from privloss.losses.base import PrivacyLoss
from privloss.losses.bounded_range import BoundedRangeLoss, two_point
from privloss.losses.curve import Table
from privloss.losses.discrete import DiscreteLoss
from privloss.losses.discrete_gaussian import DiscreteGaussianLoss
from privloss.losses.gaussian_mixture import GaussianMixtureLoss
from privloss.losses.laplace import LaplaceLoss
from privloss.losses.point import PointLoss
from privloss.losses.row import Row
from privloss.mechanisms.base import Mechanism
from privloss.numerics.small import Real

REVEALED_POINT = (-math.inf, 0.0, 1.0, 1)  # a point loss without finite mass


@dataclass
class Collected:
    """Parameters gathered over the steps of a plan, kind by kind."""

    mu_squared: list[float] = field(default_factory=list)
    mixtures: list[tuple[float, float, int]] = field(default_factory=list)
    laplace: list[tuple[float, int]] = field(default_factory=list)
    atoms: list[tuple[float, float, float, int]] = field(default_factory=list)
    discrete_gaussians: list[tuple[float, int, int]] = field(default_factory=list)  # sigma, sensitivity, count
    points: list[tuple[float, float, float, int]] = field(default_factory=list)  # log mass, value, delta, count
    rows: list[tuple[Row, int]] = field(default_factory=list)
    rows_below: list[tuple[Row, Row, int]] = field(default_factory=list)  # dominating, attained
    above: list[PrivacyLoss] = field(default_factory=list)  # what bounds samplers from above, and
    below: list[PrivacyLoss] = field(default_factory=list)  # what they surely attain
    ranges: list[tuple[float, int]] = field(default_factory=list)  # bounded range
    sampled: list[Table] = field(default_factory=list)
    sampled_attained: list[tuple[float, float, int]] = field(default_factory=list)  # mixtures that stand for `sampled`
    rho: list[float] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    others: list[PrivacyLoss] = field(default_factory=list)  # bundles that mechanisms of one's own bring along
    theorems: dict[str, None] = field(default_factory=dict)
    assumptions: dict[str, None] = field(default_factory=dict)

    def parts(self, share: float | None = None, stand_in: bool = False) -> list[PrivacyLoss]:
        """One bundle per kind. With a share, bounded ranges are two-point mechanisms at that place of their range."""
        parts: list[PrivacyLoss] = []
        if self.points:
            log_mass, value = (math.fsum(n * p[i] for *p, _, n in self.points) for i in (0, 1))
            single = self.points[0][2] if len(self.points) == 1 and self.points[0][3] == 1 else None
            parts.append(PointLoss(log_mass, value, single))
        mixtures = self.mixtures + (self.sampled_attained if stand_in else [])
        if mixtures:
            rate, sigma, count = columns(mixtures)
            parts.append(GaussianMixtureLoss(rate, sigma, count))
        if self.laplace:
            parts.append(LaplaceLoss(*columns(self.laplace)))
        if self.atoms:
            parts.append(AtomsLoss(*columns(self.atoms)))
        if self.discrete_gaussians:
            parts.append(DiscreteGaussianLoss(*columns(self.discrete_gaussians)))
        rows = self.rows + [(above if share is None else below, n) for above, below, n in self.rows_below]
        if self.ranges and share is None:
            parts.append(BoundedRangeLoss(*columns(self.ranges)))
        elif share is not None:
            rows += [(two_point(eps, 0.5 * eps * (1 + share)), n) for eps, n in self.ranges]
        if rows:
            parts.append(DiscreteLoss(tuple(r for r, _ in rows), np.array([float(n) for _, n in rows])))
        return parts + self.others + (self.above if share is None else self.below)

    def say(self, theorem: str, assumption: str) -> None:
        self.theorems[theorem] = None
        self.assumptions[assumption] = None

    def add_row(self, row: Row, times: int) -> None:
        if row.delta >= 1:
            self.points.append(REVEALED_POINT)
        else:
            self.rows.append((row, times))

    def between(self, above: PrivacyLoss, below: PrivacyLoss) -> None:
        """A step of which only bounds on both sides are known."""
        self.above.append(above)
        self.below.append(below)


def columns(rows: Sequence[tuple[float, ...]]) -> list[Real]:
    return [np.array(column, dtype=float) for column in zip(*rows, strict=True)]


Collect = Callable[[Collected, Mechanism, int, str], None]
