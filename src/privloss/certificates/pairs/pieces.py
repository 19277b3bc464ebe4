"""Losses with a density of exponential pieces: Laplace noise, bounded ranges, truncated Laplace noise."""

from __future__ import annotations

from collections.abc import Sequence

from flint import acb, arb

from privloss.certificates.balls import Use, most
from privloss.certificates.budget import charge
from privloss.certificates.pairs.base import Masses, Table
from privloss.certificates.pairs.piece import Piece


class Pieces(Table):
    """Atoms, and P-densities height e^(slope x) of the loss x on ranges [low, high]."""

    atoms_only = False

    def __init__(
        self, rows: Sequence[Masses], ranges: Sequence[tuple[arb, arb, arb, arb]], infinite: arb | int = 0
    ) -> None:
        super().__init__(rows, infinite)
        self.ranges = ranges  # low, high, slope, height

    def largest(self) -> arb | None:
        return most([high for _, high, _, _ in self.ranges] + [loss for _, loss in self.atoms])

    def piece(self) -> Piece | None:
        """The output is the loss itself: Q has the density e^-x of P's."""
        if len(self.ranges) != 1:
            return None
        low, high, slope, height = self.ranges[0]
        return Piece(low, high, (height.log(), slope - 1, arb(0)), arb(1), arb(0))

    def mgf(self, z: acb) -> acb:
        charge(4 * len(self.ranges))
        return super().mgf(z) + sum(
            (k * (((z + s) * high).exp() - ((z + s) * low).exp()) / (z + s) for low, high, s, k in self.ranges), acb(0)
        )

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        """The atoms at their largest; each range by one integration by parts of an e^(ux) with constant sign."""
        ends = (k * (((c + s) * high).exp() + ((c + s) * low).exp()) / t for low, high, s, k in self.ranges)
        return super().mgf(acb(c)).real + sum(ends, arb(0))


class LaplacePair(Pieces):
    """Atoms at e and -e, and the density height e^(x/2) between them (height may be all there is)."""

    def __init__(self, e: arb, atoms: arb, height: arb) -> None:
        rows = [(atoms, atoms * (-e).exp()), (atoms * (-e).exp(), atoms)] if atoms > 0 else []
        super().__init__(rows, [(-e, e, arb(0.5), height)])
        self.laplace = (e, atoms, height)


def laplace_pair(e: arb) -> LaplacePair:
    """Laplace noise moved by e times its scale."""
    return LaplacePair(e, arb(0.5), (-e / 2).exp() / 4)
