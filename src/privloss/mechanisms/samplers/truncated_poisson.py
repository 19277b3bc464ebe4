"""Poisson sampling into batches of limited size.

>>> from privloss.mechanisms.gaussian import Gaussian
>>> Gaussian(noise_multiplier=1.1).truncated_poisson(0.01, n=1000, most=20)
Gaussian(noise_multiplier=1.1).truncated_poisson(rate=0.01, n=1000, most=20)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.losses.samplers.truncated_poisson import truncated_poisson
from privloss.mechanisms.base import Sampled
from privloss.mechanisms.kinds import Scheme, add_scheme
from privloss.mechanisms.parameters import number, whole
from privloss.mechanisms.samplers.poisson import rate_text


@dataclass(frozen=True, repr=False)
class TruncatedPoisson(Sampled):
    """A Poisson sample of which, if it has more than `most` records, a uniform choice of `most` is kept."""

    kind: ClassVar[str] = "truncated-poisson"
    method: ClassVar[str] = "truncated_poisson"
    rate: float = number(high=1.0)
    n: int = whole()
    most: int = whole()


add_scheme(
    Scheme(
        "truncated-poisson",
        TruncatedPoisson,
        lambda step, m, at: truncated_poisson(step, m.rate, m.n, m.most, at),
        "a Poisson sample of n records, cut down to at most `most`",
        training=lambda run: (
            {"rate": run.rate, "n": run.records, "most": run.most},
            f"poisson, {rate_text(run)}, cut down to {run.most} records",
        ),
        limits_batches=True,
        certified="all adjacencies",
    )
)
