"""The bulk of marked outcomes of a symmetric pair, at Gauss-Legendre nodes from the outcome without loss on.

The rest e^u - 1 - u of both branches is read on panels. On the ellipse around a panel every factor is taken at its
worse end (`pair.py`, `Windows.log_bound`), |e^u - 1 - u| <= |u|^2/2 max(1, e^(Re u)); alternatively a panel errs by no
more than twice what is there (weights are positive and sum to its width). Several heights are tried, any is sound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.losses.density.legendre import NODES
from privloss.losses.mixture.windows import Windows
from privloss.losses.symmetric.pair import SymmetricPair
from privloss.numerics.floats import Real

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_ANGLES = np.array([0.0, 0.02, 0.06, 0.15, 0.3, 0.5, 0.8, 1.2])[:, None]
_SAFETY = 1e-9  # nats; swallows the rounding of the sums below


@dataclass(frozen=True, eq=False)
class Panels:
    """Arrays (angles, panels); angle 0 stands for the bound by mass."""

    log_rule: Real  # of the factor in front of the largest value, and |phi w|
    log_a: Real  # largest log |A|
    log_b: Real
    most: Real  # largest log |A/B|
    least: Real
    arg: Real  # largest arg(A/B)

    @classmethod
    def on(cls, pair: SymmetricPair, windows: Windows | None, low: float, half: float, count: int) -> Panels:
        """Panels of half-width `half` from `low` on; windows of the bulk, or none."""
        lift = _ANGLES * pair.sigma**2
        ratio = np.maximum(lift / half, 1e-9)
        rho = ratio + np.sqrt(ratio * ratio + 1)
        reach = np.where(_ANGLES > 0, 0.5 * half * (rho + 1 / rho), half)
        gauss = math.log(64 / 15 * half) - (2 * NODES - 2) * np.log(rho) - np.log(rho * rho - 1)
        rule = np.where(_ANGLES > 0, gauss, math.log(4 * half))
        centre = low + half * (2 * np.arange(count) + 1)[None, :]
        left, right = centre - reach, centre + reach
        nearest = np.where(left > 0, left, np.where(right < 0, right, 0.0))
        log_phi = -0.5 * (nearest / pair.sigma) ** 2 + 0.5 * _ANGLES * lift - _LOG_SQRT_2PI - math.log(pair.sigma)
        if windows is not None:
            bounds = [windows.log_bound(0, left[i], right[i], lift[i]) for i in range(len(lift))]
            log_phi = log_phi + np.array(bounds)
        zero = np.zeros_like(left)
        a_right, b_left = pair.complex_logs(right, zero)[0].real, pair.complex_logs(left, zero)[1].real
        a_low, b_turned = pair.complex_logs(left, _ANGLES + zero)
        a_turned, b_low = pair.complex_logs(right, _ANGLES + zero)
        arg = a_turned.imag + np.abs(b_turned.imag)
        return cls(rule + log_phi, a_right, b_left, a_right - b_low.real, a_low.real - b_left, arg)

    def log_missed(self, c: float, t: float, rest: bool) -> float:
        """log of a bound on the error of both branches up to height t: of the integral of e^(zZ), or of the rest."""
        up, down = c * self.most + t * self.arg, -c * self.least + t * self.arg
        factor: Real | float = 0.0
        if rest:
            up, down = np.maximum(up, 0.0), np.maximum(down, 0.0)
            factor = 2 * np.log(math.hypot(c, t) * self._size) - math.log(2.0)
        return self._best(factor, up, down)

    def log_missed_mean(self) -> float:
        """The same for the mean loss, which is the rest at z = -1 (`mean_loss`)."""
        factor = 2 * np.log(self._size) - math.log(2.0)
        return self._best(factor, np.maximum(-self.least, 0.0), np.maximum(self.most, 0.0))

    def log_missed_square(self, c: float) -> float:
        """The same for E[Z^2 e^(cZ)]."""
        return self._best(2 * np.log(self._size), c * self.most, -c * self.least)

    @property
    def _size(self) -> Real:
        return np.maximum(np.hypot(np.maximum(np.abs(self.most), np.abs(self.least)), self.arg), 1e-300)

    def _best(self, factor: Real | float, up: Real, down: Real) -> float:
        total = self.log_rule + factor + np.logaddexp(self.log_a + up, self.log_b + down)
        return float(np.logaddexp.reduce(total.min(axis=0))) + _SAFETY
