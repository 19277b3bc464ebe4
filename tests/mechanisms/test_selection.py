"""The best of several runs: the bound against random bases and rankings, the table in the docs, the lower end."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event, rdp
from scipy.stats import norm

import privloss as pl
from privloss.ledger.gdp_price import mu_squared
from privloss.losses.selection import Trials, bound_points, concentration, cost, instances, look
from privloss.losses.table.lattice import find_unit
from privloss.mechanisms.select_best import _Profile
from tests.mechanisms.selection_by_force import generating, law_of, ranked, violations

LAWS = [(10.0, 1.0), (3.0, 0.0), (2.0, 5.0), (4.0, -0.5), (6.0, 2.0), (5.0, math.inf), (0.7, math.inf)]


@pytest.mark.parametrize(("mean", "shape"), LAWS)
def test_laws_of_the_number_of_runs(mean: float, shape: float) -> None:
    """The generating function against the weights of the law itself; its gains keep their digits."""
    law = Trials(mean, shape)
    weights = law_of(mean, shape)
    assert sum(k * w for k, w in enumerate(weights)) == pytest.approx(mean, rel=1e-6)
    for u, w in ((0.0, 0.3), (0.2, 0.5), (0.4, 0.6), (0.7, 1e-9)):
        exact = generating(weights, u + w) - generating(weights, u)
        assert float(law.gained(np.array([u]), np.array([w]))[0]) == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize(("mean", "shape"), LAWS)
def test_never_below_random_bases_in_any_order(mean: float, shape: float) -> None:
    """A small sample of `python -m tests.mechanisms.selection_by_force`."""
    found, closest = violations(mean, shape, bases=8, seed=3)
    assert found == 0
    assert closest < 3.0  # the bound is about what is seen


@pytest.mark.parametrize("mean", [1 + 1e-15, 1 + 1e-7, 1.5, 10.0, 1e4, 1e9])
@pytest.mark.parametrize("shape", [-0.99, -0.9, -0.5, -1e-9, 5e-324, 0.0, 0.5, 1.0, 100.0, 1000.0])
def test_gamma_has_at_least_the_mean(mean: float, shape: float) -> None:
    """In 400 digits: shapes near -1 were cut off at 1e-18, means near 1 lost digits. A gamma too large is a bound too
    low. Below 1e-200 there is none. What is gained is right to its slack, also where powers overflow."""
    law = Trials(mean, shape)
    if law.gamma == 0:
        assert shape == -0.99
        assert mean > 50
        with pytest.raises(pl.InvalidInput, match="gamma would be below"):
            pl.select_best(pl.Gaussian(1.0), mean=mean, shape=shape)
        return
    with mpmath.workdps(400):
        g, h = mpmath.mpf(law.gamma), mpmath.mpf(shape)
        made = h * (1 - g) / (g * (1 - g**h)) if shape else (1 / g - 1) / -mpmath.log(g)
        assert mean * (1 - 1e-15) <= made <= mean * (1 + 1e-11) if law.gamma < 1 else mean < 1 + 1e-11

        def f(u: mpmath.mpf) -> mpmath.mpf:
            rest = 1 - (1 - g) * u
            return (rest**-h - 1) / (g**-h - 1) if shape else mpmath.log(rest) / mpmath.log(g)

        if law.gamma < 1:
            for u, w in ((0.0, 1.0), (0.25, 0.5), (1 - 2.0**-20, 2.0**-21)):
                exact = f(mpmath.mpf(u) + w) - f(mpmath.mpf(u))
                found = float(law.gained(np.array([u]), np.array([w]))[0])
                assert abs(found - exact) <= law.slack * 2.0**-53 * exact + mpmath.mpf(10) ** -300


GAUSSIANS = [(0.3, 10.0, 1, 1.97484679), (1.0, 10.0, 1, 7.08031124), (1.0, 21.5, 0, 7.14800001)]


@pytest.mark.parametrize(("mu", "mean", "shape", "known"), GAUSSIANS)
def test_gaussian_bases_to_four_digits(mu: float, mean: float, shape: int, known: float) -> None:
    """The formula evaluated in 30 digits; the lower end within 8 %."""
    with mpmath.workdps(30):

        def delta(e: mpmath.mpf) -> mpmath.mpf:
            return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)

        gamma = 1 / mpmath.mpf(mean)
        if shape == 0:
            gamma = mpmath.findroot(lambda g: (1 / g - 1) / mpmath.log(1 / g) - mean, (1e-3, 0.5), solver="anderson")
        root = mpmath.findroot(lambda e: mpmath.expm1(e) - (1 / gamma - 1) * delta(e), (0.01, 3), solver="anderson")
        shift = (shape + 1) * root
        truth = mpmath.findroot(
            lambda x: mpmath.log(mean * delta(x - shift)) + mpmath.log(1e6), (shift + mu, shift + 6 * mu),
            solver="anderson",
        )  # fmt: skip
    assert float(truth) == pytest.approx(known, rel=1e-8)
    found = pl.select_best(pl.GDP(mu), mean=mean, shape=shape).epsilon(1e-6)
    assert float(truth) <= found.upper <= float(truth) * (1 + 1e-5)
    assert 0.92 * found.upper <= found.lower


def test_a_training_run_tuned() -> None:
    """1 000 steps of noise 1.1 on samples of rate 0.01: 1.7530 once, 2.6248 tuned; three such choices."""
    run = pl.Gaussian(1.1).poisson(0.01) * 1000
    tuned = pl.select_best(run, mean=10)
    assert run.epsilon(1e-6).upper == pytest.approx(1.7530, abs=5e-5)
    assert tuned.epsilon(1e-6).upper == pytest.approx(2.6248, abs=5e-5)
    assert (tuned * 3).epsilon(1e-6).upper == pytest.approx(5.9197, abs=2e-3)
    # lower ends that are far from the upper ones are not asked for more digits than six: the same question of one run
    assert tuned.epsilon(1e-6).lower >= run.epsilon(1e-6, tolerance=1e-6).lower
    assert "tuning costs" in str(tuned.explain(delta=1e-6))


@pytest.mark.parametrize("shape", [1, "poisson"])
def test_few_hits_tuned(shape: float | str) -> None:
    """Losses of many orders of magnitude: the formula from exact deltas of the base, asked where it needs them."""
    run, mean = pl.Gaussian(1.0).poisson(1e-5) * 1000, 10.0
    tuned = pl.select_best(run, mean=mean, shape=shape)
    first = run.delta(0.0).upper

    def exact(e: float) -> float:
        return run.delta(e).upper

    if shape == "poisson":
        shift = mean * first  # e = 0, w0 = 1; others may be less
    else:
        gamma = Trials(mean, float(shape)).gamma
        low, high = 0.0, math.log1p((1 / gamma - 1) * first)
        for _ in range(24):
            mid = 0.5 * (low + high)
            low, high = (low, mid) if math.expm1(mid) >= (1 / gamma - 1) * exact(mid) else (mid, high)
        shift = (float(shape) + 1) * high
    for delta in (1e-5, 1e-9):
        truth = shift + run.epsilon(delta / mean).upper
        found = tuned.epsilon(delta).upper
        if shape == "poisson":
            assert run.epsilon(delta / mean).upper < found <= truth * (1 + 1e-2)
        else:
            assert truth * (1 - 1e-6) <= found <= truth * (1 + 1e-2)
    assert tuned.delta(3.0).upper < 1e-15  # far out moments hold


def test_far_out_moments_hold() -> None:
    """Chernoff's bound of the base, where the engine is not asked: above the truth, for all e."""
    base = pl.GDP(1.5).as_plan()
    profile = _Profile(base)
    profile.at(profile.marks)
    far = [profile.near * (1 + 1e-9), *(float(e) for e in np.linspace(profile.near * 1.01, 60.0, 40))]
    with mpmath.workdps(40):
        for e, found in zip(far, profile.at(far), strict=True):
            mu, x = mpmath.mpf(1.5), mpmath.mpf(e)
            truth = mpmath.ncdf(mu / 2 - x / mu) - mpmath.exp(x) * mpmath.ncdf(-mu / 2 - x / mu)
            assert truth <= found <= 1e4 * truth + 1e-200


