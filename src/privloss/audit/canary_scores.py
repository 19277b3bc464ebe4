"""One run with a score for each canary: guesses are the extreme scores, or all of them in the order of confidence."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privloss.audit import checks
from privloss.audit.canaries import INCLUSION, coins, fits, judge, largest_refuted
from privloss.audit.claim import Claim, read_claim
from privloss.audit.result import Audit, below, judged, strongest
from privloss.errors import InvalidInput
from privloss.numerics.floats import Real

BETS = np.linspace(0.05, 0.98, 24)
UNFAIR = "more or fewer canaries are in than fair coins would give: were these fair coins?"


def one_run_scores(
    scores: Any,
    included: Any,
    *,
    budgets: Any,
    delta: float,
    inclusion: str | None = None,
    alpha: float = 0.05,
    claim: Any = None,
    seed: int | None = None,
) -> Audit:
    """`budgets` are pairs (k_in, k_out) fixed in advance: the k_in highest scores are guessed "in", the k_out lowest
    "out", each pair at its share of alpha; or "confidence": all canaries in falling distance from the middle score,
    for delta = 0.

    Equal scores stand in an order drawn from `seed`; without one, from the system's randomness, and a note says which
    seed would give the same again. A seed that is always the same must not be given where the order in which canaries
    are listed depends on their coins: a permutation known beforehand can put members listed first on one side of a cut,
    in every run."""
    values, coin = checks.numbers_of("scores", scores), _coins(included)
    if len(values) != len(coin):
        raise InvalidInput(f"scores, included: {len(values)} scores and {len(coin)} canaries; must be of equal length.")
    delta, alpha = checks.lost(delta), checks.level(alpha)
    said = coins(inclusion)
    known = read_claim(claim, delta)
    fits(known, said)
    drawn = secrets.randbits(63) if seed is None else checks.whole("seed", seed, 0, 2**63)
    shuffled = np.random.default_rng(drawn).permutation(len(values))
    values, coin = values[shuffled], coin[shuffled]
    notes = (UNFAIR,) if unfair(len(coin), int(coin.sum())) else ()
    if len(np.unique(values)) < len(values):
        notes = (*notes, f"equal scores stand in an order drawn from seed {drawn}")
    if isinstance(budgets, str):
        if budgets != "confidence":
            raise InvalidInput(f'budgets = {budgets!r}: must be pairs (k_in, k_out) or "confidence".')
        found = _by_confidence(values, coin, delta, alpha, said, known)
    else:
        found = _by_budgets(values, coin, _pairs(budgets, len(values)), delta, alpha, said, known)
    return replace(found, notes=(*found.notes, *notes))


def unfair(canaries: int, included: int) -> bool:
    """Whether so many are in as fair coins would have it less than one time in a million."""
    return abs(included - canaries / 2) > 2.5 * math.sqrt(canaries)


def _coins(included: Any) -> Real:
    values = checks.numbers_of("included", included)
    if not np.all((values == 0) | (values == 1)):
        raise InvalidInput("included: must hold 0 or 1 (False or True) only.")
    return values


def _pairs(budgets: Any, canaries: int) -> list[tuple[int, int]]:
    try:
        pairs = [(checks.whole("k_in", a, 0, canaries), checks.whole("k_out", b, 0, canaries)) for a, b in budgets]
    except (TypeError, ValueError) as problem:
        if isinstance(problem, InvalidInput):
            raise
        raise InvalidInput(f'budgets = {budgets!r}: must be pairs (k_in, k_out) or "confidence".') from None
    if not pairs or any(not 0 < a + b <= canaries for a, b in pairs):
        raise InvalidInput(f"budgets = {budgets!r}: each must guess from 1 to {canaries} canaries.")
    return pairs


def _by_budgets(
    values: Real, coin: Real, pairs: Sequence[tuple[int, int]], delta: float, alpha: float, inclusion: str,
    claim: Claim | None,
) -> Audit:  # fmt: skip
    order = np.argsort(values, kind="stable")  # ties stand in the order of the permutation
    share = alpha / len(pairs)  # a union bound over the budgets
    found = []
    for k_in, k_out in pairs:
        right = int(coin[order[len(order) - k_in :]].sum()) + int(k_out - coin[order[:k_out]].sum())
        found.append(judge(len(values), k_in + k_out, right, delta, share, inclusion, True, claim))
    best = strongest(found)
    several = (f"{len(pairs)} budgets fixed in advance, alpha divided by their number",) if len(pairs) > 1 else ()
    p = None if best.p_value is None else min(1.0, len(pairs) * min(a.p_value for a in found if a.p_value is not None))
    return replace(best, alpha=alpha, p_value=p, ceiling=max(a.ceiling for a in found), notes=(*best.notes, *several))


def _by_confidence(values: Real, coin: Real, delta: float, alpha: float, inclusion: str, claim: Claim | None) -> Audit:
    """Given the output, coin i is guessed right with probability at most q = e^eps/(1 + e^eps) whatever the earlier
    coins were, in any order chosen from the output. So mean over bets of prod (1 + bet (c_i - q)/q) is a
    supermartingale that falls with eps, and may be stopped anywhere (Ville): refute once it reaches 1/alpha."""
    if delta > 0:
        raise InvalidInput(f'delta = {delta!r}: budgets = "confidence" is proven for delta = 0 only.')
    distance = values - np.median(values)
    order = np.lexsort((values, -np.abs(distance)))  # stable: only equal scores stand in the order of the permutation
    right = np.where(distance[order] > 0, coin[order], 1 - coin[order])

    def log_wealth(eps: float, hits: Real) -> float:
        q = 1 / (1 + math.exp(-eps))
        steps = np.log1p(np.multiply.outer(BETS, (hits - q) / q))
        logs = np.cumsum(steps, axis=1)
        top = logs.max(axis=0)
        return float((top + np.log(np.mean(np.exp(logs - top), axis=0))).max()) - 1e-9

    goal = -math.log(alpha)
    epsilon = largest_refuted(lambda eps: log_wealth(eps, right) >= goal)
    ceiling = largest_refuted(lambda eps: log_wealth(eps, np.ones(len(right))) >= goal)
    p = best = None
    if claim is not None:
        if any(claim.deltas[:1]) and len(claim.eps) == 1:
            raise InvalidInput('claim: budgets = "confidence" judges pure epsilons only.')
        bound = claim.epsilon.upper  # at delta = 0
        p = min(1.0, math.exp(-log_wealth(bound, right))) if math.isfinite(bound) else 1.0
        best = math.exp(-log_wealth(bound, np.ones(len(right)))) if math.isfinite(bound) else 1.0
    return Audit(
        epsilon=epsilon,
        delta=0.0,
        alpha=alpha,
        ceiling=max(ceiling, epsilon),
        method="one run, wealth over the canaries in falling confidence",
        assumptions=(
            f"inclusion: {INCLUSION[inclusion]}, independent of everything else",
            "scores depend on the coins only through what was released; each canary is one privacy unit",
        ),
        p_value=p,
        counts={"canaries": len(values), "guesses": len(values), "correct": int(right.sum())},
        notes=below(claim, max(ceiling, epsilon)),
        **judged(claim, p is not None and p <= alpha, best is not None and best <= alpha),
    )
