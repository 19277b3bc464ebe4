"""Counts at a threshold fixed in advance: tp of `positives`, fp of `negatives`, all of them independent runs.

Two exact methods. *Clopper-Pearson*: a limit on either rate at alpha/2 each. *Joint* (the default while there are at
most 4 000 runs): the test of `joint.py` with outcomes ordered by the Clopper-Pearson epsilon. It is never below
Clopper-Pearson: for eps below that epsilon, its validity says P[T >= T(seen)] <= alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from privloss.audit import checks, rates
from privloss.audit.claim import Claim, read_claim
from privloss.audit.joint import MOST, JointTest, Rates, critical
from privloss.audit.result import Audit, below, judged
from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.numerics.floats import Real

TRIALS = {"independent": "every trial is a run of its own, with the same neighbours and the same event"}
_HALVINGS = 44
_SHARP = 1e-6  # relative: p-values are sharp to 1e-5
_TIED = 1e-9
METHODS = ("auto", "joint", "clopper-pearson")


def counts(
    *,
    tp: int,
    positives: int,
    fp: int,
    negatives: int,
    delta: float,
    trials: str | None = None,
    alpha: float = 0.05,
    claim: Any = None,
    method: str = "auto",
) -> Audit:
    """What counts at a threshold fixed in advance prove of epsilon at `delta`. `trials` must be said.

    >>> import privloss as pl
    >>> print(pl.audit.counts(tp=95, positives=100, fp=3, negatives=100, delta=0.0, trials="independent"))
    With 0.95 confidence epsilon >= 2.533 at delta = 0 (ceiling 4.193).
    """
    positives = checks.whole("positives", positives, 1, check.MAX_COUNT)
    negatives = checks.whole("negatives", negatives, 1, check.MAX_COUNT)
    tp = checks.whole("tp", tp, 0, positives, f"must be a whole number from 0 to positives = {positives}")
    fp = checks.whole("fp", fp, 0, negatives, f"must be a whole number from 0 to negatives = {negatives}")
    delta, alpha = checks.lost(delta), checks.level(alpha)
    if trials == "one-run":
        raise InvalidInput(f"trials = {trials!r}: canaries of one run are not independent trials; use audit.one_run.")
    checks.said("trials", trials, TRIALS)
    check.choice("method", method, METHODS)
    if method == "joint" and positives + negatives > MOST:
        raise InvalidInput(f"method = 'joint': serves up to {MOST} trials; there are {positives + negatives}.")
    known = read_claim(claim, delta)
    joint = method == "joint" or (method == "auto" and positives + negatives <= MOST)
    return judge(tp, positives, fp, negatives, delta, alpha, known, joint)


def judge(
    tp: int, positives: int, fp: int, negatives: int, delta: float, alpha: float, claim: Claim | None, joint: bool
) -> Audit:
    """The same, after its arguments have been checked."""
    low, high = _limits(tp, positives, fp, negatives, alpha)
    simple = float(rates.epsilon_of(low, high, delta))
    mu = rates.mu_of(low, high)
    if joint:
        epsilon = joint_epsilon(tp, positives, fp, negatives, delta, alpha, simple)
        ceiling = joint_ceiling(positives, negatives, delta, alpha)
        p, best = (None, None) if claim is None else joint_p(tp, positives, fp, negatives, alpha, claim)
    else:
        epsilon, ceiling = (
            simple,
            float(rates.epsilon_of(*_limits(positives, positives, 0, negatives, alpha), delta)),
        )
        p = None if claim is None else _separate_p(tp, positives, fp, negatives, claim)
        best = None if claim is None else _separate_p(positives, positives, 0, negatives, claim)
    ceiling = max(ceiling, epsilon)
    return Audit(
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        ceiling=ceiling,
        method="joint exact test of both counts" if joint else "Clopper-Pearson limits on both rates",
        assumptions=assumed("the threshold, delta, alpha", claim),
        p_value=p,
        region=(low, high),
        counts={"tp": tp, "positives": positives, "fp": fp, "negatives": negatives},
        mu=mu,
        epsilon_if_gaussian=rates.gaussian_epsilon(mu, delta),
        notes=below(claim, ceiling),
        **judged(claim, p is not None and p <= alpha, best is not None and best <= alpha),
    )


def worth_of(claim: Claim | None, delta: float) -> Callable[[Real, Real], Real]:
    """What an event is chosen for: by how much it breaks the claim, or else the epsilon that it shows."""
    return (lambda low, high: rates.epsilon_of(low, high, delta)) if claim is None else claim.excess


def assumed(fixed: str, claim: Claim | None, *more: str) -> tuple[str, ...]:
    """The hypotheses of an audit of independent trials; `fixed` is what was, besides the method, before looking."""
    before = f"{fixed} and the method were fixed before the scores were looked at"
    return f"trials: {TRIALS['independent']}", *more, before, *adjacency_of(claim)


def adjacency_of(claim: Claim | None) -> tuple[str, ...]:
    """What neighbours are, as an assumption."""
    if claim is None or claim.adjacency is None:
        return ()
    return (f"the two inputs are neighbours under {claim.adjacency}, as the claim means it",)


def _statistic(value: Real, shown: bool) -> Real:
    """A statistic as an order of outcomes: rising with tp (rows), falling with fp (columns), whatever roundings were.

    Outcomes that differ by less than 1e-9 are tied (with as many runs on either side, (tp, fp) and (n - fp, n - tp)
    always are, but for roundings), and fewer false positives count as more. With `shown`, where no epsilon is shown the
    plain difference of rates decides.
    """
    value = np.floor(value / _TIED) * _TIED
    true, false = (np.linspace(0, 1, size) for size in value.shape)
    if shown:
        value = np.where(value > 0, value, true[:, None] - false[None, :] - 1)
    value = np.maximum.accumulate(value, axis=0)
    value = np.maximum.accumulate(value[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(value + 0.5 * _TIED * (1 - false))


def _order(positives: int, negatives: int, delta: float, alpha: float) -> Real:
    low = rates.least_rate(np.arange(positives + 1), positives, alpha / 2)[:, None]
    high = rates.most_rate(np.arange(negatives + 1), negatives, alpha / 2)[None, :]
    return _statistic(rates.epsilon_of(low, high, delta), True)


def joint_epsilon(
    tp: int, positives: int, fp: int, negatives: int, delta: float, alpha: float, least: float = 0.0
) -> float:
    """sup{eps: p <= alpha}, from below; `least` is a value known to be refuted or 0."""
    if delta == 0 and tp == positives == negatives and fp == 0:
        return rates.logit_of_power(alpha, 0.5 / positives)
    order = _order(positives, negatives, delta, alpha)
    test = JointTest(positives, negatives, critical(order, float(order[tp, fp])))

    def refuted(eps: float) -> bool:
        return test.p_value(_pure(eps, delta), alpha) <= alpha

    if least <= _TIED and not refuted(0.0):
        return 0.0
    low = max(least - _TIED, 0.0)  # outcomes at least as extreme show that much; Clopper-Pearson limits are valid
    high = low + 1.0
    while refuted(high) and high < 700:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if high - low <= _SHARP * high:
            break
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


@lru_cache(maxsize=256)
def joint_ceiling(positives: int, negatives: int, delta: float, alpha: float) -> float:
    best = float(rates.epsilon_of(*_limits(positives, positives, 0, negatives, alpha), delta))
    return joint_epsilon(positives, positives, 0, negatives, delta, alpha, best)


def _limits(tp: int, positives: int, fp: int, negatives: int, alpha: float) -> tuple[float, float]:
    """TPR is at least, FPR at most, by limits at alpha/2 each."""
    low, high = rates.least_rate(tp, positives, alpha / 2), rates.most_rate(fp, negatives, alpha / 2)
    return float(low), float(high)


def _pure(eps: float, delta: float) -> Rates:
    return Claim.pair(eps, delta).most_true


def joint_p(tp: int, positives: int, fp: int, negatives: int, alpha: float, claim: Claim) -> tuple[float, float]:
    """The p-value of a claim, and a bound on that of a perfect result, of which only its side of alpha counts."""
    order = _claim_order(positives, negatives, alpha, claim)
    seen, best = (
        JointTest(positives, negatives, critical(order, float(order[at]))) for at in ((tp, fp), (positives, 0))
    )
    return seen.p_value(claim.most_true), best.p_value(claim.most_true, alpha)


def _claim_order(positives: int, negatives: int, alpha: float, claim: Claim) -> Real:
    """By how far outcomes break the claim; for a pair, by the epsilon they show, so that bound and verdict agree."""
    if len(claim.eps) == 1:
        return _order(positives, negatives, claim.deltas[0], alpha)
    low = rates.least_rate(np.arange(positives + 1), positives, alpha / 2)[:, None]
    high = rates.most_rate(np.arange(negatives + 1), negatives, alpha / 2)[None, :]
    value = np.stack([claim.excess(row, high[0]) for row in low])
    return _statistic(np.maximum(value, -1e3), False)


def _separate_p(tp: int, positives: int, fp: int, negatives: int, claim: Claim) -> float:
    """The least alpha at which limits on both rates refute the claim."""

    def refuted(alpha: float) -> bool:
        low, high = _limits(tp, positives, fp, negatives, alpha)
        return bool(claim.excess(low, high) > 1e-12)

    low, high = -700.0, 0.0  # log alpha
    if not refuted(1.0):
        return 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if refuted(math.exp(middle)) else (middle, high)
    return math.exp(high)
