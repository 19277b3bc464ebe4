"""The exact accountant: epsilon(delta) and delta(epsilon) of a plan.

Routes, tried in order, each named in the answer's `method`:

1. a closed form (one release of one kind; any number of Gaussians);
2. the contour integral of K (`numerics.contour`), on the lattice of the losses where they have one, otherwise on the
   whole line, blurred by a tiny Gaussian if the line does not decay;
3. Renyi moments for boxes of which only a curve is known;
4. as a last resort the moments bound above and a single step below: wide, never wrong, never slow.

Both directions are covered: the answer is the larger of P against Q and Q against P.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from privloss.answers import moments
from privloss.answers.adaptive import narrowed, read_off
from privloss.answers.curves import FEW, Drawn, Glance, drawn, many_deltas, many_epsilons
from privloss.answers.infinite import finite_level, with_infinite
from privloss.answers.mirror import mirrored, mirrored_upper
from privloss.answers.pair import (
    CONTOUR,
    SPLIT,
    TRIVIAL,
    directions,
    exact_delta,
    exact_epsilon,
    one_direction,
)
from privloss.errors import InvalidInput
from privloss.losses.closed.range_curve import RangeCurve, range_curve
from privloss.losses.composed import ComposedLoss
from privloss.losses.composition import WorstNeighbours
from privloss.mechanisms.base import Plan
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics import check
from privloss.numerics.bound import Bound, Bounds, exactly, largest
from privloss.numerics.contour.found import DeltaRead
from privloss.numerics.contour.many import Readable, Silent
from privloss.numerics.contour.solve import delta_bounds
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.floats import Real
from privloss.numerics.work import DEFAULT_WORK, limited, spent

_WIDER, _ROUNDING = 100.0, 1e-9  # an answer wider than both is said to be wide
_NEAR = 1e-4  # and from which on another bound is worth its time
_POOR = 1e-3  # relative gap of theory from which on digits are of no use
_ROUGHLY = 1e-6  # tolerance of a lower end that may be far from the upper one, or of a delta near what is enough
_SHARE = 0.25  # of what is enough that the width of one delta may be


def epsilon(
    plan: Plan, delta: Any, *, adjacency: str | None = None, tolerance: float = 1e-10, work: float | None = None
) -> Bound | Bounds:
    """The least eps such that the plan is (eps, delta)-DP."""
    check.number("tolerance", tolerance, low=1e-15, high=0.1)
    work = DEFAULT_WORK if work is None else check.number("work", work, low=1)
    worst = worst_neighbours(plan, adjacency)
    one = lambda d: _within(work, tolerance, lambda: _epsilon(worst, d, tolerance))  # noqa: E731
    return each("delta", delta, 1.0, one, lambda deltas: _epsilons(worst, deltas, tolerance, work, one))


def delta(
    plan: Plan, epsilon: Any, *, adjacency: str | None = None, tolerance: float = 1e-10, work: float | None = None
) -> Bound | Bounds:
    """The least delta such that the plan is (epsilon, delta)-DP."""
    check.number("tolerance", tolerance, low=1e-15, high=0.1)
    work = DEFAULT_WORK if work is None else check.number("work", work, low=1)
    worst = worst_neighbours(plan, adjacency)
    curve = DeltaCurve(worst, tolerance, work)
    return each("epsilon", epsilon, math.inf, curve.one, curve.read)


def one_epsilon(plan: Plan, delta: float, *, adjacency: str | None = None, tolerance: float = 1e-10) -> Bound:
    """`epsilon` at one number."""
    found = epsilon(plan, check.number("delta", delta, low=0, high=1), adjacency=adjacency, tolerance=tolerance)
    return found if isinstance(found, Bound) else found[0]


def one_delta(
    plan: Plan, epsilon: float, *, adjacency: str | None = None, tolerance: float = 1e-10, work: float | None = None
) -> Bound:
    """`delta` at one number."""
    found = delta(plan, check.number("epsilon", epsilon, low=0), adjacency=adjacency, tolerance=tolerance, work=work)
    return found if isinstance(found, Bound) else found[0]


def _within(work: float, tolerance: float, ask: Callable[[], Bound]) -> Bound:
    """One answer within a limit of work; where that was reached, the answer says so."""
    with limited(work):
        answer, reached = ask(), spent()
    answer = _warn_if_wide(answer, tolerance)
    if not reached:
        return answer
    text = f"the limit of work ({work:.0e} evaluations) was reached: give more with work=... for a narrower interval"
    return Bound(answer.lower, answer.upper, answer.method, (*answer.notes, text))


def _warn_if_wide(answer: Bound, tolerance: float) -> Bound:
    """Say so if the limits of nodes and memory left the interval wider than was asked for."""
    width = answer.relative_width
    if not max(_WIDER * tolerance, _ROUNDING) < width < math.inf:
        return answer
    text = f"warning: relative width {width:.1e} where {tolerance:.1e} was asked for (limit of work or of theory)"
    return Bound(answer.lower, answer.upper, answer.method, (*answer.notes, text))


def each(
    name: str,
    value: Any,
    high: float,
    answer: Callable[[float], Bound],
    many: Callable[[list[float]], list[Bound]] | None = None,
) -> Bound | Bounds:
    """One answer, or one for every entry of an array; everything is checked before anything is computed. `many` answers
    an array at once, where there is a quicker way."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        if isinstance(value, np.ndarray):  # zero-dimensional
            value = value.item()
        return answer(check.number(name, value, low=0, high=high))
    values = list(value)
    if not values:
        raise InvalidInput(f"{name} = {value!r}: must not be empty.")
    numbers = [check.number(f"{name}[{i}]", v, low=0, high=high) for i, v in enumerate(values)]
    if many is None:
        return Bounds([answer(v) for v in numbers])
    different = list(dict.fromkeys(numbers))  # the same question has the same answer
    found = dict(zip(different, many(different), strict=True))
    return Bounds([found[v] for v in numbers])


