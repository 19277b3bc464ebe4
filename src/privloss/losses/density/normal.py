"""Mixtures of normal distributions against one another, as rows: the pairs behind the samplers other than Poisson.

With unit noise, P = sum a_k N(s_k) and Q = sum b_k N(-r_k) (what is left of the weights at 0; all s_k, r_k >= 0) have
densities phi A and phi B, A = 1 + sum a_k (e^(s_k y - s_k^2/2) - 1) and B likewise; the loss log A - log B rises with
y.

*Folded.* Sampling without replacement is bounded by a profile that is H(P, Q) above alpha = 1 and its mirror image
below: the pair with the losses > 0 of (P, Q), their mirror images, and the rest of the mass at loss 0 (`fold`).

*Mixed.* Public randomness (how many others were sampled, how often a record was drawn) may be revealed: by joint
convexity that only helps the adversary, and the pair becomes a weighted list of pairs.

The integrals for M(z) are read at Gauss-Legendre nodes. On an ellipse of height h around a panel |A(x+ih)| lies between
cos(hS) A(x) and A(x), and its argument is at most p tan(hS), p the share of the hits in A and S the largest slope:
num/den of the tangent are at most p sin(hS) and at least cos(hS). Tails: e^(sy - s^2/2) rises with s for s < y, so that
beyond R >= S the integral of phi A^(1+c) is at most e^(c(c+1)S^2/2) times the normal tail from R - (1+c) S on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from privloss.errors import Unsupported
from privloss.losses.density.legendre import NODES, log_ends, panels
from privloss.losses.symmetric.pair import Split, SymmetricPair
from privloss.losses.table.hits import Hits
from privloss.losses.table.table import Density, Error, Profile, Table
from privloss.numerics.floats import UNIT, Real, lowered, padded_up, raised
from privloss.numerics.stable import exp_or_inf

_ROOT = math.log(math.sqrt(2 * math.pi))
_REACH, _TILTS, _FURTHEST = 13.0, 20.0, 60.0  # Phi(-13) is below 1e-38
_HEIGHTS = np.array([1.0, 0.6, 0.3, 0.12, 0.05, 0.02, 0.006, 0.002])
FURTHEST = 12.0  # the largest distance, in units of the noise
_GRID = 12_000
_A_ROOT = 2e5  # evaluations that the search for one threshold takes the time of (1.1 ms, measured)


@dataclass(frozen=True)
class NormalPair:
    """P with `hits` to the right against Q with `other` hits to the left, each with what is left at 0; `folded` for the
    symmetric pair made of its losses above 0 (then there are no other hits, and one distance). P is e^lift times what
    the hits say, where the pair stands for one of several outcomes of another release."""

    hits: Hits
    other: Hits = ()
    folded: bool = False
    missed: float | None = None  # what is left of P at 0, where 1 minus the weights would lose its digits
    lift: float = 0.0

    @cached_property
    def steepest(self) -> float:
        return max(s for _, s in self.hits + self.other)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Where the nodes begin and end."""
        if self.steepest > FURTHEST:
            raise Unsupported(f"sensitivity / noise = {self.steepest:g}: this sampler is supported up to {FURTHEST:g}.")

        def reach(hits: Hits) -> float:
            top = max((s for _, s in hits), default=0.0)
            return _REACH + top + (min(_TILTS * max(top, 1.0), _FURTHEST) if hits else 0.0)

        return 0.5 * self.hits[0][1] if self.folded else -reach(self.other), reach(self.hits)

    @cached_property
    def rule(self) -> tuple[Real, Real, float]:
        return panels(*self.ends, 0.5 / max(self.steepest, 1.0))

    def logs(self, y: Real) -> tuple[Real, Real]:
        """log A and log B."""
        return _log_sum(self.hits, y, self.missed) + self.lift, _log_sum(self.other, -y)

    def loss(self, y: Real) -> Real:
        a, b = self.logs(y)
        return a - b

    def masses(self) -> tuple[Real, Real]:
        """Under P and under Q, at the nodes."""
        y, weights, _ = self.rule
        a, b = self.logs(y)
        density = np.log(weights) - 0.5 * y * y - _ROOT
        return np.exp(density + a), np.exp(density + b)

    def at_zero(self) -> float:
        """The mass that folding leaves at loss 0: 1 - P[Z > 0] - Q[Z > 0] = (1-a)(1 - 2 Phi(-s/2))."""
        weight, slope = self.hits[0]
        return (1 - weight) * math.erf(0.5 * slope / math.sqrt(2)) if self.folded else 0.0

    # -- what the quadrature misses ------------------------------------------------------------------------------------

    def panel_bounds(self, c: float, back: bool) -> tuple[Real, Real]:
        """For each panel and height: the log of the error at t = 0, and by how much it grows per unit of t."""
        y, _, half = self.rule
        centre = y.reshape(-1, NODES).mean(axis=1)[:, None]
        height = _HEIGHTS / max(self.steepest, 1.0)
        ratio = height / half
        rho = ratio + np.sqrt(ratio * ratio + 1)
        wide = 0.5 * half * (rho + 1 / rho)
        power_a, power_b = (-c, 1 + c) if back else (1 + c, -c)
        best = np.full((len(centre), len(height)), -np.inf)
        for x in (centre - wide, centre, centre + wide):
            a, b = self.logs(x)
            best = np.maximum(best, -0.5 * x * x + power_a * a + power_b * b)
        steep = self.steepest
        bend = 1 + (abs(power_a) + abs(power_b)) * steep**2 / 4  # (log A)'' is a variance of slopes
        angle = height * steep
        inward = max(-power_a, -power_b, 0.0) * -np.log(np.cos(np.minimum(angle, 1.5)))
        logs = best + wide**2 / 8 * bend + 0.5 * height**2 + inward - _ROOT
        logs = logs + math.log(64 / 15 * half) - (2 * NODES - 2) * np.log(rho) - np.log(rho * rho - 1)
        share = self._share(self.hits, centre + wide) + self._share(self.other, wide - centre)
        # or the panel's whole mass, twice: what is there, and what was found
        a, b = self.logs(y)
        under = np.log(self.rule[1]) - 0.5 * y * y - _ROOT + power_a * a + power_b * b
        mass = math.log(2.2) + np.logaddexp.reduce(under.reshape(-1, NODES), axis=1)[:, None]
        logs = np.concatenate([np.where(angle < 1.5, logs, np.inf), mass], axis=1)
        growth = share * np.tan(np.minimum(angle, 1.5))
        return logs, np.concatenate([growth, np.zeros_like(mass)], axis=1)

    @staticmethod
    def _share(hits: Hits, y: Real) -> Real:
        """The part of A that is due to hits."""
        if not hits:
            return np.zeros_like(y)
        missed = 1 - math.fsum(w for w, _ in hits)
        return np.asarray(-np.expm1(math.log(max(missed, 1e-300)) - _log_sum(hits, y)))

    def beyond(self, c: float, back: bool) -> float:
        """What the ends of the nodes leave out of M(c), rounded up."""
        low, high = self.ends
        grown, still = (self.other, self.hits) if back else (self.hits, self.other)
        start = -low if back and not self.folded else high
        top = max((s for _, s in grown), default=0.0)
        missed = max(1 - math.fsum(w for w, _ in still), 1e-300)
        # beyond `start` A <= e^(Sy - S^2/2) (sum a_k + e^-(S start - S^2/2))
        weight = math.fsum(w for w, _ in grown) + math.exp(min(0.5 * top * top - top * start, 0.0))
        log_weight = (1 + c) * min(math.log(weight), 0.0)
        far = 0.5 * c * (c + 1) * top * top - c * math.log(missed) + float(log_ndtr((1 + c) * top - start)) + log_weight
        near = float(log_ndtr(-(high if back else -low))) if not self.folded else -math.inf
        if self.folded:  # the mirror image: Q[Z > 0, y > high], where e^(cZ) < 1
            near = float(log_ndtr(-high))
        # at either end A is at most (where its power is -c: at least) e^lift times what was bounded
        lifted = self.lift * (-c if back else 1 + c)
        return exp_or_inf(far + lifted) + exp_or_inf(near + lifted)

    def variation(self, c: float, back: bool) -> float:
        """V with |M(c+it)| <= V/t, without what lies at loss 0.

        By parts in v = log A - log B: F = phi A^(1+c) B^-c / v'. On a cell of a grid F either is monotone, or F' has a
        zero, and then its variation is at most (width)^2 max |F''|; |F''| <= F (L^2 + L'), where L = |y| + (2 + 2c) S
        and L' = 1 + (2 + 2c) S^2 bound the first two derivatives of log F (|v''| <= S v'). At both ends F may jump.
        """
        low, high = self.ends
        steep = self.steepest
        y = np.linspace(low, high, _GRID)
        gap = float(y[1] - y[0])
        a, b = self.logs(y)
        power_a, power_b = (-c, 1 + c) if back else (1 + c, -c)
        rise = self._rise(y) + self._rise(-y, mirrored=True)
        logs = -0.5 * y * y - _ROOT + power_a * a + power_b * b - np.log(np.maximum(rise, 1e-300))
        slope = np.abs(y) + gap + (2 + 2 * c) * steep
        with np.errstate(over="ignore", invalid="ignore"):
            f = np.exp(logs)
            bent = gap * gap * f * np.exp(slope * gap) * (slope**2 + 1 + (2 + 2 * c) * steep**2)
            total = float(np.abs(np.diff(f)).sum() + bent.sum() + f[0] + f[-1])
        return padded_up(total, 1e-9) if math.isfinite(total) else math.inf

    def _rise(self, y: Real, mirrored: bool = False) -> Real:
        """The slope of log A (or, mirrored, of -log B): a mean of distances."""
        hits = self.other if mirrored else self.hits
        total = _log_sum(hits, y)
        found = np.zeros_like(y)
        for w, s in hits:
            found = found + s * np.exp(math.log(w) + s * y - 0.5 * s * s - total)
        return np.asarray(found)

    # -- one use ---------------------------------------------------------------------------------------------------

    def profile(self, eps: float, back: bool) -> tuple[float, float]:
        """log of bounds on delta(eps): a test on y > s (or y < s) and its rounding."""
        if self.folded and eps < 0:  # h(alpha) = alpha h(1/alpha) + 1 - alpha
            rest = -math.expm1(eps)
            low, high = (rest + exp_or_inf(eps + end) for end in self.profile(-eps, False))
            return log_ends(low, 16 * UNIT)[0], log_ends(high, 16 * UNIT)[1]
        p, q, sign = (self.other, self.hits, -1.0) if back and not self.folded else (self.hits, self.other, 1.0)
        start = self._threshold(-eps if sign < 0 else eps) * sign
        weight = math.exp(min(eps, 700.0))
        under_p, under_q = _tail(p, start), _tail(q, start, negative=True)
        if self.lift != 0:
            under_p, under_q = (
                (under_p, math.exp(self.lift) * under_q) if back else (math.exp(self.lift) * under_p, under_q)
            )
        size = (under_p + weight * under_q) * (1 + (abs(start) + self.steepest) ** 2)
        return log_ends(under_p - weight * under_q, 64 * UNIT * size)

    def _threshold(self, eps: float) -> float:
        """Where the loss passes eps (far out if it never does: then every test is as good as none)."""
        low, high = -60.0 - 2 * self.steepest, 60.0 + 2 * self.steepest

        def excess(y: float) -> float:
            return float(self.loss(np.array([y]))[0]) - eps

        if excess(high) <= 0:
            return high
        if excess(low) >= 0:
            return low
        return float(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))


