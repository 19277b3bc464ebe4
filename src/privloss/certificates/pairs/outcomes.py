"""Finitely many outcomes with their probabilities under both neighbours: their pair, and their sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import acb, arb

from privloss.certificates.balls import need
from privloss.certificates.pairs.base import Masses, Named, Table, even


class DiscreteNormal(Table):
    """Noise on whole numbers with weights e^(-k^2/2 sigma^2), moved by s: by Poisson's summation, with mu = s/sigma,
    M(z) = e^(mu^2 z(z+1)/2) (1 + 2 sum e^(-2 (pi sigma k)^2) cos(2 pi k s z)) / (the same at z = 0)."""

    def __init__(self, rows: Sequence[Masses], infinite: arb, dropped: arb, sigma: arb, s: int) -> None:
        super().__init__(rows, infinite, dropped)
        self.sigma, self.s, self.mu_squared = sigma, s, (s / sigma) ** 2

    def _theta(self, c: arb) -> arb:
        """The bracket; five terms, and the rest."""
        term = [2 * (-2 * (arb.pi() * self.sigma * k) ** 2).exp() for k in range(1, 8)]
        total = 1 + sum((term[k] * (2 * arb.pi() * (k + 1) * self.s * c).cos() for k in range(5)), arb(0))
        rest = term[5] / (1 - term[0] / 2)
        return total + (-rest).union(rest)

    def beyond_lattice(self, c: arb, t: arb, h: arb) -> arb:
        """While mu u <= pi sigma the k-th term of the bracket, times e^(-mu^2 u^2/2), is at most
        2 e^(-((2k-1) pi sigma)^2/2); what the table leaves out of M is at most what it leaves out at c."""
        mu = self.s / self.sigma
        need(
            bool(mu * arb.pi() / h <= arb.pi() * self.sigma * (1 + arb(2) ** -20)),
            "lattice: not the spacing of the noise",
        )
        near = (-((arb.pi() * self.sigma * (1 - arb(2) ** -18)) ** 2) / 2).exp()
        series = 2 * near / (1 - near)
        scale = (mu**2 * c * (c + 1) / 2).exp() / self._theta(arb(0))
        left_out = abs(scale * self._theta(c) - self.mgf(acb(c)).real)
        return scale * ((-((mu * t) ** 2) / 2).exp() + series) + left_out


@dataclass(frozen=True)
class Outcomes:
    """Outcomes (p, q) > 0, and the probabilities of outcomes that only P (only Q) has, or that are left out."""

    rows: list[Masses]
    only_p: arb
    only_q: arb
    dropped_p: arb
    dropped_q: arb
    theorem: str
    symmetric: bool
    noise: tuple[arb, int] | None = None  # sigma and sensitivity of discrete Gaussian noise

    def named(self) -> Named:
        if self.noise is not None and self.noise[0] > 0.6:
            return even(self.theorem, DiscreteNormal(self.rows, self.only_p, self.dropped_p, *self.noise))
        forward = Table(self.rows, self.only_p, self.dropped_p)
        backward = Table([(q, p) for p, q in self.rows], self.only_q, self.dropped_q)
        return Named(self.theorem, (forward, backward), symmetric=self.symmetric)

    def sampled(self, rate: arb) -> Outcomes:
        """((1-q) Q + q P, Q): outcomes only P has remain so; those only Q has become rows."""
        rows = [((1 - rate) * q + rate * p, q) if p is not q else (p, q) for p, q in self.rows]
        if not self.only_q == 0:  # noqa: SIM201 (a ball that may be 0 counts)
            rows.append(((1 - rate) * self.only_q, self.only_q))
        dropped = rate * self.dropped_p + (1 - rate) * self.dropped_q
        return Outcomes(rows, rate * self.only_p, arb(0), dropped, self.dropped_q, self.theorem, False)


def above(rows: list[Masses]) -> list[Masses]:
    """Outcomes with p > q; whether must be certain (rows of equal probabilities are one object twice)."""
    need(all(p is q or bool(p > q) or bool(p < q) for p, q in rows), "plan: two probabilities need more precision")
    return [(p, q) for p, q in rows if p is not q and p > q]


def plain_rows(rows: list[Masses], theorem: str, symmetric: bool = True, only: arb | int = 0) -> Outcomes:
    """Outcomes of which none is left out; as much is seen under P only as under Q only."""
    return Outcomes(rows, arb(only), arb(only), arb(0), arb(0), theorem, symmetric)