# -- epsilon -----------------------------------------------------------------------------------------------------------


def _epsilon(worst: WorstNeighbours, delta: float, tolerance: float) -> Bound:
    if delta == 1 or (not worst.loss.parts and worst.curve.empty):
        return exactly(0.0, TRIVIAL)
    if worst.curve.empty:
        found = _between(worst, lambda loss, width: exact_epsilon(loss, delta, width), tolerance)
        return narrowed(found, None if worst.adaptive is None else worst.adaptive.epsilon(delta, found.lower))
    return moments.epsilon(worst, delta, lambda loss: exact_epsilon(loss, delta, tolerance))


def _may_share(worst: WorstNeighbours) -> bool:
    """Whether one pair is the worst one, and is read on lines."""
    loss, attained = worst.loss, not worst.attained or worst.attained_pointwise
    on_lines = bool(loss.parts) and loss.lattice is None and not loss.solved_by_closed_form
    return attained and worst.curve.empty and on_lines


def _epsilons(
    worst: WorstNeighbours, deltas: list[float], tolerance: float, work: float, one: Callable[[float], Bound]
) -> list[Bound]:
    """The same at many deltas, on shared lines where the pair is the worst one and its losses are not on a lattice."""
    if len(deltas) > FEW and worst.adaptive is not None:
        return _on_one_grid(worst, deltas, RangeCurve.epsilons, _epsilon, tolerance, work)
    if len(deltas) > FEW and _two_sided(worst):

        def many(end: WorstNeighbours) -> list[Bound]:
            alone = lambda d: _within(work, tolerance, lambda: _epsilon(end, d, tolerance))  # noqa: E731
            return _epsilons(end, deltas, tolerance, work, alone)

        return _both_ends(map(many, _above(worst)), map(many, _below(worst)), tolerance)
    if len(deltas) <= FEW or not _may_share(worst):
        return [one(d) for d in deltas]
    both = list(directions(worst.loss))
    glances: dict[int, Glance] = {}

    def ask(delta: float, reach: float) -> tuple[Bound, list[Drawn | Glance | None]]:
        levels = [finite_level(direction, delta) for direction in both]
        if delta in (0, 1) or any(level is None or math.isinf(level[0]) for level in levels):
            return one(delta), [None]
        answers: list[Bound] = []
        lines: list[Drawn | Glance | None] = []
        with limited(work):
            for k, (direction, level) in enumerate((d, lv) for d, lv in zip(both, levels, strict=True) if lv):
                if answers and 0 < answers[0].lower < math.inf:
                    glances[k] = glance = glances.get(k) or Glance(direction, answers[0].lower)
                    if glance.at_most(np.array([answers[0].lower]), np.array([level[0]]))[0]:
                        lines.append(glance)
                        continue
                answer, solved = one_direction(direction, level, tolerance, reach)
                answers.append(answer)
                lines.append(drawn(solved, answer.upper))
            reached = spent()
        return (one(delta), [None]) if reached else (_warn_if_wide(largest(answers), tolerance), lines)

    return many_epsilons(deltas, tolerance, ask, lambda k, delta: finite_level(both[k], delta), one)


def _two_sided(worst: WorstNeighbours) -> bool:
    """Whether the ends are those of different pairs."""
    return bool(worst.attained) and not worst.attained_pointwise and worst.curve.empty


def _above(worst: WorstNeighbours) -> list[WorstNeighbours]:
    """Every pair that dominates the plan, as a plan of its own."""
    return [_alone(worst, loss) for loss in (worst.loss, *(loss for loss, _, _ in _second_bounds(worst)))]


