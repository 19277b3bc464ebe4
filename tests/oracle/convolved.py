"""epsilon of sampled discrete noise by convolutions of whole numbers: an oracle that shares nothing with the engine.

The loss of one step is put on a grid by six-point stencils that keep the moments 0 to 5 of every atom, in fixed point
with BITS bits; its n-fold convolution is a power of a polynomial modulo x^N - 1, in exact integer arithmetic but for
floors to fixed point. Losses beyond a limit are left out: a composition that has one of them surely exceeds eps, so
that they add P[some] - e^eps Q[some]. epsilon is a point of the grid, and the sum over the kink there is corrected by
Euler and Maclaurin's formula. The error is of sixth order where the composed loss is smooth on the scale of the grid,
of second order where it is not: two sizes of the grid tell. They do not tell where the loss has a fine structure that
no size sees: if e^(1/sigma^2) is nearly whole, losses of many steps nearly lie on a lattice much finer than the grid,
and all sizes agree on a wrong value. `hidden` estimates that error. With two-point stencils, the masses under both
measures kept, it is an upper bound (Doroshenko et al. 2022, "connect the dots").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import mpmath as mp
import numpy as np
from flint import fmpz_poly

Number = TypeVar("Number", float, mp.mpf)

BITS = 192
FAR = 40  # of outcomes, in units of sigma: e^-800
mp.mp.prec = 220


@dataclass(frozen=True)
class Pair:
    """(1-q) Q + q P against Q: losses, and masses under both."""

    losses: list[mp.mpf]
    above: list[mp.mpf]
    below: list[mp.mpf]

    def turned(self) -> Pair:
        return Pair([-v for v in self.losses], self.below, self.above)


def gaussian(sigma: float, rate: float, sensitivity: int = 1) -> Pair:
    s, q = mp.mpf(sigma), mp.mpf(rate)
    reach = math.ceil(FAR * sigma) + sensitivity
    weight = {k: mp.exp(-(k**2) / (2 * s * s)) for k in range(-reach, reach + 1)}
    total = mp.fsum(weight.values())
    return _sampled(
        [(weight[k] / total, weight[k - sensitivity] / total) for k in range(-reach + sensitivity, reach + 1)], q
    )


def laplace(scale: float, rate: float, sensitivity: int = 1) -> Pair:
    a, q = mp.mpf(1) / mp.mpf(scale), mp.mpf(rate)
    reach = math.ceil(200 * scale) + sensitivity
    total = (1 + mp.exp(-a)) / (1 - mp.exp(-a))
    pairs = [
        (mp.exp(-a * abs(k)) / total, mp.exp(-a * abs(k - sensitivity)) / total)
        for k in range(-reach, reach + sensitivity)
    ]
    return _sampled(pairs, q)


def _sampled(pairs: list[tuple[mp.mpf, mp.mpf]], q: mp.mpf) -> Pair:
    below = [m for m, _ in pairs]
    above = [(1 - q) * m + q * p for m, p in pairs]
    return Pair([mp.log(1 + q * (p / m - 1)) for m, p in pairs], above, below)


def delta(pair: Pair, steps: int, eps: float, size: int, parts: float, linear: bool = False) -> tuple[mp.mpf, mp.mpf]:
    """delta(eps) and -d delta / d eps; the grid has `size` points, `parts` of them up to eps."""
    h = mp.mpf(eps) / round(parts)
    limit = h * size * mp.mpf("0.3")
    near = [i for i, v in enumerate(pair.losses) if v <= limit]
    scale = mp.mpf(2) ** BITS
    weights = _on_grid(pair, near, h, size, linear)
    coefficients = [int(mp.floor(w * scale)) for w in weights]
    power = _power(coefficients, steps, size)
    m = round(parts)
    last = int(size * 0.62)
    values = [mp.mpf(power[i]) / scale for i in range(m - 3, last)]
    grown = [-mp.expm1((m - i) * h) for i in range(m, last)]
    total = mp.fsum(p * g for p, g in zip(values[3:], grown, strict=True))
    tail = mp.fsum(p * mp.exp((m - i) * h) for i, p in zip(range(m, last), values[3:], strict=True))
    slope = tail - values[3] / 2
    if not linear:
        total += _kink(values[2], values[3], values[4], h)
    some, other = _far(pair, set(near), steps, eps)
    return total + some - other, slope + other


def fine(pair: Pair, steps: int, eps: float, points: int, size: int) -> float:
    """delta(eps) on a grid of many more points, `points` of them up to eps, by Fourier transforms in doubles: to about
    1e-15 in all, which is enough where delta is not small."""
    h, last = mp.mpf(eps) / points, int(size * 0.72)
    weights = np.array(_on_grid(pair, list(range(len(pair.losses))), h, size, False), dtype=float)
    found = np.fft.irfft(np.fft.rfft(weights) ** steps, size)
    grown = -np.expm1(float(h) * (points - np.arange(points, last)))
    return float(found[points:last] @ grown) + _kink(*(float(found[points + i]) for i in (-1, 0, 1)), float(h))


def _kink(before: Number, at: Number, after: Number, h: Number) -> Number:
    """What Euler and Maclaurin's formula adds to the sum."""
    second, first = (after - 2 * at + before) / h**2, (after - before) / (2 * h)
    return h / 12 * at - h**3 / 720 * (3 * second - 3 * first + at)


