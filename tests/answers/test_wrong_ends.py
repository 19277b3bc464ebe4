"""Ends that were wrong once, each with the truth it missed."""

from __future__ import annotations

import math
from itertools import pairwise, product

import mpmath
import pytest
from scipy.integrate import quad

import privloss as pl
from privloss.losses.composed import ComposedLoss
from privloss.losses.composition import WorstNeighbours
from privloss.losses.curve import RenyiCurve
from privloss.losses.samplers.setting import NULL_ADDS_NOTHING
from privloss.numerics.bound import Bound

# -- noisy max ---------------------------------------------------------------------------------------------------------


def _survival(noise: str, t: float) -> float:
    tail = 0.5 * math.exp(-abs(t)) if noise == "exponential" else 0.25 * (2 + abs(t)) * math.exp(-abs(t))
    return tail if t > 0 else 1 - tail


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
@pytest.mark.parametrize("eps", [0.3, 1.0, 3.0])
def test_noisy_max_is_below_every_pair_of_candidates(noise: str, eps: float) -> None:
    """Two candidates at any margin, by the law of the difference of their noises."""
    found = pl.NoisyMax(eps, noise)
    for x in (0.0, 0.2, 0.7 * eps):
        best = 0.0
        for i in range(401):
            margin = -2 * eps + i * eps / 100
            p, q = _survival(noise, margin), _survival(noise, margin + eps)
            best = max(best, p - math.exp(x) * q, (1 - q) - math.exp(x) * (1 - p))
        bound = found.delta(x)
        assert bound.upper >= best - 1e-13
        assert bound.lower <= best + (1e-4 if noise == "exponential" else 0.0) + 1e-13
    assert found.total_variation().lower <= -math.expm1(-eps / 2) + 1e-13  # the box has tanh(eps/2)


def test_noisy_max_with_three_candidates_by_integration() -> None:
    """P[first wins] among three, exponential noise, moved by the sensitivity in all directions."""

    def wins(scores: tuple[float, ...], k: int) -> float:
        def density(z: float) -> float:
            others = [scores[k] + z - s for i, s in enumerate(scores) if i != k]
            return math.exp(-z) * math.prod(max(-math.expm1(-o), 0.0) if o > 0 else 0.0 for o in others)

        kinks = [s - scores[k] for i, s in enumerate(scores) if i != k and s > scores[k]]
        edges = sorted({0.0, *kinks, 0.5, 1.0, 2.0, 4.0, 8.0, 40.0})
        return math.fsum(quad(density, a, b, epsabs=1e-12)[0] for a, b in pairwise(edges))

    eps = 1.0  # rate 1, sensitivity 1/2
    base = (0.3, 0.0, 0.1)
    first = [wins(base, k) for k in range(3)]
    for moves in product((-0.5, 0.5), repeat=3):
        other = tuple(b + m for b, m in zip(base, moves, strict=True))
        second = [wins(other, k) for k in range(3)]
        for x in (0.0, 0.5):
            gain = sum(max(p - math.exp(x) * q, 0.0) for p, q in zip(first, second, strict=True))
            assert gain <= pl.NoisyMax(eps, "exponential").delta(x).upper + 1e-7


# -- one use of a bounded range ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 2.0, 8.0])
def test_divergences_of_the_exponential_mechanism_are_attained(alpha: float) -> None:
    """The largest over two-point mechanisms with losses t and t - eps; the dominating pair has more."""
    eps = 2.0
    best = 0.0
    for i in range(1, 400):
        t = eps * i / 400
        up = (math.exp(eps) - math.exp(t)) / math.expm1(eps)
        q = (up * math.exp(-t), 1 - up * math.exp(-t))
        p = (up, 1 - up)
        if alpha == 1:
            value = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
        else:
            value = math.log(sum(a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True))) / (alpha - 1)
        best = max(best, value)
    found = pl.Exponential(eps).rdp(alpha)
    assert found.lower <= best * (1 + 1e-4)
    assert found.upper >= best


