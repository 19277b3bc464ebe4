"""Noisy SGD from the numbers people have: data size, batch size, epochs. Which sampler ran must be said.

>>> import privloss as pl
>>> run = pl.dp_sgd(dataset_size=60_000, batch_size=256, epochs=60, noise_multiplier=1.1, sampling="poisson")
>>> print(run)
60,000 records, batch 256, 235 steps per epoch (60000 / 256 = 234.375, rounded up), 60 epochs: 14,100 steps
sampling: poisson, rate 256/60000 = 0.00426667 at every step
>>> run.epsilon(1e-5).upper < 3
True

`batch_size` is the number of records behind one noisy update, over all micro-batches (`accumulation`) and devices
(`ranks`): how the work is split changes no probability, so it changes no answer. Changing batch size or noise between
phases is a plan: add the plans of the phases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privloss.errors import InvalidInput, Unsupported
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.plan import ADJACENCIES, Plan
from privloss.mechanisms.questions import Questions
from privloss.mechanisms.sampling import EPOCHS, SCHEMES, Sampled
from privloss.numerics import check

NOISES = ("independent", "correlated")


@dataclass(frozen=True)
class DpSgd(Questions):
    """What was derived from the arguments; ask it like a plan."""

    plan: Plan
    dataset_size: int
    batch_size: int
    steps: int
    steps_per_epoch: int
    sampling: str
    told: tuple[str, ...]  # what was derived and how it was rounded

    def as_plan(self) -> Plan:
        return self.plan

    @property
    def sample_rate(self) -> float:
        """batch_size / dataset_size."""
        return self.batch_size / self.dataset_size

    def __str__(self) -> str:
        return "\n".join(self.told)


def dp_sgd(
    *,
    dataset_size: int,
    batch_size: int,
    noise_multiplier: float,
    sampling: str,
    epochs: float | None = None,
    steps: int | None = None,
    adjacency: str = "add-remove",
    accumulation: int = 1,
    ranks: int = 1,
    max_batch_size: int | None = None,
    noise: str = "independent",
) -> DpSgd:
    """The plan of a training run. Give epochs or steps; `max_batch_size` goes with truncated-poisson."""
    size, batch = check.count("dataset_size", dataset_size), check.count("batch_size", batch_size)
    if batch > size:
        raise InvalidInput(f"batch_size = {batch_size!r}: must be at most dataset_size = {size}.")
    scheme = check.choice("sampling", sampling, SCHEMES)
    check.choice("adjacency", adjacency, ADJACENCIES)
    if check.choice("noise", noise, NOISES) == "correlated":
        raise Unsupported(
            "noise = 'correlated': the noise of DP-FTRL and matrix mechanisms is not independent between steps; "
            "privloss has no proven bound for it and will not account for it as independent steps."
        )
    for name, parts in (("accumulation", accumulation), ("ranks", ranks)):
        check.count(name, parts)
    if batch % (accumulation * ranks):
        raise InvalidInput(
            f"accumulation = {accumulation!r}, ranks = {ranks!r}: must divide batch_size = {batch}, the records behind "
            "one noisy update."
        )
    if (max_batch_size is not None) != (scheme == "truncated-poisson"):
        raise InvalidInput(
            f"max_batch_size = {max_batch_size!r}: goes with sampling = 'truncated-poisson', and only with it."
        )
    if (epochs is None) == (steps is None):
        raise InvalidInput(f"epochs = {epochs!r}, steps = {steps!r}: give exactly one of them.")
    per_epoch = -(-size // batch)
    exact = f"{size} / {batch} = {size / batch:g}" + (", rounded up" if size % batch else "")
    if epochs is not None:
        passes = check.number("epochs", epochs, low=0, above=True)
        total = check.count("epochs * steps per epoch", math.ceil(round(passes * per_epoch, 9)))
        part = "" if total == passes * per_epoch else ", rounded up"
        told = f"{passes:g} epochs: {total:,} steps{part}"
    else:
        total = check.count("steps", steps)
        told = f"{total:,} steps"
    first = f"{size:,} records, batch {batch:,}, {per_epoch:,} steps per epoch ({exact}), {told}"
    step = Gaussian(noise_multiplier=check.number("noise_multiplier", noise_multiplier, low=0))
    sampled, what = _sampled(step, scheme, size, batch, per_epoch, max_batch_size)
    count = total
    if scheme in EPOCHS:
        count = -(-total // per_epoch)
        what += f"; {count:,} epochs" + (", the last one counted whole" if total % per_epoch else "")
    split = accumulation * ranks
    shared = (f"every update: {split} micro-batches of {batch // split} (no effect on privacy)",) if split > 1 else ()
    return DpSgd(
        Plan.of((sampled, count), adjacency=adjacency), size, batch, total, per_epoch, scheme,
        (first, f"sampling: {what}", *shared),
    )  # fmt: skip


def _sampled(step: Gaussian, scheme: str, size: int, batch: int, per_epoch: int, most: Any) -> tuple[Sampled, str]:
    """The sampled step (or epoch), and its sentence."""
    rate = batch / size
    if scheme == "poisson":
        return step.poisson(rate), f"poisson, rate {batch}/{size} = {rate:g} at every step"
    if scheme == "fixed-size":
        return step.fixed_size(size, batch), f"fixed size, {batch} of {size} records at every step"
    if scheme == "with-replacement":
        return step.with_replacement(size, batch), f"with replacement, {batch} draws out of {size} at every step"
    if scheme == "truncated-poisson":
        text = f"poisson, rate {batch}/{size} = {rate:g}, cut down to {most} records"
        return step.truncated_poisson(rate, size, most), text
    if scheme == "shuffle":
        return step.shuffled(per_epoch), f"shuffled epochs of {per_epoch} steps"
    return step.allocated(per_epoch), f"random allocation, every record in one of {per_epoch} steps per epoch"
