"""The checker: reads a certificate, recomputes its bounds in ball arithmetic, says yes or no.

It shares nothing with the engine that found the certificate; from the package it imports the plan parser and the
plan's pairs (`pairs.py`, written in the classes below). Every number is a ball of python-flint, which contains
the exact value; `<` between balls is true only if it holds for all their members. docs/certificates.md derives every
inequality. Notation: a *pair* (P, Q) of output distributions, its loss Z = log P/Q under P, M(z) = E[e^(zZ); Z finite],
a plan's M the product of its steps', and f(x) = E[(1 - e^(x-Z))+; Z finite], so that delta(x) = P[Z = inf] + f(x).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from flint import acb, arb, ctx

from privloss.certificates.balls import (
    Rejected,
    Use,
    around,
    exact,
    given,
    most,
    need,
    tail,
    turning_sums,
    whole,
)

FORMAT = "privloss certificate 1"
LEAST_BITS, MOST_BITS, MOST_NODES, MOST_PRODUCTS = 53, 8192, 200_000, 200_000_000
Enclosure = tuple[arb, arb]  # a ball whose members are <= f, and one whose members are >= f


# -- pairs -------------------------------------------------------------------------------------------------------------


class Pair:
    """One step's loss in one direction. `infinite` is P[Z = inf]; outcomes of probability at most `dropped` are left
    out of M, which a lower end may ignore and an upper end must add."""

    infinite, dropped = arb(0), arb(0)

    def thinned(self, use: Use) -> arb:
        """What the parameters leave out besides."""
        return arb(0)

    def largest(self) -> arb | None:
        """At least the largest finite loss, if there is one."""
        return None

    def mgf(self, z: acb) -> acb:
        raise NotImplementedError

    def line(self, c: arb, step: arb, count: int, use: Use) -> list[acb]:
        """M(c + i n step), n = 0..count."""
        return [self.mgf(acb(c, n * step)) for n in range(count + 1)]

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        """At least |M(c + iu)| for every u >= t: always true of M(c)."""
        return self.line(c, arb(0), 0, use)[0].real


class Normal(Pair):
    """N(mu, 1) against N(0, 1), mu^2 given: Z is N(mu^2/2, mu^2)."""

    def __init__(self, mu_squared: arb) -> None:
        self.mu_squared = mu_squared

    def mgf(self, z: acb) -> acb:
        return (self.mu_squared / 2 * z * (z + 1)).exp()

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        return (self.mu_squared / 2 * (c * (c + 1) - t * t)).exp()


class Mixture(Pair):
    """P = sum w N(a, 1) against Q = sum w N(b, 1) over triples (w, a, b), every a >= every b (or all mirrored)."""

    def __init__(self, triples: Sequence[tuple[arb, arb, arb]]) -> None:
        self.triples = list(triples)
        if not all(a >= b for _, a, _ in triples for _, _, b in triples):
            self.triples = [(w, -a, -b) for w, a, b in triples]
        need(all(a >= b for _, a, _ in self.triples for _, _, b in self.triples), "the mixture is not ordered")
        # so that |Q(y + iv)| >= cos(reach v / 2) Q(y), and the same for P: neither has zeros in the strip
        for side in ([a for _, a, _ in self.triples], [b for *_, b in self.triples]):
            need(all(x >= 0 for x in side) or all(x <= 0 for x in side), "components lie on both sides of 0")
        self.reach = most(abs(x) for _, a, b in self.triples for x in (a, b))
        # arg P - arg Q is between 0 and v * span on Im y = v
        self.span = most(a for _, a, _ in self.triples) + most(-b for *_, b in self.triples)

    def thinned(self, use: Use) -> arb:
        """An outcome y is kept with probability Phi(thin - y), so that rare large losses do not rule M."""
        if "thin" not in use:
            return arb(0)
        thin = given(use, "thin", -1e9, 1e9)
        return sum((w * tail((thin - a) / arb(2).sqrt()) for w, a, _ in self.triples), arb(0))

    def largest(self) -> arb | None:
        """If P is one normal and Q has it as a component of weight w: log P/Q <= -log w."""
        place = self.triples[0][1]
        shared = sum((w for w, _, b in self.triples if b == place), arb(0))
        return -shared.log() if shared > 0 and all(a == place for _, a, _ in self.triples) else None

    def _logs(self, at: acb, analytic: bool = False) -> tuple[acb, acb]:
        """log of P and Q over the standard normal density; on the principal branch while reach * |Im| < pi."""
        p = sum((w * (a * at - a * a / 2).exp() for w, a, _ in self.triples), acb(0))
        q = sum((w * (b * at - b * b / 2).exp() for w, _, b in self.triples), acb(0))
        return p.log(analytic), q.log(analytic)

    def _nodes(self, c: arb, use: Use) -> tuple[arb, list[arb], arb]:
        """Step h, nodes y, and what the sum over them misses: p^(c+1) q^-c is at most sum w a^(c+1) b^-c
        (joint convexity), and at most p e^(c largest)."""
        h, count = given(use, "h"), whole(use, "nodes", MOST_NODES)
        low = use.get("from")
        need(isinstance(low, float) and abs(low) < 1e9, f"parameter from = {low!r} must be a number")
        y = [arb(low) + j * h for j in range(count)]
        missed, most = arb(0), self.largest()
        for w, a, b in self.triples:
            mean = (c + 1) * a - c * b if most is None else a
            size = c * (c + 1) * (a - b) ** 2 / 2 if most is None else c * most
            last, beyond = mean, tail(y[-1] - mean)
            if "thin" in use:  # Phi(thin - y) <= e^(-(y - thin)^2/2)/2 beyond thin: a product of two normal densities
                thin, root = given(use, "thin", -1e9, 1e9), arb(2).sqrt()
                last = ((mean + thin) / 2).max(thin)
                beyond = (-((mean - thin) ** 2) / 4).exp() / (2 * root) * tail(root * (y[-1] - (mean + thin) / 2))
            need(bool(y[0] <= mean) and bool(last <= y[-1]), "quadrature: the nodes miss the mean of a component")
            missed += w * size.exp() * (beyond + tail(mean - y[0]))
        return h, y, missed

    def line(self, c: arb, step: arb, count: int, use: Use) -> list[acb]:
        h, y, missed = self._nodes(c, use)
        need(len(y) * (count + 1) <= MOST_PRODUCTS, "the certificate asks for too much work")
        v, logs = given(use, "v"), [tuple(x.real for x in self._logs(acb(at))) for at in y]
        root = h / (2 * arb.pi()).sqrt()
        weights = [root * (-at * at / 2 + (c + 1) * p - c * q).exp() for at, (p, q) in zip(y, logs, strict=True)]
        if "thin" in use:
            weights = [w * tail(at - given(use, "thin", -1e9, 1e9)) for w, at in zip(weights, y, strict=True)]
        values = turning_sums(weights, [step * (p - q) for p, q in logs], count)
        angle = self.reach * v
        need(bool(angle < arb.pi()), "quadrature: v is too large for the zeros of the density")
        rise = v * v / 2 if "thin" not in use else v * v  # of |phi|, and as much of |Phi(thin - y)|
        error = 2 * rise.exp() * (angle / 2).cos() ** (-c) / ((2 * arb.pi() * v / h).exp() - 1)
        need(error < 0.5, "quadrature: the strip v does not beat the step h")
        total = (values[0].real + missed) / (1 - error)  # >= M(c)
        growth = (step * v * self.span).exp()
        found = []
        for value in values:
            found.append(around(value, error * total + missed))
            error *= growth
        return found

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        """Moves the path of integration to x + iv(x), v(x) = bend / (1 + e^(reach (onset - x))), where the factor
        e^(-u arg) falls in u. |integrand| is written with conjugates, so that it is holomorphic in x, and |dy| is at
        most 1 + v'^2/2; `acb.integral` is rigorous."""
        if "bend" not in use:
            return super().beyond(c, t, use)
        _, y, missed = self._nodes(c, use)
        bend, onset = given(use, "bend"), given(use, "onset", -1e9, 1e9)
        angle = self.reach * bend
        need(bool(angle < arb.pi()), "cut: the bend is too large for the zeros of the density")

        def log(at: acb, z: acb, analytic: bool) -> acb:
            p, q = self._logs(at, analytic)
            return (z + 1) * p - z * q - at * at / 2

        def size(x: acb, analytic: bool) -> acb:
            share = 1 / (1 + (self.reach * (onset - x)).exp())
            v, slope = acb(0, bend) * share, bend * self.reach * share * (1 - share)
            above, below = log(x + v, acb(c, t), analytic), log(x - v, acb(c, -t), analytic)
            found = ((above + below) / 2).exp() * (1 + slope * slope / 2)
            if "thin" in use:
                found *= (-v * v / 2).exp() * ((x - given(use, "thin", -1e9, 1e9)) / arb(2).sqrt()).erfc() / 2
            return found

        total = acb.integral(size, y[0], y[-1]).real / (2 * arb.pi()).sqrt()
        steep = (
            (bend * bend * (1 if "thin" in use else 0.5)).exp() * (angle / 2).cos() ** (-c) * (1 + angle * angle / 32)
        )
        return total + steep * missed


