"""Several releases on one and the same sample, as one step.

*Poisson.* If (P_i, Q_i) dominates release i on whatever sample, adaptively, the product (P, Q) dominates all of them
together (Zhu, Dong, Wang 2022, Thm. 10), and their sample is dominated by ((1-q) Q + q P, Q) (Thm. 11, applied to the
composition as one mechanism). A sample for each release would be another run, with a smaller loss. The product of
finite rows is a row; beside Gaussian noise see `density/beside_normal.py`. A continuous release that is not Gaussian
is replaced by a finite pair above it, and below by a post-processing.

*Gaussian noise alone*: the product is one Gaussian pair whose squared distance is the sum. Every sampler's proof uses
of a step only that it is dominated by N(d) against N(0) when a record joins and by N(d') when it is replaced; the
mean of likelihood ratios of random allocation needs besides that adaptive contributions are no worse than constant
ones (Kahane 1985; docs/mechanisms.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.composition import compose
from privloss.losses.density.beside_normal import sampled_beside_normal
from privloss.losses.density.normal import FURTHEST
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.step import Distances, NoPair, Step
from privloss.losses.table.build import REVEALED, from_vectors, poisson
from privloss.losses.table.coarse import hull_above, merged_below, places_of
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.outcomes import outcomes, whole
from privloss.losses.table.table import Table
from privloss.numerics.floats import lowered, raised

TOGETHER = "releases on one sample: the sampled product of their pairs (Zhu, Dong, Wang 2022, Thm. 10 and 11)"
_MOST, _BESIDE = 2_000, 40  # outcomes of a product, and beside Gaussian noise
_LEAST = 12  # of one release
_RARE, _FEW = 2e-3, 20.0  # rates, and hits of a plan, from which on densities are no slower
_OUTCOMES, _CELLS = 4_000, 1_000  # of others and Gaussian noise where hits are few, and of Gaussian noise
_REACH, _SMOOTH = 8.0, 1e-13  # of cells of Gaussian noise, which are mixed with the same noise on both sides
Use = tuple[Step, int]


def product(uses: Sequence[Use]) -> Step:
    """The composition of these steps as one step, and what becomes of it on samples."""
    found = compose(uses, "", roles_swap=False)
    steps = [step for step, _ in uses]
    made = Step(
        found.theorems,
        ("; ".join(found.assumptions),),
        found.loss if found.loss.parts else None,
        mirrored=all(step.mirrored for step in steps),
        attained=tuple(member if member.parts else None for member in found.attained),
        curve=None if found.curve.empty else found.curve,
        stand_in=None if found.curve.empty else found.stand_in,
        distances=_distances(uses),
        contributions_known=all(step.contributions_known for step in steps),
        null_adds_nothing=all(step.null_adds_nothing for step in steps),
    )
    shared = _Shared(tuple(uses))
    return replace(made, poisson=shared.on_poisson, symmetric=shared.on_replaced)


def _distances(uses: Sequence[Use]) -> Distances | None:
    known = [(step.distances, n) for step, n in uses if step.distances is not None]
    if len(known) < len(uses):
        return None
    adds = [(d.add, n) for d, n in known]
    return Distances(
        None if any(a is None for a, _ in adds) else _root([(a or 0.0, n) for a, n in adds]),
        _root([(d.replace, n) for d, n in known]),
    )


def _root(distances: Sequence[tuple[float, int]]) -> float:
    """The root of the sum of squares, rounded up."""
    return raised(math.hypot(*(math.sqrt(n) * d for d, n in distances)), 8)


@dataclass(frozen=True)
class _Shared:
    """The releases that share a sample."""

    uses: tuple[Use, ...]

    def on_poisson(self, rate: float) -> Step:
        normal, others = self._split()
        if not others:
            return self._gaussian(normal, rate)
        about = ("; ".join(dict.fromkeys(text for step, _ in self.uses for text in step.assumptions)),)
        above, below = self._rows(others, _BESIDE if normal else _MOST)
        if not normal or above.delta >= 1:
            loss = TableLoss.one(poisson(above, rate))
            lower = () if below is above else (None if below is None else TableLoss.one(poisson(below, rate)),)
            return Step((TOGETHER,), about, loss, attained=lower)
        if normal > FURTHEST:
            raise NoPair
        loss = TableLoss.one(sampled_beside_normal(above, rate, normal))
        few = self._few_hits(rate, normal, others)
        if below is None:
            return Step((TOGETHER,), about, loss, attained=(None,), few_hits=few)
        return Step((TOGETHER,), about, loss, attained=(TableLoss.one(_beside(below, rate, normal)),), few_hits=few)

    def _few_hits(self, rate: float, normal: float, others: Sequence[Use]) -> Callable[[int], Step | None]:
        """Gaussian noise by finitely many outcomes too: tables are split by the largest loss where hits are few, and
        a density beside them is not."""

        def rarely(count: int) -> Step | None:
            if rate > _RARE or rate * count > _FEW:
                return None
            each, beside = self._rows(others, _BESIDE)
            cells = min(max(_OUTCOMES // max(len(each.values), 1), _LEAST), _CELLS)
            row, less = _cells_of_normal(normal, cells)
            above = TableLoss.one(poisson(_together([(each, 1), (row, 1)], _OUTCOMES * 2), rate))
            if beside is None:
                return Step((), (), above, attained=(None,))
            below = _together([(beside, 1), (less, 1)], _OUTCOMES * 2, below=True)
            return Step((), (), above, attained=(TableLoss.one(poisson(below, rate)),))

        return rarely

    def on_replaced(self, rate: float) -> Step:
        """One even pair for both orders of a replaced record; Gaussian noise as a finite pair too."""
        normal, others = self._split()
        if not others:
            raise NoPair
        if normal:
            others = [*others, (_finite_normal(normal), 1)]
        above, below = self._rows(others, _MOST)
        even = all(step.mirrored for step, _ in self.uses)
        made = Step.of_table(above, TOGETHER, "", even, None if below is above else below)
        if made.symmetric is None:
            raise NoPair
        found = made.symmetric(rate)
        return found if below is not None else replace(found, attained=(None,))

    def _gaussian(self, distance: float, rate: float) -> Step:
        sigma = 1 / distance if distance > 0 else math.inf
        if not 0 < sigma * sigma < math.inf:
            raise NoPair
        below = GaussianMixtureLoss.one(rate, raised(sigma, 24))
        return Step((TOGETHER,), (), GaussianMixtureLoss.one(rate, lowered(sigma, 4)), attained=(below,))

    def _split(self) -> tuple[float, list[tuple[Step, int]]]:
        """The distance of all Gaussian releases together, and the others."""
        if any(step.curve is not None for step, _ in self.uses):
            raise NoPair
        normal = _root([(step.normal, n) for step, n in self.uses if step.normal is not None])
        return normal, [(step, n) for step, n in self.uses if step.normal is None and step.loss is not None]

    def _rows(self, others: Sequence[Use], most: int) -> tuple[Table, Table | None]:
        """The product of the others, from above with about so many outcomes, and from below where something is."""
        releases = sum(n for _, n in others)
        each = max(int(most ** (1 / releases)), _LEAST)
        pairs = [(_finite(step, each), n) for step, n in others]
        above = _together([(rows[0], n) for rows, n in pairs], most)
        if any(rows[1] is None for rows, _ in pairs):
            return above, None
        if all(rows[1] is rows[0] for rows, _ in pairs) and outcomes([(rows[0], n) for rows, n in pairs]) <= most:
            return above, above
        below = _together([(rows[1], n) for rows, n in pairs if rows[1] is not None], most, below=True)
        return above, below


def _beside(below: Table, rate: float, normal: float) -> Table:
    """Beside Gaussian noise whose distance is rounded down."""
    return sampled_beside_normal(below, rate, lowered(normal, 32))


def _finite(step: Step, most: int) -> tuple[Table, Table | None]:
    if step.finite is None:
        raise NoPair
    return step.finite(most)


def _together(rows: Sequence[tuple[Table, int]], most: int, below: bool = False) -> Table:
    """All outcomes of the product; where they are too many, fewer that stand above or below it."""
    if any(row.delta >= 1 for row, _ in rows):
        return REVEALED
    if len(rows) == 1 and rows[0][1] == 1:
        found = rows[0][0]
    elif outcomes(rows) == math.inf:
        raise NoPair
    else:
        found = whole(rows)
    if len(found.values) <= most:
        return found
    if below:
        return merged_below(found, most)
    if not all(row.symmetric for row, _ in rows):
        raise NoPair
    coarse = hull_above(TableLoss.one(found), places_of(found.largest, most // 2))
    if coarse is None:
        raise NoPair
    return coarse


def _finite_normal(distance: float) -> Step:
    """N(distance) against N(0) by finitely many outcomes."""
    return Step(
        (), (), mirrored=True, finite=lambda most: _cells_of_normal(distance, most), loss=GaussianLoss(distance**2)
    )


def _cells_of_normal(distance: float, most: int) -> tuple[Table, Table]:
    """Above it, by chords of its profile, and below, by cells of its outputs."""
    reach = 0.5 * distance**2 + 9 * distance
    above = hull_above(GaussianLoss(raised(distance**2, 4)), places_of(reach, most))
    if above is None:
        raise NoPair
    cells = np.linspace(-_REACH, distance + _REACH, most)
    p, q = (np.diff(ndtr(cells - moved), prepend=0.0, append=1.0) + _SMOOTH for moved in (distance, 0.0))
    return above, from_vectors([float(m) for m in p], [float(m) for m in q])