def hidden(pair: Pair, steps: int, eps: float, size: int, parts: float, goal: float = 1e-11) -> float:
    """About the error of `delta`, relative to delta, from frequencies t of the composed loss that the grid hides.

    The stencils wipe out |phi(t)|^n where n (h t)^6 is large. There a peak of it makes the density near eps swing by
    twice its height, and delta by 2 / t^2 of that. Frequencies end where a full swing is worth less than the goal.
    """
    h = eps / round(parts)
    keep = [i for i, m in enumerate(pair.above) if m * steps > 1e-4]
    losses, masses = (np.array([float(x[i]) for i in keep]) for x in (pair.losses, pair.above))
    spread = math.sqrt(steps * float(masses @ np.minimum(np.abs(losses), eps) ** 2))
    value, slope = delta(pair, steps, eps, 2**11, parts / size * 2**11)
    density = float(slope / value) ** 2  # about, over delta
    total, step, chunk = 0.0, 0.5 / spread, 1 << 14
    for start in range(int(1 / (h * step)) + 1, int(math.sqrt(2 * density / goal) / step) + 2, chunk):
        t = step * np.arange(start, start + chunk)
        height = np.abs(np.exp(1j * np.multiply.outer(t, losses)) @ masses) ** steps
        total += float((height * np.minimum(1.0, 0.005 * steps * (h * t) ** 6) / t**2).sum())
    return 2 * density * total * step * spread / math.sqrt(2 * math.pi)


def _far(pair: Pair, near: set[int], steps: int, eps: float) -> tuple[mp.mpf, mp.mpf]:
    far = set(range(len(pair.losses))) - near
    p, q = mp.fsum(pair.above[i] for i in far), mp.fsum(pair.below[i] for i in far)
    some, other = -mp.expm1(steps * mp.log1p(-p)), mp.exp(eps) * -mp.expm1(steps * mp.log1p(-q))
    return some, other


def _on_grid(pair: Pair, near: list[int], h: mp.mpf, size: int, linear: bool) -> list[mp.mpf]:
    weights = [mp.mpf(0)] * size
    for i in near:
        x = pair.losses[i] / h
        start = int(mp.floor(x)) - (0 if linear else 2)
        if linear:  # masses under both measures are kept
            low, high = mp.exp(-start * h), mp.exp(-(start + 1) * h)
            share = (mp.exp(-pair.losses[i]) - low) / (high - low)
            parts_of = [1 - share, share]
        else:
            parts_of = _stencil(x - start)
        for k, w in enumerate(parts_of):
            weights[(start + k) % size] += w * pair.above[i]
    return weights


def _stencil(x: mp.mpf) -> list[mp.mpf]:
    """Lagrange's weights of the points 0..5 for a point x."""
    found = []
    for k in range(6):
        w = mp.mpf(1)
        for j in range(6):
            if j != k:
                w *= (x - j) / (k - j)
        found.append(w)
    return found


def _power(coefficients: list[int], steps: int, size: int) -> list[int]:
    base, found, left = fmpz_poly(coefficients), None, steps
    while left:
        if left & 1:
            found = base if found is None else _folded(found * base, size)
        left >>= 1
        if left:
            base = _folded(base * base, size)
    assert found is not None
    return [int(c) for c in found.coeffs()] + [0] * (size - len(found.coeffs()))


def _folded(product: fmpz_poly, size: int) -> fmpz_poly:
    c = product.coeffs()
    low, high = c[:size], c[size:]
    return fmpz_poly([(int(a) + (int(high[i]) if i < len(high) else 0)) >> BITS for i, a in enumerate(low)])
