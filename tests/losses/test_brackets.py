"""Tables below and above sampled noise, against closed forms, and what is read between them against a plain grid."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import privloss as pl
from privloss.losses.composed import ComposedLoss
from privloss.losses.table.polygon import from_convex, lower_corners, lower_hull
from privloss.mechanisms.worst_neighbours import worst_neighbours


def gaussian(rate: float, sigma: float, x: float) -> tuple[float, float]:
    """delta of (1-q) N(0) + q N(1) against N(0) at x, and of the reverse: half-lines are the best tests."""

    def test(level: float) -> tuple[float, float]:  # P and Q of outcomes above the one with likelihood ratio e^level
        inside = 1 + math.expm1(level) / rate
        if inside <= 0:
            return 1.0, 1.0
        y = 0.5 + sigma**2 * math.log(inside)
        return float((1 - rate) * ndtr(-y / sigma) + rate * ndtr((1 - y) / sigma)), float(ndtr(-y / sigma))

    (p, q), (p_low, q_low) = test(x), test(-x)
    return p - math.exp(x) * q, (1 - q_low) - math.exp(x) * (1 - p_low)


def laplace(rate: float, scale: float, x: float) -> tuple[float, float]:
    """The same for Laplace noise, by the losses of the plain pair (atoms at both ends) on a fine grid."""
    lam = 1 / scale
    edges = np.linspace(-lam, lam, 200_001)
    z = 0.5 * (edges[1:] + edges[:-1])
    under_q = np.append(0.25 * np.exp(-0.5 * (lam + z)) * np.diff(edges), [0.5 * math.exp(-lam), 0.5])
    r = 1 + rate * np.expm1(np.append(z, [lam, -lam]))
    gain = np.maximum(r - math.exp(x), 0.0) @ under_q, np.maximum(1 - math.exp(x) * r, 0.0) @ under_q
    return float(gain[0]), float(gain[1])


CASES = [
    (pl.Gaussian(0.3).poisson(0.05), lambda x: gaussian(0.05, 0.3, x), 1e-9),
    (pl.Gaussian(1.0).poisson(1e-3), lambda x: gaussian(1e-3, 1.0, x), 1e-9),
    (pl.Laplace(0.1).poisson(1e-3), lambda x: laplace(1e-3, 0.1, x), 1e-6),
    (pl.Laplace(1.0).poisson(0.2), lambda x: laplace(0.2, 1.0, x), 1e-6),
]


def between(plan: pl.Plan) -> tuple[ComposedLoss, ComposedLoss]:
    found = worst_neighbours(plan, None).loss.between(math.log(1e-10))
    assert found is not None
    return found


@pytest.mark.parametrize(("step", "truth", "oracle"), CASES)
def test_tables_are_below_and_above(step: object, truth: object, oracle: float) -> None:
    """At losses between the corners, in both directions."""
    assert callable(truth)
    below, above = between(step * 1)  # type: ignore[operator]
    rng = np.random.default_rng(1)
    top = float(below.parts[0].rows[0].values.max())  # type: ignore[attr-defined]
    for x in np.concatenate([rng.uniform(0, top, 25), 10 ** rng.uniform(-5, math.log10(top), 25)]).tolist():
        for k, (low, high) in enumerate(((below, above), (below.reversed(), above.reversed()))):
            value = truth(x)[k]
            if value < 1e-9:
                continue
            lower = math.exp(low.parts[0].rows[0].hockey_stick(x)[0])  # type: ignore[attr-defined]
            upper = math.exp(high.parts[0].rows[0].hockey_stick(x)[1])  # type: ignore[attr-defined]
            upper += high.delta_inf
            assert lower <= value * (1 + oracle)
            assert upper >= value * (1 - oracle)
            assert upper - lower < 5e-3 * upper + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_lower_corners_of_random_polygons(seed: int) -> None:
    """The truth is a table; the points are known to a share of 1e-6 only, and fewer than its corners."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12))
    truth = lambda a: sum(max(Fraction(x) - a * Fraction(y), Fraction(0)) for x, y in zip(p, q, strict=True))  # noqa: E731
    whole = truth(Fraction(0))
    alphas = [Fraction(a) for a in np.unique(np.exp(rng.uniform(-4, 4, 40))).tolist()]
    off = Fraction(1, 10**6)
    low, high = ([(Fraction(0), whole), *((a, truth(a) * (1 + sign * off)) for a in alphas)] for sign in (-1, 1))
    corners = lower_corners((Fraction(-1), whole + Fraction(sum(map(Fraction, q)))), low, high, Fraction(0))
    hull = lower_hull(corners)
    for a in np.linspace(0.0, 60.0, 1201).tolist():
        at = Fraction(a)
        right = next((i for i, (x, _) in enumerate(hull) if x >= at), None)
        if right is None:
            value = hull[-1][1]
        elif right == 0:
            value = hull[0][1]
        else:
            (x0, y0), (x1, y1) = hull[right - 1], hull[right]
            value = y0 + (y1 - y0) * (at - x0) / (x1 - x0)
        assert value <= truth(at)
    assert from_convex(hull).delta == 0


