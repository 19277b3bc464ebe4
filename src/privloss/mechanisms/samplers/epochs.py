"""Samplers by the epoch: one count of a plan is a pass over the data.

>>> from privloss.mechanisms.gaussian import Gaussian
>>> Gaussian(noise_multiplier=1.1).shuffle(steps=10), Gaussian(noise_multiplier=1.1).allocated(steps=10)
(Gaussian(noise_multiplier=1.1).shuffle(steps=10), Gaussian(noise_multiplier=1.1).allocated(steps=10, k=1))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.losses.samplers.allocation import allocation
from privloss.losses.samplers.shuffle import shuffle
from privloss.mechanisms.base import Sampled
from privloss.mechanisms.kinds import Scheme, add_scheme
from privloss.mechanisms.parameters import whole


@dataclass(frozen=True, repr=False)
class Shuffled(Sampled):
    """One epoch: the records are permuted once and cut into `steps` batches, one step each."""

    kind: ClassVar[str] = "shuffle"
    method: ClassVar[str] = "shuffle"
    steps: int = whole()


@dataclass(frozen=True, repr=False)
class Allocated(Sampled):
    """One epoch of `steps` steps: every record independently takes part in `k` of them, chosen at random (k = 1: balls
    in bins)."""

    kind: ClassVar[str] = "allocation"
    method: ClassVar[str] = "allocated"
    steps: int = whole()
    k: int = whole(default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > self.steps:
            raise InvalidInput(f"k = {self.k!r}: a record takes part in at most steps = {self.steps} steps.")


add_scheme(
    Scheme(
        "shuffle",
        Shuffled,
        lambda step, m, at: shuffle(step, m.steps, at),
        "one count is an epoch of `steps` batches of a random permutation",
        training=lambda run: ({"steps": run.steps_per_epoch}, f"shuffled epochs of {run.steps_per_epoch} steps"),
        epochs=True,
        certified="replace-one and zero-out",
    )
)
add_scheme(
    Scheme(
        "allocation",
        Allocated,
        lambda step, m, at: allocation(step, m.steps, m.k, at),
        "one count is an epoch in which every record takes part in k of `steps` steps",
        training=lambda run: (
            {"steps": run.steps_per_epoch},
            f"random allocation, every record in one of {run.steps_per_epoch} steps per epoch",
        ),
        epochs=True,
        certified="without amplification",
    )
)
