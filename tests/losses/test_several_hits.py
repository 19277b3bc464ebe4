"""Steps with several hits (groups, Gaussian mixtures): bounds off the axis, quadrature, decay, means and answers."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import privloss as pl
from privloss.answers.pair import exact_epsilon
from privloss.losses.composed import ComposedLoss
from privloss.losses.mixture.marked import MarkedLine
from privloss.losses.mixture.strip import Strips
from privloss.losses.mixture.windows import Windows
from privloss.losses.several.fall import SeveralDecay
from privloss.losses.several.hits import SeveralHits
from privloss.losses.several.loss import SeveralHitsLoss
from privloss.losses.several.step import NO_WINDOWS, SeveralStep, mean_losses
from privloss.numerics.contour.solve import delta_bounds
from tests.oracle.several_losses import group as oracle_group
from tests.oracle.summed_losses import delta_other, epsilon

LAWS = [
    SeveralHits.of(((0.02, 0.7), (1e-3, 2.2), (1e-5, 4.0)), 1 - 0.02 - 1e-3 - 1e-5),
    SeveralHits.of(((0.3, 1.0), (0.3, 2.0)), 0.4),
    SeveralHits.of(((3e-3, 1.0), (3e-6, 2.0), (1e-9, 3.0)), 1 - 3e-3 - 3e-6 - 1e-9),
]
LIKELY = SeveralHits.of(((0.027, 1.0), (0.243, 2.0), (0.729, 3.0)), 0.001)  # a term of r < 0.6 is above 1


def _exact(law: SeveralHits, y: complex) -> mpmath.mpc:
    """r at y, in the unit of the last shift."""
    s2 = mpmath.mpf(law.sigma) ** 2
    hits = zip(law.weights, law.shifts, strict=True)
    return 1 + sum(mpmath.mpf(p) * mpmath.expm1(a * (mpmath.mpc(y) - mpmath.mpf(a) / 2) / s2) for p, a in hits)


def _integral(law: SeveralHits, power: complex, weight: object = None) -> mpmath.mpc:
    """Of phi r^power (times a function of y)."""
    sigma = law.sigma
    cuts = [sigma * x for x in range(-14, 0, 2)] + [0.0] + [x * (1 + 14 * sigma) / 12 for x in range(1, 13)]

    def f(y: mpmath.mpf) -> mpmath.mpc:
        value = mpmath.npdf(y, 0, sigma) * mpmath.exp(power * mpmath.log(_exact(law, y).real))
        return value if weight is None else value * weight(float(y))  # type: ignore[operator]

    return mpmath.quad(f, cuts, maxdegree=5)


@pytest.mark.parametrize("law", [*LAWS, LIKELY])
def test_ratio_on_and_off_the_axis(law: SeveralHits) -> None:
    y = np.linspace(-6 * law.sigma, 1 + 8 * law.sigma, 41)
    log_r = law.log_ratio(y)
    off = law.drift(y, log_r) * 2.0**-53
    for theta in (0.0, 0.4, 1.5):
        turned = law.turned(y, np.array([theta]))
        for i, at in enumerate(y):
            with mpmath.workdps(30):
                exact = mpmath.log(_exact(law, complex(at, theta * law.sigma**2)))
            assert abs(complex(exact) - turned[i]) < 1e-13 * (1 + abs(complex(exact)))
            assert float(exact.imag) <= law.odds(y)[i] * theta + 1e-14
            if theta == 0.0:
                assert abs(float(exact.real - mpmath.mpf(float(log_r[i])))) <= off[i]
        assert np.all(np.diff(turned.real) > 0)
        assert np.all(np.diff(turned.imag) >= 0)


@pytest.mark.parametrize("law", [*LAWS, LIKELY])
def test_means(law: SeveralHits) -> None:
    forward, backward = mean_losses(law)
    with mpmath.workdps(30):
        z = lambda y: mpmath.log(_exact(law, y).real)  # noqa: E731
        for mean, truth in ((forward, _integral(law, 1, z)), (backward, -_integral(law, 0, z))):
            assert abs(float(truth) - mean.value[0]) <= mean.error[0] + 1e-12 * abs(mean.value[0])
            assert mean.error[0] < 1e-11 * mean.value[0]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("law", LAWS)
def test_marked_sums(law: SeveralHits, backward: bool) -> None:
    """Each class against its integral, within its own error, at heights that its nodes can just follow."""
    windows = law.windows(np.array([0.3, 0.6, 1.2]) * float(law.log_ratio(np.array([1.0]))[0]))
    step = SeveralStep.marked(law, windows, mean_losses(law), 1 + 12 * law.sigma)
    c, t = 0.7, np.array([0.0, 6.0])
    line = MarkedLine(step, c, backward, t)
    power = complex(-c, -6.0) if backward else complex(c + 1, 6.0)
    with mpmath.workdps(25):
        for j in (0, 1, 2):

            def mark(y: float, j: int = j) -> float:
                return float(np.exp(windows.log_weights(j, np.array([min(y, windows.end(j))]))[0])) * (
                    y <= windows.end(j)
                )

            truth = complex(_integral(law, power, mark))
            found = line.rare(j) if j else line.bulk()
            value, error = found.value[1] + (0 if j else 1), found.error[1]
            assert abs(truth - value) <= error + 1e-9 * abs(truth)


@pytest.mark.parametrize("law", LAWS)
def test_coarse_nodes_err_by_no_more_than_the_strip_says(law: SeveralHits) -> None:
    """With nodes so far apart that quadrature fails, the bound says by how much."""
    step = SeveralStep.marked(law, NO_WINDOWS, mean_losses(law), 1 + 12 * law.sigma)
    fine = MarkedLine(step, 1.5, False, np.linspace(0.0, 9.0, 4)).bulk()
    strips: Strips = step.bulk_strip
    high = step.span(0)[1]
    for spacing in (1.2 * law.sigma**2, 2.5 * law.sigma**2, 5 * law.sigma**2):
        y = high - spacing * (np.arange(math.ceil((high + 11 * law.sigma) / spacing)) + 0.5)
        log_r = law.log_ratio(y)
        mass = np.exp(log_r - 0.5 * (y / law.sigma) ** 2) * spacing / law.sigma / math.sqrt(2 * math.pi)
        for t, known in zip((3.0, 9.0), fine.value[[1, 3]], strict=True):
            u = (1.5 + 1j * t) * log_r
            rough = (mass * (np.exp(u) - 1 - u)).sum() + (1.5 + 1j * t) * step.means[0].value[0]
            bound = math.exp(float(strips.log_missed_rest(1.5, False, t, np.array([spacing]))[0]))
            assert abs(rough - known) <= bound + 1e-12


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("law", LAWS)
def test_decay_is_above_the_truth_at_every_greater_height(law: SeveralHits, backward: bool) -> None:
    windows = law.windows(np.array([0.5, 1.0]) * float(law.log_ratio(np.array([1.0]))[0]))
    for c in (0.3, 3.0, 40.0):
        for marks in (None, windows, Windows(np.array([0.8 * law.sigma]), np.array([0.12 * law.sigma]))):
            top = windows.end(0) if marks is not None else c + 1 + 12 * law.sigma
            y = np.linspace(-11 * law.sigma, top, 40_000)
            z = law.log_ratio(y)
            log = -0.5 * (y / law.sigma) ** 2 + (-c if backward else c + 1) * z
            if marks is not None:
                log = log + marks.log_weights(0, y)
            mass = np.exp(log - log.max())
            spread = math.sqrt(float(np.cov(z, aweights=mass)))
            heights = np.geomspace(0.05, 40.0, 60) / spread
            truth = np.array([abs((mass * np.exp(1j * t * z)).sum()) / mass.sum() for t in heights])
            decay = SeveralDecay.of(law, c, backward, (-9 * law.sigma, top), marks)
            for i, t in enumerate(heights):
                assert float(decay.log_upper(t)[0]) >= math.log(truth[i:].max()) - 1e-8
            if c < 1 and (marks is None or marks is windows):
                assert float(decay.log_upper(2.0 / spread)[0]) < -0.02  # and says something


@pytest.mark.parametrize("law", LAWS)
def test_one_use(law: SeveralHits) -> None:
    """The best test, integrated directly."""
    loss = SeveralHitsLoss.one(law)
    for eps in (1e-3, 0.05, 0.4, -0.01):
        for back in (False, True):
            low, high = (math.exp(end) for end in (loss.reversed() if back else loss).hockey_stick(eps) or (0, 0))
            y = np.linspace(-12 * law.sigma, 1 + 14 * law.sigma, 400_001)
            under_q = np.exp(-0.5 * (y / law.sigma) ** 2) * (y[1] - y[0]) / law.sigma / math.sqrt(2 * math.pi)
            under_p = under_q * np.exp(law.log_ratio(y))
            p, q = (under_q, under_p) if back else (under_p, under_q)
            truth = float(np.maximum(p - math.exp(eps) * q, 0.0).sum())
            assert low <= truth * (1 + 1e-6) + 1e-15
            assert truth * (1 - 1e-6) - 1e-15 <= high


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "delta", "people"),
    [(1.0, 1e-3, 1000, 1e-6, 3), (0.7, 2e-5, 400, 1e-8, 8), (2.5, 0.01, 5000, 1e-9, 4)],
)
def test_groups_agree_with_summed_losses(sigma: float, rate: float, steps: int, delta: float, people: int) -> None:
    """The truth, from losses that are summed on the real line, lies inside, and the interval is narrow."""
    answer = pl.group.plan(pl.Gaussian(sigma).poisson(rate) * steps, people).epsilon(delta)
    pair = oracle_group(sigma, rate, people)
    truth = epsilon(pair, steps, delta)
    assert answer.lower * (1 - 2e-12) <= truth <= answer.upper * (1 + 2e-12)
    assert answer.relative_width < 1e-9
    assert delta_other(pair, steps, answer.lower, delta) <= delta


@pytest.mark.parametrize("people", [1, 4])
def test_the_other_direction(people: int) -> None:
    """Q against P, against one line left of -1."""
    pair = oracle_group(1.2, 0.02, people)
    law = SeveralHits.of(
        tuple((float(w), float(a) / pair.sigma) for w, a in zip(pair.weights, pair.shifts, strict=True)), pair.missed
    )
    loss = SeveralHitsLoss.one(law).times(500).reversed()
    for eps in (0.3, 0.8):
        logs = delta_bounds(ComposedLoss.of([loss]), eps, 1e-10).logs
        assert logs[0] - 1e-9 <= math.log(delta_other(pair, 500, eps)) <= logs[1] + 1e-9
        assert logs[1] - logs[0] < 1e-9


def test_nothing_is_lost_where_delta_exceeds_the_distance() -> None:
    """eps = 0 is read off the lines that were drawn for a larger one, where the mean loss cannot tell."""
    answer = pl.group.plan(pl.Gaussian(1.0927058648740562).poisson(1.4307117285550043e-06) * 15, 3).epsilon(
        9.371082158088706e-06
    )
    assert (answer.lower, answer.upper) == (0.0, 0.0)


def test_a_group_of_one_is_the_plain_sample() -> None:
    for rate, sigma, count in ((1e-3, 0.9, 300), (0.05, 2.0, 2000)):
        law = SeveralHits.of(((rate, 1 / sigma),), 1 - rate)
        found = exact_epsilon(ComposedLoss.of([SeveralHitsLoss.one(law).times(count)]), 1e-6, 1e-10)
        plain = (pl.Gaussian(sigma).poisson(rate) * count).epsilon(1e-6)
        assert max(found.lower, plain.lower) <= min(found.upper, plain.upper)
        assert found.relative_width < 1e-9
