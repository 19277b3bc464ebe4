"""What the chapter's remarks and notes point to: remarks as functions, the central limit theorem with its error, the
saddle point, batches for boxes, exact zCDP, filters and odometers, and a lower bound that grows with log(1/delta)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings

import privloss as pl
from privloss.ledger import odometers
from privloss.ledger.filters import Filter
from privloss.theorems import central_limit, limits, remarks, saddle_point
from privloss.theorems import conversion as conv
from privloss.theorems import subsampling as sub
from privloss.theorems.pairs.discrete import DiscretePair
from privloss.theorems.pairs.smooth import GaussianPair
from tests.chapter.test_composition import response
from tests.chapter.test_pairs import pairs

JUST = 1 + 1e-9


# -- remarks -----------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(pairs(positive=True))
def test_largest_loss_is_rare(pair: DiscretePair) -> None:
    """P[Z = eps] <= 1/(1 + e^-eps) for the least eps of any pair; randomised response attains it."""
    eps = max(pair.max_divergence(), pair.reversed().max_divergence())
    reached = sum(a for z, a in pair.losses() if z >= eps * (1 - 1e-12))
    assert remarks.largest_loss_probability(0.0) == 1.0  # the chapter's remark needs eps > 0
    assert reached <= remarks.largest_loss_probability(eps) + 1e-12
    assert remarks.largest_loss_probability(1.0) == pytest.approx(math.e / (1 + math.e), rel=1e-14)
    assert response(1.0).p[0] == pytest.approx(remarks.largest_loss_probability(1.0), rel=1e-14)


def test_remarks_in_numbers() -> None:
    scales = remarks.noise_scales(1.0, 1000, 1e-6)
    log = mp.log(10**6)
    assert scales.basic == pytest.approx(1000, rel=1e-14)
    assert scales.advanced == pytest.approx(float(mp.sqrt(500) / (mp.sqrt(log + 1) - mp.sqrt(log))), rel=1e-11)
    assert (pl.Laplace(scales.advanced) * 1000).epsilon(1e-6).upper <= 1.0
    each = mp.log(1 + (mp.e - 1) / 10**4)
    many = 10**4 * each**2 / 2 + mp.sqrt(2 * log * 10**4) * each
    assert remarks.one_at_a_time(1.0, 10**4, 1e-6) == pytest.approx(float(many), rel=1e-9)
    assert remarks.published_sample(1000, 10) == (0.0, pytest.approx(0.01))
    assert remarks.published_sample(7, 7) == (0.0, 1.0)
    with pytest.raises(pl.InvalidInput, match="sample = 8"):
        remarks.published_sample(7, 8)


def test_all_or_nothing_is_no_amplification() -> None:
    pair = remarks.all_or_nothing_attained(1.0, 0.01)
    assert pair.max_divergence() == pytest.approx(1.0, rel=1e-12)
    assert pair.max_divergence() > 50 * sub.approx(1.0, 0.0, 0.01)[0]
    assert pair.hockey_stick(0.3) == pytest.approx(0.01 * response(1.0).hockey_stick(0.3), rel=1e-12)
    assert remarks.all_or_nothing(1.0, 0.5, 0.01) == (1.0, pytest.approx(0.005))


def test_noisy_sgd_in_its_range() -> None:
    """5 alpha T p^2 / sigma^2 above the truth; the range ends where the best order meets omega = 11."""
    sigma, rate, steps = 4.0, 1e-4, 10**8
    bound = remarks.noisy_sgd_renyi(3.0, sigma, rate, steps)
    assert bound == pytest.approx(5 * 3.0 * steps * rate**2 / sigma**2, rel=1e-12)
    assert (pl.Gaussian(sigma).poisson(rate) * steps).rdp(3.0).upper <= bound
    with pytest.raises(pl.InvalidInput, match="must be below omega"):
        remarks.noisy_sgd_renyi(11.0, sigma, rate, steps)
    slope = 5 * steps * rate**2 / sigma**2
    edge = math.exp(-100 * slope)  # sqrt(log(1/delta)/R) = 10 = omega - 1
    found = remarks.noisy_sgd_asymptotic(sigma, rate, steps, edge * 1.0001)
    log = -math.log(edge * 1.0001)
    assert found.epsilon == pytest.approx(slope + 2 * math.sqrt(slope * log), rel=1e-9)
    assert (pl.Gaussian(sigma).poisson(rate) * steps).epsilon(edge * 1.0001).upper <= found.epsilon
    with pytest.raises(pl.InvalidInput, match="must be below omega"):
        remarks.noisy_sgd_asymptotic(sigma, rate, steps, edge / 1.0001)


# -- concentrated, exactly ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [1e-6, 0.1, 1.0, 4.0, 30.0])
def test_exact_zcdp(eps: float) -> None:
    """The KL divergence itself, and no order t asks for more."""
    for found, plan in ((conv.laplace_zcdp(eps), pl.Laplace(1 / eps)), (conv.pure_to_zcdp_exact(eps), pl.PureDP(eps))):
        exact = plan.zcdp()
        assert exact.lower * (1 - 1e-12) <= found <= exact.upper * (1 + 1e-9)
        for alpha in (1.0, 1.0001, 1.5, 3.0, 50.0):
            assert plan.rdp(alpha).lower <= alpha * found * (1 + 1e-12)
        assert found == pytest.approx(plan.kl().upper, rel=1e-9)
    assert conv.laplace_zcdp(eps) <= conv.pure_to_zcdp_exact(eps) <= conv.pure_to_zcdp(eps)
    assert pl.DiscreteLaplace(1 / eps).zcdp().lower <= conv.pure_to_zcdp_exact(eps)


# -- central limit -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("likely", "rare"), [(0.52, 0.5), (0.9, 0.1), (0.02, 0.001), (0.7, 0.3)])
def test_normal_contains_the_truth(likely: float, rare: float) -> None:
    """Against the exact sum over all outcomes, for skewed and lattice losses; the error is needed."""
    pair, worst = DiscretePair([likely, 1 - likely], [rare, 1 - rare]), 0.0
    for count in (1, 3, 20, 300):
        for at in (0.0, 0.3, 1.0, 3.0):
            with mp.workdps(30):
                first, second = (mp.log(mp.mpf(a) / b) for a, b in zip(pair.p, pair.q, strict=True))
                truth = float(
                    mp.fsum(
                        mp.binomial(count, i) * mp.mpf(pair.p[0]) ** i * mp.mpf(pair.p[1]) ** (count - i)
                        * max(mp.mpf(0), 1 - mp.exp(at - i * first - (count - i) * second))
                        for i in range(count + 1)
                    )
                )  # fmt: skip
            found = central_limit.normal(pair, count=count, epsilon=at)
            assert found.bound.lower <= truth <= found.bound.upper
            worst = max(worst, abs(truth - found.estimate) / found.error)
    assert worst > (0.1 if likely == 0.9 else 0.005)


def test_normal_parts() -> None:
    """Unequal pairs, infinite losses, a constant loss, and the error that falls like 1/sqrt k."""
    coin, lost = response(0.5), DiscretePair([0.6, 0.3, 0.1], [0.3, 0.7, 0.0])
    both = central_limit.normal([coin, lost], count=[2, 1], epsilon=0.4)
    assert both.bound.lower <= coin.compose(coin).compose(lost).hockey_stick(0.4) <= both.bound.upper
    assert central_limit.normal(lost, count=50, epsilon=0.4).bound.lower > 0.5  # 1 - 0.9^50 and more
    same = central_limit.normal(DiscretePair([1.0], [1.0]), count=9, epsilon=0.0)
    assert (same.estimate, same.error) == (0.0, 0.0)
    errors = [central_limit.normal(coin, count=k, epsilon=1.0).error * math.sqrt(k) for k in (1, 100, 10**6)]
    assert errors == pytest.approx([errors[0]] * 3, rel=1e-9)
    small = response(1e-3)
    assert central_limit.gdp_mu(small, count=10**6) == pytest.approx(1.0, rel=1e-6)
    assert central_limit.hockey_stick(0.5, 1.0, 1.0) == pytest.approx(pl.GDP(1.0).delta(1.0).upper, rel=1e-9)
    with pytest.raises(pl.InvalidInput, match="count has 2 entries"):
        central_limit.normal([coin], count=[1, 2], epsilon=0.0)


@pytest.mark.parametrize(
    ("plan", "delta"),
    [
        (pl.Gaussian(1.1).poisson(0.01) * 10_000, 1e-6),
        (pl.Laplace(10.0) * 100, 1e-6),
        (pl.Gaussian(2.0) * 3, 1e-9),
        (pl.PureDP(0.1) * 100, 1e-6),
    ],
)
def test_saddle_point_is_near(plan: pl.Plan, delta: float) -> None:
    exact = plan.epsilon(delta).upper
    assert saddle_point.epsilon(plan, delta) == pytest.approx(exact, rel=2e-3)
    assert saddle_point.delta(plan, exact) == pytest.approx(delta, rel=0.03)


def test_saddle_point_refuses() -> None:
    with pytest.raises(pl.Unsupported, match="no loss to approximate"):
        saddle_point.delta(pl.ZCDP(0.5), 1.0)
    with pytest.raises(pl.Unsupported, match="infinite loss"):
        saddle_point.epsilon(pl.ApproxDP(1.0, 1e-3), 1e-6)
    assert saddle_point.delta(pl.PureDP(1.0), 2.0) == 0.0
    assert saddle_point.epsilon(pl.PureDP(1e-3), 0.5) == 0.0


# -- batches -----------------------------------------------------------------------------------------------------------


def clamped(eps: float, top: int) -> list[list[float]]:
    """Geometric noise on a count between 0 and `top`, clamped: eps-DP for one record, k eps for k of them."""
    rows = []
    for count in range(top + 1):
        weights = [math.exp(-eps * abs(i - count)) for i in range(top + 1)]
        ends = math.exp(-eps) / (1 - math.exp(-eps))
        weights[0] += math.exp(-eps * count) * ends
        weights[-1] += math.exp(-eps * (top - count)) * ends
        rows.append([w / sum(weights) for w in weights])
    return rows


@pytest.mark.parametrize(("n", "m", "eps"), [(2, 2, 1.0), (3, 5, 0.5), (10, 12, 0.3), (2, 6, 2.0)])
def test_with_replacement_against_a_real_mechanism(n: int, m: int, eps: float) -> None:
    rows = clamped(eps, m)
    hits = [math.comb(m, k) * (1 / n) ** k * (1 - 1 / n) ** (m - k) for k in range(m + 1)]
    pair = DiscretePair([sum(h * row[i] for h, row in zip(hits, rows, strict=True)) for i in range(m + 1)], rows[0])
    plan = pl.PureDP(eps).with_replacement(n, m)
    for at in (0.0, 0.2 * eps, eps, 1.5 * eps, 3 * eps, 1.02 * eps):
        grown, delta = sub.with_replacement(at, lambda k: sub.box_profile(eps, 0.0, k, at), n, m)  # noqa: B023
        assert max(pair.hockey_stick(grown), pair.reversed().hockey_stick(grown)) <= delta + 1e-13
        found = plan.delta(grown, adjacency="replace-one")
        assert max(pair.hockey_stick(grown), pair.reversed().hockey_stick(grown)) <= found.upper + 1e-13
        assert found.upper <= delta * (1 + 1e-9) + 1e-15
    assert pair.hockey_stick(grown) > 0  # groups matter: one record alone would give 0 here


def test_with_replacement_at_the_edges() -> None:
    """One draw is a batch of one; nothing lost stays nothing; only replaced records; (eps, delta) boxes."""
    one, batch = pl.PureDP(1.0).with_replacement(10, 1) * 3, pl.PureDP(1.0).fixed_size(10, 1) * 3
    for at in (0.0, 0.1, 0.3):
        a, b = (p.delta(at, adjacency="replace-one").upper for p in (one, batch))
        assert a == pytest.approx(b, rel=1e-9, abs=1e-12)
    assert pl.PureDP(0.0).with_replacement(10, 5).epsilon(1e-6, adjacency="replace-one").upper == 0
    with pytest.raises(pl.Unsupported, match="ask under replace-one"):
        pl.PureDP(1.0).with_replacement(10, 5).epsilon(1e-6)
    with pytest.raises(pl.Unsupported, match="Gaussian noise only"):
        pl.ZCDP(1.0).with_replacement(10, 5).epsilon(1e-6, adjacency="replace-one")
    box = pl.ApproxDP(0.5, 1e-3).with_replacement(20, 4)
    grown, delta = sub.with_replacement(0.5, lambda k: sub.box_profile(0.5, 1e-3, k, 0.5), 20, 4)
    hits = [math.comb(4, k) * 0.05**k * 0.95 ** (4 - k) for k in range(1, 5)]
    groups = [1e-3 * math.expm1(0.5 * k) / math.expm1(0.5) for k in range(1, 5)]
    profile = [
        d + (1 - d) * (math.exp(0.5 * k) - math.exp(0.5)) / (math.exp(0.5 * k) + 1) for k, d in enumerate(groups, 1)
    ]
    assert delta == pytest.approx(sum(h * d for h, d in zip(hits, profile, strict=True)), rel=1e-10)
    assert grown == pytest.approx(math.log1p((1 - 0.95**4) * math.expm1(0.5)), rel=1e-12)
    assert box.delta(grown, adjacency="replace-one").upper <= delta * (1 + 1e-9)
    with pytest.raises(pl.InvalidInput, match="profile"):
        sub.with_replacement(0.5, 1.0, 20, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize(("n", "m"), [(1000, 50), (60_000, 256), (10, 10)])
def test_fixed_size_boxes(n: int, m: int) -> None:
    """The Gaussian that moves by 1 when a record is replaced is one such box: it lies in every interval."""
    box, gaussian = pl.ZCDP(0.5).fixed_size(n, m) * 10, pl.Gaussian(2.0).fixed_size(n, m) * 10
    found, inside = (p.epsilon(1e-6, adjacency="replace-one") for p in (box, gaussian))
    assert found.lower <= inside.upper
    assert inside.lower <= found.upper
    assert found.upper <= (pl.ZCDP(0.5) * 10).epsilon(1e-6).upper * (1 + 1e-9)  # sampling never hurts
    curve = pl.RDP([2, 4, 8], [1.0, 2.0, 4.0]).fixed_size(n, m) * 10
    assert curve.epsilon(1e-6, adjacency="replace-one").upper >= found.upper * (1 - 1e-9)
    if m < n:
        one = pl.ZCDP(0.5).fixed_size(n, m)
        bound = sub.renyi_fixed_size(4, m / n, lambda a: 0.5 * a)
        assert one.rdp(4.0, adjacency="replace-one").upper == pytest.approx(bound, rel=1e-9)
        for refused in (box, pl.ZCDP(0.5, delta=1e-9).fixed_size(n, m)):
            adjacency = "add-remove" if refused is box else "replace-one"
            with pytest.raises(pl.Unsupported):
                refused.epsilon(1e-6, adjacency=adjacency)


@pytest.mark.parametrize("omega", [1.5, 2.5, 20.0, 500.0])
def test_truncated_cdp(omega: float) -> None:
    """zCDP up to omega: no better than zCDP, nothing beyond omega, and as good where the best order lies below it."""
    box, whole = pl.TruncatedCDP(0.1, omega), pl.ZCDP(0.1)
    truth, found = (whole * 3).epsilon(1e-6), (box * 3).epsilon(1e-6)
    assert found.lower <= truth.upper * (1 + 1e-12)
    assert found.upper >= truth.upper * (1 - 1e-12)
    assert box.rdp(omega).upper == pytest.approx(0.1 * omega, rel=1e-12)
    assert box.rdp(omega * JUST).upper == math.inf
    between = 1 + 0.37 * (omega - 1)
    assert 0.1 * between <= box.rdp(between).upper <= 0.1 * between * 1.02
    assert box.zcdp().upper == math.inf
    if omega >= 20:
        assert found.upper == pytest.approx(truth.upper, rel=2e-3)
        sampled, ideal = ((b.poisson(0.1) * 3).epsilon(1e-6).upper for b in (box, whole))
        assert ideal * (1 - 1e-9) <= sampled <= ideal * (1.05 if omega == 20 else 1 + 1e-9)
        assert (box.fixed_size(10, 3) * 3).epsilon(1e-6, adjacency="replace-one").upper < math.inf
    if omega == 1.5:
        with pytest.raises(pl.Unsupported, match="at least 2"):
            (box.poisson(0.1) * 3).epsilon(1e-6)
    for bad in (1.0, math.nan):
        with pytest.raises(pl.InvalidInput, match="omega"):
            pl.TruncatedCDP(0.1, bad)


# -- limits ------------------------------------------------------------------------------------------------------------


def best_of_all(n: int, k: int, eps: float, delta: float) -> float:
    """The inequality of the proof at every group size and s, solved for alpha in mpmath."""
    best = mp.mpf(0)
    sizes = [1]
    while max(sizes[-1] + 1, math.ceil(sizes[-1] * 1.05)) <= n:
        sizes.append(max(sizes[-1] + 1, math.ceil(sizes[-1] * 1.05)))
    for size in sizes:
        groups = n // size
        grown = mp.mpf(size) * eps
        slack = mp.mpf(delta) * (mp.expm1(grown) / mp.expm1(eps))
        for more in range(4, 40, 2):
            s = mp.sqrt((grown + mp.log(groups) + mp.mpf(more) / 2) / 2)
            eta = mp.exp(grown - 2 * s**2) + slack
            room = mp.mpf(1) / 12 - groups * s / mp.sqrt(6 * groups * k) - groups * eta
            if room > 0:
                b = groups * s / mp.sqrt(k)
                best = max(best, (-b + mp.sqrt(b**2 + 4 * room)) / 2 * groups * size / n)
    return float(best)


@pytest.mark.parametrize("delta", [1e-8, 1e-32, 1e-128])
def test_lower_bound_in_log_delta(delta: float) -> None:
    n, k, eps = 100_000, 10**7, 0.1
    found = limits.mean_error_lower_small_delta(n, k, eps, delta)
    assert found <= best_of_all(n, k, eps, delta) * (1 + 1e-9)
    assert found >= 0.9 * best_of_all(n, k, eps, delta)
    # the Gaussian mechanism has to obey it
    mu = max(m for m in (1e-3 * 1.1**i for i in range(100)) if pl.GDP(m).epsilon(delta).upper <= eps)
    assert math.sqrt(k) / (n * mu) >= found


def test_lower_bound_grows_like_the_root_of_the_logarithm() -> None:
    """Where the error is far below 1/10: four times as many digits, about twice the error."""
    n, k, eps = 3 * 10**9, 10**10, 0.01
    few, many = (limits.mean_error_lower_small_delta(n, k, eps, 10.0**-d) for d in (60, 240))
    assert 1.8 < many / few < 2.5
    assert limits.mean_error_lower_small_delta(1, 1, 0.0, 1.0) == 0.0
    assert limits.mean_error_lower_small_delta(100, 10**9, 0.0, 0.0) > 0.25


# -- filters and odometers as results ----------------------------------------------------------------------------------


def test_zcdp_filter_against_every_adversary() -> None:
    """A filter of rho = 1/2 fed with costs chosen from earlier answers: no adversary's transcript of six rounds has a
    larger divergence than 1/2 alpha, over all strategies by backwards induction; and it stops exactly at its cap."""
    budget = Filter.of("zcdp", "0.5", delta="1e-6")
    costs = [Fraction(1, 16), Fraction(1, 8), Fraction(1, 4)]

    def moment(left: Fraction, rounds: int, alpha: float) -> float:
        best = 1.0
        for cost in costs if rounds else []:
            if cost > left:
                continue
            pair = response(math.sqrt(2 * float(cost)))
            after = moment(left - cost, rounds - 1, alpha)
            best = max(best, sum(a * (a / b) ** (alpha - 1) * after for a, b in zip(pair.p, pair.q, strict=True)))
        return best

    for alpha in (1.2, 2.0, 6.0):
        assert math.log(moment(budget.caps["rho"], 6, alpha)) / (alpha - 1) <= 0.5 * alpha * (1 + 1e-12)
    assert budget.charge("0.5")["rho"] == budget.caps["rho"]


@pytest.mark.parametrize(("eps", "delta"), [(0.5, 0.3), (0.25, 0.05), (1.0, 0.5)])
def test_odometer_at_the_worst_stopping_time(eps: float, delta: float) -> None:
    """Randomised response until the loss exceeds the reading, if it ever does within 400 rounds: at most delta."""
    likely = 1 / (1 + math.exp(-eps))
    alive, caught = {0: 1.0}, 0.0
    for done in range(1, 401):
        reading = odometers.odometer("zcdp", {"rho": Fraction(eps**2 / 2) * done}, delta=delta).epsilon
        moved: dict[int, float] = {}
        for at, weight in alive.items():
            for step, share in ((1, likely), (-1, 1 - likely)):
                if (at + step) * eps > reading:
                    caught += weight * share
                else:
                    moved[at + step] = moved.get(at + step, 0.0) + weight * share
        alive = moved
    assert caught <= delta
    sure = odometers.odometer("pure", {"epsilon": Fraction(eps) * 7})
    assert (sure.epsilon, sure.delta) == (7 * eps, 0.0)


def test_odometer_costs_more_than_a_filter() -> None:
    """What it gives for any stopping time it pays for: above the filter that knew its cap, by the grid and log log."""
    for rho in (0.05, 0.5, 5.0):
        reading = odometers.odometer("zcdp", {"rho": Fraction(rho)}, delta=1e-6).epsilon
        known = conv.zcdp_to_epsilon(rho, delta=1e-6, form="simple")
        assert known < reading < 2.5 * known


def test_group_of_tests_covers_all_orders() -> None:
    """Lem. rdp_properties, part 8, at every order against Gaussians: never below the truth."""
    pair = GaussianPair(1.0, 0.0, 1.0)
    for alpha, eps in itertools.product((1.5, 3.0, 9.0), (0.6, 2.0, 5.0)):
        for form in conv.RENYI_FORMS:
            assert conv.renyi_to_delta(alpha, alpha / 2, epsilon=eps, form=form) >= pair.hockey_stick(eps)
