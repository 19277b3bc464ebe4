"""Scores of members and of others, where the threshold is chosen on the same scores.

Each way of paying for the choice gives limits (L1, U0) at every threshold: a uniform *band* (`bands.py`, the default),
*Bonferroni* over all order statistics (not over those that look interesting), *DKW* (uniform in the rate itself), or a
*split*: the threshold is chosen on one random half and counted on the other by the joint test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privloss.audit import bands, checks, rates
from privloss.audit.claim import Claim, read_claim
from privloss.audit.events import LEVELS, promise
from privloss.audit.joint import MOST
from privloss.audit.result import Audit, below, judged, strongest
from privloss.audit.trials import TRIALS, assumed, worth_of
from privloss.audit.trials import judge as judge_counts
from privloss.errors import InvalidInput, Unsupported
from privloss.numerics import check
from privloss.numerics.floats import Real

SIGNS = {"up": (1.0,), "down": (-1.0,), "both": (1.0, -1.0)}
WAYS = ("band", "split", "bonferroni", "dkw")
_FIXED = "direction, delta, alpha"
NAMES = {"band": "uniform band over all thresholds", "bonferroni": "Bonferroni over all thresholds", "dkw": "DKW band"}


@dataclass(frozen=True, eq=False)
class Cuts:
    """True and false positives at every threshold that the scores offer: "score >= threshold" is the event."""

    thresholds: Real
    tp: Real
    fp: Real
    positives: int
    negatives: int

    @classmethod
    def of(cls, members: Real, others: Real) -> Cuts:
        places = np.unique(np.concatenate([members, others]))
        tp, fp = (1.0 * len(some) - np.searchsorted(np.sort(some), places) for some in (members, others))
        return cls(places, tp, fp, len(members), len(others))

    def limits(self, way: str, alpha: float) -> tuple[Real, Real]:
        """(least TPR, most FPR) at all thresholds at once, alpha/2 for either."""
        if way == "dkw":  # Massart's constant: P[sup (F_n - F) > t] <= e^(-2 n t^2) for one side
            off = [math.sqrt(math.log(2 / alpha) / (2 * n)) * (1 + 1e-12) for n in (self.positives, self.negatives)]
            return (
                np.maximum(self.tp / self.positives - off[0], 0.0),
                np.minimum(self.fp / self.negatives + off[1], 1.0),
            )
        if way == "bonferroni":
            local = (alpha / 2 / self.positives, alpha / 2 / self.negatives)
        else:
            local = (bands.local_level(self.positives, alpha / 2), bands.local_level(self.negatives, alpha / 2))
        return (
            rates.least_rate(self.tp, self.positives, local[0]),
            rates.most_rate(self.fp, self.negatives, local[1]),
        )


def scores(
    members: Any,
    others: Any,
    *,
    delta: float,
    trials: str | None = None,
    alpha: float = 0.05,
    claim: Any = None,
    threshold: Any = "band",
    direction: str = "up",
    seed: int | None = None,
) -> Audit:
    """What scores of independent runs (`trials` must be said) prove, high scores meaning "member" (`direction` "down":
    low ones; "both": either, at half of alpha each). `threshold` is a number fixed in advance, or how the choice of one
    is paid for."""
    first, second = checks.numbers_of("members", members), checks.numbers_of("others", others)
    if first.min() == first.max() == second.min() == second.max():
        raise InvalidInput(f"members, others: all scores equal {first[0]:g}; they say nothing.")
    delta, alpha = checks.lost(delta), checks.level(alpha)
    if trials == "one-run":
        raise InvalidInput('trials = "one-run": scores of one run go to audit.one_run_scores.')
    checks.said("trials", trials, TRIALS)
    check.choice("direction", direction, tuple(SIGNS))
    known = read_claim(claim, delta)
    signs = SIGNS[direction]
    found = [_one_way(first, second, sign, delta, alpha / len(signs), known, threshold, seed) for sign in signs]
    best = strongest(found)
    if direction != "both":
        return best
    p = None if best.p_value is None else min(1.0, 2 * min(a.p_value for a in found if a.p_value is not None))
    return replace(best, alpha=alpha, p_value=p, notes=(*best.notes, "both directions, half of alpha each"))


def _one_way(
    first: Real, second: Real, sign: float, delta: float, alpha: float, claim: Claim | None, threshold: Any,
    seed: int | None,
) -> Audit:  # fmt: skip
    """High scores mean "member" once they are multiplied by `sign`; so is a threshold, which is given in scores."""
    members, others = sign * first, sign * second
    if isinstance(threshold, str):
        found = _chosen(members, others, delta, alpha, claim, threshold, seed)
    else:
        found = _fixed(members, others, sign * check.number("threshold", threshold), delta, alpha, claim)
    notes = found.notes
    if np.median(members) < np.median(others) and found.epsilon == 0:
        notes = (*notes, "the scores look reversed (members lower); a direction may not be chosen after looking")
    at = None if found.threshold is None else sign * found.threshold
    return replace(found, notes=notes, threshold=at)


def _chosen(
    members: Real, others: Real, delta: float, alpha: float, claim: Claim | None, threshold: str, seed: int | None
) -> Audit:
    check.choice("threshold", threshold, WAYS)
    if threshold == "split":
        return _split(members, others, delta, alpha, claim, seed)
    cuts = Cuts.of(members, others)
    if threshold == "band" and max(cuts.positives, cuts.negatives) > bands.MOST:
        raise Unsupported(f"threshold = 'band': serves up to {bands.MOST} scores a side; take 'dkw' or 'split'.")
    low, high = cuts.limits(threshold, alpha)
    values = rates.epsilon_of(low, high, delta)
    i = int(np.argmax(values if values.max() > 0 else low - high))
    perfect = Cuts(np.zeros(1), np.array([cuts.positives]), np.zeros(1), cuts.positives, cuts.negatives)
    best = perfect.limits(threshold, alpha)
    ceiling = float(rates.epsilon_of(*best, delta)[0])
    mu = rates.mu_of(low, high)
    excess = None if claim is None else claim.excess(low, high)
    if excess is not None and excess.max() > 1e-12:
        i = int(np.argmax(excess))
    return Audit(
        epsilon=float(values.max()),
        delta=delta,
        alpha=alpha,
        ceiling=max(ceiling, float(values.max())),
        method=NAMES[threshold],
        assumptions=assumed(_FIXED, claim, "the threshold was chosen on the scores, and that is paid for"),
        region=(float(low[i]), float(high[i])),
        counts={
            "tp": int(cuts.tp[i]), "positives": cuts.positives, "fp": int(cuts.fp[i]), "negatives": cuts.negatives,
        },
        threshold=float(cuts.thresholds[i]),
        mu=mu,
        epsilon_if_gaussian=rates.gaussian_epsilon(mu, delta),
        notes=below(claim, max(ceiling, float(values.max()))),
        **judged(
            claim,
            excess is not None and bool(excess.max() > 1e-12),
            claim is not None and bool(claim.excess(*best).max() > 1e-12),
        ),
    )  # fmt: skip


def _fixed(members: Real, others: Real, place: float, delta: float, alpha: float, claim: Claim | None) -> Audit:
    tp, fp = int(np.sum(members >= place)), int(np.sum(others >= place))
    joint = len(members) + len(others) <= MOST
    found = judge_counts(tp, len(members), fp, len(others), delta, alpha, claim, joint)
    return replace(found, threshold=place)


def _split(members: Real, others: Real, delta: float, alpha: float, claim: Claim | None, seed: int | None) -> Audit:
    """The threshold from one random half, counts from the other: they are independent."""
    if seed is None:
        raise InvalidInput("seed = None: a random split needs a seed, so that it can be repeated.")
    rng = np.random.default_rng(checks.whole("seed", seed, 0, 2**63))
    if min(len(members), len(others)) < 2:
        raise InvalidInput("threshold = 'split': needs at least two scores on either side.")
    first, second = rng.permutation(members), rng.permutation(others)
    learn = Cuts.of(first[: len(first) // 2], second[: len(second) // 2])
    worth = worth_of(claim, delta)
    values = promise(learn.tp, learn.fp, learn.positives, learn.negatives, worth, LEVELS)
    place = float(learn.thresholds[np.lexsort(values[::-1])[-1]])
    found = _fixed(first[len(first) // 2 :], second[len(second) // 2 :], place, delta, alpha, claim)
    return replace(
        found,
        method=f"threshold from a random half, {found.method} on the other",
        assumptions=assumed(
            _FIXED,
            claim,
            "the threshold was chosen on a random half of the scores",
            "the seed of the split was drawn at random, or scores stand in the order of their runs",
        ),
    )
