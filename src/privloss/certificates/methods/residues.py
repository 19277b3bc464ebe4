"""Laplace noise, and closed forms: one threshold, all residues (docs/certificates.md, sections 8 and 9)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flint import acb, acb_poly, arb, ctx

from privloss.certificates.balls import Use, given, most, need, tail, whole
from privloss.certificates.checker import DeltaBounds, Enclosure, Mixture, Steps, Table


class Pieces(Table):
    """Atoms, and P-densities height e^(slope x) of the loss x on [low, high]."""

    atoms_only = False

    def __init__(
        self, rows: Sequence[tuple[arb, arb]], pieces: Sequence[tuple[arb, arb, arb, arb]], infinite: arb | int = 0
    ) -> None:
        super().__init__(rows, infinite)
        self.pieces = pieces

    def largest(self) -> arb | None:
        return most([high for _, high, _, _ in self.pieces] + [loss for _, loss in self.atoms])

    def mgf(self, z: acb) -> acb:
        return super().mgf(z) + sum(
            (k * (((z + s) * high).exp() - ((z + s) * low).exp()) / (z + s) for low, high, s, k in self.pieces), acb(0)
        )

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        """The atoms at their largest; each piece by one integration by parts of an e^(ux) with constant sign."""
        ends = (k * (((c + s) * high).exp() + ((c + s) * low).exp()) / t for low, high, s, k in self.pieces)
        return super().mgf(acb(c)).real + sum(ends, arb(0))


class LaplacePair(Pieces):
    """Atoms at e and -e, and the density height e^(x/2) between them (height may be all there is)."""

    def __init__(self, e: arb, atoms: arb, height: arb) -> None:
        rows = [(atoms, atoms * (-e).exp()), (atoms * (-e).exp(), atoms)] if atoms > 0 else []
        super().__init__(rows, [(-e, e, arb(0.5), height)])
        self.up, self.down = atoms, atoms * (-e).exp()


def by_threshold(steps: Steps, use: Use) -> DeltaBounds:
    """One use of one mixture: f(x) = P[Y > y] - e^x Q[Y > y] at the y where the rising log P/Q equals x."""
    need(len(steps) == 1 and steps[0][1] == 1 and type(steps[0][0]) is Mixture, "threshold: needs one mixture, once")
    mixture: Mixture = steps[0][0]  # type: ignore[assignment]

    def loss(y: arb) -> arb:
        p, q = mixture._logs(acb(y))
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
        total = sum((w * (tail(y - a) - x.exp() * tail(y - b)) for w, a, b in mixture.triples), arb(0))
        return total, total

    return read


def by_residues(steps: Steps, use: Use) -> DeltaBounds:
    """k uses of a pair with atoms at +-e and a density height e^(x/2) between: M(z)^k is a sum of
    e^(jez) / (z + 1/2)^m, and the integral over Re z = c of each over z (z+1) the sum of its residues."""
    need(len(steps) == 1 and type(steps[0][0]) is LaplacePair, "residues: needs one kind of Laplace noise")
    pair, k = steps[0]
    need(k <= 100_000, "residues: too many uses")
    up, down, orders = pair.up, pair.down, min(whole(use, "most", 1000), k)  # type: ignore[attr-defined]
    _, e, _, height = pair.pieces[0]  # type: ignore[attr-defined]
    atoms, density = acb_poly([down, up]), acb_poly([-height * (-e / 2).exp(), height * (e / 2).exp()])
    need(k * orders <= 1_000_000, "residues: too many terms")
    # the chance that more than `most` of the losses come from the density is left to the upper end
    share = 1 - up - down
    rest = 1 - sum((math.comb(k, m) * share**m * (1 - share) ** (k - m) for m in range(orders + 1)), arb(0))
    powers = [atoms ** (k - orders)]
    for _ in range(orders):
        powers.append(powers[-1] * atoms)
    rows, product = [], acb_poly([1])
    for m in range(orders + 1):
        rows.append([x.real * math.comb(k, m) for x in (product * powers[orders - m]).coeffs()])
        product *= density

    def read(x: arb) -> Enclosure:
        total = arb(0)
        for j in range(k + 1):
            s = ((2 * j - k) * e - x).max(arb(0))
            if s == 0:
                continue
            root = term = (-s / 2).exp()
            now, after = 1 - root * root, 2 * (1 - root) ** 2  # the sums of residues for m = 0 and m = 1
            for m in range(orders + 1):
                if j < len(rows[m]):
                    total += rows[m][j] * now
                term = term * s / (m + 1)  # e^(-s/2) s^(m+1)/(m+1)!
                now, after = after, 4 * (now - term)
        return total, total + (rest.max(arb(0)) if orders < k else 0)

    return read