def _below(worst: WorstNeighbours) -> list[WorstNeighbours]:
    """Every pair that is attained, likewise."""
    return [_alone(worst, loss) for loss in _attained(worst)]


def _alone(worst: WorstNeighbours, loss: ComposedLoss) -> WorstNeighbours:
    return replace(worst, loss=loss, stand_in=loss, attained=(), unsampled=None, adaptive=None, ranges=None)


def _attained(worst: WorstNeighbours) -> tuple[ComposedLoss, ...]:
    return (() if worst.ranges is None else worst.ranges.below()) or worst.attained


def _both_ends(above: Iterable[list[Bound]], below: Iterable[list[Bound]], tolerance: float) -> list[Bound]:
    """The least upper and the largest lower end of the answers to each question."""
    found = []
    for tops, lows in zip(zip(*above, strict=True), zip(*below, strict=True), strict=True):
        top, lower = min(tops, key=lambda b: b.upper), max(b.lower for b in lows)
        notes = tuple(note for note in top.notes if not note.startswith("warning"))
        text = "lower end: a mechanism that attains it"
        found.append(_warn_if_wide(Bound(lower, top.upper, top.method, (*notes, text)), tolerance))
    return found


def _between(worst: WorstNeighbours, ask: Callable[[ComposedLoss, float], Bound], tolerance: float) -> Bound:
    """Where the dominating pair may not be attained, the lower end is that of mechanisms that are; and the upper end is
    never above that of the same plan without its samplers."""
    found = ask(worst.loss, tolerance)
    if not worst.attained or worst.attained_pointwise:
        return found
    # as precise as the gap deserves
    attained = _attained(worst)
    lower = max(ask(loss, max(tolerance, _ROUGHLY)).lower for loss in attained)
    if tolerance < _ROUGHLY and lower > (1 - 100 * _ROUGHLY) * found.upper:
        lower = max(lower, *(ask(loss, tolerance).lower for loss in attained))
    upper, notes = found.upper, (*found.notes, "lower end: a mechanism that attains it")
    for second, note, gap in _second_bounds(worst):
        if lower <= (1 - gap) * upper:
            again = ask(second, tolerance if lower > (1 - _POOR) * upper else max(tolerance, _ROUGHLY)).upper
            upper, notes = (again, (*notes, note)) if again < upper else (upper, notes)
    return Bound(lower, upper, found.method, notes)  # raises if they contradict each other, which would be a bug


def _second_bounds(worst: WorstNeighbours) -> Iterator[tuple[ComposedLoss, str, float]]:
    """Other pairs that dominate the plan, what is said of them, and the gap from which on they are worth their time."""
    if worst.unsampled is not None:
        yield worst.unsampled, "upper end: the second bound, what was sampled shown", 0.0
    if worst.ranges is not None:
        for loss in worst.ranges.above():
            yield loss, "upper end: all choices of one range as one block", _NEAR


def _on_one_grid(
    worst: WorstNeighbours,
    values: list[float],
    read: Callable[[RangeCurve, Real], tuple[Real, Real]],
    ask: Callable[[WorstNeighbours, float, float], Bound],
    tolerance: float,
    work: float,
    enough: float = 0.0,
) -> list[Bound]:
    """Many questions about choices of one range, on a grid; each has one of its own where that is too wide. If some
    width is enough, one far below the largest is."""
    curve = None if worst.adaptive is None else range_curve(worst.adaptive)
    if curve is None:
        return [_within(work, tolerance, partial(ask, worst, v, tolerance)) for v in values]
    plain = replace(worst, adaptive=None) if enough > 0 else worst
    enough = max(enough, _SHARE * curve.widest) if enough > 0 else 0.0
    ends = zip(*(side.tolist() for side in read(curve, np.array(values))), strict=True)
    asked = [(pair, enough, partial(ask, plain, v, tolerance)) for v, pair in zip(values, ends, strict=True)]
    return [_within(work, tolerance, partial(read_off, *each)) for each in asked]


# -- delta -------------------------------------------------------------------------------------------------------------


def _delta(worst: WorstNeighbours, eps: float, tolerance: float) -> Bound:
    if not worst.loss.parts and worst.curve.empty:
        return exactly(0.0, TRIVIAL)
    if worst.curve.empty:
        found = _between(worst, lambda loss, width: exact_delta(loss, eps, width), tolerance)
        return narrowed(found, None if worst.adaptive is None else worst.adaptive.delta(eps))
    return moments.delta(worst, eps, lambda loss: exact_delta(loss, eps, tolerance))


