"""mu of a plan: the least mu for which it is mu-GDP, proven and rounded up.

With d(u) the privacy profile of the plan at u = e^eps, the larger of both directions, mu-GDP is d <= G_mu at all
u >= 1, G_mu the profile of N(0, 1) against N(mu, 1) (Dong, Roth, Su 2022, Cor. 1; u < 1 follows, both directions being
covered). So mu is the supremum over eps >= 0 of mu(eps), where G_mu(eps) = d(eps). What is proven:

- *Normal steps* (Gaussian noise, and samples of it, which Gaussian noise dominates) are exact: mu^2 adds. Nothing
  smaller would do for a sample: far out only runs matter in which every sample was a hit, and d falls like q^T G_M with
  the M of no sampling, more slowly than any G_mu with mu < M.
- *Between two points* d lies below its chord, because d is convex in u, and G_mu above its tangents, because it is
  convex too: a cell is proven where chord <= tangent at both of its ends.
- *Far out* d(eps) <= kappa(c) e^(K(c) - c eps) with K(c) <= rho c(c+1) + L c (Prop. cdp2adp), rho-zCDP for some steps,
  L the largest loss of the others; `_tail` compares that with G_mu for all larger eps at once. Beyond a largest loss of
  the whole plan d is 0.

GDP composes, mu^2 adds up (Dong, Roth, Su 2022, Cor. 2), so parts of a plan may be priced apart; the least is taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import log_ndtr, ndtri_exp

from privloss.answers.exact import DeltaCurve
from privloss.errors import Unsupported
from privloss.losses.base import Concentration, PrivacyLoss
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics.floats import exp_down, lowered, raised
from privloss.numerics.normal import log_hockey_stick

_SHARP, _ROUGH = 1e-6, 2e-3  # how far a mu may lie above the largest one that single points need, and after
_SOME, _MOST_POINTS, _TOGETHER = 40, 400, 16  # some points; points asked in all, and together
_TOLERANCE, _WORK = 1e-6, 1e7  # of each delta
_FIRST = 12  # cells to begin with
_FAR = 30.0  # how far out delta is asked, in standard deviations: it is about 1e-196 there
_MOST = 1e6  # a larger mu is none
_WIDEST = 500.0  # a wider cell is divided
_CLOSE = 1e-9  # relative distance at which a bisection ends
_NEGLIGIBLE = 0.01  # a share of mu^2: what is not worth a second search


def mu_squared(plan: Plan) -> Fraction:
    """mu^2 of a plan, rounded up; refused, with the reason, where no finite mu is proven."""
    dominated, exact = Fraction(0), Fraction(0)
    normal, rest = [], []
    for mechanism, times in plan.steps:
        own = mechanism.mu_squared(plan.adjacency)
        above = _dominating(mechanism, times, plan.adjacency) if own is None else None
        if own is not None:
            exact += times * own
            normal.append((mechanism, times))
        elif above is not None:
            dominated += above
        else:
            rest.append((_provable(mechanism, plan.adjacency), times))
    if not rest:
        return dominated + exact
    found = exact + _squared(Plan(tuple(rest), plan.adjacency))
    if exact > 0 and found - exact > _NEGLIGIBLE * found:
        together = _search(Plan((*normal, *rest), plan.adjacency))
        found = min(found, Fraction(together) ** 2) if together < math.inf else found
    return dominated + found


# -- normal steps ------------------------------------------------------------------------------------------------------


def _dominating(mechanism: Mechanism, times: int, adjacency: str) -> Fraction | None:
    """mu^2 of Gaussian noise that dominates a step on a sample; None if nothing such is declared."""
    sampled = mechanism.amplification()
    inner = None if sampled is None else sampled[0].mu_squared(adjacency)
    found = [] if inner is None else [times * inner]  # samples of neighbours are neighbours, or the same: convexity
    worst = worst_neighbours(Plan(((mechanism, times),), adjacency))
    if worst.curve.empty:
        above = [worst.loss.unsampled(), *([] if worst.unsampled is None else [worst.unsampled.unsampled()])]
        found += [Fraction(mu) for mu in (_all_normal(loss.parts) for loss in above) if mu is not None]
    return min(found) if found else None


def _provable(mechanism: Mechanism, adjacency: str) -> Mechanism:
    """The mechanism itself, or what runs on the sample if more is proven for that: it dominates, by convexity."""
    sampled = mechanism.amplification()
    if sampled is None or Plan(((mechanism, 1),), adjacency).zcdp().upper < math.inf:
        return mechanism
    return sampled[0]


def _all_normal(parts: tuple[PrivacyLoss, ...]) -> float | None:
    """mu^2 if K(t) = mu^2/2 t(t+1) at every t: K says which loss it is."""
    known = [part.concentration() for part in parts]
    if any(k != Concentration(everywhere=k.everywhere) for k in known):
        return None
    return raised(2 * math.fsum(k.everywhere for k in known), 16 + len(parts))


# -- far out -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Far:
    """What is known of large losses."""

    largest: float  # no loss is larger
    bounds: tuple[tuple[float, float], ...]  # (rho, L): K(c) <= rho c(c+1) + L c

    def reach(self) -> float:
        """How far out delta is asked."""
        mu = math.sqrt(2 * self.bounds[0][0])
        return min(self.largest, mu * (0.5 * mu + _FAR))

    def tail(self, eps: float) -> float:
        """A mu with d <= G_mu at eps and all that is larger; inf if none is found."""
        return 0.0 if eps >= self.largest else min(_tail(rho, shift, eps) for rho, shift in self.bounds)


def _far(plan: Plan) -> _Far:
    rho, largest = plan.zcdp().upper, plan.rdp(math.inf).upper
    if rho == math.inf:
        raise Unsupported(_reason(plan))
    bounds = [(rho, 0.0)]
    if largest == math.inf:
        apart = [Plan((step,), plan.adjacency) for step in plan.steps]
        tops = [one.rdp(math.inf).upper for one in apart]
        wide = tuple(step for step, top in zip(plan.steps, tops, strict=True) if top == math.inf)
        shift = raised(math.fsum(top for top in tops if top < math.inf), 2)
        bounds.append((Plan(wide, plan.adjacency).zcdp().upper, shift))
    return _Far(largest, tuple(bounds))


def _reason(plan: Plan) -> str:
    """Why a plan has no finite mu, by the first step that has none."""
    for mechanism, times in plan.steps:
        worst = worst_neighbours(Plan(((mechanism, times),), plan.adjacency))
        lost = max(loss.delta_inf_bounds[1] for loss in (worst.loss, worst.loss.reversed()))
        start = f"plan: {mechanism!r} has no price in GDP"
        if worst.curve.points is not None:
            return f"{start}: Renyi divergences of finitely many orders say nothing about large losses."
        if lost > 0:
            return f"{start}: its loss may be infinite with probability {lost:.3g}, that of Gaussian noise never is."
        if Plan(((mechanism, times),), plan.adjacency).zcdp().upper == math.inf:
            return f"{start}: no rho is proven for it, so nothing about large losses."
    return "plan: has no price in GDP: no rho is proven for its steps together, so nothing about large losses."


def _tail(rho: float, shift: float, eps: float) -> float:
    """The least mu (roughly) with d <= G_mu from eps on, where K(c) <= rho c(c+1) + shift c; inf if there is none.

    With M^2 = 2 rho, x = eps - shift and c = x/M^2 - 1/2, d(eps) <= e^(-(x - rho)^2/(4 rho))/(c + 1), as kappa(c) <=
    1/(c+1). With R the Mills ratio, which is convex, and R(b) <= (b^2+2)/(b(b^2+3)), G_mu = phi(a) (R(a) - R(b)) >=
    phi(a) mu (1 - b R(b)) >= phi(a) mu/(b^2+3) for a = eps/mu - mu/2, b = a + mu > 0. The logarithm of the quotient,

        D(eps) = (x - rho)^2/(4 rho) + log(c + 1) - a^2/2 + log mu - log sqrt(2 pi) - log(b^2 + 3),

    has D' >= eps (1/M^2 - 1/mu^2) - shift/M^2 - 2/eps, because mu b >= eps. That rises with eps: where it and D are not
    negative, D is not for any larger eps.
    """
    squared, x = 2 * rho, eps - shift
    if x <= rho or eps <= 0:
        return math.inf

    def proven(mu: float) -> bool:
        rise = eps * (1 / squared - 1 / (mu * mu)), shift / squared, 2 / eps
        a, b = eps / mu - 0.5 * mu, eps / mu + 0.5 * mu
        own = (x - rho) ** 2 / (4 * rho)
        logs = math.log(x / squared + 0.5), math.log(mu), -0.5 * math.log(2 * math.pi), -math.log(b * b + 3)
        size = (eps * eps + rho * rho + shift * shift) / rho + b * b + math.fsum(map(abs, logs)) + 1
        slope = lowered(rise[0] - rise[1] - rise[2], 64, eps / squared + rise[1] + rise[2])
        return slope >= 0 and lowered(own - 0.5 * a * a + math.fsum(logs), 64, size) >= 0

    low, high = math.sqrt(squared), 2 * math.sqrt(squared)
    return _least(proven, low, high) if proven(high) else math.inf


# -- in between --------------------------------------------------------------------------------------------------------


def _squared(plan: Plan) -> Fraction:
    """mu^2 of a plan by a search; where its delta(0) cannot be told from 1, the sum over its uses."""
    found = _search(plan)
    if found < math.inf:
        return Fraction(found) ** 2
    each = [(_search(Plan(((mechanism, 1),), plan.adjacency)), n) for mechanism, n in plan.steps]
    if any(mu == math.inf for mu, _ in each):
        raise Unsupported("plan: its mu is too large to be proven: delta(0) cannot be told from 1.")
    return sum((n * Fraction(mu) ** 2 for mu, n in each), Fraction(0))


Point = tuple[float, float]  # eps, and an upper bound on delta there
Cell = tuple[float, float]  # from eps to eps


def _search(plan: Plan) -> float:
    """A mu for which the plan is mu-GDP, close to the least; inf if none is found."""
    far = _far(plan)
    end = far.reach()
    if end <= 0:
        return 0.0
    curve = DeltaCurve(worst_neighbours(plan), _TOLERANCE, _WORK)
    known: dict[float, float] = {}
    proven: dict[Cell, float] = {}
    floor, new = far.tail(end), [end * (k / _FIRST) ** 2 for k in range(_FIRST + 1)]
    while True:
        for eps, delta in zip(new, curve.read(new), strict=True):
            known[eps] = 0.0 if eps >= far.largest else delta.upper
            floor = max(floor, min(_inverse(eps, known[eps]), far.tail(eps)))
        cells = list(itertools.pairwise(sorted(known)))
        for left, right in cells:  # each by itself, or with all that lies beyond
            if (left, right) not in proven:
                alone = _cell((left, known[left]), (right, known[right]), floor)
                proven[left, right] = min(alone, far.tail(left))
        found = max(floor, *(proven[cell] for cell in cells))
        good = _SHARP if len(known) < _SOME else _ROUGH
        if found <= floor * (1 + good) or len(known) >= _MOST_POINTS or floor == math.inf:
            return found
        wide = [cell for cell in cells if proven[cell] > floor * (1 + _SHARP)]
        new = [0.5 * sum(cell) for cell in sorted(wide, key=lambda cell: -proven[cell])[:_TOGETHER]]


def _cell(left: Point, right: Point, best: float) -> float:
    """A mu with d <= G_mu between two points, the least or little more than `best`."""
    near = best * (1 + 0.5 * _SHARP)
    if near > 0 and _below(near, left, right):
        return near
    low, high = max(best, 1e-300), max(2 * best, 1e-6)
    while not _below(high, left, right):
        low, high = high, 2 * high
        if high > _MOST:
            return math.inf
    return _least(lambda mu: _below(mu, left, right), low, high)


def _below(mu: float, left: Point, right: Point) -> bool:
    """Whether chord <= tangent at both ends is shown, the tangent at the point of G_mu with the chord's slope (or the
    end next to it). With e^eps = v times that at the tangent's point, G_mu falls at the rate w = e^eps Phi(-b) in v."""
    (start, above), (end, below) = left, right
    if end - start > _WIDEST:
        return False
    touch = end
    if above > below:
        log_slope = math.log(above - below) - start - math.log(math.expm1(end - start))
        b = -float(ndtri_exp(min(log_slope, -1e-12)))
        touch = min(max(mu * (b - 0.5 * mu), start), end)
    b = touch / mu + 0.5 * mu
    at, rate = exp_down(log_hockey_stick(touch, mu)[0]), math.exp(touch + float(log_ndtr(-b)))
    units = 64 * (1 + touch + b * b)  # of the rate: b is off by a few units, and log Phi(-b) by b times that
    first, last = rate * -math.expm1(start - touch), rate * math.expm1(end - touch)
    return lowered(at + first, units, first + at) >= above and lowered(at - last, units, last + at) >= below


def _inverse(eps: float, delta: float) -> float:
    """About the mu with G_mu(eps) = delta."""
    if delta in (0.0, 1.0):
        return math.inf if delta == 1 else 0.0
    return _least(lambda mu: log_hockey_stick(eps, mu)[0] >= math.log(delta), 1e-12, _MOST)


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """About the least number for which something holds; surely one for which it does, as it does for `high`."""
    while high > low * (1 + _CLOSE):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
