"""The best rho against a fine search in high precision."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import privloss as pl
from privloss.answers.concentrated import _on_cells
from privloss.mechanisms.worst_neighbours import worst_neighbours


def _rho(p: list[float], q: list[float]) -> mpmath.mpf:
    """sup K(t)/(t(t+1)) by golden section from the best of many points."""
    a, b = ([mpmath.mpf(x) / mpmath.fsum(v) for x in v] for v in (p, q))

    def ratio(t: mpmath.mpf) -> mpmath.mpf:
        return mpmath.log(mpmath.fsum(x ** (t + 1) * y**-t for x, y in zip(a, b, strict=True))) / (t * (t + 1))

    points = [mpmath.mpf(10) ** (k / mpmath.mpf(20)) for k in range(-120, 80)]
    i = max(range(1, len(points) - 1), key=lambda j: ratio(points[j]))
    low, high, golden = points[i - 1], points[i + 1], (mpmath.sqrt(5) - 1) / 2
    for _ in range(80):
        c, d = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, d) if ratio(c) >= ratio(d) else (c, high)
    return ratio(low)


@pytest.mark.parametrize(
    ("p", "q"), [([0.5, 0.3, 0.2], [0.4, 0.25, 0.35]), ([0.5, 0.3, 0.2], [0.01, 0.64, 0.35]), ([0.9, 0.1], [0.5, 0.5])]
)
def test_rho_of_a_table_is_narrow(p: list[float], q: list[float]) -> None:
    with mpmath.workdps(30):
        truth = max(_rho(p, q), _rho(q, p))
    found = pl.Custom(p, q).zcdp()
    assert found.lower <= truth <= found.upper
    assert found.relative_width < 2e-10


@pytest.mark.parametrize("a", [1e-3, 0.1, 0.7, 5.0, 300.0])
@pytest.mark.parametrize("width", [1e-6, 1e-2, 0.5, 3.0])
@pytest.mark.parametrize("mean", [0.01, 0.4])
def test_no_point_of_a_cell_exceeds_its_bound(a: float, width: float, mean: float) -> None:
    """K(t) = log(1 + w (e^t - 1)) shifted so that K is what a loss has: convex, 0 at 0."""
    b = a * (1 + width)
    t = np.linspace(a, b, 1001)

    def k(x: np.ndarray) -> np.ndarray:
        return np.logaddexp(np.log1p(-mean), np.log(mean) + x)

    bound = _on_cells(np.array([a]), np.array([b]), k(np.array([a])), k(np.array([b])))[0]
    chord = k(np.array([a])) + (k(np.array([b])) - k(np.array([a]))) * (t - a) / (b - a)
    assert bound >= (k(t) / (t * (t + 1))).max() * (1 - 1e-15)
    assert bound >= min((chord / (t * (t + 1))).max() * (1 - 1e-14), k(np.array([b]))[0] / (b * (a + 1)))


def test_rho_of_many_uses_of_a_bounded_range_is_that_of_one_times_their_number() -> None:
    """Roundings of K at tiny t must not pass for rho."""
    one, many = pl.Exponential(4.0).as_plan().zcdp(), (pl.Exponential(4.0) * 10_000).zcdp()
    assert many.upper <= 10_000 * one.upper * (1 + 1e-4)
    assert many.lower <= many.upper


@pytest.mark.parametrize("mechanism", [pl.Laplace(1.0), pl.Laplace(0.01), pl.Exponential(4.0), pl.PureDP(0.1)])
@pytest.mark.parametrize("uses", [1, 10_000])
def test_lower_bounds_on_k_stay_below_it_at_tiny_tilts(mechanism: pl.Mechanism, uses: int) -> None:
    """K(t) <= t E[Z] + t^2/2 reach^2 e^(t reach): what a lower bound must never exceed, however small t is."""
    loss = worst_neighbours(mechanism * uses, "replace-one").loss
    t = np.geomspace(1e-17, 1e-6, 45)
    reach = max(loss.largest, loss.reversed().largest)
    most = t * (loss.mean_bounds()[1] + 0.5 * t * reach**2 * np.exp(t * reach))
    assert np.all(loss.log_mgf_lower(t) <= most * (1 + 1e-14))


@pytest.mark.parametrize("eps", [0.01, 0.3, 2.0])
def test_rho_of_choices_of_bounded_range(eps: float) -> None:
    """eps^2/8 each (Lem. rdp_properties, part 5), whatever they are composed with; two-point mechanisms come close."""
    choices = pl.Exponential(eps) * 10 + pl.Exponential(2 * eps) * 3
    wanted = 22 * eps**2 / 8
    found = choices.zcdp()
    assert found.upper == pytest.approx(wanted, rel=1e-13)
    assert found.upper >= wanted * (1 - 1e-15)
    assert found.lower >= wanted * (1 - 0.03 - 0.1 * eps)
    assert (choices + pl.Gaussian(1.0)).zcdp().upper == pytest.approx(wanted + 0.5, rel=1e-12)
    middle, t = 0.5 * eps, np.linspace(0.01, 50, 200)
    up = -np.expm1(-middle) / -np.expm1(-eps)
    ratio = np.log(up * np.exp(t * middle) + (1 - up) * np.exp(-t * middle)) / (t * (t + 1))
    assert ratio.max() <= pl.Exponential(eps).as_plan().zcdp().upper
