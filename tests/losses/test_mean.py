"""A few outcomes beside one release of Laplace noise or any Gaussian noise: sums computed here with 40 digits."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

import privloss as pl
from privloss.answers.pair import CLOSED
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.closed.laplace import LaplaceLoss
from privloss.numerics.normal import hockey_sticks

mp.mp.dps = 40
Profile = Callable[[mp.mpf], mp.mpf]
FEW = ([0.2, 0.7, 0.1], [0.5, 0.3, 0.2])
SELDOM = ([0.999999, 1e-6], [1 - 1e-9, 1e-9])


def normal(mu: float) -> Profile:
    m = mp.mpf(mu)
    return lambda x: mp.ncdf(m / 2 - x / m) - mp.e**x * mp.ncdf(-m / 2 - x / m)


def laplace(lam: float) -> Profile:
    end = mp.mpf(lam)
    return lambda x: mp.mpf(0) if x >= end else -mp.expm1((x - end) / 2 if x > -end else x)


def truth(p: list[float], q: list[float], uses: int, profile: Profile, eps: float) -> mp.mpf:
    """The larger of both orders."""

    def one(a: list[float], b: list[float]) -> mp.mpf:
        known = {(): mp.mpf(1)}
        for _ in range(uses):
            known = {(*k, i): m * mp.mpf(a[i]) for k, m in known.items() for i in range(len(a))}
        logs = [mp.log(mp.mpf(x) / mp.mpf(y)) for x, y in zip(a, b, strict=True)]
        return mp.fsum(m * profile(mp.mpf(eps) - mp.fsum(logs[i] for i in k)) for k, m in known.items())

    return max(one(p, q), one(q, p))


RESTS = [
    (pl.Laplace(1 / 0.04), laplace(0.04)),
    (pl.Laplace(0.25), laplace(4.0)),
    (pl.Gaussian(548.0), normal(1 / 548.0)),
    (pl.Gaussian(0.5), normal(2.0)),
    (pl.Gaussian(0.1), normal(10.0)),
]


@pytest.mark.parametrize(("rest", "profile"), RESTS)
@pytest.mark.parametrize(("pair", "uses"), [(FEW, 3), (SELDOM, 1)])
def test_delta(rest: pl.Mechanism, profile: Profile, pair: tuple[list[float], list[float]], uses: int) -> None:
    plan = pl.Custom(*pair) * uses + rest
    for eps in (0.0, 0.3, 1.1, 2.5, 5.0):
        exact, found = truth(*pair, uses, profile, eps), plan.delta(eps)
        # the probabilities of a pair are rounded where they sum to 1
        assert found.lower * (1 - 1e-15) <= exact <= found.upper * (1 + 1e-15)
        assert found.relative_width < 1e-10 or found.upper < 1e-290


@pytest.mark.parametrize(("rest", "profile"), RESTS)
def test_epsilon(rest: pl.Mechanism, profile: Profile) -> None:
    found = (pl.Custom(*FEW) * 2 + rest).epsilon(1e-3)
    assert found.method == CLOSED
    assert found.relative_width < 1e-11
    assert truth(*FEW, 2, profile, found.lower) >= 1e-3 * (1 - 1e-14)
    assert truth(*FEW, 2, profile, found.upper) <= 1e-3 * (1 + 1e-14)


def test_tails_that_are_left_out_are_added() -> None:
    plan = pl.DiscreteGaussian(0.3) + pl.RandomizedResponse(2.0) * 2 + pl.Laplace(0.25)
    found = plan.delta(1.0)
    near = [mp.e ** (-mp.mpf(k * k) / (2 * mp.mpf(0.3) ** 2)) for k in range(-30, 31)]
    masses = [w / mp.fsum(near) for w in near]
    pairs = [(masses[i - 1], masses[i]) for i in range(1, 61)]
    up = 1 / (1 + mp.e ** (-2))
    each = [(up, 1 - up), (1 - up, up)]
    exact = mp.fsum(
        p * a[0] * b[0] * laplace(4.0)(1 - mp.log(p / q) - mp.log(a[0] / a[1]) - mp.log(b[0] / b[1]))
        for p, q in pairs
        for a in each
        for b in each
    )
    assert found.lower <= exact <= found.upper
    assert found.relative_width < 1e-10


@pytest.mark.parametrize("mu", [1e-5, 0.02, 0.7, 3.0, 30.0])
def test_many_normal_profiles(mu: float) -> None:
    x = np.concatenate([mu * np.linspace(-30, 30, 61) - 0.5 * mu * mu, mu * mu * np.linspace(-1, 1, 5)])
    low, high = hockey_sticks(x, mu)
    for at, a, b in zip(x.tolist(), low.tolist(), high.tolist(), strict=True):
        exact = normal(mu)(mp.mpf(at))
        assert a <= exact <= b
        assert b - a <= 1e-11 * exact / min(mu, 1.0) + 1e-290


def test_profiles_of_bundles_cover_their_rounded_parameters() -> None:
    x = np.linspace(-6, 6, 40)
    for loss, profile in ((GaussianLoss(2.0), normal), (LaplaceLoss(np.array([3.0]), np.ones(1)), laplace)):
        ends = loss.profile(x)
        assert ends is not None
        for parameter in (math.sqrt(2.0), 3.0)[profile is laplace :][:1]:
            exact = [profile(parameter)(mp.mpf(at)) for at in x.tolist()]
            assert all(a <= one <= b for one, a, b in zip(exact, *ends, strict=True))
    assert LaplaceLoss(np.array([3.0]), np.array([2.0])).profile(x) is None
