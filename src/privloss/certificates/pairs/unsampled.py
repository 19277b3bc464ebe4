"""The pair of a step without its sampler, for the checker.

Written anew in exact terms (balls) from the theorems, not from the engine's tables. docs/certificates.md, section 11,
has the proofs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flint import acb, arb

from privloss.certificates.balls import Use, need, tail
from privloss.certificates.budget import charge
from privloss.certificates.pairs.base import NOTHING, Named, Normal, Pair, Table, even
from privloss.certificates.pairs.noise import Step, noise_and_size, ratio, refuse
from privloss.certificates.pairs.piece import Piece
from privloss.certificates.pairs.pieces import LaplacePair, Pieces, laplace_pair
from privloss.certificates.pairs.tables import table_rows


class Curve(Pair):
    """Known only through log M(c) <= sum of rho c (c+1): for Chernoff bounds."""

    def __init__(self, rho: arb, infinite: arb) -> None:
        self.rho, self.infinite = rho, infinite

    def line(self, c: arb, step: arb, count: int, use: Use) -> list[acb]:
        need(count == 0, "plan: a zcdp step allows a Chernoff bound only")
        return [acb((1 - self.infinite) * (self.rho * c * (c + 1)).exp())]


class TruncatedNormal(Pair):
    """Normal noise on [-bound, bound], moved by mu; unit variance before truncation."""

    def __init__(self, mu: arb, bound: arb) -> None:
        self.mu, self.bound = mu, bound
        self.mass = 1 - 2 * tail(bound)
        self.infinite = (tail(-bound) - tail(mu - bound)) / self.mass

    def piece(self) -> Piece | None:
        """The output, whose mean is mu under Q."""
        mu, mass = self.mu, self.mass * (2 * arb.pi()).sqrt()
        log_density = (-mass.log() - mu * mu / 2, mu, arb(-0.5))
        return Piece(mu - self.bound, self.bound, log_density, -mu, mu * mu / 2)

    def mgf(self, z: acb) -> acb:
        """Outputs x in [mu - bound, bound], loss mu^2/2 - mu x: completing the square moves the normal by -mu z."""
        charge(40)
        root = arb(2).sqrt()
        ends = ((self.bound + self.mu * z) / root).erf() - ((self.mu - self.bound + self.mu * z) / root).erf()
        return (self.mu**2 * z * (z + 1) / 2).exp() * ends / (2 * self.mass)

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        """The density of the loss times e^(cx) has one hump: its variation is twice its largest value."""
        top = (self.mu**2 * c * (c + 1) / 2).exp() / (self.mu * self.mass * (2 * arb.pi()).sqrt())
        return 2 * top / t


def _gaussian(step: Step, adjacency: str) -> Named:
    return even("Gaussian pair: N(s, 1) against N(0, 1)", Normal(ratio(step, "sigma", adjacency) ** 2))


def _gdp(step: Step, adjacency: str) -> Named:
    return even("mu-GDP is dominated by N(mu, 1) against N(0, 1)", Normal(arb(float(step["mu"])) ** 2))


def _zcdp(step: Step, adjacency: str) -> Named:
    rho, slack = arb(float(step["rho"])), arb(float(step.get("delta", 0.0)))
    text = "rho-zCDP: log M(c) <= rho c (c+1); attained by the Gaussian"
    return even(text, Curve(rho, slack), Normal(2 * rho))


def _laplace(step: Step, adjacency: str) -> Named:
    return even("Laplace pair: Lap(s) against Lap(0)", laplace_pair(ratio(step, "scale", adjacency)))


def _exponential(step: Step, adjacency: str) -> Named:
    e = arb(float(step["epsilon"]))
    pair = LaplacePair(e, arb(0), 1 / (4 * (e / 2).sinh()))
    up = (1 - (-e / 2).exp()) / (1 - (-e).exp())  # losses e/2 and -e/2
    below = Table([(up, up * (-e / 2).exp()), (1 - up, (1 - up) * (e / 2).exp())])
    return even("bounded range: density e^(x/2) on [-e, e]; attained: two points", pair, below)


def _noisy_max(step: Step, adjacency: str) -> Named:
    """Hazard rates of at most 1 make the Laplace pair dominate (docs/certificates.md, section 11, (c)). Attained by two
    candidates e/2 apart, in units of the noise, one way and then the other: the one behind wins with the probability
    that the difference of two noises exceeds e/2."""
    noise = "exponential" if step["mechanism"] == "permute-and-flip" else step.get("noise", "gumbel")
    if noise == "gumbel":
        return _exponential(step, adjacency)
    e = arb(float(step["epsilon"]))
    behind = (-e / 2).exp() / 2 if noise == "exponential" else (2 + e / 2) * (-e / 2).exp() / 4
    below = Table([(1 - behind, behind), (behind, 1 - behind)])
    return even("noisy max: Laplace pair of ratio e; attained: two candidates", laplace_pair(e), below)


def _top_k(step: Step, adjacency: str) -> Named:
    """One-shot exponential or Laplace noise: k e-DP, each winner's noise shifted; the first winner is a noisy max."""
    need(step.get("rounds") == "one-shot" and step.get("noise") in ("exponential", "laplace"), "plan: top-k in rounds")
    e = arb(float(step["epsilon"]))
    if e == 0:
        return Named("epsilon = 0: nothing is lost", NOTHING, symmetric=True)
    whole = int(step["k"]) * e
    up = 1 / (1 + (-whole).exp())
    box = Table([(up, up * (-whole).exp()), (up * (-whole).exp(), up)])
    return replace(
        _noisy_max(step, adjacency), theorem="one-shot top-k: k e-DP; attained: the first of them", pairs=(box, box)
    )


