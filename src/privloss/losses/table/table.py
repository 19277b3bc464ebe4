"""One loss with finitely many values: discrete noise, tables, sampled responses, densities read at quadrature nodes.

A row has values v_i with masses m_i under P, delta = P[Z = inf] and `back` = Q[P = 0], so that sum m_i = 1 - delta and
sum m_i e^-v_i = 1 - back. Two facts keep digits where losses are small:

    E[Z] = sum m_i (e^-v_i - 1 + v_i) + back - delta,
    M(z) - (1 - delta) = sum m_i (e^(z v_i) - 1 - z v_i) + z E[Z].

Rows may stand for more than their atoms: `missing` bounds what tails that were left out would add to M, and part of the
atoms may be quadrature nodes of a `density` (then the losses are on no lattice).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privloss.losses.symmetric.pair import Split
from privloss.numerics.floats import SMALLEST, UNIT, Complex, Real, lowered, padded_up, raised
from privloss.numerics.stable import exp_minus_1_minus, log1p_polar
from privloss.numerics.work import charge

if TYPE_CHECKING:
    from privloss.losses.density.few_uses import FewUses

_ENOUGH = 1e-15  # a quadrature's error that needs no second opinion
_FAR = 30.0  # Re(z v) beyond which e^(zv) is all that matters

Profile = Callable[[float], tuple[float, float]]
Closed = Callable[[float, Real], tuple[Complex, Real]]
Few = Callable[[int], "FewUses"]
Error = Callable[[float, Real], Real]  # (c, t) -> bound on |M_exact(c+it) - M(c+it)|


def _sum_of(functions: tuple[Closed, Closed]) -> Closed:
    def total(c: float, t: Real) -> tuple[Complex, Real]:
        (one, doubt), (two, other) = functions[0](c, t), functions[1](c, t)
        return one + two, doubt + other

    return total


def _mirrored(profile: Profile) -> Profile:
    """h(alpha) = alpha h(1/alpha) + 1 - alpha for alpha < 1."""

    def bounds(eps: float) -> tuple[float, float]:
        if eps >= 0:
            return profile(eps)
        low, high = (math.exp(eps + end) - math.expm1(eps) for end in profile(-eps))
        return lowered(math.log(low), 16, 1.0), raised(math.log(high), 16, 1.0)

    return bounds


@dataclass(frozen=True)
class Density:
    """The first `nodes` entries of a row are quadrature nodes of a density: for each direction the quadrature's error,
    and V(c) with |the density's part of M(c+it)| <= V(c)/|t| (integration by parts: V is its total variation)."""

    nodes: int
    error: tuple[Error, Error]
    variation: tuple[Callable[[float], float], Callable[[float], float]]
    profile: tuple[Profile, Profile]  # log of bounds on delta(eps) of one use
    top: tuple[float, float]  # the largest loss in each direction: the end of the interval, not the last node
    closed: tuple[Closed, Closed] | None = None  # the density's part of M and its error, where a closed form is known
    few: tuple[Few, Few] | None = None  # a few uses by other means
    price: float = 0.0  # evaluations that reading a profile once takes the time of

    def reversed(self) -> Density:
        closed = None if self.closed is None else self.closed[::-1]
        few = None if self.few is None else self.few[::-1]
        return Density(
            self.nodes,
            self.error[::-1],
            self.variation[::-1],
            self.profile[::-1],
            self.top[::-1],
            closed,
            few,
            self.price,
        )

    def folded(self) -> Density:
        """The density together with its mirror image (nodes of both first); a profile for eps >= 0."""

        def both(functions: tuple[Error, Error]) -> Error:
            return lambda c, t: functions[0](c, t) + functions[1](c, t)

        def fade(c: float) -> float:
            return self.variation[0](c) + self.variation[1](c)

        error, top = both(self.error), self.top[0]
        closed = None if self.closed is None else (_sum_of(self.closed),) * 2
        profile = _mirrored(self.profile[0])
        both_ways = (profile, profile)
        return Density(2 * self.nodes, (error, error), (fade, fade), both_ways, (top, top), closed, price=self.price)

    def beyond(self, c: float, t: Real) -> tuple[Complex, Real]:
        """The density's part of M at heights where the nodes cannot follow: its closed form, or 0 up to V/t."""
        faded = self.variation[0](c) / np.maximum(t, 1e-9)
        if self.closed is None:
            return np.zeros(len(t), dtype=complex), faded
        value, doubt = self.closed[0](c, t)
        known = doubt < faded
        return np.where(known, value, 0.0), np.where(known, doubt, faded)