def _log_sum(hits: Hits, y: Real, missed: float | None = None) -> Real:
    """log A at y, with its digits where A is near 1."""
    if not hits:
        return np.zeros_like(y)
    rest = 1 - math.fsum(w for w, _ in hits) if missed is None else missed
    exponents = [s * y - 0.5 * s * s for _, s in hits]
    near = np.zeros_like(y)
    for (w, _), e in zip(hits, exponents, strict=True):
        near = near + w * np.expm1(np.minimum(e, 300.0))
    low = np.log(
        max(rest, 1e-300) + sum(w * np.exp(np.minimum(e, 300.0)) for (w, _), e in zip(hits, exponents, strict=True))
    )
    near = np.where(near < -0.4, low, np.log1p(np.maximum(near, -0.5)))  # near 1, and near what is left at 0
    far = np.logaddexp.reduce(
        [
            np.full_like(y, math.log(max(rest, 1e-300))),
            *(math.log(w) + e for (w, _), e in zip(hits, exponents, strict=True)),
        ]
    )
    return np.asarray(np.where(np.max(exponents, axis=0) < 300.0, near, far))


def _tail(hits: Hits, start: float, negative: bool = False) -> float:
    """Mass beyond `start` of a mixture with hits to the right (to the left if negative)."""
    rest = 1 - math.fsum(w for w, _ in hits)
    return rest * float(ndtr(-start)) + math.fsum(w * float(ndtr((-s if negative else s) - start)) for w, s in hits)


