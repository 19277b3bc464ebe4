"""Losses with finitely many values: discrete noise, tables, sampled responses, densities read at quadrature nodes.

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

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.common_lattice import Steps, common_lattice
from privloss.numerics.small import UNIT, Complex, Real, exp_minus_1_minus, log1p_polar
from privloss.numerics.sparse import fall_below
from privloss.numerics.transform import Lattice, LineValues, TooExpensive

_MAX_WORK = 60_000_000
_BLOCK = 500_000
_FAR = 30.0  # Re(z v) beyond which e^(zv) is all that matters

Profile = Callable[[float], tuple[float, float]]
Closed = Callable[[float, Real], tuple[Complex, Real]]
Error = Callable[[float, Real], Real]  # (c, t) -> bound on |M_exact(c+it) - M(c+it)|


@dataclass(frozen=True)
class Density:
    """The first `nodes` entries of a row are quadrature nodes of a density: for each direction the quadrature's error,
    and V(c) with |the density's part of M(c+it)| <= V(c)/|t| (integration by parts: V is its total variation)."""

    nodes: int
    error: tuple[Error, Error]
    variation: tuple[Callable[[float], float], Callable[[float], float]]
    profile: tuple[Profile, Profile]  # log of bounds on delta(eps) of one use
    closed: tuple[Closed, Closed] | None = None  # the density's part of M and its error, where a closed form is known

    def reversed(self) -> Density:
        closed = None if self.closed is None else self.closed[::-1]
        return Density(self.nodes, self.error[::-1], self.variation[::-1], self.profile[::-1], closed)

    def beyond(self, c: float, t: Real) -> tuple[Complex, Real]:
        """The density's part of M at heights where the nodes cannot follow: its closed form, or 0 up to V/t."""
        if self.closed is not None:
            return self.closed[0](c, t)
        return np.zeros(len(t), dtype=complex), self.variation[0](c) / np.maximum(t, 1e-9)


