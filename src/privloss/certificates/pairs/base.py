"""A pair of output distributions and its privacy loss: what every kind of pair answers, and the two simplest kinds.

Notation: a *pair* (P, Q), its loss Z = log P/Q under P, M(z) = E[e^(zZ); Z finite]. Every number is a ball of
python-flint, which contains the exact value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import acb, arb

from privloss.certificates.balls import Use, most, need
from privloss.certificates.budget import charge
from privloss.certificates.pairs.piece import Piece

Masses = tuple[arb, arb]  # of one outcome, under P and under Q
Triple = tuple[arb, arb, arb]  # a weight, and the means of a normal under P and under Q


class Pair:
    """One step's loss in one direction. `infinite` is P[Z = inf]; outcomes of probability at most `dropped` are left
    out of M, which a lower end may ignore and an upper end must add. The other attributes say which methods a pair
    lends itself to; they are empty where it does not."""

    infinite, dropped = arb(0), arb(0)
    atoms: Sequence[tuple[arb, arb]] = ()  # (probability, loss)
    atoms_only = False  # the loss takes no values but those
    triples: Sequence[Triple] = ()  # of a mixture of normals
    pieces: Sequence[Piece] = ()  # whose integrals are part of M
    parts: Sequence[tuple[arb, Pair]] = ()  # (weight, pair): one of them, and which is shown
    laplace: tuple[arb, arb, arb] | None = None  # e, u, h: u at e, u e^-e at -e, the density h e^(x/2) between
    mu_squared = arb(0)  # of the normal law that M(c + iu) dies down like, if it does

    def thinned(self, use: Use) -> arb:
        """What the parameters leave out besides."""
        return arb(0)

    def largest(self) -> arb | None:
        """At least the largest finite loss, if there is one."""
        return None

    def piece(self) -> Piece | None:
        """All outputs with finite losses other than the atoms, as one interval, if they are one."""
        return None

    def mgf(self, z: acb) -> acb:
        raise NotImplementedError

    def line(self, c: arb, step: arb, count: int, use: Use) -> list[acb]:
        """M(c + i n step), n = 0..count."""
        charge(2 * (count + 1))
        return [self.mgf(acb(c, n * step)) for n in range(count + 1)]

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        """At least |M(c + iu)| for every u >= t: always true of M(c)."""
        return self.line(c, arb(0), 0, use)[0].real

    def beyond_lattice(self, c: arb, t: arb, h: arb) -> arb:
        """At least |M(c + iu)| for t <= u <= pi/h."""
        return self.mgf(acb(c)).real


Steps = Sequence[tuple[Pair, int]]  # pairs and how often each is used


class Normal(Pair):
    """N(mu, 1) against N(0, 1), mu^2 given: Z is N(mu^2/2, mu^2)."""

    def __init__(self, mu_squared: arb) -> None:
        self.mu_squared = mu_squared

    def mgf(self, z: acb) -> acb:
        return (self.mu_squared / 2 * z * (z + 1)).exp()

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        return (self.mu_squared / 2 * (c * (c + 1) - t * t)).exp()


class Table(Pair):
    """Finitely many outcomes with probabilities (p, q) > 0."""

    atoms_only = True

    def __init__(self, rows: Sequence[Masses], infinite: arb | int = 0, dropped: arb | int = 0) -> None:
        charge(3 * len(rows))
        self.atoms = [(p, (p / q).log()) if p is not q else (p, arb(0)) for p, q in rows]
        need(all(p > 0 and x.is_finite() for p, x in self.atoms), "plan: a loss needs more precision")
        self.infinite, self.dropped = arb(infinite), arb(dropped)

    def largest(self) -> arb | None:
        return most(loss for _, loss in self.atoms)

    def mgf(self, z: acb) -> acb:
        charge(2 * len(self.atoms))
        return sum((p * (z * loss).exp() for p, loss in self.atoms), acb(0))


@dataclass(frozen=True)
class Named:
    """One step: its pair in both directions, and one that is attained if that differs."""

    theorem: str
    pairs: tuple[Pair, Pair]
    attained: tuple[Pair, Pair] | None = None
    symmetric: bool = False


def even(theorem: str, pair: Pair, attained: Pair | None = None) -> Named:
    """A pair whose loss has the same law in both directions."""
    return Named(theorem, (pair, pair), None if attained is None else (attained, attained), symmetric=True)


_ALL = arb(1)
_NOTHING = Table([(_ALL, _ALL)])
NOTHING: tuple[Pair, Pair] = (_NOTHING, _NOTHING)  # both neighbours look alike
NOTHING_SAMPLED = Named("nothing is sampled", NOTHING, symmetric=True)
