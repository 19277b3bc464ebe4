"""A pair on finitely many outcomes: every definition is a finite sum, every construction explicit.

>>> pair = DiscretePair([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
>>> pair.neyman_pearson(0.2)
NeymanPearson(threshold=0.9162907318741..., coin=1.0, power=0.5)
>>> parts = pair.decompose(epsilon=0.5, delta=0.2)
>>> [round(x, 4) for x in parts.p_rest], round(parts.largest_loss(), 4)
([1.0, 0.0, 0.0], 0.4055)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.theorems.pairs.base import Function, NeymanPearson, Pair, probabilities


@dataclass(frozen=True)
class DiscretePair(Pair):
    """P and Q as probability vectors over the same outcomes."""

    p: Sequence[float]
    q: Sequence[float]

    def __post_init__(self) -> None:
        p, q = probabilities("p", self.p), probabilities("q", self.q)
        if len(p) != len(q):
            raise InvalidInput(f"p has {len(p)} entries, q {len(q)}: must be equally many.")
        object.__setattr__(self, "p", tuple(p))
        object.__setattr__(self, "q", tuple(q))

    def reversed(self) -> DiscretePair:
        return DiscretePair(self.q, self.p)

    def log_ratio(self, outcome: int) -> float:
        """f(y) = log P(y)/Q(y); inf or -inf where only one side can produce y, 0 where neither can."""
        a, b = self.p[outcome], self.q[outcome]
        if a == b:
            return 0.0
        if 0 in (a, b):
            return math.inf if b == 0 else -math.inf
        return math.log(a / b) if 1e-300 < a / b < 1e300 else math.log(a) - math.log(b)

    def losses(self) -> list[tuple[float, float]]:
        """(loss, probability under P) for every outcome that P can produce."""
        return [(self.log_ratio(i), a) for i, a in enumerate(self.p) if a > 0]

    def expectation(self, g: Function) -> float:
        return math.fsum(a * g(z) for z, a in self.losses() if z < math.inf)

    def log_moment(self, t: float) -> float:
        finite = [(z, a) for z, a in self.losses() if z < math.inf]
        if self.mass_at_infinity == 0 and all(abs(t * z) < 0.5 for z, _ in finite):
            return math.log1p(math.fsum(a * math.expm1(t * z) for z, a in finite))  # no cancellation for small t
        logs = [math.log(a) + t * z for z, a in finite]
        top = max(logs, default=-math.inf)
        return top + math.log(math.fsum(math.exp(x - top) for x in logs)) if logs else -math.inf

    @property
    def mass_at_infinity(self) -> float:
        return math.fsum(a for a, b in zip(self.p, self.q, strict=True) if b == 0)

    def tail(self, epsilon: float) -> float:
        return math.fsum(a for z, a in self.losses() if z > epsilon)

    def tail_under_q(self, epsilon: float) -> float:
        return math.fsum(b for i, b in enumerate(self.q) if self.log_ratio(i) > epsilon)

    def max_divergence(self) -> float:
        return max(z for z, _ in self.losses())

    def _tail_integral(self, epsilon: float) -> float:
        # P[Z > z] is a step function: the integral of e^(eps - z) over each step is a difference of exponentials
        steps = sorted({z for z, _ in self.losses() if epsilon < z < math.inf})
        edges = [epsilon, *steps]
        pieces = [self.tail(a) * (math.exp(epsilon - a) - math.exp(epsilon - b)) for a, b in pairwise(edges)]
        return math.fsum([*pieces, self.mass_at_infinity * math.exp(epsilon - edges[-1])])

    def neyman_pearson(self, fpr: float) -> NeymanPearson:
        rate = check.number("fpr", fpr, low=0, high=1)
        power, used = self.mass_at_infinity, 0.0
        for z in sorted({self.log_ratio(i) for i, (a, b) in enumerate(zip(self.p, self.q, strict=True)) if a + b > 0},
                        reverse=True):  # fmt: skip
            if z == math.inf:
                continue
            here = [i for i in range(len(self.p)) if self.log_ratio(i) == z and self.p[i] + self.q[i] > 0]
            under_p, under_q = math.fsum(self.p[i] for i in here), math.fsum(self.q[i] for i in here)
            if used + under_q >= rate:
                coin = min((rate - used) / under_q, 1.0) if under_q > 0 else 1.0
                return NeymanPearson(z, coin, min(power + coin * under_p, 1.0))
            power, used = power + under_p, used + under_q
        return NeymanPearson(-math.inf, 1.0, 1.0)

    def compose(self, other: DiscretePair) -> DiscretePair:
        """Independent outcomes side by side: losses add (Thm. privloss_composition)."""
        return DiscretePair(
            [a * b for a in self.p for b in other.p],
            [a * b for a in self.q for b in other.q],
        )

    def then(self, second: Sequence[DiscretePair]) -> DiscretePair:
        """The first outcome, and one of the mechanism that it chooses: `second[i]` after outcome i (Prop. adaptivecomp,
        Lem. rdp_properties, part 2). All of them have equally many outcomes."""
        if len(second) != len(self.p) or len({len(pair.p) for pair in second}) != 1:
            raise InvalidInput(
                f"second has {len(second)} entries: must be one pair for each of {len(self.p)} outcomes, all of a size."
            )
        return DiscretePair(
            [a * b for a, pair in zip(self.p, second, strict=True) for b in pair.p],
            [a * b for a, pair in zip(self.q, second, strict=True) for b in pair.q],
        )

    def postprocess(self, g: Callable[[int], int] | Sequence[int]) -> DiscretePair:
        """The pair of g(Y): outcomes with the same image are merged (Lem. postprocessing)."""
        if not callable(g) and (isinstance(g, (str, bytes)) or not isinstance(g, Sequence)):
            raise InvalidInput(f"g = {g!r}: must be a function or a list with one label per outcome.")
        image = [g(i) for i in range(len(self.p))] if callable(g) else list(g)
        if len(image) != len(self.p):
            raise InvalidInput(f"g has {len(image)} entries, the pair {len(self.p)} outcomes: must be equally many.")
        labels = sorted(set(image))
        merged = [[math.fsum(v for v, t in zip(side, image, strict=True) if t == label) for label in labels]
                  for side in (self.p, self.q)]  # fmt: skip
        return DiscretePair(*merged)

    def mixed_with(self, other: DiscretePair, share: float) -> DiscretePair:
        """(1-s) P + s P' against (1-s) Q + s Q'."""
        s = check.number("share", share, low=0, high=1)
        if len(self.p) != len(other.p):
            raise InvalidInput(f"the pairs have {len(self.p)} and {len(other.p)} outcomes: must be equally many.")
        return DiscretePair(
            [(1 - s) * a + s * b for a, b in zip(self.p, other.p, strict=True)],
            [(1 - s) * a + s * b for a, b in zip(self.q, other.q, strict=True)],
        )

    def poisson(self, rate: float) -> DiscretePair:
        """pP + (1-p)Q against Q: the pair of a mechanism on a Poisson sample."""
        q = check.number("rate", rate, low=0, high=1)
        return DiscretePair([q * a + (1 - q) * b for a, b in zip(self.p, self.q, strict=True)], self.q)

    def decompose(self, epsilon: float, delta: float) -> Decomposition:
        """Lem. decomposition: P = (1-delta) P' + delta P'', Q likewise, with |log P'/Q'| <= epsilon everywhere."""
        eps, slack = check.number("epsilon", epsilon, low=0), check.number("delta", delta, low=0, high=1)
        back = self.reversed()
        worst = max(self.hockey_stick(eps), back.hockey_stick(eps))
        if worst > slack * (1 + 1e-12) + 1e-15:
            raise InvalidInput(
                f"delta = {delta!r}: the pair is not ({epsilon!r}, {delta!r})-DP, it needs {worst:.12g}."
            )
        part = min(slack, self.total_variation())
        p_main, p_rest = _split(self, part, slack, eps)
        q_main, q_rest = _split(back, part, slack, eps)
        return Decomposition(eps, slack, tuple(p_main), tuple(q_main), tuple(p_rest), tuple(q_rest))