def test_a_tuned_training_run_from_its_sizes() -> None:
    sizes = {"dataset_size": 1000, "batch_size": 10, "steps": 50, "noise_multiplier": 1.1, "sampling": "poisson"}
    run, tuned = pl.dp_sgd(**sizes), pl.dp_sgd(**sizes, tuning={"mean": 10})  # type: ignore[arg-type]
    assert tuned.plan == pl.select_best(run.plan, mean=10).as_plan()
    assert "10 runs in the mean" in str(tuned)
    assert "3 runs" in str(pl.dp_sgd(**sizes, tuning={"trials": 3}))  # type: ignore[arg-type]
    for bad in ({"runs": 3}, {}, 3, {"mean": 0.5}):
        with pytest.raises(pl.InvalidInput):
            pl.dp_sgd(**sizes, tuning=bad)  # type: ignore[arg-type]


def test_a_pure_base_stays_pure() -> None:
    """eps0 + (h + 1) eps*, below (2 + h) eps0."""
    base, law = 0.5, Trials(8.0, 1.0)
    gamma = 1 / 8
    found = pl.select_best(pl.PureDP(base), mean=8.0).epsilon(0.0).upper
    # delta of randomised response at e: (e^eps0 - e^e)/(e^eps0 + 1)
    root = mpmath.findroot(
        lambda e: mpmath.expm1(e) - (1 - gamma) / gamma * (mpmath.exp(base) - mpmath.exp(e)) / (mpmath.exp(base) + 1),
        (0.01, 0.5), solver="anderson",
    )  # fmt: skip
    assert found == pytest.approx(base + 2 * float(root), rel=1e-6)
    assert base + 2 * float(root) <= found < 3 * base
    assert law.gamma <= gamma