def grid_delta(losses: np.ndarray, masses: np.ndarray, steps: int, x: float, size: int, reach: float) -> float:
    """Masses split between neighbouring points of a grid, composed by Fourier transforms."""
    h = 2 * reach / size
    place = losses / h
    low = np.floor(place).astype(int)
    share = place - low
    law = np.zeros(size)
    np.add.at(law, low % size, masses * (1 - share))
    np.add.at(law, (low + 1) % size, masses * share)
    whole = np.fft.irfft(np.fft.rfft(law) ** steps, size)
    z = h * ((np.arange(size) + size // 2) % size - size // 2)
    return float(np.maximum(-np.expm1(x - z), 0.0)[z > x] @ whole[z > x])


def test_few_steps_of_little_noise() -> None:
    """[.489, .935] before."""
    rate, sigma = 0.05, 0.3
    u = (np.arange(400_000) + 0.5) / 400_000
    y = np.concatenate([sigma * ndtri(u), 1 + sigma * ndtri(u)])
    weights = np.concatenate([np.full(len(u), (1 - rate) / len(u)), np.full(len(u), rate / len(u))])
    losses = np.log1p(rate * np.expm1((y - 0.5) / sigma**2))
    found = (pl.Gaussian(sigma).poisson(rate) * 20).delta(0.1)
    assert found.relative_width < 1e-4
    assert grid_delta(losses, weights, 20, 0.1, 2**20, 300.0) == pytest.approx(found.upper, rel=1e-4)


def test_few_hits_of_strong_laplace_noise() -> None:
    """[3.13, 25.1] before."""
    rate, lam = 1e-3, 10.0
    edges = np.linspace(-lam, lam, 400_001)
    z = np.append(0.5 * (edges[1:] + edges[:-1]), [lam, -lam])
    under_q = np.append(0.25 * np.exp(-0.5 * (lam + z[:-2])) * np.diff(edges), [0.5 * math.exp(-lam), 0.5])
    losses = np.log1p(rate * np.expm1(z))
    found = (pl.Laplace(0.1).poisson(rate) * 1000).epsilon(1e-6)
    assert found.relative_width < 1e-4
    delta = grid_delta(losses, under_q * np.exp(losses), 1000, found.upper, 2**20, 200.0)
    assert delta == pytest.approx(1e-6, rel=2e-3)


@pytest.mark.parametrize(
    ("step", "count", "delta", "truth", "width"),
    [
        (pl.Gaussian(69.7).poisson(1 - 2**-38), 22, 1e-100, 2.84008543429, 2e-3),
        (pl.Gaussian(0.14642).poisson(0.00835), 12841, 5e-6, None, 2e-3),
    ],
)
def test_wide_answers_under_replacement(
    step: object, count: int, delta: float, truth: float | None, width: float
) -> None:
    """[.60, 11.3] and [39.8, 4190] before."""
    found = (step * count).epsilon(delta, adjacency="replace-one")  # type: ignore[operator]
    assert found.relative_width < width
    assert truth is None or found.lower <= truth <= found.upper


@pytest.mark.parametrize(
    ("step", "count", "delta", "adjacency", "width"),
    [
        # [.1332, .1362]: roundings beyond the largest loss were outcomes that Q has and P has not, 95397 times
        (pl.Laplace(0.27582567575636363).poisson(1.7466080337520346e-05), 95397, 1.958e-9, None, 1e-5),
        # [0, .00286]: a closed form that cancels
        (pl.Laplace(0.6450818034040238).poisson(4.8035725552436806e-05), 16, 2.115e-8, None, 1e-5),
        # [3.767, 3.769]: lines by classes were given up too early
        (pl.Gaussian(noise_multiplier=0.634).poisson(0.0013053), 11, 1.01e-11, "replace-one", 1e-7),
    ],
)
def test_ordinary_settings_that_were_wide(
    step: object, count: int, delta: float, adjacency: str | None, width: float
) -> None:
    plan = step * count  # type: ignore[operator]
    found = plan.epsilon(delta, adjacency=adjacency)
    assert found.relative_width < width
    assert plan.delta(found.upper, adjacency=adjacency).lower <= delta
    assert plan.delta(found.lower, adjacency=adjacency).upper >= delta
