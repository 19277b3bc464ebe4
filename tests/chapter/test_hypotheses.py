"""The theorems' hypotheses at their boundary, examples that attain a bound, and mechanisms that answer back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privloss as pl
from privloss.theorems import composition as comp
from privloss.theorems import conversion as conv
from privloss.theorems import group, inequalities, limits, pipelines, shuffling
from privloss.theorems import subsampling as sub
from privloss.theorems.pairs.discrete import DiscretePair
from privloss.theorems.pairs.smooth import GaussianPair
from tests.chapter.test_composition import response
from tests.chapter.test_pairs import pairs

JUST = 1 + 1e-9  # one step beyond a boundary


# -- hypotheses --------------------------------------------------------------------------------------------------------


def test_lower_bound_at_the_boundary() -> None:
    """delta <= 1/(100 n), k >= 200 (e^eps - 1)^2 n and the cap of 1/10: met exactly, and missed by a hair."""
    n, eps = 100, math.log(2.0)
    assert limits.mean_error_lower(n, 20_001, eps, 1e-4) == pytest.approx(math.sqrt(20_001) / 1600, rel=1e-12)
    with pytest.raises(pl.InvalidInput, match="must be at least 200"):
        limits.mean_error_lower(n, 19_999, eps, 1e-4)
    with pytest.raises(pl.InvalidInput, match=r"must be at most 1/\(100 n\)"):
        limits.mean_error_lower(n, 20_001, eps, 1e-4 * JUST)
    assert limits.mean_error_lower(n, 26_000, eps, 1e-4) == 0.1
    assert limits.mean_error_lower(n, 25_000, eps, 1e-4) < 0.1
    assert limits.mean_error_lower(n, 1, 0.0, 1e-4) == 0.1
    with pytest.raises(pl.InvalidInput, match=r"1/\(100 n\)"):
        limits.mean_error_lower(n, 1, 0.0, 1e-3)


def test_lower_bound_from_its_proof() -> None:
    """The inequality at the end of the proof, alpha <= 1/10 solved for alpha, is never below the theorem."""
    for n, k, eps in ((100, 30_000, 0.7), (1000, 10**6, 1.0), (10, 2_000, 0.5)):
        growth, delta = math.expm1(eps), 1 / (100 * n)
        alphas = np.linspace(1e-4, 0.1, 4000)
        room = (1 / 6 - 2 * alphas**2 - 4 * n * delta) ** 2 * k / (2 * n**2 * growth**2) - 1 / (6 * n)
        holds = alphas >= np.sqrt(np.maximum(room, 0.0))
        least = float(alphas[holds].min()) if np.any(holds) else 0.1
        assert limits.mean_error_lower(n, k, eps, delta) <= least


@pytest.mark.parametrize("width", [1.0, 0.3])
def test_hoeffding_at_its_extremes(width: float) -> None:
    """A fair coin at +-width has log E[e^(tZ)] = t^2 width^2 / 2 up to t^4; and no mean exceeds the bound."""
    for t in (1e-3, 1e-2):
        fair = float(mp.log(mp.cosh(mp.mpf(t) * width)))
        assert fair <= conv.hoeffding_log_mgf(t, 0.0, width) <= fair * (1 + 1e-4)
    assert conv.hoeffding_log_mgf(2.0, width, width) == pytest.approx(2 * width + 2 * width**2, rel=1e-14)
    for mean in (width * JUST, -width * JUST, 10.0):
        with pytest.raises(pl.InvalidInput, match="must be at most bound"):
            conv.hoeffding_log_mgf(1.0, mean, width)


def test_indistinguishable_mean_at_the_boundary() -> None:
    assert limits.indistinguishable_mean(-0.5, 0.5, 0.5, 0.0, 0.0) == pytest.approx(-0.5)
    for mean, size, bound, words in (
        (0.5, 0.4, 1.0, "at least |mean|"),
        (-0.5, 0.5 / JUST, 1.0, "at least |mean|"),
        (0.1, 0.5 * JUST, 0.5, "at most bound"),
    ):
        with pytest.raises(pl.InvalidInput) as caught:
            limits.indistinguishable_mean(mean, size, bound, 0.1, 0.0)
        assert words in str(caught.value)
    # attained as delta goes to 0: Y = 1 with probability a, 0 otherwise; X = 1 with probability e^eps a
    eps, a = 0.4, 0.3
    bound = limits.indistinguishable_mean(a, a, 1.0, eps, 0.0)
    assert bound == pytest.approx(math.exp(eps) * a, rel=1e-13)
    assert DiscretePair([math.exp(eps) * a, 1 - math.exp(eps) * a], [a, 1 - a]).hockey_stick(eps) < 1e-15


def test_clones_at_the_boundary() -> None:
    """eps0 <= log(n / (16 log(2/delta)))."""
    n, delta = 100_000, 1e-6
    most = math.log(n / (16 * math.log(2 / delta)))
    assert shuffling.clones(most * (1 - 1e-12), n, delta) <= most
    with pytest.raises(pl.InvalidInput, match="no amplification is proven"):
        shuffling.clones(most * JUST, n, delta)


def test_cdp_to_adp_at_the_boundary() -> None:
    assert conv.zcdp_to_delta(0.5, epsilon=0.5, form="simple") == 1.0
    for form in conv.FORMS:
        with pytest.raises(pl.InvalidInput, match="must be at least rho"):
            conv.zcdp_to_delta(0.5, epsilon=0.5 / JUST, form=form)


def test_asymptotic_at_the_boundary() -> None:
    """omega = min(log(1/p) / 4 rho, 1 + p^(-1/4)) >= 3 + 2 log(1/rho)/log(1/p), and alpha < omega."""
    rate, rho = 1e-4, 0.1
    omega = 1 + rate**-0.25  # 11; log(1/p)/(4 rho) = 23.03
    assert sub.zcdp_poisson(omega * (1 - 1e-12), rate, rho) > 0
    with pytest.raises(pl.InvalidInput, match="must be below omega"):
        sub.zcdp_poisson(omega * JUST, rate, rho)
    other = math.log(1e4) / (4 * 0.5)  # 4.6, and 3 + 2 log 2 / log 10^4 = 3.15
    assert sub.zcdp_poisson(other * (1 - 1e-12), rate, 0.5) > 0
    with pytest.raises(pl.InvalidInput, match="must be below omega"):
        sub.zcdp_poisson(other * JUST, rate, 0.5)
    # the largest rho that meets the assumption at p = 1e-4: log(1/p)/(4 rho) = 3 + 2 log(1/rho)/log(1/p)
    edge = float(mp.findroot(lambda r: mp.log(1e4) / (4 * r) - 3 - 2 * mp.log(1 / r) / mp.log(1e4), 0.7))
    assert sub.zcdp_poisson(2.0, rate, edge / JUST) > 0
    with pytest.raises(pl.InvalidInput, match="must be at least"):
        sub.zcdp_poisson(2.0, rate, edge * JUST)
    assert sub.zcdp_poisson(1.5, 0.0, 1.0) == 0.0
    with pytest.raises(pl.InvalidInput, match="rho"):
        sub.zcdp_poisson(1.5, 1e-9, JUST)


def test_asymptotic_constant() -> None:
    """The proof's e/2 (e^2 - 1) + 1 = 9.6836 is the least constant it gives at rho = 1; 10 covers it."""
    assert math.e / 2 * math.expm1(2.0) + 1 == pytest.approx(9.6836, abs=5e-5)
    assert sub.zcdp_poisson(2.0, 1e-9, 1.0) >= 9.6836 * 1e-18 * 2.0


