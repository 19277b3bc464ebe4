"""Trimmed sums against integrals in ball arithmetic: K of the outcomes up to the trim, off by no more than is said."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from flint import acb, arb

from privloss.losses.mixture.loss import GaussianMixtureLoss

CASES = [
    (1e-3, 1.8, 12.0, 30.0, 40.0),  # close enough for the edge to be the largest error
    (1e-3, 1.8, 18.0, 30.0, 40.0),
    (2e-4, 4.8, 30.0, 600.0, 900.0),
    (0.02, 4.6, 20.0, 10.0, 25.0),
    (0.3, 0.7, 3.0, 2.0, 8.0),
    (1e-5, 0.6, 4.0, 3.0, 60.0),  # lifted nodes
    (0.9, 1.0, 4.0, 0.5, 6.0),
]


def _integral(rate: float, sigma: float, trim: float, z: acb) -> acb:
    """E_Q[r^(z+1); y <= trim]."""
    q, s = arb(rate), arb(sigma)

    def integrand(y: acb, analytic: bool) -> acb:
        ratio = 1 - q + q * ((y - arb(0.5)) / s**2).exp()
        return (-y * y / (2 * s**2) + (z + 1) * ratio.log(analytic)).exp() / (s * (2 * arb.pi()).sqrt())

    low, high = arb(-16 * sigma), arb(trim)
    edges = [low + (high - low) * k / 32 for k in range(33)]
    parts = [acb.integral(integrand, a, b, rel_tol=arb(2) ** -60) for a, b in itertools.pairwise(edges)]
    return sum(parts, acb(0))


@pytest.mark.parametrize(("rate", "sigma", "trim", "c", "t"), CASES)
def test_trimmed_lines(rate: float, sigma: float, trim: float, c: float, t: float) -> None:
    loss = GaussianMixtureLoss(np.array([rate]), np.array([sigma]), np.ones(1)).cut_at(np.array([trim]))
    heights = np.array([0.0, 0.5 * t, t])
    values = loss.vertical(c).line(heights, 1e-13)
    upper = float(loss.log_mgf_upper(np.array([c]))[0])
    assert upper >= float(_integral(rate, sigma, trim, acb(c)).real.log().mid()) - 1e-14
    for i, height in enumerate(heights):
        truth = _integral(rate, sigma, trim, acb(c, float(height)))
        got = acb(values.log_modulus[i], values.phase[i]).exp()
        assert float((got / truth - 1).abs_lower()) <= math.expm1(values.error[i]) * (1 + 1e-9) + 1e-15


def test_an_edge_is_cheap() -> None:
    """Where losses up to the trim are far below 1/c, what the edge costs is far below the error worth having."""
    loss = GaussianMixtureLoss(np.array([1e-3]), np.array([1.8]), np.array([1e4])).cut_at(np.array([18.0]))
    assert loss.vertical(30.0).line(np.linspace(0.0, 40.0, 9), 1e-13).error.max() < 1e-9
