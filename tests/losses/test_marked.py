"""Sums over marked outcomes against integrals in ball arithmetic: off by no more than they say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from flint import acb, arb, ctx

from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.mixture.marked import MarkedLine, MarkedStep


def _integral(step: MarkedStep, j: int, c: float) -> arb:
    """E_Q[r^-c w_j] up to the last node, windows taken as analytic."""
    sigma, rate, root = arb(step.sigma), arb(step.rate), arb(2).sqrt()
    centres = [arb(float(x)) for x in step.windows.centre]
    widths = [arb(float(x)) for x in step.windows.width]

    def integrand(y: acb, analytic: bool) -> acb:
        ratio = 1 - rate + rate * ((y - arb(0.5)) / sigma**2).exp()
        value = (-y * y / (2 * sigma**2) - c * ratio.log(analytic)).exp() / (sigma * (2 * arb.pi()).sqrt())
        for b, tau in zip(centres[j:], widths[j:], strict=True):
            value *= ((y - b) / tau / root).erfc() / 2
        return value * ((centres[j - 1] - y) / widths[j - 1] / root).erfc() / 2

    low, high = centres[j - 1] - 40 * widths[j - 1], arb(step.span(j)[1])
    edges = [low + (high - low) * k / 16 for k in range(17)]
    parts = [acb.integral(integrand, a, b, abs_tol=arb(2) ** -350) for a, b in itertools.pairwise(edges)]
    return sum(parts, acb(0)).real


@pytest.mark.parametrize("delta", [1e-6, 1e-9, 1e-11])
def test_nodes_that_end_inside_a_window(delta: float) -> None:
    """The last outcomes that count may lie before the end of a window, where it is still open: what grows above them is
    not the window then, and its growth must not be taken off."""
    rare = GaussianMixtureLoss(np.array([0.003]), np.array([2.5]), np.array([26.0])).rare_losses(None)
    assert rare is not None
    eps = rare.rough_epsilon(math.log(delta))
    step = rare.sides(eps, math.log(delta))[0].steps[0]
    last = step.windows.count - 1
    assert step.top < step.windows.centre[last]
    for j in range(1, last + 1):
        for c in (0.7 / eps, 3 / eps):
            found = MarkedLine(step, c, True, np.zeros(1)).rare(j)
            with ctx.workprec(140):
                off = abs(_integral(step, j, c) - arb(float(found.value[0].real)))
            assert off < float(found.error[0]), (j, c)
