"""Gaussian noise.

Two ways to say how much, because they are often confused:

- ``noise_multiplier``: noise / bound on one record's contribution to a *sum* (the clipping norm C). The sensitivity
  follows from the adjacency: C under add-remove and zero-out, 2C under replace-one.
- ``sigma`` with ``sensitivity``: the noise and the query's l2 sensitivity under the plan's adjacency; nothing is
  doubled. For vectors the l2 norm is all that matters (Cor. gauss_adp_exact_multi).

>>> Gaussian(1.1)
Gaussian(noise_multiplier=1.1)
>>> Gaussian(sigma=3.0, sensitivity=2.0)
Gaussian(sigma=3.0, sensitivity=2.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check


@dataclass(frozen=True, repr=False)
class Gaussian(Mechanism):
    """A query plus N(0, sigma^2) noise (per coordinate)."""

    kind: ClassVar[str] = "gaussian"
    noise_multiplier: float | None = None
    sigma: float | None = None
    sensitivity: float | None = None

    def __post_init__(self) -> None:
        if (self.noise_multiplier is None) == (self.sigma is None):
            raise InvalidInput(
                f"noise_multiplier = {self.noise_multiplier!r}, sigma = {self.sigma!r}: give exactly one of them."
            )
        if self.noise_multiplier is not None:
            if self.sensitivity is not None:
                raise InvalidInput(
                    f"sensitivity = {self.sensitivity!r}: goes with sigma; noise_multiplier is noise / clipping norm."
                )
            set_field(self, "noise_multiplier", check.number("noise_multiplier", self.noise_multiplier, low=0))
        else:
            set_field(self, "sigma", check.number("sigma", self.sigma, low=0))
            if self.sensitivity is not None:
                set_field(self, "sensitivity", check.number("sensitivity", self.sensitivity, low=0, above=True))
