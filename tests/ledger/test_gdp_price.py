"""Prices in GDP against the definition, d(eps) <= G_mu(eps) at every eps, in many digits on dense grids."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import privloss as pl
from privloss.ledger import gdp_price
from privloss.ledger.filters import Filter
from privloss.ledger.pricing import price

Profile = Callable[[Any], Any]  # eps -> delta, the larger of both directions
DENSE = 600


@pytest.fixture(autouse=True, scope="module")
def _forty_digits() -> Iterator[None]:
    with mp.workdps(40):
        yield


def mu_of(plan: Any) -> float:
    """Never less than the price, and hardly more."""
    found = price(plan.as_plan(), Filter.of("gdp", "1000"))["mu_squared"]
    assert found.denominator <= 2**40
    return math.sqrt(found) * (1 + 1e-15)


def gaussian(mu: Any, eps: Any) -> Any:
    return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)


def holds(mu: float, profile: Profile, end: float) -> bool:
    """d <= G_mu on a dense grid; 1e-30 for the roundings of the oracle itself."""
    grid = [mp.mpf(end) * k / DENSE for k in range(DENSE + 1)]
    return all(profile(eps) <= gaussian(mp.mpf(mu), eps) * (1 + mp.mpf("1e-30")) for eps in grid)


def sharp(mu: float, profile: Profile, end: float, above: float) -> bool:
    """Whether the price is right, and one that is smaller by this share would not be."""
    return holds(mu, profile, end) and not holds(mu * (1 - above), profile, end)


def of_pairs(pairs: Sequence[tuple[Any, Any]], uses: int) -> Profile:
    """All outcomes of several uses of a pair with few outcomes, in both directions."""
    whole = [(mp.fprod(p for p, _ in each), mp.fprod(q for _, q in each)) for each in _products(pairs, uses)]

    def profile(eps: Any) -> Any:
        a = mp.exp(eps)
        forth = mp.fsum(max(p - a * q, mp.mpf(0)) for p, q in whole)
        return max(forth, mp.fsum(max(q - a * p, mp.mpf(0)) for p, q in whole))

    return profile


def _products(pairs: Sequence[tuple[Any, Any]], uses: int) -> list[tuple[tuple[Any, Any], ...]]:
    return list(itertools.product([(mp.mpf(p), mp.mpf(q)) for p, q in pairs], repeat=uses))


def laplace(lam: float) -> Profile:
    return lambda eps: max(1 - mp.exp((eps - mp.mpf(lam)) / 2), mp.mpf(0))


def responses(eps0: float, uses: int) -> Profile:
    """So many uses of randomised response: a binomial sum."""
    p = 1 / (1 + mp.exp(-mp.mpf(eps0)))
    masses = [mp.binomial(uses, k) * p**k * (1 - p) ** (uses - k) for k in range(uses + 1)]
    losses = [(2 * k - uses) * mp.mpf(eps0) for k in range(uses + 1)]

    def profile(eps: Any) -> Any:
        return mp.fsum(m * max(1 - mp.exp(eps - z), mp.mpf(0)) for m, z in zip(masses, losses, strict=True))

    return profile


def discrete_gaussian(sigma: float) -> Profile:
    """One use, sensitivity 1: outcomes from -60 to 120 sigma^2."""
    square = mp.mpf(sigma) ** 2
    values = range(-60, int(120 * square))
    total = mp.fsum(mp.exp(-(mp.mpf(j) ** 2) / (2 * square)) for j in range(-400, 400))
    pairs = [(mp.exp(-((mp.mpf(j) - 1) ** 2) / (2 * square)) / total, (j - mp.mpf("0.5")) / square) for j in values]
    return lambda eps: mp.fsum(m * (1 - mp.exp(eps - z)) for m, z in pairs if z > eps)


# -- exact ones --------------------------------------------------------------------------------------------------------


def test_gaussian_plans_are_exact() -> None:
    plan = pl.Gaussian(2) * 3 + pl.GDP(0.5) + pl.Gaussian(sigma=4.0, sensitivity=2.0)
    assert gdp_price.mu_squared(plan) == Fraction(3, 4) + Fraction(1, 4) + Fraction(1, 4)
    assert gdp_price.mu_squared(plan.under("replace-one")) == 4 * Fraction(3, 4) + Fraction(1, 4) + Fraction(1, 4)
    tiny = price(pl.Gaussian(1e9).as_plan(), Filter.of("gdp", "1"))
    assert tiny == {"mu_squared": Fraction(1, 2**40)}


@pytest.mark.parametrize("eps", [0.01, 0.2, 1.0, 5.0])
def test_pure_boxes_are_exact(eps: float) -> None:
    """2 Phi^-1(e^eps/(1+e^eps)) (Dong, Roth, Su 2022)."""
    exact = 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(mp.mpf(eps) / 2))  # 2 Phi - 1 = tanh(eps/2)
    for box in (pl.PureDP(eps), pl.RandomizedResponse(eps)):
        assert exact <= mu_of(box) <= exact * (1 + mp.mpf("1e-5"))


@pytest.mark.parametrize("lam", [0.05, 0.5, 3.0])
def test_one_use_of_laplace_noise_is_exact(lam: float) -> None:
    assert sharp(mu_of(pl.Laplace(1 / lam)), laplace(lam), lam, 1e-5)


# -- proven ones -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("eps0", "uses"), [(0.3, 2), (0.3, 20), (0.05, 60), (2.0, 5)])
def test_randomised_response(eps0: float, uses: int) -> None:
    assert sharp(mu_of(pl.RandomizedResponse(eps0) * uses), responses(eps0, uses), eps0 * uses, 0.003)


@pytest.mark.parametrize("sigma", [0.8, 2.0])
def test_discrete_gaussian_noise(sigma: float) -> None:
    """Not 1/sigma: far out an atom has more mass than the tail of the density."""
    found, profile = mu_of(pl.DiscreteGaussian(sigma)), discrete_gaussian(sigma)
    assert holds(found, profile, 25 / sigma)
    assert not holds(max(found * 0.996, 1 / sigma), profile, 25 / sigma)


UNEVEN = [(0.9, 0.5), (0.1, 0.5)]


@pytest.mark.parametrize("uses", [1, 2, 5])
def test_both_directions_count(uses: int) -> None:
    forth, back = pl.Custom([0.9, 0.1], [0.5, 0.5]) * uses, pl.Custom([0.5, 0.5], [0.9, 0.1]) * uses
    for plan in (forth, back):
        assert sharp(mu_of(plan), of_pairs(UNEVEN, uses), uses * math.log(5), 0.003)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(1, 20), min_size=3, max_size=3),
    st.lists(st.integers(1, 20), min_size=3, max_size=3),
    st.integers(1, 4),
)
def test_any_small_pair(p: list[int], q: list[int], uses: int) -> None:
    pairs = [(Fraction(a, sum(p)), Fraction(b, sum(q))) for a, b in zip(p, q, strict=True)]
    if all(a == b for a, b in pairs):
        return
    given_p, given_q = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    end = uses * max(abs(math.log(a / b)) for a, b in pairs)
    exact = [(mp.mpf(a.numerator) / a.denominator, mp.mpf(b.numerator) / b.denominator) for a, b in pairs]
    found = mu_of(pl.Custom(given_p, given_q) * uses) * (1 + 1e-12)  # doubles are not the fractions
    assert sharp(found, of_pairs(exact, uses), end, 0.01)


def test_mixed_plans() -> None:
    """Together they cost no more than apart, and no less than either."""
    parts = pl.Gaussian(2) * 2, pl.Laplace(2.0) * 3
    both = mu_of(parts[0] + parts[1])
    assert max(mu_of(parts[0]), mu_of(parts[1])) < both <= math.hypot(*(mu_of(p) for p in parts)) * (1 + 1e-9)
    plan = parts[0] + parts[1]
    for eps in (0.0, 0.3, 1.0, 3.0, 8.0, 20.0):  # the engine's own answers, proven elsewhere
        assert plan.delta(eps).lower <= float(gaussian(mp.mpf(both), mp.mpf(eps))) * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_samples_of_gaussian_noise_cost_what_the_noise_costs(adjacency: str) -> None:
    """All smaller mu fail far out: (1-q) N(0) + q N(m) against N(0), in closed form."""
    plain, sampled = pl.Gaussian(2) * 100, pl.Gaussian(2).poisson(0.01) * 100
    assert mu_of(sampled.under(adjacency)) == mu_of(plain.under(adjacency))
    rate, m = mp.mpf("0.01"), mp.mpf("0.5")

    def profile(eps: Any) -> Any:
        y = (mp.log((mp.exp(eps) - 1 + rate) / rate) + m * m / 2) / m  # where the loss is eps
        above, without = mp.ncdf(m - y), mp.ncdf(-y)
        return (1 - rate) * without + rate * above - mp.exp(eps) * without

    with mp.workdps(400):  # what cancels is about e^300
        assert profile(mp.mpf(300)) > gaussian(m * mp.mpf("0.97"), mp.mpf(300))
        assert profile(mp.mpf(300)) < gaussian(m, mp.mpf(300))
    assert mu_of(pl.DiscreteGaussian(3.0).poisson(0.1) * 10) == mu_of(pl.DiscreteGaussian(3.0) * 10)


def test_a_box_costs_no_less_than_what_may_be_inside() -> None:
    inside = pl.Laplace(2.0)
    assert mu_of(pl.ZCDP(inside.zcdp().upper)) >= mu_of(inside)
    assert mu_of(pl.ZCDP(0.125)) >= 0.5


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (pl.ApproxDP(0.2, 1e-9), "ApproxDP.*infinite with probability 1e-09"),
        (pl.TruncatedLaplace(2.0, 60.0), "TruncatedLaplace.*infinite with probability"),
        (pl.ZCDP(0.1, 1e-9), "ZCDP.*infinite with probability"),
        (pl.RDP([2, 8], [0.1, 0.4]), "RDP.*finitely many orders"),
        (pl.Gaussian(2) + pl.Laplace(1) + pl.RDP([2], [0.1]), "RDP.*finitely many orders"),
        (pl.PureDP(200.0), "cannot be told from 1"),
        (pl.Gaussian(0.0), "without noise"),
    ],
)
def test_what_has_no_finite_mu_is_refused(plan: Any, says: str) -> None:
    with pytest.raises(pl.Unsupported, match=says):
        mu_of(plan)


def test_many_uses_whose_delta_cannot_be_told_from_one() -> None:
    one, many = mu_of(pl.Laplace(1.0)), mu_of(pl.Laplace(1.0) * 1000)
    assert many == pytest.approx(math.sqrt(1000) * one, rel=1e-6)


# -- between points ----------------------------------------------------------------------------------------------------


@given(st.floats(0.01, 8.0), st.floats(0.0, 3.0), st.floats(0.01, 3.0), st.floats(0.2, 1.02), st.floats(0.2, 1.02))
@example(1.0, 0.5, 0.5, 1.001, 0.3)  # too large at the left end, which the tangent there meets at the right one
@example(1.0, 0.5, 0.02, 0.98, 1.001)  # and the other way round
@example(1.0, 0.5, 2.0, 1.0, 1.0)  # right at both ends, wrong in between
def test_a_cell_is_proven_only_if_its_chord_is_below(mu: float, start: float, wide: float, a: float, b: float) -> None:
    left, right = start * mu, (start + wide) * mu
    above, below = (x * float(gaussian(mp.mpf(mu), mp.mpf(e))) for x, e in ((a, left), (b, right)))
    if above < below or not gdp_price._below(mu, (left, above), (right, below)):
        return
    first, last = mp.exp(mp.mpf(left)), mp.exp(mp.mpf(right))
    for k in range(41):
        u = first + (last - first) * k / 40
        chord = (above * (last - u) + below * (u - first)) / (last - first)
        assert chord <= gaussian(mp.mpf(mu), mp.log(u))


def test_cells_are_proven_where_there_is_room() -> None:
    ends = [(0.5, float(gaussian(mp.mpf(1), mp.mpf("0.5")))), (0.52, float(gaussian(mp.mpf(1), mp.mpf("0.52"))))]
    assert gdp_price._below(1.001, ends[0], ends[1])
    assert not gdp_price._below(1.0, ends[0], ends[1])


# -- far out -----------------------------------------------------------------------------------------------------------


def chernoff(rho: float, shift: float, eps: Any) -> Any:
    """kappa(c) e^(rho c(c+1) + shift c - c eps) at the best c up to the factor kappa."""
    c = (eps - shift) / (2 * mp.mpf(rho)) - mp.mpf("0.5")
    return c**c / (c + 1) ** (c + 1) * mp.exp(rho * c * (c + 1) - c * (eps - shift))


@pytest.mark.parametrize("rho", [1e-6, 0.02, 0.5, 30.0])
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("far", [6.0, 12.0, 30.0])
def test_tails(rho: float, share: float, far: float) -> None:
    root = math.sqrt(2 * rho)
    shift = share * root
    eps = shift + root * (root / 2 + far)
    found = gdp_price._tail(rho, shift, eps)
    assert root < found < 2 * root
    assert found < root * 1.03 or far < 30 or share > 0

    def below(mu: float) -> bool:
        points = [mp.mpf(eps) * mp.mpf("1.25") ** k for k in range(40)]
        with mp.workdps(60):
            logs = [(mp.log(chernoff(rho, shift, e)), log_gaussian(mp.mpf(mu), e)) for e in points]
        return all(ours <= theirs for ours, theirs in logs)

    assert below(found)
    assert not below(root)  # planted: the tail of the Gaussian with the same rho is not enough


def log_gaussian(mu: Any, eps: Any) -> Any:
    """log G_mu far out: phi(a) (R(a) - R(b)), R by its integral representation's continued fraction."""

    def ratio(x: Any) -> Any:
        rest = mp.mpf(0)
        for k in range(400, 0, -1):
            rest = k / (x + rest)
        return 1 / (x + rest)

    a, b = eps / mu - mu / 2, eps / mu + mu / 2
    return -a * a / 2 - mp.log(2 * mp.pi) / 2 + mp.log(ratio(a) - ratio(b))


# -- planted errors ----------------------------------------------------------------------------------------------------


def test_points_alone_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_the_ends(left: tuple[float, float], right: tuple[float, float], best: float) -> float:
        return max(gdp_price._inverse(*left), gdp_price._inverse(*right))

    monkeypatch.setattr(gdp_price, "_cell", at_the_ends)
    pairs = [(0.55, 0.4), (0.4, 0.2), (0.05, 0.4)]
    found = mu_of(pl.Custom([0.55, 0.4, 0.05], [0.4, 0.2, 0.4]) * 3)
    assert not holds(found, of_pairs(pairs, 3), 3 * math.log(8))


def test_one_direction_alone_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(self: Any, values: list[float]) -> list[pl.Bound]:
        a = [math.exp(eps) for eps in values]
        return [pl.Bound(d, d) for d in (sum(max(p - u * q, 0.0) for p, q in UNEVEN) for u in a)]

    monkeypatch.setattr(gdp_price.DeltaCurve, "read", forward)
    assert not holds(mu_of(pl.Custom([0.9, 0.1], [0.5, 0.5])), of_pairs(UNEVEN, 1), math.log(5))
