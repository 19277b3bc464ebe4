"""Privacy amplification by subsampling, theorem by theorem (Poisson sampling, add or remove one record).

>>> approx(1.0, 1e-6, rate=0.01)
(0.0170368632..., 1.0...e-08)
>>> round(renyi_poisson(8, 0.05, lambda alpha: 0.5 * alpha), 6)      # the chapter's second figure at alpha = 8
0.601269

For a Gaussian the exact divergence at every order, fractional ones too, is `plan.rdp(alpha)`. All results are rounded
up. `pipelines` puts them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privloss.errors import InvalidInput
from privloss.losses.curve import fixed_size_divergence, poisson_divergence
from privloss.losses.samplers.draws import binomial_tail, box_height
from privloss.numerics import check
from privloss.numerics.arrays import numbers, plain, together
from privloss.numerics.floats import padded_down, raised, rounded_down, rounded_up
from privloss.theorems import group

Curve = Callable[[float], float]  # Renyi divergence of the mechanism itself, both directions, by order
_LARGEST_ORDER = 100_000
_LARGEST_RATE = -math.expm1(-1.0)  # 1 - 1/e


def approx(epsilon: Any, delta: Any, rate: Any) -> tuple[Any, Any]:
    """Thm. subsampling_adp: (log(1 + p (e^eps - 1)), p delta). Fixed-size samples too, under replacement."""
    eps, slack, p = together(
        epsilon=numbers("epsilon", epsilon, low=0),
        delta=numbers("delta", delta, low=0, high=1),
        rate=numbers("rate", rate, low=0, high=1),
    )
    with np.errstate(over="ignore", divide="ignore"):
        near = np.log1p(p * np.expm1(np.minimum(eps, 600.0)))
        far = np.logaddexp(np.log1p(-p), eps + np.log(p))
        far = raised(far, 8, 1 + eps - np.log(np.maximum(p, 1e-320)))
    value = np.where(eps <= 600, near, np.where(p == 0, 0.0, far))
    return plain(np.where(p == 1, eps, rounded_up(value, 8))), plain(np.where(p == 1, slack, rounded_up(p * slack, 1)))


def with_replacement(epsilon: float, profile: Callable[[int], float], people: int, draws: int) -> tuple[float, float]:
    """m independent draws out of n people, under replacement of one (Balle, Barthe, Gaboardi 2018, Thm. 10):

    (log(1 + q (e^eps - 1)), sum over k = 1..m of C(m,k) (1/n)^k (1-1/n)^(m-k) delta_k(eps)), q = 1 - (1-1/n)^m.
    `profile(k)` is delta_k(epsilon), what holds for a group of k people; `box_profile` has it for an (eps, delta) box.
    Plans do this by themselves.
    """
    eps, n, m = check.number("epsilon", epsilon, low=0), check.count("people", people), check.count("draws", draws)
    if not callable(profile):
        raise InvalidInput(f"profile = {profile!r}: must be a function of the number of people.")
    weights, rest = binomial_tail(m, 1 / n)
    deltas = [check.number(f"profile({k})", profile(k), low=0, high=1) for k in range(1, len(weights) + 1)]
    total = math.fsum([*(w * d for w, d in zip(weights, deltas, strict=True)), rest])
    hit = min(math.fsum([*weights, rest]), 1.0)
    return float(approx(eps, 0.0, hit)[0]), min(float(rounded_up(total, 4)), 1.0)


def box_profile(box_epsilon: float, box_delta: float, people: int, epsilon: float) -> float:
    """The largest delta(epsilon) between two datasets that differ in k people, for an (eps0, delta0)-DP mechanism:
    d + (1-d) (e^(k eps0) - e^eps)_+ / (e^(k eps0) + 1), d of the group (sec. addremovereplace; Cor. kov)."""
    eps = check.number("epsilon", epsilon, low=0)
    return box_height(*group.approx(box_epsilon, box_delta, people), eps)


def approx_attained(epsilon: float, rate: float) -> tuple[list[float], list[float]]:
    """The pair that shows Thm. subsampling_adp to be tight: randomised response on "is any sampled bit set?".

    Distributions of the answers (1, 0) on (1,0,...,0) and (0,...,0); the loss of answer 1 is log(1 + p (e^eps - 1)).
    """
    eps, p = check.number("epsilon", epsilon, low=0), check.number("rate", rate, low=0, high=1)
    likely, rare = 1 / (1 + math.exp(-eps)), math.exp(-eps) / (1 + math.exp(-eps))
    return [p * likely + (1 - p) * rare, p * rare + (1 - p) * likely], [rare, likely]


def renyi_poisson(alpha: float, rate: float, curve: Curve) -> float:
    """Thm. rdp_subsampling: tight for every mechanism whose curve is attained by one pair.

    Between whole orders the chord: (alpha - 1) D_alpha = log E[e^((alpha-1) Z)] is convex in alpha and 0 at 1
    (Hoelder), so it lies below the chord of its neighbours, which is below the next value (monotonicity).
    """
    wish = check.number("alpha", alpha, low=1, high=_LARGEST_ORDER, above=True)
    p = check.number("rate", rate, low=0, high=1)
    order = max(math.ceil(wish), 2)
    values = {k: _divergence(curve, k) for k in range(2, order + 1)}
    if p == 0:
        return 0.0

    def at(k: int) -> float:
        return float(rounded_up(values[k], 4)) if p == 1 else poisson_divergence(k, p, curve)

    return _with_chords(wish, at)


def _with_chords(alpha: float, at: Callable[[int], float]) -> float:
    """A bound at any order from bounds at whole orders."""
    order = max(math.ceil(alpha), 2)
    above = at(order)
    if order in (alpha, 2):  # below 2 the chord from 0 is D_2 itself
        return above
    below, share = at(order - 1), order - alpha
    chord = (share * (order - 2) * below + (1 - share) * (order - 1) * above) / (alpha - 1)
    return min(float(rounded_up(chord, 16)), above)


def renyi_fixed_size(alpha: float, rate: float, curve: Curve, largest: float = math.inf) -> float:
    """Batches of fixed size under replace-one (Wang, Balle, Kasiviswanathan 2019, Thm. 9; the formula stands in
    `losses.curve.fixed_size_divergence`), from the curve of the mechanism under replace-one and its largest loss.

    Between whole orders the chord, as in `renyi_poisson`. Plans of a pair that is known use the symmetric pair instead,
    which is sharper (docs/samplers.md); boxes of which only a Renyi curve is known use this.
    """
    wish = check.number("alpha", alpha, low=1, high=_LARGEST_ORDER, above=True)
    p = check.number("rate", rate, low=0, high=1)
    top = math.inf if largest == math.inf else check.number("largest", largest, low=0)
    order = max(math.ceil(wish), 2)
    values = {j: _divergence(curve, j) for j in range(2, order + 1)}
    if p == 0:
        return 0.0
    return _with_chords(wish, lambda k: fixed_size_divergence(k, p, values.__getitem__, top))


def _divergence(curve: Curve, order: float) -> float:
    if not callable(curve):
        raise InvalidInput(f"curve = {curve!r}: must be a function of the order.")
    value = float(curve(order))
    if not value >= 0:
        raise InvalidInput(f"curve({order}) = {value!r}: a Renyi divergence must be at least 0.")
    return value


def _log_expm1(x: Any) -> Any:
    """log(e^x - 1) for x >= 0, without overflow; -inf at 0."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(x > 40, x, np.log(np.expm1(np.minimum(x, 50.0))))


