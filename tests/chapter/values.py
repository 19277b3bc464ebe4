"""Values of the chapter, recomputed in 50-digit arithmetic by code that shares nothing with privloss.

``python -m tests.chapter.values`` writes the table of docs/values.md; `test_values.py` checks every row. A truth is the
printed formula typed again, an enumeration or an integral in mpmath; `side` says which way our number must be rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp

import privloss as pl
from privloss.theorems import (
    composition,
    conversion,
    figures,
    group,
    inequalities,
    limits,
    pipelines,
    shuffling,
    subsampling,
    tracing,
)
from privloss.theorems.gaussian_dp import gaussian_delta, gaussian_mu
from privloss.theorems.pairs.discrete import DiscretePair
from privloss.theorems.pairs.smooth import GaussianPair
from tests.chapter.oracles import (
    M,
    advanced,
    analytic,
    fingerprint,
    gauss_delta,
    gauss_eps,
    half,
    hockey,
    kappa,
    kappa_eps,
    kov,
    poisson_sum,
    renyi,
    rr,
    taylor_right,
    through_boxes,
    wbk,
)

HOME = Path(__file__).parents[2] / "docs" / "values.md"
Truth = Callable[[], Any]
FEW, MANY = ([0.5, 0.3, 0.2], [0.125, 0.25, 0.625]), ([0.75, 0.25], [0.375, 0.625])
PAIR, COIN = DiscretePair(*FEW), DiscretePair(*MANY)


@dataclass(frozen=True)
class Value:
    """One number: ours, and how it is found without us."""

    label: str
    what: str
    ours: Callable[[], float]
    truth: Truth
    digits: float = 12.0
    side: str = ""  # "up": ours is not below the truth; "down": not above

    def compare(self) -> tuple[float, Any, float]:
        """Ours, the truth, and to how many digits they agree."""
        with mp.workdps(50):
            ours, truth = float(self.ours()), mp.mpf(self.truth())
            error = abs(M(ours) - truth) / (abs(truth) if truth else 1)
            return ours, +truth, float(-mp.log10(error)) if error > 0 else math.inf


def half_float(alpha: float) -> float:
    return alpha / 2


def _figure(which: str, name: str) -> float:
    if which == "composition":
        return figures.composition_figure(counts=(100,)).curves[name][0]
    return figures.subsampling_figure(orders=(4.0, 6.5)).curves[name][-1]


VALUES: tuple[Value, ...] = (
    Value(
        "thm:basic_composition",
        "epsilon of 7 at 0.1, 3 at 0.25",
        lambda: composition.basic([0.1, 0.25], count=[7, 3])[0],
        lambda: 7 * M(0.1) + 3 * M(0.25),
        14,
        "up",
    ),
    Value(
        "thm:basic_composition",
        "delta of 7 at 1e-6, 3 at 1e-5",
        lambda: composition.basic([0.1, 0.25], [1e-6, 1e-5], count=[7, 3])[1],
        lambda: 7 * M(1e-6) + 3 * M(1e-5),
        14,
        "up",
    ),
    Value(
        "defn:priv_loss", "loss of the first outcome", lambda: PAIR.log_ratio(0), lambda: mp.log(M(0.5) / M(0.125)), 15
    ),
    Value(
        "defn:priv_loss",
        "mean loss",
        PAIR.kl,
        lambda: mp.fsum(M(a) * mp.log(M(a) / M(b)) for a, b in zip(*FEW, strict=True)),
        14,
    ),
    Value(
        "prop:gauss_privloss",
        "P[Z > 1.5], distance 1.3 at sigma 0.7",
        lambda: GaussianPair(1.3, 0, 0.7).tail(1.5),
        lambda: 1 - mp.ncdf((M(1.5) - (M(1.3) / M(0.7)) ** 2 / 2) / (M(1.3) / M(0.7))),
        13,
    ),
    Value(
        "prop:gauss_privloss",
        "rho of the same",
        lambda: GaussianPair(1.3, 0, 0.7).rho,
        lambda: (M(1.3) / M(0.7)) ** 2 / 2,
        14,
    ),
    Value(
        "rem:dual_privloss",
        "mean of -Z under Q",
        lambda: -PAIR.reversed().kl(),
        lambda: mp.fsum(M(b) * mp.log(M(a) / M(b)) for a, b in zip(*FEW, strict=True)),
        14,
    ),
    Value(
        "lem:dual_privloss",
        "E_Q[(P/Q)^3]",
        lambda: PAIR.change_of_distribution(lambda z: math.exp(3 * z)),
        lambda: mp.fsum(M(b) * (M(a) / M(b)) ** 3 for a, b in zip(*FEW, strict=True)),
        13,
    ),
    Value(
        "prop:privloss_adp",
        "delta(0.4) by two tails",
        lambda: PAIR.hockey_stick(0.4, expression="tails"),
        lambda: hockey(*FEW, 0.4),
        13,
    ),
    Value(
        "prop:privloss_adp",
        "delta(0.4) as an expectation",
        lambda: PAIR.hockey_stick(0.4),
        lambda: hockey(*FEW, 0.4),
        13,
    ),
    Value(
        "prop:privloss_adp",
        "delta(0.1) as an integral of the tail",
        lambda: PAIR.hockey_stick(0.1, expression="integral"),
        lambda: hockey(*FEW, 0.1),
        13,
    ),
    Value("prop:privloss_adp", "total variation", PAIR.total_variation, lambda: hockey(*FEW, 0), 14),
    Value(
        "cor:gauss_adp_exact",
        "delta(1), sensitivity 1, sigma 2",
        lambda: gaussian_delta(1.0, 1.0, 2.0).upper,
        lambda: gauss_delta(0.5, 1),
        11,
        "up",
    ),
    Value(
        "cor:gauss_adp_exact",
        "the readable bound at eps = 2, rho = 1/2",
        lambda: GaussianPair(1, 0, 1).upper(2.0),
        lambda: mp.exp(-(M(1.5) ** 2) / 2) / max(M(2), mp.sqrt(2 * mp.pi) * M(1.5)),
        14,
    ),
    Value(
        "thm:privloss_composition",
        "delta(0.7) of two pairs",
        lambda: PAIR.compose(COIN).hockey_stick(0.7),
        lambda: hockey(
            [M(a) * M(b) for a in FEW[0] for b in MANY[0]], [M(a) * M(b) for a in FEW[1] for b in MANY[1]], 0.7
        ),
        13,
    ),
    Value(
        "cor:gauss_adp_exact_multi",
        "mu of (3, 4, 12) over (2, 5, 10)",
        lambda: gaussian_mu([3.0, 4.0, 12.0], [2.0, 5.0, 10.0]),
        lambda: mp.sqrt(M(9) / 4 + M(16) / 25 + M(144) / 100),
        15,
    ),
    Value(
        "cor:gauss_adp_exact_multi",
        "delta(1) of (0.3, 0.4) at sigma 0.25",
        lambda: gaussian_delta(1.0, [0.3, 0.4], [0.25, 0.25]).upper,
        lambda: gauss_delta(mp.sqrt(M(0.3) ** 2 + M(0.4) ** 2) / M(0.25), 1),
        11,
    ),
    Value(
        "defn:cdp",
        "rho of randomised response, eps = 1",
        lambda: pl.PureDP(1.0).zcdp().upper,
        lambda: mp.tanh(M(1) / 2),
        12,
        "up",
    ),
    Value(
        "defn:cdp", "the same from below", lambda: pl.PureDP(1.0).zcdp().lower, lambda: mp.tanh(M(1) / 2), 12, "down"
    ),
    Value(
        "defn:cdp",
        "rho of Laplace noise, eps = 1",
        lambda: pl.Laplace(1.0).zcdp().upper,
        lambda: mp.exp(-M(1)),
        12,
        "up",
    ),
    Value(
        "lem:gauss_cdp",
        "sensitivity 2, sigma 3",
        lambda: conversion.gaussian_zcdp(2.0, 3.0),
        lambda: M(2) / 9,
        14,
        "up",
    ),
    Value(
        "thm:cdp_composition",
        "4 at 0.1 and 2 at 0.3",
        lambda: composition.zcdp([0.1, 0.3], count=[4, 2]),
        lambda: 4 * M(0.1) + 2 * M(0.3),
        14,
        "up",
    ),
    Value(
        "prop:adaptivecomp", "three rounds", lambda: composition.zcdp([0.125, 0.25, 0.5]), lambda: M(0.875), 14, "up"
    ),
    Value(
        "prop:cdp2adp",
        "delta of 0.3-zCDP at eps = 2",
        lambda: conversion.zcdp_to_delta(0.3, epsilon=2.0),
        lambda: kappa(0.3, 2),
        9,
        "up",
    ),
    Value(
        "prop:cdp2adp",
        "epsilon of 1/2-zCDP at 1e-6",
        lambda: conversion.zcdp_to_epsilon(0.5, delta=1e-6),
        lambda: kappa_eps(0.5, 1e-6),
        9,
        "up",
    ),
    Value(
        "prop:cdp2adp",
        "delta from one moment",
        lambda: conversion.moments_to_delta(0.8, t=3.0, epsilon=2.0),
        lambda: mp.exp(M(0.8) - 6) / 4 * (M(3) / 4) ** 3,
        13,
        "up",
    ),
    Value(
        "prop:cdp2adp",
        "delta, simple form",
        lambda: conversion.zcdp_to_delta(0.3, epsilon=2.0, form="simple"),
        lambda: mp.exp(-((2 - M(0.3)) ** 2) / (4 * M(0.3))),
        13,
        "up",
    ),
    Value(
        "prop:cdp2adp",
        "epsilon, simple form",
        lambda: conversion.zcdp_to_epsilon(0.5, delta=1e-6, form="simple"),
        lambda: M(0.5) + 2 * mp.sqrt(M(0.5) * mp.log(1 / M(1e-6))),
        14,
        "up",
    ),
    Value(
        "rem:rho",
        "least of the three",
        lambda: conversion.sufficient_rho(1.0, 1e-6).lower,
        lambda: 1 / (4 * mp.log(1 / M(1e-6)) + 4),
        13,
        "down",
    ),
    Value(
        "rem:rho",
        "the one that suffices",
        lambda: conversion.sufficient_rho(1.0, 1e-6).rho,
        lambda: (mp.sqrt(mp.log(1 / M(1e-6)) + 1) - mp.sqrt(mp.log(1 / M(1e-6)))) ** 2,
        13,
        "down",
    ),
    Value(
        "rem:rho",
        "largest of the three",
        lambda: conversion.sufficient_rho(1.0, 1e-6).upper,
        lambda: 1 / (4 * mp.log(1 / M(1e-6))),
        13,
        "up",
    ),
    Value(
        "rem:rho",
        "sigma that suffices",
        lambda: conversion.sufficient_sigma(1.0, 1e-6),
        lambda: mp.sqrt(2 * (mp.log(1 / M(1e-6)) + 1)),
        13,
        "up",
    ),
    Value("prop:pdp2cdp", "eps = 0.3", lambda: conversion.pure_to_zcdp(0.3), lambda: M(0.3) ** 2 / 2, 14, "up"),
    Value(
        "prop:pdp2cdp",
        "the tight curve at alpha = 3.5, eps = 1",
        lambda: conversion.randomized_response_renyi(3.5, 1.0),
        lambda: renyi(*rr(1), 3.5),
        13,
        "up",
    ),
    Value(
        "lem:hoeffding",
        "t = 1.5, mean 0.2, |Z| <= 0.8",
        lambda: conversion.hoeffding_log_mgf(1.5, 0.2, 0.8),
        lambda: M(1.5) * M(0.2) + (M(1.5) * M(0.8)) ** 2 / 2,
        14,
        "up",
    ),
    Value(
        "lem:hoeffding",
        "t = -1, mean 0.3, |Z| <= 1",
        lambda: conversion.hoeffding_log_mgf(-1.0, 0.3, 1.0),
        lambda: M(0.5) - M(0.3),
        13,
        "up",
    ),
    Value(
        "fig:composition_comparison",
        "Gaussian curve at k = 100",
        lambda: _figure("composition", "Gaussian"),
        lambda: gauss_eps(10 * M(0.1) / mp.sqrt(2), 1e-6),
        9,
    ),
    Value(
        "fig:composition_comparison",
        "advanced curve at k = 100",
        lambda: _figure("composition", "advanced"),
        lambda: advanced([(0.1, 100)], 1e-6),
        13,
    ),
    Value(
        "fig:composition_comparison",
        "CDP curve at k = 100",
        lambda: _figure("composition", "CDP"),
        lambda: kappa_eps(100 * M(0.1) ** 2 / 2, 1e-6),
        9,
    ),
    Value(
        "thm:advancedcomposition_pure",
        "6 at 0.1, 3 at 0.4, delta 1e-5",
        lambda: composition.advanced_pure([0.1, 0.4], count=[6, 3], delta=1e-5),
        lambda: advanced([(0.1, 6), (0.4, 3)], 1e-5),
        14,
        "up",
    ),
    Value(
        "thm:advancedcomposition_approx",
        "100 at (0.1, 1e-8), delta 1e-5",
        lambda: composition.advanced_approx(0.1, 1e-8, count=100, delta=1e-5),
        lambda: advanced([(0.1, 100)], M(1e-5) - 100 * M(1e-8)),
        13,
        "up",
    ),
    Value(
        "thm:advancedcomposition_approx",
        "2 at (0.1, 1e-8): basic is less",
        lambda: composition.advanced_approx(0.1, 1e-8, count=2, delta=1e-5),
        lambda: 2 * M(0.1),
        14,
        "up",
    ),
    Value(
        "lem:postprocessing",
        "D_3 after merging two outcomes",
        lambda: PAIR.postprocess([0, 0, 1]).renyi(3.0),
        lambda: renyi([0.8, 0.2], [0.375, 0.625], 3),
        13,
    ),
    Value(
        "cor:postprocesing",
        "delta(0.2) after merging two outcomes",
        lambda: PAIR.postprocess([0, 1, 0]).hockey_stick(0.2),
        lambda: hockey([0.7, 0.3], [0.75, 0.25], 0.2),
        12,
    ),
    Value(
        "lem:decomposition",
        "largest loss left at eps = 1, delta = 0.2",
        lambda: PAIR.decompose(1.0, 0.2).largest_loss(),
        lambda: mp.log((M(0.5) - M(0.2)) / M(0.125) * 1),
        12,
    ),
    Value(
        "cor:kov",
        "A on the first outcome, eps = 1, delta = 0.2",
        lambda: PAIR.decompose(1.0, 0.2).randomized_response()[0][0],
        lambda: (mp.e * M(0.3) / M(0.8) - M(0.125) / M(0.8)) / (mp.e - 1),
        12,
    ),
    Value(
        "thm:lowerbound",
        "n = 1000, k = 10^6, eps = 1",
        lambda: limits.mean_error_lower(1000, 10**6, 1.0, 1e-6),
        lambda: 1 / (16 * (mp.e - 1)),
        14,
        "down",
    ),
    Value(
        "lem:fingerprinting",
        "f = (x1 and x2) or x3",
        lambda: float(limits.fingerprinting([0, 0, 0, 1, 1, 1, 1, 1], 3)),
        lambda: fingerprint([0, 0, 0, 1, 1, 1, 1, 1], 3),
        14,
    ),
    Value(
        "lem:indistinguishable_expectation",
        "E Y = 0.1, E|Y| = 0.4, D = 2, (0.3, 0.01)",
        lambda: limits.indistinguishable_mean(0.1, 0.4, 2.0, 0.3, 0.01),
        lambda: M(0.1) + (mp.exp(M(0.3)) - 1) * M(0.4) + 2 * M(0.01) * 2,
        13,
        "up",
    ),
    Value(
        "thm:subsampling_adp",
        "epsilon of (1, 1e-6) at p = 0.01",
        lambda: subsampling.approx(1.0, 1e-6, 0.01)[0],
        lambda: mp.log(1 + M(0.01) * (mp.e - 1)),
        13,
        "up",
    ),
    Value(
        "thm:subsampling_adp",
        "delta of the same",
        lambda: subsampling.approx(1.0, 1e-6, 0.01)[1],
        lambda: M(0.01) * M(1e-6),
        14,
        "up",
    ),
    Value(
        "defn:rdp",
        "D_3.5 of Laplace noise, eps = 0.8",
        lambda: pl.Laplace(1.25).rdp(3.5).upper,
        lambda: mp.log(M(3.5) / 6 * mp.exp(M(2.5) * M(0.8)) + M(2.5) / 6 * mp.exp(-M(3.5) * M(0.8))) / M(2.5),
        12,
    ),
    Value(
        "lem:rdp_composition",
        "2 of 0.1 and 3 of 0.2 at one order",
        lambda: composition.rdp([[0.1], [0.2]], count=[2, 3])[0],
        lambda: 2 * M(0.1) + 3 * M(0.2),
        14,
        "up",
    ),
    Value(
        "lem:rdp_properties",
        "part 4: D_2.5 of Gaussians",
        lambda: GaussianPair(1.3, 0, 0.7).renyi(2.5),
        lambda: M(2.5) * (M(1.3) / M(0.7)) ** 2 / 2,
        14,
    ),
    Value(
        "lem:rdp_properties",
        "part 5: alpha = 4, ranges 0.3 and 0.5",
        lambda: conversion.range_to_renyi(4.0, 0.3, 0.5),
        lambda: M(4) / 8 * (M(0.3) + M(0.5)) ** 2,
        13,
        "up",
    ),
    Value(
        "lem:rdp_properties",
        "part 6: mixture at share 0.3, alpha = 3",
        lambda: group.mixture(3.0, 0.4, 1.1, 0.3),
        lambda: mp.log(M(0.7) * mp.exp(2 * M(0.4)) + M(0.3) * mp.exp(2 * M(1.1))) / 2,
        12,
        "up",
    ),
    Value(
        "lem:rdp_properties",
        "part 7: alpha = 3 through alpha' = 5",
        lambda: group.renyi_triangle(3.0, lambda a: 0.5 * a, lambda a: 0.1 * a * a, between=5.0),
        lambda: M(5) / 4 * M(0.5) * 6 + M(0.1) * 25,
        12,
        "up",
    ),
    Value(
        "lem:rdp_properties",
        "part 7 for zCDP: 0.5 and 2",
        lambda: group.zcdp_triangle(0.5, 2.0),
        lambda: M(4.5),
        14,
        "up",
    ),
    Value(
        "lem:rdp_properties",
        "part 8: D_3 = 0.4 at eps = 1.5",
        lambda: conversion.renyi_to_delta(3.0, 0.4, epsilon=1.5, form="infimum"),
        lambda: mp.exp(-2 * (M(1.5) - M(0.4))) / 3 * (M(2) / 3) ** 2,
        12,
        "up",
    ),
    Value(
        "lem:rdp_properties",
        "part 8, simple form",
        lambda: conversion.renyi_to_delta(3.0, 0.4, epsilon=1.5, form="simple"),
        lambda: mp.exp(-2 * (M(1.5) - M(0.4))),
        12,
        "up",
    ),
    Value(
        "thm:rdp_subsampling",
        "alpha = 8, p = 0.05, 1/2-zCDP",
        lambda: subsampling.renyi_poisson(8, 0.05, half_float),
        lambda: poisson_sum(8, 0.05, half),
        12,
        "up",
    ),
    Value(
        "thm:rdp_subsampling",
        "alpha = 6.5: the chord of 6 and 7",
        lambda: subsampling.renyi_poisson(6.5, 0.05, half_float),
        lambda: (5 * poisson_sum(6, 0.05, half) + 6 * poisson_sum(7, 0.05, half)) / 11,
        12,
        "up",
    ),
    Value(
        "thm:rdp_ss_flip",
        "lambda at alpha = 11.5, p = 0.25",
        lambda: subsampling.flip_weight(11.5, 0.25),
        lambda: 22 * M(0.25) / (22 * M(0.25) + 3 * M(0.75)),
        14,
    ),
    Value(
        "thm:rdp_ss_flip",
        "alpha = 11.5, p = 0.25, 0.2 and 0.1",
        lambda: subsampling.renyi_flip(11.5, 0.25, 0.2, 0.1),
        lambda: (
            mp.log(M(2.25) / M(7.75) * mp.exp(M(10.5) * M(0.2)) + M(5.5) / M(7.75) * mp.exp(M(10.5) * M(0.1))) / M(10.5)
        ),
        12,
        "up",
    ),
    Value(
        "lem:frac",
        "left side at p = 0.3, x = 4",
        lambda: inequalities.frac(0.3, 4.0).left,
        lambda: 1 / (1 - M(0.3) + M(0.3) / 4),
        14,
    ),
    Value("lem:frac", "right side", lambda: inequalities.frac(0.3, 4.0).right, lambda: 1 - M(0.3) + M(0.3) * 4, 14),
    Value(
        "lem:wtf",
        "left side at v = 4, p = 0.3, x = 2",
        lambda: inequalities.wtf(4.0, 0.3, 2.0).left,
        lambda: 3 * (1 - M(0.3)) + 4 * M(0.3),
        14,
    ),
    Value(
        "lem:wtf",
        "right side",
        lambda: inequalities.wtf(4.0, 0.3, 2.0).right,
        lambda: 3 * (1 - M(0.3)) * (1 + M(0.3)) ** 4 + 4 * M(0.3) * ((1 - M(0.3)) / 2 + M(0.3)) ** 3,
        14,
    ),
    Value(
        "thm:rdp_subsampling_asymptotic",
        "alpha = 5, p = 1e-6, rho = 0.1",
        lambda: subsampling.zcdp_poisson(5.0, 1e-6, 0.1),
        lambda: 10 * M(1e-6) ** 2 * M(0.1) * 5,
        14,
        "up",
    ),
    Value(
        "fig:rdp_subsampling",
        "theorem and chords at alpha = 6.5",
        lambda: _figure("subsampling", "theorem and chords"),
        lambda: (5 * poisson_sum(6, 0.05, half) + 6 * poisson_sum(7, 0.05, half)) / 11,
        12,
    ),
    Value(
        "fig:rdp_subsampling",
        "limit at alpha = 6.5",
        lambda: _figure("subsampling", "limit"),
        lambda: M(6.5) / M(5.5) * mp.log(1 - M(0.05) + M(0.05) * mp.exp(M(5.5) / 2)),
        12,
    ),
    Value(
        "lem:taylor",
        "left side at alpha = 3, p = 0.2, x = 3",
        lambda: inequalities.taylor(3.0, 0.2, 3.0).left,
        lambda: (1 - M(0.2) + M(0.2) * 3) ** 3,
        13,
    ),
    Value(
        "lem:taylor",
        "right side",
        lambda: inequalities.taylor(3.0, 0.2, 3.0).right,
        lambda: taylor_right(3, 0.2, 3),
        13,
    ),
    Value(
        "lem:taylor_high",
        "right side at alpha = 3, omega = 5, p = 0.2, x = 9",
        lambda: inequalities.taylor_high(3.0, 5.0, 0.2, 9.0).right,
        lambda: taylor_right(3, 0.2, 9) + (2 * M(0.2) * 9) ** 5,
        13,
    ),
    Value(
        "prop:divergence_subsampling_analytic",
        "first form, alpha = 4, omega = 7, p = 0.05",
        lambda: subsampling.renyi_analytic(4.0, 0.05, half_float, omega=7.0),
        lambda: analytic(4, 0.05, 7, half),
        12,
        "up",
    ),
    Value(
        "prop:divergence_subsampling_analytic",
        "second form",
        lambda: subsampling.renyi_analytic_simple(4.0, 0.05, half_float, omega=7.0),
        lambda: 4 * mp.e / 2 * M(0.05) ** 2 * (mp.e - 1) + M(0.05) * (3 * M(0.05) * mp.exp(M(3.5))) ** 6,
        12,
        "up",
    ),
    Value(
        "prop:rdp_subsampling_jensen",
        "alpha = 12, p = 0.05, D = 6",
        lambda: subsampling.renyi_jensen(12.0, 0.05, 6.0),
        lambda: M(12) / 11 * mp.log(1 - M(0.05) + M(0.05) * mp.exp(M(11) / 12 * 6)),
        12,
        "up",
    ),
    Value(
        "lower bound for large orders",
        "alpha = 12, p = 0.05, D = 6",
        lambda: subsampling.renyi_floor(12.0, 0.05, 6.0),
        lambda: 6 - M(12) / 11 * mp.log(1 / M(0.05)),
        12,
        "down",
    ),
    Value(
        "original advanced composition (2010)",
        "100 at 0.1, delta 1e-6",
        lambda: composition.advanced_2010(0.1, count=100, delta=1e-6),
        lambda: 10 * (mp.exp(M(0.1)) - 1) + mp.sqrt(2 * mp.log(1 / M(1e-6)) * 100 * M(0.1) ** 2),
        13,
        "up",
    ),
    Value(
        "optimal composition",
        "delta of 30 at (1, 1e-6), eps = 12",
        lambda: composition.optimal_delta(1.0, 1e-6, epsilon=12.0, count=30).upper,
        lambda: kov(1, 1e-6, 30, 12),
        9,
        "up",
    ),
    Value(
        "example: sampling is tight",
        "loss of the answer 1, eps = 1, p = 0.1",
        lambda: DiscretePair(*subsampling.approx_attained(1.0, 0.1)).max_divergence(),
        lambda: mp.log(1 + M(0.1) * (mp.e - 1)),
        12,
    ),
    Value(
        "sec:addremovereplace",
        "delta of a group of 3 at (0.5, 1e-6)",
        lambda: group.approx(0.5, 1e-6, people=3)[1],
        lambda: M(1e-6) * (1 + mp.exp(M(0.5)) + mp.e),
        12,
        "up",
    ),
    Value(
        "sec:subsamp_composition",
        "sigma 4, p = 0.1, 1000 steps, delta 1e-5",
        lambda: pipelines.through_approximate_dp(4.0, 0.1, 1000, 1e-5),
        lambda: through_boxes(4.0, 0.1, 1000, 1e-5),
        9,
    ),
    Value(
        "replacement through group privacy",
        "p = 1: 4 rho alpha",
        lambda: pipelines.renyi_replacement(3.0, 1.0, 0.25),
        lambda: M(3),
        6,
        "up",
    ),
    Value(
        "shuffling",
        "clones, eps0 = 1, n = 10^5, delta 1e-6",
        lambda: shuffling.clones(1.0, 100_000, 1e-6),
        lambda: mp.log(
            1 + (mp.e - 1) / (mp.e + 1) * (8 * mp.sqrt(mp.e * mp.log(4 / M(1e-6)) / 10**5) + 8 * mp.e / 10**5)
        ),
        12,
        "up",
    ),
    Value(
        "tracing attack",
        "mu of n = 50, k = 600, sigma = 0.2",
        lambda: tracing.attack(50, 600, 0.2, trials=2).mu,
        lambda: mp.sqrt(600) / (50 * M(0.2)),
        14,
    ),
    Value(
        "tracing attack",
        "largest power at mu = 2, 5% false positives",
        lambda: tracing.largest_power(2.0, 0.05),
        lambda: mp.ncdf(2 + mp.findroot(lambda x: mp.ncdf(x) - M(0.05), -1.6)),
        12,
    ),
    Value(
        "fixed-size batches, Renyi",
        "alpha = 5, p = 0.02, D_inf = 0.4",
        lambda: subsampling.renyi_fixed_size(5, 0.02, lambda a: 0.05 * a, largest=0.4),
        lambda: wbk(5, 0.02, lambda a: M(0.05) * a, 0.4),
        7,
        "up",
    ),
    Value(
        "Neyman-Pearson lemma",
        "power at 20% false positives",
        lambda: PAIR.neyman_pearson(0.2).power,
        lambda: M(0.5) + M(0.3) * (M(0.2) - M(0.125)) / M(0.25),
        13,
    ),
)


def table() -> str:
    """The rows of docs/values.md."""
    lines = ["| result | what | privloss | digits |", "|---|---|---|---|"]
    for value in VALUES:
        ours, _, digits = value.compare()
        what = value.what.replace("|", "\\|")
        lines.append(f"| `{value.label}` | {what} | {ours!r} | {'all' if digits > 16 else f'{digits:.1f}'} |")
    return "\n".join(lines)


def main() -> None:
    """Write docs/values.md."""
    HOME.write_text(
        "# Values of the chapter, recomputed\n\n"
        f"{len(VALUES)} numbers, each found a second time in 50-digit arithmetic (mpmath) by formulas, enumerations\n"
        "and integrals that share no code with privloss ([oracles.py](../tests/chapter/oracles.py)). The last column\n"
        "says to how many digits both agree; where a result is an upper bound, ours is never the smaller one\n"
        "(`tests/chapter/test_values.py`). Written by `python -m tests.chapter.values`.\n\n" + table() + "\n"
    )


if __name__ == "__main__":
    main()
