"""Steps with finitely many outcomes, for the checker: their probabilities under both neighbours, in exact terms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import acb, arb, ctx, fmpq

from privloss.certificates.balls import need
from privloss.certificates.checker import Pair, Table

Masses = tuple[arb, arb]  # under P and under Q


@dataclass(frozen=True)
class Named:
    """One step: its pair in both directions, and one that is attained if that differs."""

    theorem: str
    pairs: tuple[Pair, Pair]
    attained: tuple[Pair, Pair] | None = None
    symmetric: bool = False


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
            normal = DiscreteNormal(self.rows, self.only_p, self.dropped_p)
            normal.sigma, normal.s = self.noise
            return Named(self.theorem, (normal, normal), symmetric=True)
        forward = Table(self.rows, self.only_p, self.dropped_p)
        backward = Table([(q, p) for p, q in self.rows], self.only_q, self.dropped_q)
        return Named(self.theorem, (forward, backward), symmetric=self.symmetric)

    def sampled(self, rate: arb) -> Outcomes:
        """((1-q) Q + q P, Q): outcomes only P has remain so; those only Q has become rows."""
        rows = [((1 - rate) * q + rate * p, q) if p is not q else (p, q) for p, q in self.rows]
        if not self.only_q == 0:  # noqa: SIM201 (a ball that may be 0 counts)
            rows.append(((1 - rate) * self.only_q, self.only_q))
        dropped = rate * self.dropped_p + (1 - rate) * self.dropped_q
        text = f"Poisson sample, both directions, of: {self.theorem}"
        return Outcomes(rows, rate * self.only_p, arb(0), dropped, self.dropped_q, text, False)


def above(rows: list[Masses]) -> list[Masses]:
    """Outcomes with p > q; whether must be certain (rows of equal probabilities are one object twice)."""
    need(all(p is q or bool(p > q) or bool(p < q) for p, q in rows), "plan: two probabilities need more precision")
    return [(p, q) for p, q in rows if p is not q and p > q]


def _plain_rows(rows: list[Masses], theorem: str, symmetric: bool = True, only: arb | int = 0) -> Outcomes:
    return Outcomes(rows, arb(only), arb(only), arb(0), arb(0), theorem, symmetric)


def box_rows(step: dict[str, Any]) -> Outcomes:
    e, slack = arb(float(step["epsilon"])), arb(float(step.get("delta", 0.0)))
    need(slack < 1, "plan: delta = 1 promises nothing")
    up = (1 - slack) / (1 + (-e).exp())
    same = 1 - slack
    rows = [(up, up * (-e).exp()), (up * (-e).exp(), up)] if e > 0 else [(same, same)]
    return _plain_rows(rows, "(e, d)-DP is dominated by randomised response with d", only=slack)


def _response_rows(step: dict[str, Any]) -> Outcomes:
    answers = arb(int(step.get("answers", 2)))
    if "epsilon" in step:
        ratio = arb(float(step["epsilon"])).exp()
    else:
        p = arb(float(step["p"]))
        need(p > 0, "plan: an answer that is always true has no finite epsilon")
        ratio = 1 + (1 - p) * answers / p
    small = 1 / (ratio + answers - 1)
    private = float(step["epsilon"]) > 0 if "epsilon" in step else float(step["p"]) < 1
    same = (answers - 2 if private else answers) * small
    rows = [(ratio * small, small), (small, ratio * small)] if private else []
    if not private or answers > 2:
        rows.append((same, same))
    return _plain_rows(rows, "randomised response: two answers that differ")


def _unary_rows(step: dict[str, Any]) -> Outcomes:
    p, q = arb(float(step["p"])), arb(float(step["q"]))
    need(q > 0 and p < 1, "plan: unary encoding with q = 0 or p = 1")
    both, one = p * q + (1 - p) * (1 - q), arb(1)
    up, down = p * (1 - q), q * (1 - p)
    rows = [(up, down), (down, up), (both, both)] if p > q else [(one, one)]
    return _plain_rows(rows, "unary encoding: the two bits that differ")


def _custom_rows(step: dict[str, Any]) -> Outcomes:
    p, q = ([arb(float(x)) for x in step[name]] for name in ("p", "q"))
    sum_p, sum_q = sum(p, arb(0)), sum(q, arb(0))
    rows = [(x / sum_p, y / sum_q) for x, y in zip(p, q, strict=True) if x > 0 and y > 0]
    only_p = sum((x for x, y in zip(p, q, strict=True) if y == 0), arb(0)) / sum_p
    only_q = sum((y for x, y in zip(p, q, strict=True) if x == 0), arb(0)) / sum_q
    return Outcomes(rows, only_p, only_q, arb(0), arb(0), "the pair as given, made to sum to one", False)


def _discrete_laplace_rows(step: dict[str, Any]) -> Outcomes:
    need(float(step["scale"]) > 0, "plan: without noise no finite epsilon can be certified")
    a, s = 1 / arb(float(step["scale"])), int(step.get("sensitivity", 1))
    need(s <= 20_000, "plan: too many losses")
    end = 1 / (1 + (-a).exp())
    rows = [(end, end * (-a * s).exp()), (end * (-a * s).exp(), end)]
    step_mass = (1 - (-a).exp()) * end
    masses = [step_mass * (-a * x).exp() for x in range(s)]
    rows += [(masses[x], masses[s - x]) for x in range(1, s)]
    return _plain_rows(rows, "discrete Laplace pair, moved by the sensitivity")


def _discrete_gaussian_rows(step: dict[str, Any]) -> Outcomes:
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
    masses = {k: weights[abs(k)] / total for k in range(reach + s + 1)}
    rows = [(masses[abs(k)], masses[abs(k - s)]) for k in range(-reach, s + reach + 1)]
    near = arb(reach)
    left_out = 2 * (-(((near + 1) / sigma) ** 2) / 2).exp() / (1 - (-near / sigma**2).exp()) / total
    rows.reverse()
    text = "discrete Gaussian pair, moved by the sensitivity"
    return Outcomes(rows, arb(0), arb(0), left_out, left_out, text, True, (sigma, s))


def _bits() -> int:
    return int(ctx.prec)


def _trade_off_rows(step: dict[str, Any]) -> Outcomes:
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
    steep = all(p1 * q2 >= p2 * q1 for (p1, q1), (p2, q2) in itertools.pairwise(edges))
    need(steep, "plan: the trade-off curve is not exactly convex, so it is no mechanism's own and")
    rows = [(_ball(p), _ball(q)) for p, q in edges if p > 0]
    only_q = sum((q for p, q in edges if p == 0), Fraction(0))
    text = "f-DP is dominated by the pair whose trade-off curve is f"
    return Outcomes(rows, _ball(1 - points[0][1]), _ball(only_q), arb(0), arb(0), text, True)


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


def _profile_rows(step: dict[str, Any]) -> Outcomes:
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
        sure = all(c is nearest or bool(c[0] > nearest[0]) for c in crossings) if nearest is not None else True
        need(sure, "plan: the profile's lines need more precision")
        stop = nearest is None or not nearest[0] < meet
        width = (meet if nearest is None or stop else nearest[0]) - start
        if width > 0:
            same = 2 * width
            rows += [(eps.exp() * width, width), (width, eps.exp() * width)] if eps > 0 else [(same, same)]
        if nearest is None or stop:
            break
        start, eps, delta = start.max(nearest[0]), nearest[1], nearest[2]
    left = 1 - lost - sum((p for p, _ in rows), arb(0))  # a ball around 0: the rounding of the widths
    need(bool(abs(left) < arb(2) ** (-_bits() // 2)), "plan: the profile's lines cannot be told apart")
    text = "(e_i, d_i)-DP for all i is dominated by the pair of the largest of their curves"
    return Outcomes(rows, lost, lost, arb(0).union(abs(left).upper()), arb(0).union(abs(left).upper()), text, True)


TABLES: dict[str, Callable[[dict[str, Any]], Outcomes]] = {
    "pure-dp": box_rows,
    "approx-dp": box_rows,
    "randomized-response": _response_rows,
    "unary-encoding": _unary_rows,
    "custom": _custom_rows,
    "trade-off": _trade_off_rows,
    "privacy-profile": _profile_rows,
    "discrete-laplace": _discrete_laplace_rows,
    "discrete-gaussian": _discrete_gaussian_rows,
}
