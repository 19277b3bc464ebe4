"""Which charts there are: delta over epsilon, the trade-off of attacks, epsilon by steps, accountants side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privloss.answers import exact
from privloss.errors import InvalidInput, Unsupported
from privloss.mechanisms.base import Plan
from privloss.mechanisms.kinds import SCHEMES
from privloss.numerics import check
from privloss.numerics.bound import Bound
from privloss.papers.chart import DELTA, EPSILON, Chart, Quantity
from privloss.theorems.compare import compare

_FPR = Quantity("false positive rate", "false positive rate")
_FNR = Quantity("false negative rate", "false negative rate")
_STEPS, _EPOCHS, _BOUND = Quantity("steps", "steps"), Quantity("epochs", "epochs"), Quantity("bound", "bound")
_MANY = 40  # points, if none are given
_LEAST_DELTA = 1e-9  # down to which delta(epsilon) is drawn, if no points are given


def chart(
    plan: Plan, kind: str, *, delta: float | None = None, points: Sequence[float] | None = None, adjacency: str | None
) -> Chart:
    """The chart of that kind; `points` are the places on its axis."""
    check.choice("kind", kind, tuple(CHARTS))
    if (delta is None) == (kind in _AT_DELTA):
        raise InvalidInput(f"delta = {delta!r}: goes with {' and '.join(sorted(_AT_DELTA))}, and with nothing else.")
    if points is not None and not len(points):
        raise InvalidInput(f"points = {points!r}: must not be empty.")
    return CHARTS[kind](plan if adjacency is None else plan.under(adjacency), delta, points)


def _profile(plan: Plan, delta: Any, points: Sequence[float] | None) -> Chart:
    if points is None:
        furthest = exact.one_epsilon(plan, _LEAST_DELTA).upper
        if not 0 < furthest < np.inf:
            raise Unsupported(
                f"plan: its epsilon at delta = {_LEAST_DELTA:g} is {furthest:g}; give the points to draw."
            )
        points = _round_numbers(furthest)
    found = tuple(plan.delta(points))
    drawn_in_logs = all(b.upper > 0 for b in found)
    title = f"Delta over epsilon, {plan.adjacency}"
    return Chart(title, EPSILON, DELTA, tuple(points), found, log_y=drawn_in_logs, about=_said(plan))


def _tradeoff(plan: Plan, delta: Any, points: Sequence[float] | None) -> Chart:
    places = _rates(plan) if points is None else list(points)
    found = tuple(plan.tradeoff(places, tolerance=1e-6))
    title = f"Errors of any attack, {plan.adjacency}"
    return Chart(title, _FPR, _FNR, tuple(places), found, quoted="lower", attacks=True, about=_said(plan))


def _rates(plan: Plan) -> list[float]:
    """Close to both ends, where the curve bends, and where both errors are the same: there pure promises have kinks."""
    bent = 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, 2 * _MANY))
    same = (1 - plan.delta(0.0).upper) / 2
    return sorted({round(float(rate), 4) for rate in (*bent, same)})


def _steps(plan: Plan, delta: Any, points: Sequence[float] | None) -> Chart:
    if len(plan.steps) != 1:
        raise Unsupported(f"{plan!r}: epsilon by steps is drawn for one kind of step; give a plan of one.")
    ((step, most),) = plan.steps
    if points is None:
        points = sorted({int(n) for n in np.geomspace(1, most, _MANY).round()})
    counts = tuple(check.count("points", n) for n in points)
    found = tuple(exact.one_epsilon(Plan(((step, n),), plan.adjacency), delta) for n in counts)
    by_epoch = step.kind in SCHEMES and SCHEMES[step.kind].epochs
    axis = _EPOCHS if by_epoch else _STEPS
    title = f"Epsilon by {axis.name} at delta = {delta:g}, {plan.adjacency}"
    return Chart(title, axis, EPSILON, counts, found, log_x=max(counts) > 50 * min(counts), about=repr(step))


def _accountants(plan: Plan, delta: Any, points: Sequence[float] | None) -> Chart:
    if points is not None:
        raise InvalidInput(f"points = {points!r}: bounds have no axis to choose them on.")
    rows = compare(plan, delta, noise=False)
    exact_one = exact.one_epsilon(plan, delta)
    found = tuple(Bound(min(exact_one.lower, row.epsilon), row.epsilon, row.theorem) for row in rows)
    title = f"Bounds on epsilon at delta = {delta:g}, {plan.adjacency}"
    return Chart(title, _BOUND, EPSILON, tuple(row.bound for row in rows), found, about=_said(plan))


def _said(plan: Plan) -> str:
    """The plan without its adjacency, which stands in the titles."""
    return " + ".join(f"{n} * {step!r}" if n > 1 else repr(step) for step, n in plan.steps)


def _round_numbers(furthest: float) -> list[float]:
    """From 0 up, a step of 1, 2 or 5 units of a decimal place apart."""
    least = furthest / _MANY
    unit = 10.0 ** np.floor(np.log10(least))
    step = next(k * unit for k in (1, 2, 5, 10) if k * unit >= least)
    return [float(f"{i * step:.6g}") for i in range(int(furthest / step) + 1)]


CHARTS: dict[str, Callable[[Plan, Any, Any], Chart]] = {
    "delta": _profile,
    "tradeoff": _tradeoff,
    "steps": _steps,
    "accountants": _accountants,
}
_AT_DELTA = {"steps", "accountants"}