# -- delta = 0 and delta = 1 -------------------------------------------------------------------------------------------


def test_largest_losses_have_a_lower_end_of_their_own() -> None:
    plan = pl.PrivacyProfile([0.0011139546157293892], [0.0]).poisson(1.0633834029011163e-07) * 5
    with mpmath.workdps(40):
        q, eps = mpmath.mpf(1.0633834029011163e-07), mpmath.mpf(0.0011139546157293892)
        truth = 5 * mpmath.log(1 - q + q * mpmath.exp(eps))
        found = plan.epsilon(0.0)
        assert mpmath.mpf(found.lower) <= truth <= mpmath.mpf(found.upper)
    assert pl.Custom([0.5, 0.5], [0.5, 0.5]).epsilon(0.0).lower == 0
    assert (pl.Custom([0.2, 0.8], [0.2, 0.8]) * 7).rdp(math.inf).lower == 0


@pytest.mark.parametrize("count", [60, 100, 1000])
def test_delta_is_not_quite_one(count: int) -> None:
    found = (pl.ApproxDP(0.1, 0.5) * count).delta(1.0)
    assert found.lower < 1
    assert found.upper == 1
    assert pl.ApproxDP(0.1, 1.0).delta(1.0) == Bound(1.0, 1.0)


# -- zero-out on a sample ----------------------------------------------------------------------------------------------


def test_zero_out_on_a_sample_says_what_it_assumes() -> None:
    for sampled in (pl.PureDP(1.0).poisson(0.1), pl.Gaussian(sigma=2.0).poisson(0.1), pl.Laplace(2.0).poisson(0.5)):
        assert NULL_ADDS_NOTHING in sampled.explain(delta=1e-6, adjacency="zero-out").assumptions
        assert NULL_ADDS_NOTHING not in sampled.explain(delta=1e-6).assumptions
    for known in (pl.Gaussian(2.0).poisson(0.1), pl.Laplace(noise_multiplier=2.0).poisson(0.1), pl.PureDP(1.0)):
        assert NULL_ADDS_NOTHING not in known.explain(delta=1e-6, adjacency="zero-out").assumptions
    truncated = pl.Gaussian(sigma=2.0).truncated_poisson(0.1, 100, 20)
    assert NULL_ADDS_NOTHING in truncated.explain(delta=1e-6, adjacency="zero-out").assumptions
    assert (
        NULL_ADDS_NOTHING in pl.Gaussian(sigma=2.0).allocated(5).explain(delta=1e-6, adjacency="zero-out").assumptions
    )


def test_why_it_must_be_assumed() -> None:
    """A mechanism that is 0-DP under zero-out, yet shows whether the record or its null record was sampled at all:
    M(S) = 0, M(S with x) = M(S with null) = 1. Its sampled pair is not the trivial one under add-remove."""
    assert pl.PureDP(0.0).poisson(0.5).delta(0.0, adjacency="zero-out").upper == 0


# -- the trade-off curve near its edge ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fpr", [1e-4, 0.01, 0.2, 0.49, 0.7])
def test_trade_off_of_laplace_noise_is_contained(fpr: float) -> None:
    lam = 0.8
    cut = 0.5 * math.exp(-lam)
    if fpr < cut:
        truth = 1 - math.exp(lam) * fpr
    elif fpr <= 0.5:
        truth = math.exp(-lam) / (4 * fpr)
    else:
        truth = math.exp(-lam) * (1 - fpr)
    found = pl.Laplace(1 / lam).tradeoff(fpr)
    assert found.lower - 1e-12 <= truth <= found.upper + 1e-12


# -- contradictions ----------------------------------------------------------------------------------------------------


