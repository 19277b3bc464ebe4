"""Mixtures of normals, the pairs of Gaussian noise on samples: M by the trapezoid rule with a proven error
(docs/certificates.md, sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Sequence

from flint import acb, arb

from privloss.certificates.balls import (
    MOST_NODES,
    Use,
    around,
    given,
    most,
    need,
    tail,
    turning_sums,
    whole,
)
from privloss.certificates.budget import charge, integral
from privloss.certificates.pairs.base import Pair, Triple


def _ordered(triples: Sequence[Triple]) -> bool:
    return all(a >= b for _, a, _ in triples for _, _, b in triples)


def _on_one_side(means: list[arb]) -> bool:
    return all(x >= 0 for x in means) or all(x <= 0 for x in means)


def log_densities(triples: Sequence[Triple], at: acb, analytic: bool = False) -> tuple[acb, acb]:
    """log of P and Q over the standard normal density; on the principal branch while reach * |Im| < pi."""
    p = sum((w * (a * at - a * a / 2).exp() for w, a, _ in triples), acb(0))
    q = sum((w * (b * at - b * b / 2).exp() for w, _, b in triples), acb(0))
    return p.log(analytic), q.log(analytic)


class Mixture(Pair):
    """P = sum w N(a, 1) against Q = sum w N(b, 1) over triples (w, a, b), every a >= every b (or all mirrored)."""

    def __init__(self, triples: Sequence[Triple]) -> None:
        charge(2 * len(triples) ** 2)
        self.triples = list(triples) if _ordered(triples) else [(w, -a, -b) for w, a, b in triples]
        need(_ordered(self.triples), "the mixture is not ordered")
        above, below = [a for _, a, _ in self.triples], [b for *_, b in self.triples]
        # so that |Q(y + iv)| >= cos(reach v / 2) Q(y), and the same for P: neither has zeros in the strip
        need(_on_one_side(above) and _on_one_side(below), "components lie on both sides of 0")
        self.reach = most(abs(x) for x in above + below)
        # arg P - arg Q is between 0 and v * span on Im y = v
        self.span = most(above) + most(-b for b in below)

    def thinned(self, use: Use) -> arb:
        """An outcome y is kept with probability Phi(thin - y), so that rare large losses do not rule M."""
        if "thin" not in use:
            return arb(0)
        charge(8 * len(self.triples))
        thin = given(use, "thin", -1e9, 1e9)
        return sum((w * tail((thin - a) / arb(2).sqrt()) for w, a, _ in self.triples), arb(0))

    def largest(self) -> arb | None:
        """If P is one normal and Q has it as a component of weight w: log P/Q <= -log w."""
        place = self.triples[0][1]
        shared = sum((w for w, _, b in self.triples if b == place), arb(0))
        return -shared.log() if shared > 0 and all(a == place for _, a, _ in self.triples) else None

    def _nodes(self, c: arb, use: Use) -> tuple[arb, list[arb], arb]:
        """Step h, nodes y, and what the sum over them misses: p^(c+1) q^-c is at most sum w a^(c+1) b^-c
        (joint convexity), and at most p e^(c largest)."""
        h, low, count = given(use, "h"), given(use, "from", -1e9, 1e9), whole(use, "nodes", MOST_NODES)
        charge(count + 16 * len(self.triples))
        y = [low + j * h for j in range(count)]
        missed, top = arb(0), self.largest()
        for w, a, b in self.triples:
            mean = (c + 1) * a - c * b if top is None else a
            size = c * (c + 1) * (a - b) ** 2 / 2 if top is None else c * top
            last, beyond = mean, tail(y[-1] - mean)
            if "thin" in use:  # Phi(thin - y) <= e^(-(y - thin)^2/2)/2 beyond thin: a product of two normal densities
                thin, root = given(use, "thin", -1e9, 1e9), arb(2).sqrt()
                last = ((mean + thin) / 2).max(thin)
                beyond = (-((mean - thin) ** 2) / 4).exp() / (2 * root) * tail(root * (y[-1] - (mean + thin) / 2))
            need(bool(y[0] <= mean) and bool(last <= y[-1]), "quadrature: the nodes miss the mean of a component")
            missed += w * size.exp() * (beyond + tail(mean - y[0]))
        return h, y, missed

    def line(self, c: arb, step: arb, count: int, use: Use) -> list[acb]:
        h, y, missed = self._nodes(c, use)
        charge(len(y) * (4 * len(self.triples) + 4) + 2 * count)
        v, logs = given(use, "v"), [tuple(x.real for x in log_densities(self.triples, acb(at))) for at in y]
        root = h / (2 * arb.pi()).sqrt()
        weights = [root * (-at * at / 2 + (c + 1) * p - c * q).exp() for at, (p, q) in zip(y, logs, strict=True)]
        if "thin" in use:
            charge(6 * len(y))
            weights = [w * tail(at - given(use, "thin", -1e9, 1e9)) for w, at in zip(weights, y, strict=True)]
        values = turning_sums(weights, [step * (p - q) for p, q in logs], count)
        angle = self.reach * v
        need(bool(angle < arb.pi()), "quadrature: v is too large for the zeros of the density")
        rise = v * v / 2 if "thin" not in use else v * v  # of |phi|, and as much of |Phi(thin - y)|
        error = 2 * rise.exp() * (angle / 2).cos() ** (-c) / ((2 * arb.pi() * v / h).exp() - 1)
        need(error < 0.5, "quadrature: the strip v does not beat the step h")
        total = (values[0].real + missed) / (1 - error)  # >= M(c)
        growth = (step * v * self.span).exp()
        found = []
        for value in values:
            found.append(around(value, error * total + missed))
            error *= growth
        return found

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        """Moves the path of integration to x + iv(x), v(x) = bend / (1 + e^(reach (onset - x))), where the factor
        e^(-u arg) falls in u. |integrand| is written with conjugates, so that it is holomorphic in x, and |dy| is at
        most 1 + v'^2/2; `acb.integral` is rigorous."""
        if "bend" not in use:
            return super().beyond(c, t, use)
        _, y, missed = self._nodes(c, use)
        bend, onset = given(use, "bend"), given(use, "onset", -1e9, 1e9)
        angle = self.reach * bend
        need(bool(angle < arb.pi()), "cut: the bend is too large for the zeros of the density")

        def log(at: acb, z: acb, analytic: bool) -> acb:
            p, q = log_densities(self.triples, at, analytic)
            return (z + 1) * p - z * q - at * at / 2

        def size(x: acb, analytic: bool) -> acb:
            share = 1 / (1 + (self.reach * (onset - x)).exp())
            v, slope = acb(0, bend) * share, bend * self.reach * share * (1 - share)
            above, below = log(x + v, acb(c, t), analytic), log(x - v, acb(c, -t), analytic)
            found = ((above + below) / 2).exp() * (1 + slope * slope / 2)
            if "thin" in use:
                found *= (-v * v / 2).exp() * ((x - given(use, "thin", -1e9, 1e9)) / arb(2).sqrt()).erfc() / 2
            return found

        total = integral(size, y[0], y[-1], 8 * len(self.triples) + 16).real / (2 * arb.pi()).sqrt()
        steep = (
            (bend * bend * (1 if "thin" in use else 0.5)).exp() * (angle / 2).cos() ** (-c) * (1 + angle * angle / 32)
        )
        return total + steep * missed