class DeltaCurve:
    """delta(epsilon) of a plan, asked again and again: lines drawn for one question serve the next. An interval as
    narrow as `enough` is not sharpened further."""

    def __init__(
        self, worst: WorstNeighbours, tolerance: float = 1e-10, work: float = DEFAULT_WORK, enough: float = 0.0
    ) -> None:
        self.worst, self.tolerance, self.work, self.enough = worst, tolerance, work, enough
        self.directions = list(directions(worst.loss))
        self.lines: list[list[Readable]] = []
        self.ends: dict[float, tuple[list[DeltaCurve], list[DeltaCurve]]] = {}  # above and below, by tolerance
        self.end = (math.inf, 0.0)  # an eps, and delta there, from which on it is below `enough`
        loss = worst.loss
        self.shared = _may_share(worst) and loss.delta_inf < 1 and loss.hockey_stick(1.0) is None

    def one(self, eps: float) -> Bound:
        return _within(self.work, self.tolerance, lambda: _delta(self.worst, eps, self.tolerance))

    def _between(self, values: list[float], tolerance: float) -> list[Bound]:
        """Off curves of the pairs above and below, as precise as their gap deserves."""
        if tolerance not in self.ends:
            sides = _above(self.worst), _below(self.worst)
            above, below = ([DeltaCurve(end, tolerance, self.work, self.enough) for end in side] for side in sides)
            self.ends[tolerance] = above, below
        above, below = self.ends[tolerance]
        return _both_ends((c.read(values) for c in above), (c.read(values) for c in below), self.tolerance)

    def read(self, values: list[float]) -> list[Bound]:
        if self.worst.adaptive is not None and (len(values) > FEW or self.enough > 0):
            return _on_one_grid(self.worst, values, RangeCurve.deltas, _delta, self.tolerance, self.work, self.enough)
        if _two_sided(self.worst) and (len(values) > FEW or self.enough > 0):
            found = self._between(values, _ROUGHLY)
            close = any(b.lower > (1 - 100 * _ROUGHLY) * b.upper for b in found if b.upper - b.lower > self.enough)
            return self._between(values, self.tolerance) if close and self.tolerance < _ROUGHLY else found
        open_ones = [eps for eps in values if eps < self.end[0]]
        whole = lambda k, logs: with_infinite(self.directions[k], logs)  # noqa: E731
        found = many_deltas(open_ones, self.tolerance, self._ask, whole, self.lines, self.enough)
        small = [(eps, d.upper) for eps, d in zip(open_ones, found, strict=True) if d.upper <= self.enough]
        answers = dict(zip(open_ones, found, strict=True))
        rest = Bound(0.0, self.end[1], CONTOUR)
        self.end = min([self.end, *small])
        return [answers.get(eps, rest) for eps in values]

    def _glance(self, direction: ComposedLoss, eps: float) -> tuple[Glance, float]:
        """Moments in one direction, and delta(eps) is at most so much by them. Where small deltas need not be known,
        moments of all but a share of what is enough."""
        some = direction if self.enough == 0 else direction.rid_of(math.log(_SHARE * self.enough))
        glance = Glance(some, eps)
        top = float(glance.log_bounds(np.array([eps]))[1][0])
        return glance, with_infinite(direction, (-math.inf, top))[1]

    def _ask(self, eps: float, reach: float) -> tuple[Bound, list[Readable | None]]:
        lines: list[Readable | None] = []
        bounds: list[Bound] = []
        if self.shared and 0 <= eps < math.inf:
            with contextlib.suppress(TooExpensive), limited(self.work):
                bounds, lines = self._read_at(eps, reach)
        if len(lines) < len(self.directions):
            return self.one(eps), [None]
        return _warn_if_wide(largest(bounds), self.tolerance), lines

    def _read_at(self, eps: float, reach: float) -> tuple[list[Bound], list[Readable | None]]:
        """delta(eps) in each direction that matters there, and what all of them can be read from elsewhere."""
        bounds: list[Bound] = []
        lines: list[Readable | None] = []
        found: DeltaRead | None = None
        for direction in self.directions:
            other, top = max((b.lower for b in bounds), default=0.0), 1.0
            if eps > 0 and max(other, self.enough) > 0:
                glance, top = self._glance(direction, eps)
                if top <= max(other, self.enough):
                    bounds += [Bound(0.0, top, CONTOUR)] if top > other or not bounds else []
                    lines.append(glance)
                    continue
            if bounds and mirrored_upper(direction, found, eps) <= bounds[0].lower:
                lines.append(mirrored(direction, found))
                continue
            # a width below a share of what is enough is enough
            tolerance = max(self.tolerance, min(_SHARE * self.enough / top, _ROUGHLY))
            found = delta_bounds(direction, eps, tolerance, reach)
            bounds.append(Bound(*with_infinite(direction, found.logs), CONTOUR if found.classes is None else SPLIT))
            lines.append(Silent(direction.largest) if eps >= direction.largest else found.readable)
            if found.mu > 0:
                break
        return bounds, lines