@pytest.mark.parametrize("mean", [1.0, 4.0])
def test_lower_ends_are_attained(mean: float) -> None:
    """Every instance is a ranking of a base that exists: randomised response, ranked by force."""
    plan = pl.select_best(pl.RandomizedResponse(0.8), mean=mean)
    a = 1 / (1 + math.exp(-0.8))
    weights, parts = law_of(mean, 1.0), 60
    for eps in (0.0, 0.4, 0.9):
        truth = max(a - math.exp(eps) * (1 - a), 0.0)  # all alike: the best is one run
        for p in ([a, 1 - a], [1 - a, a]):  # each answer with a coin of its own, k of whose sides rank lowest
            for k, first in itertools.product(range(parts + 1), (True, False)):
                low = [(x if first else 1 - x) * k / parts for x in (p[0], p[1])]
                tiers = [
                    [u, x - u, 1 - x] if first else [u, x, 1 - x - u] for u, x in zip(low, (p[0], p[1]), strict=True)
                ]
                forth, back = (ranked(weights, side) for side in tiers)
                truth = max(truth, sum(max(x - math.exp(eps) * y, 0.0) for x, y in zip(forth, back, strict=True)))
        found = plan.delta(eps)
        assert found.lower <= truth * (1 + 1e-3) + 1e-12
        assert found.upper >= truth * (1 - 1e-9)
        assert found.lower >= 0.98 * truth - 1e-9


def test_lower_ends_of_uneven_bases_are_attained() -> None:
    """[.9, .1] against [.5, .5]: the curve of both orders together lies below that of either. Ranked in all ways, with
    coins, or all alike, where the best is one run."""
    p, q, weights, parts = [0.9, 0.1], [0.5, 0.5], law_of(3.0, 1.0), 12
    plan = pl.select_best(pl.Custom(p, q), mean=3.0)
    for eps in (0.0, 0.3, 0.8):
        truth = 0.0
        for one, two in ((p, q), (q, p)):
            truth = max(truth, sum(max(x - math.exp(eps) * y, 0.0) for x, y in zip(one, two, strict=True)))
            for k, j in itertools.product(range(parts + 1), repeat=2):  # so much of either outcome ranks lowest
                a, b = k / parts, j / parts
                tiers = [[x[0] * a + x[1] * b, x[0] * (1 - a), x[1] * (1 - b)] for x in (one, two)]
                forth, back = (ranked(weights, side) for side in tiers)
                truth = max(truth, sum(max(x - math.exp(eps) * y, 0.0) for x, y in zip(forth, back, strict=True)))
        found = plan.delta(eps)
        assert found.lower <= truth * (1 + 1e-9) + 1e-12
        assert found.upper >= truth * (1 - 1e-9)
        assert found.lower >= pl.Custom(p, q).delta(eps).lower * (1 - 1e-9)


def test_one_run_is_the_base() -> None:
    base = pl.Gaussian(2.0)
    assert pl.select_best(base, mean=1.0).epsilon(1e-6).upper == pytest.approx(base.epsilon(1e-6).upper, rel=1e-5)
    assert pl.select_best(base, trials=1).epsilon(1e-6).upper == base.epsilon(1e-6).upper