def normal_table(
    parts: Sequence[tuple[float, NormalPair]],
    rare: Sequence[tuple[float, Table]] = (),
    delta: float = 0.0,
    slack: float = 0.0,
) -> Table:
    """Weighted pairs, which of them it is being public: smooth ones, tables for what is rare, and `delta` of certain
    disclosure (in both directions). All weights and delta add up to 1; `slack` counts roundings of the weights."""
    mixed = _Mixed(tuple(parts), tuple(rare))
    entries = [*mixed.nodes(slack), *mixed.zero(slack), *mixed.rare_atoms()]
    values, masses, rounded, wobble = (np.concatenate(column) for column in zip(*entries, strict=True))
    return Table(
        values,
        masses,
        math.fsum([delta, *(w * table.delta for w, table in rare)]),
        math.fsum([delta, *(w * table.back for w, table in rare)]),
        slack=rounded,
        wobble=wobble,
        missing=(mixed.tails(False), mixed.tails(True)),
        density=mixed.density(),
        absolute=mixed.absolute(),
        symmetric=mixed.symmetric(),
        rho=mixed.rho() if delta == 0 and not rare else math.inf,
        split=mixed.split() if delta == 0 else None,
    )


class _Entries(NamedTuple):
    """Some entries of a row."""

    values: Real
    masses: Real
    slack: Real
    wobble: Real


