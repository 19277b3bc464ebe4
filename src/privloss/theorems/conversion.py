"""From one notion of privacy to another: pure, concentrated, Renyi and approximate DP.

>>> zcdp_to_epsilon(0.5, delta=1e-6, form="simple"), zcdp_to_epsilon(0.5, delta=1e-6)
(5.7565217697569..., 5.22153444...)
>>> pure_to_zcdp(0.1)
0.005000000000000...

Every result is rounded to the safe side: epsilon, delta and divergences up, a sufficient rho down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privloss.answers import moments
from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.numerics.arrays import numbers, plain, together
from privloss.numerics.contour.transform import log_kappa
from privloss.numerics.floats import SMALLEST, Real, raised, rounded_down, rounded_up
from privloss.numerics.stable import exp_minus_1_minus
from privloss.theorems import optimal_conversion

FORMS = ("infimum", "simple")
RENYI_FORMS = ("optimal", "infimum", "simple")
_ROUNDED = 1e-12  # by what a mean may exceed its bound, where it was computed in floating point
_TRIED = 3  # orders on which the optimal conversion is tried: those where the infimum is best


# -- concentrated to approximate DP ------------------------------------------------------------------------------------


def zcdp_to_epsilon(rho: Any, *, delta: Any, form: str = "infimum") -> Any:
    """Prop. cdp2adp: the infimum over t, or (`form="simple"`) rho + 2 sqrt(rho log(1/delta))."""
    check.choice("form", form, FORMS)
    rhos, deltas = numbers("rho", rho, low=0), numbers("delta", delta, low=0, high=1, above=True)
    if form == "simple":
        return plain(rounded_up(rhos + 2 * np.sqrt(-rhos * np.log(deltas)), 8))
    return _each(
        lambda r, d: max(moments.epsilon_upper(_parabola(r), None, math.log(d)), 0.0) if r else 0.0, rhos, deltas
    )


def zcdp_to_delta(rho: Any, *, epsilon: Any, form: str = "infimum") -> Any:
    """Prop. cdp2adp: the infimum over t, or exp(-(epsilon - rho)^2 / 4 rho), which needs epsilon >= rho."""
    check.choice("form", form, FORMS)
    rhos, eps = numbers("rho", rho, low=0), numbers("epsilon", epsilon, low=0)
    if np.any(eps < rhos):
        raise InvalidInput(f"epsilon = {epsilon!r}: must be at least rho = {rho!r} (Prop. cdp2adp).")
    if form == "infimum":
        return _each(lambda r, e: _exp_up(moments.log_delta_upper(_parabola(r), None, e)), rhos, eps)
    exponent = (eps - rhos) ** 2 / (4 * np.maximum(rhos, 1e-300))
    bound = raised(np.exp(-rounded_down(exponent, 8)), 4) + SMALLEST
    return plain(np.where(rhos > 0, np.minimum(bound, 1.0), np.where(eps > 0, 0.0, 1.0)))


def moments_to_delta(log_mgf: float, *, t: float, epsilon: float) -> float:
    """First half of Prop. cdp2adp: delta from a bound on log E[e^(tZ)] at one t > 0."""
    k, c = check.number("log_mgf", log_mgf), check.number("t", t, low=0, above=True)
    eps = check.number("epsilon", epsilon, low=0)
    return _exp_up(moments.log_delta_upper(lambda _: np.array([k]), np.array([c]), eps))


def _parabola(rho: float) -> Callable[[Real], Real]:
    return lambda t: np.asarray(raised(t * (t + 1) * rho, 4))


@dataclass(frozen=True)
class SufficientRho:
    """Rem. rho: what concentrated DP suffices for (epsilon, delta)-DP, and two simpler expressions around it."""

    lower: float  # eps^2 / (4 log(1/delta) + 4 eps), also sufficient
    rho: float  # (sqrt(log(1/delta) + eps) - sqrt(log(1/delta)))^2
    upper: float  # eps^2 / (4 log(1/delta)), not sufficient


def sufficient_rho(epsilon: float, delta: float) -> SufficientRho:
    """The three expressions of Rem. rho; `lower` and `rho` are rounded down, `upper` up."""
    eps = check.number("epsilon", epsilon, low=0, high=1e150)
    log = -math.log(check.number("delta", delta, low=0, high=1, above=True))
    # (sqrt(a+e) - sqrt(a))^2 = e^2 / (sqrt(a+e) + sqrt(a))^2, without cancellation
    root = (eps / (math.sqrt(log + eps) + math.sqrt(log))) ** 2 if eps > 0 else 0.0
    low = eps**2 / (4 * log + 4 * eps) if eps > 0 else 0.0
    high = eps**2 / (4 * log) if log > 0 else math.inf if eps > 0 else 0.0
    return SufficientRho(*(float(v) for v in (rounded_down(low, 8), rounded_down(root, 8), rounded_up(high, 8))))


def sufficient_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """End of Rem. rho: sigma^2 = 2 (log(1/delta) + epsilon) / epsilon^2 times the squared sensitivity suffices."""
    width = check.number("sensitivity", sensitivity, low=0)
    eps = check.number("epsilon", epsilon, low=0, high=1e150, above=True)
    log = -math.log(check.number("delta", delta, low=0, high=1, above=True))
    return float(rounded_up(width * math.sqrt(2 * (log + eps)) / eps, 8)) if width > 0 else 0.0


# -- pure to concentrated DP -------------------------------------------------------------------------------------------


def gaussian_zcdp(sensitivity: Any, sigma: Any) -> Any:
    """Lem. gauss_cdp: rho = sensitivity^2 / (2 sigma^2)."""
    width, noise = numbers("sensitivity", sensitivity, low=0), numbers("sigma", sigma, low=0, above=True)
    return plain(rounded_up((width / noise) ** 2 / 2, 4))


def pure_to_zcdp(epsilon: Any) -> Any:
    """Prop. pdp2cdp: epsilon-DP implies epsilon^2/2-zCDP."""
    return plain(rounded_up(numbers("epsilon", epsilon, low=0) ** 2 / 2, 2))


def pure_to_zcdp_exact(epsilon: Any) -> Any:
    """The least rho that epsilon-DP implies, epsilon tanh(epsilon/2): the KL divergence of randomised response.

    With s = 2t+1 and a = epsilon/2 its K(t) = log cosh(sa) - log cosh(a), and t(t+1) = (s^2 - 1)/4. log cosh(a sqrt v)
    is concave in v = s^2 (tanh(x)/x falls), so K lies below its tangent at v = 1, which is t(t+1) 2a tanh(a); and no
    epsilon-DP pair has larger moments (Cor. kov).
    """
    eps = numbers("epsilon", epsilon, low=0)
    return plain(rounded_up(eps * np.tanh(eps / 2), 8))


def laplace_zcdp(epsilon: Any) -> Any:
    """The least rho of Laplace noise with sensitivity/scale = epsilon: its KL divergence, epsilon + e^-epsilon - 1.

    t(t+1) rho - K(t) is 0 at epsilon = 0 and its derivative in epsilon has the sign of
    (1-r)((m+1)/2 + (m-1)/2 r^m) - 1 + r^m, r = e^-epsilon, m = 2t+1. That vanishes at r = 1 together with its
    derivative, and is convex in r: its second derivative is m (m-1) r^(m-2) (1-r) (m+1)/2 >= 0.
    """
    eps = numbers("epsilon", epsilon, low=0)
    # e^-x - 1 + x without cancellation
    return plain(rounded_up(exp_minus_1_minus(-eps), 16))


def range_to_renyi(alpha: Any, forth: Any, back: Any) -> Any:
    """Lem. rdp_properties, part 5: D_alpha <= alpha/8 (D_inf(P||Q) + D_inf(Q||P))^2, for any two such bounds."""
    orders, a = numbers("alpha", alpha, low=1), numbers("forth", forth, low=0)
    return plain(rounded_up(orders / 8 * (a + numbers("back", back, low=0)) ** 2, 8))


def randomized_response_renyi(alpha: Any, epsilon: Any) -> Any:
    """The largest D_alpha of any epsilon-DP mechanism, attained by randomised response; alpha = 1 gives KL.

    With cosh A - cosh B = 2 sinh((A+B)/2) sinh((A-B)/2) the ratio of the moments needs no difference of large numbers:
    D_alpha = log(1 + 2 sinh(alpha eps/2) sinh((alpha-1) eps/2) / cosh(eps/2)) / (alpha - 1).
    """
    orders, eps = together(alpha=numbers("alpha", alpha, low=1), epsilon=numbers("epsilon", epsilon, low=0))
    c = np.maximum(orders - 1, 1e-300)
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.log1p(2 * np.sinh(orders * eps / 2) * np.sinh((orders - 1) * eps / 2) / np.cosh(eps / 2)) / c
    # far out: log(e^(alpha eps) + e^((1-alpha) eps)) - log(1 + e^eps)
    far = (np.logaddexp(orders * eps, (1 - orders) * eps) - np.logaddexp(0.0, eps)) / c
    value = np.where(orders == 1, eps * np.tanh(eps / 2), np.where(orders * eps < 300, near, far))
    # sinh of a large argument carries the rounding of the argument
    roundings = 16 + orders * eps + 2 * np.where(orders * eps < 300, 0.0, orders / c)
    return plain(np.minimum(rounded_up(value, roundings), eps))


def hoeffding_log_mgf(t: Any, mean: Any, bound: Any) -> Any:
    """Lem. hoeffding: log E[e^(tZ)] <= t E[Z] + t^2 bound^2 / 2 for |Z| <= bound (so that |E[Z]| <= bound)."""
    at, centre, width = together(t=numbers("t", t), mean=numbers("mean", mean), bound=numbers("bound", bound, low=0))
    if np.any(np.abs(centre) > width * (1 + _ROUNDED)):
        raise InvalidInput(f"mean = {mean!r}: must be at most bound = {bound!r} in size, as |Z| is (Lem. hoeffding).")
    value = at * centre + (at * width) ** 2 / 2
    return plain(raised(value, 8, np.abs(at * centre) + (at * width) ** 2))


# -- Renyi to approximate DP -------------------------------------------------------------------------------------------


def renyi_to_delta(alpha: Any, divergence: Any, *, epsilon: float, form: str = "optimal") -> float:
    """The least delta over the orders given.

    `simple`: e^(-(alpha-1)(epsilon - D)); `infimum`: Lem. rdp_properties, part 8; `optimal`: no better conversion from
    one order exists (Asoodeh, Liao, Calmon, Kosut, Sankar 2020), see `optimal_conversion`.
    """
    check.choice("form", form, RENYI_FORMS)
    orders, values = _curve(alpha, divergence)
    eps, c = check.number("epsilon", epsilon, low=0), orders - 1
    if form == "simple":
        logs = raised(c * (values - eps), 8, c * (values + eps))
        return min(_exp_up(float(np.min(logs))), 1.0)
    infimum = _exp_up(moments.log_delta_upper(_table(orders, values), c, eps))
    if form == "infimum":
        return infimum
    best = np.argsort(c * (values - eps) + log_kappa(c))[:_TRIED]
    return min([infimum, *(optimal_conversion.delta(orders[i], values[i], eps).upper for i in best)])


def renyi_to_epsilon(alpha: Any, divergence: Any, *, delta: float, form: str = "optimal") -> float:
    """The least epsilon over the orders given; forms as in `renyi_to_delta`."""
    check.choice("form", form, RENYI_FORMS)
    orders, values = _curve(alpha, divergence)
    target, c = check.number("delta", delta, low=0, high=1, above=True), orders - 1
    if form == "simple":
        return max(float(rounded_up(np.min(values - math.log(target) / c), 8)), 0.0)
    infimum = max(moments.epsilon_upper(_table(orders, values), c, math.log(target)), 0.0)
    if form == "infimum":
        return infimum
    best = np.argsort(values + (log_kappa(c) - math.log(target)) / c)[:_TRIED]  # every order is valid
    return min([infimum, *(optimal_conversion.epsilon_upper(orders[i], values[i], target) for i in best)])


def _table(orders: Real, values: Real) -> Callable[[Real], Real]:
    return lambda _: np.asarray(raised((orders - 1) * values, 4))


def _curve(alpha: Any, divergence: Any) -> tuple[Real, Real]:
    orders = np.atleast_1d(numbers("alpha", alpha, low=1, above=True))
    values = np.atleast_1d(numbers("divergence", divergence, low=0))
    if orders.shape != values.shape:
        raise InvalidInput(f"alpha has {len(orders)} entries, divergence {len(values)}: must be equally many.")
    return orders, values


def _each(answer: Callable[[float, float], float], a: Real, b: Real) -> Any:
    first, second = together(first=a, second=b)
    found = [answer(float(x), float(y)) for x, y in zip(first.ravel(), second.ravel(), strict=True)]
    return plain(np.array(found).reshape(first.shape))


def _exp_up(log: float) -> float:
    return min(raised(math.exp(min(log, 0.0)), 4 * (1 + abs(log))) + SMALLEST, 1.0)
