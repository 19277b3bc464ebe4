"""The numbers behind the chapter's two figures, and behind others for what it says without one.

>>> figure = central_limit_figure(counts=(100, 10_000))
>>> [round(figure.curves["proven upper end"][i] * k**0.5, 2) for i, k in enumerate((100, 10_000))]  # like 1/sqrt k
[0.48, 0.47]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privloss.errors import InvalidInput
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.pure_dp import PureDP
from privloss.theorems import central_limit, composition, conversion, pipelines, remarks, subsampling, tracing
from privloss.theorems.gaussian_dp import gaussian_epsilon
from privloss.theorems.pairs.discrete import DiscretePair

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Figure:
    """Curves over a common axis; an entry is nan where a bound does not apply."""

    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    curves: dict[str, tuple[float, ...]]
    log_y: bool = False
    log_x: bool = False

    def rows(self) -> list[list[float]]:
        """The table: x, then one column per curve."""
        return [[x, *(c[i] for c in self.curves.values())] for i, x in enumerate(self.x)]


def _collect(
    x: Sequence[float], each: Callable[[float], dict[str, float]], progress: Progress | None
) -> dict[str, tuple[float, ...]]:
    found = []
    for i, value in enumerate(x):
        found.append(each(value))
        if progress is not None:
            progress(i + 1, len(x))
    return {name: tuple(row[name] for row in found) for name in found[0]}


def composition_figure(
    epsilon: float = 0.1, delta: float = 1e-6, counts: Sequence[int] | None = None, progress: Progress | None = None
) -> Figure:
    """Fig. composition_comparison: k mechanisms, each 0.1-DP, at delta = 1e-6."""
    ks = tuple(counts) if counts is not None else (1, 2, 3, 5, *range(10, 201, 10))
    sigma = math.sqrt(2) / epsilon  # Gaussian noise with the variance of Laplace(1/epsilon)

    def each(k: float) -> dict[str, float]:
        n = int(k)
        rho = composition.zcdp(conversion.pure_to_zcdp(epsilon), count=n)
        return {
            "basic": composition.basic(epsilon, count=n)[0],
            "advanced, 2010 form": composition.advanced_2010(epsilon, delta=delta, count=n),
            "advanced": composition.advanced_pure(epsilon, delta=delta, count=n),
            "CDP": conversion.zcdp_to_epsilon(rho, delta=delta),
            "optimal": composition.optimal_epsilon(epsilon, delta=delta, count=n).upper,
            "exact, Laplace noise": (Laplace(1 / epsilon) * n).epsilon(delta).upper,
            "Gaussian": gaussian_epsilon(delta, sensitivity=math.sqrt(n), sigma=sigma).upper,
        }

    title = f"Composition of k mechanisms, each {epsilon:g}-DP, at delta = {delta:g}"
    return Figure(title, "k", "epsilon", tuple(float(k) for k in ks), _collect(ks, each, progress))


def subsampling_figure(
    rate: float = 0.05, rho: float = 0.5, orders: Sequence[float] | None = None, progress: Progress | None = None
) -> Figure:
    """Fig. rdp_subsampling: 0.5-zCDP on a Poisson sample with p = 0.05."""
    alphas = tuple(orders) if orders is not None else tuple(float(a) for a in np.linspace(1.1, 16, 150).round(6))
    gaussian = Gaussian(sigma=math.sqrt(0.5 / rho)).poisson(rate)

    def curve(alpha: float) -> float:
        return rho * alpha

    def each(alpha: float) -> dict[str, float]:
        return {
            "unamplified": curve(alpha),
            "analytic": subsampling.renyi_analytic(alpha, rate, curve),
            "limit": subsampling.renyi_jensen(alpha, rate, curve(alpha)),
            "theorem and chords": subsampling.renyi_poisson(alpha, rate, curve),
            "exact, Gaussian": gaussian.rdp(alpha).upper,
            "floor": subsampling.renyi_floor(alpha, rate, curve(alpha)) or math.nan,
        }

    title = f"Renyi divergence of {rho:g}-zCDP on a Poisson sample with p = {rate:g}"
    return Figure(title, "order alpha", "divergence", alphas, _collect(alphas, each, progress), log_y=True)


def tracing_figure(
    people: int = 50, dimensions: int = 1000, trials: int = 10_000, fpr: float = 0.05, progress: Progress | None = None
) -> Figure:
    """The tracing attack's power against the accuracy of the mean, and what privacy allows at that accuracy."""
    noises = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.3, 2.0, 4.0)

    def each(sigma: float) -> dict[str, float]:
        found = tracing.attack(people, dimensions, sigma, trials=trials, fpr=fpr, seed=int(1000 * sigma))
        low, high = found.power_interval
        return {
            "measured power": found.power,
            "measured, lower": low,
            "measured, upper": high,
            "allowed by privacy": found.allowed,
            "false positive rate": found.false_positives,
        }

    title = f"Tracing one of {people} people from {dimensions} noisy means, {trials:,} trials"
    curves = _collect(noises, each, progress)
    return Figure(title, "noise per coordinate (root mean square error)", "true positive rate", noises, curves)