@dataclass(frozen=True)
class _Mixed:
    """Weighted smooth pairs, and weighted tables of what is rare."""

    parts: tuple[tuple[float, NormalPair], ...]
    rare: tuple[tuple[float, Table], ...]

    def nodes(self, slack: float) -> Iterator[_Entries]:
        """Of every pair and, where it is folded, of its mirror image."""
        for weight, pair in self.parts:
            y = pair.rule[0]
            loss = pair.loss(y)
            under_p, under_q = pair.masses()
            rounded = 64 + slack + 4 * y * y + 4 * np.abs(loss)  # e^x is as wrong as x is large
            wobble = 16 + slack + 8 * pair.steepest * (np.abs(y) + pair.steepest)
            yield _Entries(loss, weight * under_p, rounded, wobble)
            if pair.folded:
                yield _Entries(-loss, weight * under_q, rounded, wobble)

    def zero(self, slack: float) -> Iterator[_Entries]:
        """What folding leaves at loss 0."""
        mass = sum(weight * pair.at_zero() for weight, pair in self.parts if pair.folded)
        if mass > 0:
            yield _Entries(np.zeros(1), np.array([mass]), np.array([64.0 + slack]), np.zeros(1))

    def rare_atoms(self) -> Iterator[_Entries]:
        for w, table in self.rare:
            slack, wobble = (np.full(len(table.values), float(np.max(x))) for x in (table.slack, table.wobble))
            yield _Entries(table.values, w * table.masses, slack, wobble)

    def density(self) -> Density:
        nodes = sum(len(pair.rule[0]) * (2 if pair.folded else 1) for _, pair in self.parts)
        return Density(
            nodes,
            (self._quadrature(False), self._quadrature(True)),
            (self._fade(False), self._fade(True)),
            (self._profile(False), self._profile(True)),
            (math.inf, math.inf),
            price=_A_ROOT * len(self.parts),
        )

    def absolute(self) -> float:
        """A loss near 0 is a difference of two numbers near s^2/2."""
        steep = max(pair.steepest for _, pair in self.parts)
        hit = max(w for _, pair in self.parts for w, _ in pair.hits + pair.other)
        lift = 8 * max(abs(pair.lift) for _, pair in self.parts)
        return max([8 * hit * steep * (1 + steep), *(table.absolute for _, table in self.rare)]) + lift

    def symmetric(self) -> bool:
        """Whether both directions have the same law."""
        smooth = all(pair.folded or pair.hits == pair.other for _, pair in self.parts)
        return smooth and all(table.symmetric for _, table in self.rare)

    def split(self) -> Split | None:
        """One symmetric pair with hits at one distance."""
        (weight, pair), *others = self.parts
        plain = not (others or self.rare) and weight == 1 and pair.lift == 0
        if not plain or len(pair.hits) != 1 or not (pair.folded or pair.hits == pair.other):
            return None
        ((rate, slope),) = pair.hits
        return Split(((1.0, SymmetricPair(rate, 1 / slope, not pair.folded)),)) if 0 < rate < 1 else None

    def rho(self) -> float:
        """zCDP of the two components farthest apart."""
        apart = max(max(s for _, s in p.hits) + max((s for _, s in p.other), default=0.0) for _, p in self.parts)
        return raised(0.5 * apart**2, 8)

    def _directions(self, back: bool) -> list[tuple[float, NormalPair, bool]]:
        """Weight, pair and direction of everything smooth that is read; folded pairs are read both ways."""
        return [(w, pair, b) for w, pair in self.parts for b in ((False, True) if pair.folded else (back,))]

    def _quadrature(self, back: bool) -> Error:
        @lru_cache(maxsize=8)
        def tables(c: float) -> tuple[Real, Real]:
            found = [(w, pair.panel_bounds(c, b)) for w, pair, b in self._directions(back)]
            logs = np.concatenate([math.log(w) + table[0] for w, table in found])
            return logs, np.concatenate([table[1] for _, table in found])

        def error(c: float, t: Real) -> Real:
            logs, growth = tables(c)
            total = np.zeros(len(t))
            for start in range(0, len(t), 512):
                at = t[start : start + 512, None, None]
                best = (logs + at * growth).min(axis=2)
                with np.errstate(over="ignore"):  # beyond the range of doubles: no bound
                    total[start : start + 512] = np.exp(best).sum(axis=1)
            return total

        return error

    def tails(self, back: bool) -> Error:
        """What the ends of the nodes leave out."""

        def bound(c: float, t: Real) -> Real:
            return np.full(len(t), math.fsum(w * pair.beyond(c, back) for w, pair in self.parts))

        return bound

    def _fade(self, back: bool) -> Callable[[float], float]:
        @lru_cache(maxsize=64)
        def bound(c: float) -> float:
            return math.fsum(w * pair.variation(c, b) for w, pair, b in self._directions(back))

        return bound

    def _profile(self, back: bool) -> Profile:
        def bounds(eps: float) -> tuple[float, float]:
            each = [(w, pair.profile(eps, back)) for w, pair in self.parts]
            for w, table in self.rare:
                each.append((w, (table.reversed() if back else table).hockey_stick(eps)))
            low = lowered(math.fsum(w * math.exp(b[0]) for w, b in each), 16)
            high = raised(math.fsum(w * math.exp(b[1]) for w, b in each), 16)
            return (math.log(low) if low > 0 else -math.inf), (math.log(high) if high > 0 else -math.inf)

        return bounds
