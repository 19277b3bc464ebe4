"""One example of every kind and of every sampler, for tests of what the records declare."""

from __future__ import annotations

import privloss as pl
from privloss.mechanisms.samplers.poisson import PoissonGroup
from tests.conformance.outside import Skewed, Wrapped

MECHANISMS: list[pl.Mechanism] = [
    pl.Gaussian(2.0),
    pl.Gaussian(sigma=3.0, sensitivity=2.0),
    pl.Laplace(2.0),
    pl.Laplace(noise_multiplier=2.0),
    pl.DiscreteGaussian(3.0, 2),
    pl.DiscreteGaussian(noise_multiplier=3.0),
    pl.DiscreteGaussian(0.4),
    pl.DiscreteLaplace(3.0, 2),
    pl.DiscreteLaplace(noise_multiplier=3.0),
    pl.TruncatedGaussian(2.0, 20.0),
    pl.TruncatedGaussian(noise_multiplier=2.0, bound=20.0),
    pl.TruncatedLaplace(2.0, 60.0),
    pl.TruncatedLaplace(noise_multiplier=2.0, bound=60.0),
    pl.RandomizedResponse(0.3),
    pl.RandomizedResponse(p=0.5, answers=4),
    pl.UnaryEncoding(0.75, 0.25),
    pl.Exponential(0.3),
    pl.NoisyMax(0.3),
    pl.NoisyMax(0.3, "exponential"),
    pl.NoisyMax(0.3, "laplace"),
    pl.PureDP(0.2),
    pl.ApproxDP(0.2, 1e-9),
    pl.ZCDP(0.1),
    pl.ZCDP(0.1, 1e-9),
    pl.TruncatedCDP(0.1, 20.0),
    pl.RDP([2, 8, 32], [0.1, 0.4, 1.8]),
    pl.GDP(0.4),
    pl.PrivacyProfile([0.0, 0.5, 1.0], [0.1, 1e-3, 0.0]),
    pl.TradeOff([0.0, 0.2, 1.0], [1.0, 0.6, 0.0]),
    pl.Custom([0.5, 0.3, 0.2], [0.4, 0.25, 0.35]),
    pl.Tabulated([0.6, 0.3, 0.1], [0.1, 0.3, 0.6], [0.6, 0.4], [0.15, 0.85]),
    pl.together(pl.Gaussian(2.0), pl.RandomizedResponse(0.3)),
    pl.select_best(pl.Gaussian(4.0), mean=5.0),
    pl.select_best(pl.Gaussian(4.0) + pl.Laplace(8.0), mean=5.0, shape="poisson"),
    pl.select_best(pl.Gaussian(4.0), trials=3),
    pl.AboveThreshold(0.5),
    pl.AboveThreshold(threshold_scale=8.0, query_scale=8.0, noise="exponential"),
    pl.PermuteAndFlip(0.3),
    pl.TopK(0.3, 3),
    pl.TopK(0.3, 3, "laplace", "one-shot"),
    pl.Quantile(0.3, 0.25),
    pl.MatrixMechanism.square_root(
        steps=60, noise_multiplier=9.0, participation="min-separation", separation=20, times=2
    ),
    pl.MatrixMechanism(matrix=[[1, 0], [-0.5, 1]], sigma=4.0, participation="min-separation", separation=1),
    pl.MatrixMechanism.square_root(
        steps=60, bands=5, noise_multiplier=4.0, participation="cyclic-poisson", separation=6, rate=0.1
    ),
    pl.MatrixMechanism.square_root(
        steps=60, bands=4, noise_multiplier=4.0, participation="balls-in-bins", separation=20
    ),
    pl.TreeAggregation(steps=100, noise_multiplier=12.0),
    pl.TreeAggregation(steps=100, trees=2, noise="laplace", scale=40.0, sensitivity=2.0),
    pl.GaussianMixture([1.0, 2.0], [0.1, 0.02], 3.0),
    pl.GNMax(20.0),
    pl.NoisyThreshold(5.0),
    pl.SmoothSensitivity(noise="student-t", smoothness=0.1, scale=0.5, degrees=3),
    pl.SmoothSensitivity(noise="laplace-log-normal", smoothness=0.1, scale=0.2, shape=0.5),
    pl.DistanceTest(0.5, 1e-6),
    pl.StabilityHistogram(2.0, 40.0),
    pl.StabilityHistogram(5.0, 40.0, 3, "gaussian"),
    Wrapped(2.0, 8),
    Skewed([0.7, 0.3], [0.5, 0.5]),
]
SAMPLED: list[pl.Sampled] = [
    pl.Gaussian(2.0).poisson(0.1),
    pl.Gaussian(2.0).fixed_size(100, 10),
    pl.Gaussian(4.0).with_replacement(1000, 30),
    pl.Gaussian(2.0).truncated_poisson(0.02, 1000, 40),
    pl.Gaussian(2.0).shuffle(10),
    pl.Gaussian(2.0).allocated(10),
    PoissonGroup(pl.Gaussian(2.0), 0.1, 2),
]
