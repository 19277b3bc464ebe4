"""epsilon and delta of one dominating pair, in both directions: a closed form, a lattice, a line, or one line for each
class of the largest loss; a blur or moments where nothing else is left."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import numpy as np

from privloss.answers.infinite import finite_level, with_infinite
from privloss.answers.last_resort import WIDE, wide_delta, wide_epsilon
from privloss.answers.mirror import mirrored_upper
from privloss.answers.on_grid import GRID, delta_on_grid, enough, epsilon_on_grid
from privloss.losses.composed import ComposedLoss
from privloss.numerics.bound import Bound, exactly, intersection, largest
from privloss.numerics.contour.found import DeltaRead, Solved
from privloss.numerics.contour.reading import Reading, solved
from privloss.numerics.contour.solve import delta_bounds, epsilon_bounds, epsilon_near, surely_at_most
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.solve import decreasing_root
from privloss.numerics.work import limited

CLOSED = "closed form"
LATTICE = "exact privacy loss (lattice contour)"
CONTOUR = "exact privacy loss (contour)"
SPLIT = "exact privacy loss (contour, split by the largest loss)"
APART = "exact privacy loss (contour, outcome by outcome)"
BLURRED = "exact privacy loss (blurred contour)"
TRIVIAL = "definition"
BRACKETS = "between two pairs with finitely many losses"
PINSKER = "total variation bounded through the mean loss (Pinsker)"
_GOOD = 1e-9  # relative width from which a closed form needs no second opinion
_COARSE = 1e-5  # tolerance from which a short blurred line is better than a long sum
_NOTHING = 1e-12  # an epsilon that is not worth sharpening
_BETWEEN = 1e-8  # tolerance of lines of tables between which a loss lies
_DEEP = 60.0  # -log of delta, if it is not known, that tables are made for
_SHORT_TRY, _TRY_BY_CLASSES = 1e8, 6e8  # evaluations for lines where there is another way
_COARSER = (1e-6, 1e-4, 1e-2)
_SEEN = 2e-5  # relative width that tables on both sides improve, where a density was blurred
_POOR = 1e-3  # relative width from which the last resort is asked for a second opinion


def directions(loss: ComposedLoss) -> Iterator[ComposedLoss]:
    """P against Q and, unless the same, Q against P (made late: the first has then found what both need)."""
    yield loss
    if not loss.symmetric:
        yield loss.reversed()


def exact_epsilon(loss: ComposedLoss, delta: float, tolerance: float) -> Bound:
    if not loss.parts:
        return exactly(0.0, TRIVIAL)
    answers: list[Bound] = []
    solved: Solved | None = None
    for direction in directions(loss):
        level = finite_level(direction, delta)
        if level is None:
            return exactly(math.inf, TRIVIAL, ("delta is below the mass of infinite loss",))
        if answers and direction.largest <= answers[0].lower:
            continue
        if solved is not None and mirrored_upper(direction, solved, answers[0].lower) <= delta:
            continue
        try:
            if solved is not None and surely_at_most(direction, answers[0].lower, level[0], solved.line):
                continue
        except TooExpensive:
            pass
        ends = direction.closed_epsilon(level)
        if ends is not None:
            answers.append(Bound(*ends, CLOSED))
            continue
        answer, solved = one_direction(direction, level, tolerance)
        answers.append(answer)
    return largest(answers)


def one_direction(
    loss: ComposedLoss, level: tuple[float, float], tolerance: float, reach: float = 1.0
) -> tuple[Bound, Solved | None]:
    """epsilon in one direction, at least 0, from the logs of bounds on delta - delta_inf; what was drawn for it may
    also be read from epsilon/reach to epsilon*reach."""
    if math.isinf(level[0]):
        return _at_the_mass_of_infinite_loss(loss, level, tolerance), None
    quick = _roughly(loss, level, tolerance) if tolerance >= _COARSE else epsilon_on_grid(loss, level, tolerance)
    if quick is not None and enough(loss, quick, tolerance):
        return quick, None
    closed = _closed_epsilon(loss, level) if _in_closed_form(loss, level) else None
    if closed is not None and (closed.relative_width < _GOOD or closed.upper < _NOTHING):
        return closed, None
    return _on_lines(loss, level, tolerance, reach, quick, closed)


def _on_lines(
    loss: ComposedLoss,
    level: tuple[float, float],
    tolerance: float,
    reach: float,
    quick: Bound | None,
    closed: Bound | None,
) -> tuple[Bound, Solved | None]:
    """On a line or several, cut with what is known already but was not good enough."""
    try:
        with limited(_tried(loss)):
            solved = epsilon_bounds(loss, level, tolerance, reach)
    except TooExpensive:
        return _without_lines(quick or closed, loss, level, tolerance), None
    if solved.line is None and solved.classes is None and not solved.apart:
        return exactly(0.0, PINSKER), None
    answer = _read_off(solved) if quick is None else intersection(_read_off(solved), quick)
    return _sharpened(answer, closed, loss, level, tolerance), solved


def _without_lines(known: Bound | None, loss: ComposedLoss, level: tuple[float, float], tolerance: float) -> Bound:
    if known is not None and known.relative_width <= _SEEN:
        return known
    between = _bracketed(loss, level, tolerance)
    if known is not None and between is not None:
        return intersection(known, between)
    return between or known or _last_resort(loss, level, tolerance)


def _tried(loss: ComposedLoss) -> float:
    """How much work lines may take: where tables lie on both sides only what they usually need."""
    tried = _TRY_BY_CLASSES if _may_be_split(loss) else _SHORT_TRY
    return tried if loss.may_lie_between else math.inf


def _may_be_split(loss: ComposedLoss) -> bool:
    """By the largest loss; not where that would need more nodes than there may be."""
    with contextlib.suppress(TooExpensive):
        return loss.rare is not None
    return False


def _sharpened(
    answer: Bound, closed: Bound | None, loss: ComposedLoss, level: tuple[float, float], tolerance: float
) -> Bound:
    """What was read off a line, cut with what else is known, where it is wide."""
    if closed is not None:
        lower, upper = max(answer.lower, closed.lower), min(answer.upper, closed.upper)
        answer = Bound(lower, upper, f"{CLOSED}; {answer.method}", answer.notes)
    if answer.relative_width > (_POOR if _may_be_split(loss) else _SEEN):
        between = _bracketed(loss, level, tolerance)
        if between is not None:
            return intersection(answer, between)
    if closed is not None:
        return answer
    answer = _with_wider_blurs(answer, loss, level, tolerance)
    if answer.relative_width > _POOR:
        return intersection(answer, _last_resort(loss, level, tolerance))
    return answer


def _bracketed(loss: ComposedLoss, level: tuple[float, float], tolerance: float) -> Bound | None:
    """Between two losses with finitely many values each; None where there are none, they are too far apart, or no work
    is left for them."""
    with contextlib.suppress(TooExpensive):
        pair = loss.between(level[0])
        if pair is None:
            return None
        low, high = with_infinite(loss, level)
        levels = finite_level(pair[0], high), finite_level(pair[1], low)
        if levels[1] is None:
            return None
        ends = [
            one_direction(side, own, max(tolerance, _BETWEEN))[0] if own else exactly(0.0, BRACKETS)
            for side, own in zip(pair, levels, strict=True)
        ]
        found = Bound(min(ends[0].lower, ends[1].upper), ends[1].upper, BRACKETS)
        return found if found.relative_width < _POOR else None
    return None


def _roughly(loss: ComposedLoss, level: tuple[float, float], tolerance: float) -> Bound | None:
    """A few digits at little cost: a short blurred line instead of a long sum, a few points of a closed form instead of
    a line; None where neither is there, or good enough."""
    found: Bound | None = None
    if loss.closed_is_dear:
        with contextlib.suppress(TooExpensive):
            solved = epsilon_bounds(loss, level, tolerance)
            found = _read_off(solved) if solved.line is not None else None
    elif len(loss.parts) == 1:
        start = _near(loss, level)
        if loss.hockey_stick(start) is not None:
            found = _closed_epsilon(loss, level, 0.25 * tolerance, start)
    return found if found is not None and found.relative_width <= tolerance else None


def _in_closed_form(loss: ComposedLoss, level: tuple[float, float]) -> bool:
    """Whether a closed form is the best way, and epsilon lies where it answers."""
    if not loss.solved_by_closed_form or loss.closed_from == 0:
        return loss.solved_by_closed_form
    known = loss.hockey_stick(loss.closed_from)
    return known is not None and known[0] >= level[1]


def _at_the_mass_of_infinite_loss(loss: ComposedLoss, level: tuple[float, float], tolerance: float) -> Bound:
    """Nothing of delta is left for finite losses, or perhaps nothing."""
    if math.isinf(level[1]):  # delta = delta_inf exactly: the supremum of the finite loss
        return Bound(max(loss.largest_lower, 0.0), max(loss.largest, 0.0), TRIVIAL)
    lower = one_direction(loss, (level[1], level[1]), tolerance)[0].lower
    return Bound(lower, math.inf, TRIVIAL, ("delta equals the mass of infinite loss up to rounding",))


def _read_off(solved: Solved) -> Bound:
    """The interval found on a line, at least 0, and how it was found."""
    line = solved.line
    if line is None:
        return Bound(max(solved.lower, 0.0), max(solved.upper, 0.0), APART if solved.apart else SPLIT)
    method = LATTICE if line.lattice is not None else CONTOUR if line.mu == 0 else BLURRED
    return Bound(max(solved.lower, 0.0), max(solved.upper, 0.0), method, _blur_notes(line.mu))


def _blur_notes(mu: float) -> tuple[str, ...]:
    return () if mu == 0 else (f"line blurred by a Gaussian with mu = {mu:.2g}",)


def _with_wider_blurs(answer: Bound, loss: ComposedLoss, level: tuple[float, float], tolerance: float) -> Bound:
    """A wider blur needs a shorter line, whose values are better known."""
    for coarser in _COARSER:
        if answer.relative_width > _POOR and coarser > tolerance:
            with contextlib.suppress(TooExpensive):
                again = epsilon_bounds(loss, level, coarser)
                if again.line is not None:
                    answer = intersection(answer, Bound(max(again.lower, 0.0), max(again.upper, 0.0), BLURRED))
    return answer


def _last_resort(loss: ComposedLoss, level: tuple[float, float], tolerance: float) -> Bound:
    """A closed form, or else bounds that are always cheap, and a line drawn where they say the answer must be."""
    if loss.hockey_stick(1.0) is not None:
        return _closed_epsilon(loss, level)
    wide = wide_epsilon(loss, level)
    if not 0 < wide.upper < math.inf:
        return wide
    guess = math.sqrt(wide.lower * wide.upper) if wide.lower > 0 else 0.3 * wide.upper
    try:
        near = epsilon_near(loss, level, guess, max(tolerance, 1e-8))
    except (TooExpensive, OverflowError):
        return wide
    return intersection(Bound(max(near.lower, 0.0), max(near.upper, 0.0), BLURRED), wide)


def _near(loss: ComposedLoss, level: tuple[float, float]) -> float:
    """About where epsilon would be if the loss were normal, and not beyond its largest value."""
    _, mean, variance = loss.moments(0.0)
    guess = mean + math.sqrt(max(variance, 0.0) * max(-2 * level[0], 1.0))
    if not guess < math.inf:
        guess = 1.0 if loss.largest == math.inf else loss.largest
    return max(min(guess, loss.largest), 1e-300)


def _closed_epsilon(
    loss: ComposedLoss, level: tuple[float, float], rough: float = 0.0, start: float | None = None
) -> Bound:
    def bounds(eps: float) -> tuple[float, float]:
        return loss.hockey_stick(eps) or (-math.inf, 0.0)

    if start is None and rough == 0:
        try:
            reading = loss.closed_reading(level[0])
            found = None if reading is None else _solved_on(reading, level, loss.largest)
        except (TooExpensive, OverflowError):
            return Bound(0.0, max(loss.largest, 0.0), CLOSED)
        if found is not None:
            return found
    if start is None:
        start = _near(loss, level)
    lower, upper = decreasing_root(bounds, level, start, rough)
    return Bound(min(lower, upper), min(upper, max(loss.largest, 0.0)), CLOSED)


def _solved_on(reading: Reading, level: tuple[float, float], largest: float) -> Bound | None:
    """From a closed form drawn for about that eps; so close to the largest loss that secants do not find it, by
    bisection. None where an end is not found."""
    lower, upper, _ = solved(reading, level)
    if not upper - lower < _GOOD * upper:

        def bounds(eps: float) -> tuple[float, float]:
            ends = reading.log_bounds(np.array([eps]))
            return float(ends[0][0]), float(ends[1][0])

        low, high = decreasing_root(bounds, level, min(upper, largest))
        lower, upper = max(lower, low), min(upper, high)
    return Bound(lower, min(upper, largest), CLOSED) if 0 < lower <= upper < math.inf else None


def exact_delta(loss: ComposedLoss, eps: float, tolerance: float) -> Bound:
    if not loss.parts:
        return exactly(0.0, TRIVIAL)
    answers: list[Bound] = []
    found: DeltaRead | None = None
    for direction in directions(loss):
        if answers and (
            _surely_smaller(direction, eps, answers[0].lower)
            or mirrored_upper(direction, found, eps) <= answers[0].lower
        ):
            continue
        answer, found = _delta_one_direction(direction, eps, tolerance)
        answers.append(answer)
    return largest(answers)


def _surely_smaller(loss: ComposedLoss, eps: float, delta: float) -> bool:
    """Whether delta(eps) is quickly shown to be at most delta."""
    level = finite_level(loss, delta) if delta > 0 else None
    if level is None or math.isinf(level[0]):
        return False
    with contextlib.suppress(TooExpensive):
        return eps >= loss.largest or surely_at_most(loss, eps, level[0], None)
    return False


def _delta_one_direction(loss: ComposedLoss, eps: float, tolerance: float) -> tuple[Bound, DeltaRead | None]:
    low_inf = loss.delta_inf_bounds[0]
    if loss.delta_inf == 1:  # perhaps only because of rounding
        return Bound(low_inf, 1.0, TRIVIAL), None
    grid = delta_on_grid(loss, eps, tolerance)
    narrow = grid is not None and grid[1] - grid[0] < _GOOD
    closed = None if narrow else loss.hockey_stick(eps)
    notes: tuple[str, ...] = ()
    found: DeltaRead | None = None
    if grid is not None and closed is not None:
        logs, method = (max(grid[0], closed[0]), min(grid[1], closed[1])), f"{CLOSED}; {GRID}"
    elif grid is not None and grid[1] - grid[0] < _POOR:
        logs, method = grid, GRID
    elif closed is not None:
        logs, method = closed, CLOSED
    else:
        try:
            with limited(_tried(loss)):
                found = delta_bounds(loss, eps, tolerance)
            logs, method, notes = _delta_on_a_line(loss, eps, tolerance, found)
            if not logs[1] - logs[0] <= _POOR:  # far out, where a line says little
                wide = wide_delta(loss, eps)
                logs, method = (max(logs[0], wide[0]), min(logs[1], wide[1])), f"{method}; {WIDE}"
        except TooExpensive:
            logs, method, notes = wide_delta(loss, eps), WIDE, ("the plan is beyond the exact engine",)
    answer = Bound(*with_infinite(loss, logs), method, notes)
    narrow = logs[1] - logs[0] <= (_POOR if _may_be_split(loss) else 10 * _SEEN)
    return answer if narrow else _delta_between(loss, eps, tolerance, answer), found


def _delta_between(loss: ComposedLoss, eps: float, tolerance: float, answer: Bound) -> Bound:
    """Sharpened between two losses with finitely many values each, where there are such and work is left for them."""
    with contextlib.suppress(TooExpensive):
        pair = loss.between(max(math.log(answer.upper), -_DEEP) if answer.upper > 0 else -_DEEP)
        if pair is None:
            return answer
        ends = [_delta_one_direction(side, eps, max(tolerance, _BETWEEN))[0] for side in pair]
        found = Bound(min(ends[0].lower, ends[1].upper), ends[1].upper, BRACKETS)
        return intersection(answer, found) if found.relative_width < answer.relative_width else answer
    return answer


def _delta_on_a_line(
    loss: ComposedLoss, eps: float, tolerance: float, found: DeltaRead
) -> tuple[tuple[float, float], str, tuple[str, ...]]:
    """Logs of bounds on delta - delta_inf, read off a line, and how; blurred more widely where that helps."""
    logs, mu = found.logs, found.mu
    for coarser in _COARSER:  # a wider blur needs a shorter line, whose values are better known
        if mu > 0 and logs[1] - logs[0] > _POOR and coarser > tolerance:
            with contextlib.suppress(TooExpensive):
                again = delta_bounds(loss, eps, coarser).logs
                logs = max(logs[0], again[0]), min(logs[1], again[1])
    if found.apart:
        return logs, APART, ()
    method = BLURRED if mu > 0 else LATTICE if loss.lattice is not None else CONTOUR if found.classes is None else SPLIT
    return logs, method, _blur_notes(mu)
