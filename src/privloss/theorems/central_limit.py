"""The Gaussian approximation of composition, with an error that is proven.

The chapter: the loss of a composition is nearly N(E Z, Var Z), but a quantitative central limit theorem costs an error
of delta >= Omega(1/sqrt k). Both as numbers:

>>> from privloss.theorems.pairs.discrete import DiscretePair
>>> coin = DiscretePair([0.52, 0.48], [0.48, 0.52])
>>> found = normal(coin, count=400, epsilon=1.0)            # the truth is 0.3603
>>> found.estimate
0.36005...
>>> print(found.bound)
[0.336, 0.384]

With F the distribution function of Z and G that of N(E Z, Var Z), sup |F - G| <= B = C sum E|Z_j - E Z_j|^3 over
(Var Z)^(3/2) (Berry, Esseen), C = 0.4748 for equal and 0.56 for any independent losses (Shevtsova 2011, 2010). By the
third expression of Prop. privloss_adp delta(eps) is the integral of e^(eps - z) P[Z > z] over z > eps, and e^(eps - z)
integrates to 1 there: so delta is within B of the same expression for G. An infinite loss of probability d is taken
apart first: delta = d + (1-d) times delta given that Z is finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import log_ndtr, ndtr

from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.numerics.bound import Bound
from privloss.numerics.floats import UNIT
from privloss.theorems.pairs.discrete import DiscretePair

METHOD = "central limit theorem with the error of Berry and Esseen"
_EQUAL, _ANY = 0.4748, 0.56


@dataclass(frozen=True)
class Normal:
    """N(mean, variance) in place of the loss; `bound` contains delta, and `error` is half its width before clipping."""

    mean: float
    variance: float
    estimate: float
    error: float
    bound: Bound


def normal(pairs: DiscretePair | Sequence[DiscretePair], *, epsilon: float, count: int | Sequence[int] = 1) -> Normal:
    """delta(epsilon) of independent pairs, P against Q, each run `count` times."""
    members, counts = _read(pairs, count)
    eps = check.number("epsilon", epsilon)
    finite = (
        math.fsum(n * math.log1p(-pair.mass_at_infinity) for pair, n in zip(members, counts, strict=True))
        if all(pair.mass_at_infinity < 1 for pair in members)
        else -math.inf
    )
    lost = -math.expm1(finite)
    mean, variance, third = (
        math.fsum(n * part[i] for part, n in zip([_moments(p) for p in members], counts, strict=True)) for i in range(3)
    )
    if variance == 0:
        sure = max(0.0, -math.expm1(min(eps - mean, 0.0)))
        value = lost + (1 - lost) * sure
        return Normal(mean, 0.0, value, 0.0, _around(value, 64 * UNIT * (1 + abs(eps) + abs(mean))))
    spread = math.sqrt(variance)
    given_finite = hockey_stick(mean, spread, eps)
    constant = _EQUAL if len(members) == 1 else _ANY
    error = constant * third / (variance * spread)
    value = lost + (1 - lost) * given_finite
    # the exponent errs by its size; losses err by units each, mean and spread by their sum, and delta by no more
    uses = math.fsum(counts)
    top = 1 + max((abs(z) for pair in members for z, _ in pair.losses() if z < math.inf), default=0.0)
    rounding = 256 * UNIT * (1 + abs(eps) + abs(mean) + variance + ((mean - variance - eps) / spread) ** 2)
    rounding += 64 * UNIT * uses * top * (1 + top / spread)
    error *= 1 + 1e-12 + 256 * UNIT * math.sqrt(uses) * top / spread
    return Normal(mean, variance, value, error, _around(value, (1 - lost) * error + rounding))


def hockey_stick(mean: float, spread: float, epsilon: float) -> float:
    """E[max(0, 1 - e^(epsilon - G))] for G ~ N(mean, spread^2), which need not be the loss of anything."""
    first = float(ndtr((mean - epsilon) / spread))
    second = epsilon - mean + 0.5 * spread**2 + float(log_ndtr((mean - epsilon) / spread - spread))
    return min(max(first - math.exp(min(second, 0.0)), 0.0), 1.0)


def gdp_mu(pairs: DiscretePair | Sequence[DiscretePair], *, count: int | Sequence[int] = 1) -> float:
    """The mu of Gaussian DP that a composition tends to (Dong, Roth, Su 2019, Thm. 3.4), as an estimate:
    2 sum E Z / sqrt(sum Var Z), which is the standard deviation of Z where E Z = Var Z / 2."""
    members, counts = _read(pairs, count)
    parts = [_moments(p) for p in members]
    mean, variance = (math.fsum(n * part[i] for part, n in zip(parts, counts, strict=True)) for i in (0, 1))
    return 2 * mean / math.sqrt(variance) if variance > 0 else 0.0


def _read(
    pairs: DiscretePair | Sequence[DiscretePair], count: int | Sequence[int]
) -> tuple[list[DiscretePair], list[int]]:
    members = [pairs] if isinstance(pairs, DiscretePair) else list(pairs)
    counts = list(count) if isinstance(count, Sequence) else [count] * len(members)
    if not members or len(members) != len(counts):
        raise InvalidInput(
            f"count has {len(counts)} entries, pairs {len(members)}: must be equally many, at least one."
        )
    return members, [check.count(f"count[{i}]", n) for i, n in enumerate(counts)]


def _moments(pair: DiscretePair) -> tuple[float, float, float]:
    """Mean, variance and third absolute central moment of the loss, given that it is finite."""
    finite = [(z, a) for z, a in pair.losses() if z < math.inf]
    total = math.fsum(a for _, a in finite)
    if total == 0:
        return 0.0, 0.0, 0.0
    mean = math.fsum(a * z for z, a in finite) / total
    variance = math.fsum(a * (z - mean) ** 2 for z, a in finite) / total
    return mean, variance, math.fsum(a * abs(z - mean) ** 3 for z, a in finite) / total


def _around(value: float, error: float) -> Bound:
    return Bound(max(value - error, 0.0), min(value + error, 1.0), METHOD)
