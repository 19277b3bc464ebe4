"""Losses whose density is an exponential, on a Poisson sample: (1-q)Q + qP against Q, with r = 1 - q + q e^z.

Off the axis |1 - q + q e^(x+iy)| <= 1 - q + q e^x, >= cos(y) times that, and its argument is at most p tan y,
p = q e^x / (1 - q + q e^x).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from privloss.losses.density.by_parts import Powers
from privloss.losses.density.few_uses import TERMS, End, FewUses
from privloss.losses.density.legendre import NODES, FineRule, error, panels
from privloss.losses.density.profile import sampled_hockey_stick
from privloss.losses.table.table import Density, Profile, Table
from privloss.numerics.floats import SMALLEST, UNIT, Complex, Real
from privloss.numerics.stable import exp_or_inf, log_sampled


@dataclass(frozen=True)
class SampledExponentials:
    """A loss z with density `factor` e^(-(lambda+z)/2)/4 on [low, top] under Q, and atoms (value, Q-mass), on a sample
    of the given rate; what only Q produces, `revealed` of its mass, has r = 1 - q. `profile` is that of the finite
    losses without a sample."""

    lam: float
    low: float
    top: float
    factor: float
    atoms: tuple[tuple[float, float], ...]
    profile: Profile
    revealed: float
    rate: float

    def table(self) -> Table:
        """The sampled pair."""
        values, masses, nodes = self._entries()
        return Table(
            values, masses, self._lost, slack=self._slack, wobble=16.0, density=self._density(nodes), symmetric=False
        )

    def folded(self) -> Table:
        """The symmetric pair of the losses above 0, with every function the sum of both directions; for low >= 0 and
        atoms above 0 only."""
        values, masses, nodes = self._entries()
        mirrored = masses * np.exp(-values)
        # the nodes of both first, then the atoms of both
        both = np.concatenate([values, -values]), np.concatenate([masses, mirrored])
        n, size = nodes, len(values)
        index = np.r_[0:n, size : size + n, n:size, size + n : 2 * size]
        rest = max(1 - self._lost - math.fsum(both[1]), 0.0)
        return Table(
            np.append(both[0][index], 0.0),
            np.append(both[1][index], rest),
            self._lost,
            self._lost,
            slack=self._slack,
            wobble=16.0,
            density=self._density(nodes).folded(),
            symmetric=True,
        )

    @property
    def _slack(self) -> float:
        return 32 + 4 * self.lam

    @property
    def _lost(self) -> float:
        return max(self.rate * self.revealed, SMALLEST) if self.revealed > 0 else 0.0

    @cached_property
    def _rule(self) -> tuple[Real, Real, float]:
        return panels(self.low, self.top, 0.5)

    def _entries(self) -> tuple[Real, Real, int]:
        """Losses and P-masses, and how many of them are nodes."""
        z, weights, _ = self._rule
        plain = np.concatenate([z, [v for v, _ in self.atoms]])
        smooth = 0.25 * self.factor * weights * np.exp(-0.5 * (self.lam + z))
        values = self._loss(plain)
        return values, np.concatenate([smooth, [m for _, m in self.atoms]]) * np.exp(values), len(z)

    def _loss(self, z: Real | float) -> Real:
        return log_sampled(self.rate, z)

    def _density(self, nodes: int) -> Density:
        half, count = self._rule[2], nodes // NODES
        errors = error(half, count, self._size), error(half, count, self._size_back)
        least = -math.inf if self.revealed else self.low
        ends = float(self._loss(self.top)), -float(self._loss(least))
        variations, closed = (self._variation, self._variation_back), (self._closed, self._closed_back)
        few = (partial(self._few, False), partial(self._few, True)) if self._has_both_atoms else None
        return Density(nodes, errors, variations, (self._profile, self._profile_back), ends, closed, few)

    # -- one use -------------------------------------------------------------------------------------------------------

    def _profile(self, eps: float) -> tuple[float, float]:
        return sampled_hockey_stick(self.rate, self.profile, eps, False, self.revealed)

    def _profile_back(self, eps: float) -> tuple[float, float]:
        return sampled_hockey_stick(self.rate, self.profile, eps, True, self.revealed)

    # -- the integrand off the axis, log of bounds ---------------------------------------------------------------------

    @property
    def _scale(self) -> float:
        return math.log(0.25 * self.factor) - 0.5 * (self.lam + self.low)

    def _hit(self, overhang: float) -> tuple[float, float]:
        """log r and p beyond the upper end."""
        grown = self.rate * exp_or_inf(self.top + overhang)
        return math.log1p(grown - self.rate), grown / (1 - self.rate + grown) if grown < math.inf else 1.0

    def _size(self, c: float, t: Real, height: float, overhang: float) -> Real:
        log_r, p = self._hit(overhang)
        return self._scale + 0.5 * overhang + (c + 1) * log_r + t * p * math.tan(height)

    def _size_back(self, c: float, t: Real, height: float, overhang: float) -> Real:
        fixed = self._scale + 0.5 * overhang - c * (math.log1p(-self.rate) + math.log(math.cos(height)))
        return fixed + t * self._hit(overhang)[1] * math.tan(height)

    # -- by parts in v = log r: F/v' is e^(-3z/2) r^(c+2), log-convex, or e^(-3z/2) r^(1-c), falling, up to a factor --

    @property
    def _constant(self) -> float:
        """log of that factor."""
        return math.log(0.25 * self.factor / self.rate) - 0.5 * self.lam

    def _variation(self, c: float) -> float:
        down, up = (-1.5 * x + (c + 2) * float(self._loss(x)) for x in (self.low, self.top))
        return 2 * exp_or_inf(float(np.logaddexp(down, up)) + self._constant)

    def _variation_back(self, c: float) -> float:
        end = -1.5 * self.low + (1 - c) * float(self._loss(self.low))
        return 2 * exp_or_inf(end + self._constant)

    @cached_property
    def _powers(self) -> Powers:
        return Powers(self.rate, self.low, self.top, self._constant)

    # -- at heights where the nodes cannot follow ----------------------------------------------------------------------

    def _log_under(self, power: float, z: Real) -> Real:
        return math.log(0.25 * self.factor) - 0.5 * (self.lam + z) + power * self._loss(z)

    @cached_property
    def _fine(self) -> FineRule:
        log_f, units = lambda c, z: self._log_under(c + 1, z), 64 + 4 * self.lam
        return FineRule(self.low, self.top, log_f, self._loss, +1, self._size, units)

    @cached_property
    def _fine_back(self) -> FineRule:
        log_f, units = lambda c, z: self._log_under(-c, z), 64 + 4 * self.lam
        return FineRule(self.low, self.top, log_f, self._loss, -1, self._size_back, units)

    def _closed(self, c: float, t: Real) -> tuple[Complex, Real]:
        return self._fine.refine(c, t, *self._powers.integral(c + 2, +1, t))

    def _closed_back(self, c: float, t: Real) -> tuple[Complex, Real]:
        return self._fine_back.refine(c, t, *self._powers.integral(1 - c, -1, t))

    # -- a few uses ----------------------------------------------------------------------------------------------------

    @property
    def _has_both_atoms(self) -> bool:
        """One atom at each end of the density, and nothing else."""
        return self.revealed == 0 and [v for v, _ in self.atoms] == [self.top, self.low]

    def _few(self, back: bool, count: int) -> FewUses:
        """P against Q, or Q against P, where a loss is -v, and its m-th derivative (-1)^m times that by v."""
        sign, b = (-1.0, 1.0) if back else (1.0, 2.0)
        ends = []
        for z, mass in (self.atoms[0], self.atoms[1]):
            v = float(self._loss(z))
            values, moduli = self._powers.derivatives(b, z, TERMS - 1)
            outward = sign if z == self.top else -sign  # upwards, a jump counts as it is; downwards, reversed
            turned = np.where(back, 1.0, (-1.0) ** np.arange(TERMS))
            units = 64 + 8 * (abs(1.5 * z) + abs(self._constant) + b * (abs(v) + 1))
            wrong = UNIT * units * (np.arange(TERMS) + 1) * moduli
            atom = mass if back else mass * math.exp(v)
            ends.append(End(sign * v, atom, outward * turned * values, wrong))
        size, upper = self._size_back if back else self._size, ends[1 if back else 0].at
        return FewUses(
            upper=ends[1 if back else 0],
            lower=ends[0 if back else 1],
            count=count,
            low=self.low,
            high=self.top,
            log_mass=lambda z: self._log_under(b - 1, z),
            loss=lambda z: sign * self._loss(z),
            bound=lambda c, t, height, overhang: size(c, t, height, overhang) - c * upper,
            rest=lambda c: self._rest(back, c, upper),
            rate=math.exp(self.top + math.log(self.rate) - float(self._loss(self.top))),
            length=float(self._loss(self.low)) - math.log1p(-self.rate),
            slack=self._slack + 64,
        )

    def _rest(self, back: bool, c: float, upper: float) -> float:
        """The integral of |p^(J)| e^(c (x - upper)): every term is largest at one of the ends (`by_parts.py`)."""
        found = []
        for z in (self.low, self.top):
            moduli = self._powers.derivatives(1.0 if back else 2.0, z, TERMS)[1]
            found.append(math.log(float(moduli[-1])) + c * ((-1 if back else 1) * float(self._loss(z)) - upper))
        width = float(self._loss(self.top)) - float(self._loss(self.low))
        return exp_or_inf(float(np.logaddexp(found[0], found[1])) + math.log(width) + 1e-9)