@dataclass(frozen=True, eq=False)
class Row:
    """One loss. `slack` counts relative roundings in the masses, `wobble` those in the values."""

    values: Real
    masses: Real
    delta: float = 0.0
    back: float = 0.0
    slack: float = 8.0
    wobble: float = 4.0
    missing: tuple[Error, Error] | None = None  # forth and back: tails left out
    density: Density | None = None
    rho: float = math.inf  # a proven bound on zCDP, for rows without a largest loss

    @property
    def largest(self) -> float:
        if self.missing is not None:
            return math.inf
        return float(self.values.max()) * (1 + 2 * self.wobble * UNIT * math.copysign(1, self.values.max()))

    def reversed(self) -> Row:
        """Q against P."""
        back = self.masses * np.exp(-self.values)
        slack = self.slack + 2 + self.wobble * float(np.abs(self.values).max())
        turned = None if self.missing is None else (self.missing[1], self.missing[0])
        density = None if self.density is None else self.density.reversed()
        return Row(-self.values, back, self.back, self.delta, slack, self.wobble, turned, density, self.rho)

    def fade(self, c: float) -> tuple[float, float] | None:
        """(A, V) with |M(c+it)| <= A + V/|t|: the tilted atoms and the variation of the density."""
        if self.density is None:
            return None
        atoms = slice(self.density.nodes, None)
        mass = float((self.masses[atoms] * np.exp(np.minimum(c * self.values[atoms], 700.0))).sum())
        return mass * (1 + 1e-12), self.density.variation[0](c) * (1 + 1e-12)

    @cached_property
    def mean(self) -> tuple[float, float]:
        """E[Z; Z < inf] and its error."""
        terms = self.masses * np.real(exp_minus_1_minus(-self.values))
        growth = np.abs(np.expm1(-self.values)) * np.abs(self.values)  # how an error of v moves a term
        error = UNIT * float((terms * (self.slack + 16) + self.masses * growth * self.wobble).sum())
        gap = self.back - self.delta
        return math.fsum(terms) + gap, error + 8 * UNIT * (self.back + self.delta)

    def tilted(self, c: float) -> Real:
        """The masses times e^(cv), made to sum to one."""
        logs = np.log(np.maximum(self.masses, 1e-320)) + c * self.values
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def log_mgf(self, c: float, t: Real) -> tuple[Real, Real, Real]:
        """Re K, Im K and the error of K at c + it."""
        if c * float(np.abs(self.values).max()) > _FAR:
            return self._far(c, t, (c + 1j * t)[:, None])
        if self.density is None:
            return self._near(c, t, np.zeros_like(t))
        quadrature, (smooth, doubt) = self.density.error[0](c, t), self.density.beyond(c, t)
        lost = quadrature > doubt  # the nodes cannot follow: do without them
        found = np.empty((3, len(t)))
        found[:, ~lost] = self._near(c, t[~lost], quadrature[~lost])
        found[:, lost] = self._without_nodes(c, t[lost], smooth[lost], doubt[lost])
        return found[0], found[1], found[2]

    def _near(self, c: float, t: Real, quadrature: Real) -> tuple[Real, Real, Real]:
        z = (c + 1j * t)[:, None]
        u = z * self.values
        terms = self.masses * exp_minus_1_minus(u)
        mean, mean_error = self.mean
        size = np.abs(u)
        # |d (e^u - 1 - u)| <= |e^u - 1| |du|; weights carry `slack`, the sum one rounding per term
        grown = np.maximum(np.exp(u.real), 1.0)
        moved = np.minimum(size, 2.0) * grown * size * (self.wobble + 4)
        own = (np.abs(terms) * (self.slack + 32 + len(self.values)) + self.masses * moved).sum(axis=1)
        error = UNIT * own + np.abs(z[:, 0]) * (mean_error + 4 * UNIT * abs(mean)) + quadrature
        return self._finish(c, t, terms.sum(axis=1) + z[:, 0] * mean, error)

    def _without_nodes(self, c: float, t: Real, smooth: Complex, doubt: Real) -> tuple[Real, Real, Real]:
        atoms = slice(self.density.nodes if self.density is not None else 0, None)
        u = (c + 1j * t)[:, None] * self.values[atoms]
        terms = self.masses[atoms] * np.exp(u)
        error = UNIT * (np.abs(terms) * (self.slack + 32 + (self.wobble + 4) * np.abs(u))).sum(axis=1)
        return self._finish(c, t, terms.sum(axis=1) + smooth - (1 - self.delta), error + doubt + 8 * UNIT)

    def _finish(self, c: float, t: Real, total: Complex, error: Real) -> tuple[Real, Real, Real]:
        """K from M - (1 - delta) and its error."""
        m1 = total / (1 - self.delta)
        re, im = log1p_polar(m1.real, m1.imag)
        re = np.maximum(re, -600.0)  # an exact zero must not hide its error
        if self.missing is not None:
            error = error + self.missing[0](c, t)
        relative = (error / (1 - self.delta) + 8 * UNIT * np.abs(m1)) * np.exp(-re)
        return re + math.log1p(-self.delta), im, np.log1p(relative) + 4 * UNIT * abs(math.log1p(-self.delta))

    def _far(self, c: float, t: Real, z: Complex) -> tuple[Real, Real, Real]:
        with np.errstate(divide="ignore"):
            logs = np.log(self.masses) + c * self.values
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = (weights * np.exp(1j * t[:, None] * self.values)).sum(axis=1)
        size = np.abs(z) * np.abs(self.values)
        error = UNIT * (weights * (self.slack + 32 + len(self.values) + (self.wobble + 4) * size)).sum(axis=1)
        for extra in (self.missing, None if self.density is None else self.density.error):
            if extra is not None:
                error = error + np.exp(np.minimum(np.log(np.maximum(extra[0](c, t), 1e-300)) - top, 700.0))
        modulus = np.maximum(np.abs(total), 1e-300)
        return top + np.log(modulus), np.angle(total), np.log1p(error / modulus) + 8 * UNIT * abs(top)

    def hockey_stick(self, eps: float) -> tuple[float, float]:
        """log of lower and upper bounds on sum m_i (1 - e^(eps - v_i))_+."""
        if self.density is not None:
            return self.density.profile[0](eps)
        found = []
        for sign in (-1, 1):
            values = self.values + sign * (self.wobble + 2) * UNIT * (np.abs(self.values) + abs(eps))
            gain = np.where(values > eps, -np.expm1(np.minimum(eps - values, 0.0)), 0.0)
            total = math.fsum(self.masses * gain) * (1 + sign * (self.slack + 16) * UNIT)
            found.append(math.log(total) if total > 0 else -math.inf)
        return found[0] - 4 * UNIT * abs(found[0]) if found[0] > -math.inf else found[0], found[1]


