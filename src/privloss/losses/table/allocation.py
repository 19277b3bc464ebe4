"""One epoch of random allocation: a record takes part in one of t steps, chosen at random.

Against the data without the record, which gives y_i ~ N(0, 1) at every step, the likelihood ratio is S = (r_1 + ... +
r_t)/t with r_i = e^(s y_i - s^2/2), and delta(eps) = E[(S - e^eps)_+] (Feldman and Shenfeld 2025, Chua et al. 2025:
this pair dominates, also adaptively). S is a mean of independent variables of mean 1, and sums keep the convex order:
if every r_i is moved at random to the two ends of its cell on a grid so that its mean stays, the new S has the larger
E[(S - a)_+] for every a, and mean 1: it is the likelihood ratio of a pair that dominates.

The law of the sum is a power of one discrete Fourier transform, of masses tilted by e^(theta r) so that rounding weighs
less where S is large. Whatever is uncertain is given to an infinite loss, in units of the mean of S, because changing
masses by m_j changes E[(S - a)_+] by at most sum S_j |m_j|:

- what wraps around at the top: E[S; sum > end] <= e^(-theta end) M^(t-1) E[r e^(theta r)] (Chernoff), and where it
  turns up at the bottom, the tilt undone;
- what lies below the window: e^(-a^2/(2 t E r^2)) (Chernoff for positive variables);
- rounding: every frequency errs by at most 6 log2(N) roundings (all coefficients have modulus 1, the masses add up to
  1), which bounds the error of every mass.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from privloss.losses.table.table import Table
from privloss.numerics.floats import UNIT, Real

_FURTHEST = 3.0  # beyond, no grid is fine enough
_FINE, _COARSEST = 128.0, 8.0  # grid cells per standard deviation of one ratio
_LARGEST_TRANSFORM = 2**21
_BEYOND = 8.2  # standard deviations after which a ratio counts as disclosure: 1e-16
_WINDOW = 13.0  # standard deviations of the sum on either side
_TILT = 18.0  # theta times the cap: what a ratio beyond it would weigh
_TILT_BELOW = 3.0  # theta times the window: by how much rounding may grow on the other side
_CARE = 3.0  # everything uncertain is counted three times: under P, under Q, and for making the masses sum to 1
_TOO_UNSURE = 1e-6
_PER_SPREAD, _BULK = 100.0, 7.0  # atoms of the final table


@lru_cache(maxsize=64)  # calibrations and tables ask for the same epoch again and again
def allocation_table(steps: int, distance: float) -> Table | None:
    """A table that dominates one epoch; None where the grid would be too coarse to gain anything."""
    if distance > _FURTHEST:
        return None
    variance = math.expm1(distance * distance)
    spread = math.sqrt(variance)
    cap = math.exp(distance * (distance + _BEYOND) - 0.5 * distance**2)
    width = _WINDOW * math.sqrt(steps * (variance + 1))
    step = max(spread / _FINE, (2 * width + cap) / _LARGEST_TRANSFORM)
    if step > spread / _COARSEST:
        return None
    q = _on_grid(distance, step, cap)
    ratio, law, hidden = _mean_of(q, steps, step, width)
    row = _on_losses(ratio, law, _CARE * (hidden + math.exp(-0.5 * _WINDOW**2) * steps))
    return row if row.delta < _TOO_UNSURE else None


def _on_grid(distance: float, step: float, cap: float) -> Real:
    """Masses of one ratio under Q on the grid 0, h, 2h, ..., its mean kept but for what lies beyond the cap."""
    count = math.ceil(cap / step) + 1
    grid = step * np.arange(count + 1)
    with np.errstate(divide="ignore"):
        y = np.log(grid) / distance + 0.5 * distance
    under_q, under_p = (_cells(y - shift) for shift in (0.0, distance))
    up = np.clip((under_p[:-1] - grid[:-1] * under_q[:-1]) / step, 0.0, under_q[:-1])
    masses = np.zeros(count + 1)
    masses[:-1] += under_q[:-1] - up
    masses[1:] += up
    masses[-1] += under_q[-1]
    return masses


def _cells(y: Real) -> Real:
    """Masses of N(0, 1) between the y, and above the last one."""
    left, right = ndtr(y), ndtr(-y)
    return np.concatenate([np.where(y[1:] < 0, np.diff(left), -np.diff(right)), right[-1:]])


def _mean_of(q: Real, steps: int, step: float, width: float) -> tuple[Real, Real, float]:
    """Values and masses of S, and a bound on the mean that rounding and wrapping may have hidden."""
    grid = step * np.arange(len(q))
    theta = min(_TILT / float(grid[-1]), _TILT_BELOW / width)
    grown = q * np.exp(theta * (grid - 1))  # about the mean, so that powers stay in range
    total = math.fsum(grown)
    log_scale = steps * math.log(total)
    size = 2 ** math.ceil(math.log2(2 * width / step + 1.5 * len(q)))
    first = max(math.floor((steps - width) / step), 0)
    spectrum = np.fft.rfft(np.bincount(np.arange(len(q)) % size, weights=grown / total, minlength=size))
    modulus = np.abs(spectrum)
    powered = np.exp(steps * np.log(np.maximum(modulus, 1e-300)) + 1j * steps * np.angle(spectrum))
    law = np.roll(np.fft.irfft(powered, n=size), -(first % size))
    each = (6 * math.log2(size) + 64) * UNIT
    weight = np.exp((steps - 1) * np.log(np.maximum(modulus + each, 1e-300)))
    wrong = (steps * (each + 8 * UNIT) * float(weight.sum()) + each * float(np.abs(powered).sum())) * 2 / size
    sums = step * (first + np.arange(size))
    back = np.exp(log_scale - theta * (sums - steps))
    values = sums / steps
    end = float(sums[-1])
    top = min(_log_wrapped(q, grid, steps, end, theta * factor) for factor in (1, 2, 4, 8, 16, 32))
    most = np.maximum(values, 1.0) * back  # what a mass of the tilted law weighs, under P and under Q
    turned = min(_log_turned(q, grid, steps, end, theta, factor) for factor in (2, 4, 8, 16))
    hidden = wrong * float(most.sum()) + 2 * math.exp(min(top, 0.0)) + math.exp(min(turned, 0.0)) * float(most.max())
    return values, np.maximum(law, 0.0) * back, hidden


def _log_wrapped(q: Real, grid: Real, steps: int, end: float, theta: float) -> float:
    """log of Chernoff's bound on E[S; sum > end]."""
    if theta * float(grid[-1]) > 600:
        return 0.0
    grown = q * np.exp(theta * (grid - 1))
    return (steps - 1) * math.log(math.fsum(grown)) + math.log(float(grown @ grid)) - theta * (end - steps - 1)