class Table(Pair):
    """Finitely many outcomes with probabilities (p, q) > 0."""

    atoms_only = True

    def __init__(self, rows: Sequence[tuple[arb, arb]], infinite: arb | int = 0, dropped: arb | int = 0) -> None:
        self.atoms = [(p, (p / q).log()) if p is not q else (p, arb(0)) for p, q in rows]
        need(all(p > 0 and x.is_finite() for p, x in self.atoms), "plan: a loss needs more precision")
        self.infinite, self.dropped = arb(infinite), arb(dropped)

    def largest(self) -> arb | None:
        return most(loss for _, loss in self.atoms)

    def mgf(self, z: acb) -> acb:
        return sum((p * (z * loss).exp() for p, loss in self.atoms), acb(0))

    def beyond_lattice(self, c: arb, t: arb, h: arb) -> arb:
        """At least |M(c + iu)| for t <= u <= pi/h."""
        return self.mgf(acb(c)).real


# -- bounds on f -------------------------------------------------------------------------------------------------------

Steps = Sequence[tuple[Pair, int]]
DeltaBounds = Callable[[arb], Enclosure]


def product(steps: Steps, use: Use, c: arb, step: arb, count: int) -> list[acb]:
    """The plan's M at c + i n step."""
    totals = [acb(1)] * (count + 1)
    for index, (pair, times) in enumerate(steps):
        values = pair.line(c, step, count, part(use, index))
        totals = [x * value**times for x, value in zip(totals, values, strict=True)]
    return totals


