"""Which sampler a PyTorch data loader really is: read off its batch sampler, without importing PyTorch.

A sampler is known by its exact class: a subclass may draw otherwise, so it is refused by name, like everything else
without a proven bound. `Ran` answers for whole runs; what it counts are batches, one noisy update each.

*Shuffled epochs.* The lower end is the largest of an epoch's outputs as a test; its law does not depend on which batch
holds the record, so a last batch that is smaller changes nothing. Where a record may be left out of an epoch (batches
dropped, fewer records drawn than there are) the test has less power, and no lower end is claimed. A part of an epoch is
counted whole above and not at all below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE, ZERO_OUT
from privloss.answers import exact
from privloss.errors import InvalidInput, Unsupported
from privloss.mechanisms.base import Mechanism, Plan, on_scheme
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.pure_dp import PureDP
from privloss.numerics import check
from privloss.numerics.bound import Bound

Steps = tuple[tuple[Mechanism, int], ...]
_KEPT = (ZERO_OUT, REPLACE_ONE)  # where all other records keep their batches
_TRIED = (ADD_REMOVE, *_KEPT)  # the first that has a proven bound is answered, and named
_TO_ITS_END = "assumes that every epoch runs to its end"  # else a record may be in more of them than are counted


@dataclass(frozen=True)
class Draw:
    """A sampler by its name (None: the same batches in every epoch), with its numbers, for some batches in a row."""

    scheme: str | None
    numbers: tuple[tuple[str, Any], ...]
    batches: int

    def on(self, noise_multiplier: float) -> Mechanism:
        release = Gaussian(noise_multiplier=noise_multiplier)
        return release if self.scheme is None else on_scheme(release, self.scheme, **dict(self.numbers))


@dataclass(frozen=True)
class Ran:
    """The sampler of a loader. `by_epoch`: one use of its draw is a whole epoch; `attained`: its lower end is too."""

    what: str
    draws: tuple[Draw, ...]
    by_epoch: bool = False
    attained: bool = True
    adjacencies: tuple[str, ...] = _TRIED
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def batches(self) -> int:
        """Batches of one epoch."""
        return sum(draw.batches for draw in self.draws)

    def is_poisson(self, rate: float) -> bool:
        """Whether this is what an accountant of Poisson samples at this rate assumes."""
        return [draw.on(1.0) for draw in self.draws] == [Gaussian(noise_multiplier=1.0).poisson(rate)]

    def steps(self, noise_multiplier: float, batches: int, *, below: bool = False) -> Steps:
        """What ran, if `batches` batches did; `below`: a part of it that surely ran."""
        epochs, rest = divmod(batches, self.batches)
        if self.by_epoch:
            whole = epochs if below else epochs + (rest > 0)
            draws = () if below and not self.attained else self.draws
            return tuple((draw.on(noise_multiplier), whole) for draw in draws if whole)
        found, start = [], 0
        for draw in self.draws:
            count = epochs * draw.batches + min(max(rest - start, 0), draw.batches)
            start += draw.batches
            if count:
                found.append((draw.on(noise_multiplier), count))
        return tuple(found)

    def accumulated(self, times: int) -> Ran:
        """With `times` batches behind every update."""
        if times == 1:
            return self
        if not self.by_epoch or self.batches % times:
            raise Unsupported(
                f"{times} batches behind one update of {self.what}: a record may be in several of them, and moves the "
                "update by several clipping norms; take one batch of that size."
            )
        draws = tuple(
            replace(d, batches=d.batches // times, numbers=tuple((k, d.batches // times) for k, _ in d.numbers))
            for d in self.draws
        )
        return replace(self, draws=draws, what=f"{self.what}, {times} of them behind one update")

    def plan(self, *, noise_multiplier: float, epochs: int) -> Plan:
        """A run of whole epochs, under the first adjacency for which it has a proven bound."""
        times = check.count("epochs", epochs)
        return proven(self.steps(noise_multiplier, times * self.batches), self.adjacencies)

    def epsilon(self, delta: float, *, noise_multiplier: float, epochs: int) -> Bound:
        """Epsilon of a run of whole epochs."""
        times = check.count("epochs", epochs)
        return epsilon([(self, noise_multiplier, times * self.batches)], delta)

    def __str__(self) -> str:
        return "\n".join((self.what, *(f"note: {text}" for text in self.notes)))


Phase = tuple[Ran, float, int]  # what ran, at which noise multiplier, how many batches


def proven(steps: Steps, adjacencies: Iterable[str]) -> Plan:
    """The plan under the first of the adjacencies that has a proven bound for all of it."""
    plans = [Plan(steps, adjacency) for adjacency in adjacencies]
    found = next((plan for plan in plans if plan.supported()), None)
    if found is None:
        raise Unsupported(plans[0].supported().reason)
    return found


def plans(phases: Iterable[Phase], others: Steps = (), adjacencies: Iterable[str] = _TRIED) -> tuple[Plan, Plan]:
    """Everything that ran, from above and from below, under the first adjacency that has a proven bound for all of it:
    below fewer steps may stand, post-processing of the whole, so a lower end of theirs is one of the whole."""
    ran = tuple(phases)
    allowed = [a for a in adjacencies if all(a in r.adjacencies for r, _, _ in ran)]
    if not allowed:
        raise Unsupported(f"{ran[0][0].what}: has no proven bound under {', '.join(adjacencies)}.")
    above = proven(sum((r.steps(s, n) for r, s, n in ran), others), allowed)
    below = sum((r.steps(s, n, below=True) for r, s, n in ran), others)
    return above, Plan(below or ((PureDP(0.0), 1),), above.adjacency)


def epsilon(phases: Iterable[Phase], delta: float, others: Steps = ()) -> Bound:
    """The interval of everything that ran; the method names the adjacency it is proven for."""
    above, below = plans(phases, others)
    upper = exact.one_epsilon(above, delta)
    lower = upper if below == above else exact.one_epsilon(below, delta)
    return Bound(min(lower.lower, upper.upper), upper.upper, f"{upper.method}, under {above.adjacency}", upper.notes)


# -- reading -----------------------------------------------------------------------------------------------------------


def explain_loader(loader: Any) -> Ran:
    """The sampler that really runs in a `DataLoader`; refused by name if there is no proven bound for it."""
    sampler = getattr(loader, "batch_sampler", None)
    if sampler is None:
        raise Unsupported(f"{_name(loader)} without a batch sampler: what it draws cannot be read; give batch_size.")
    ran = _read(sampler)
    seen = int(1 / (1 / ran.batches))  # how Opacus counts the batches of an epoch
    if seen == ran.batches:
        return ran
    told = f"Opacus calibrates for int(1/rate) = {seen} of the {ran.batches} batches of an epoch"
    return replace(ran, notes=(*ran.notes, told))


def _read(sampler: Any) -> Ran:
    reader = _READERS.get(_name(sampler))
    if reader is None:
        raise _unknown(sampler)
    return reader(sampler)


def _name(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _unknown(sampler: Any) -> Unsupported:
    return Unsupported(
        f"sampler {_name(sampler)}: has no proven bound here; known are Opacus's Poisson samplers, and PyTorch's "
        "BatchSampler over a RandomSampler or SequentialSampler."
    )


def _poisson(sampler: Any) -> Ran:
    return _independent(sampler.sample_rate, len(sampler), ())


def _distributed(sampler: Any) -> Ran:
    """Every record belongs to one replica of an epoch, which samples it at the same rate."""
    note = f"assumes that none of the {sampler.num_replicas} replicas skips a batch because it is empty"
    return _independent(sampler.sample_rate, len(sampler), (note,))


def _independent(rate: Any, steps: int, notes: tuple[str, ...]) -> Ran:
    q = check.number("sample_rate", rate, low=0, high=1, above=True)
    meant = round(1 / q)
    if meant != steps:
        told = f"rate {q:g} = 1/{meant}, but {steps} batches per epoch: int(1/rate) was rounded down"
        notes = (told if steps == int(1 / q) else f"{steps} batches per epoch at rate {q:g}", *notes)
    what = f"Poisson samples of rate {q:g}, {steps} per epoch"
    return Ran(what, (Draw("poisson", (("rate", q),), steps),), notes=notes)


def _split(sampler: Any) -> Ran:
    """Batches cut into smaller ones for memory, with one noisy update for all of them."""
    return _read(sampler.sampler)


def _batches(sampler: Any) -> Ran:
    size = check.count("batch_size", sampler.batch_size)
    reader = _ORDERS.get(_name(sampler.sampler))
    if reader is None:
        raise _unknown(sampler.sampler)
    return reader(sampler.sampler, size, bool(sampler.drop_last))


def _sequential(order: Any, size: int, drop: bool) -> Ran:
    """A record stays in its batch: one plain release per epoch, attained by the first record. One record more would
    move all behind it to other places, so not under add-remove."""
    steps, _ = _cut(len(order), size, drop)
    what = f"the same {steps} batches in every epoch, not shuffled"
    return Ran(what, (Draw(None, (), steps),), by_epoch=True, adjacencies=_KEPT, notes=(_TO_ITS_END,))


def _random(order: Any, size: int, drop: bool) -> Ran:
    records, drawn = len(order.data_source), len(order)
    if order.replacement:
        full, rest = divmod(drawn, size)
        sizes = [(size, full), (rest, 0 if drop else 1)]
        draws = [Draw("with-replacement", (("n", records), ("m", m)), k) for m, k in sizes if m and k]
        if not draws:
            raise InvalidInput(f"batch_size = {size}: with drop_last no batch is left of {drawn} draws.")
        return Ran(f"{size} draws with replacement out of {records} at every step", tuple(draws))
    if drawn > records:
        raise Unsupported(
            f"RandomSampler(num_samples={drawn}) of {records} records: repeats records in an epoch; no proven bound."
        )
    steps, left = _cut(drawn, size, drop)
    kept = drawn - left == records
    missing = f"{records - drawn + left} of {records} records are left out of an epoch: no lower end"
    draw = Draw("shuffle", (("steps", steps),), steps)
    notes = (_TO_ITS_END,) if kept else (_TO_ITS_END, missing)
    return Ran(f"shuffled epochs of {steps} batches", (draw,), by_epoch=True, attained=kept, notes=notes)


def _cut(records: int, size: int, drop: bool) -> tuple[int, int]:
    """Batches, and records that are in none of them."""
    full, rest = divmod(records, size)
    if drop and not full:
        raise InvalidInput(f"batch_size = {size}: with drop_last no batch is left of {records} records.")
    return (full, rest) if drop else (full + (rest > 0), 0)


_ORDERS: dict[str, Callable[[Any, int, bool], Ran]] = {
    "torch.utils.data.sampler.RandomSampler": _random,
    "torch.utils.data.sampler.SequentialSampler": _sequential,
}
_READERS: dict[str, Callable[[Any], Ran]] = {
    "opacus.utils.uniform_sampler.UniformWithReplacementSampler": _poisson,  # Poisson, despite its name
    "opacus.utils.uniform_sampler.DistributedUniformWithReplacementSampler": _distributed,
    "opacus.utils.batch_memory_manager.BatchSplittingSampler": _split,
    "torch.utils.data.sampler.BatchSampler": _batches,
}
