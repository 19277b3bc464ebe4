"""What the contour engine needs to know about a real random variable Z: its log moment generating function K.

This room knows no privacy: any object with these methods can be inverted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privloss.numerics.floats import Real, lowered, padded_up


class TooExpensive(Exception):
    """Internal: the requested accuracy would need more memory or time than allowed; the caller takes a wider route."""


@dataclass(frozen=True)
class LineValues:
    """exp K(c + it) at nodes t: log modulus and phase, and e with |exact/computed - 1| <= expm1(e)."""

    log_modulus: Real
    phase: Real
    error: Real


@dataclass(frozen=True)
class Lattice:
    """Z takes values (offset + j * stride) * unit for whole j only; offset and stride are whole numbers."""

    unit: float
    stride: int
    offset: int
    shift: float = 0.0  # Z itself may differ from the lattice value by this much

    @property
    def spacing(self) -> float:
        return self.unit * self.stride

    def next_above(self, value: Real) -> Real:
        """The smallest lattice value > value; one that exceeds or meets it within a few roundings counts as above."""
        steps = value / self.unit
        j = np.floor((lowered(steps, 16) - self.offset) / self.stride) + 1.0
        return np.asarray((self.offset + j * self.stride) * self.unit)


class Vertical(Protocol):
    """exp K on one vertical line Re z = c."""

    def line(self, t: Real, goal: float) -> LineValues:
        """The values at 0 <= t (rising); `goal` is the error in K worth working for."""

    def decay(self, t: float) -> float:
        """An upper bound on log |exp K(c + iu)| - K(c), valid for every u >= t at once (on a lattice: for every
        t <= u <= pi/spacing)."""

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        """Lower bounds on K(c) - log |exp K(c + it)| on each of `count` cells of a width, from `start` on; what exceeds
        `enough` need not be exact."""


class Fall(Protocol):
    """How fast one class falls along a line."""

    def log_upper(self, t: float) -> float:
        """log of a bound on |T_j(c + iu)| for all u >= t."""


class Side(Protocol):
    """The transforms T_j of all classes of the largest loss, in one direction."""

    @property
    def classes(self) -> int: ...

    @property
    def falls(self) -> bool:
        """Whether lines die out (`DensitySide`) or not (`AtomSide`)."""

    @property
    def reaches_up(self) -> bool:
        """Whether the last class can be bounded at tilts c > 0: it has no largest loss, but perhaps a least."""

    def guesses(self, c: Real) -> Real:
        """log T_j at real points c, (classes, len(c)): for searching only."""

    def log_upper(self, j: int, c: Real) -> Real:
        """Upper bounds on log T_j at real points c >= 0."""

    def mass(self, j: int) -> tuple[float, float]:
        """An interval for T_j(0)."""

    def line(self, j: int, c: float, t: Real) -> LineValues:
        """T_j on Re z = c at heights t, which for a density are equally spaced from 0 on."""

    def scale(self, j: int) -> float:
        """About the largest loss in class j: for searching only."""


class DensitySide(Side, Protocol):
    """The same where the loss has a density, read at quadrature nodes."""

    def moduli(self, j: int, c: float, t: Real) -> Real:
        """About log |T_j(c + it)| at any heights: for searching only."""

    def decay(self, j: int, c: float) -> Fall:
        """How fast it falls."""

    def finer(self) -> DensitySide:
        """The same with more quadrature nodes."""


class AtomSide(Side, Protocol):
    """The same where the loss has atoms; lines may be asked at any heights."""

    @property
    def atoms(self) -> int:
        """How many there are in all kinds of step: what a node costs."""

    def spreads(self, j: int, c: float) -> tuple[float, float]:
        """About the standard deviation of the tilted loss, of all steps and of one: for searching only."""

    def cells(self, j: int, c: float, starts: Real, width: float, count: int) -> Real:
        """log of upper bounds on |T_j(c + it)| on `count` cells of a width from each start on: (starts, count)."""


class RareLosses(Protocol):
    """A transform that can be split by the largest loss."""

    def rough_epsilon(self, log_delta: float) -> float:
        """About the eps that belongs to delta, nan if that is hard to tell: for searching only."""

    def decisive(self, eps: float, log_delta: float) -> bool:
        """Whether rare large losses would rule a single line: for searching only."""

    def rough_log_delta(self, eps: float) -> float:
        """About log delta(eps): for searching only."""

    def sides(self, eps: float, log_delta: float) -> tuple[Side, Side]:
        """The classes, forward and backward, for reading near eps."""


class Transform(Protocol):
    """K(z) = log E[exp(zZ)] of a (sub-)probability distribution."""

    @property
    def largest(self) -> float:
        """The supremum of Z."""

    @property
    def delta_inf_bounds(self) -> tuple[float, float]:
        """An interval for the mass at infinity, of which K knows nothing."""

    @property
    def kinds(self) -> int:
        """How many sums of roundings `largest` carries."""

    @property
    def lattice(self) -> Lattice | None:
        """The lattice Z lives on, if that is known and useful."""

    @property
    def pointwise(self) -> bool:
        """Whether a line may be evaluated at any heights, not only at equally spaced ones."""

    def vertical(self, c: float) -> Vertical:
        """The line Re z = c."""

    def lattice_vertical(self, c: float) -> Vertical:
        """The same up to pi/spacing, where a line on a lattice ends: what it says of heights beyond need not hold."""

    def moments(self, c: float) -> tuple[float, float, float]:
        """K, K', K'' at the real point c to a few digits: for searching only, never for a bound."""

    def mean_bounds(self) -> tuple[float, float]:
        """An interval for E[Z]."""

    def log_mgf_upper(self, c: Real) -> Real:
        """Upper bounds on K at real points c > 0."""

    @property
    def log_lost(self) -> float:
        """log of an upper bound on what `trimmed` has left out of delta."""

    @property
    def tilt_limit(self) -> float:
        """The largest c worth using."""

    @property
    def tilt_guess(self) -> float:
        """About where e^(cZ) starts to be ruled by rare large losses: for searching only."""

    @property
    def rare(self) -> RareLosses | None:
        """How to split Z by its largest part, if there is a way."""

    @property
    def apart(self) -> Apart | None:
        """The same outcome by outcome of some part, if those are few and the rest has rare large values."""

    def rid_of(self, log_mass: float) -> Transform:
        """The same without its largest values, of total probability about e^log_mass."""

    def trimmed(self, c: float, log_delta: float) -> Transform:
        """This, or a transform without outcomes too rare to matter at delta that would spoil e^(cZ)."""

    def blurred(self, mu: float) -> Transform:
        """Z plus an independent N(mu^2/2, mu^2)."""


@dataclass(frozen=True, eq=False)
class Apart:
    """Outcomes `values`, falling, each known up to `off`, with intervals for their masses; `left` bounds the mass of
    those that are not listed. The rest of Z in both directions, neither with mass at infinity."""

    values: Real
    off: float
    masses: tuple[Real, Real]
    left: float
    rest: Transform
    back: Transform


def log_kappa(t: Real) -> Real:
    """log of kappa(t) = sup_y (1 - e^-y) e^(-ty) = t^t / (t+1)^(t+1), for t > 0 (Prop. cdp2adp); 0 at t = 0."""
    t = np.asarray(t, dtype=float)
    safe = np.maximum(t, 1e-300)
    return np.where(t > 0, -np.log1p(t) - t * np.log1p(1 / safe), 0.0)


def kappa_bound_epsilon(c: float, k_upper: float, log_delta: float) -> float:
    """The eps with kappa(c) exp(K(c) - c eps) = delta, rounded up: delta(eps) <= delta there."""
    value = (k_upper + float(log_kappa(np.array(c))) - log_delta) / c
    return padded_up(value, 2e-15, (1 + abs(k_upper) + abs(log_delta)) / c) if math.isfinite(value) else math.inf