def _split(pair: DiscretePair, part: float, delta: float, eps: float) -> tuple[list[float], list[float]]:
    """P' and P'' of P: cut P at e^eps1 Q so that the part above weighs `part`, and move more of P' over up to delta."""
    factor = min(max(_cut_at(pair, part), 1.0), math.exp(min(eps, 700.0)))  # rounding must not leave the range
    below = [min(a, factor * b) if b > 0 else 0.0 for a, b in zip(pair.p, pair.q, strict=True)]
    above = [a - c for a, c in zip(pair.p, below, strict=True)]
    kept, cut = math.fsum(below), math.fsum(above)
    if kept == 0:  # disjoint: any P' = Q' will do; P itself is the rest
        main = [0.5 * (a + b) for a, b in zip(pair.p, pair.q, strict=True)]
        return main, list(pair.p)
    main = [c / kept for c in below]
    if delta == 0:
        return main, main
    rest = [(delta - cut) / delta * m + a / delta for m, a in zip(main, above, strict=True)]
    return main, [max(r, 0.0) for r in rest]


def _cut_at(pair: DiscretePair, part: float) -> float:
    """e^eps1 >= 1 with sum max(0, P - e^eps1 Q) = part; the sum is convex and piecewise linear in e^eps1."""
    corners = sorted({a / b for a, b in zip(pair.p, pair.q, strict=True) if a > b > 0}, reverse=True)
    weight_p, weight_q = pair.mass_at_infinity, 0.0
    if weight_p >= part:  # outcomes that only P can produce are always above; with them alone no cut is needed
        return math.inf
    for corner in corners:
        # above this corner the active outcomes are fixed: part = weight_p - factor weight_q
        if weight_q > 0 and (weight_p - part) / weight_q >= corner:
            return (weight_p - part) / weight_q
        for a, b in zip(pair.p, pair.q, strict=True):
            if b > 0 and a / b == corner:
                weight_p, weight_q = weight_p + a, weight_q + b
    return max((weight_p - part) / weight_q, 1.0) if weight_q > 0 else 1.0