def test_decomposition_at_the_boundary() -> None:
    pair = DiscretePair([0.9, 0.1], [0.1, 0.9])
    need = pair.hockey_stick(0.1)
    assert pair.decompose(0.1, need).largest_loss() == pytest.approx(0.1, rel=1e-9)
    with pytest.raises(pl.InvalidInput, match="it needs"):
        pair.decompose(0.1, need / JUST)


def test_advanced_at_the_boundary() -> None:
    assert comp.advanced_approx(0.1, 1e-8, count=100, delta=1e-6 * JUST) == pytest.approx(
        100 * 0.1 / 1.0, rel=0.2
    )  # delta' is almost 0: basic composition is what is left
    with pytest.raises(pl.InvalidInput, match="must exceed the sum"):
        comp.advanced_approx(0.1, 1e-8, count=100, delta=1e-6)


# -- examples that attain ----------------------------------------------------------------------------------------------


def _moments(rate: float, p: list[float], q: list[float], alpha: float) -> tuple[float, float, float]:
    """Divergences forth, back and flipped of the sampled pair, in 40 digits."""
    with mp.workdps(40):
        r, a = mp.mpf(rate), mp.mpf(alpha)
        up = [r * x + (1 - r) * y for x, y in zip(map(mp.mpf, p), map(mp.mpf, q), strict=True)]
        down = [r * y + (1 - r) * x for x, y in zip(map(mp.mpf, p), map(mp.mpf, q), strict=True)]

        def d(x: list[mp.mpf], y: list[mp.mpf]) -> float:
            return float(
                mp.log(mp.fsum(mp.mpf(s) ** a * mp.mpf(t) ** (1 - a) for s, t in zip(x, y, strict=True))) / (a - 1)
            )

        return d(up, q), d(down, p), d(q, up)


