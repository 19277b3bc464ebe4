"""The best possible conversion from one Renyi order to approximate DP (Asoodeh, Liao, Calmon, Kosut, Sankar 2020).

Given only D_alpha(P||Q) <= D, how large can delta(eps) = sup_S P(S) - e^eps Q(S) be? Reporting only whether S happened
is post-processing, which keeps both the divergence bound and this S, so pairs on two points are the worst: maximise
p - e^eps q over

    p^alpha q^(1-alpha) + (1-p)^alpha (1-q)^(1-alpha) <= e^((alpha-1) D) =: M,

a convex problem. Any pair that satisfies the constraint is a *lower* bound. For the *upper* bound take any lambda and
w > 0: if (x - e^eps)_+ <= lambda x^alpha - w (x - 1) + nu for all x >= 0, then, with x = P/Q, E_Q[x] = 1 and
E_Q[x^alpha] <= M, delta <= lambda M + nu. (w = nu = 0 is Prop. cdp2adp.) With c = alpha - 1 the gap between the two
sides is largest at

    x1 = (w/(alpha lambda))^(1/c) < e^eps:      nu >= -w (1 - x1 c/alpha),
    x2 = ((1+w)/(alpha lambda))^(1/c) > e^eps:  nu >= (1+w) x2 c/alpha - e^eps - w,

and both fall in lambda. At x2 = e^eps (alpha/c) / (1 + w - w (w/(1+w))^(1/c)) they are equal, which leaves one unknown,
w, to search for; any w is valid. If D is so large that P(S) = 1 is possible, delta = 1 - e^(eps - D) (q = e^-D).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from privloss.numerics import check
from privloss.numerics.bound import Bound
from privloss.numerics.floats import SMALLEST, UNIT, Real, lowered, raised
from privloss.numerics.stable import exp_minus_1_minus

METHOD = "optimal conversion from one Renyi order (Asoodeh et al. 2020)"


def delta(alpha: float, divergence: float, epsilon: float) -> Bound:
    """The largest delta(epsilon) that D_alpha <= divergence allows, as an interval."""
    order = check.number("alpha", alpha, low=1, above=True)
    limit = check.number("divergence", divergence, low=0)
    eps = check.number("epsilon", epsilon, low=0)
    upper = _upper(order, limit, eps)
    return Bound(min(_lower(order, limit, eps), upper), upper, METHOD)


def epsilon(alpha: float, divergence: float, delta_target: float) -> Bound:
    """The least epsilon with delta(epsilon) <= delta for every pair with D_alpha <= divergence, as an interval."""
    upper = epsilon_upper(alpha, divergence, delta_target)
    order, limit, target = float(alpha), float(divergence), float(delta_target)
    if upper == 0:
        return Bound(0.0, 0.0, METHOD)
    lower, step = upper, 1e-14
    while lower > 0 and not _lower(order, limit, lower) >= target:  # delta falls: walk down until it is surely there
        lower, step = max(upper * (1 - step), 0.0), 2 * step
    return Bound(lower, upper, METHOD)


def epsilon_upper(alpha: float, divergence: float, delta_target: float) -> float:
    """The upper end of `epsilon` alone."""
    order = check.number("alpha", alpha, low=1, above=True)
    limit = check.number("divergence", divergence, low=0)
    target = check.number("delta", delta_target, low=0, high=1, above=True)

    def excess(eps: float) -> float:
        return math.log(max(_upper(order, limit, eps), SMALLEST)) - math.log(target)

    if excess(0.0) <= 0:
        return 0.0
    most = limit - math.log(target) / (order - 1) + 1.0  # enough already for the simple form
    root, step = float(brentq(excess, 0.0, most, xtol=1e-13 * most, rtol=1e-14)), 1e-15
    while _upper(order, limit, root) > target:  # the root is a guess: walk up until it is surely past
        root, step = root * (1 + step), 2 * step
    return root


def _sure(alpha: float, limit: float, eps: float) -> bool:
    """Whether P(S) = 1 is the best: D is at least eps + log(alpha/(alpha-1))."""
    return eps + math.log1p(1 / (alpha - 1)) <= limit


def _upper(alpha: float, limit: float, eps: float) -> float:
    if limit == 0:
        return 0.0
    if _sure(alpha, limit, eps):
        return min(raised(-math.expm1(eps - limit), 16, 2 + limit + eps), 1.0)
    log_w = _best_log_w(alpha, limit, eps)
    return min(float(_dual(alpha, limit, eps, np.array([log_w]))[0]), _without_multiplier(alpha, limit, eps), 1.0)


def _without_multiplier(alpha: float, limit: float, eps: float) -> float:
    """w = 0: Prop. cdp2adp, kappa(c) e^(c (D - eps))."""
    c = alpha - 1
    log = c * (limit - eps) - math.log(alpha) - c * math.log1p(1 / c)
    return math.exp(min(raised(log, 16, 4 + c * (limit + eps) + abs(log)), 0.0)) + SMALLEST


def _lower(alpha: float, limit: float, eps: float) -> float:
    """The best pair found on two points; maximising over q is a concave problem, so a narrowing grid finds it."""
    if limit == 0:
        return 0.0
    if _sure(alpha, limit, eps):
        return max(lowered(-math.expm1(eps - limit), 16, 2 + limit + eps), 0.0)
    # without the second term of the constraint p - e^eps q would peak here
    peak = min((alpha - 1) * limit - alpha * eps + alpha * math.log1p(-1 / alpha), 0.0)
    low, high, best = max(-690.0, peak - 80.0), -1e-9, 0.0
    for _ in range(9):
        log_q = np.linspace(low, high, 25)
        under_q = raised(np.exp(np.minimum(eps + log_q, 700.0)), 8 * (2 + eps))
        value = _largest_p(alpha, limit, log_q) - under_q
        at = int(np.argmax(value))
        best = max(best, float(value[at]))
        low, high = float(log_q[max(at - 1, 0)]), float(log_q[min(at + 1, 24)])
    return lowered(best, 8)


def _best_log_w(alpha: float, limit: float, eps: float) -> float:
    """The multiplier with the least bound: a search, no bound depends on its success."""
    low, high = -745.0, 60.0
    for _ in range(12):
        grid = np.linspace(low, high, 65)
        at = int(np.argmin(_dual(alpha, limit, eps, grid)))
        low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, 64)])
    return 0.5 * (low + high)


def _touching(alpha: float, eps: float, log_w: Real) -> tuple[Real, Real]:
    """log x1 and log x2."""
    c = alpha - 1
    log_share = log_w - np.logaddexp(0.0, log_w)  # w/(1+w)
    # 1 + w - w s = 1 + w (1 - s), s = (w/(1+w))^(1/c)
    log_bracket = np.logaddexp(0.0, log_w + np.log(-np.expm1(np.minimum(log_share / c, -1e-300))))
    log_x2 = eps + math.log1p(1 / c) - log_bracket
    return log_x2 + log_share / c, log_x2


def _dual(alpha: float, limit: float, eps: float, log_w: Real) -> Real:
    """lambda M + nu, rounded up.

    lambda is raised by more than its rounding, so both conditions on nu hold with room, and nu = -w (1 - x1 c/alpha) is
    taken where they are equal. lambda + nu = w/alpha [(e^(cL) - 1 - cL) + c (e^-L - 1 + L)], L = -log x1, does not
    cancel where the divergence is small.
    """
    c, wish = alpha - 1, (alpha - 1) * limit
    log_x1, log_x2 = _touching(alpha, eps, log_w)
    wobble = 8 * UNIT * (4 + eps + np.abs(log_x2) + (np.abs(log_w) + 4) / c)  # absolute error of log x1, log x2
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        log_lam, fall, w = log_w - math.log(alpha) - c * log_x1, -log_x1, np.exp(log_w)
        extra = np.expm1((c + 1) * wobble + 8 * UNIT * (1 + np.abs(log_lam) + wish))
        lam_m = np.exp(log_lam + wish)
        near = c * fall < 30.0
        tilt = exp_minus_1_minus(np.where(near, c * fall, 0.0)) + c * exp_minus_1_minus(-np.where(near, fall, 0.0))
        rising = np.exp(log_lam + wish + math.log(-math.expm1(-wish))) + w / alpha * tilt
        value = np.where(near, rising, lam_m - w * (1 - np.exp(log_x1) * c / alpha))
        # d(tilt)/dL = c (e^(cL) - e^-L)
        moved = w / alpha * c * np.abs(np.exp(c * np.where(near, fall, 0.0)) - np.exp(-fall)) * wobble
        size = w * (1 + np.abs(tilt) / alpha) * np.where(near, np.abs(tilt), 1.0)
        value = raised(value + lam_m * extra + moved, 16, size)
    bad = np.isnan(value) | (log_x1 >= log_x2) | (log_w < -700) | (log_lam + wish < -700)
    return np.asarray(np.where(bad, np.inf, np.maximum(value, SMALLEST)))


def _largest_p(alpha: float, limit: float, log_q: Real) -> Real:
    """A large p >= q that certainly satisfies the constraint, by halving in log p: the moment rises in p >= q."""
    most = (alpha - 1) * limit
    wish = lowered(most, 8, alpha * (2 + np.abs(log_q)) + most)
    log_rest_q = np.log(-np.expm1(log_q))
    low, high = log_q.copy(), np.zeros_like(log_q)
    for _ in range(60):
        middle = 0.5 * (low + high)
        rest = np.log(-np.expm1(np.minimum(middle, -1e-300)))
        moment = np.logaddexp(alpha * middle + (1 - alpha) * log_q, alpha * rest + (1 - alpha) * log_rest_q)
        fits = moment <= wish
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.asarray(lowered(np.exp(low), 8))