def _log_turned(q: Real, grid: Real, steps: int, end: float, theta: float, factor: float) -> float:
    """log of Chernoff's bound on the tilted mass beyond the end, which turns up at the bottom of the window."""
    high = theta * factor
    if high * float(grid[-1]) > 600:
        return 0.0
    plain, grown = (math.log(math.fsum(q * np.exp(x * (grid - 1)))) for x in (theta, high))
    return steps * (grown - plain) - (high - theta) * (end - steps)


def _on_losses(ratio: Real, law: Real, hidden: float) -> Table:
    """The law of S moved to a table of losses, P- and Q-mass of every cell kept."""
    keep = (law > 0) & (ratio > 0)
    losses, q = np.log(ratio[keep]), law[keep]
    p = q * ratio[keep]
    spread = math.sqrt(float(q @ losses**2) / float(q.sum()))
    unit = spread / _PER_SPREAD
    bulk = np.arange(-math.ceil(_BULK * _PER_SPREAD), math.ceil(_BULK * _PER_SPREAD) + 1)
    last = max(math.ceil(float(losses[-1]) / unit), int(bulk[-1]) + 8)
    index = np.concatenate([bulk, np.arange(int(bulk[-1]) + 8, last + 8, 8)])
    edges = index * unit
    cell = np.searchsorted(edges, losses, side="right") - 1
    inside = cell >= 0
    under_p, under_q = (np.bincount(cell[inside], weights=m[inside], minlength=len(edges))[:-1] for m in (p, q))
    low, high = np.exp(edges[:-1]), np.exp(edges[1:])
    up = np.clip((under_p - low * under_q) / (high - low), 0.0, under_q)
    at = np.zeros(len(edges))
    at[:-1] += under_q - up
    at[1:] += up
    at[0] += float(p[~inside].sum()) / math.exp(float(edges[0]))  # below the table: up to its end, the rest of Q alone
    masses = at * np.exp(edges)
    # mixed with disclosure of probability `hidden`, which dominates
    scale = (1 - hidden) / max(math.fsum(masses), math.fsum(at), 1.0)
    lost, back = 1 - math.fsum(masses) * scale, 1 - math.fsum(at) * scale
    return Table(edges, masses * scale, lost, back, slack=4096.0, wobble=2.0)
