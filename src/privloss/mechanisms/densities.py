"""Steps whose loss has a density: one helper for the mechanisms that share this shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from privloss.errors import Unsupported
from privloss.losses.density.exponentials import Exponentials
from privloss.losses.step import NoPair, Step
from privloss.losses.table.build import poisson
from privloss.losses.table.coarse import hull_above, places_of
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.table import Table

_LARGEST_RANGE = 500.0  # losses beyond which a density would need too many nodes


def within_range(what: str, value: float) -> float:
    """Refuse losses that no quadrature can follow."""
    if value > _LARGEST_RANGE:
        raise Unsupported(f"sensitivity / scale = {value:g}: {what} is supported up to {_LARGEST_RANGE:g}.")
    return value


def on_samples(step: Step, pair: Callable[[], Exponentials], below: Sequence[Table] = ()) -> Step:
    """The step with what becomes of it on a sample; `below` are attained tables where the pair only bounds."""

    def attained(rate: float) -> tuple[TableLoss, ...]:
        return tuple(TableLoss.one(poisson(t, rate)) for t in below)

    def on_poisson(rate: float) -> Step:
        return Step((), (), TableLoss.one(pair().poisson(rate)), attained=attained(rate))

    def on_replaced(rate: float) -> Step:
        made = pair()
        lower = attained(rate) or (TableLoss.one(made.poisson(rate)),)
        return Step((), (), TableLoss.one(made.poisson(rate, folded=True)), mirrored=True, attained=lower)

    def finite(most: int) -> tuple[Table, Table | None]:
        made = pair()
        above = None if step.loss is None else hull_above(step.loss, places_of(made.top, most // 2))
        if above is None:
            raise NoPair
        return above, below[0] if below else made.binned(most)

    return replace(step, poisson=on_poisson, symmetric=on_replaced, finite=finite)
