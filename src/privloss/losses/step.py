"""One use of a mechanism as the accountant sees it: a frozen value. What matters about a step is declared here.

A mechanism's own file makes the step, samplers and groups map steps to steps (`samplers/`), and `composition.py` is the
only place that sees several of them. No rule anywhere asks which mechanism a step came from.

>>> from privloss.losses.table.build import from_vectors
>>> step = Step.of_table(from_vectors([0.9, 0.1], [0.5, 0.5]), "the pair as given", "example", mirrored=False)
>>> step.mirrored, step.on_poisson(0.5).loss.largest < step.loss.largest
(False, True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.point import PointLoss
from privloss.losses.curve import RenyiCurve
from privloss.losses.table.build import from_vectors, poisson
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.symmetric import both_orders, fold
from privloss.losses.table.table import Table

SAMPLE = "Poisson sample of a pair: (1-q) Q + q P against Q, both directions (Zhu, Dong, Wang 2022, Thm. 11)"
REVEALED_LOSS = PointLoss(float("-inf"), 0.0, 1.0)  # the output gives the record away


@dataclass(frozen=True)
class Distances:
    """How far one record moves a noisy sum, in units of the noise: when it joins (None: not known), when it is replaced
    by another."""

    add: float | None
    replace: float


@dataclass(frozen=True)
class Step:
    """One use on the worst neighbours."""

    theorems: tuple[str, ...]  # why the pair is worst
    assumptions: tuple[str, ...]
    loss: PrivacyLoss | None = None  # a dominating pair, P against Q, of one use; None: nothing is lost
    mirrored: bool = False  # the pair is its own mirror image, so neighbours may swap roles at no cost
    # Pairs that some instance of the mechanism surely has; empty: `loss` is one of them. Several are tried in turn.
    attained: tuple[PrivacyLoss | None, ...] = ()
    attained_pointwise: bool = False  # delta(eps) of one use is attained at every eps, by different instances
    span: float | None = None  # all that is known of a choice is that its loss has this range, and any such may be made
    curve: RenyiCurve | None = None  # what is known only through Renyi divergences, and
    stand_in: PrivacyLoss | None = None  # a pair that satisfies that curve
    without_sampler: Step | None = None  # a second bound from above, where a sampler's pair is only a bound
    # On a sample; None: no pair is proven.
    poisson: Callable[[float], Step] | None = None  # every record enters with this probability
    fixed_size: Callable[[float, str], Step] | None = None  # batches of fixed size, in words; or, from the pair itself,
    symmetric: Callable[[float], Step] | None = None  # one pair for both orders, of records that replace others
    distances: Distances | None = None  # for Gaussian noise on a sum: what all other samplers need
    # Beside other releases on one sample: its pair is N(normal) against N(0), or has so many outcomes above and below
    # (None: nothing is claimed).
    normal: float | None = None
    finite: Callable[[int], tuple[Table, Table | None]] | None = None
    few_hits: Callable[[int], Step | None] | None = None  # another pair above, and below, where so few uses ask for it
    contributions_known: bool = False  # the bound on one record's contribution is known, not only a sensitivity
    null_adds_nothing: bool = False  # a zeroed-out record leaves the output as if it were absent

    @classmethod
    def of_table(cls, table: Table, theorem: str, assumption: str, mirrored: bool, below: Table | None = None) -> Step:
        """A step with finitely many losses, which can be sampled; `below` is attained where the table only bounds."""
        if table.delta >= 1:
            loss: PrivacyLoss = REVEALED_LOSS
        else:
            loss = TableLoss.one(table)
        attained = () if below is None else (TableLoss.one(below),)
        step = cls((theorem,), (assumption,), loss, mirrored or table.delta >= 1, attained)

        def on_sample(rate: float) -> Step:
            lower = () if below is None else (TableLoss.one(poisson(below, rate)),)
            return cls((), (), TableLoss.one(poisson(table, rate)), attained=lower)

        def on_replaced(rate: float) -> Step:
            if table.missing is not None:
                raise NoPair
            lower = TableLoss.one(poisson(table if below is None else below, rate))
            even = table if mirrored else both_orders(TableLoss.one(table))
            return cls((), (), TableLoss.one(fold(poisson(even, rate))), mirrored=True, attained=(lower,))

        if table.missing is not None:
            return replace(step, poisson=on_sample, symmetric=on_replaced)
        rows = (table, table if below is None else below)
        return replace(step, poisson=on_sample, symmetric=on_replaced, finite=lambda most: rows)

    @classmethod
    def from_vectors(cls, p: Sequence[float], q: Sequence[float], *, theorem: str, assumption: str) -> Step:
        """A step whose output has the probabilities `p` with the record and `q` without it."""
        pairs = list(zip(p, q, strict=True))
        mirrored = sorted(pairs) == sorted((b, a) for a, b in pairs)
        return cls.of_table(from_vectors(p, q), theorem, assumption, mirrored)

    def on_poisson(self, rate: float) -> Step:
        """`poisson`, which must be there."""
        if self.poisson is None:
            raise NoPair
        return self.poisson(rate)

    def used(self, count: int) -> Step:
        """The step as a plan with so many uses of it asks it."""
        found = None if self.few_hits is None else self.few_hits(count)
        return self if found is None else replace(self, loss=found.loss, attained=found.attained)

    def times(self, count: int) -> Step:
        """`count` uses as one step: for samplers of whole epochs."""
        if count == 1:
            return self
        return replace(
            self,
            loss=_times(self.loss, count),
            attained=tuple(_times(a, count) for a in self.attained),
            attained_pointwise=False,
            span=None,
            curve=None if self.curve is None else self.curve.times(count),
            stand_in=_times(self.stand_in, count),
            without_sampler=None if self.without_sampler is None else self.without_sampler.times(count),
            poisson=None,
            fixed_size=None,
            symmetric=None,
            distances=None,
            normal=None,
            finite=None,
            few_hits=None,
        )

    def saying(self, theorem: str, assumption: str) -> Step:
        """The same step with other reasons."""
        return replace(self, theorems=(theorem,), assumptions=(assumption,))

    def assuming(self, *assumptions: str) -> Step:
        """The same step with more assumptions."""
        return replace(self, assumptions=(*self.assumptions, *assumptions))


class NoPair(Exception):
    """Internal: a step has no proven pair on this sample; the sampler says so in a sentence."""


def _times(loss: PrivacyLoss | None, count: int) -> PrivacyLoss | None:
    return None if loss is None else loss.times(count)