@pytest.mark.parametrize(
    ("alpha", "rate"), [(11.5, 0.25), (20.0, 0.1), (5.0, 0.3), (1.5, 0.6), (1.2, 0.75), (2.0, 0.5)]
)
def test_flip_is_sharp_for_skewed_pairs(alpha: float, rate: float) -> None:
    """Skewed pairs of two points leave no room for another weight: the third moment of P/Q decides it."""
    gaps = []
    for rare, ratio in itertools.product((1e-3, 0.05, 0.5), (1.05, 1.2, 2.0)):
        if rare * ratio >= 1:
            continue
        p, q = [rare * ratio, 1 - rare * ratio], [rare, 1 - rare]
        for one, other in ((p, q), (q, p)):
            forth, back, flipped = _moments(rate, one, other, alpha)
            bound = sub.renyi_flip(alpha, rate, forth, back)
            assert flipped <= bound * (1 + 1e-9)
            gaps.append(bound / flipped - 1)
    assert min(gaps) < 5e-3


@given(st.floats(0, 1), st.floats(-12, 12).map(math.exp), st.floats(1.0001, 8))
def test_convexity_of_the_flip(p: float, x: float, alpha: float) -> None:
    """The second derivative in the proof is not negative, for 1 < alpha < 2 too."""
    left, right = inequalities.flip(alpha, p, x)
    assert left <= right * (1 + 1e-11)


@given(st.floats(0, 1), st.floats(1e-3, 1e3), st.floats(1, 50))
def test_lemmas_of_the_flip_hold(p: float, x: float, v: float) -> None:
    for sides in (inequalities.frac(p, x), inequalities.wtf(v, p, x)):
        assert sides.left <= sides.right * (1 + 1e-12)
    for sides in (inequalities.frac(p, 1.0), inequalities.wtf(v, p, 1.0)):
        assert sides.left == pytest.approx(sides.right, rel=1e-13)  # equality at x = 1


@given(st.floats(0, -math.expm1(-1.0)), st.floats(0, 100), st.floats(1.001, 30), st.floats(1, 3))
def test_lemmas_of_taylor_hold(p: float, x: float, alpha: float, factor: float) -> None:
    high = inequalities.taylor_high(alpha, alpha * factor, p, x)
    assert high.left <= high.right * (1 + 1e-12)
    if alpha <= 2 or p * x <= max(p, (1 - p) / (alpha - 2)):
        low = inequalities.taylor(alpha, p, x)
        assert low.left <= low.right * (1 + 1e-12)
    else:
        with pytest.raises(pl.InvalidInput, match=r"Lem\. taylor"):
            inequalities.taylor(alpha, p, x)


def test_taylor_needs_its_constant() -> None:
    """Near the edges of its hypotheses nothing below e/2 would do for alpha = 1.001 at p = 1 - 1/e and x = 0 ..."""
    p = -math.expm1(-1.0)
    left, right = inequalities.taylor(1.0001, p, 0.0)
    plain = 1 - 1.0001 * p
    needed = (left - plain) / (1.0001 * 0.0001 * p**2)
    assert 0.65 < needed < (right - plain) / (1.0001 * 0.0001 * p**2) == pytest.approx(math.e / 2, rel=1e-6)
    # ... and without the last term the inequality fails for large x
    left, right = inequalities.taylor_high(6.0, 6.0, 0.1, 60.0)
    assert right - (5 * 0.1 * 60.0) ** 6 < left <= right
    for call in (
        lambda: inequalities.taylor(2.0, p * JUST, 1.0),
        lambda: inequalities.taylor_high(3.0, 2.9, 0.1, 1.0),
        lambda: inequalities.wtf(0.99, 0.1, 1.0),
        lambda: inequalities.frac(0.1, 0.0),
        lambda: inequalities.flip(1.0, 0.1, 1.0),
    ):
        with pytest.raises(pl.InvalidInput):
            call()


def test_mixture_is_attained() -> None:
    """Components on disjoint outcomes: the mean of the moments is the divergence itself, and less than the maximum."""
    first, second = DiscretePair([0.7, 0.3, 0, 0], [0.4, 0.6, 0, 0]), DiscretePair([0, 0, 0.9, 0.1], [0, 0, 0.2, 0.8])
    bound = group.mixture(3.0, first.renyi(3.0), second.renyi(3.0), 0.3)
    assert first.mixed_with(second, 0.3).renyi(3.0) == pytest.approx(bound, rel=1e-11)
    assert bound < second.renyi(3.0) * 0.9


