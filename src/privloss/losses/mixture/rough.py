"""delta(eps) of a few rare hits to two or three digits, on a grid of losses: to know where lines should be drawn.

Nothing here is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from privloss.losses.base import PrivacyLoss
from privloss.numerics.floats import Real

_SIZE = 4096
_NOISE = 1e-14  # of the transform
_UNIT = np.linspace(-9.0, 12.0, 400)


@dataclass(frozen=True)
class Kind:
    """One kind of step: how often, its mean loss, and functions of its outcome y."""

    count: float
    mean: float
    sigma: float
    loss: Callable[[Real], Real]
    outcome: Callable[[Real], Real]  # with a given loss > 0
    above: Callable[[Real], Real]  # the probability of more than y

    @classmethod
    def one_hit(cls, rate: float, sigma: float, count: float, mean: float) -> Kind:
        return cls(
            count,
            mean,
            sigma,
            lambda y: np.log1p(rate * np.expm1(np.minimum((y - 0.5) / sigma**2, 600.0))),
            lambda loss: _outcome(loss, rate, sigma),
            lambda y: (1 - rate) * ndtr(-y / sigma) + rate * ndtr((1 - y) / sigma),
        )

    def coarse(self) -> tuple[Real, Real]:
        """Losses and their probabilities on a coarse grid of outcomes."""
        y = _UNIT * self.sigma + np.maximum(_UNIT, 0.0) / 12.0
        edges = np.concatenate([y[:1], 0.5 * (y[1:] + y[:-1]), y[-1:]])
        return self.loss(y), -np.diff(self.above(edges))


def rough_profile(
    kinds: Sequence[Kind], rest: PrivacyLoss | None, delta: float, eps: float | None
) -> tuple[Real, Real]:
    """Losses on a grid and delta there; for an eps in mind, or for one that belongs to delta."""
    levels = np.geomspace(1e-9, 2e3, 700)
    beyond = np.zeros_like(levels)
    for kind in kinds:
        beyond += kind.count * kind.above(kind.outcome(levels))
    single = float(levels[int(np.argmax(beyond < delta))]) if eps is None else eps
    mean = spread = 0.0
    if rest is not None:
        _, m, v = rest.moments(0.0)
        mean, spread = m, v
    parts = []
    for kind in kinds:
        z, weight = kind.coarse()
        capped = np.minimum(z, single)
        mean += kind.count * kind.mean
        spread += kind.count * float(weight @ (capped * capped))
        parts.append((kind, z, weight))
    reach = 2.0 * (max(mean, 0.0) + 7 * math.sqrt(spread) + 5 * single)
    step = reach / (0.7 * _SIZE)
    grid = step * (np.arange(_SIZE) - int(0.25 * _SIZE))
    t = 2 * math.pi * np.fft.rfftfreq(_SIZE, step)
    log_phi = np.zeros(len(t), dtype=complex)
    for kind, z, weight in parts:
        edges = grid[grid > 0] - 0.5 * step
        mass = -np.diff(kind.above(np.maximum(kind.outcome(np.maximum(edges, 1e-300)), -1e300)))
        jumps = np.zeros(_SIZE)
        jumps[1 : len(mass) + 1] = mass
        small = z < 0.5 * step
        square = float(weight[small] @ (z[small] * z[small]))
        low = kind.mean - float(mass @ grid[grid > 0][: len(mass)])  # what is left of the mean
        left = max(1 - float(mass.sum()), 1e-9)
        middle, second = low / left, square / left
        if second < 0.5 * step**2:  # the small ones on three points of the grid
            small_phi = 1 + 1j * np.sin(t * step) * (middle / step) + (np.cos(t * step) - 1) * (second / step**2)
        else:  # or as if normal
            small_phi = np.exp(1j * t * middle - 0.5 * t * t * max(second - middle**2, 0.0))
        log_phi += kind.count * np.log(np.conj(np.fft.rfft(jumps)) + left * small_phi)
    if rest is not None:
        line = rest.vertical(1e-9).line(t, 1e-4)
        log_phi += line.log_modulus + 1j * line.phase
    density = np.roll(np.fft.irfft(np.conj(np.exp(log_phi)), _SIZE), int(0.25 * _SIZE))
    above = np.cumsum(density[::-1])[::-1] - density
    profile = step * np.exp(grid) * np.cumsum((above * np.exp(-grid))[::-1])[::-1]
    positive = grid > 0
    return grid[positive], np.maximum(profile[positive], _NOISE)


def rough_epsilon(kinds: Sequence[Kind], rest: PrivacyLoss | None, delta: float) -> float:
    """About the eps that belongs to delta; nan where the grid cannot tell."""
    with np.errstate(all="ignore"):
        eps, profile = rough_profile(kinds, rest, delta, None)
    if not np.all(np.isfinite(profile)) or delta < 20 * _NOISE or profile[0] < delta:
        return math.nan
    i = int(np.argmax(profile < delta))
    if not i:
        return math.nan
    low, high = math.log(profile[i - 1]), math.log(profile[i])
    return float(eps[i - 1] + (eps[i] - eps[i - 1]) * (low - math.log(delta)) / max(low - high, 1e-300))


def _outcome(loss: Real, rate: float, sigma: float) -> Real:
    """The outcome y with a given loss > 0."""
    near = np.log1p(np.expm1(np.minimum(loss, 600.0)) / rate)
    return np.asarray(0.5 + sigma**2 * np.where(loss < 600.0, near, loss - math.log(rate)))
