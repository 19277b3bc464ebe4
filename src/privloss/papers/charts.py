"""Which charts there are: delta over epsilon, the trade-off of attacks, epsilon by steps, accountants side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privloss.answers import exact
from privloss.errors import InvalidInput, Unsupported
from privloss.mechanisms.base import Plan
from privloss.numerics import check
from privloss.numerics.bound import Bound
from privloss.papers.chart import DELTA, EPSILON, Chart, Quantity
from privloss.theorems.compare import compare

_FPR = Quantity("false positive rate", "false positive rate")
_FNR = Quantity("false negative rate", "false negative rate")
_STEPS, _BOUND = Quantity("steps", "steps"), Quantity("bound", "bound")
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
        points = np.linspace(0.0, furthest, _MANY).tolist()
    found = tuple(plan.delta(points))
    drawn_in_logs = all(b.upper > 0 for b in found)
    title = f"Privacy profile, {plan.adjacency}"
    return Chart(title, EPSILON, DELTA, tuple(points), found, log_y=drawn_in_logs)


def _tradeoff(plan: Plan, delta: Any, points: Sequence[float] | None) -> Chart:
    # close to both ends, where the curve bends
    places = list(points) if points is not None else (0.5 - 0.5 * np.cos(np.linspace(0, np.pi, 2 * _MANY))).tolist()
    found = tuple(plan.tradeoff(places, tolerance=1e-6))
    title = f"Errors of any attack, {plan.adjacency}"
    return Chart(title, _FPR, _FNR, tuple(places), found, quoted="lower", attacks=True)


def _steps(plan: Plan, delta: Any, points: Sequence[float] | None) -> Chart:
    if len(plan.steps) != 1:
        raise Unsupported(f"{plan!r}: epsilon by steps is drawn for one kind of step; give a plan of one.")
    ((step, most),) = plan.steps
    if points is None:
        points = sorted({int(n) for n in np.geomspace(1, most, _MANY).round()})
    counts = tuple(check.count("points", n) for n in points)
    found = tuple(exact.one_epsilon(Plan(((step, n),), plan.adjacency), delta) for n in counts)
    title = f"{step!r} at delta = {delta:g}, {plan.adjacency}"
    return Chart(title, _STEPS, EPSILON, counts, found, log_x=counts[-1] > 50 * counts[0])


def _accountants(plan: Plan, delta: Any, points: Sequence[float] | None) -> Chart:
    if points is not None:
        raise InvalidInput(f"points = {points!r}: bounds have no axis to choose them on.")
    rows = compare(plan, delta, noise=False)
    exact_one = exact.one_epsilon(plan, delta)
    found = tuple(Bound(min(exact_one.lower, row.epsilon), row.epsilon, row.theorem) for row in rows)
    title = f"Bounds on epsilon at delta = {delta:g}, {plan.adjacency}"
    return Chart(title, _BOUND, EPSILON, tuple(row.bound for row in rows), found)


CHARTS: dict[str, Callable[[Plan, Any, Any], Chart]] = {
    "delta": _profile,
    "tradeoff": _tradeoff,
    "steps": _steps,
    "accountants": _accountants,
}
_AT_DELTA = {"steps", "accountants"}
