"""rho against the supremum of K(t)/(t(t+1)) itself, both directions, on a fine grid of t with 30 digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import mpmath
import numpy as np
import pytest

import privloss as pl
from privloss.answers.concentrated import _rho_lower
from privloss.losses.base import Concentration
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.composed import ComposedLoss
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics.floats import Real

Vector = Sequence[float]
K = Callable[[mpmath.mpf], mpmath.mpf]
GRID = [mpmath.mpf(10) ** (mpmath.mpf(i) / 20) for i in range(-80, 81)]  # 1e-4 to 1e4
UNEVEN: list[tuple[Vector, Vector]] = [([0.01, 0.99], [0.0001, 0.9999]), ([0.0001, 0.9999], [0.01, 0.99])]


def log_mgf(p: Vector, q: Vector) -> K:
    return lambda t: mpmath.log(
        mpmath.fsum(mpmath.mpf(a) * (mpmath.mpf(a) / mpmath.mpf(b)) ** t for a, b in zip(p, q, strict=True))
    )


def laplace(lam: float) -> K:
    return lambda t: mpmath.log(((t + 1) * mpmath.exp(t * lam) + t * mpmath.exp(-(t + 1) * lam)) / (2 * t + 1))


def sampled_gaussian(rate: float, sigma: float) -> K:
    """Whole t only: E_Q[r^(t+1)] by the binomial theorem."""

    def k(t: mpmath.mpf) -> mpmath.mpf:
        n = int(t) + 1
        return mpmath.log(
            mpmath.fsum(
                mpmath.binomial(n, j) * (1 - rate) ** (n - j) * mpmath.mpf(rate) ** j
                * mpmath.exp(mpmath.mpf(j * (j - 1)) / (2 * sigma**2))
                for j in range(n + 1)
            )
        )  # fmt: skip

    return k


def supremum(ks: Sequence[K], at: Sequence[mpmath.mpf] = GRID) -> mpmath.mpf:
    return max(sum(k(t) for k in ks) / (t * (t + 1)) for t in at)


def refined(k: K) -> mpmath.mpf:
    """The largest value near the best point of the grid, by thirds."""

    def ratio(x: mpmath.mpf) -> mpmath.mpf:
        t = mpmath.exp(x)
        return k(t) / (t * (t + 1))

    middle = mpmath.log(max(GRID, key=lambda t: k(t) / (t * (t + 1))))
    low, high = middle - mpmath.mpf("0.12"), middle + mpmath.mpf("0.12")
    for _ in range(80):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (one, high) if ratio(one) < ratio(two) else (low, two)
    return ratio(low)


def of_pair(p: Vector, q: Vector) -> mpmath.mpf:
    """The supremum of a pair in both directions; at 0 it is the mean loss."""
    kl = [
        mpmath.fsum(mpmath.mpf(a) * mpmath.log(mpmath.mpf(a) / b) for a, b in zip(*o, strict=True))
        for o in ((p, q), (q, p))
    ]
    return max(supremum([log_mgf(p, q)]), supremum([log_mgf(q, p)]), *kl)


@pytest.mark.parametrize(("p", "q"), UNEVEN)
def test_rho_of_a_pair_is_the_larger_direction(p: Vector, q: Vector) -> None:
    with mpmath.workdps(30):
        truth = max(of_pair(p, q), *(refined(log_mgf(*order)) for order in ((p, q), (q, p))))
        found = pl.Custom(p, q).zcdp()
        assert found.upper >= truth * (1 - mpmath.mpf("1e-15"))  # p and q are made to sum to one
        assert found.lower <= truth * (1 + mpmath.mpf("5e-3"))  # between points of the grid
        assert found.upper <= truth * (1 + mpmath.mpf("5e-3"))


def test_rho_of_roles_that_swap_is_not_that_of_the_pair_for_both_orders() -> None:
    """At every t the worse order adds, step by step: count times the rho of one use, and no more."""
    p, q = [0.9, 0.1], [0.5, 0.5]
    with mpmath.workdps(30):
        truth = of_pair(p, q)
        found = (pl.Custom(p, q) * 2).zcdp(adjacency="replace-one")
        assert found.upper >= 2 * truth * (1 - mpmath.mpf("1e-14"))
        assert found.lower <= 2 * truth * (1 + mpmath.mpf("5e-3"))


def test_rho_of_small_losses_is_below_to_the_last_digit() -> None:
    """Where the mean is all, lower ends from above would show."""
    p, q = [0.5 + 1e-7, 0.5 - 1e-7], [0.5 + 3e-7, 0.5 - 3e-7]
    with mpmath.workdps(40):
        sums = [mpmath.fsum(map(mpmath.mpf, v)) for v in (p, q)]
        a, b = ([mpmath.mpf(x) / total for x in v] for v, total in zip((p, q), sums, strict=True))
        truth = of_pair(a, b)
        found = _rho_lower(worst_neighbours(pl.Custom(p, q) * 3).loss)
        assert found <= 3 * truth * (1 + mpmath.mpf("1e-7"))  # between points of the grid


class Vague(GaussianLoss):
    """Gaussian noise of which K and the mean are known from below only: from above up to a factor of three."""

    def concentration(self) -> Concentration:
        return Concentration(searched=self)

    def log_mgf_lower(self, c: Real) -> Real:
        return np.asarray(0.5 * self.mu_squared * c * (c + 1))

    def log_mgf_upper(self, c: Real) -> Real:
        return 3 * self.log_mgf_lower(c)

    def mean_bounds(self) -> tuple[float, float]:
        return 0.5 * self.mu_squared, 1.5 * self.mu_squared


def test_rho_below_comes_from_lower_ends() -> None:
    assert _rho_lower(ComposedLoss((Vague(2.0),))) <= 1 + 1e-12
    assert _rho_lower(ComposedLoss((Vague(2.0), Vague(4.0)))) <= 3 + 1e-12


@pytest.mark.parametrize("size", [1e-8, 1e-3, 0.3])
def test_rho_of_tables_from_both_ends_of_k(size: float) -> None:
    p, q = [0.5 + size, 0.3, 0.2 - size / 2, size / 2], [0.5, 0.3 + size / 8, 0.2 - size / 4, size / 8]
    p, q = [x / math.fsum(p) for x in p], [x / math.fsum(q) for x in q]
    loss = worst_neighbours(pl.Custom(p, q) * 3).loss
    with mpmath.workdps(40):
        a, b = ([mpmath.mpf(x) / mpmath.fsum(map(mpmath.mpf, v)) for x in v] for v in (p, q))
        for direction, k in ((loss, log_mgf(a, b)), (loss.reversed(), log_mgf(b, a))):
            for t in (0.01, 0.3, 1.0, 7.0, 30.0):
                truth, at = 3 * k(mpmath.mpf(t)), np.array([t])
                assert direction.log_mgf_lower(at)[0] <= truth <= direction.log_mgf_upper(at)[0]


def test_rho_adds_what_only_a_curve_bounds() -> None:
    assert (pl.Gaussian(2.0) + pl.ZCDP(0.3)).zcdp().upper >= 0.125 + 0.3
    assert (pl.PureDP(0.1) + pl.ZCDP(0.3)).zcdp().upper >= 0.3
    assert pl.RDP([2, 8], [0.1, 0.4]).zcdp().upper == math.inf
    assert (pl.ZCDP(0.1) + pl.RDP([2, 8], [0.1, 0.4])).zcdp().upper == math.inf
    assert (pl.Gaussian(2.0) + pl.ZCDP(0.3)).zcdp().lower <= 0.125 + 0.3


def test_rho_suprema_at_different_t_neither_add_nor_are_forgotten() -> None:
    """Sampled noise has its rho at t -> inf, Laplace noise near 0."""
    whole = [mpmath.mpf(t) for t in (*range(1, 60), 100, 300)]
    with mpmath.workdps(60):
        for rate, sigma, lam in ((0.5, 0.5, 3.0), (0.01, 2.0, 0.5), (1e-3, 1.0, 1.0)):
            plan = pl.Gaussian(sigma).poisson(rate) + pl.Laplace(1 / lam)
            parts = [sampled_gaussian(rate, sigma), laplace(lam)]
            limit = 1 / (2 * mpmath.mpf(sigma) ** 2)
            truth = max(supremum(parts, whole), limit)
            found = plan.zcdp()
            assert found.upper >= truth
            # between 0 and 1 the sampled part is at most its value at 1, times 2 (K(t)/t does not fall)
            most = max(truth, supremum([laplace(lam)]) + parts[0](mpmath.mpf(1)))
            assert found.lower <= most * (1 + mpmath.mpf("1e-2"))


def test_rho_of_attained_members_at_one_t() -> None:
    """Two candidates attain less than the Laplace pair; a sampled Gaussian beside them has its rho elsewhere."""
    rate, sigma, eps = 0.01, 1.0, 1.0
    plan = pl.Gaussian(sigma).poisson(rate) + pl.NoisyMax(eps, "exponential")
    whole = [mpmath.mpf(t) for t in range(1, 60)]
    with mpmath.workdps(60):
        parts = [sampled_gaussian(rate, sigma), laplace(eps)]
        most = max(supremum(parts, whole), supremum([laplace(eps)]) + parts[0](mpmath.mpf(1)), mpmath.mpf(0.5))
        assert plan.zcdp().lower <= most * (1 + mpmath.mpf("1e-2"))
    assert pl.NoisyMax(eps, "laplace").zcdp().lower <= pl.Laplace(1 / eps).zcdp().upper
    b = (2 + eps / 2) * math.exp(-eps / 2) / 4  # the candidate behind wins
    won = math.log((1 - b) / b)
    response = [math.exp(won) / (1 + math.exp(won)), 1 / (1 + math.exp(won))]
    assert (pl.NoisyMax(eps, "laplace") * 2).zcdp().lower <= 2 * of_pair(response, response[::-1]) * (1 + 1e-6)


@pytest.mark.parametrize("sigma", [0.35, 0.4, 0.5])
def test_rho_of_tables_without_a_largest_loss(sigma: float) -> None:
    """Discrete Gaussian noise: K(1)/2 by summation, which at whole t is 1/(2 sigma^2)."""
    with mpmath.workdps(30):
        weights = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(-30, 31)}
        square = mpmath.fsum(weights[k - 1] ** 2 / weights[k] for k in range(-29, 31)) / mpmath.fsum(weights.values())
        for plan in (pl.DiscreteGaussian(sigma) * 1, pl.DiscreteGaussian(sigma) + pl.PureDP(0.1)):
            assert plan.zcdp().upper >= mpmath.log(square) / 2
