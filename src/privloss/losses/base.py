"""What every privacy loss can be asked.

For output distributions P, Q on two neighbouring inputs and Z = log P(Y)/Q(Y), Y ~ P, everything is read off

    K(z) = log E_P[ exp(zZ) ; Z < inf ]      and      delta_inf = P[ Z = inf ].

A `PrivacyLoss` is a *bundle*: independent losses of one kind, each with a count. All methods speak of the whole
bundle, so that counts enter in one place. Composition is addition of K (`composed.py`); the other direction, Q against
P, is K(-1 - z) and is available as `reversed()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from privloss.numerics.small import UNIT, Complex, Real
from privloss.numerics.transform import Lattice, Vertical


class PrivacyLoss(ABC):
    """A bundle of independent privacy losses of one kind."""

    delta_inf: float = 0.0  # P[Z = inf] of the whole bundle, as a double
    delta_inf_exact: bool = True  # whether that double is the exact value (no mass, or one step's own delta)
    largest: float = np.inf  # supremum of the finite part of Z, rounded up
    kinds: int = 1  # how many members the bundle has: sums over them carry as many roundings
    lattice: Lattice | None = None  # the lattice Z lives on, if known and useful
    pointwise: bool = True  # whether a line may be evaluated at any heights
    solved_by_closed_form: bool = False  # whether inverting `hockey_stick` is the best way to epsilon
    symmetric: bool = False  # Z has the same law in both directions

    @abstractmethod
    def reversed(self) -> PrivacyLoss:
        """The loss of Q against P."""

    @abstractmethod
    def vertical(self, c: float) -> Vertical:
        """exp K on the line Re z = c: its values and a proven decay."""

    @abstractmethod
    def moments(self, c: float) -> tuple[float, float, float]:
        """K, K', K'' at the real point c to a few digits: for searching only, never for a bound."""

    @abstractmethod
    def log_mgf_upper(self, c: Real) -> Real:
        """Upper bounds on K at real points c > 0."""

    @abstractmethod
    def log_mgf_simple_upper(self, c: Real) -> Real:
        """Like `log_mgf_upper`, at a cost that never grows, perhaps less sharp: for the last resort."""

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

    @property
    def delta_inf_bounds(self) -> tuple[float, float]:
        """An interval for delta_inf; a point where it is known exactly."""
        value = self.delta_inf
        return (
            (value, value)
            if self.delta_inf_exact
            else (
                value * (1 - (32 + 4 * self.kinds) * UNIT),
                min(value * (1 + (32 + 4 * self.kinds) * UNIT), 1.0),
            )
        )

    log_lost: float = -np.inf  # log of the probability left out by `trimmed`: delta is at most this much larger

    tilt_limit: float = np.inf  # the largest c worth using

    tilt_guess: float = np.inf  # about where e^(cZ) starts to be ruled by rare large losses: for searching only

    def trimmed(self, c: float, log_delta: float) -> PrivacyLoss:
        """The same without outcomes far rarer than delta, where they would spoil e^(cZ)."""
        return self

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
