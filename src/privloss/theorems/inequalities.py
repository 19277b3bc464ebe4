"""The elementary inequalities behind amplification for Renyi divergences, as numbers: both sides, left <= right.

>>> frac(0.5, 3.0)
Sides(left=1.5, right=2.0)
>>> taylor(2.0, 0.5, 2.0)
Sides(left=2.25, right=2.67...)

Each refuses arguments outside its hypotheses. `flip` is the convexity that Thm. rdp_ss_flip rests on, for every
alpha > 1; the printed proof raises Lem. frac to the power alpha - 2 and so covers alpha >= 2 only. For 1 < alpha < 2:

Let u = 1-p+px, w = 1-p+p/x, b = 2 - alpha in (0, 1), v = 2 alpha - 1, lambda = vp/(vp + 3(1-p)). The second derivative
of f is alpha (alpha-1) p^2 u^(-alpha-1) (A + B - 1) with A = (1-lambda) u^v, B = lambda (u/x)^3 (uw)^(-b), and
uw = 1 + p(1-p)(x-1)^2/x >= 1.

*x >= 1.* Bernoulli: u^v >= 1 + vp(x-1), so (1-lambda)(u^v - 1) >= lambda 3(1-p)(x-1). Both factors of B/lambda lie in
[0, 1], u/x = 1 - (1-p)(x-1)/x; hence 1 - B/lambda <= (1 - (u/x)^3) + (1 - (uw)^-b) <= 3(1-p)(x-1)/x + b p(1-p)(x-1)^2/x
= (1-p)(x-1)/x (3 + bp(x-1)) <= 3(1-p)(x-1), as bp <= 3. Together A + B >= 1.

*x < 1.* By the weighted mean inequality log(A/(1-lambda)) (1-lambda) + log(B/lambda) lambda >= 0 suffices. Divided by
v/(vp + 3(1-p)) it is g(x) = 3 (log u - p log x) - p b log(uw) >= 0. g(1) = 0, and
g'(x) = -p(1-p)(1-x)/(ux) (3 - p b (1+x)/(xw)) <= 0, since xw = p + (1-p)x and 3p + 3(1-p)x >= pb(1+x): linear in x,
true at 0 (b <= 3) and at 1 (2pb <= 3). So g >= 0 on (0, 1), and f is convex for every alpha > 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from privloss.errors import InvalidInput
from privloss.numerics import check

_LARGEST_RATE = -math.expm1(-1.0)  # 1 - 1/e


class Sides(NamedTuple):
    """left <= right."""

    left: float
    right: float


def frac(rate: float, x: float) -> Sides:
    """Lem. frac: 1/(1-p+p/x) <= 1-p+px for x > 0."""
    p, at = _rate(rate), _positive(x)
    return Sides(1 / (1 - p + p / at), 1 - p + p * at)


def wtf(v: float, rate: float, x: float) -> Sides:
    """Lem. wtf: 3(1-p) + vp <= 3(1-p)(1-p+px)^v + vp((1-p)/x + p)^3 for v >= 1, x > 0."""
    power, p, at = check.number("v", v, low=1), _rate(rate), _positive(x)
    right = 3 * (1 - p) * (1 - p + p * at) ** power + power * p * ((1 - p) / at + p) ** 3
    return Sides(3 * (1 - p) + power * p, right)


def flip(alpha: float, rate: float, x: float) -> Sides:
    """1 <= (1-lambda) u^(2 alpha - 1) + lambda (u/x)^3 (uw)^(alpha-2): the convexity behind Thm. rdp_ss_flip."""
    order, p, at = check.number("alpha", alpha, low=1, above=True), _rate(rate), _positive(x)
    v, u, w = 2 * order - 1, 1 - p + p * at, 1 - p + p / at
    total = v * p + 3 * (1 - p)
    return Sides(1.0, 3 * (1 - p) / total * u**v + v * p / total * (u / at) ** 3 * (u * w) ** (order - 2))


def taylor(alpha: float, rate: float, x: float) -> Sides:
    """Lem. taylor: (1-p+px)^alpha <= 1 + alpha p (x-1) + e/2 alpha (alpha-1) p^2 (x-1)^2, for p <= 1 - 1/e and
    alpha <= 2 or px <= max(p, (1-p)/(alpha-2))."""
    order, p, at = _order_rate_place(alpha, rate, x)
    if order > 2 and p * at > max(p, (1 - p) / (order - 2)) * (1 + 1e-15):
        raise InvalidInput(
            f"x = {x!r}: rate * x must be at most max(rate, (1 - rate)/(alpha - 2)) = "
            f"{max(p, (1 - p) / (order - 2)):g} where alpha > 2 (Lem. taylor)."
        )
    return Sides((1 - p + p * at) ** order, _second_order(order, p, at))


def taylor_high(alpha: float, omega: float, rate: float, x: float) -> Sides:
    """Lem. taylor_high: the same for all x >= 0 with ((alpha-1) p x)^omega more, omega >= alpha."""
    order, p, at = _order_rate_place(alpha, rate, x)
    w = check.number("omega", omega, low=order)
    return Sides((1 - p + p * at) ** order, _second_order(order, p, at) + ((order - 1) * p * at) ** w)


def _second_order(order: float, p: float, x: float) -> float:
    return 1 + order * p * (x - 1) + math.e / 2 * order * (order - 1) * p**2 * (x - 1) ** 2


def _order_rate_place(alpha: float, rate: float, x: float) -> tuple[float, float, float]:
    order = check.number("alpha", alpha, low=1, above=True)
    p = check.number("rate", rate, low=0, high=1)
    if p > _LARGEST_RATE:
        raise InvalidInput(f"rate = {rate!r}: must be at most 1 - 1/e = 0.632... (Lem. taylor).")
    return order, p, check.number("x", x, low=0)


def _rate(rate: float) -> float:
    return check.number("rate", rate, low=0, high=1)


def _positive(x: float) -> float:
    return check.number("x", x, low=0, above=True)
