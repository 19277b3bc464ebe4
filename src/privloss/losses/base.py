"""What every privacy loss can be asked.

For output distributions P, Q on two neighbouring inputs and Z = log P(Y)/Q(Y), Y ~ P, everything is read off

    K(z) = log E_P[ exp(zZ) ; Z < inf ]      and      delta_inf = P[ Z = inf ].

A `PrivacyLoss` is a *bundle*: independent losses of one kind, each with a count. All methods speak of the whole
bundle, so that counts enter in one place. Composition is addition of K (`composed.py`); the other direction, Q against
P, is K(-1 - z) and is available as `reversed()`.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from privloss.numerics.contour.transform import Apart, Lattice, RareLosses, TooExpensive, Vertical
from privloss.numerics.floats import UNIT, Complex, Real, lowered, raised

if TYPE_CHECKING:
    from privloss.losses.table.brackets import Brackets
    from privloss.losses.table.lattice import Steps
    from privloss.losses.table.table import Table
    from privloss.numerics.contour.reading import Reading


@dataclass(frozen=True)
class Concentration:
    """What is known of sup over t > 0 of K(t)/(t(t+1)) without a search."""

    everywhere: float = 0.0  # attained at every t (Gaussians), so it adds to whatever else is attained
    limit: float = 0.0  # approached or attained somewhere
    bound: float = 0.0  # only bounded by this
    searched: PrivacyLoss | None = None  # the rest, with a largest loss: to be searched
    falls: bool = False  # for what is to be searched the ratio falls in t, from the mean loss on


class PrivacyLoss(ABC):
    """A bundle of independent privacy losses of one kind."""

    place: ClassVar[int] = 7  # where the bundle stands in a composition: fixes the order in which parts are added

    @property
    def members(self) -> tuple[PrivacyLoss, ...]:
        """What a composition adds up: itself."""
        return (self,)

    @property
    def delta_inf(self) -> float:
        """P[Z = inf] of the whole bundle, as a double."""
        return 0.0

    @property
    def delta_inf_exact(self) -> bool:
        """Whether that double is the exact value (no mass, or one step's own delta)."""
        return True

    @property
    def largest(self) -> float:
        """The supremum of the finite part of Z, rounded up."""
        return np.inf

    @property
    def largest_lower(self) -> float:
        """The same, rounded down: what is surely reached or approached."""
        return 0.0 if self.largest < np.inf else np.inf

    @property
    def kinds(self) -> int:
        """How many members the bundle has: sums over them carry as many roundings."""
        return 1

    @property
    def lattice(self) -> Lattice | None:
        """The lattice Z lives on, if known and useful."""
        return None

    @property
    def pointwise(self) -> bool:
        """Whether a line may be evaluated at any heights."""
        return True

    @property
    def solved_by_closed_form(self) -> bool:
        """Whether inverting `hockey_stick` is the best way to epsilon."""
        return False

    @property
    def symmetric(self) -> bool:
        """Z has the same law in both directions."""
        return False

    @abstractmethod
    def times(self, count: int) -> Self:
        """The same, run `count` times as often."""

    @classmethod
    def merged(cls, parts: Sequence[Any]) -> Sequence[PrivacyLoss]:
        """Bundles of this kind as one bundle, where that pays."""
        return parts

    def lattice_steps(self) -> list[Steps] | None:
        """The values of each member and how often it runs, if all of them are few and exact; None otherwise."""
        return None

    def tables(self) -> list[tuple[Table, int]] | None:
        """The members as tables with their counts, if they have finitely many outcomes."""
        return None

    def profile(self, eps: Real) -> tuple[Real, Real] | None:
        """Bounds on delta at many real eps at once, for its own mirror image where they cost next to nothing."""
        return None

    def concentration(self) -> Concentration:
        """What is known of the best rho."""
        return Concentration(searched=self)

    @abstractmethod
    def reversed(self) -> PrivacyLoss:
        """The loss of Q against P."""

    @abstractmethod
    def vertical(self, c: float) -> Vertical:
        """exp K on the line Re z = c: its values and a proven decay."""

    def lattice_vertical(self, c: float) -> Vertical:
        """The same up to the end of the lattice's line, where this is the whole plan: beside others, whose lines go on,
        it resonates beyond."""
        return self.vertical(c)

    @abstractmethod
    def moments(self, c: float) -> tuple[float, float, float]:
        """K, K', K'' at the real point c to a few digits: for searching only, never for a bound."""

    @abstractmethod
    def log_mgf_upper(self, c: Real) -> Real:
        """Upper bounds on K at real points c > 0."""

    def log_mgf_bounds(self, c: Real, goal: float) -> tuple[Real, Real]:
        """Intervals for K at real points c > 0, with an error of about `goal`: a line at height 0 for each, all points
        at once where K has a closed form. Where it is too expensive, nothing is said."""
        low, high = np.full(len(c), -math.inf), np.full(len(c), math.inf)
        for i, point in enumerate(c.tolist()):
            with contextlib.suppress(TooExpensive):
                at = self.vertical(point).line(np.zeros(1), goal)
                low[i : i + 1], high[i : i + 1] = around(at.log_modulus, at.error)
        return low, high

    def log_mgf_lower(self, c: Real) -> Real:
        """Lower bounds on K at real points c > 0, from the error that a line carries at height 0: e^K is at least
        1 - expm1(error) of what is computed."""
        found = []
        for point in c:
            at = self.vertical(float(point)).line(np.zeros(1), 1e-14)
            lost = math.expm1(min(float(at.error[0]), 1.0))
            k = float(at.log_modulus[0])
            found.append(lowered(k + math.log1p(-lost), 8, abs(k) + lost) if lost < 1 else -math.inf)
        return np.array(found)

    def log_mgf_simple_upper(self, c: Real) -> Real:
        """Like `log_mgf_upper`, at a cost that never grows, perhaps less sharp: for the last resort."""
        return self.log_mgf_upper(c)

    def log_mgf_simple_lower(self, c: float) -> float:
        """A lower bound on K(c), c > 0, at a cost that never grows: K >= 0 for probability distributions (Jensen)."""
        return 0.0

    @abstractmethod
    def weakest(self) -> PrivacyLoss:
        """One copy of the least private member, with `hockey_stick` in closed form: a lower bound on the bundle."""

    @abstractmethod
    def mean_bounds(self) -> tuple[float, float]:
        """An interval for the mean loss E[Z], given that nothing has infinite loss."""

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        """log of lower and upper bounds on delta(eps) - delta_inf where a closed form exists, else None."""
        return None

    def closed_reading(self, log_delta: float) -> Reading | None:
        """A closed form drawn for the eps that belongs to delta, where it is quicker than any other eps."""
        return None

    def closed_epsilon(self, level: tuple[float, float]) -> tuple[float, float] | None:
        """An interval for the eps at which delta - delta_inf has its log in `level`, where a formula has all digits."""
        return None

    @property
    def delta_inf_bounds(self) -> tuple[float, float]:
        """An interval for delta_inf; a point where it is known exactly."""
        value = self.delta_inf
        if self.delta_inf_exact:
            return value, value
        units = 32 + 4 * self.kinds
        return lowered(value, units), min(raised(value, units), 1.0)

    @property
    def log_lost(self) -> float:
        """log of the probability left out by `trimmed`: delta is at most this much larger."""
        return -np.inf

    @property
    def tilt_limit(self) -> float:
        """The largest c worth using."""
        return np.inf

    @property
    def tilt_guess(self) -> float:
        """About where e^(cZ) starts to be ruled by rare large losses: for searching only."""
        return np.inf

    def trimmed(self, c: float, log_delta: float) -> PrivacyLoss:
        """The same without outcomes far rarer than delta, where they would spoil e^(cZ)."""
        return self

    def rare_losses(self, rest: PrivacyLoss | None) -> RareLosses | None:
        """How to split this, composed with the rest of a plan, by the largest loss; None if there is no such way."""
        return None

    @property
    def rare(self) -> RareLosses | None:
        """The same without anything else."""
        return self.rare_losses(None)

    @property
    def apart(self) -> Apart | None:
        """Outcome by outcome of some part, where that helps."""
        return None

    @property
    def densities(self) -> bool:
        """Whether this is read at quadrature nodes on long lines, and `brackets` may be quicker."""
        return False

    def brackets(self, log_delta: float) -> Brackets | None:
        """Tables below and above every member, where it is no table and a closed profile of one use is known; with
        losses as rare as this delta asks for."""
        return None

    def unsampled(self) -> PrivacyLoss:
        """A loss that dominates this one by leaving out the sampling (quasi-convexity: sampling never hurts)."""
        return self

    def rid_of(self, log_mass: float) -> PrivacyLoss:
        """The same without its largest losses, of total probability about e^log_mass."""
        return self

    def log_test_lower(self, eps: float) -> float:
        """log of a lower bound on delta(eps) - delta_inf that is always cheap: one step, or one event."""
        one = self.weakest().hockey_stick(eps)
        return -np.inf if one is None else one[0]

    def log_mgf(self, z: complex | Complex) -> Complex:
        """K(z) for any complex z (imaginary part up to a multiple of 2 pi).

        The half-plane Re z < -1/2 is reached through the other direction: K(z) = K_reversed(-1 - z). Values only: the
        errors are proven for Re z >= 0 (and, through the other direction, Re z <= -1), which is all the engines use.
        """
        points = np.atleast_1d(np.asarray(z, dtype=complex))
        values = np.empty(points.shape, dtype=complex)
        for index, point in np.ndenumerate(points):
            flip = point.real < -0.5
            loss, at = (self.reversed(), -1 - point) if flip else (self, point)
            found = loss.vertical(float(at.real)).line(np.array([abs(at.imag)]), 1e-14)
            k = complex(found.log_modulus[0], found.phase[0])
            values[index] = k if at.imag >= 0 else k.conjugate()
        return values.reshape(np.shape(z))


def around(k: Real, error: Real) -> tuple[Real, Real]:
    """K between these, where e^K is known up to expm1(error) of itself: log(1 - expm1(x)) >= -2x for x < 1/2."""
    return np.where(error < 0.5, k - 2 * error, -math.inf), k + error


def on_axis(k: tuple[Real, Real, Real], count: Real) -> tuple[Real, Real]:
    """The same of a bundle, from Re K, Im K and error of its members, arrays (members, points)."""
    re, _, error = k
    total = count @ (error + (8 + len(count)) * UNIT * np.abs(re))
    return around(count @ re, total)


def columns(parts: Sequence[Any], *names: str) -> list[Real]:
    """The arrays of several bundles of one kind, end to end."""
    return [np.concatenate([getattr(part, name) for part in parts]) for name in names]
