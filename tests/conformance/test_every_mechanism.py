"""One suite that every mechanism passes; a new mechanism is one more entry in MECHANISMS."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import privloss as pl
from privloss.losses.composed import ComposedLoss
from privloss.mechanisms.worst_neighbours import worst_neighbours
from tests.conformance.outside import Skewed, Wrapped

WORK = 2e7  # a hundredth of what is usually allowed: wider where a line is long, and as sound


@dataclass(frozen=True)
class Entry:
    """A mechanism and how its privacy depends on each parameter: (name, make(value), values, +1 if larger is worse)."""

    name: str
    make: Callable[[], pl.Plan]
    parameters: tuple[tuple[str, Callable[[float], pl.Plan], tuple[float, ...], int], ...]


def plan(mechanism: object, count: int = 1) -> pl.Plan:
    return mechanism * count  # type: ignore[operator, no-any-return]


def square_root(**changes: Any) -> pl.MatrixMechanism:
    given: dict[str, Any] = {"participation": "min-separation", "separation": 20, "noise_multiplier": 9.0}
    return pl.MatrixMechanism.square_root(steps=60, **{**given, **changes})


MECHANISMS = [
    Entry(
        "gaussian",
        lambda: plan(pl.Gaussian(2.0), 3),
        (
            ("noise_multiplier", lambda v: plan(pl.Gaussian(v)), (0.0, 0.1, 1.0, 1.0001, 30.0), -1),
            ("sensitivity", lambda v: plan(pl.Gaussian(sigma=2.0, sensitivity=v)), (0.1, 1.0, 1.0001, 5.0), +1),
            ("count", lambda v: plan(pl.Gaussian(2.0), int(v)), (1, 2, 10, 10**6, 10**12), +1),
        ),
    ),
    Entry(
        "poisson gaussian",
        lambda: plan(pl.Gaussian(0.9).poisson(0.02), 200),
        (
            ("noise", lambda v: plan(pl.Gaussian(v).poisson(0.02), 200), (0.0, 0.2, 0.9, 0.90001, 4.0, 100.0), -1),
            ("rate", lambda v: plan(pl.Gaussian(0.9).poisson(v), 200), (0.0, 1e-6, 1e-3, 0.02, 0.021, 0.5, 1.0), +1),
            ("count", lambda v: plan(pl.Gaussian(0.9).poisson(0.02), int(v)), (1, 2, 20, 10**4, 10**8), +1),
        ),
    ),
    Entry(
        "laplace",
        lambda: plan(pl.Laplace(2.0), 500),
        (
            ("scale", lambda v: plan(pl.Laplace(v), 500), (0.0, 0.1, 2.0, 2.00001, 50.0), -1),
            ("count", lambda v: plan(pl.Laplace(2.0), int(v)), (1, 2, 60, 10**4, 10**10), +1),
        ),
    ),
    Entry(
        "randomized-response",
        lambda: plan(pl.RandomizedResponse(0.3), 40),
        (
            ("epsilon", lambda v: plan(pl.RandomizedResponse(v), 40), (0.0, 1e-9, 0.3, 0.300001, 5.0), +1),
            ("p", lambda v: plan(pl.RandomizedResponse(p=v), 40), (0.0, 1e-3, 0.5, 0.500001, 1.0), -1),
            ("count", lambda v: plan(pl.RandomizedResponse(0.3), int(v)), (1, 2, 40, 10**6, 10**12), +1),
        ),
    ),
    Entry(
        "many answers",
        lambda: plan(pl.RandomizedResponse(0.7, answers=6), 30),
        (("epsilon", lambda v: plan(pl.RandomizedResponse(v, answers=6), 30), (0.0, 0.1, 0.7, 0.70001, 4.0), +1),),
    ),
    Entry(
        "pure-dp",
        lambda: plan(pl.PureDP(0.2), 25),
        (("epsilon", lambda v: plan(pl.PureDP(v), 25), (0.0, 1e-9, 0.2, 0.200001, 30.0), +1),),
    ),
    Entry(
        "approx-dp",
        lambda: plan(pl.ApproxDP(0.2, 1e-9), 25),
        (
            ("epsilon", lambda v: plan(pl.ApproxDP(v, 1e-9), 25), (0.0, 1e-9, 0.2, 0.200001, 30.0), +1),
            ("delta", lambda v: plan(pl.ApproxDP(0.2, v), 25), (0.0, 1e-12, 1e-9, 1e-7, 0.5, 1.0), +1),
        ),
    ),
    Entry("gdp", lambda: plan(pl.GDP(0.4), 5), (("mu", lambda v: plan(pl.GDP(v), 5), (0.0, 1e-9, 0.4, 0.41, 9.0), 1),)),
    Entry(
        "zcdp",
        lambda: plan(pl.ZCDP(0.1), 3),
        (("rho", lambda v: plan(pl.ZCDP(v), 3), (0.0, 1e-6, 0.1, 0.11, 20.0), +1),),
    ),
    Entry(
        "rdp",
        lambda: plan(pl.RDP([2, 8, 32], [0.1, 0.4, 1.8]), 3),
        (("scale", lambda v: plan(pl.RDP([2, 8, 32], [0.1 * v, 0.4 * v, 1.8 * v]), 3), (0.01, 1.0, 1.1, 20.0), +1),),
    ),
    Entry(
        "truncated-cdp",
        lambda: plan(pl.TruncatedCDP(0.1, 20.0), 3),
        (
            ("rho", lambda v: plan(pl.TruncatedCDP(v, 20.0), 3), (0.0, 1e-6, 0.1, 0.11, 20.0), +1),
            ("omega", lambda v: plan(pl.TruncatedCDP(0.1, v), 3), (1.5, 2.0, 20.0, 21.0, 500.0), -1),
        ),
    ),
    Entry(
        "heterogeneous boxes",
        lambda: pl.PureDP(0.21) * 10 + pl.PureDP(0.07) * 5 + pl.ApproxDP(0.3, 1e-9),
        (("epsilon", lambda v: pl.PureDP(v) * 10 + pl.PureDP(0.05) * 20, (0.01, 0.1, 0.11, 2.0), +1),),
    ),
    Entry(
        "discrete-gaussian",
        lambda: plan(pl.DiscreteGaussian(3.0, 2), 4),
        (
            ("sigma", lambda v: plan(pl.DiscreteGaussian(v), 4), (0.0, 0.3, 1.0, 1.001, 20.0), -1),
            ("sensitivity", lambda v: plan(pl.DiscreteGaussian(5.0, int(v)), 4), (1, 2, 3, 40), +1),
            ("count", lambda v: plan(pl.DiscreteGaussian(3.0), int(v)), (1, 2, 100, 10**8), +1),
        ),
    ),
    Entry(
        "discrete-laplace",
        lambda: plan(pl.DiscreteLaplace(3.0, 2), 9),
        (
            ("scale", lambda v: plan(pl.DiscreteLaplace(v, 3), 9), (0.0, 0.5, 3.0, 3.001, 100.0), -1),
            ("sensitivity", lambda v: plan(pl.DiscreteLaplace(3.0, int(v)), 9), (1, 2, 3, 100), +1),
        ),
    ),
    Entry(
        "truncated-laplace",
        lambda: plan(pl.TruncatedLaplace(2.0, 60.0), 300),
        (("scale", lambda v: plan(pl.TruncatedLaplace(v, 60 * v), 300), (1.0, 2.0, 2.001, 20.0), -1),),
    ),
    Entry(
        "truncated-gaussian",
        lambda: plan(pl.TruncatedGaussian(2.0, 20.0), 6),
        (("sigma", lambda v: plan(pl.TruncatedGaussian(v, 10 * v), 6), (1.0, 2.0, 2.001, 9.0), -1),),
    ),
    Entry(
        "poisson truncated-laplace",
        lambda: plan(pl.TruncatedLaplace(2.0, 60.0).poisson(0.1), 300),
        (("rate", lambda v: plan(pl.TruncatedLaplace(1.0, 60.0).poisson(v), 300), (0.0, 0.01, 0.1, 0.101, 1.0), +1),),
    ),
    Entry(
        "poisson truncated-gaussian",
        lambda: plan(pl.TruncatedGaussian(2.0, 20.0).poisson(0.1), 60),
        (("rate", lambda v: plan(pl.TruncatedGaussian(2.0, 20.0).poisson(v), 60), (0.0, 0.01, 0.1, 0.101, 1.0), +1),),
    ),
    Entry(
        "fixed-size",
        lambda: plan(pl.Gaussian(3.0).fixed_size(1000, 20), 100),
        (
            ("m", lambda v: plan(pl.Gaussian(3.0).fixed_size(1000, int(v)), 100), (1, 20, 21, 999), +1),
            ("n", lambda v: plan(pl.Gaussian(3.0).fixed_size(int(v), 20), 100), (21, 1000, 1001, 10**9), -1),
        ),
    ),
    Entry(
        "with-replacement",
        lambda: plan(pl.Gaussian(4.0).with_replacement(1000, 30), 300),
        (("noise", lambda v: plan(pl.Gaussian(v).with_replacement(1000, 30), 300), (2.0, 4.0, 20.0), -1),),
    ),
    Entry(
        "truncated-poisson",
        lambda: plan(pl.Gaussian(2.0).truncated_poisson(0.02, 1000, 40), 300),
        (
            ("most", lambda v: plan(pl.Gaussian(2.0).truncated_poisson(0.02, 1000, int(v)), 300), (30, 45, 1000), -1),
            ("rate", lambda v: plan(pl.Gaussian(2.0).truncated_poisson(v, 1000, 45), 300), (0.01, 0.02, 0.03), +1),
        ),
    ),
    Entry(
        "allocation",
        lambda: plan(pl.Gaussian(1.5).allocated(50), 6),
        (("steps", lambda v: plan(pl.Gaussian(1.5).allocated(int(v)), 6), (1, 10, 50, 500), -1),),
    ),
    Entry(
        "unary-encoding",
        lambda: plan(pl.UnaryEncoding(0.6, 0.4), 12),
        (("p", lambda v: plan(pl.UnaryEncoding(v, 0.3), 12), (0.3, 0.4, 0.4001, 0.9, 1.0), +1),),
    ),
    Entry(
        "exponential",
        lambda: plan(pl.Exponential(0.3), 12),
        (("epsilon", lambda v: plan(pl.Exponential(v), 12), (0.0, 1e-4, 0.3, 0.30001, 20.0), +1),),
    ),
    Entry(
        "noisy-max",
        lambda: plan(pl.NoisyMax(0.3, "laplace"), 12),
        (("epsilon", lambda v: plan(pl.NoisyMax(v, "exponential"), 12), (0.0, 1e-4, 0.3, 0.30001, 20.0), +1),),
    ),
    Entry(
        "select-best",
        lambda: plan(pl.select_best(pl.Gaussian(4.0), mean=5.0)),
        (
            ("mean", lambda v: plan(pl.select_best(pl.Gaussian(4.0), mean=v)), (1.0, 5.0, 5.001), +1),
            ("noise", lambda v: plan(pl.select_best(pl.Gaussian(v), mean=5.0)), (1.0, 4.0), -1),
        ),
    ),
    Entry(
        "above-threshold",
        lambda: plan(pl.AboveThreshold(0.5), 3),
        (
            ("epsilon", lambda v: plan(pl.AboveThreshold(v), 12), (1e-4, 0.3, 0.30001, 20.0), +1),
            ("positives", lambda v: plan(
                pl.AboveThreshold(threshold_scale=2.0, query_scale=9.0, positives=int(v))), (1, 2, 3, 9), +1),
        ),
    ),
    Entry(
        "together",
        lambda: plan(pl.together(pl.RandomizedResponse(0.5), pl.ApproxDP(0.2, 1e-9)).poisson(0.1), 9),
        (
            ("rate", lambda v: plan(
                pl.together(pl.PureDP(0.2), pl.PureDP(0.5)).poisson(v), 9), (0.0, 0.01, 0.1, 0.101, 1.0), +1),
            ("epsilon", lambda v: plan(
                pl.together(pl.Gaussian(2.0), pl.PureDP(v)).poisson(0.1)), (0.0, 0.5, 0.501), +1),
        ),
    ),
    Entry(
        "custom",
        lambda: plan(pl.Custom([0.5, 0.3, 0.2], [0.4, 0.25, 0.35]), 8),
        (("shift", lambda v: plan(pl.Custom([0.5 + v, 0.5 - v], [0.5, 0.5]), 8), (0.0, 0.1, 0.2, 0.4, 0.5), +1),),
    ),
    Entry(
        "privacy-profile",
        lambda: plan(pl.PrivacyProfile([0.0, 0.5, 1.0], [0.1, 1e-3, 0.0]), 8),
        (("delta", lambda v: plan(pl.PrivacyProfile([0.1, 1.0], [v, 0.0]), 8), (0.0, 1e-6, 0.01, 0.3), +1),),
    ),
    Entry(
        "trade-off",
        lambda: plan(pl.TradeOff([0.0, 0.2, 1.0], [1.0, 0.6, 0.0]), 8),
        (("fnr", lambda v: plan(pl.TradeOff([0.0, 0.2, 1.0], [1.0, v, 0.0]), 8), (0.2, 0.5, 0.51, 0.8), -1),),
    ),
    Entry(
        "poisson boxes",
        lambda: plan(pl.PureDP(0.5).poisson(0.1), 300),
        (
            ("rate", lambda v: plan(pl.PureDP(0.5).poisson(v), 300), (0.0, 1e-3, 0.1, 0.11, 1.0), +1),
            ("epsilon", lambda v: plan(pl.ApproxDP(v, 1e-9).poisson(0.1), 300), (0.01, 0.5, 0.51, 3.0), +1),
        ),
    ),
    Entry(
        "poisson laplace",
        lambda: plan(pl.Laplace(1.0).poisson(0.05), 400),
        (
            ("rate", lambda v: plan(pl.Laplace(1.0).poisson(v), 400), (0.0, 1e-3, 0.05, 0.051, 1.0), +1),
            ("scale", lambda v: plan(pl.Laplace(v).poisson(0.05), 400), (0.0, 0.5, 1.0, 1.01, 30.0), -1),
        ),
    ),
    Entry(
        "poisson discrete-laplace",
        lambda: plan(pl.DiscreteLaplace(2.0, 2).poisson(0.1), 200),
        (("rate", lambda v: plan(pl.DiscreteLaplace(2.0, 2).poisson(v), 200), (0.0, 1e-2, 0.1, 0.11, 1.0), +1),),
    ),
    Entry(
        "poisson zcdp",
        lambda: plan(pl.ZCDP(0.1).poisson(0.1), 30),
        (("rate", lambda v: plan(pl.ZCDP(0.1).poisson(v), 30), (0.0, 1e-3, 0.1, 0.11, 1.0), +1),),
    ),
    Entry(
        "matrix-mechanism",
        lambda: plan(square_root(), 2),
        (
            ("noise", lambda v: plan(square_root(noise_multiplier=v)), (0.0, 0.5, 9.0, 9.0001, 80.0), -1),
            ("separation", lambda v: plan(square_root(separation=int(v))), (1, 5, 6, 30, 60), -1),
            ("times", lambda v: plan(square_root(separation=5, times=int(v))), (1, 2, 5, 12), +1),
        ),
    ),
    Entry(
        "tree-aggregation",
        lambda: plan(pl.TreeAggregation(steps=100, noise="laplace", noise_multiplier=40.0), 2),
        (
            ("steps", lambda v: plan(pl.TreeAggregation(steps=int(v), noise_multiplier=9.0)), (1, 2, 3, 100, 128), +1),
            ("trees", lambda v: plan(pl.TreeAggregation(steps=9, trees=int(v), noise_multiplier=9.0)), (1, 2, 50), +1),
        ),
    ),
    Entry(
        "gaussian-mixture",
        lambda: plan(pl.GaussianMixture([1.0, 2.0], [0.1, 0.02], 3.0), 20),
        (
            ("sigma", lambda v: plan(pl.GaussianMixture([1.0, 2.0], [0.1, 0.02], v), 20), (0.0, 1.0, 3.0, 3.01), -1),
            ("distance", lambda v: plan(pl.GaussianMixture([1.0, v], [0.1, 0.02], 3.0)), (0.0, 0.5, 1.0, 2.0), +1),
            ("weight", lambda v: plan(pl.GaussianMixture([1.0, 2.0], [0.1, v], 3.0)), (0.0, 1e-6, 0.1, 0.9), +1),
        ),
    ),
    Entry(
        "gnmax",
        lambda: plan(pl.GNMax(20.0), 9),
        (("sigma", lambda v: plan(pl.GNMax(v), 9), (0.0, 1.0, 20.0, 20.01, 500.0), -1),),
    ),
    Entry(
        "noisy-threshold",
        lambda: plan(pl.NoisyThreshold(5.0), 4),
        (("sensitivity", lambda v: plan(pl.NoisyThreshold(5.0, v), 4), (0.01, 1.0, 1.001, 30.0), +1),),
    ),
    Entry(
        "stability-histogram",
        lambda: plan(pl.StabilityHistogram(2.0, 40.0), 2),
        (
            ("threshold", lambda v: plan(pl.StabilityHistogram(2.0, v), 2), (1.0, 20.0, 40.0, 41.0), -1),
            ("bins", lambda v: plan(pl.StabilityHistogram(2.0, 60.0, int(v), "gaussian")), (1, 2, 5), +1),
        ),
    ),
    Entry(
        "from outside: wrapped",
        lambda: plan(Wrapped(2.0, 8), 4),
        (
            ("scale", lambda v: plan(Wrapped(v, 8), 50), (0.3, 2.0, 2.001, 40.0), -1),
            ("count", lambda v: plan(Wrapped(2.0, 8), int(v)), (1, 2, 50, 10**6), +1),
        ),
    ),
    Entry(
        "from outside: wrapped on a sample",
        lambda: plan(Wrapped(2.0, 8).poisson(0.1), 4),
        (("rate", lambda v: plan(Wrapped(2.0, 8).poisson(v), 50), (0.0, 0.01, 0.1, 0.101, 1.0), +1),),
    ),
    Entry(
        "from outside: skewed",
        lambda: plan(Skewed([0.5, 0.3, 0.2], [0.4, 0.25, 0.35]), 8),
        (("shift", lambda v: plan(Skewed([0.5 + v, 0.5 - v], [0.5, 0.5]), 8), (0.0, 0.1, 0.2, 0.4, 0.5), +1),),
    ),
    Entry(
        "approximate zcdp",
        lambda: plan(pl.ZCDP(0.1, 1e-9), 3),
        (("delta", lambda v: plan(pl.ZCDP(0.1, v), 3), (0.0, 1e-12, 1e-9, 0.5, 1.0), +1),),
    ),
]  # fmt: skip
CURVES = ("zcdp", "truncated-cdp", "rdp", "poisson zcdp", "approximate zcdp")
NOT_ATTAINED = (  # the dominating pair of many uses may not be attained
    "exponential", "noisy-max", "select-best", "above-threshold", "with-replacement", "truncated-poisson", "allocation",
    "gnmax", "noisy-threshold", "stability-histogram",
)  # fmt: skip
WITH_K = [e for e in MECHANISMS if e.name not in CURVES]
every = pytest.mark.parametrize("entry", MECHANISMS, ids=lambda e: e.name)
every_k = pytest.mark.parametrize("entry", WITH_K, ids=lambda e: e.name)


def loss_of(entry: Entry) -> ComposedLoss:
    return worst_neighbours(entry.make(), "add-remove").loss


@every_k
def test_k_at_zero_and_minus_one(entry: Entry) -> None:
    loss = loss_of(entry)
    assert abs(loss.log_mgf(0.0) - math.log1p(-loss.delta_inf)) < 1e-13
    assert abs(loss.log_mgf(-1.0) - math.log1p(-loss.reversed().delta_inf)) < 1e-13


@every_k
def test_k_is_convex_and_the_directions_mirror(entry: Entry) -> None:
    loss = loss_of(entry)
    points = np.linspace(-3.0, 4.0, 29)
    k = loss.log_mgf(points).real
    assert np.all(np.diff(k, 2) > -1e-12 * (1 + np.abs(k[1:-1])))
    mirrored = loss.reversed().log_mgf(-1 - points).real
    assert np.allclose(k, mirrored, rtol=1e-11, atol=1e-12)


@every_k
def test_line_is_dominated_by_its_real_point(entry: Entry) -> None:
    loss = loss_of(entry)
    for c in (0.3, 2.0):
        vertical = loss.vertical(c)
        t = np.linspace(0.0, 12.0, 49)
        values = vertical.line(t, 1e-13)
        fall = values.log_modulus - values.log_modulus[0]
        assert np.all(fall <= 1e-12)
        if loss.lattice is None:
            for height in (0.5, 3.0, 9.0):
                assert np.all(fall[t >= height] <= vertical.decay(height) + 1e-12)
        upper = float(loss.log_mgf_upper(np.array([c]))[0])
        assert upper >= values.log_modulus[0] - values.error[0]
        assert float(loss.log_mgf_simple_upper(np.array([c]))[0]) >= values.log_modulus[0] - values.error[0]


@every
def test_intervals_are_intervals(entry: Entry) -> None:
    made = entry.make()
    for delta in (0.3, 1e-4, 1e-12, 1e-100):
        bound = made.epsilon(delta, work=WORK)
        assert 0 <= bound.lower <= bound.upper
        if entry.name not in (*CURVES, *NOT_ATTAINED) and bound.upper < math.inf:
            assert bound.relative_width < 1e-6, delta
    for eps in (0.0, 0.1, 2.0, 50.0):
        bound = made.delta(eps, work=WORK)
        assert 0 <= bound.lower <= bound.upper <= 1


@every
def test_epsilon_falls_with_delta_and_delta_with_epsilon(entry: Entry) -> None:
    made = entry.make()
    epsilons = made.epsilon([1e-30, 1e-9, 1e-4, 0.01, 0.3], work=WORK)
    for worse, better in itertools.pairwise(epsilons):
        assert better.lower <= worse.upper
    deltas = made.delta([0.0, 0.5, 1.0, 4.0], work=WORK)
    for worse, better in itertools.pairwise(deltas):
        assert better.lower <= worse.upper


@every
def test_monotone_in_every_parameter(entry: Entry) -> None:
    for name, make, values, sign in entry.parameters:
        answers = [make(v).epsilon(1e-6, work=WORK) for v in values]
        for a, b in itertools.pairwise(answers):
            worse, better = (b, a) if sign > 0 else (a, b)
            assert better.lower <= worse.upper, (name, values)


@every
def test_composition_is_consistent(entry: Entry) -> None:
    made = entry.make()
    twice = made * 2
    assert twice == made + made
    half = made.epsilon(1e-6, work=WORK)
    assert half.lower <= twice.epsilon(1e-6, work=WORK).upper
    # basic composition: 2k steps are (2 eps, 2 delta)-DP if k steps are (eps, delta)-DP
    if half.upper < math.inf:
        assert twice.epsilon(2e-6, work=WORK).lower <= 2 * half.upper * (1 + 1e-12)


@every_k
def test_readings_agree(entry: Entry) -> None:
    made = entry.make()
    assert made.total_variation() == made.delta(0.0)
    if loss_of(entry).delta_inf > 0:
        # where only the bound discloses, nothing infinite is claimed from below
        assert made.kl().lower == math.inf or (entry.name in NOT_ATTAINED and made.kl().lower < math.inf)
        return
    kl, d2 = made.kl(), made.rdp(2.0)
    assert kl.lower <= d2.upper
    assert made.rdp(1.0) == kl
    assert d2.lower <= made.rdp(math.inf).upper
    rho = made.zcdp()
    assert d2.lower <= 2 * rho.upper * (1 + 1e-9)
    assert made.total_variation().lower <= math.sqrt(kl.upper / 2)  # Pinsker
    for fpr in (0.01, 0.3):
        fnr = made.tradeoff(fpr)
        assert fnr.lower <= 1 - fpr
        assert fnr.upper >= 1 - fpr - made.total_variation().upper - 1e-12
        assert fnr.width < 1e-5 or entry.name in NOT_ATTAINED


@every
def test_mixing_with_something_else_costs_more(entry: Entry) -> None:
    made = entry.make()
    more = made + pl.Gaussian(3.0) + pl.PureDP(0.05)
    assert made.epsilon(1e-6, work=WORK).lower <= more.epsilon(1e-6, work=WORK).upper
