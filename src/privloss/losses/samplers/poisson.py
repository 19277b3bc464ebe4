"""Poisson samples: every record enters independently with probability q, afresh at every step."""

from __future__ import annotations

import math

from privloss.adjacency import REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.closed.point import PointLoss
from privloss.losses.density.normal import FURTHEST, NormalPair, normal_table
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.samplers.setting import Setting
from privloss.losses.step import SAMPLE, NoPair, Step
from privloss.losses.table.loss import TableLoss


def poisson(step: Step, rate: float, at: Setting) -> Step:
    """(1-q) Q + q P against Q, both directions; under replace-one for Gaussian noise only."""
    sampler = f"sampler: Poisson, every record independently with probability {rate!r} at every step"
    if rate == 0:
        return Step((SAMPLE,), (f"{at.inner}; {sampler}",), mirrored=True, null_adds_nothing=True)
    if rate == 1:
        return step
    if at.adjacency == REPLACE_ONE:
        return _replaced(step, rate, sampler, at)
    try:
        found = step.on_poisson(rate)
    except NoPair:
        raise Unsupported(
            f"{at.inner} on a Poisson sample: no proven worst pair is implemented for this mechanism yet."
        ) from None
    about = found.assumptions[0] if found.assumptions else f"{at.inner}: its guarantee holds under {at.adjacency}"
    theorem = found.theorems[0] if found.theorems else SAMPLE
    return at.with_null(step, found.saying(theorem, f"{about}; {sampler}"))


def gaussian_hit(rate: float, sigma: float) -> Step:
    """(1-q) N(0) + q N(1) against N(0); without noise the record is seen whenever it is sampled."""
    if sigma * sigma == 0 or math.isinf(1 / (sigma * sigma)):
        return Step((), (), PointLoss(math.log1p(-rate), math.log1p(-rate), rate))
    return Step((), (), GaussianMixtureLoss.one(rate, sigma))


def _replaced(step: Step, rate: float, sampler: str, at: Setting) -> Step:
    """(1-q) N(0) + q N(s) against (1-q) N(0) + q N(-s).

    By joint convexity it is enough to bound P_x[E] - a' ((1-b) P_0[E] + b P_x'[E]) over all events E and contributions
    x, x' of norm at most 1. Among all events of the same probability under N(0) a half-space in the direction of x has
    the largest probability under N(x) and the smallest under N(-x) (Neyman and Pearson), and both grow with the norm:
    so the pair with x' = -x of norm 1 and a half-space does better. It is attained, and its own mirror image.
    """
    if step.distances is None:
        raise Unsupported(
            f"{at.sampled} under replace-one: needs the guarantee for added records as well as for replaced ones; "
            "ask under add-remove or zero-out."
        )
    if not step.contributions_known or step.distances.add is None:
        raise Unsupported(
            f"{at.inner} on a Poisson sample under replace-one: needs the bound on one record's contribution as well "
            "as the sensitivity; give noise_multiplier = noise / clipping norm, or ask under add-remove."
        )
    theorem = (
        "Poisson-sampled Gaussian under replace-one: (1-q) N(0) + q N(C) against (1-q) N(0) + q N(-C) "
        "(joint convexity and Neyman-Pearson; docs/samplers.md)"
    )
    about = f"gaussian: contributions up to C replaced by any other, noise_multiplier = noise / C given; {sampler}"
    return two_sided(rate, step.distances.add).saying(theorem, about)


def two_sided(rate: float, distance: float) -> Step:
    """A hit at +s against a hit at -s, which is its own mirror image; too steep to draw: without sampling above, one
    side alone below."""
    if math.isinf(distance):
        return Step((), (), PointLoss(math.log1p(-rate), 0.0, rate), mirrored=True)
    if distance > FURTHEST:
        bound = GaussianLoss((2 * distance) ** 2)
        return Step((), (), bound, mirrored=True, attained=(GaussianMixtureLoss.one(rate, 1 / distance),))
    pair = NormalPair(((rate, distance),), ((rate, distance),))
    return Step((), (), TableLoss.one(normal_table([(1.0, pair)])), mirrored=True)