def central_limit_figure(
    delta: float = 1e-6, mu: float = 1.0, counts: Sequence[int] | None = None, progress: Progress | None = None
) -> Figure:
    """Why a central limit theorem is not enough: k randomised responses of epsilon mu/sqrt(k), whose loss tends to
    N(mu^2/2, mu^2), at the epsilon where k -> infinity would give delta."""
    ks = tuple(counts) if counts is not None else tuple(round(10 ** (i / 3)) for i in range(3, 22))
    at = gaussian_epsilon(delta, sensitivity=mu, sigma=1.0).upper

    def each(k: float) -> dict[str, float]:
        count, each_eps = int(k), mu / math.sqrt(k)
        likely = 1 / (1 + math.exp(-each_eps))
        pair = DiscretePair([likely, 1 - likely], [1 - likely, likely])
        found = central_limit.normal(pair, count=count, epsilon=at)
        return {
            "proven upper end": found.bound.upper,
            "exact": (PureDP(each_eps) * count).delta(at).upper or math.nan,
            "N(E Z, Var Z)": found.estimate,
        }

    title = f"delta({at:.4g}) of k randomised responses that tend to {mu:g}-GDP"
    curves = _collect(ks, each, progress)
    return Figure(title, "k", "delta", tuple(float(k) for k in ks), curves, log_y=True, log_x=True)


def sgd_figure(
    noise_multiplier: float = 4.0, rate: float = 1e-4, delta: float = 1e-6, progress: Progress | None = None
) -> Figure:
    """Noisy SGD over T steps: log(T/delta) against sqrt(log(1/delta)), where each of them holds."""
    steps = tuple(round(10 ** (6 + i / 4)) for i in range(17))

    def each(count: float) -> dict[str, float]:
        return _sgd_routes(noise_multiplier, rate, int(count), delta)

    title = f"Noisy SGD, noise {noise_multiplier:g}, p = {rate:g}, delta = {delta:g}"
    curves = _collect(steps, each, progress)
    return Figure(title, "steps T", "epsilon", tuple(map(float, steps)), curves, log_y=True, log_x=True)


def sgd_delta_figure(
    noise_multiplier: float = 4.0, rate: float = 1e-4, steps: int = 10**9, progress: Progress | None = None
) -> Figure:
    """The same over delta: beyond the range of the asymptotic bound no order below omega is large enough."""
    logs = tuple(float(e) for e in (1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100, 140, 200, 260))

    def each(digits: float) -> dict[str, float]:
        return _sgd_routes(noise_multiplier, rate, steps, 10.0**-digits)

    title = f"Noisy SGD, noise {noise_multiplier:g}, p = {rate:g}, {steps:.3g} steps"
    return Figure(title, "log10(1/delta)", "epsilon", logs, _collect(logs, each, progress), log_y=True)


def _sgd_routes(sigma: float, rate: float, steps: int, delta: float) -> dict[str, float]:
    try:
        closed = remarks.noisy_sgd_asymptotic(sigma, rate, steps, delta).epsilon
    except InvalidInput:  # beyond its range
        closed = math.nan
    return {
        "approximate DP all the way, log(T/delta)": pipelines.through_approximate_dp(sigma, rate, steps, delta),
        "asymptotic Renyi bound, sqrt(log(1/delta))": closed,
        "Renyi DP, every order": pipelines.through_renyi_dp(sigma, rate, steps, delta),
        "exact": (Gaussian(sigma).poisson(rate) * steps).epsilon(delta).upper,
    }


FIGURES: dict[str, Callable[..., Figure]] = {
    "composition": composition_figure,
    "subsampling": subsampling_figure,
    "tracing": tracing_figure,
    "central-limit": central_limit_figure,
    "sgd": sgd_figure,
    "sgd-delta": sgd_delta_figure,
}
