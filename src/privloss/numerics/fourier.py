"""Convolutions by discrete Fourier transforms of doubles, with a proven error.

Cooley and Tukey's algorithm for N = 2^t returns y' with ||y' - y|| <= e ||y|| in the Euclidean norm, e = t eta/(1 - t
eta), eta = mu + gamma_4 (sqrt 2 + mu), where the roots of unity err by mu (Higham 2002, Thm. 24.2): about 7 t units.
Passes of radix 3 and 5 have as many roundings for every factor of two; `transform_error` charges more than twice that.

For sequences x_g >= 0 with sum at most 1 every coefficient of their transforms has modulus at most 1, the transform
of x_g has norm sqrt(N) ||x_g||, and the cyclic convolution has norm at most min ||x_g|| (Young). So errors of the
factors add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privloss.numerics.floats import UNIT, Real, padded_up

_OVER = 1.01  # products of errors, and sums that exceed 1 by roundings


def transform_error(size: int) -> float:
    """The relative error of a transform of this size, in the Euclidean norm."""
    return (16 * math.log2(size) + 32) * UNIT


def fast_size(least: float) -> int:
    """The smallest 2^t, 3 * 2^t or 5 * 2^t that is large enough.

    >>> fast_size(5), fast_size(11), fast_size(40)
    (5, 12, 40)
    """
    return min(odd << max(math.ceil(math.log2(max(least, 1) / odd)), 0) for odd in (1, 3, 5))


def convolved(factors: Sequence[Real], size: int) -> tuple[Real, float]:
    """The cyclic convolution of sequences >= 0, each of sum at most 1 (up to roundings) and at most so long, and a
    bound on the Euclidean norm of its error. What occurs again (the same object) is transformed once."""
    spectra = {id(one): np.fft.rfft(one, n=size) for one in {id(one): one for one in factors}.values()}
    product = np.ones(size // 2 + 1, dtype=complex)
    for one in factors:
        product *= spectra[id(one)]
    norms = [float(np.linalg.norm(one)) for one in factors]
    own, least = transform_error(size), min(norms)
    wrong = own * math.fsum(norms) + (own + 4 * len(factors) * UNIT) * least
    return np.fft.irfft(product, n=size), padded_up(_OVER * wrong, 1e-9)


def powered(masses: Real, log_tilt: float, count: int, size: int) -> tuple[Real, float, float]:
    """The cyclic convolution of so many copies of a sequence >= 0 (at most so long), tilted by e^(log_tilt j): with
    sum 1, a bound on the Euclidean norm of its error, and the logarithm of what it was divided by.

    Every coefficient of the first transform errs by at most its share of the roundings of log2(N) passes, all of
    whose numbers are sums of terms that add up to 1; so a power y^n errs by n (|y| + e)^(n-1) e, and by the roundings
    of n arg y and n log|y|.
    """
    grown = masses * np.exp(log_tilt * np.arange(len(masses)))
    total = float(grown.sum())
    found = np.fft.rfft(grown / total, n=size)
    each, modulus = transform_error(size), np.abs(found)
    logs = np.log(np.maximum(modulus, 1e-300))
    power = np.exp(count * logs + 1j * count * np.angle(found))
    moved = count * each * np.exp((count - 1) * np.log(modulus + each))
    moved += 8 * UNIT * (2 + 4 * count + count * np.abs(logs)) * np.abs(power)
    norm = math.sqrt(2 / size) * float(np.linalg.norm(moved))  # the other half of the spectrum is its conjugate
    law = np.fft.irfft(power, n=size)
    norm += 2 * each * (float(np.linalg.norm(law)) + norm)
    return law, padded_up(_OVER * norm, 1e-9), count * math.log(total)
