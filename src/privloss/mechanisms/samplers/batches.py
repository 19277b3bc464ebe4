"""Batches of a given size, without and with replacement.

>>> from privloss.mechanisms.gaussian import Gaussian
>>> Gaussian(noise_multiplier=1.1).fixed_size(n=60_000, m=256).to_dict()["sampling"]
{'scheme': 'fixed-size', 'n': 60000, 'm': 256}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.losses.samplers.fixed_size import fixed_size
from privloss.losses.samplers.with_replacement import with_replacement
from privloss.mechanisms.base import Sampled
from privloss.mechanisms.kinds import Scheme, add_scheme
from privloss.mechanisms.parameters import whole


@dataclass(frozen=True, repr=False)
class FixedSize(Sampled):
    """A batch of exactly m different records out of n (n is public), uniform, fresh at every step."""

    kind: ClassVar[str] = "fixed-size"
    method: ClassVar[str] = "fixed_size"
    n: int = whole()
    m: int = whole()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.m > self.n:
            raise InvalidInput(f"m = {self.m!r}: a batch without replacement has at most n = {self.n} records.")


@dataclass(frozen=True, repr=False)
class WithReplacement(Sampled):
    """m independent draws out of n records (n is public): one record may come several times."""

    kind: ClassVar[str] = "with-replacement"
    method: ClassVar[str] = "with_replacement"
    n: int = whole()
    m: int = whole()


add_scheme(
    Scheme(
        "fixed-size",
        FixedSize,
        lambda step, m, at: fixed_size(step, m.n, m.m, at),
        "m different records out of n",
        training=lambda run: (
            {"n": run.records, "m": run.batch},
            f"fixed size, {run.batch} of {run.records} records at every step",
        ),
        certified="all adjacencies; zero-out without a lower end",
    )
)
add_scheme(
    Scheme(
        "with-replacement",
        WithReplacement,
        lambda step, m, at: with_replacement(step, m.n, m.m, at),
        "m independent draws out of n records",
        training=lambda run: (
            {"n": run.records, "m": run.batch},
            f"with replacement, {run.batch} draws out of {run.records} at every step",
        ),
        certified="all adjacencies",
    )
)
