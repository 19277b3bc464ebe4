"""One training run with many canaries, each in or out by its own fair coin: exact, for (eps, delta).

V = number of right guesses among r, q = e^eps/(1 + e^eps), w_j = P[Bin(r, q) = j], beta = P[Bin(r, q) >= v]. Over all
(eps, delta)-DP mechanisms and all attackers that make exactly r guesses from the output,

    sup P[V >= v] = beta + (1 - beta) min(1, m delta beta/(v w_v)),
    beta/w_v = 1 + sum_(i>=v) prod_(j=v..i) e^eps (r-j)/(j+1).

*Proof.* Let p_j = P[V = j]. Flip coin i on the event {guess i is right, V in T}: in the flipped world guess i is wrong
and the other V - 1 right ones remain. DP, averaged over coins and summed over i, gives for every set T

    sum over j in T of s_j <= m delta,   s_j = j p_j - e^eps (r - j + 1) p_(j-1).

Since j w_j = e^eps (r - j + 1) w_(j-1), p_j/w_j - p_(j-1)/w_(j-1) = s_j/(j w_j). With sum p = sum w = 1, summation
gives P[V >= v] = beta + sum_i s_i c_i/(i w_i), where c_i = beta W_(<i) for i <= v and (1 - beta) W_(>=i) above, all >=
0. Taking T = {s > 0}, P[V >= v] <= beta + m delta max_i c_i/(i w_i). Above v, W_(>=i)/(i w_i) falls with i; below, k_i
= W_(<i)/(i w_i) obeys k_(i+1) = (1 + i k_i)/(e^eps (r - i)) and rises: the maximum is at i = v. *Equality*: s_v = m
delta and all other s_i = 0, V = j spread evenly over patterns. QED. delta = 0 is the binomial of Steinke, Nasr,
Jagielski (2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betaincc, expit

from privloss.audit import checks
from privloss.audit.claim import Claim, read_claim
from privloss.audit.curve import recursion_tail
from privloss.audit.rates import logit_of_power
from privloss.audit.result import Audit, below, judged
from privloss.errors import InvalidInput, Unsupported

INCLUSION = {
    "coins": "each canary is in or out by its own fair coin",
    "pairs": "one of two records of each canary is in, by its own fair coin",
}
_MOST = 10**9
_ROUNDED = 1 + 1e-10
_CHUNK, _LONG = 4096, 10**6
_SHARE = 0.1  # of alpha that delta may use where the data decide on the number of guesses
RECURSION = 20_000  # right guesses up to which the recursion is run


def ratio(guesses: int, correct: int, eps: float) -> float:
    """beta / w_v, rounded up: a series of positive terms."""
    v, grown, total, term = correct, math.exp(min(eps, 700.0)), 1.0, 1.0
    if guesses > _LONG and grown * (guesses - v) >= v + 1:
        return math.inf  # v is not above the mean: no tail worth summing
    while v < guesses and total < math.inf:
        j = np.arange(v, min(v + _CHUNK, guesses), dtype=float)
        factors = grown * (guesses - j) / (j + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            terms = term * np.cumprod(factors)
            total += float(terms.sum())
        term, v = float(terms[-1]), v + len(j)
        rest = float(factors[-1])
        if rest < 1 and term < 1e-18 * total:  # what is left is at most geometric
            total += term * rest / (1 - rest)
            break
    return math.inf if math.isnan(total) else total * _ROUNDED


def exact_tail(canaries: int, guesses: int, correct: int, eps: float, delta: float) -> float:
    """sup P[V >= correct] over all (eps, delta)-DP mechanisms and attackers, rounded up."""
    if correct == 0:
        return 1.0
    beta, lost = parts(canaries, guesses, correct, eps, delta)
    return min((beta + (1 - beta) * min(1.0, lost)) * _ROUNDED, 1.0)


def parts(canaries: int, guesses: int, correct: int, eps: float, delta: float) -> tuple[float, float]:
    """beta, and m delta beta/(v w_v)."""
    # by 1 - q, which keeps its digits where q is next to 1
    beta = float(betaincc(guesses - correct + 1, correct, expit(-eps))) if correct else 1.0
    if delta == 0 or correct == 0:
        return beta, 0.0
    return beta, canaries * delta * ratio(guesses, correct, eps) / correct


def decided_by_data(canaries: int, guesses: int, correct: int, eps: float, delta: float, alpha: float) -> bool:
    """Whether (eps, delta) is refuted though the data decided how many guesses were made.

    With B = (1 - kappa) alpha refute iff beta <= B and m delta beta/(v w_v) <= kappa alpha/(1 - B). Let P_r be the
    chance of r guesses, D_r the share of m delta used there, h_r = beta_r/(v_r w_(v_r)) and x_r = min(P_r, D_r h_r):
    the error is at most sum (P_r - x_r) beta_r + sum x_r <= B + (1 - B) kappa alpha/(1 - B) = alpha.
    """
    if correct == 0:
        return False
    beta, lost = parts(canaries, guesses, correct, eps, delta)
    most = (1 - _SHARE) * alpha
    return beta * _ROUNDED <= most and lost * _ROUNDED <= _SHARE * alpha / (1 - most)


def perfect(canaries: int, guesses: int, delta: float, alpha: float) -> float:
    """The epsilon of guesses that are all right: from q^r + (1 - q^r) m delta / r = alpha."""
    lost = canaries * delta / guesses
    if lost >= alpha:
        return 0.0
    return logit_of_power((alpha - lost) / (1 - lost), 1 / guesses)


def largest_refuted(refuted: Callable[[float], bool]) -> float:
    """sup{eps: refuted} for a rule that refutes all smaller ones too; the refuted end of a bisection."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high) and high < 700:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def one_run(
    *,
    canaries: int,
    guesses: int,
    correct: int,
    delta: float,
    inclusion: str | None = None,
    guesses_fixed: bool | None = None,
    alpha: float = 0.05,
    claim: Any = None,
) -> Audit:
    """What `correct` right guesses of `guesses` prove, for `canaries` canaries of one run.

    `inclusion` must be said, and so must `guesses_fixed`: whether their number was fixed in advance (abstaining on all
    others) or decided by the data.

    >>> import privloss as pl
    >>> found = pl.audit.one_run(
    ...     canaries=1000, guesses=1000, correct=800, delta=1e-5, inclusion="coins", guesses_fixed=True)
    >>> round(found.epsilon, 6)
    1.254272
    """
    canaries = checks.whole("canaries", canaries, 1, _MOST)
    guesses = checks.whole("guesses", guesses, 1, canaries, f"must be a whole number from 1 to canaries = {canaries}")
    correct = checks.whole("correct", correct, 0, guesses, f"must be a whole number from 0 to guesses = {guesses}")
    delta, alpha = checks.lost(delta), checks.level(alpha)
    said = coins(inclusion)
    if not isinstance(guesses_fixed, bool):
        raise InvalidInput(f"guesses_fixed = {guesses_fixed!r}: must be True (fixed in advance) or False.")
    known = read_claim(claim, delta)
    fits(known, said)
    return judge(canaries, guesses, correct, delta, alpha, said, guesses_fixed, known)


