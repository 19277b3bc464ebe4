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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privloss.adjacency import ADJACENCIES
from privloss.errors import InvalidInput, Unsupported
from privloss.mechanisms.base import Mechanism, Plan, Sampled, on_scheme
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.kinds import SCHEMES, Scheme, Training, scheme_named, schemes
from privloss.mechanisms.questions import Questions
from privloss.mechanisms.select_best import select_best
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
    tuning: Mapping[str, Any] | None = None,
) -> DpSgd:
    """The plan of a training run. Give epochs or steps; `max_batch_size` goes with truncated-poisson. `tuning`: the
    run is the best of several, {"mean": 10} or {"mean": 10, "shape": 0} or {"trials": 3} as in `select_best`."""
    size, batch = check.count("dataset_size", dataset_size), check.count("batch_size", batch_size)
    if batch > size:
        raise InvalidInput(f"batch_size = {batch_size!r}: must be at most dataset_size = {size}.")
    scheme = SCHEMES[check.choice("sampling", scheme_named(sampling), schemes())]
    check.choice("adjacency", adjacency, ADJACENCIES)
    if check.choice("noise", noise, NOISES) == "correlated":
        raise Unsupported(
            "noise = 'correlated': the noise of DP-FTRL and matrix mechanisms is not independent between steps and "
            "never accounted for as if it were; say which matrix made it: pl.dp_ftrl(...) or pl.MatrixMechanism(...)."
        )
    split = _micro_batches(batch, accumulation, ranks)
    if (max_batch_size is not None) != scheme.limits_batches:
        raise InvalidInput(
            f"max_batch_size = {max_batch_size!r}: goes with sampling = 'truncated-poisson', and only with it."
        )
    per_epoch = -(-size // batch)
    total, told = steps_in_all(epochs, steps, per_epoch)
    first = f"{sizes_in_words(size, batch)}, {told}"
    step = Gaussian(noise_multiplier=check.number("noise_multiplier", noise_multiplier, low=0))
    sampled, what = _sampled(step, scheme, Training(size, batch, per_epoch, max_batch_size))
    count = total
    if scheme.epochs:
        count = -(-total // per_epoch)
        what += f"; {count:,} epochs" + (", the last one counted whole" if total % per_epoch else "")
    shared = (f"every update: {split} micro-batches of {batch // split} (no effect on privacy)",) if split > 1 else ()
    plan, tuned = _tuned(Plan.of((sampled, count), adjacency=adjacency), tuning)
    return DpSgd(
        plan, size, batch, total, per_epoch, scheme.name, (first, f"sampling: {what}", *shared, *tuned)
    )  # fmt: skip


def _tuned(plan: Plan, tuning: Mapping[str, Any] | None) -> tuple[Plan, tuple[str, ...]]:
    """The best of several such runs, if they are tuned, and the sentence about it."""
    if tuning is None:
        return plan, ()
    if not isinstance(tuning, Mapping) or not set(tuning) <= {"mean", "shape", "trials"}:
        raise InvalidInput(f"tuning = {tuning!r}: must say mean (and shape) or trials, as in select_best.")
    best = select_best(plan, **tuning)
    runs = f"{best.trials} runs" if best.trials is not None else f"{best.mean:g} runs in the mean"
    return Plan.of(best, adjacency=plan.adjacency), (f"tuning: the best of {runs}, their number secret",)


def sizes_in_words(size: int, batch: int) -> str:
    """Records, batch and steps per epoch."""
    exact = f"{size} / {batch} = {size / batch:g}" + (", rounded up" if size % batch else "")
    return f"{size:,} records, batch {batch:,}, {-(-size // batch):,} steps per epoch ({exact})"


def _micro_batches(batch: int, accumulation: int, ranks: int) -> int:
    """Into how many parts one update is split."""
    for name, parts in (("accumulation", accumulation), ("ranks", ranks)):
        check.count(name, parts)
    if batch % (accumulation * ranks):
        raise InvalidInput(
            f"accumulation = {accumulation!r}, ranks = {ranks!r}: must divide batch_size = {batch}, the records behind "
            "one noisy update."
        )
    return accumulation * ranks


def steps_in_all(epochs: float | None, steps: int | None, per_epoch: int) -> tuple[int, str]:
    """How many steps run, and how that was found."""
    if (epochs is None) == (steps is None):
        raise InvalidInput(f"epochs = {epochs!r}, steps = {steps!r}: give exactly one of them.")
    if epochs is None:
        total = check.count("steps", steps)
        return total, f"{total:,} steps"
    passes = check.number("epochs", epochs, low=0, above=True)
    total = check.count("epochs * steps per epoch", math.ceil(round(passes * per_epoch, 9)))
    part = "" if total == passes * per_epoch else ", rounded up"
    return total, f"{passes:g} epochs: {total:,} steps{part}"


def _sampled(step: Mechanism, scheme: Scheme, run: Training) -> tuple[Sampled, str]:
    """The sampled step (or epoch), and its sentence."""
    if scheme.training is None:
        raise Unsupported(f"sampling = {scheme.name!r}: has no meaning for a training run.")
    parameters, what = scheme.training(run)
    return on_scheme(step, scheme.name, **parameters), what
