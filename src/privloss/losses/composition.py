"""From steps to the worst neighbours of a whole plan: the only place that sees several steps.

Dominating pairs compose: if (P_i, Q_i) dominates step i for all inputs, the product dominates the adaptive composition
(Zhu, Dong, Wang 2022, Thm. 10).

*Roles.* Where neighbours may be named in either order at every step anew (a replaced record has no "with" and
"without"), one order for all steps is not enough, not even for a single uneven pair among even ones: which order is
worse may depend on what the other steps have shown. So in a plan of several uses every pair that is not declared to be
its own mirror image is replaced by the pair with the larger of both orders' profiles (`table/symmetric.py`), and the
lower end is the best of a few fixed choices of orders, each of which some neighbours attain.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.adaptive_range import AdaptiveRange
from privloss.losses.composed import ComposedLoss
from privloss.losses.curve import RenyiCurve
from privloss.losses.ranges import Ranges
from privloss.losses.step import Step
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.symmetric import both_orders

_ALL_SPLITS = 6  # uses of one uneven pair up to which every division between the two orders is tried
_MOST_CHOICES = 27

Use = tuple[Step, int]


@dataclass(frozen=True)
class WorstNeighbours:
    """What a plan can do to one person, under one adjacency."""

    adjacency: str
    loss: ComposedLoss  # direction "P against Q"; everything with an explicit pair
    curve: RenyiCurve  # what is known only through Renyi divergences
    stand_in: ComposedLoss  # `loss` plus a mechanism that satisfies the curve: for lower ends
    attained: tuple[ComposedLoss, ...]  # where `loss` itself may not be attained: members that are, for lower ends
    attained_pointwise: bool  # delta(eps) of `loss` is attained all the same, at every eps by another member
    unsampled: ComposedLoss | None  # a second bound from above: the same without the samplers of which bounds are known
    theorems: tuple[str, ...]
    assumptions: tuple[str, ...]
    adaptive: AdaptiveRange | None = None  # where every step is a choice of the same range: the best adversary
    ranges: Ranges | None = None  # where some are, of whatever range


def compose(uses: Sequence[Use], adjacency: str, roles_swap: bool) -> WorstNeighbours:
    """The steps of a plan with their counts; `roles_swap` if neighbours have no fixed order."""
    return _compose([(step.used(n), n) for step, n in uses], adjacency, roles_swap)


def _compose(uses: Sequence[Use], adjacency: str, roles_swap: bool) -> WorstNeighbours:
    several = sum(n for _, n in uses) > 1
    uneven = _uneven(uses) if roles_swap and several else []
    above = [(_mirrored(step), n) if i in uneven else (step, n) for i, (step, n) in enumerate(uses)]
    curve = RenyiCurve.merged([step.curve.times(n) for step, n in uses if step.curve is not None])
    members = _members(uses, uneven)
    bounded = bool(uneven) or any(step.attained for step, _ in uses)
    return WorstNeighbours(
        adjacency=adjacency,
        loss=_composed(above),
        curve=curve,
        stand_in=members[0],
        attained=members if bounded else (),
        attained_pointwise=not several and all(step.attained_pointwise for step, _ in uses),
        unsampled=_without_samplers(above) if curve.empty else None,
        adaptive=_adaptive(uses),
        ranges=_ranges(uses, above, uneven),
        theorems=_unique(step.theorems for step, _ in above),
        assumptions=_unique(step.assumptions for step, _ in above),
    )


def _adaptive(uses: Sequence[Use]) -> AdaptiveRange | None:
    spans, count = {step.span for step, _ in uses}, sum(n for _, n in uses)
    span = spans.pop() if len(spans) == 1 else None
    return None if span is None or count < 2 else AdaptiveRange(span, count)


def _ranges(uses: Sequence[Use], above: Sequence[Use], uneven: Sequence[int]) -> Ranges | None:
    """What is known of several uses, some of them choices; nothing beside boxes of which only a curve is known."""
    counts: dict[float, int] = {}
    for step, n in uses:
        if step.span is not None:
            counts[step.span] = counts.get(step.span, 0) + n
    several = sum(n for _, n in uses) > 1
    if not counts or not several or any(step.curve is not None and not step.curve.empty for step, _ in uses):
        return None
    spans = sorted(counts.items(), reverse=True)

    def attained(others: list[int]) -> tuple[ComposedLoss, ...]:
        return _members([uses[i] for i in others], [k for k, i in enumerate(others) if i in uneven])

    members = attained([i for i, (step, _) in enumerate(uses) if step.span != spans[0][0]])
    without = attained([i for i, (step, _) in enumerate(uses) if step.span is None])
    return Ranges(tuple(spans), _composed((step, n) for step, n in above if step.span is None), members, without)


def _uneven(uses: Sequence[Use]) -> list[int]:
    """Which steps do not declare that they are their own mirror images."""
    return [i for i, (step, _) in enumerate(uses) if not step.mirrored]


def _composed(uses: Iterable[Use]) -> ComposedLoss:
    return ComposedLoss.of(step.loss.times(n) for step, n in uses if step.loss is not None)


def _without_samplers(uses: Sequence[Use]) -> ComposedLoss | None:
    """A second bound from above, if some sampler has one."""
    if all(step.without_sampler is None for step, _ in uses):
        return None
    return _composed((step.without_sampler or step, n) for step, n in uses)


def _mirrored(step: Step) -> Step:
    """The step with a pair that dominates both orders of the neighbours."""
    if step.loss is None:
        return step
    try:
        even = TableLoss.one(both_orders(step.loss))
    except ValueError:
        raise Unsupported(
            f"{step.assumptions[0]}: neighbours may swap roles from step to step, so several uses need a pair that is "
            "its own mirror image or has a closed profile."
        ) from None
    text = "neighbours may swap roles: the pair with the larger of both orders' profiles (docs/design.md)"
    return replace(step, loss=even, mirrored=True, theorems=(*step.theorems, text))


def _members(uses: Sequence[Use], uneven: Sequence[int]) -> tuple[ComposedLoss, ...]:
    """Compositions that some neighbours attain: the i-th instance of every step, in a few orders of uneven pairs."""
    rounds = max((len(step.attained) for step, _ in uses), default=0)
    found = []
    for i in range(max(rounds, 1)):
        for forward in _choices([uses[j][1] for j in uneven]):
            flipped = {j: uses[j][1] - k for j, k in zip(uneven, forward, strict=True)}
            found.append(ComposedLoss.of(_instances(uses, i, flipped)))
    return tuple(found)


def _instances(uses: Sequence[Use], i: int, flipped: dict[int, int]) -> Iterable[PrivacyLoss]:
    for j, (step, n) in enumerate(uses):
        own = step.attained[i % len(step.attained)] if step.attained else step.loss
        back = flipped.get(j, 0)
        if own is not None and n > back:
            yield own.times(n - back)
        if own is not None and back:
            yield own.reversed().times(back)
        if step.stand_in is not None:
            yield step.stand_in.times(n)


def _choices(counts: Sequence[int]) -> list[tuple[int, ...]]:
    """How many uses of each uneven pair keep their order: all, half, none; or every division, if they are few. Both
    directions of the whole are read anyway, so the first pair keeps at least half."""
    if not counts:
        return [()]
    each = [
        list(range(n, -1, -1)) if len(counts) == 1 and n <= _ALL_SPLITS else sorted({n, (n + 1) // 2, 0}, reverse=True)
        for n in counts
    ]
    each[0] = [k for k in each[0] if 2 * k >= counts[0]]
    return list(itertools.islice(itertools.product(*each), _MOST_CHOICES))


def _unique(texts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(texts)))