@dataclass(frozen=True)
class Decomposition:
    """P = (1-delta) P' + delta P'' and Q = (1-delta) Q' + delta Q''."""

    epsilon: float
    delta: float
    p_main: tuple[float, ...]  # P'
    q_main: tuple[float, ...]  # Q'
    p_rest: tuple[float, ...]  # P''
    q_rest: tuple[float, ...]  # Q''

    def largest_loss(self) -> float:
        """The largest |log P'/Q'|, at most epsilon."""
        both = zip(self.p_main, self.q_main, strict=True)
        return max(0.0 if a == b else math.inf if 0 in (a, b) else abs(math.log(a / b)) for a, b in both)

    def randomized_response(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Cor. kov: A and B with P' = (e^eps A + B)/(e^eps + 1) and Q' = (e^eps B + A)/(e^eps + 1)."""
        if self.epsilon == 0:
            return self.p_main, self.q_main
        # (e^eps P' - Q')/(e^eps - 1) = P' + (P' - Q')/(e^eps - 1): no large numbers
        gain = 1 / math.expm1(self.epsilon) if self.epsilon < 700 else 0.0
        pairs = list(zip(self.p_main, self.q_main, strict=True))
        a = tuple(max(x + gain * (x - y), 0.0) for x, y in pairs)
        b = tuple(max(y + gain * (y - x), 0.0) for x, y in pairs)
        return a, b