@dataclass(frozen=True, eq=False)
class DiscreteLoss(PrivacyLoss):
    """Bundle of rows with counts."""

    rows: tuple[Row, ...]
    count: Real

    def reversed(self) -> DiscreteLoss:
        return DiscreteLoss(tuple(r.reversed() for r in self.rows), self.count)

    @property
    def kinds(self) -> int:  # type: ignore[override]
        return len(self.rows)

    @property
    def delta_inf(self) -> float:  # type: ignore[override]
        if self.delta_inf_exact:
            return max(r.delta for r in self.rows)
        logs = [
            n * math.log1p(-r.delta) if r.delta < 1 else -math.inf for r, n in zip(self.rows, self.count, strict=True)
        ]
        return -math.expm1(math.fsum(logs))

    @property
    def delta_inf_exact(self) -> bool:  # type: ignore[override]
        return all(r.delta == 0 for r in self.rows)

    @property
    def largest(self) -> float:  # type: ignore[override]
        total = math.fsum(n * r.largest for r, n in zip(self.rows, self.count, strict=True))
        return total + 4 * UNIT * abs(total)

    @property
    def solved_by_closed_form(self) -> bool:  # type: ignore[override]
        return self._single

    @property
    def _single(self) -> bool:
        row = self.rows[0]
        once: bool = bool(self.count.sum() == 1)
        return row.missing is None and once

    @cached_property
    def lattice(self) -> Lattice | None:  # type: ignore[override]
        return common_lattice(self.steps()) if self.on_lattice else None

    @property
    def on_lattice(self) -> bool:
        """Whether every row takes its values only."""
        return all(r.density is None for r in self.rows)

    def steps(self) -> list[Steps]:
        """The losses of each row and how often it runs."""
        return [Steps(r.values, int(n)) for r, n in zip(self.rows, self.count, strict=True)]

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self, c)

    def moments(self, c: float) -> tuple[float, float, float]:
        totals = [0.0, 0.0, 0.0]
        for row, n in zip(self.rows, self.count, strict=True):
            weights = row.tilted(c)
            first = float(weights @ row.values) if c else row.mean[0] / (1 - row.delta)
            second = float(weights @ (row.values - first) ** 2)
            k = float(row.log_mgf(c, np.zeros(1))[0][0])
            totals = [a + float(n) * b for a, b in zip(totals, (k, first, second), strict=True)]
        return totals[0], totals[1], totals[2]

    def log_mgf_upper(self, c: Real) -> Real:
        found = []
        for point in c:
            at = self.vertical(float(point)).line(np.zeros(1), 1e-14)
            found.append(float(at.log_modulus[0] + at.error[0]))
        return np.array(found)

    def log_mgf_simple_upper(self, c: Real) -> Real:
        return self.log_mgf_upper(c)

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        return self.rows[0].hockey_stick(eps) if self._single else None

    def mean_bounds(self) -> tuple[float, float]:
        each = [
            (n * r.mean[0] / (1 - r.delta), n * r.mean[1] / (1 - r.delta))
            for r, n in zip(self.rows, self.count, strict=True)
        ]
        mean = math.fsum(m for m, _ in each)
        slack = math.fsum(e + 8 * UNIT * abs(m) for m, e in each)
        for row, n in zip(self.rows, self.count, strict=True):
            for extra in (row.missing, None if row.density is None else row.density.error):
                # Cauchy's estimate on |z| = 1/2: the derivative at 0 errs by at most twice the error around it
                slack += 0.0 if extra is None else float(2 * n * extra[0](0.5, np.full(1, 0.5))[0]) / (1 - row.delta)
        return mean - slack, mean + slack

    def weakest(self) -> DiscreteLoss:
        best = max((r for r in self.rows), key=lambda r: r.largest)
        return DiscreteLoss((best,), np.ones(1))


