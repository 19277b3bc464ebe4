"""Samples of pairs with a density: pieces whose integrals FLINT's quadrature encloses, and atoms
(docs/certificates.md, section 10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flint import acb, arb

from privloss.certificates.balls import Use, around, given, need, tail
from privloss.certificates.budget import charge
from privloss.certificates.pairs.base import Pair, Table
from privloss.certificates.pairs.outcomes import Outcomes, above, plain_rows
from privloss.certificates.pairs.piece import Piece

MOST_INTEGRALS = 10_000


class Density(Pair):
    """Atoms (probability, loss), and pieces; `missed` is at least what M(c) has beyond them."""

    def __init__(
        self,
        atoms: Sequence[tuple[arb, arb]],
        pieces: list[Piece],
        infinite: arb,
        dropped: arb,
        missed: Callable[[arb], arb] = lambda c: arb(0),
    ) -> None:
        self.atoms, self.pieces, self.infinite, self.dropped = list(atoms), pieces, infinite, dropped
        self.missed = missed

    def line(self, c: arb, step: arb, count: int, use: Use) -> list[acb]:
        need(count <= MOST_INTEGRALS, "too many integrals")
        return super().line(c, step, count, use)

    def mgf(self, z: acb) -> acb:
        charge(2 * len(self.atoms) + 10)
        total = sum((p * (z * loss).exp() for p, loss in self.atoms), acb(0))
        return around(total + sum((piece.integral(z) for piece in self.pieces), acb(0)), self.missed(z.real))

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        charge(2 * len(self.atoms) + 10)
        total = sum((p * (c * loss).exp() for p, loss in self.atoms), arb(0)) + self.missed(c)
        for piece in self.pieces:
            if "turn" in use:
                total += piece.bent(c, t, given(use, "turn") / abs(piece.k), given(use, "scale"))
            else:
                total += piece.variation(c) / t
        return total


def sampled_density(rows: Outcomes, piece: Piece) -> tuple[Density, Density]:
    """((1-q) Q + q P, Q) and its reverse."""
    mixed = rows.sampled(piece.rate)
    one = Density(Table(mixed.rows).atoms, [piece], mixed.only_p, mixed.dropped_p)
    reverse = Table([(q, p) for p, q in mixed.rows])
    return one, Density(reverse.atoms, [piece.reversed()], mixed.only_q, mixed.dropped_q)


def folded_density(rows: Outcomes, piece: Piece, missed: Callable[[arb], arb] = lambda c: arb(0)) -> Density:
    """The symmetric pair keeps the losses above 0 of the sampled pair and mirrors them: a loss -x has the probability
    that x has under Q. What is left has loss 0."""
    mixed = rows.sampled(piece.rate)
    kept = above(mixed.rows)
    atoms = [atom for p, q in kept for atom in ((p, (p / q).log()), (q, (q / p).log()))]
    positive = piece.above_zero()
    both = Density(atoms, [positive, positive.reversed()], mixed.only_p, mixed.dropped_p, missed)
    both.atoms = [*atoms, (1 - both.mgf(acb(0)).real - mixed.only_p, arb(0))]
    return both


def folded_hit(rate: arb, distance: arb) -> Density:
    """The symmetric pair of (1-q) N(0) + q N(s) against N(0); outputs run from s/2 (loss 0) to a far end."""
    end = distance * 60 + 60

    def missed(c: arb) -> arb:
        """Beyond the end: by joint convexity, and for the mirrored losses e^(-cx) <= 1."""
        need(bool(end > (c + 1) * distance), "plan: c is too large for this sampler")
        right = rate * (c * (c + 1) * distance**2 / 2).exp() * tail(end - (c + 1) * distance)
        return right + (1 - rate) * tail(end) + tail(end)

    normal = (-(2 * arb.pi()).log() / 2, arb(0), arb(-0.5))
    piece = Piece(distance / 2, end, normal, distance, -(distance**2) / 2, rate)
    return folded_density(plain_rows([], ""), piece, missed)
