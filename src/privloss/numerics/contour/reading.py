"""Classes of the largest loss, drawn for one eps and read at many: each by a bound, on a line or by its residues."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from privloss.numerics.contour.line import Line
from privloss.numerics.contour.transform import log_kappa
from privloss.numerics.floats import Complex, Real, padded_up


@dataclass(frozen=True)
class Sum:
    """Values of delta(eps) e^-reference and how far the truth may lie above and below; arrays over eps."""

    value: Real
    above: Real
    below: Real


@dataclass(frozen=True)
class Bounded:
    """A class far below delta: at most kappa(c) e^(K(c) - c eps), nothing from below."""

    c: float
    log_mgf: float
    backward: bool

    def read(self, eps: Real, reference: float) -> Sum:
        at = -eps if self.backward else eps
        log = (
            float(log_kappa(np.array(self.c)))
            + self.log_mgf
            - self.c * at
            - reference
            + (eps if self.backward else 0.0)
        )
        most = np.exp(np.minimum(padded_up(log, 1e-12, 1 + np.abs(log) + abs(self.log_mgf)), 700.0))
        return Sum(np.zeros_like(eps), most, np.zeros_like(eps))


@dataclass(frozen=True)
class Read:
    """A class on a line."""

    line: Line
    backward: bool

    def read(self, eps: Real, reference: float) -> Sum:
        found = self.line.read(-eps if self.backward else eps)
        log = found.log_scale - reference + (eps if self.backward else 0.0)
        scale = np.exp(np.minimum(log, 700.0))
        rounding = 8e-16 * (4 + np.abs(log) + np.abs(found.log_scale)) * np.abs(found.value)
        with np.errstate(over="ignore", invalid="ignore"):
            return Sum(scale * found.value, scale * (found.above + rounding), scale * (found.below + rounding))


@dataclass(frozen=True)
class Residues:
    """T_j(0) - e^eps T_j(-1)."""

    here: tuple[float, float]
    there: tuple[float, float]

    def read(self, eps: Real, reference: float) -> Sum:
        scale, grown = math.exp(min(-reference, 700.0)), np.exp(eps)
        middle, off = 0.5 * (self.here[0] + self.here[1]), 0.5 * (self.here[1] - self.here[0])
        other, other_off = 0.5 * (self.there[0] + self.there[1]), 0.5 * (self.there[1] - self.there[0])
        error = off + grown * other_off + 1e-15 * (middle + (1 + np.abs(eps)) * grown * other)
        return Sum(scale * (middle - grown * other), scale * error, scale * error)


@dataclass(frozen=True)
class SplitReading:
    """All classes; reads many eps near the one it was drawn for."""

    terms: tuple[Bounded | Read | Residues, ...]
    reference: float
    eps: float
    nodes: int

    def read(self, eps: Real) -> Sum:
        """Each part adds its own; their sum is rounded in both directions."""
        with np.errstate(all="ignore"):
            sums = [term.read(eps, self.reference) for term in self.terms]
            return self._total(sums)

    def _total(self, sums: list[Sum]) -> Sum:
        value = np.sum([s.value for s in sums], axis=0)
        rounding = 4e-16 * len(sums) * np.sum([np.abs(s.value) for s in sums], axis=0)
        above = padded_up(np.sum([s.above for s in sums], axis=0) + rounding, 1e-9)
        below = padded_up(np.sum([s.below for s in sums], axis=0) + rounding, 1e-9)
        lost = np.isnan(value)
        value = np.where(lost, 0.0, value)
        return Sum(value, *(np.where(lost | np.isnan(end), np.inf, end) for end in (above, below)))

    def log_upper(self, eps: Real) -> Real:
        return self.log_bounds(eps)[1]

    def log_lower(self, eps: Real) -> Real:
        return self.log_bounds(eps)[0]

    def log_bounds(self, eps: Real) -> tuple[Real, Real]:
        """log of lower and upper bounds on delta at each eps."""
        found = self.read(eps)
        with np.errstate(all="ignore"):
            lower = _or(self.reference + np.log(np.maximum(found.value - found.below, 0.0)), -np.inf)
            return lower, _or(self.reference + np.log(np.maximum(found.value + found.above, 0.0)), np.inf)

    def log_value(self, eps: float) -> float:
        """log delta(eps) as computed, without bounds: for root finding."""
        kernel, phase, turn, slope = self._kernels
        here, there = self._poles
        with np.errstate(all="ignore"):
            value = float((kernel * np.exp(slope * eps + 1j * (phase - eps * turn))).real.sum()) + here
        value -= math.exp(min(eps, 700.0)) * there
        return self.reference + math.log(1e-300 if math.isnan(value) else max(value, 1e-300))

    @cached_property
    def _kernels(self) -> tuple[Complex, Real, Real, Real]:
        """All lines together: e^(K(c) - reference) times the kernel, phases, and what turns and grows them with eps."""
        read = [(t.line, t.backward) for t in self.terms if isinstance(t, Read)]
        with np.errstate(all="ignore"):
            kernel = [line.kernel * np.exp(line.values.log_modulus[0] - self.reference) for line, _ in read]
        phase = [line.values.phase for line, _ in read]
        turn = [-line.t if backward else line.t for line, backward in read]
        slope = [np.full(len(line.t), line.c + 1 if backward else -line.c) for line, backward in read]
        none = [np.zeros(0)]
        phases, turns, slopes = (np.concatenate(each or none) for each in (phase, turn, slope))
        return np.concatenate(kernel or none).astype(complex), phases, turns, slopes

    @cached_property
    def _poles(self) -> tuple[float, float]:
        """The sums of T_j(0) and T_j(-1) over classes read backward, over e^reference."""
        scale = math.exp(min(-self.reference, 700.0))
        known = [t for t in self.terms if isinstance(t, Residues)]
        return scale * 0.5 * sum(sum(t.here) for t in known), scale * 0.5 * sum(sum(t.there) for t in known)


def _or(values: Real, otherwise: float) -> Real:
    """A bound that says nothing in place of nan."""
    return np.where(np.isnan(values), otherwise, values)


class Reading(Protocol):
    """delta near the eps that lines were drawn for."""

    @property
    def eps(self) -> float: ...

    def read(self, eps: Real) -> Sum: ...

    def log_bounds(self, eps: Real) -> tuple[Real, Real]: ...

    def log_value(self, eps: float) -> float: ...


def solved(reading: Reading, level: tuple[float, float]) -> tuple[float, float, float]:
    """(lower, upper, root) with delta(upper) <= delta <= delta(lower), delta known by its `level`, an interval of logs;
    an end that could not be met is infinite."""
    root, slope = _root(reading, level[0])
    found = reading.read(np.array([root]))
    value = max(float(found.value[0]), 1e-300)
    up, down = 1.05 * float(found.above[0]) / value / slope, 1.05 * float(found.below[0]) / value / slope
    least = 4e-16 * root
    up, down = max(up, least), max(down, least)
    for _ in range(12):
        ends = np.array([root + up, max(root - down, 0.0)])
        lower_logs, upper_logs = reading.log_bounds(ends)
        high_met, low_met = bool(upper_logs[0] <= level[0]), bool(lower_logs[1] >= level[1])
        if high_met and low_met:
            break
        up, down = up if high_met else 3 * up, down if low_met else 3 * down
    return float(ends[1]) if low_met else -math.inf, float(ends[0]) if high_met else math.inf, root


def _root(reading: Reading, log_delta: float) -> tuple[float, float]:
    """Where the value equals delta, and the slope of -log delta there: secant steps, between half and twice the eps
    that the lines were drawn for."""

    low, high = 0.5 * reading.eps, 2.0 * reading.eps
    eps = reading.eps
    here = reading.log_value(eps) - log_delta
    slope = (here - reading.log_value(1.001 * eps) + log_delta) / (0.001 * eps)
    for _ in range(40):
        slope = min(max(slope, 0.05 / eps), 1e4 / eps)
        low, high = (eps, high) if here > 0 else (low, eps)
        move = here / slope
        if abs(move) <= 1e-13 * eps:
            break
        new = eps + move
        if not low < new < high:
            new = 0.5 * (low + high)
        there = reading.log_value(new) - log_delta
        if new != eps and here != there:
            slope = (here - there) / (new - eps)
        eps, here = new, there
    return eps, min(max(slope, 0.05 / eps), 1e4 / eps)
