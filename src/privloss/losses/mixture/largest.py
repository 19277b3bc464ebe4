"""Splitting a composition by its largest loss: an identity, not a bound.

With marks as in `windows.py`, S_j(z) = M_0(z) + ... + M_j(z) is the transform of one step whose mark is at most j, and

    prod_i S_(i,J)^n_i = prod_i S_(i,0)^n_i + sum over j of T_j,    T_j = prod_i S_(i,j)^n_i - prod_i S_(i,j-1)^n_i,

where T_j is the transform of a positive measure: "the largest mark of all steps is j". So delta is a sum of readings,
each on a line of its own: a large tilt for the bulk, whose losses are small, smaller ones for rare large losses. In a
class above epsilon the other side of the poles is cheaper (Q against P, where Z is small if it is large here).
T_j = e^A expm1(B), A = sum n_i log S_(i,j-1), B = sum n_i log1p(M_(i,j)/S_(i,j-1)), keeps its digits. Steps of other
kinds (`rest`) have one class: their transform multiplies every T_j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.class_mass import Marks, class_mass
from privloss.losses.mixture.marked import BulkDecay, MarkedLine, MarkedStep, Nodes
from privloss.numerics.contour.transform import LineValues, Vertical
from privloss.numerics.floats import UNIT, Complex, Real, padded_up, raised
from privloss.numerics.stable import log1p_polar

LARGE = 30.0  # e^B beyond this is e^B - 1
_WORTH = 1.5  # nats by which the bulk must seem to fall before its decay is proven


@dataclass(frozen=True, eq=False)
class Side:
    """All classes, forward or backward."""

    steps: tuple[MarkedStep, ...]
    counts: Real
    rest: PrivacyLoss | None
    backward: bool
    levels: Real  # the losses at the centres of the windows
    _real: dict[float, list[tuple[float, Real]]] = field(default_factory=dict, repr=False)

    @property
    def falls(self) -> bool:
        return True

    @property
    def classes(self) -> int:
        return self.steps[0].last + 1

    @property
    def reaches_up(self) -> bool:
        return self.backward and all(step.one_sided for step in self.steps)

    def finer(self) -> Side:
        return replace(self, steps=tuple(step.finer() for step in self.steps))  # bounds at real points stay

    def scale(self, j: int) -> float:
        return float(self.levels[min(j, len(self.levels) - 1)])

    def guesses(self, c: Real) -> Real:
        """log T_j at real points c, (classes, len(c)), to a few digits: for searching only."""
        below = [self._guessed_bulk(step, c) for step in self.steps]
        power = -c if self.backward else c + 1
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            base = np.sum(
                [n * np.log1p(np.maximum(s, -1 + 1e-15)) for n, s in zip(self.counts, below, strict=True)], axis=0
            )
            total = [base]
            for j in range(1, self.classes):
                rise = np.zeros_like(c)
                for i, step in enumerate(self.steps):
                    nodes = step.nodes[j]
                    exponent = np.multiply.outer(power, nodes.log_r[::4]) + nodes.log_mass[::4]
                    here = 4 * np.exp(exponent).sum(axis=1)
                    rise = rise + self.counts[i] * np.log1p(here / (1 + below[i]))
                    below[i] = below[i] + here
                total.append(base + np.where(rise > LARGE, rise, np.log(np.expm1(np.minimum(rise, LARGE)))))
                base = base + rise
        other = 0.0 if self.rest is None else self.rest.log_mgf_upper(np.maximum(c, 1e-12))
        found = np.array(total) + other
        return np.where(np.isnan(found), np.inf, found)

    def _guessed_bulk(self, step: MarkedStep, c: Real) -> Real:
        """M_0 - 1 at real points."""
        nodes = step.nodes[0]
        every = max(len(nodes.log_r) // 250, 1)
        z = (-nodes.log_r if self.backward else nodes.log_r)[::every]
        weight = every * np.exp(nodes.log_mass if self.backward else nodes.log_mass + nodes.log_r)[::every]
        u = np.multiply.outer(c, z)
        with np.errstate(over="ignore", invalid="ignore"):
            each = np.where(np.abs(u) < 1e-3, 0.5 * u * u * (1 + u / 3), np.exp(u) - 1 - u)
            rest = np.einsum("ij,j->i", each, weight)
        above = step.above_bulk(self.backward)
        return np.asarray(rest + c * (float(step.means[self.backward].value[0]) - above.mean) - above.masses.sum())

    def log_upper(self, j: int, c: Real) -> Real:
        """Upper bounds on log T_j at real points c >= 0."""
        return np.array([self._log_upper(j, float(point)) for point in c])

    def real(self, j: int, c: float) -> list[tuple[float, float, float]]:
        """For each kind: M_0, M_1 + ... + M_(j-1) and M_j at the real point c, from above."""
        if c not in self._real:
            self._real[c] = [self._real_of(step, c) for step in self.steps]
        return [
            (bulk, raised(float(rare[: max(j - 1, 0)].sum()), 16), float(rare[j - 1]) if j else 0.0)
            for bulk, rare in self._real[c]
        ]

    def _real_of(self, step: MarkedStep, c: float) -> tuple[float, Real]:
        """M_0, and M_j of all rare classes."""
        line = MarkedLine(step, c, self.backward, np.zeros(1))
        bulk, (rare, off) = line.bulk(), line.rares()
        return raised(1.0 + float(bulk.value[0].real) + float(bulk.error[0]), 16), np.asarray(raised(rare + off, 16))

    def _log_upper(self, j: int, c: float) -> float:
        """T_j rises with every S_(j-1) and M_j."""
        if c == 0 and j:
            return padded_up(math.log(max(self.mass(j)[1], 1e-320)), 1e-13, 1.0)
        base = rise = 0.0
        for (bulk, between, own), n in zip(self.real(j, c), self.counts, strict=True):
            most = bulk + between
            if not 0 < most < math.inf:
                return math.inf
            base += n * math.log(most)
            rise += n * math.log1p(max(own, 0.0) / most) if j else 0.0
        log = base if not j else base + (rise if rise > LARGE else math.log(max(math.expm1(rise), 1e-320)))
        if self.rest is not None and c > 0:
            log += float(self.rest.log_mgf_upper(np.array([c]))[0])
        return padded_up(log, 1e-13, 1 + abs(base) + abs(rise) + abs(log))

    def mass(self, j: int) -> tuple[float, float]:
        """An interval for T_j(0), 1 <= j."""
        return class_mass((self._marks(step, n, j) for step, n in zip(self.steps, self.counts, strict=True)), self.rest)

    def _marks(self, step: MarkedStep, count: float, j: int) -> Marks:
        above = step.above_bulk(self.backward)
        masses, errors = above.masses[j - 1 :], above.errors[j - 1 :]
        return Marks(float(masses[0]), float(errors[0]), float(masses.sum()), float(errors.sum()), count)

    def line(self, j: int, c: float, t: Real) -> LineValues:
        """T_j on Re z = c at heights t, equally spaced from 0 on."""
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        rise, rise_error = np.zeros_like(t, dtype=complex), np.zeros_like(t)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for step, n in zip(self.steps, self.counts, strict=True):
                line = MarkedLine(step, c, self.backward, t)
                below = line.bulk()
                if j > 1:
                    below = below.plus(line.up_to(j - 1))
                log_abs, arg = log1p_polar(below.value.real, below.value.imag)
                share = below.error * np.exp(-log_abs)
                modulus, phase = modulus + n * log_abs, phase + n * arg
                error = error + n * np.log1p(share) + 8 * UNIT * n * (np.abs(log_abs) + np.abs(arg))
                if not j:
                    continue
                own = line.rare(j)
                ratio = own.value / (1 + below.value)
                off = (own.error + np.abs(ratio) * below.error) * np.exp(-log_abs) / np.maximum(1 - share, 1e-300)
                log_abs, arg = log1p_polar(ratio.real, ratio.imag)
                off = np.where(share < 1, off + 8 * UNIT * np.abs(ratio), np.inf) * np.exp(-log_abs)
                rise = rise + n * (log_abs + 1j * arg)
                # |log(1 + x)| <= -log(1 - |x|), which is below 1.4 |x| up to 1/2
                each = np.where(off < 0.5, 1.4 * off, np.where(off < 1, -np.log1p(-np.minimum(off, 1.0)), np.inf))
                rise_error = rise_error + n * (each + 8 * UNIT * (np.abs(log_abs) + np.abs(arg)))
            if j:
                log_abs, arg, extra = expm1_polar(rise, rise_error)
                modulus, phase, error = modulus + log_abs, phase + arg, error + extra
        if self.rest is not None:
            other = self.rest.vertical(c).line(t, 1e-13)
            modulus, phase = modulus + other.log_modulus, phase + other.phase
            error = error + other.error + 4 * UNIT * (np.abs(modulus) + np.abs(phase))
        return LineValues(modulus, phase, np.where(np.isnan(error), np.inf, error))

    def decay(self, j: int, c: float) -> Fall:
        return Fall(self, j, c)

    def moduli(self, j: int, c: float, t: Real) -> Real:
        """log |T_j(c + it)| at any heights, to a few digits: for searching only."""
        total, rise = np.zeros_like(t), np.zeros_like(t, dtype=complex)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for step, n in zip(self.steps, self.counts, strict=True):
                nodes = step.some_below(j)
                start, values = self._modulus(nodes, c, t)
                total = total + n * np.log(np.abs(values / start))
                if j:
                    rise = rise + n * np.log1p(self._modulus(step.nodes[j], c, t)[1] / values)
            if j:
                total = total + np.log(np.abs(np.expm1(rise)))
        return np.where(np.isnan(total), np.inf, total) + self._start(j, c)

    def _start(self, j: int, c: float) -> float:
        """About A at height 0: what `moduli` leaves out."""
        base = 0.0
        for (bulk, between, _), n in zip(self.real(j, c), self.counts, strict=True):
            base += n * math.log(max(bulk + between, 1e-15))
        return base if self.rest is None else base + float(self.rest.log_mgf_upper(np.array([max(c, 1e-12)]))[0])

    def _modulus(self, nodes: Nodes, c: float, t: Real) -> tuple[float, Complex]:
        """The sum over some nodes at height 0, and at others."""
        z, log_weight = (-nodes.log_r, nodes.log_mass) if self.backward else (nodes.log_r, nodes.log_mass + nodes.log_r)
        tilted = np.exp(np.minimum(log_weight + c * z, 700.0))
        turned = np.multiply.outer(t, z)
        real, imaginary = (np.einsum("ij,j->i", part, tilted) for part in (np.cos(turned), np.sin(turned)))
        return float(tilted.sum()), np.asarray(real + 1j * imaginary)


def expm1_polar(rise: Complex, off: Real) -> tuple[Real, Real, Real]:
    """log |X| and arg X of X = expm1(B), and its error e if B is off by `off`: |X' - X| <= e^(Re B) expm1(off)."""
    re, im = rise.real, rise.imag
    tame = np.minimum(re, LARGE)
    x = np.expm1(tame) * np.cos(im) - 2 * np.sin(0.5 * im) ** 2 + 1j * np.exp(tame) * np.sin(im)
    large = re > LARGE
    size = np.maximum(np.abs(x), 1e-320)
    log_abs, arg = np.where(large, re, np.log(size)), np.where(large, im, np.angle(x))
    # |X| >= |B|/2 for small B; every term of X is at most e^(Re B) min(|B|, 2), rounded a few times, phases by |B| more
    own = 16 * UNIT * np.exp(tame) * np.minimum(np.abs(rise), 2.0) * (1 + np.abs(im)) / size
    share = np.where(large, 1 + 1e-12, np.exp(tame) / size)
    # beyond LARGE, X differs from e^B by a share e^-Re B
    rounding = np.where(large, 16 * UNIT * (1 + np.abs(rise)) + 2 * np.exp(-np.maximum(re, 0.0)), own)
    error = np.log1p(share * np.expm1(np.minimum(off, 700.0)) + rounding)
    return log_abs, arg, np.where(off < 700.0, error, np.inf)