def renyi_floor(alpha: float, rate: float, divergence: float) -> float:
    """What no analysis can beat: D_alpha(pP + (1-p)Q || Q) >= D_alpha(P||Q) - alpha/(alpha-1) log(1/p), and >= 0."""
    order, p, d = _three(alpha, rate, divergence)
    return max(padded_down(d + order / (order - 1) * math.log(p), 1e-14, 1 + d), 0.0) if p > 0 else 0.0


def flip_weight(alpha: float, rate: float) -> float:
    """lambda = (2 alpha - 1) p / ((2 alpha - 1) p + 3 (1 - p)) of Thm. rdp_ss_flip."""
    order, p, _ = _three(alpha, rate, 0.0)
    return (2 * order - 1) * p / _flip_total(order, p)


def _flip_total(order: float, p: float) -> float:
    return (2 * order - 1) * p + 3 * (1 - p)


def renyi_flip(alpha: float, rate: float, forth: float, back: float) -> float:
    """Thm. rdp_ss_flip: a bound on D_alpha(Q || pP + (1-p)Q) from the other side of the neighbouring relation.

    `forth` bounds D_alpha(pP + (1-p)Q || Q), `back` bounds D_alpha(pQ + (1-p)P || P); the larger is never exceeded. For
    every alpha > 1: `inequalities` has the proof for 1 < alpha < 2, which the printed one leaves out.
    """
    order, p, a = _three(alpha, rate, forth)
    b = check.number("back", back, low=0)
    other = 3 * (1 - p) / _flip_total(order, p)  # 1 - lambda, without cancellation
    value = float(group.log_mean(order - 1, a, b, other, flip_weight(alpha, rate)))
    return min(float(rounded_up(max(value, 0.0), 32)), max(a, b))