def part(use: Use, index: int) -> Use:
    parts = use.get("steps", {})
    found = parts.get(str(index), {}) if isinstance(parts, dict) else None
    need(isinstance(found, dict), "parameters of a step must be an object")
    return found  # type: ignore[return-value]


def chernoff(c: arb, mgf: arb, x: arb) -> arb:
    """f(x) <= c^c/(c+1)^(c+1) M(c) e^(-cx): the largest (1 - e^-y) e^(-cy) (Markov's inequality)."""
    return (c * (c / (c + 1)).log() - c * x).exp() / (c + 1) * mgf


def by_chernoff(steps: Steps, use: Use) -> DeltaBounds:
    c = given(use, "c")
    mgf = product(steps, use, c, arb(0), 0)[0].real
    return lambda x: (arb(0), chernoff(c, mgf, x))


def images(steps: Steps, use: Use, c: arb, length: arb) -> Callable[[arb], arb]:
    """What the images f(x + kL) e^(ckL), k != 0, add to f(x) at most."""
    right = given(use, "c'")
    need(right > c, "aliasing: c' must exceed c")
    mgf = product(steps, use, right, arb(0), 0)[0].real
    left = 1 / ((c * length).exp() - 1)
    share = ((right - c) * length).exp() - 1
    return lambda x: left + chernoff(right, mgf, x) / share


def by_line(steps: Steps, use: Use) -> DeltaBounds:
    """The trapezoid rule on Re z = c, period L, nodes -N..N, and the cut beyond them.

    With a blur, Z + W is read instead, W ~ N(mu^2/2, mu^2) independent: f only grows (Jensen, E e^-W = 1), and
    f(x) >= f_(Z+W)(x + w) - P[W > w].
    """
    c, length, count = given(use, "c"), given(use, "L"), whole(use, "N", MOST_NODES)
    blur = given(use, "blur") if "blur" in use else arb(0)
    moved = given(use, "w") if "blur" in use else arb(0)
    steps = [*steps, (Normal(blur * blur), 1)] if "blur" in use else steps
    step = 2 * arb.pi() / length
    values = product(steps, use, c, step, count)
    beyond = arb(1)
    for index, (pair, times) in enumerate(steps):
        beyond *= pair.beyond(c, step * count, part(use, index)) ** times
    shifts = [acb(c, n * step) for n in range(count + 1)]
    weighted = [value / (z * (z + 1)) for value, z in zip(values, shifts, strict=True)]
    weighted[0] /= 2
    alias = images(steps, use, c, length)
    lost = tail((moved - blur * blur / 2) / blur) if "blur" in use else arb(0)

    def read(x: arb) -> Enclosure:
        turn = -x * step
        total = sum(((w * acb(0, turn * n).exp()).real for n, w in enumerate(weighted)), arb(0))
        scale = (-c * x).exp()
        return total * step / arb.pi() * scale, beyond * scale / (arb.pi() * step * count)

    def bounds(x: arb) -> Enclosure:
        at, cut = read(x)
        down, cut_down = read(x + moved) if "blur" in use else (at, cut)
        return down - cut_down - alias(x + moved) - lost, at + cut

    return bounds


def methods() -> dict[str, Callable[[Steps, Use], DeltaBounds]]:
    """The bounds a certificate may name; lattices and closed forms are in files of their own."""
    from privloss.certificates.methods.lattice import by_largest, by_lattice, by_sum
    from privloss.certificates.methods.residues import by_residues, by_threshold

    return {
        "line": by_line,
        "lattice": by_lattice,
        "chernoff": by_chernoff,
        "largest": by_largest,
        "sum": by_sum,
        "threshold": by_threshold,
        "residues": by_residues,
    }