@pytest.mark.parametrize("rate", [1.0, 0.999])
def test_replacement_is_attained_without_sampling(rate: float) -> None:
    """N(1) and N(-1) are each 1/2-close to N(0) and two steps apart: 4 rho alpha at rate 1, and almost that below."""
    for alpha in (1.5, 3.0, 8.0):
        found = pipelines.renyi_replacement(alpha, rate, 0.5)
        assert found >= GaussianPair(1.0, -1.0, 1.0).renyi(alpha) * (1 if rate == 1 else 0.9)


def test_chords_are_convex() -> None:
    """Below the next whole order, above every real sample of that curve: Gaussians and a coin."""
    coin = response(1.3)
    for alpha in (2.3, 4.5, 6.9):
        chord = sub.renyi_poisson(alpha, 0.05, lambda a: 0.5 * a)
        assert chord < sub.renyi_poisson(math.ceil(alpha), 0.05, lambda a: 0.5 * a)
        assert chord >= pl.Gaussian(1.0).poisson(0.05).rdp(alpha).lower
        assert sub.renyi_poisson(alpha, 0.3, coin.renyi) >= coin.poisson(0.3).renyi(alpha)
    assert sub.renyi_poisson(1.4, 0.3, coin.renyi) == sub.renyi_poisson(2, 0.3, coin.renyi)
    box = pl.RDP(orders=[2, 4], epsilons=[0.1, 0.4])
    assert box.rdp(3.0).upper == pytest.approx((0.1 + 3 * 0.4) / 2 / 2, rel=1e-12)
    assert box.rdp(1.5).upper == pytest.approx(0.1, rel=1e-12)
    assert box.rdp(4.0).upper == pytest.approx(0.4, rel=1e-12)


@settings(max_examples=60)
@given(pairs(positive=True), st.floats(1.05, 12))
def test_one_step_of_every_composition(pair: DiscretePair, alpha: float) -> None:
    """Prop. adaptivecomp and part 2 of Lem. rdp_properties: divergences add to at most the worst continuation, and are
    attained where all continuations are alike."""
    mild, strong = response(0.2), response(1.0)
    mixed = pair.then([strong if i == 0 else mild for i in range(len(pair.p))])
    assert mixed.renyi(alpha) <= pair.renyi(alpha) + strong.renyi(alpha) + 1e-12
    alike = pair.then([strong] * len(pair.p))
    assert alike.renyi(alpha) == pytest.approx(pair.renyi(alpha) + strong.renyi(alpha), rel=1e-9)
    assert alike.reversed().renyi(alpha) == pytest.approx(pair.reversed().renyi(alpha) + strong.renyi(alpha), rel=1e-9)
    with pytest.raises(pl.InvalidInput, match="one pair for each"):
        pair.then([mild])


# -- adaptive and concurrent -------------------------------------------------------------------------------------------


def test_zcdp_of_a_list_is_attained_adaptively() -> None:
    """Three Gaussian rounds, the later directions chosen by earlier outcomes, attain the sum of their rhos."""
    rhos = [0.1, 0.3, 0.2]
    direct = GaussianPair(math.sqrt(2 * sum(rhos)), 0.0, 1.0)
    for alpha in (1.5, 2.0, 7.0):
        assert alpha * comp.zcdp(rhos) == pytest.approx(direct.renyi(alpha), rel=1e-12)
        assert comp.zcdp(rhos) > comp.zcdp(max(rhos))


State = tuple[int, ...]  # the answers that one system has given so far


class TwoRounds:
    """A stateful system that keeps a secret bit: its second answer is about the secret xor its first answer, and so is
    meaningless without it. Each transcript is eps-DP: the noise of the second round depends on what was answered."""

    def __init__(self, first: float, second: float) -> None:
        self.noises = (first, second)

    def probability(self, secret: int, before: State, answer: int) -> float:
        likely = 1 / (1 + math.exp(-self.noises[len(before)]))
        asked = secret if not before else secret ^ before[0]
        return likely if answer == asked else 1 - likely


