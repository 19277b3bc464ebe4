"""The pairs of a plan, for the checker: from the parsed plan file to steps in both directions.

Written anew in exact terms (balls) from the theorems, not from the engine's tables. `upper` dominates every pair of
neighbours; `lower` is attained by some, where the two differ. docs/certificates.md, section 11, has the proofs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import acb, arb

from privloss.certificates.balls import Rejected, Use, need, tail
from privloss.certificates.checker import Normal, Pair, Steps, Table
from privloss.certificates.methods.residues import LaplacePair, Pieces
from privloss.certificates.pairs.tables import TABLES, Named, Outcomes, box_rows

FORWARD, BACKWARD = "P against Q", "Q against P"
Row = tuple[arb, arb]


@dataclass(frozen=True)
class Sides:
    """Steps by direction; a symmetric plan has one direction only."""

    upper: dict[str, Steps]
    lower: dict[str, Steps]
    theorems: tuple[str, ...]


def refuse(text: str) -> Rejected:
    return Rejected(f"plan: {text} has no certified pair")


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

    def mgf(self, z: acb) -> acb:
        """Outputs x in [mu - bound, bound], loss mu^2/2 - mu x: completing the square moves the normal by -mu z."""
        root = arb(2).sqrt()
        ends = ((self.bound + self.mu * z) / root).erf() - ((self.mu - self.bound + self.mu * z) / root).erf()
        return (self.mu**2 * z * (z + 1) / 2).exp() * ends / (2 * self.mass)

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        """The density of the loss times e^(cx) has one hump: its variation is twice its largest value."""
        top = (self.mu**2 * c * (c + 1) / 2).exp() / (self.mu * self.mass * (2 * arb.pi()).sqrt())
        return 2 * top / t


# -- no sampling -------------------------------------------------------------------------------------------------------


def distances(step: dict[str, Any], adjacency: str) -> tuple[arb, arb]:
    """How far a record moves the sum when added and when replaced, in units of the noise."""
    if "noise_multiplier" in step:
        noise = arb(float(step["noise_multiplier"]))
        need(noise > 0, "plan: without noise no finite epsilon can be certified")
        return 1 / noise, 2 / noise
    need(float(step["sigma"]) > 0, "plan: without noise no finite epsilon can be certified")
    size = arb(float(step.get("sensitivity", 1.0))) / arb(float(step["sigma"]))
    return (size / 2 if adjacency == "replace-one" else size), (size if adjacency == "replace-one" else 2 * size)


def _gaussian(step: dict[str, Any], adjacency: str) -> Named:
    add, replace = distances(step, adjacency)
    pair = Normal((replace if adjacency == "replace-one" else add) ** 2)
    return Named("Gaussian pair: N(s, 1) against N(0, 1)", (pair, pair), symmetric=True)


def _gdp(step: dict[str, Any], adjacency: str) -> Named:
    pair = Normal(arb(float(step["mu"])) ** 2)
    return Named("mu-GDP is dominated by N(mu, 1) against N(0, 1)", (pair, pair), symmetric=True)


def _zcdp(step: dict[str, Any], adjacency: str) -> Named:
    rho, slack = arb(float(step["rho"])), arb(float(step.get("delta", 0.0)))
    pair, below = Curve(rho, slack), Normal(2 * rho)
    text = "rho-zCDP: log M(c) <= rho c (c+1); attained by the Gaussian"
    return Named(text, (pair, pair), (below, below), symmetric=True)


def _laplace(step: dict[str, Any], adjacency: str) -> Named:
    need(float(step["scale"]) > 0, "plan: without noise no finite epsilon can be certified")
    e = arb(float(step.get("sensitivity", 1.0))) / arb(float(step["scale"]))
    pair = LaplacePair(e, arb(0.5), (-e / 2).exp() / 4)
    return Named("Laplace pair: Lap(s) against Lap(0)", (pair, pair), symmetric=True)


def _exponential(step: dict[str, Any], adjacency: str) -> Named:
    e = arb(float(step["epsilon"]))
    if step.get("noise", "gumbel") != "gumbel" or e == 0:
        return _box(step, adjacency)
    pair = LaplacePair(e, arb(0), 1 / (4 * (e / 2).sinh()))
    up = (1 - (-e / 2).exp()) / (1 - (-e).exp())  # losses e/2 and -e/2
    below = Table([(up, up * (-e / 2).exp()), (1 - up, (1 - up) * (e / 2).exp())])
    return Named("bounded range: density e^(x/2) on [-e, e]; attained: two points", (pair, pair), (below, below), True)


def _truncated_laplace(step: dict[str, Any], adjacency: str) -> Named:
    b = arb(float(step["scale"]))
    s, bound = arb(float(step.get("sensitivity", 1.0))) / b, arb(float(step["bound"])) / b
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
    return Named("truncated Laplace pair; infinite loss where supports differ", (pair, pair), symmetric=True)


def _truncated_gaussian(step: dict[str, Any], adjacency: str) -> Named:
    sigma = arb(float(step["sigma"]))
    mu, bound = arb(float(step.get("sensitivity", 1.0))) / sigma, arb(float(step["bound"])) / sigma
    need(mu < 2 * bound, "plan: truncated supports do not meet")
    pair = TruncatedNormal(mu, bound)
    return Named("truncated Gaussian pair; infinite loss where supports differ", (pair, pair), symmetric=True)


def _table(step: dict[str, Any], adjacency: str) -> Named:
    return TABLES[step["mechanism"]](step).named()


def _box(step: dict[str, Any], adjacency: str) -> Named:
    """Any epsilon-DP mechanism would do; that this one is as bad as the worst of them is not claimed."""
    one = arb(1)
    nothing = Table([(one, one)])
    named = box_rows({"epsilon": step["epsilon"]}).named()
    return Named(named.theorem, named.pairs, (nothing, nothing), True)


_KINDS: dict[str, Callable[[dict[str, Any], str], Named]] = {
    "gaussian": _gaussian,
    "gdp": _gdp,
    "zcdp": _zcdp,
    "laplace": _laplace,
    "exponential": _exponential,
    "noisy-max": _exponential,
    "truncated-laplace": _truncated_laplace,
    "truncated-gaussian": _truncated_gaussian,
    **dict.fromkeys(TABLES, _table),
}


def unsampled(step: dict[str, Any], adjacency: str) -> Named:
    """The pair of a step without its sampler."""
    kind = step["mechanism"]
    if kind not in _KINDS:
        raise refuse(repr(kind))
    return _KINDS[kind](step, adjacency)


def table_rows(step: dict[str, Any]) -> Outcomes | None:
    """The outcomes of a step that has finitely many; None for others."""
    kind = step["mechanism"]
    if kind == "noisy-max" and step.get("noise", "gumbel") != "gumbel":
        return box_rows({"epsilon": step["epsilon"]})
    return TABLES[kind](step) if kind in TABLES else None
