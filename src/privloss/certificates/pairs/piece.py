"""Intervals of outputs with a density, and their samples: integrals without a closed form, by FLINT's rigorous
quadrature.

A piece is an interval of outputs u on which Q has the density e^(a0 + a1 u + a2 u^2) and P/Q = e^(k u + k0). On a
sample of rate q the ratio becomes r(u) = 1 - q + q e^(k u + k0); a piece contributes the integral of density * r^w to
M(z), with w = z + 1 for ((1-q) Q + q P, Q) and w = -z for the other direction. docs/certificates.md, section 10.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flint import acb, arb

from privloss.certificates.balls import need
from privloss.certificates.budget import charge, integral

_WHOLE = arb(1)
_CELLS = 512  # of a bound on the variation of a density


@dataclass(frozen=True)
class Piece:
    """One interval, in one direction; rate 1 is no sample."""

    low: arb
    high: arb
    log_density: tuple[arb, arb, arb]
    k: arb
    k0: arb
    rate: arb = _WHOLE
    forward: bool = True

    def at_rate(self, rate: arb) -> Piece:
        return replace(self, rate=rate)

    def reversed(self) -> Piece:
        return replace(self, forward=False)

    def above_zero(self) -> Piece:
        """The part of the interval where the loss of P against Q is positive, if it is 0 at one point of it."""
        zero = -self.k0 / self.k
        return replace(self, low=zero) if self.k > 0 else replace(self, high=zero)

    def log_size(self, u: acb, z: acb, analytic: bool) -> acb:
        """log of density * r^w."""
        a0, a1, a2 = self.log_density
        ratio = (1 - self.rate + self.rate * (self.k * u + self.k0).exp()).log(analytic)
        return a0 + u * (a1 + u * a2) + (z + 1 if self.forward else -z) * ratio

    def integral(self, z: acb) -> acb:
        return integral(lambda u, analytic: self.log_size(u, z, analytic).exp(), self.low, self.high, 8)

    def bent(self, c: arb, t: arb, bend: arb, scale: arb) -> arb:
        """At least |integral| at c + iu for u >= t: on the path u + iv(u), v = bend (1 - e^(-scale (u - low)))
        (1 - e^(-scale (high - u))), on the side of the axis where u arg r >= 0. As for mixtures the modulus is written
        with conjugates, and |dy| <= 1 + v'^2/2."""
        need(bool(bend * abs(self.k) < arb.pi()), "cut: the bend is too large for the zeros of the density")
        side = bend if (self.k > 0) == self.forward else -bend

        def size(u: acb, analytic: bool) -> acb:
            left, right = (scale * (self.low - u)).exp(), (scale * (u - self.high)).exp()
            v = acb(0, side) * (1 - left) * (1 - right)
            slope = side * scale * (left * (1 - right) - right * (1 - left))
            both = self.log_size(u + v, acb(c, t), analytic) + self.log_size(u - v, acb(c, -t), analytic)
            return (both / 2).exp() * (1 + slope * slope / 2)

        return integral(size, self.low, self.high, 40).real

    def variation(self, c: arb) -> arb:
        """The variation, with its jumps at both ends, of the tilted density over the loss, H = density r^w / |k p| with
        p = q e^(ku + k0) / r: integration by parts bounds the integral at c + it by this over t."""
        _, a1, a2 = self.log_density
        power = c + 1 if self.forward else -c
        charge(10 * _CELLS)
        width, total = (self.high - self.low) / _CELLS, arb(0)
        for j in range(_CELLS):
            u = (self.low + j * width).union(self.low + (j + 1) * width)
            hit = self.rate * (self.k * u + self.k0).exp()
            p = 1 / (1 + (1 - self.rate) / hit)
            height = self.log_size(acb(u), acb(c), False).real.exp() / abs(self.k * p)
            total += width * height * abs(a1 + 2 * a2 * u + power * self.k * p - self.k * (1 - p))
            total += height if j in (0, _CELLS - 1) else 0
        return total
