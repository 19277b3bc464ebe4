"""Choosing the line: every parameter is searched in floating point, any choice is sound, only the width depends on it.

`delta_bounds` and `epsilon_bounds` return (lower, upper); both work on logarithms of delta so that 1e-300 is as good
as 0.1.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import numpy as np

from privloss.numerics.contour.apart import Far, Read, delta_apart, epsilon_apart
from privloss.numerics.contour.by_classes import delta_by_classes, epsilon_by_classes
from privloss.numerics.contour.found import DeltaRead, Solved
from privloss.numerics.contour.line import Line
from privloss.numerics.contour.nodes import draw, find_cut
from privloss.numerics.contour.saddle import CLOSE, Saddle, find_saddle
from privloss.numerics.contour.transform import RareLosses, TooExpensive, Transform, kappa_bound_epsilon, log_kappa
from privloss.numerics.floats import UNIT, Real, lowered, padded_up, raised

_NARROW = 1e-9  # relative width from which one line is enough
_APART = 1e-8  # relative distance from which on two values of delta tell its slope
_POOR = 1e-3  # relative width from which a blur is asked for a second opinion
_FAIR = 1e-8  # relative width from which a few outcomes are taken apart
Moments = tuple[float, float, float]  # K, K', K'' at a point


def delta_bounds(transform: Transform, eps: float, tolerance: float, reach: float = 1.0) -> DeltaRead:
    """On one line or, where e^(cZ) is ruled by rare large losses, on one for each class of the largest loss; classes
    are drawn to be read from eps/reach to eps*reach."""
    if eps >= transform.largest:
        return DeltaRead((-math.inf, -math.inf))
    if transform.rare is None or eps < 0:
        return _delta_on_one_line(transform, eps, tolerance)
    found = _delta_unblurred(transform, eps, tolerance, reach)
    width = found.logs[1] - found.logs[0]
    if width < (_POOR if transform.apart is None else _FAIR):
        return found
    if transform.apart is not None:
        with contextlib.suppress(TooExpensive):
            about = found.logs[0] if found.logs[0] > -math.inf else transform.rare.rough_log_delta(eps)
            lower, upper = delta_apart(transform.apart, eps, about, tolerance, _ask)
            lower, upper = max(lower, found.logs[0]), min(upper, found.logs[1], 0.0)
            if upper - lower < min(_POOR, 0.5 * width):
                return DeltaRead((lower, upper), apart=True)
    last = _delta_on_one_line(transform, eps, tolerance, blur=True)
    return last if last.logs[1] - last.logs[0] < width else found


def _delta_unblurred(transform: Transform, eps: float, tolerance: float, reach: float = 1.0) -> DeltaRead:
    """On one line or by classes, perhaps wide."""
    try:
        found = _delta_on_one_line(transform, eps, tolerance)
        if found.logs[1] - found.logs[0] < max(_NARROW, tolerance):
            return found
    except TooExpensive:
        found = DeltaRead((-math.inf, 0.0))
    with contextlib.suppress(TooExpensive):
        spread = math.sqrt(max(transform.moments(0.0)[2], 0.0))
        assert transform.rare is not None
        logs, classes = delta_by_classes(transform.rare, eps, spread, tolerance, reach)
        lower, upper = max(logs[0], found.logs[0]), min(logs[1], found.logs[1], 0.0)
        found = DeltaRead((min(lower, upper), upper), None, classes)
    return found


def _ask(transform: Transform, eps: float, tolerance: float) -> Read:
    """delta of the rest at eps, without a blur."""
    if eps >= transform.largest:
        return Read((-math.inf, -math.inf), None)
    found = DeltaRead((-math.inf, 0.0))
    with contextlib.suppress(TooExpensive):
        found = (
            _delta_on_one_line(transform, eps, tolerance)
            if transform.rare is None
            else _delta_unblurred(transform, eps, tolerance)
        )
    return Read(found.logs, found.readable)


def _delta_on_one_line(transform: Transform, eps: float, tolerance: float, blur: bool | None = None) -> DeltaRead:
    whole = transform
    saddle = find_saddle(transform, lambda s: (s.eps - eps) * s.c, rising=True)
    for _ in range(3):  # the estimate of delta may have been spoilt by what is about to be trimmed
        estimate = saddle.log_delta
        reach = saddle.c if abs(saddle.eps - eps) * saddle.c <= CLOSE else 2 * saddle.c
        transform = whole.trimmed(reach, min(estimate, 0.0))
        if transform is whole:
            break
        saddle = find_saddle(transform, lambda s: (s.eps - eps) * s.c, rising=True)
        if saddle.log_delta > estimate - 2:
            break
    line = draw(transform, saddle, eps, tolerance, whole.rare is None or eps < 0 if blur is None else blur)
    shift = line.lattice.shift if line.lattice is not None else 0.0
    reading = line.read(np.array([eps - shift, eps + shift]))
    upper = min(float(reading.log_upper()[0]), float(np.logaddexp(_moments_bound(line, eps), line.log_lost)))
    upper = min(upper, 0.0)
    if math.isfinite(transform.largest):  # delta <= 1 - e^(eps - largest)
        upper = min(upper, raised(math.log(-math.expm1(eps - whole.largest)), 4, 1.0))
    return DeltaRead((min(float(reading.log_lower()[1]), upper), upper), line)


def epsilon_bounds(transform: Transform, level: tuple[float, float], tolerance: float, reach: float = 1.0) -> Solved:
    """(lower, upper) with delta(upper) <= delta <= delta(lower), delta known by its `level`, an interval of logs.

    The ends may be negative. Classes of the largest loss are drawn to be read from eps/reach to eps*reach.
    """
    start = transform.moments(0.0)
    if _surely_nothing(transform, level[0], start[1]):
        return Solved(-math.inf, 0.0, None)
    if transform.rare is None:
        return _on_one_line(transform, level, tolerance, start)
    found, rough = _before_classes(transform, transform.rare, level, tolerance, start)
    if found is not None and found.upper - found.lower < max(_NARROW, 10 * tolerance) * abs(found.upper):
        return found
    enough = _POOR if transform.apart is None else _FAIR
    with contextlib.suppress(TooExpensive):
        found = _within(_by_classes(transform, level, rough, tolerance, reach), found)
        if found.upper <= 0 or found.upper - found.lower < enough * found.upper:
            return found
    with contextlib.suppress(TooExpensive):
        found = _within(_outcome_by_outcome(transform, level, rough, tolerance), found)
        if found.upper <= 0 or found.upper - found.lower < _POOR * found.upper:
            return found
    last = _on_one_line(transform, level, tolerance, start)
    return last if found is None or last.upper - last.lower < found.upper - found.lower else found


def _before_classes(
    transform: Transform, rare: RareLosses, level: tuple[float, float], tolerance: float, start: Moments
) -> tuple[Solved | None, float]:
    """One line, unless rare losses surely decide; and about where eps is."""
    # a sum of normal shape has eps here; few hits lie further out
    normal = start[1] + math.sqrt(max(start[2], 1e-300) * max(-2 * level[0], 1.0))
    rough = rare.rough_epsilon(level[0]) if rare.decisive(normal, level[0]) else math.nan
    found: Solved | None = None
    if not (rough > 0 and rare.decisive(rough, level[0])):
        with contextlib.suppress(TooExpensive):
            found = _on_one_line(transform, level, tolerance, start, blur=False)
    if rough > 0:
        return found, rough
    rough = found.upper if found is not None else rare.rough_epsilon(level[0])
    return found, rough if 0 < rough < math.inf else normal


def _by_classes(
    transform: Transform, level: tuple[float, float], rough: float, tolerance: float, reach: float
) -> Solved:
    assert transform.rare is not None
    spread = math.sqrt(max(transform.moments(0.0)[2], 0.0))
    lower, upper, classes = epsilon_by_classes(transform.rare, level, rough, spread, tolerance, reach)
    return Solved(lower, upper, None, classes)


def _outcome_by_outcome(transform: Transform, level: tuple[float, float], rough: float, tolerance: float) -> Solved:
    if transform.apart is None:
        raise TooExpensive("no part has few outcomes")
    return Solved(*epsilon_apart(transform.apart, level, rough, tolerance, _ask), None, apart=True)


def _within(new: Solved, old: Solved | None) -> Solved:
    """What both say; classes may be of a pair below the one on the line, whose own lower end then says nothing."""
    lower, upper = new.lower, new.upper
    if old is not None:
        lower, upper = max(lower, old.lower), min(upper, old.upper)
    return replace(new, lower=min(lower, upper), upper=upper)


def _surely_nothing(transform: Transform, log_delta: float, mean: float) -> bool:
    """Whether eps is 0 because delta(0) <= sqrt(KL/2) (Pinsker) is below delta.

    With mass at infinity take P given that the loss is finite, which is larger where both can be: KL grows by
    -log(1 - delta_inf).
    """
    lost = transform.delta_inf_bounds[1]
    extra = padded_up(-math.log1p(-lost), 1e-12) if lost < 1 else math.inf
    mean += extra
    if mean <= 0 or 0.5 * math.log(0.5 * mean) <= log_delta:
        mean = transform.mean_bounds()[1] + extra
        return bool(mean <= 0 or padded_up(0.5 * math.log(0.5 * mean), 1e-12, 1 + abs(log_delta)) <= log_delta)
    return False


def _on_one_line(
    transform: Transform,
    level: tuple[float, float],
    tolerance: float,
    start: Moments,
    blur: bool = True,
) -> Solved:
    log_delta = level[0]
    saddle = _saddle_at(transform, log_delta, start)
    # a search that stopped short of its goal stopped because of rare outcomes just beyond: look at twice the tilt
    reach = saddle.c if abs(saddle.log_delta - log_delta) <= CLOSE else 2 * saddle.c
    trimmed = transform.trimmed(reach, log_delta)
    if trimmed is not transform:
        transform = trimmed
        saddle = _saddle_at(transform, log_delta)
    if not saddle.c * saddle.eps > 2.0:  # perhaps delta(0) <= delta already, and then eps = 0
        zero = find_saddle(transform, lambda s: s.eps * s.c, rising=True)
        line = draw(transform, zero, 0.0, tolerance, blur)
        if line.read(np.zeros(1)).log_upper()[0] <= log_delta:
            return Solved(-math.inf, 0.0, line)
    eps = (saddle.k + saddle.log_share - log_delta) / saddle.c  # saddle.eps, unless c was limited
    line = draw(transform, saddle, eps, tolerance * min(max(saddle.c * abs(eps), 1e-3), 1e3), blur)
    return _solve_on(transform, line, level, saddle)


def epsilon_near(transform: Transform, level: tuple[float, float], eps: float, tolerance: float) -> Solved:
    """The same where the search for a saddle finds none worth having, but eps is known roughly.

    With few hits of very unequal size every tilt that reaches eps makes much larger, much rarer losses dominate. So the
    line stays at a small tilt, far from any saddle: the sum then cancels to a fraction delta of its terms, which a
    longer and blurred line can afford.
    """
    log_delta = level[0]
    transform = transform.trimmed(1e6 / eps, log_delta)
    c = min(transform.tilt_limit, 30 / eps)
    if not 0 < c < math.inf:
        raise TooExpensive("no tilt worth having")
    k, _, k2 = transform.moments(c)
    curvature = max(k2, 0.0) + 1 / c**2 + 1 / (c + 1) ** 2
    saddle = Saddle(c, eps, k, log_delta - (k - c * eps), curvature)
    return _solve_on(transform, draw(transform, saddle, eps, tolerance), level, saddle)


def _saddle_at(transform: Transform, log_delta: float, start: Moments | None = None) -> Saddle:
    """The saddle for a given delta; a sum of Gaussian shape has it where c^2 Var/2 is about -log delta."""
    reach = math.sqrt(max(-2 * log_delta - 6.0, 1.0))
    return find_saddle(
        transform, lambda s: s.log_delta - log_delta, rising=False, required=False, start=start, reach=reach
    )


def _solve_on(transform: Transform, line: Line, level: tuple[float, float], saddle: Saddle) -> Solved:
    """Read both ends off a line."""
    log_delta = level[0]
    if math.isfinite(transform.largest):  # so close to the end of the losses that doubles cannot tell
        end = lowered(transform.largest, 96 + 16 * transform.kinds)
        if line.read(np.array([end])).log_lower()[0] >= level[1]:
            return Solved(end, transform.largest, line)
    root, slope = _root(line, log_delta, saddle)
    reading = line.read(np.array([root]))
    if not math.isfinite(root) or not reading.value[0] > 0:
        raise TooExpensive("no line found")
    unit = 1.02 / max(float(reading.value[0]), 1e-300) / slope
    upper, lower = _safe_ends(line, level, root, float(reading.above[0]) * unit, float(reading.below[0]) * unit)
    left = log_delta + math.log1p(-math.exp(line.log_lost - log_delta)) if line.log_lost < log_delta else -math.inf
    shift = line.lattice.shift if line.lattice is not None else 0.0
    upper = min(upper + shift, kappa_bound_epsilon(line.c, line.log_mgf_upper, left), transform.largest)
    return Solved(min(lower - shift, upper), upper, line)


def surely_at_most(transform: Transform, eps: float, log_delta: float, like: Line | None) -> bool:
    """Whether delta(eps) <= delta can be shown quickly, by moments or on a coarse line beside one solved already.

    Only an upper bound is needed, and images only add to it, so the period may be taken over as it is.
    """
    if transform.lattice is not None or not eps > 0:
        return False
    tilts = np.array([1.5 * like.c]) if like is not None else np.geomspace(4.0, 250.0, 7) / eps
    if _moments_at_most(transform, eps, log_delta, tilts):
        return True
    if like is None or like.lattice is not None or like.mu > 0:
        return False
    vertical = transform.vertical(like.c)
    wish = like.log_mgf_upper - like.c * eps - log_delta - math.log(0.05)
    cut = find_cut(
        vertical,
        lambda t, decay: decay + wish - math.log(math.pi * t),
        like.step,
        math.inf,
        0.5 * float(like.t[-1]),
        2 * len(like.t) + 8,
    )
    if cut is None:
        return False
    values = vertical.line(like.step * np.arange(cut.nodes + 1), 1e-6)
    none = np.zeros(1)
    line = replace(
        like,
        t=like.step * np.arange(cut.nodes + 1),
        values=values,
        log_beyond=cut.log_beyond + float(values.error[0]),
        image_points=none,
        image_logs=none,
        log_lost=transform.log_lost,
    )
    return bool(line.read(np.array([eps])).log_upper()[0] <= log_delta)


def _moments_at_most(transform: Transform, eps: float, log_delta: float, tilts: Real) -> bool:
    """Whether kappa(c) e^(K(c) - c eps) <= delta for the best of some c; asked only where it looks like that."""
    margins = log_delta + tilts * eps - log_kappa(tilts)
    gains = [margin - transform.moments(float(c))[0] for c, margin in zip(tilts, margins, strict=True)]
    best = int(np.argmax(gains))
    if not gains[best] > 0.01:
        return False
    c = float(tilts[best])
    k = float(transform.log_mgf_upper(np.array([c]))[0])
    return bool(raised(k, 16, 1 + abs(k) + c * abs(eps) + abs(log_delta)) <= margins[best])


def moments_epsilon(transform: Transform, log_delta: float) -> float:
    """The eps at which kappa(c) e^(K(c) - c eps) is delta, rounded up, for about the best c."""
    spread = math.sqrt(max(transform.moments(0.0)[2], 1e-300))
    tilts = np.geomspace(0.3, 60.0, 16) / spread
    guesses = (np.array([transform.moments(float(c))[0] for c in tilts]) + log_kappa(tilts) - log_delta) / tilts
    c = float(tilts[int(np.nanargmin(guesses))])
    return kappa_bound_epsilon(c, float(transform.log_mgf_upper(np.array([c]))[0]), log_delta)


def moments_upper(transform: Transform, eps: float) -> float:
    """log of kappa(c) e^(K(c) - c eps) at about the best c, at most 0."""
    return min(Far.at(transform, eps).log_upper(eps), 0.0) if 0 < eps < math.inf else 0.0


def _moments_bound(line: Line, eps: float) -> float:
    """log of kappa(c) e^(K(c) - c eps) (Prop. cdp2adp), from the value of K on the line itself."""
    k = line.log_mgf_upper
    return raised(float(log_kappa(np.array(line.c))) + k - line.c * eps, 8, abs(k) + line.c * abs(eps))


def _root(line: Line, log_delta: float, saddle: Saddle) -> tuple[float, float]:
    """Where the computed value equals delta, and the slope of -log delta there (`_safe_ends` gives the guarantee).

    Secant steps on log delta, which is nearly straight, kept inside the bracket found so far.
    """
    eps, slope = (saddle.k + saddle.log_share - log_delta) / saddle.c, saddle.c
    low, high = -math.inf, line.largest
    if eps >= high:
        eps = high - 0.5 * min(abs(high), 1 / saddle.c)
    before: tuple[float, float] | None = None
    for _ in range(200):
        miss = line.log_value(eps) - log_delta
        low, high = (eps, high) if miss > 0 else (low, eps)
        if before is not None and abs(eps - before[0]) > _APART * abs(eps):
            slope = max((before[1] - miss) / (eps - before[0]), 0.2 * saddle.c)
        before = (eps, miss)
        move = miss / slope
        if abs(move) <= 1e-15 * abs(eps) or abs(miss) < 2e-16 * abs(log_delta):
            break
        if not low < eps + move < high and math.isfinite(low) and math.isfinite(high):
            move = 0.5 * (low + high) - eps
        eps += move
    return eps, slope


def _safe_ends(line: Line, level: tuple[float, float], root: float, up: float, down: float) -> tuple[float, float]:
    """Step away from the root until delta_upper(upper) <= delta and delta_lower(lower) >= delta."""
    least = max(2 * UNIT * abs(root), 1e-300)
    up, down = max(up, least), max(down, least)
    for attempt in range(30):
        reading = line.read(np.array([root + up, root - down]))
        high_met = bool(reading.log_upper()[0] <= level[0])
        low_met = bool(reading.log_lower()[1] >= level[1])
        if high_met and low_met:
            return root + up, root - down
        stride = 2.0 if attempt < 8 else 16.0  # further off than the errors say: hurry
        up *= 1.0 if high_met else stride
        down *= 1.0 if low_met else stride
    return root + up if high_met else math.inf, root - down if low_met else -math.inf