@dataclass(frozen=True, eq=False)
class _Vertical:
    loss: DiscreteLoss
    c: float

    def line(self, t: Real, goal: float) -> LineValues:
        rows = self.loss.rows
        if sum(len(r.values) for r in rows) * len(t) > _MAX_WORK:
            raise TooExpensive("line of atoms")
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for row, times in zip(rows, self.loss.count, strict=True):
            block = max(1, _BLOCK // len(row.values))
            for start in range(0, len(t), block):
                at = slice(start, start + block)
                re, im, err = row.log_mgf(self.c, t[at])
                modulus[at] += times * re
                phase[at] += times * im
                error[at] += times * (err + 8 * UNIT * (np.abs(re) + np.abs(im)))
        return LineValues(modulus, phase, error + len(rows) * UNIT * (np.abs(modulus) + np.abs(phase)))

    def decay(self, t: float) -> float:
        """Atoms do not decay, densities fall like V/t."""
        total = 0.0
        for row, times in zip(self.loss.rows, self.loss.count, strict=True):
            fade = row.fade(self.c)
            if fade is not None:
                ratio = (fade[0] + fade[1] / max(t, 1e-9)) / max(self._size(row), 1e-300)
                total += float(times) * math.log(min(ratio * (1 + 1e-9), 1.0))
        return total

    def _size(self, row: Row) -> float:
        """A lower bound on M(c) of one row."""
        re, _, error = row.log_mgf(self.c, np.zeros(1))
        return math.exp(float(re[0] - 2 * error[0])) if error[0] < 0.1 else 0.0

    def _squares(self, row: Row, weights: Real, t: Real) -> Real:
        """|M(c+it)/M(c)|^2, rounded up."""
        squares = np.empty(len(t))
        block = max(1, _BLOCK // len(row.values))
        for first in range(0, len(t), block):
            at = slice(first, first + block)
            if row.density is not None:
                re, _, error = row.log_mgf(self.c, t[at])
                squares[at] = np.exp(np.minimum(2 * (re + error) - 2 * math.log(max(self._size(row), 1e-300)), 0.0))
            else:
                squares[at] = np.abs(np.exp(1j * t[at, None] * row.values) @ weights) ** 2
        if row.density is None:
            top = float(np.abs(row.values).max())
            squares += UNIT * (64 + 4 * row.slack + 2 * len(weights) + 4 * (row.wobble + 2) * top * t)
            if row.missing is not None:
                squares += 4 * np.minimum(row.missing[0](self.c, t) / max(self._size(row), 1e-300), 1.0)
        return squares

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        """y = |sum w_i e^(itv_i)|^2 at the edges, w the tilted masses."""
        total, edges = np.zeros(count), start + width * np.arange(count + 1)
        for row, times in zip(self.loss.rows, self.loss.count, strict=True):
            weights = row.tilted(self.c)
            top = float(np.abs(row.values).max())
            squares = self._squares(row, weights, edges)
            centre = float(weights @ row.values)
            variance = float(weights @ (row.values - centre) ** 2) * (1 + 1e-9) + 1e-12 * top**2
            most = np.minimum(np.maximum(squares[1:], squares[:-1]), 1.0)[None]
            fall = fall_below(most, np.array([[variance]]), width)[0]
            fade = row.fade(self.c)
            if fade is not None:
                ratio = (fade[0] + fade[1] / np.maximum(edges[:-1], 1e-9)) / max(self._size(row), 1e-300)
                fall = np.maximum(fall, -np.log(np.minimum(ratio * (1 + 1e-9), 1.0)))
            total += times * fall
        return total