def test_contradictions_raise() -> None:
    """A lower end above the upper end is a bug, and is never shown as an interval."""
    from privloss.answers import exact
    from privloss.mechanisms.worst_neighbours import worst_neighbours

    good = worst_neighbours(pl.Gaussian(2.0).as_plan())
    worse = worst_neighbours(pl.Gaussian(1.0).as_plan()).loss
    broken = WorstNeighbours(
        "add-remove", good.loss, RenyiCurve(), ComposedLoss(()), (worse,), False, None, None, (), ()
    )
    with pytest.raises(pl.InvalidInput, match="lower"):
        exact._epsilon(broken, 1e-6, 1e-10)
    with pytest.raises(pl.InvalidInput, match="lower"):
        exact._delta(broken, 1.0, 1e-10)


# -- calibration -------------------------------------------------------------------------------------------------------


def test_calibrated_values_meet_their_target() -> None:
    for family, epsilon, delta in (
        (lambda s: pl.Laplace(s) * 20, 2.0, 1e-5),
        (lambda s: pl.Gaussian(s).poisson(0.01) * 100, 1.0, 1e-6),
        (lambda s: pl.Laplace(s) * 3, 1.0, 1e-4),
    ):
        found = pl.calibrate(family, epsilon=epsilon, delta=delta)
        assert found.achieved.upper <= epsilon
        assert found.plan.epsilon(delta).upper <= epsilon


def test_a_search_stays_where_plans_are_supported() -> None:
    found = pl.calibrate(lambda s: pl.DiscreteGaussian(s) * 5, epsilon=1, delta=1e-6)
    assert found.achieved.upper <= 1
    assert found.achieved.lower >= 1 - 1e-6
    with pytest.raises(pl.Unreachable):
        pl.calibrate(lambda s: pl.TruncatedGaussian(s, 30.0) * 5, epsilon=1e-9, delta=1e-30)


# -- infinite losses in one direction only -----------------------------------------------------------------------------

ONE_SIDED = pl.Custom([0.5, 0.5, 0.0], [0.25, 0.25, 0.5])  # the third outcome gives Q away, nothing gives P away


@pytest.mark.parametrize("plan", [ONE_SIDED * 1, ONE_SIDED * 2, ONE_SIDED + pl.Gaussian(1.0), ONE_SIDED + pl.ZCDP(0.1)])
def test_divergences_are_infinite_in_either_direction(plan: pl.Plan) -> None:
    for answer in (plan.kl(), plan.rdp(2.0), plan.rdp(math.inf), plan.zcdp()):
        assert answer.upper == math.inf
    assert plan.delta(3.0).upper >= 0.5
    assert plan.epsilon(0.3).upper == math.inf


def test_infinite_losses_beside_a_curve() -> None:
    """All other records give P: the third outcome appears in the epoch with probability 1/2 under Q, never under P."""
    plan = ONE_SIDED.shuffle(5) + pl.ZCDP(0.1)
    assert plan.delta(3.0, adjacency="zero-out").upper >= 0.5
    assert plan.epsilon(0.3, adjacency="zero-out").upper == math.inf


def test_what_only_the_dominating_pair_discloses_is_not_claimed() -> None:
    for step, truth in (
        (pl.Gaussian(1.0).with_replacement(100, 10), 400.0),  # ten draws of distance 2: D_2(N(20), N(0))
        (pl.Gaussian(1.0).truncated_poisson(1.0, 20, 5), 4.0),
    ):
        assert step.rdp(2.0).lower <= truth
        assert step.kl().lower <= truth / 2
        assert step.zcdp().lower <= truth / 2
    assert pl.Gaussian(1.0).truncated_poisson(1.0, 20, 5).rdp(2.0).upper < 4.1  # without its sampler


# -- polygons ----------------------------------------------------------------------------------------------------------