def coins(inclusion: Any) -> str:
    """How canaries were included."""
    if inclusion == "exactly-half":
        raise Unsupported("inclusion = 'exactly-half': coins that are not independent have no proven bound.")
    return checks.said("inclusion", inclusion, INCLUSION)


def fits(claim: Claim | None, inclusion: str) -> None:
    """A canary in or out is a neighbour under add-remove or zero-out; one of a pair under replace-one."""
    if claim is None or claim.adjacency is None:
        return
    if (claim.adjacency == "replace-one") != (inclusion == "pairs"):
        meant = "replace-one" if inclusion == "pairs" else "add-remove or zero-out"
        raise InvalidInput(
            f"claim under {claim.adjacency}: inclusion = {inclusion!r} tests {meant}; say the claim under that."
        )


def judge(
    canaries: int, guesses: int, correct: int, delta: float, alpha: float, inclusion: str, fixed: bool,
    claim: Claim | None,
) -> Audit:  # fmt: skip
    """The same, after its arguments have been checked."""
    exactly = fixed or delta == 0

    def bound(right: int) -> float:
        if exactly:
            return largest_refuted(lambda eps: exact_tail(canaries, guesses, right, eps, delta) <= alpha)
        return largest_refuted(lambda eps: decided_by_data(canaries, guesses, right, eps, delta, alpha))

    epsilon = bound(correct)
    ceiling = perfect(canaries, guesses, delta, alpha) if exactly else bound(guesses)
    notes = []
    if ceiling == 0:
        notes.append(
            f"canaries x delta = {canaries * delta:g} is not below alpha x guesses: no result can show anything"
        )
    notes.extend(below(claim, ceiling))
    p = best = None
    if claim is not None:
        _usable(claim, fixed, delta)
        p = claim_p(canaries, guesses, correct, claim, fixed, alpha)
        best = claim_p(canaries, guesses, guesses, claim, fixed, alpha)
    return Audit(
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        ceiling=max(ceiling, epsilon),
        method="one run, exact over all (epsilon, delta)-DP mechanisms and attackers",
        assumptions=(
            f"inclusion: {INCLUSION[inclusion]}, independent of everything else",
            "guesses depend on the coins only through what was released; each canary is one privacy unit",
            "the number of guesses was fixed in advance" if fixed else "the data decided how many guesses were made",
            "delta and alpha were fixed in advance",
        ),
        p_value=p,
        counts={"canaries": canaries, "guesses": guesses, "correct": correct},
        notes=tuple(notes),
        **judged(claim, p is not None and p <= alpha, best is not None and best <= alpha),
    )


def _usable(claim: Claim, fixed: bool, delta: float) -> None:
    if not fixed and any(claim.deltas) and len(claim.eps) > 1:
        raise Unsupported(
            "a plan as claim where the data decided how many guesses were made: no proven test; give (epsilon, delta)."
        )


def claim_p(canaries: int, guesses: int, correct: int, claim: Claim, fixed: bool, alpha: float) -> float:
    """The p-value of a claim: the least over points of its profile, and the recursion over its whole curve."""
    if not fixed and any(claim.deltas):
        return _least_level(canaries, guesses, correct, claim.eps[0], claim.deltas[0])
    tails = [exact_tail(canaries, guesses, correct, e, d) for e, d in zip(claim.eps, claim.deltas, strict=True)]
    found = min(tails)
    if len(claim.eps) > 1 and 0 < correct <= RECURSION:
        found = min(found, recursion_tail(canaries, guesses, correct, claim.least_false))
    return found


def _least_level(canaries: int, guesses: int, correct: int, eps: float, delta: float) -> float:
    """The least alpha at which the rule for a number of guesses decided by the data refutes."""
    low, high = -700.0, math.log(0.5)
    if not decided_by_data(canaries, guesses, correct, eps, delta, 0.5):
        return 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        refuted = decided_by_data(canaries, guesses, correct, eps, delta, math.exp(middle))
        low, high = (low, middle) if refuted else (middle, high)
    return math.exp(high)