def _truncated_laplace(step: Step, adjacency: str) -> Named:
    s, b = ratio(step, "scale", adjacency), noise_and_size(step, "scale", adjacency)[0]
    bound = arb(float(step["bound"])) / arb(b)
    need(s < 2 * bound, "plan: truncated supports do not meet")
    mass = 2 * (1 - (-bound).exp())
    rows = []
    if s <= bound:  # outputs left of 0 (loss s) and right of s (loss -s)
        side = (1 - (s - bound).exp()) / mass
        rows = [(side, side * (-s).exp()), (side * (-s).exp(), side)]
        low, high, hidden = -s, s, ((s - bound).exp() - (-bound).exp()) / mass
    else:
        need(s > bound, "plan: sensitivity and bound cannot be told apart")
        low, high = s - 2 * bound, 2 * bound - s
        hidden = (1 - (-bound).exp() + 1 - (bound - s).exp()) / mass
    pair = Pieces(rows, [(low, high, arb(0.5), (-s / 2).exp() / (2 * mass))], hidden)
    return even("truncated Laplace pair; infinite loss where supports differ", pair)


def _truncated_gaussian(step: Step, adjacency: str) -> Named:
    mu, sigma = ratio(step, "sigma", adjacency), noise_and_size(step, "sigma", adjacency)[0]
    bound = arb(float(step["bound"])) / arb(sigma)
    need(mu < 2 * bound, "plan: truncated supports do not meet")
    return even("truncated Gaussian pair; infinite loss where supports differ", TruncatedNormal(mu, bound))


_KINDS: dict[str, Callable[[Step, str], Named]] = {
    "gaussian": _gaussian,
    "gdp": _gdp,
    "zcdp": _zcdp,
    "laplace": _laplace,
    "exponential": _exponential,
    "noisy-max": _noisy_max,
    "permute-and-flip": _noisy_max,
    "top-k": _top_k,
    "truncated-laplace": _truncated_laplace,
    "truncated-gaussian": _truncated_gaussian,
}


def unsampled(step: Step, adjacency: str) -> Named:
    """The pair of a step without its sampler."""
    rows = table_rows(step, adjacency)
    if rows is not None:
        return rows.named()
    kind = step["mechanism"]
    if kind not in _KINDS:
        raise refuse(repr(kind))
    return _KINDS[kind](step, adjacency)
