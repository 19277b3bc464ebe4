"""AboveThreshold against integrals over the threshold noise, its closed profile, and what surely happens."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

import privloss as pl
from privloss.losses.threshold import Queries, threshold_row
from tests.mechanisms.threshold_by_force import NOISES, Noise, violations


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_no_queries_lie_above_the_bound(noise: Noise) -> None:
    """A small sample of `python -m tests.mechanisms.threshold_by_force`, which tries 20 000 instances."""
    found, largest = violations(noise, 60, seed=11)
    assert found == 0
    assert 0.25 < largest <= 1 + 1e-3  # corners of exponential noise cost the oracle's quadrature 2e-4


@pytest.mark.parametrize("eps", [0.0, 0.25, 0.5, 0.75])
def test_the_usual_noise_is_a_laplace_pair(eps: float) -> None:
    """1 - e^((x - epsilon)/2): 0.393 at 0 and 0.118 at 0.75 for epsilon 1; the pure box says 0.462."""
    found = pl.AboveThreshold(1.0).delta(eps)
    assert found.upper == pytest.approx(-math.expm1((eps - 1) / 2), rel=1e-12)
    assert found.upper < pl.PureDP(1.0).delta(eps).upper
    assert pl.AboveThreshold(1.0, positives=5).delta(eps).upper == found.upper
    if eps in (0.0, 0.75):
        assert found.upper == pytest.approx({0.0: 0.393, 0.75: 0.118}[eps], abs=5e-4)
        assert found.lower > {0.0: 0.09, 0.75: 0.004}[eps]


@pytest.mark.parametrize(("eps", "known"), [(0.0, 0.2906), (0.75, 0.0623)])
def test_one_positive_loses_less_than_is_claimed(eps: float, known: float) -> None:
    """The threshold revealed, the worst event is "it stops": of chance 1 - e^-U here, at least 1 - e^-M(U) there,
    M(U) the least of sums of m(u_i) over sum u_i = U, u and m the hazards of one query at both distances. M is taken at
    equal parts, and one large beside many small ones. Between our two ends; for one positive only, and not offered."""
    threshold, query, moved = 2.0, 4.0, 2.0

    def over(t: np.ndarray) -> np.ndarray:
        return np.asarray(np.where(t > 0, 0.5 * np.exp(-np.abs(t) / query), 1 - 0.5 * np.exp(-np.abs(t) / query)))

    t = np.linspace(200.0, -60.0, 100_001)
    u, m = -np.log1p(-over(t)), -np.log1p(-over(t + moved))
    whole, small = np.geomspace(1e-6, 25.0, 2_000), math.exp(-moved / query)
    ways = [n * np.interp(whole / n, u, m) for n in (1, 2, 3, 5)]
    ways += [np.interp(f * whole, u, m) + (1 - f) * whole * small for f in np.linspace(0, 1, 21)]
    stops, kept = -np.expm1(-whole), -np.expm1(-np.min(ways, axis=0))
    z = np.linspace(-50, 50, 20_001)
    p, far = (np.exp(-np.abs(z + shift) / threshold) / (2 * threshold) for shift in (0.0, 1.0))
    grid = np.linspace(math.exp(eps - 0.5), math.exp(eps + 0.5), 401)
    k = np.maximum(1 - grid, (stops[None, :] - grid[:, None] * kept[None, :]).max(axis=1)).clip(0.0)
    sharper = float((p * np.interp(math.exp(eps) * far / p, grid, k)).sum() * (z[1] - z[0]))
    assert sharper == pytest.approx(known, abs=2e-4)
    found = pl.AboveThreshold(1.0).delta(eps)
    assert found.lower < sharper < found.upper


def test_pure_epsilon_is_reached() -> None:
    """Many queries below the threshold raise it by the sensitivity; a far higher one costs its whole share."""
    for queries, whole in (
        (Queries(2.0, 4.0, 1, False, False), 1.0),
        (Queries(1.0, 2.0, 1, True, True), 1.5),
        (Queries(2.0, 8.0, 2, False, False), 1.0),
    ):
        chosen = np.array([[1e6, place, -place - 60.0] for place in (10.0, 20.0, 40.0)])
        sure, most = queries._events(chosen, 8_000)
        logs = np.log(sure[sure > 0] / most[sure > 0])
        assert 0.95 * whole < logs.max() <= whole * (1 + 1e-9)
    assert violations(Noise(1.0, 2.0, exponential=True), 40, seed=11)[1] > 0.999


def test_lower_ends_are_integrals() -> None:
    """The instance that rules delta(0.5): many queries at one height, one at another, by adaptive quadrature."""
    queries = Queries(2.0, 4.0, 1, False, False)
    chosen = np.array([[3.0, 1.0, -4.0]])
    sure, most = queries._events(chosen, 8_000)
    low, high = 1.0 - 4.0 * math.log(3.0), -3.0

    def under(x: float) -> float:
        return 0.5 * math.exp(x) if x < 0 else 1 - 0.5 * math.exp(-x)

    def chance(at: float, top: float) -> float:
        def inside(z: float) -> float:
            return math.exp(-abs(z) / 2) / 4 * under((z - at) / 4) ** 3 * (1 - under((z - top) / 4))

        return float(sum(quad(inside, a, b, limit=200)[0] for a, b in ((-60, -3), (-3, 0), (0, 5), (5, 60))))

    p, q = chance(low, high), chance(low + 1, high - 1)
    assert sure[0] <= p <= sure[0] * (1 + 5e-3)
    assert q <= most[0] <= q * (1 + 5e-3)


def test_more_for_positives_than_for_the_threshold() -> None:
    """Neither the profile nor the pure box is smaller everywhere; what is used is below both."""
    eps1, eps2 = 0.4, 1.2
    whole = eps1 + eps2
    found = pl.AboveThreshold(threshold_scale=2.5, query_scale=2 / 1.2)
    alphas = np.exp(np.linspace(0.0, whole, 1_201))
    profile = np.where(
        np.log(alphas) >= eps2 - eps1, 1 - np.sqrt(alphas) * math.exp(-whole / 2), 1 - alphas * math.exp(-eps2)
    )
    least = np.minimum(profile, (math.exp(whole) - alphas) / (math.exp(whole) + 1))
    # both orders have it, so its mirror image holds as well: h(1/a) = 1 - (1 - h(a))/a
    least = np.concatenate([(1 - (1 - least[:0:-1]) / alphas[:0:-1]), least])
    alphas = np.concatenate([1 / alphas[:0:-1], alphas])
    for i in range(1_200, 2_400, 75):  # the convex minorant: the least of all chords over a point
        left, right = alphas[: i + 1, None], alphas[None, i + 1 :]
        share = (alphas[i] - left) / (right - left)
        chords = (1 - share) * least[: i + 1, None] + share * least[None, i + 1 :]
        truth, answer = float(min(chords.min(), least[i])), found.delta(math.log(alphas[i])).upper
        assert truth * (1 - 1e-4) <= answer <= truth * (1 + 1e-3) + 1e-9
    assert found.epsilon(0.0).upper == pytest.approx(whole, rel=1e-9)
    assert threshold_row(eps1, eps2).delta == 0


def test_monotone_queries_pay_half() -> None:
    scales = {"threshold_scale": 2.0, "query_scale": 4.0}
    both, one = pl.AboveThreshold(**scales), pl.AboveThreshold(**scales, monotone=True)  # type: ignore[arg-type]
    assert both.epsilon(0.0).upper == pytest.approx(1.0)
    assert one.epsilon(0.0).upper == pytest.approx(0.75)


def test_values_are_a_release_of_their_own() -> None:
    shown = pl.AboveThreshold(0.5, positives=3, value_scale=12.0, sensitivity=2.0)
    plain = pl.AboveThreshold(0.5, positives=3, sensitivity=2.0)
    assert shown.as_plan() == plain + pl.Laplace(12.0, 2.0) * 3
    assert pl.Plan.from_json(shown.as_plan().to_json()) == shown.as_plan()
    assert shown.poisson(0.1).delta(0.1).upper > plain.poisson(0.1).delta(0.1).upper


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"threshold_scale": 1.0},
        {"epsilon": 1.0, "query_scale": 2.0},
        {"epsilon": 1.0, "positives": 0},
        {"epsilon": 1.0, "monotone": 1},
        {"epsilon": 1.0, "noise": "gaussian"},
        {"epsilon": 1.0, "value_scale": -1.0},
        {"epsilon": 1.0, "sensitivity": math.nan},
    ],
)
def test_bad_numbers(bad: dict[str, object]) -> None:
    with pytest.raises(pl.InvalidInput):
        pl.AboveThreshold(**bad)  # type: ignore[arg-type]