def worst_interleaving(systems: tuple[TwoRounds, TwoRounds], eps: float) -> float:
    """delta(eps) against the best adversary, who sees every answer before choosing which system to ask next: for each
    transcript the strategy with the largest hockey-stick divergence, by backwards induction over all histories."""

    def value(states: tuple[State, State], p: float, q: float) -> float:
        best = max(0.0, p - math.exp(eps) * q)  # stop here
        for which in (0, 1):
            if len(states[which]) == 2:
                continue
            total = 0.0
            for answer in (0, 1):
                a = systems[which].probability(1, states[which], answer)
                b = systems[which].probability(0, states[which], answer)
                after = list(states)
                after[which] = (*states[which], answer)
                total += value((after[0], after[1]), p * a, q * b)
            best = max(best, total)
        return best

    return value(((), ()), 1.0, 1.0)


@pytest.mark.parametrize("noises", [((0.3, 0.5), (0.7, 0.2)), ((1.0, 1.0), (0.1, 0.6))])
def test_concurrent_composition(noises: tuple[tuple[float, float], tuple[float, float]]) -> None:
    """Each system alone is (sum of its rounds)-DP; the best interleaving adversary stays below optimal composition of
    the two, and reaches that of the four rounds, which basic composition bounds."""
    systems = (TwoRounds(*noises[0]), TwoRounds(*noises[1]))
    whole = [sum(pair) for pair in noises]
    for at in (0.0, 0.2, 0.5, 1.0, sum(whole) * 0.9):
        reached = worst_interleaving(systems, at)
        assert reached <= comp.optimal_delta(whole, epsilon=at).upper * (1 + 1e-12)
        rounds = comp.optimal_delta([e for pair in noises for e in pair], epsilon=at)
        assert reached == pytest.approx(rounds.upper, rel=1e-9)  # fair interleaving gains nothing, and loses nothing
    assert worst_interleaving(systems, comp.basic(whole)[0]) == pytest.approx(0.0, abs=1e-15)


def test_adaptive_parameters_need_their_sum_bounded() -> None:
    """Parameters chosen from what was seen: the worst adversary's tree under a filter of 0.5, by induction over all of
    its choices, has every divergence below 0.5 alpha and comes close; without the filter it would pass it."""
    budget, choices, rounds = 0.5, (0.1, 0.25, 0.4), 4

    def moment(left: float, depth: int, alpha: float, filtered: bool) -> float:
        best = 1.0
        if depth == rounds:
            return best
        for share in choices:
            if filtered and share > left + 1e-12:
                continue
            pair = response(math.sqrt(2 * share))  # eps^2/2-zCDP (Prop. pdp2cdp)
            after = moment(left - share, depth + 1, alpha, filtered)
            best = max(best, sum(a * (a / b) ** (alpha - 1) * after for a, b in zip(pair.p, pair.q, strict=True)))
        return best

    for alpha in (1.1, 2.0, 5.0):
        reached = math.log(moment(budget, 0, alpha, True)) / (alpha - 1)
        assert 0.4 * alpha * budget < reached <= alpha * comp.zcdp([0.25, 0.25]) * (1 + 1e-12)
        assert math.log(moment(budget, 0, alpha, False)) / (alpha - 1) > alpha * budget or alpha == 5.0


@pytest.mark.parametrize("fpr", [0.0, 0.3, 1.0])
def test_neyman_pearson_at_the_ends(fpr: float) -> None:
    """Equal Gaussians: no test beats a coin; and t may be infinite."""
    same = GaussianPair(0.0, 0.0, 1.0)
    assert same.neyman_pearson(fpr).power == fpr
    assert same.tradeoff(fpr) == 1 - fpr
    apart = GaussianPair(1.0, 0.0, 1.0).neyman_pearson(fpr)
    assert apart.power == pytest.approx(pl.GDP(1.0).tradeoff(fpr).lower * -1 + 1, abs=1e-6)
    if fpr in (0.0, 1.0):
        assert math.isinf(apart.threshold)


def test_postprocessing_is_strict_somewhere() -> None:
    """Merging outcomes of different likelihood ratio loses; merging equal ones does not; one outcome tells nothing."""
    pair = DiscretePair([0.4, 0.2, 0.4], [0.2, 0.1, 0.7])
    assert pair.postprocess([0, 0, 1]).renyi(3.0) == pytest.approx(pair.renyi(3.0), rel=1e-12)
    assert pair.postprocess([0, 1, 1]).renyi(3.0) < pair.renyi(3.0) * 0.9
    assert pair.postprocess([0, 0, 0]).renyi(3.0) == 0.0


def test_pure_to_zcdp_is_attained_for_small_epsilon() -> None:
    call: Callable[[float], float] = conv.pure_to_zcdp
    for eps in (1e-3, 1e-2):
        exact = pl.PureDP(eps).zcdp()
        assert exact.upper <= call(eps) <= exact.lower * (1 + eps**2)