def delta_bounds(steps: Steps, use: Use) -> DeltaBounds:
    """Balls around lower and upper bounds on delta(x) in one direction."""
    method = methods().get(str(use.get("method")))
    need(method is not None, f"method = {use.get('method')!r} must be one of {', '.join(methods())}")
    inside = method(steps, use)  # type: ignore[misc]
    finite, kept = arb(1), arb(1)
    for index, (pair, times) in enumerate(steps):
        finite *= (1 - pair.infinite) ** times
        kept *= (1 - pair.infinite - pair.dropped - pair.thinned(part(use, index))).max(arb(0)) ** times

    def bounds(x: arb) -> Enclosure:
        low, high = inside(x)
        return (low.max(arb(0)) + (1 - finite)).min(arb(1)), (high + (1 - kept)).min(arb(1))

    return bounds


# -- certificates ------------------------------------------------------------------------------------------------------


def digest(data: dict[str, Any]) -> str:
    """SHA-256 over every field but the hash itself."""
    rest = {key: value for key, value in data.items() if key != "hash"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def check(data: Any) -> None:
    """Return if the certificate's claim is proven by its parameters; raise `Rejected` otherwise."""
    try:
        _check(data)
    except Rejected:
        raise
    except Exception as problem:  # whatever stops the proof leaves nothing proven
        raise Rejected(f"malformed: {type(problem).__name__}: {problem}") from None


def _check(data: Any) -> None:
    from privloss.certificates.pairs.samplers import plan_pairs

    keys = {"format", "library", "plan", "adjacency", "claim", "parameters", "theorems", "hash"}
    need(
        isinstance(data, dict) and set(data) == keys, f"a certificate has exactly the fields {', '.join(sorted(keys))}"
    )
    need(data["format"] == FORMAT, f"format = {data['format']!r} must be {FORMAT!r}")
    need(data["hash"] == digest(data), "the hash does not belong to the other fields")
    parameters = data["parameters"]
    need(isinstance(parameters, dict), "parameters must be an object")
    bits = whole(parameters, "precision", MOST_BITS)
    need(bits >= LEAST_BITS, f"parameter precision = {bits} must be at least {LEAST_BITS}")
    with ctx.workprec(bits):
        claim = data["claim"]
        need(isinstance(claim, dict) and set(claim) == {"delta", "epsilon"}, "claim must have delta and epsilon")
        of_epsilon = isinstance(claim["epsilon"], dict)
        interval, point = (claim["epsilon"], claim["delta"]) if of_epsilon else (claim["delta"], claim["epsilon"])
        need(isinstance(interval, dict) and set(interval) == {"lower", "upper"}, "claim must have lower and upper")
        low, high, at = exact(interval["lower"]), exact(interval["upper"]), exact(point)
        need(not low > high, "claim: lower exceeds upper")
        sides = plan_pairs(data["plan"], data["adjacency"])
        need(list(sides.theorems) == data["theorems"], "theorems: not those of this plan")
        known: dict[str, DeltaBounds] = {}

        def bounds(side: str, name: str, direction: str) -> DeltaBounds:
            use = parameters.get(name)
            need(isinstance(use, dict), f"parameters.{name} is missing")
            steps = getattr(sides, side)[direction]
            key = json.dumps([[id(pair), n] for pair, n in steps]) + json.dumps(use, sort_keys=True)
            if key not in known:
                known[key] = delta_bounds(steps, use)
            return known[key]

        for direction in sides.upper:
            found = bounds("upper", direction, direction)(high if of_epsilon else at)[1]
            wanted = at if of_epsilon else high
            need(
                bool(found <= wanted),
                f"upper end, {direction}: delta({(high if of_epsilon else at).str(20)}) is enclosed by "
                f"{found.str(15)}, which is not surely <= {wanted.str(15)}",
            )
        if low == 0:
            return
        direction = parameters.get("attained")
        need(
            isinstance(direction, str) and direction in sides.lower,
            f"parameters.attained = {direction!r} must be one of {', '.join(sides.lower)}",
        )
        found = bounds("lower", "lower" if "lower" in parameters else direction, direction)(low if of_epsilon else at)[
            0
        ]
        wanted = at if of_epsilon else low
        # for an epsilon the inequality is strict: where delta is constant, equality would prove nothing
        need(
            bool(found > wanted) if of_epsilon else bool(found >= wanted),
            f"lower end, {direction}: delta({(low if of_epsilon else at).str(20)}) is enclosed by {found.str(15)}, "
            f"which is not surely {'>' if of_epsilon else '>='} {wanted.str(15)}",
        )