def test_a_fixed_number_is_a_composition() -> None:
    made = pl.select_best(pl.Gaussian(3.0), trials=4)
    assert made.epsilon(1e-6).upper == pytest.approx((pl.Gaussian(3.0) * 4).epsilon(1e-6).upper, rel=1e-9)
    assert 0.6 * made.epsilon(1e-6).upper < made.epsilon(1e-6).lower < made.epsilon(1e-6).upper


def test_bases_with_uneven_pairs_and_curves() -> None:
    for base in (pl.Custom([0.6, 0.4], [0.5, 0.5]), pl.ZCDP(0.02)):
        for adjacency in ("zero-out", "replace-one"):
            found = pl.select_best(base, mean=3.0).epsilon(1e-5, adjacency=adjacency)
            assert found.upper >= base.epsilon(1e-5, adjacency=adjacency).lower
            assert found.lower <= found.upper < math.inf


def test_three_choices_in_two_seconds_of_work() -> None:
    """Not a clock: the number of outcomes, which the work is proportional to."""
    step = pl.select_best(pl.Gaussian(1.0), mean=10).step("add-remove")
    (row,) = step.loss.tables() or []  # type: ignore[union-attr]
    assert 500 < len(row[0].values) < 4_000


def test_bad_numbers() -> None:
    base = pl.Gaussian(1.0)
    for bad in (
        {"mean": 0.5}, {"mean": math.nan}, {}, {"mean": 2.0, "trials": 3}, {"trials": 0}, {"trials": 2, "shape": 0.0},
        {"mean": 2.0, "shape": -1.0}, {"mean": 2.0, "shape": "normal"}, {"mean": 0.0, "shape": math.inf},
    ):  # fmt: skip
        with pytest.raises(pl.InvalidInput):
            pl.select_best(base, **bad)  # type: ignore[arg-type]


def test_instances_of_no_tests_are_none() -> None:
    assert instances(Trials(5.0, 1.0), [(0.0, 0.0), (0.5, 0.4)], [0.0]) == []


def test_points_are_multiples_of_one_number() -> None:
    """So that compositions of selections live on a lattice."""
    law = Trials(5.0, 1.0)

    def profile(epsilons: object) -> list[float]:
        return [math.exp(-3 * e - 1) for e in epsilons]  # type: ignore[attr-defined]

    seen = look(profile, [8.0])
    points = bound_points(law, cost(law, profile, seen), profile, seen, math.inf)
    assert find_unit(np.array([x for x, _ in points[1:]])) is not None
    assert all(d2 <= d1 for (_, d1), (_, d2) in itertools.pairwise(points))


def test_selections_at_their_ends() -> None:
    """They ended in an overflow, in NaN and in an empty sequence."""
    for run in (pl.Gaussian(0.0), pl.ApproxDP(0.0, 1.0)):
        assert pl.select_best(run, mean=1e4, shape=1e3).delta(1.0).upper == 1
    tuned = pl.select_best(pl.Gaussian(1.0), mean=10, shape=-0.95)
    assert pl.Gaussian(1.0).epsilon(1e-6).upper < tuned.epsilon(1e-6).lower < tuned.epsilon(1e-6).upper < 5.8
    many = pl.select_best(pl.RandomizedResponse(1.0), trials=10**9)
    assert 0.1 < many.delta(1.0).lower <= many.delta(1.0).upper <= 1
    assert float(Trials(1e9, 1.0, 10**9).gained(np.array([1e-3]), np.array([0.5]))[0]) == 0


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("mean", [1e3, 1e9])
def test_extreme_numbers_of_runs_have_an_answer(sigma: float, mean: float) -> None:
    """They ended in NaN and in overflows."""
    found = pl.select_best(pl.Gaussian(sigma), mean=mean, shape="poisson").delta(0.5, work=1e7)
    assert 0 <= found.lower <= found.upper <= 1


def test_roundings_of_the_base_are_charged_for_every_run() -> None:
    """f(u) moves by the mean times a rounding of u: a hundred million runs lose eight digits."""
    u = 1 - 3e-9
    for shape in (0.0, 1.0, math.inf):
        law = Trials(1e8, shape)
        low, high = (float(law.gained(np.zeros(1), np.array([w]))[0]) for w in (u, math.nextafter(u, 2)))
        assert 0 < high - low <= law.slack * 2.0**-53