def _hockey(corners: list[tuple[float, float]], eps: float) -> mpmath.mpf:
    """Convex hull of the smaller profile of a curve and its inverse, at e^eps, with 60 digits."""
    alphas = []
    exact = [(mpmath.mpf(x), mpmath.mpf(y)) for x, y in corners]
    for (a, b), (c, d) in pairwise(exact):
        if b > d:
            alphas += [(b - d) / (c - a), (c - a) / (b - d)]
    smaller = [
        (a, min(max(1 - y - a * x for x, y in exact), max(1 - x - a * y for x, y in exact))) for a in sorted(alphas)
    ]
    points = [(mpmath.mpf(0), mpmath.mpf(1)), *smaller]
    at = mpmath.exp(eps)
    if at >= points[-1][0]:
        return points[-1][1]
    chords = [p[1] + (q[1] - p[1]) * (at - p[0]) / (q[0] - p[0]) for p in points for q in points if p[0] <= at < q[0]]
    return min(chords)


@pytest.mark.parametrize(
    ("x", "y", "eps"),
    [
        ([0.0, 0.5437126326178258, 1.0], [0.999999999, 1.444708172737088e-06, 0.0], 3.0),
        (
            [0.0, 0.3116589334645636, 0.35709265343417673, 0.9999999598855538, 1.0],
            [0.9999999999999998, 0.002399720981969564, 7.882181126350808e-05, 4.5083551001825027e-13, 0.0],
            3.0,
        ),
        (
            [0.0, 0.4240730966736916, 0.7017246683322017, 0.9999999999999998, 1.0],
            [1.0, 0.002050042656283791, 2.1036298851141492e-05, 5.3169934644511226e-21, 0.0],
            1.0,
        ),
        ([0.0, 0.1, 0.5, 1.0], [0.9, 0.7, 0.2, 0.0], 0.2),
        ([0.0, 0.2, 1.0], [1.0, 0.6, 0.0], 0.1),
    ],
)
def test_trade_off_curves_keep_their_digits(x: list[float], y: list[float], eps: float) -> None:
    with mpmath.workdps(60):
        truth = _hockey(list(zip(x, y, strict=True)), eps)
        found = pl.TradeOff(x, y).delta(eps)
        assert mpmath.mpf(found.lower) <= truth + mpmath.mpf("1e-55") <= mpmath.mpf(found.upper) + mpmath.mpf("1e-54")


def test_profiles_keep_their_promise() -> None:
    eps = [1.1038696378694339e-10, 2.839909141313481e-10]
    deltas = [7.528741095018166e-24, 3.1047201344956546e-28]
    for e, d in zip(eps, deltas, strict=True):
        found = pl.PrivacyProfile(eps, deltas).delta(e)
        assert found.lower <= d <= found.upper


def test_ends_at_the_edges_are_rounded_outwards() -> None:
    assert pl.ApproxDP(1.0, 1e-17).tradeoff(0.0).lower < 1
    assert pl.PureDP(1.0).tradeoff(0.0) == Bound(1.0, 1.0)


@pytest.mark.parametrize("eps", [1e-9, 0.5, 1.9, 2.1, 70.0, 100.0, 600.0, 2000.0])
@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_two_candidates_at_any_size(noise: str, eps: float) -> None:
    with mpmath.workdps(60):
        half = mpmath.mpf(eps) / 2
        b = mpmath.exp(-half) / 2 if noise == "exponential" else (2 + half) * mpmath.exp(-half) / 4
        truth = mpmath.log((1 - b) / b)
        (own,) = pl.NoisyMax(eps, noise).step("add-remove").attained
        assert own is not None
        assert 0 <= truth - mpmath.mpf(own.largest_lower) <= truth * mpmath.mpf("1e-13")
    assert pl.NoisyMax(eps, noise).kl().upper <= eps
    assert (pl.NoisyMax(eps, noise) * 2).epsilon(1e-9).upper <= 2 * eps * (1 + 1e-12)


def test_noise_beyond_all_measure() -> None:
    with pytest.raises(pl.Unsupported, match="1e\\+150"):
        pl.Gaussian(1e160).delta(0.0)
    assert (pl.Gaussian(1e-200) * 2).poisson(0.5).epsilon(1e-6).upper == math.inf