def renyi_analytic(alpha: float, rate: float, curve: Curve, *, omega: float | None = None) -> float:
    """Prop. divergence_subsampling_analytic, first form, at `omega` or at the best of many; needs p <= 1 - 1/e.

    log(1 + e/2 alpha (alpha-1) p^2 (e^D_2 - 1) + ((alpha-1) p)^omega e^((omega-1) D_omega)) / (alpha - 1).
    """
    order = check.number("alpha", alpha, low=1, above=True)
    p = check.number("rate", rate, low=0, high=1)
    if p > _LARGEST_RATE:
        raise InvalidInput(
            f"rate = {rate!r}: must be at most 1 - 1/e = 0.632... (Prop. divergence_subsampling_analytic)."
        )
    if p == 0:
        return 0.0
    second = math.log(math.e / 2 * order * (order - 1)) + 2 * math.log(p) + float(_log_expm1(_divergence(curve, 2.0)))

    def value(w: float) -> float:
        d = _divergence(curve, w)
        third = w * math.log((order - 1) * p) + (w - 1) * d
        size = 4 + w * abs(math.log((order - 1) * p)) + (w - 1) * d + (abs(second) if math.isfinite(second) else 0.0)
        excess = raised(float(np.logaddexp(second, third)), 32, size)
        return float(np.logaddexp(0.0, excess)) / (order - 1)

    if omega is not None:
        return float(rounded_up(value(check.number("omega", omega, low=order)), 4))
    low, high, best = math.log(order), math.log(order) + 12.0, math.inf
    for _ in range(3):
        grid = np.linspace(low, high, 49)
        found = [value(max(math.exp(x), order)) for x in grid]
        at = int(np.argmin(found))
        best = min(best, found[at])
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, 48)]
    return float(rounded_up(best, 4))


def renyi_analytic_simple(alpha: float, rate: float, curve: Curve, *, omega: float) -> float:
    """The second form of the same proposition: alpha e/2 p^2 (e^D_2 - 1) + p ((alpha-1) p e^D_omega)^(omega-1)."""
    order, w = check.number("alpha", alpha, low=1, above=True), check.number("omega", omega, low=float(alpha))
    p = check.number("rate", rate, low=0, high=_LARGEST_RATE)
    with np.errstate(over="ignore"):
        rare = p * np.exp((w - 1) * (math.log((order - 1) * p) + _divergence(curve, w))) if p > 0 else 0.0
        second = p * p * np.expm1(_divergence(curve, 2.0)) if p * p > 0 else math.inf if p > 0 else 0.0
        return float(rounded_up(order * math.e / 2 * second + rare, 64 + 8 * w))


def renyi_jensen(alpha: Any, rate: Any, divergence: Any) -> Any:
    """Prop. rdp_subsampling_jensen: alpha/(alpha-1) log(1 - p + p e^((1-1/alpha) D)); sharp for large orders."""
    order, p, d = together(
        alpha=numbers("alpha", alpha, low=1, above=True),
        rate=numbers("rate", rate, low=0, high=1),
        divergence=numbers("divergence", divergence, low=0),
    )
    share = (order - 1) / order * d
    with np.errstate(over="ignore", divide="ignore"):
        # 1 - p + p e^u <= p e^u (1 + e^-u (1-p)/p) beyond 600, the last factor is 1 to rounding
        far = (
            share
            + np.log(p)
            + np.where(p > 0, np.exp(-np.minimum(share, 700.0)) * (1 - p) / np.maximum(p, 1e-300), 0.0)
        )
        value = np.where(share <= 600, np.log1p(p * np.expm1(np.minimum(share, 600.0))), far)
    return plain(np.where(p == 0, 0.0, np.where(p == 1, d, rounded_up(order / (order - 1) * value, 16))))


def zcdp_poisson(alpha: float, rate: float, rho: float) -> float:
    """Thm. rdp_subsampling_asymptotic: 10 p^2 rho alpha, refused where a condition of the theorem fails."""
    order, p = check.number("alpha", alpha, low=1, above=True), check.number("rate", rate, low=0, high=0.5)
    r = check.number("rho", rho, low=0, high=1, above=True)
    if p == 0:
        return 0.0
    omega = min(-math.log(p) / (4 * r), 1 + p**-0.25)
    least = 3 + 2 * math.log(1 / r) / -math.log(p)
    if not float(rounded_down(omega, 16)) >= least:
        raise InvalidInput(
            f"rate = {rate!r}, rho = {rho!r}: omega = min(log(1/p)/(4 rho), 1 + p^(-1/4)) = {omega:g} must be at least "
            f"3 + 2 log(1/rho)/log(1/p) = {least:g} (Thm. rdp_subsampling_asymptotic)."
        )
    if not order < omega:
        raise InvalidInput(f"alpha = {alpha!r}: must be below omega = {omega:g} (Thm. rdp_subsampling_asymptotic).")
    return float(rounded_up(10 * p * p * r * order, 8))


def _three(alpha: float, rate: float, divergence: float) -> tuple[float, float, float]:
    return (
        check.number("alpha", alpha, low=1, above=True),
        check.number("rate", rate, low=0, high=1),
        check.number("divergence", divergence, low=0),
    )
