"""A few uses of Laplace noise on a sample: nested integrals lie inside narrow bounds, whose every part is needed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privloss as pl
from privloss.losses.density import few_uses
from privloss.losses.density.few_uses import FewUses, Remainder
from privloss.mechanisms.worst_neighbours import worst_neighbours
from tests.oracle.few_laplace import Sampled

SETTINGS = [
    (1.0, 0.01, 2, 0.9),
    (1.0, 0.01, 2, 0.3),
    (0.5, 0.3, 2, 0.6),
    (2.0, 0.1, 2, 0.97),
    (1.5, 0.02, 2, 0.99),
    (1.0, 0.2, 3, 0.7),
]


def _few(lam: float, rate: float, uses: int, back: bool) -> FewUses:
    loss = worst_neighbours(pl.Laplace(1 / lam).poisson(rate).as_plan(), None).loss.parts[0]
    density = (loss.reversed() if back else loss).rows[0].density
    return density.few[0](uses)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(("lam", "rate", "uses", "share"), SETTINGS)
def test_nested_integrals_lie_inside(lam: float, rate: float, uses: int, share: float, back: bool) -> None:
    few = _few(lam, rate, uses, back)
    eps = share * uses * few.upper.at
    low, high = few.hockey_stick(eps)
    truth = Sampled(lam, rate, back).delta(eps, uses)
    assert math.exp(low) * (1 - 1e-11) - 1e-16 <= truth <= math.exp(high) * (1 + 1e-11) + 1e-16
    assert high - low < 1e-9


@pytest.mark.parametrize("stretch", [1.5, 3.0])
def test_any_powers_give_the_same(monkeypatch: pytest.MonkeyPatch, stretch: float) -> None:
    """What the closed part takes off, the line has, wherever the pole lies."""
    low, high = _few(1.0, 0.05, 4, False).hockey_stick(0.05)
    monkeypatch.setattr(few_uses, "_STRETCH", stretch)
    other = _few(1.0, 0.05, 4, False).hockey_stick(0.05)
    assert other[0] <= high
    assert low <= other[1]
    assert other[1] - other[0] < 1e-9


def test_what_is_cut_off_is_bounded() -> None:
    """Lines that end early stay right."""
    few = _few(1.0, 0.05, 3, False)
    eps = 0.4 * few.count * few.upper.at
    low, high = few.hockey_stick(eps)
    for goal in (1e-3, 1e-5, 1e-7):
        line = Remainder.on(few, 25.0 / few._period, goal)
        value, wrong = few.on_line(line, eps)
        assert value - wrong <= math.exp(high)
        assert math.exp(low) <= value + wrong
        longer = Remainder.on(few, 25.0 / few._period, 1e-13)
        assert abs(value - few.on_line(longer, eps)[0]) <= wrong


def test_what_lies_beyond_each_height_is_bounded() -> None:
    """The rest of the sum from each height on, against its bound; and the bound is not idle."""
    few = _few(1.0, 0.05, 3, False)
    eps, c = 0.4 * few.count * few.upper.at, 25.0 / few._period
    line = Remainder.on(few, c, 1e-15)
    partial = np.cumsum((np.exp(1j * line.t * (line.most - eps)) * line.values).real) * 2 / line.period
    whole = float(Remainder._transform(few, c, np.zeros(1), 0.2)[0][0].real)
    for k in range(50, len(line.t) - 20, 10):
        rest = np.abs(partial[k:] - partial[k]).max()
        bound = float(few.beyond(c, line.t[k : k + 1], whole)[0])
        assert rest <= bound < 2e4 * rest


def test_images_are_known() -> None:
    """At a small tilt the first image to the left weighs 1e-4 of delta and more."""
    few = _few(1.0, 0.05, 3, False)
    eps = 0.4 * few.count * few.upper.at
    low, high = few.hockey_stick(eps)
    line = Remainder.on(few, 6.0 / few._period, 1e-11)
    value, wrong = few.on_line(line, eps)
    assert abs(value - math.exp(low)) <= wrong + math.exp(high) - math.exp(low)
    far = math.exp(-12.0) * (1 + float(few._sizes.sum()))
    assert wrong < 2 * far


@pytest.mark.parametrize("x", [1e-6, 1e-3, 0.3, 4.0])
def test_sums_of_gamma_functions(x: float) -> None:
    """H_k against its integral, for arguments on both sides of where the formula changes."""
    from scipy.special import gammainc

    for a in (30.0, 500.0, 20_000.0):
        size = 40
        if a * x > 2_500 and a * x < 2 * size:
            continue
        found, units = few_uses._gammas(np.array([x]), a, size)
        s, w = np.polynomial.legendre.leggauss(400)
        for k in (0, 1, 7, 39):
            cuts = np.unique(
                np.clip(
                    np.array([0.0, *((k + np.array([-30, -10, -3, 0, 3, 10, 30, 90]) * math.sqrt(k + 1)) / a), x]),
                    0.0,
                    x,
                )
            )
            at = (0.5 * (cuts[1:] + cuts[:-1])[:, None] + 0.5 * np.diff(cuts)[:, None] * s).ravel()
            weights = (0.5 * np.diff(cuts)[:, None] * w).ravel()
            tail = gammainc(k, a * at) if k else np.ones_like(at)
            truth = float(weights @ (np.exp(at - x) * tail))
            assert found[0, k] == pytest.approx(truth, rel=1e-10, abs=1e-300)
        assert units[0] < 1e8


@pytest.mark.parametrize(
    ("scale", "rate", "uses", "delta"),
    [(1.0, 0.01, 3, 1e-6), (1.0, 0.01, 6, 1e-6), (0.5, 0.1, 3, 1e-5), (10.0, 0.1, 4, 1e-3)],
)
def test_answers_are_narrow(scale: float, rate: float, uses: int, delta: float) -> None:
    answer = (pl.Laplace(scale).poisson(rate) * uses).epsilon(delta)
    assert answer.relative_width < 1e-9
    low = (pl.Laplace(scale).poisson(rate) * uses).delta(answer.upper)
    high = (pl.Laplace(scale).poisson(rate) * uses).delta(answer.lower)
    assert low.lower <= delta <= high.upper
    assert high.relative_width < 1e-8


def test_several_uses_lie_between_those_of_dp_accounting() -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    for uses in (4, 9):
        ends = [
            pld.from_laplace_mechanism(
                1.0, sampling_prob=0.1, pessimistic_estimate=above, value_discretization_interval=1e-4
            )
            .self_compose(uses)
            .get_epsilon_for_delta(1e-5)
            for above in (False, True)
        ]
        answer = (pl.Laplace(1.0).poisson(0.1) * uses).epsilon(1e-5)
        assert ends[0] <= answer.upper
        assert answer.lower <= ends[1]