@dataclass(frozen=True, eq=False)
class Table:
    """One loss. `slack` counts relative roundings in the masses, `wobble` those in the values (one number for all
    entries, or one for each)."""

    values: Real
    masses: Real
    delta: float = 0.0
    back: float = 0.0
    slack: float | Real = 8.0
    wobble: float | Real = 4.0
    missing: tuple[Error, Error] | None = None  # forth and back: tails left out
    density: Density | None = None
    rho: float = math.inf  # a proven bound on zCDP, for rows without a largest loss
    absolute: float = 0.0  # roundings in the values that do not shrink with them
    symmetric: bool = False  # the same law in both directions
    exact: bool = False  # made of doubles that sum to one: delta, back and a loss of 0 are what they say
    split: Split | None = None  # the pairs that this is, or is above, if they can be split by the largest loss

    @property
    def largest(self) -> float:
        if self.missing is not None:
            return math.inf
        top = float(self.values.max()) if self.density is None else max(self.density.top[0], float(self.values.max()))
        return raised(raised(top, 2 * float(np.max(self.wobble))), self._off, 1.0)

    @property
    def _off(self) -> float:
        return 0.0 if self.exact else self.absolute

    @property
    def largest_lower(self) -> float:
        """The same, rounded down: over values that surely have mass."""
        if self.missing is not None:
            return math.inf
        sure = lowered(self.values, 1, 2 * self.wobble * np.abs(self.values) + self._off)
        nodes = 0 if self.density is None else self.density.nodes
        reached = sure[(self.masses > 0) & (np.arange(len(self.values)) >= nodes)]
        top = float(reached.max(initial=-math.inf))
        if self.density is not None:  # the density reaches up to its end
            end = lowered(self.density.top[0], 2 * float(np.max(self.wobble)))
            top = max(top, lowered(end, self._off, 1.0))
        return top

    def reversed(self) -> Table:
        """Q against P."""
        if self.symmetric:
            return self
        with np.errstate(divide="ignore"):  # in logs: a mass may underflow where e^-v overflows
            back = np.exp(np.log(self.masses) - self.values)
        size = float(np.abs(self.values).max()) if isinstance(self.slack, float) else np.abs(self.values)
        slack = self.slack + 2 + self.wobble * size + self.absolute
        turned = None if self.missing is None else (self.missing[1], self.missing[0])
        density = None if self.density is None else self.density.reversed()
        return Table(
            -self.values,
            back,
            self.back,
            self.delta,
            slack,
            self.wobble,
            turned,
            density,
            self.rho,
            self.absolute,
            exact=self.exact,
            split=None if self.split is None else self.split.reversed(),
        )

    def fade(self, c: float) -> tuple[float, float] | None:
        """(A, V) with |M(c+it)| <= A + V/|t|: the tilted atoms and the variation of the density."""
        if self.density is None:
            return None
        atoms = slice(self.density.nodes, None)
        with np.errstate(over="ignore"):
            mass = float((self.masses[atoms] * np.exp(c * self.values[atoms])).sum())
        return padded_up(mass, 1e-12), padded_up(self.density.variation[0](c), 1e-12)

    @cached_property
    def mean(self) -> tuple[float, float]:
        """E[Z; Z < inf] and its error."""
        if np.any((self.masses == 0) & (self.values < -_FAR)):  # masses that underflow may have been large under Q
            return 0.0, math.inf
        terms = self.masses * np.real(exp_minus_1_minus(-self.values))
        growth = np.abs(np.expm1(-self.values))  # how an error of v moves a term
        moved = growth * (np.abs(self.values) * self.wobble + self.absolute)
        error = UNIT * float((terms * (self.slack + 16) + self.masses * moved).sum())
        # the masses of atoms must be those of the mean to first order: charge their rounding
        atoms = slice(0 if self.density is None else self.density.nodes, None)
        error += UNIT * float(((self.slack + 2) * self.masses * growth)[atoms].sum())
        gap = self.back - self.delta
        return math.fsum(terms) + gap, error + 8 * UNIT * (self.back + self.delta)

    def tilted(self, c: float) -> Real:
        """The masses times e^(cv), made to sum to one."""
        logs = np.log(np.maximum(self.masses, 1e-320)) + c * self.values
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def log_mgf(self, c: float, t: Real) -> tuple[Real, Real, Real]:
        """Re K, Im K and the error of K at c + it."""
        far = c * float(np.abs(self.values).max()) > _FAR
        if len(t) > 1:  # single points, for moments, are always to be had
            charge(8.0 * len(self.values) * len(t))
        if far:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                return self._far(c, t, (c + 1j * t)[:, None])
        if self.density is None:
            return self._near(c, t, np.zeros_like(t))
        with np.errstate(over="ignore", invalid="ignore"):
            quadrature = self.density.error[0](c, t)
            high = np.flatnonzero(~(quadrature <= _ENOUGH))
            if not len(high):
                return self._near(c, t, quadrature)
            smooth, doubt = self.density.beyond(c, t[high])
        other = ~(quadrature[high] <= doubt)  # the nodes cannot follow: do without them
        lost = np.zeros(len(t), dtype=bool)
        lost[high[other]] = True
        found = np.empty((3, len(t)))
        found[:, ~lost] = self._near(c, t[~lost], quadrature[~lost])
        found[:, lost] = self._without_nodes(c, t[lost], smooth[other], doubt[other])
        return found[0], found[1], found[2]

    def _near(self, c: float, t: Real, quadrature: Real) -> tuple[Real, Real, Real]:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # no number, no bound: see Line.read
            return self._near_quietly(c, t, quadrature)

    def _near_quietly(self, c: float, t: Real, quadrature: Real) -> tuple[Real, Real, Real]:
        z = (c + 1j * t)[:, None]
        terms = np.where(self.masses > 0, self.masses * exp_minus_1_minus(z * self.values), 0.0)
        mean, mean_error = self.mean
        height, values = np.abs(z), np.abs(self.values)
        size = height * values
        # |d (e^u - 1 - u)| <= |e^u - 1| |du|; weights carry `slack`, the sum one rounding per term
        grown = np.maximum(np.exp(c * self.values), 1.0)
        moved = np.minimum(size, 2.0) * height * (grown * (values * (self.wobble + 4) + self.absolute))
        own = (np.abs(terms) * (self.slack + 32 + len(self.values)) + self.masses * moved).sum(axis=1)
        error = UNIT * own + height[:, 0] * (mean_error + 4 * UNIT * abs(mean)) + quadrature
        return self._finish(c, t, terms.sum(axis=1) + z[:, 0] * mean, error)

    def _without_nodes(self, c: float, t: Real, smooth: Complex, doubt: Real) -> tuple[Real, Real, Real]:
        atoms = slice(self.density.nodes if self.density is not None else 0, None)
        u = (c + 1j * t)[:, None] * self.values[atoms]
        terms = self.masses[atoms] * np.exp(u)
        slack, wobble = (x if isinstance(x, float) else x[atoms] for x in (self.slack, self.wobble))
        wrong = (wobble + 4) * np.abs(u) + self.absolute * np.abs(c + 1j * t)[:, None]
        error = UNIT * (np.abs(terms) * (slack + 32 + wrong)).sum(axis=1)
        return self._finish(c, t, terms.sum(axis=1) + smooth - (1 - self.delta), error + doubt + 8 * UNIT)

    def _finish(self, c: float, t: Real, total: Complex, error: Real) -> tuple[Real, Real, Real]:
        """K from M - (1 - delta) and its error."""
        m1 = total / (1 - self.delta)
        re, im = log1p_polar(m1.real, m1.imag)
        re = np.maximum(re, -600.0)  # an exact zero must not hide its error
        if self.missing is not None:
            error = error + self.missing[0](c, t)
        relative = (error / (1 - self.delta) + 8 * UNIT * np.abs(m1)) * np.exp(-re)
        relative = np.where(np.isnan(relative), np.inf, relative)
        kept = (4 + 2 * float(np.max(self.slack))) * self.delta / (1 - self.delta)  # delta is as rounded as the masses
        return re + math.log1p(-self.delta), im, np.log1p(relative) + UNIT * kept

    def _far(self, c: float, t: Real, z: Complex) -> tuple[Real, Real, Real]:
        with np.errstate(divide="ignore"):
            logs = np.log(self.masses) + c * self.values
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = (weights * np.exp(1j * t[:, None] * self.values)).sum(axis=1)
        flat = float((weights * (self.slack + 32 + len(self.values))).sum())
        slope = float((weights * ((self.wobble + 4) * np.abs(self.values) + self.absolute)).sum())
        error = UNIT * (flat + slope * np.abs(z[:, 0]))
        for extra in (self.missing, None if self.density is None else self.density.error):
            if extra is not None:
                with np.errstate(over="ignore"):
                    error = error + np.exp(np.log(np.maximum(extra[0](c, t), 1e-300)) - top)
        modulus = np.maximum(np.abs(total), 1e-300)
        error = np.where(np.isnan(error), np.inf, error)
        return top + np.log(modulus), np.angle(total), np.log1p(error / modulus) + 8 * UNIT * abs(top)

    def hockey_stick(self, eps: float) -> tuple[float, float]:
        """log of lower and upper bounds on sum m_i (1 - e^(eps - v_i))_+; tails left out add at most their mass, which
        is what is missing of M(0)."""
        if self.density is not None:
            return self.density.profile[0](eps)
        wrong = (self.wobble + 2) * (np.abs(self.values) + abs(eps)) + self.absolute
        least, most = lowered(self.values, 1, wrong), raised(self.values, 1, wrong)
        units = float(np.max(self.slack)) + 16
        low, high = lowered(self._gain(least, eps), units), raised(self._gain(most, eps), units)
        if np.any(most > eps):
            high = max(high, SMALLEST)  # masses may have underflown
        if self.missing is not None:
            high = max(raised(high + float(self.missing[0](0.0, np.zeros(1))[0]), 4), SMALLEST)
        return (
            lowered(math.log(low), 4) if low > 0 else -math.inf,
            math.log(high) if high > 0 else -math.inf,
        )

    def _gain(self, values: Real, eps: float) -> float:
        """sum m_i (1 - e^(eps - v_i))_+ as computed from these values."""
        return math.fsum(self.masses * np.where(values > eps, -np.expm1(np.minimum(eps - values, 0.0)), 0.0))
