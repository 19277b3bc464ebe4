"""The chapter's formulas typed again in mpmath: sums, integrals, enumerations, roots. privloss has no part in it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath as mp

M = mp.mpf


def gauss_delta(mu: Any, eps: Any) -> Any:
    mu, eps = M(mu), M(eps)
    return mp.ncdf(mu / 2 - eps / mu) - mp.e**eps * mp.ncdf(-mu / 2 - eps / mu)


def gauss_eps(mu: Any, delta: Any) -> Any:
    """By halving."""
    low, high = M(0), M(200)
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if gauss_delta(mu, middle) > delta else (low, middle)
    return low


def hockey(p: Any, q: Any, eps: Any) -> Any:
    return mp.fsum(max(M(0), M(a) - mp.e ** M(eps) * M(b)) for a, b in zip(p, q, strict=True))


def renyi(p: Any, q: Any, alpha: Any) -> Any:
    a = M(alpha)
    return mp.log(mp.fsum(M(x) ** a * M(y) ** (1 - a) for x, y in zip(p, q, strict=True))) / (a - 1)


def mixed(p: Any, q: Any, rate: Any) -> list[Any]:
    return [M(rate) * M(x) + (1 - M(rate)) * M(y) for x, y in zip(p, q, strict=True)]


def kappa(rho: Any, eps: Any) -> Any:
    """inf over t of exp(t(t+1) rho - eps t) / (t+1) (1 - 1/(t+1))^t, by a root of the derivative of its log."""

    def slope(t: Any) -> Any:
        return (2 * t + 1) * M(rho) - M(eps) + mp.log(t) - mp.log(1 + t)

    t = mp.findroot(slope, (M("0.01"), M(50)), solver="anderson", tol=1e-40)
    return mp.exp(t * (t + 1) * M(rho) - M(eps) * t) / (t + 1) * (1 - 1 / (t + 1)) ** t


def kappa_eps(rho: Any, delta: Any) -> Any:
    low, high = M(rho), M(100)
    for _ in range(130):
        middle = (low + high) / 2
        low, high = (middle, high) if kappa(rho, middle) > M(delta) else (low, middle)
    return low


def poisson_sum(alpha: int, rate: Any, curve: Callable[[Any], Any]) -> Any:
    p = M(rate)
    total = (1 - p) ** (alpha - 1) * (1 + (alpha - 1) * p)
    for k in range(2, alpha + 1):
        total += mp.binomial(alpha, k) * (1 - p) ** (alpha - k) * p**k * mp.exp((k - 1) * curve(M(k)))
    return mp.log(total) / (alpha - 1)


def advanced(eps: Any, delta: Any) -> Any:
    squares = mp.fsum(M(e) ** 2 * n for e, n in eps)
    return squares / 2 + mp.sqrt(2 * mp.log(1 / M(delta)) * squares)


def kov(eps: Any, slack: Any, k: int, target: Any) -> Any:
    e, total = M(eps), M(0)
    for hits in range(k + 1):
        gain = max(M(0), 1 - mp.exp(M(target) - (2 * hits - k) * e))
        total += mp.binomial(k, hits) * mp.exp(hits * e) * gain
    return 1 - (1 - M(slack)) ** k * (1 - total / (1 + mp.exp(e)) ** k)


def fingerprint(f: Any, n: int) -> Any:
    """The integral over p of the expectation over all inputs, by exact polynomial quadrature."""

    def at(p: Any) -> Any:
        first, g = M(0), M(0)
        for x in product((0, 1), repeat=n):
            weight = mp.fprod(p if b else 1 - p for b in x)
            value = M(f[sum(b << i for i, b in enumerate(x))])
            first += weight * (value - p) * (sum(x) - n * p)
            g += weight * (value - M(sum(x)) / n)
        return first + g**2

    return mp.quad(at, [0, 1])


def rr(eps: Any) -> tuple[list[Any], list[Any]]:
    high = mp.e ** M(eps) / (1 + mp.e ** M(eps))
    return [high, 1 - high], [1 - high, high]


def through_boxes(sigma: float, rate: float, steps: int, delta: float) -> Any:
    """Section subsamp_composition, by hand, over the shares of delta that are tried."""
    found = []
    for share in ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.99"):
        first = M(share) * M(delta) / (steps * M(rate))
        eps = mp.log(1 + M(rate) * (mp.e ** gauss_eps(1 / M(sigma), first) - 1))
        found.append(min(steps * eps, advanced([(eps, steps)], M(delta) - steps * M(rate) * first)))
    return min(found)


def taylor_right(a: Any, p: Any, x: Any) -> Any:
    return 1 + M(a) * M(p) * (M(x) - 1) + mp.e / 2 * M(a) * (M(a) - 1) * M(p) ** 2 * (M(x) - 1) ** 2


def analytic(a: Any, p: Any, w: Any, curve: Callable[[Any], Any]) -> Any:
    a, p, w = M(a), M(p), M(w)
    inner = 1 + mp.e / 2 * a * (a - 1) * p**2 * (mp.exp(curve(M(2))) - 1)
    return mp.log(inner + ((a - 1) * p) ** w * mp.exp((w - 1) * curve(w))) / (a - 1)


def wbk(alpha: int, rate: Any, curve: Callable[[Any], Any], top: Any) -> Any:
    p, total = M(rate), M(1)
    for j in range(2, alpha + 1):
        term = p**j * mp.binomial(alpha, j) * mp.exp((j - 1) * curve(M(j))) * min(M(2), (mp.exp(M(top)) - 1) ** j)
        if j == 2:
            term = min(term, p**2 * mp.binomial(alpha, 2) * 4 * (mp.exp(curve(M(2))) - 1))
        total += term
    return mp.log(total) / (alpha - 1)


def half(alpha: Any) -> Any:
    """The curve of 1/2-zCDP."""
    return M(alpha) / 2