@pytest.mark.parametrize(("mean", "shape"), LAWS)
def test_concentration_of_selections(mean: float, shape: float) -> None:
    """Renyi divergences of ranked outcomes of a finite base stay below what is declared for its rho."""
    rng, law, weights = np.random.default_rng(9), Trials(mean, shape), law_of(mean, shape)
    closest = math.inf
    for _ in range(8):
        p = rng.dirichlet(np.ones(4))
        q = p * np.exp(rng.normal(0, rng.choice([0.1, 0.6]), 4))
        q /= q.sum()
        orders = np.concatenate([[1.001], np.geomspace(1.01, 60, 40)])

        def most(one: np.ndarray, two: np.ndarray, orders: np.ndarray = orders) -> float:
            return max(math.log(float((one**a * two ** (1 - a)).sum())) / (a - 1) / a for a in orders)

        def profile(epsilons: object, p: np.ndarray = p, q: np.ndarray = q) -> list[float]:
            return [
                max(float(np.maximum(a - math.exp(e) * b, 0).sum()) for a, b in ((p, q), (q, p)))
                for e in epsilons  # type: ignore[attr-defined]
            ]

        rho = max(most(p, q), most(q, p)) * 1.01
        shift = cost(law, profile, look(profile, [0.1, 1.0, 3.0])).ways[0][0]
        bound, b = concentration(law, shift, rho), np.geomspace(1e-3, 1e4, 20_001)
        assert bound == pytest.approx(
            float((rho * (1 + b) + shift + math.log(mean + law.nothing) / b).min()), rel=1e-5
        )  # D_b for a <= b
        for order in itertools.permutations(range(4)):
            forth, back = (np.array(ranked(weights, side[list(order)].tolist())) for side in (p, q))
            kept = forth > 1e-300
            for one, two in ((forth[kept], back[kept]), (back[kept], forth[kept])):
                found = most(one, two)
                assert found <= bound
                closest = min(closest, bound / found)
    assert closest < 30


def test_selections_of_gaussian_noise_have_a_price() -> None:
    """rho + shift + 2 sqrt(rho log m), beside other steps too; and mu, which needs a rho."""
    tuned = pl.select_best(pl.GDP(0.3), mean=10)
    found = tuned.zcdp()
    assert 0.045 < found.lower < found.upper < math.inf
    both = (tuned * 2 + pl.GDP(1.0)).zcdp()
    assert both.upper == pytest.approx(2 * found.upper + 0.5, rel=1e-9)
    price = float(mu_squared((tuned * 1).under("zero-out")))
    mu = math.sqrt(price)
    for eps in (0.0, 0.5, 1.5, 3.0):
        assert pl.GDP(mu).delta(eps).upper >= tuned.delta(eps).lower
    assert mu < 4


@pytest.mark.parametrize(
    ("mu", "mean", "shape", "moments", "profile"),
    [(0.3, 10.0, 1.0, 2.7285, 2.3854), (1.0, 10.0, 1.0, 8.9628, 7.9737), (1.0, 21.5, 0.0, 8.3472, 7.7146)],
)
def test_what_others_say_of_tuning(mu: float, mean: float, shape: float, moments: float, profile: float) -> None:
    """At delta 1e-6: Papernot and Steinke's Renyi bound by dp-accounting, and Koskela, Redberg and Wang's, eps at
    delta/m plus min over e of (h+1) log(e^e + (1/g - 1) delta(e)), from the normal distribution; ours is below both."""
    event = dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(1 / mu), mean, shape)
    orders = np.concatenate([np.linspace(1.01, 20, 400), np.linspace(20.5, 200, 200)])
    theirs = rdp.RdpAccountant(orders).compose(event).get_epsilon(1e-6)
    assert theirs == pytest.approx(moments, rel=2e-3)
    factor, e = 1 / Trials(mean, shape).gamma - 1, np.linspace(0, 12, 120_001)
    delta = norm.cdf(mu / 2 - e / mu) - np.exp(e) * norm.cdf(-mu / 2 - e / mu)
    base = float(e[np.argmax(delta <= 1e-6 / mean)])
    newer = base + (shape + 1) * float(np.log(np.exp(e) + factor * delta).min())
    assert newer == pytest.approx(profile, rel=2e-4)
    assert pl.select_best(pl.GDP(mu), mean=mean, shape=shape).epsilon(1e-6).upper < min(theirs, newer)