@dataclass(frozen=True, eq=False)
class Fall:
    """Bounds on |T_j(c + iu)| for all u >= t: |prod (b + m)^n - prod b^n| <= prod (|b| + |m|)^n - prod |b|^n, which
    rises with |b| and |m|."""

    side: Side
    j: int
    c: float

    def _fallen(self, t: float) -> list[float]:
        """About log M_0(c) - log |M_0(c + it)| of each kind: where it is small, it is not worth proving."""
        found = []
        for step in self.side.steps:
            nodes = step.nodes[0]
            z = -nodes.log_r if self.side.backward else nodes.log_r
            tilted = np.exp(
                np.minimum(nodes.log_mass + (0.0 if self.side.backward else nodes.log_r) + self.c * z, 700.0)
            )
            value = complex(tilted @ np.cos(t * z), tilted @ np.sin(t * z))
            found.append(math.log(float(tilted.sum()) / max(abs(value), 1e-300)))
        return found

    @cached_property
    def _bulks(self) -> list[BulkDecay]:
        return [step.bulk_decay(self.c, self.side.backward) for step in self.side.steps]

    @cached_property
    def _rest(self) -> tuple[Vertical, float] | None:
        if self.side.rest is None:
            return None
        vertical = self.side.rest.vertical(self.c)
        start = vertical.line(np.zeros(1), 1e-13)
        return vertical, float(start.log_modulus[0] + start.error[0])

    def log_upper(self, t: float) -> float:
        power, base, rise = -self.c if self.side.backward else self.c + 1, 0.0, 0.0
        fallen = self._fallen(t)
        for i, (step, n) in enumerate(zip(self.side.steps, self.side.counts, strict=True)):
            below, between, own = self.side.real(self.j, self.c)[i]
            if fallen[i] * n > _WORTH:
                below *= math.exp(float(self._bulks[i].log_upper(t)[0]))
            if self.j:
                falls = np.exp(np.minimum(step.rare_strips.log_fallen(power, t)[: self.j], 700.0))
                below += min(float(falls[:-1].sum()), between)
                rise += n * math.log1p(min(float(falls[-1]), own) / below)
            base += n * math.log(below)
        log = base if not self.j else base + (rise if rise > LARGE else math.log(max(math.expm1(rise), 1e-320)))
        if self._rest is not None:
            log += self._rest[1] + self._rest[0].decay(t)
        return padded_up(log, 1e-12, 1 + abs(base) + abs(rise))
