"""Adaptive clipping (Andrew et al. 2021): every step also releases how many gradients were within the norm bound.

Both releases are one vector Gaussian: in units of the noise the gradient moves 1/z and the bit b - 1/2, *centred*,
0.5/sigma_b, so that 1/z_total^2 = 1/z^2 + (0.5/sigma_b)^2. A record with a gradient of norm C attains it, and a
replaced one twice that. Centred means that a record which is absent, or zeroed out, adds 0 to the sum of b - 1/2; where
a zeroed gradient still votes, its bit moves by 1 and this number is too small.

>>> adaptive_clipping(noise_multiplier=1.0, bit_noise=10.0)
Gaussian(noise_multiplier=0.99875...)
>>> gradient_noise(1.0, bit_noise=10.0)
1.00125234...
"""

from __future__ import annotations

import math

from privloss.errors import InvalidInput
from privloss.mechanisms.gaussian import Gaussian
from privloss.numerics import check
from privloss.numerics.floats import lowered, raised


def adaptive_clipping(*, noise_multiplier: float, bit_noise: float) -> Gaussian:
    """One step as one Gaussian release, put on a sampler as such: noise on the gradients in units of the norm bound,
    noise on the sum of centred bits."""
    z = check.number("noise_multiplier", noise_multiplier, low=0)
    s = check.number("bit_noise", bit_noise, low=0)
    if z == 0 or s == 0:
        return Gaussian(noise_multiplier=0.0)
    return Gaussian(noise_multiplier=lowered(1 / math.hypot(1 / z, 0.5 / s), 12))


def gradient_noise(total: float, *, bit_noise: float) -> float:
    """z such that a step has the noise multiplier `total` in all: (total^-2 - (2 sigma_b)^-2)^(-1/2), rounded up."""
    wanted = check.number("total", total, low=0, above=True)
    s = check.number("bit_noise", bit_noise, low=0, above=True)
    rest = (1 / wanted - 0.5 / s) * (1 / wanted + 0.5 / s)
    if rest <= 0:
        raise InvalidInput(f"bit_noise = {bit_noise!r}: must be above half of total = {total!r}.")
    units = 16 * (1 / wanted + 0.5 / s) / (1 / wanted - 0.5 / s)
    return raised(1 / math.sqrt(rest), units)
