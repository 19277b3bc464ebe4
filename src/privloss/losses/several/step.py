"""Steps with several hits whose outcomes are marked, in the form that `mixture/largest.py` splits; without windows, the
whole step as a bulk."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.losses.mixture.marked import Above, MarkedStep
from privloss.losses.mixture.strip import Strips
from privloss.losses.mixture.sums import Mean
from privloss.losses.mixture.tail import Decay
from privloss.losses.mixture.windows import Windows
from privloss.losses.several.fall import SeveralDecay
from privloss.losses.several.hits import SeveralHits
from privloss.numerics.floats import UNIT
from privloss.numerics.stable import exp_minus_1_minus

_ANGLES = np.array([0.1, 0.2, 0.3, 0.45, 0.65, 0.9, 1.2, 1.5])[:, None]
_NATS = 54.0  # by which quadrature should be better than what it sums, at first
_FINER = 2.0
_REACH = 13.0  # standard deviations beyond the last hit at which the mean is cut off
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
NO_WINDOWS = Windows(np.zeros(0), np.zeros(0))
_NOTHING = Above(np.zeros(0), np.zeros(0), 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class SeveralStep(MarkedStep):
    """`rate` and `sigma` are those of the law."""

    hits: SeveralHits | None = None

    @classmethod
    def marked(
        cls, law: SeveralHits, windows: Windows, means: tuple[Mean, Mean], top: float, fineness: int = 0
    ) -> SeveralStep:
        return cls(law.rate, law.sigma, windows, means, top, fineness, hits=law)

    @property
    def law(self) -> SeveralHits:
        assert self.hits is not None
        return self.hits

    def finer(self) -> SeveralStep:
        step = SeveralStep.marked(self.law, self.windows, self.means, self.top, self.fineness + 1)
        step.__dict__.update(bulk_strip=self.bulk_strip)
        if self.last:
            step.__dict__.update(rare_strips=self.rare_strips)
            step._above.update({backward: self.above_bulk(backward) for backward in (False, True)})  # good enough
        return step

    def spacing(self, j: int) -> float:
        """As wide as some angle allows: 2 pi v/h - v^2/2tau^2 nats, tau the narrower of its windows."""
        lift = _ANGLES[:, 0] * self.sigma**2
        widths = self.windows.width[max(j - 1, 0) : j + 1]
        growth = 0.5 * lift**2 * (1 / self.sigma**2 + (float(widths.min()) ** -2 if len(widths) else 0.0))
        best = float((2 * math.pi * lift / (_NATS + growth)).max())
        return min(best, 0.25 * self.sigma) / _FINER**self.fineness

    @cached_property
    def bulk_strip(self) -> Strips:
        return Strips.of(self.law, self.windows, [(0, *self.span(0))], _ANGLES)

    @cached_property
    def rare_strips(self) -> Strips:
        spans = [(j, *self.span(j)) for j in range(1, self.last + 1)]
        return Strips.of(self.law, self.windows, spans, _ANGLES)

    def above_bulk(self, backward: bool) -> Above:
        return super().above_bulk(backward) if self.last else _NOTHING

    def bulk_decay(self, c: float, backward: bool) -> Decay:
        return SeveralDecay.of(self.law, c, backward, self.span(0), self.windows if self.last else None)


def mean_losses(law: SeveralHits) -> tuple[Mean, Mean]:
    """E[Z] forward and backward: sums of terms e^u - 1 - u >= 0, as E_P[e^-Z] = E_Q[r] = 1: the rest at z = -1.

    Beyond the nodes E_P[Z] is at most (top + sigma)/sigma^2 P[y > top], as log r <= y/sigma^2; backward, with
    e^u - 1 - u <= r for u = log r >= 0, the rest is at most P[y > top].
    """
    top = 1.0 + _REACH * law.sigma
    none = Mean(np.zeros(1), np.zeros(1), np.zeros(1))
    step = SeveralStep.marked(law, NO_WINDOWS, (none, none), top)
    nodes = step.of(0)
    z, under_q, under_p = nodes.log_r, np.exp(nodes.log_mass), np.exp(nodes.log_mass + nodes.log_r)
    near = np.minimum(z, 1.0)
    back = np.where(z < 1.0, under_q * np.real(exp_minus_1_minus(near)), under_p - under_q * (1 + z))
    # the difference of the masses is what an error of Z moves a term by; those under P carry that of log r as well
    moved = np.maximum(under_p, under_q) * np.minimum(np.abs(z), 1.0) * (nodes.drift + 8 * np.abs(z))
    missed = float(step.bulk_strip.log_missed_rest(-1.0, False, 0.0, np.array([nodes.spacing]))[0])
    beyond = math.exp(law.log_beyond(top, 1.0)) * (1 + (top + law.sigma) / law.sigma**2)
    found = []
    for terms, weight in ((under_p * np.real(exp_minus_1_minus(-z)), under_p), (back, under_q)):
        value = float(terms.sum())
        rounding = UNIT * float((terms * (nodes.slack + nodes.drift + 64 + len(z)) + moved).sum())
        variance = float(weight @ (z * z)) - value**2
        error = rounding + math.exp(min(missed, 700.0)) + beyond
        found.append(Mean(np.array([value]), np.array([error]), np.array([variance])))
    return found[0], found[1]
