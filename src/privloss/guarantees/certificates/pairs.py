"""The pairs of a plan, for the checker: from the parsed plan file to steps in both directions.

Written anew in exact terms (balls) from the theorems, not from the engine's tables. `upper` dominates every pair of
neighbours; `lower` is attained by some, where the two differ. docs/certificates.md, section 11, has the proofs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import acb, arb, ctx, fmpq

from privloss.guarantees.certificates.checker import Normal, Pair, Pieces, Rejected, Steps, Table, Use, need, tail
from privloss.guarantees.certificates.sums import LaplacePair

FORWARD, BACKWARD = "P against Q", "Q against P"
Row = tuple[arb, arb]


@dataclass(frozen=True)
class Sides:
    """Steps by direction; a symmetric plan has one direction only."""

    upper: dict[str, Steps]
    lower: dict[str, Steps]
    theorems: tuple[str, ...]


@dataclass(frozen=True)
class Named:
    """One step: its pair in both directions, and one that is attained if that differs."""

    theorem: str
    pairs: tuple[Pair, Pair]
    attained: tuple[Pair, Pair] | None = None
    symmetric: bool = False


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


# -- tables ------------------------------------------------------------------------------------------------------------


class DiscreteNormal(Table):
    """Noise on whole numbers with weights e^(-k^2/2 sigma^2), moved by s: by Poisson's summation, with mu = s/sigma,
    M(z) = e^(mu^2 z(z+1)/2) (1 + 2 sum e^(-2 (pi sigma k)^2) cos(2 pi k s z)) / (the same at z = 0)."""

    sigma, s = arb(1), 1

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
class Rows:
    """Outcomes (p, q) > 0, and the probabilities of outcomes that only P (only Q) has, or that are left out."""

    rows: list[Row]
    only_p: arb
    only_q: arb
    dropped_p: arb
    dropped_q: arb
    theorem: str
    symmetric: bool
    noise: tuple[arb, int] | None = None  # sigma and sensitivity of discrete Gaussian noise

    def named(self) -> Named:
        if self.noise is not None and self.noise[0] > 0.6:
            normal = DiscreteNormal(self.rows, self.only_p, self.dropped_p)
            normal.sigma, normal.s = self.noise
            return Named(self.theorem, (normal, normal), symmetric=True)
        forward = Table(self.rows, self.only_p, self.dropped_p)
        backward = Table([(q, p) for p, q in self.rows], self.only_q, self.dropped_q)
        return Named(self.theorem, (forward, backward), symmetric=self.symmetric)

    def sampled(self, rate: arb) -> Rows:
        """((1-q) Q + q P, Q): outcomes only P has remain so; those only Q has become rows."""
        rows = [((1 - rate) * q + rate * p, q) for p, q in self.rows]
        if not self.only_q == 0:  # noqa: SIM201 (a ball that may be 0 counts)
            rows.append(((1 - rate) * self.only_q, self.only_q))
        dropped = rate * self.dropped_p + (1 - rate) * self.dropped_q
        text = f"Poisson sample, both directions, of: {self.theorem}"
        return Rows(rows, rate * self.only_p, arb(0), dropped, self.dropped_q, text, False)


def _plain_rows(rows: list[Row], theorem: str, symmetric: bool = True, only: arb | int = 0) -> Rows:
    return Rows(rows, arb(only), arb(only), arb(0), arb(0), theorem, symmetric)


def _box_rows(step: dict[str, Any]) -> Rows:
    e, slack = arb(float(step["epsilon"])), arb(float(step.get("delta", 0.0)))
    need(slack < 1, "plan: delta = 1 promises nothing")
    up = (1 - slack) / (1 + (-e).exp())
    rows = [(up, up * (-e).exp()), (up * (-e).exp(), up)] if e > 0 else [(1 - slack, 1 - slack)]
    return _plain_rows(rows, "(e, d)-DP is dominated by randomised response with d", only=slack)


def _response_rows(step: dict[str, Any]) -> Rows:
    answers = arb(int(step.get("answers", 2)))
    if "epsilon" in step:
        ratio = arb(float(step["epsilon"])).exp()
    else:
        p = arb(float(step["p"]))
        need(p > 0, "plan: an answer that is always true has no finite epsilon")
        ratio = 1 + (1 - p) * answers / p
    small = 1 / (ratio + answers - 1)
    rows = [(ratio * small, small), (small, ratio * small)] if ratio > 1 else [(2 * small, 2 * small)]
    if answers > 2:
        rows.append(((answers - 2) * small, (answers - 2) * small))
    return _plain_rows(rows, "randomised response: two answers that differ")


def _unary_rows(step: dict[str, Any]) -> Rows:
    p, q = arb(float(step["p"])), arb(float(step["q"]))
    need(q > 0 and p < 1, "plan: unary encoding with q = 0 or p = 1")
    both = p * q + (1 - p) * (1 - q)
    up, down = p * (1 - q), q * (1 - p)
    rows = [(up, down), (down, up), (both, both)] if p > q else [(arb(1), arb(1))]
    return _plain_rows(rows, "unary encoding: the two bits that differ")


def _custom_rows(step: dict[str, Any]) -> Rows:
    p, q = ([arb(float(x)) for x in step[name]] for name in ("p", "q"))
    sum_p, sum_q = sum(p, arb(0)), sum(q, arb(0))
    rows = [(x / sum_p, y / sum_q) for x, y in zip(p, q, strict=True) if x > 0 and y > 0]
    only_p = sum((x for x, y in zip(p, q, strict=True) if y == 0), arb(0)) / sum_p
    only_q = sum((y for x, y in zip(p, q, strict=True) if x == 0), arb(0)) / sum_q
    return Rows(rows, only_p, only_q, arb(0), arb(0), "the pair as given, made to sum to one", False)


def _discrete_laplace_rows(step: dict[str, Any]) -> Rows:
    need(float(step["scale"]) > 0, "plan: without noise no finite epsilon can be certified")
    a, s = 1 / arb(float(step["scale"])), int(step.get("sensitivity", 1))
    need(s <= 20_000, "plan: too many losses")
    end = 1 / (1 + (-a).exp())
    rows = [(end, end * (-a * s).exp()), (end * (-a * s).exp(), end)]
    step_mass = (1 - (-a).exp()) * end
    rows += [(step_mass * (-a * x).exp(), step_mass * (-a * (s - x)).exp()) for x in range(1, s)]
    return _plain_rows(rows, "discrete Laplace pair, moved by the sensitivity")


def _discrete_gaussian_rows(step: dict[str, Any]) -> Rows:
    """Outcomes from -reach to s + reach; the rest, a ratio of sums of e^(-k^2/2 sigma^2), is left out."""
    sigma, s = arb(float(step["sigma"])), int(step.get("sensitivity", 1))
    need(sigma > 0, "plan: without noise no finite epsilon can be certified")
    reach = math.ceil(float(step["sigma"]) * math.sqrt(2 * 0.7 * _bits()) + 1)
    need(2 * reach + s <= 20_000, "plan: too many losses")
    weights = {k: (-((arb(k) / sigma) ** 2) / 2).exp() for k in range(-reach - s, reach + s + 1)}
    # beyond K the terms fall by at least e^(-K/sigma^2) each
    far = arb(reach + s)
    rest = 2 * (-(((far + 1) / sigma) ** 2) / 2).exp() / (1 - (-far / sigma**2).exp())
    total = sum(weights.values(), arb(0)) + arb(0).union(rest)
    rows = [(weights[k] / total, weights[k - s] / total) for k in range(-reach, s + reach + 1)]
    near = arb(reach)
    left_out = 2 * (-(((near + 1) / sigma) ** 2) / 2).exp() / (1 - (-near / sigma**2).exp()) / total
    rows.reverse()
    text = "discrete Gaussian pair, moved by the sensitivity"
    return Rows(rows, arb(0), arb(0), left_out, left_out, text, True, (sigma, s))


def _bits() -> int:
    return int(ctx.prec)


def _trade_off_rows(step: dict[str, Any]) -> Rows:
    """The larger of f and its inverse (either order of the neighbours binds), in exact fractions; an edge of the
    polygon is an outcome, its height the probability under P and its width that under Q."""
    curve = [(Fraction(x), Fraction(y)) for x, y in zip(step["fpr"], step["fnr"], strict=True)]
    last = next(i for i, (_, y) in enumerate(curve) if y <= 0)
    mirror = [(y, x) for x, y in reversed(curve[: last + 1])] + [(Fraction(1), Fraction(0))]
    grid = sorted({x for x, _ in curve + mirror if 0 <= x <= 1})
    both = [(x, _height(curve, x), _height(mirror, x)) for x in grid]
    for (x1, f1, g1), (x2, f2, g2) in itertools.pairwise(list(both)):
        if (f1 - g1) * (f2 - g2) < 0:
            x = x1 + (x2 - x1) * (f1 - g1) / ((f1 - g1) - (f2 - g2))
            both.append((x, _height(curve, x), _height(mirror, x)))
    points = [(x, max(f, g)) for x, f, g in sorted(both)]
    edges = [(y1 - y2, x2 - x1) for (x1, y1), (x2, y2) in itertools.pairwise(points)]
    need(all(p >= 0 for p, _ in edges) and points[0][1] <= 1, "plan: the trade-off curve must fall")
    rows = [(_ball(p), _ball(q)) for p, q in edges if p > 0]
    only_q = sum((q for p, q in edges if p == 0), Fraction(0))
    text = "f-DP is dominated by the pair whose trade-off curve is f"
    return Rows(rows, _ball(1 - points[0][1]), _ball(only_q), arb(0), arb(0), text, False)


def _height(curve: list[tuple[Fraction, Fraction]], x: Fraction) -> Fraction:
    """The polygon at x (its highest point where it is vertical; 0 to the right, 1 to the left)."""
    if x < curve[0][0]:
        return Fraction(1)
    found = [y for a, y in curve if a == x]
    for (x1, y1), (x2, y2) in itertools.pairwise(curve):
        if x1 < x < x2:
            found.append(y1 + (y2 - y1) * (x - x1) / (x2 - x1))
    return max(found) if found else Fraction(0)


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def _profile_rows(step: dict[str, Any]) -> Rows:
    """The largest of the curves of (e_i, d_i)-DP: from the steepest line on, each until a flatter one is higher."""
    lines = [(arb(float(e)), arb(float(d))) for e, d in zip(step["epsilons"], step["deltas"], strict=True)]
    lines = sorted(((e, d) for e, d in lines if d < 1), key=lambda line: (float(line[1]), float(line[0])))
    need(bool(lines), "plan: the profile promises nothing")
    (eps, delta), start = lines[0], arb(0)
    lost, rows = delta, []
    while True:
        meet = (1 - delta) / (1 + eps.exp())
        crossings = [((d - delta) / (eps.exp() - e.exp()), e, d) for e, d in lines if e < eps]
        nearest = min(crossings, key=lambda x: float(x[0]), default=None)
        stop = nearest is None or not nearest[0] < meet
        width = (meet if nearest is None or stop else nearest[0]) - start
        if width > 0:
            rows += [(eps.exp() * width, width), (width, eps.exp() * width)] if eps > 0 else [(2 * width, 2 * width)]
        if nearest is None or stop:
            break
        start, eps, delta = start.max(nearest[0]), nearest[1], nearest[2]
    left = 1 - lost - sum((p for p, _ in rows), arb(0))  # a ball around 0: the rounding of the widths
    need(bool(abs(left) < arb(2) ** (-_bits() // 2)), "plan: the profile's lines cannot be told apart")
    text = "(e_i, d_i)-DP for all i is dominated by the pair of the largest of their curves"
    return Rows(rows, lost, lost, arb(0).union(abs(left).upper()), arb(0).union(abs(left).upper()), text, True)


_TABLES: dict[str, Callable[[dict[str, Any]], Rows]] = {
    "pure-dp": _box_rows,
    "approx-dp": _box_rows,
    "randomized-response": _response_rows,
    "unary-encoding": _unary_rows,
    "custom": _custom_rows,
    "trade-off": _trade_off_rows,
    "privacy-profile": _profile_rows,
    "discrete-laplace": _discrete_laplace_rows,
    "discrete-gaussian": _discrete_gaussian_rows,
}


def _table(step: dict[str, Any], adjacency: str) -> Named:
    return _TABLES[step["mechanism"]](step).named()


def _box(step: dict[str, Any], adjacency: str) -> Named:
    return _box_rows({"epsilon": step["epsilon"]}).named()


_KINDS: dict[str, Callable[[dict[str, Any], str], Named]] = {
    "gaussian": _gaussian,
    "gdp": _gdp,
    "zcdp": _zcdp,
    "laplace": _laplace,
    "exponential": _exponential,
    "noisy-max": _exponential,
    "truncated-laplace": _truncated_laplace,
    "truncated-gaussian": _truncated_gaussian,
    **dict.fromkeys(_TABLES, _table),
}


def unsampled(step: dict[str, Any], adjacency: str) -> Named:
    """The pair of a step without its sampler."""
    kind = step["mechanism"]
    if kind not in _KINDS:
        raise refuse(repr(kind))
    return _KINDS[kind](step, adjacency)


def table_rows(step: dict[str, Any]) -> Rows | None:
    """The outcomes of a step that has finitely many; None for others."""
    kind = step["mechanism"]
    if kind == "noisy-max" and step.get("noise", "gumbel") != "gumbel":
        return _box_rows({"epsilon": step["epsilon"]})
    return _TABLES[kind](step) if kind in _TABLES else None
