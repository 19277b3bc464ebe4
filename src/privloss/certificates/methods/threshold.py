"""One use of one mixture of normals: a half-line is the best event (docs/certificates.md, section 8)."""

from __future__ import annotations

from flint import acb, arb, ctx

from privloss.certificates.balls import Use, given, need, tail
from privloss.certificates.budget import charge
from privloss.certificates.methods.bounds import DeltaBounds, Enclosure
from privloss.certificates.pairs.base import Steps
from privloss.certificates.pairs.mixture import log_densities


def by_threshold(steps: Steps, use: Use) -> DeltaBounds:
    """One use of one mixture: f(x) = P[Y > y] - e^x Q[Y > y] at the y where the rising log P/Q equals x."""
    triples = steps[0][0].triples
    need(len(steps) == 1 and steps[0][1] == 1 and len(triples) > 0, "threshold: needs one mixture, once")

    def loss(y: arb) -> arb:
        charge(4 * len(triples) + 4)
        p, q = log_densities(triples, acb(y))
        return p.real - q.real

    def read(x: arb) -> Enclosure:
        low, high = -given(use, "reach"), given(use, "reach")
        need(loss(low) < x and x < loss(high), "threshold: x is not between the losses at -reach and reach")
        for _ in range(ctx.prec):
            middle = ((low + high) / 2).mid()
            if loss(middle) < x:
                low = middle
            elif loss(middle) > x:
                high = middle
            else:
                break
        y = low.union(high)
        total = sum((w * (tail(y - a) - x.exp() * tail(y - b)) for w, a, b in triples), arb(0))
        return total, total

    return read
