"""A few uses of Laplace noise, also of unequal scales: delta(eps) as a finite sum, in ball arithmetic.

With y = 2z + 1 one use has M = e^(-lambda/2) [ e^(y lambda/2) (1 + 1/y) + e^(-y lambda/2) (1 - 1/y) ] / 2, so that the
product over N uses is e^(-L/2) 2^-N times the sum, over all choices of a sign for each, of

    e^(y a/2) (1 + 1/y)^J (1 - 1/y)^(N-J),      a the signed sum of the lambdas, J the number of pluses, L = sum lambda.

The line integral of `base.py` of each term, over z (z+1) = (y^2 - 1)/4, is 0 for a <= x and otherwise the sum of its
residues at y = 0 and y = +-1. Those at y = 1 (z = 0) vanish but for J = N, where they give 1; those at y = -1 vanish
but for J = 0, which never enters as a = -L <= x. At y = 0, with h = (a - x)/2, what is left is e^((x - L)/2) 2^(1-N)
times

    -T(h) for J = N,         T   = sum_i h^i/i! [ C(N, i+1) + C(N, i+3) + ... ],
    Q_J(h) for 0 < J < N,    Q_J = sum_i h^i/i! times the coefficient of y^(N-1-i) in (y+1)^(J-1) (y-1)^(N-J-1),

polynomials with rational coefficients that depend on N and J alone. The terms cancel; balls know by how much, and the
precision is doubled until enough digits are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from flint import arb, arb_poly, ctx, fmpq, fmpq_poly, fmpz_poly

from privloss.numerics.floats import Real, next_down, next_up, raised

_MOST_TERMS, _MOST_USES = 60_000, 150  # of all polynomials together; the precision needed grows with the uses
_LEAST_BITS, _MOST_BITS = 128, 8192
_ENOUGH = 64  # correct bits of an answer


def few(lam: Real, count: Real) -> bool:
    """Whether the sum is short enough."""
    uses, signs = float(count.sum()), 1.0
    for n in _counts(lam, count).values():
        signs *= n + 1
    return uses <= _MOST_USES and signs * uses <= _MOST_TERMS


@dataclass(frozen=True, eq=False)
class LaplaceSums:
    """Independent uses: `lam` (rounded by at most `units` roundings each) and `count`, few of them."""

    lam: Real
    count: Real
    units: float

    def hockey_stick(self, eps: float) -> tuple[float, float]:
        """log of lower and upper bounds on delta(eps), for eps >= 0.

        One use has delta = 1 - e^((x - lambda)/2) for x >= -lambda and 1 - e^x below, so that with lambda + eta for
        lambda it is at most what it was at x - eta. A loss Z + eta has just that profile, and if one law of Z has the
        larger E[(1 - e^(x-Z))_+] for every x, so has its sum with anything independent: roundings of the lambdas move
        delta(eps) by no more than the sum of them moves eps.
        """
        off = raised(self.units * 2.0**-53 * float(self.count @ self.lam), 8 + 2 * len(self.lam))
        low, high = self.delta(next_up(eps + off)).lower(), self.delta(next_down(eps - off)).upper()
        return (
            next_down(float(low.log().lower())) if low > 0 else -math.inf,
            min(next_up(float(high.log().upper())), 0.0) if high > 0 else -math.inf,
        )

    def delta(self, eps: float) -> arb:
        """A ball around delta(eps) of the lambdas as they are, never negative."""
        bits = _LEAST_BITS
        while True:
            with ctx.workprec(bits):
                found = self._delta(abs(eps))
                if eps < 0:  # H_a = a H_(1/a) + 1 - a for a pair that is its own mirror image
                    found = arb(eps).exp() * found - arb(eps).expm1()
            if found.rel_accuracy_bits() >= _ENOUGH or found.is_zero() or bits >= _MOST_BITS:
                return found.nonnegative_part()
            bits *= 2

    def _delta(self, eps: float) -> arb:
        x = _exactly(eps)
        (top, _, _), *others = self._signs
        if x >= top:
            return arb(0)
        whole, partial = _polynomials(self._uses, ctx.prec)
        half = arb((top - x) / 2)
        total = whole(half)
        for a, pluses, ways in others:
            if a <= x:  # sorted: so are all that follow
                break
            total -= ways * partial[pluses](arb((a - x) / 2))
        return 1 - (-half).exp() * total / arb(2) ** (self._uses - 1)

    @property
    def _uses(self) -> int:
        return int(self.count.sum())

    @cached_property
    def _signs(self) -> list[tuple[fmpq, int, int]]:
        """(a, J, how often), largest a first, without a = -L."""
        found = [(fmpq(0), 0, 1)]
        for lam, n in _counts(self.lam, self.count).items():
            steps = [((2 * j - n) * _exactly(lam), j, math.comb(n, j)) for j in range(n + 1)]
            found = [(a + b, k + j, w * v) for a, k, w in found for b, j, v in steps]
        return sorted((term for term in found if term[1] > 0), key=lambda term: term[0], reverse=True)


def _counts(lam: Real, count: Real) -> dict[float, int]:
    """How often each lambda is used."""
    found: dict[float, int] = {}
    for one, n in zip(lam.tolist(), count.tolist(), strict=True):
        found[one] = found.get(one, 0) + int(n)
    return found


def _exactly(value: float) -> fmpq:
    return fmpq(*value.as_integer_ratio())


@lru_cache(maxsize=64)
def _polynomials(uses: int, bits: int) -> tuple[arb_poly, Sequence[arb_poly]]:
    """T and the Q_J (place 0 is empty), with coefficients rounded to so many bits."""
    choose = [math.comb(uses, i) for i in range(uses + 1)]
    whole = [sum(choose[i + 1 :: 2]) for i in range(uses)]
    plus, minus = fmpz_poly([1, 1]), fmpz_poly([-1, 1])
    partial = [fmpz_poly([])] + [plus ** (j - 1) * minus ** (uses - j - 1) for j in range(1, uses)]
    factors = [fmpq(1)]
    for i in range(1, uses):
        factors.append(factors[-1] / i)
    with ctx.workprec(bits):
        return _rounded(whole, factors), [
            _rounded([int(q[uses - 1 - i]) for i in range(uses)], factors) for q in partial
        ]


def _rounded(coefficients: Sequence[int], factors: Sequence[fmpq]) -> arb_poly:
    return arb_poly(fmpq_poly([c * f for c, f in zip(coefficients, factors, strict=True)]))
