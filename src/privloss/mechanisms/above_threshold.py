"""AboveThreshold, the sparse vector technique: which queries lie above a noisy threshold, until a number of them did.

>>> import privloss as pl
>>> pl.AboveThreshold(epsilon=1.0).total_variation().upper < pl.PureDP(1.0).total_variation().upper
True
>>> pl.AboveThreshold(epsilon=1.0, positives=3, value_scale=10.0) * 1             # values of positives are released too
Plan(AboveThreshold(epsilon=1.0, positives=3) + 3 * Laplace(scale=10.0))
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privloss.errors import InvalidInput
from privloss.losses.closed.laplace import LaplaceLoss
from privloss.losses.density.exponentials import Exponentials
from privloss.losses.product import product
from privloss.losses.step import Step
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.table import Table
from privloss.losses.threshold import Queries, threshold_row
from privloss.mechanisms.base import Mechanism, Steps, set_field
from privloss.mechanisms.densities import on_samples, within_range
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.parameters import flag, number, public_name, whole, word
from privloss.numerics.floats import next_up

LAPLACE, EXPONENTIAL = "laplace", "exponential"
_QUESTIONS, _LARGEST = 12, 600.0


@dataclass(frozen=True, repr=False, init=False)
class AboveThreshold(Mechanism):
    """Answers "above" or "below" to adaptive queries until `positives` of them were above. Either `epsilon`, with the
    usual noise (Laplace of scale 2 D/epsilon on the threshold, 4 positives D/epsilon on every query), or the two scales
    with the sensitivity D of a query. `monotone`: one record moves all queries in one direction. `value_scale`:
    positives are released with fresh Laplace noise of this scale as well."""

    kind: ClassVar[str] = "above-threshold"
    eps: float | None = number(above=True, default=None, public="epsilon")
    threshold_scale: float | None = number(above=True, default=None)
    query_scale: float | None = number(above=True, default=None)
    sensitivity: float = number(above=True, default=1.0, plain=1.0)
    positives: int = whole(default=1, plain=1)
    monotone: bool = flag()
    noise: str = word((LAPLACE, EXPONENTIAL), LAPLACE)
    value_scale: float | None = number(above=True, default=None)

    def __init__(
        self,
        epsilon: float | None = None,
        *,
        threshold_scale: float | None = None,
        query_scale: float | None = None,
        sensitivity: float = 1.0,
        positives: int = 1,
        monotone: bool = False,
        noise: str = LAPLACE,
        value_scale: float | None = None,
    ) -> None:
        given = (epsilon, threshold_scale, query_scale, sensitivity, positives, monotone, noise, value_scale)
        for own, value in zip(fields(self), given, strict=True):
            set_field(self, own.name, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        super().__post_init__()
        scales = (self.threshold_scale, self.query_scale)
        if self.eps is None and None in scales:
            raise InvalidInput(
                f"threshold_scale = {scales[0]!r}, query_scale = {scales[1]!r}: give both of them, or epsilon."
            )
        if self.eps is not None and scales != (None, None):
            raise InvalidInput(f"epsilon = {self.eps!r}: stands for the usual scales; give it or them, not both.")

    def changed(self, **parameters: Any) -> AboveThreshold:
        """The same with other parameters."""
        own = {public_name(f): getattr(self, f.name) for f in fields(self)}
        return AboveThreshold(**{**own, **parameters})

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """Of the two noises, in units of the sensitivity."""
        if self.eps is not None:
            return 2 / Fraction(self.eps), 4 * self.positives / Fraction(self.eps)
        size = Fraction(self.sensitivity)
        return Fraction(self.threshold_scale or 1.0) / size, Fraction(self.query_scale or 1.0) / size


@lru_cache(maxsize=256)
def _step(m: AboveThreshold, adjacency: str) -> Step:
    if m.value_scale is not None:
        return product([(part.step(adjacency), n) for part, n in _parts(m)])
    b1, b2 = m.scales
    eps1, eps2 = 1 / b1, m.positives * (1 if m.monotone else 2) / b2
    whole_eps = _up(eps1 + eps2)
    theorem = (
        "AboveThreshold: the loss of the threshold noise moved by the sensitivity, plus what positives cost "
        "(docs/mechanisms.md); below: equal queries, then higher ones"
    )
    about = (
        f"above-threshold: queries of sensitivity {m.sensitivity:g} under {adjacency}"
        f"{', all moving in one direction' if m.monotone else ''}; continuous {m.noise} noise, "
        "fresh for every query; the threshold noise is drawn once"
    )
    rows = _rows(m, float(whole_eps)) if whole_eps < _LARGEST else []
    below = rows[len(rows) // 2] if rows else None
    if eps1 >= eps2:
        loss = LaplaceLoss(np.array([whole_eps]), np.ones(1))
        step = Step((theorem,), (about,), loss, mirrored=True)
        step = on_samples(
            step, lambda: Exponentials.laplace(within_range("a threshold on a sample", whole_eps)),
            below=() if below is None else (below,),
        )  # fmt: skip
    else:
        step = Step.of_table(threshold_row(_up(eps1), _up(eps2)), theorem, about, mirrored=True, below=below)
    return replace(step, attained=tuple(TableLoss.one(row) for row in rows) or (None,))


def _rows(m: AboveThreshold, whole_eps: float) -> list[Table]:
    b1, b2 = m.scales
    queries = Queries(float(b1), float(b2), m.positives, m.monotone, m.noise == EXPONENTIAL)
    return queries.rows([float(x) for x in np.linspace(0.0, 0.995 * whole_eps, _QUESTIONS)])


def _up(exact: Fraction) -> float:
    found = float(exact)
    return found if Fraction(found) >= exact else next_up(found)


def _parts(m: AboveThreshold) -> Steps:
    if m.value_scale is None:
        return ((m, 1),)
    return (
        (m.changed(value_scale=None), 1),
        (Laplace(scale=m.value_scale, sensitivity=m.sensitivity), m.positives),
    )


def _louder(m: AboveThreshold, factor: float) -> AboveThreshold:
    values = None if m.value_scale is None else m.value_scale * factor
    if m.eps is not None:
        return m.changed(epsilon=m.eps / factor, value_scale=values)
    scales = {name: getattr(m, name) * factor for name in ("threshold_scale", "query_scale")}
    return m.changed(**scales, value_scale=values)


_SHARED = ("positives?", "monotone?", "noise?", "value_scale?")
add_kind(
    Kind(
        "above-threshold",
        AboveThreshold,
        _step,
        forms=(
            ("epsilon", "sensitivity?", *_SHARED),
            ("threshold_scale", "query_scale", "sensitivity?", *_SHARED),
        ),
        louder=_louder,
        parts=_parts,
    )
)
