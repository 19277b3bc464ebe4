"""Mechanisms that see a random sample of the data: which sampler ran is part of what ran.

>>> from privloss.mechanisms.gaussian import Gaussian
>>> Gaussian(noise_multiplier=1.1).poisson(0.01)
Gaussian(noise_multiplier=1.1).poisson(0.01)
>>> Gaussian(noise_multiplier=1.1).fixed_size(n=60_000, m=256).to_dict()["sampling"]
{'scheme': 'fixed-size', 'n': 60000, 'm': 256}

For `shuffle` and `allocation` one count of a plan is one epoch, a pass over the data in `steps` batches; for all others
it is one step.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check


@dataclass(frozen=True, repr=False)
class Sampled(Mechanism):
    """`mechanism` run on a sample."""

    method: ClassVar[str]  # the method of a mechanism that makes it
    mechanism: Mechanism

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidInput(f"mechanism = {self.mechanism!r}: must be a mechanism.")
        if isinstance(self.mechanism, Sampled):
            hint = "; multiply the rates of nested Poisson samples" if self.kind == "poisson" else ""
            raise InvalidInput(f"mechanism = {self.mechanism!r}: is sampled already{hint}.")

    def parameters(self) -> dict[str, Any]:
        """The sampler's own numbers."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "mechanism"}

    def to_dict(self) -> dict[str, Any]:
        return {**self.mechanism.to_dict(), "sampling": {"scheme": self.kind, **self.parameters()}}

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self.parameters().items())
        return f"{self.mechanism!r}.{self.method}({given})"


@dataclass(frozen=True, repr=False)
class PoissonSampled(Sampled):
    """Each record enters independently with probability `rate`."""

    kind: ClassVar[str] = "poisson"
    method: ClassVar[str] = "poisson"
    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "rate", check.number("rate", self.rate, low=0, high=1))

    def __repr__(self) -> str:
        return f"{self.mechanism!r}.poisson({self.rate!r})"


@dataclass(frozen=True, repr=False)
class _Batch(Sampled):
    """`m` of `n` records; n is public."""

    n: int
    m: int

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "n", check.count("n", self.n))
        set_field(self, "m", check.count("m", self.m))


@dataclass(frozen=True, repr=False)
class FixedSize(_Batch):
    """A batch of exactly m different records out of n, uniform, fresh at every step."""

    kind: ClassVar[str] = "fixed-size"
    method: ClassVar[str] = "fixed_size"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.m > self.n:
            raise InvalidInput(f"m = {self.m!r}: a batch without replacement has at most n = {self.n} records.")


@dataclass(frozen=True, repr=False)
class WithReplacement(_Batch):
    """m independent draws out of n records: one record may come several times."""

    kind: ClassVar[str] = "with-replacement"
    method: ClassVar[str] = "with_replacement"


@dataclass(frozen=True, repr=False)
class TruncatedPoisson(Sampled):
    """A Poisson sample of which, if it has more than `most` records, a uniform choice of `most` is kept."""

    kind: ClassVar[str] = "truncated-poisson"
    method: ClassVar[str] = "truncated_poisson"
    rate: float
    n: int
    most: int

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "rate", check.number("rate", self.rate, low=0, high=1))
        set_field(self, "n", check.count("n", self.n))
        set_field(self, "most", check.count("most", self.most))


@dataclass(frozen=True, repr=False)
class Shuffled(Sampled):
    """One epoch: the records are permuted once and cut into `steps` batches, one step each."""

    kind: ClassVar[str] = "shuffle"
    method: ClassVar[str] = "shuffled"
    steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "steps", check.count("steps", self.steps))


@dataclass(frozen=True, repr=False)
class Allocated(Sampled):
    """One epoch of `steps` steps: every record independently takes part in `k` of them, chosen at random (k = 1: balls
    in bins)."""

    kind: ClassVar[str] = "allocation"
    method: ClassVar[str] = "allocated"
    steps: int
    k: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "steps", check.count("steps", self.steps))
        set_field(self, "k", check.count("k", self.k))
        if self.k > self.steps:
            raise InvalidInput(f"k = {self.k!r}: a record takes part in at most steps = {self.steps} steps.")


_SAMPLERS: tuple[type[Sampled], ...] = (
    PoissonSampled, FixedSize, WithReplacement, TruncatedPoisson, Shuffled, Allocated,
)  # fmt: skip
SAMPLERS: dict[str, type[Sampled]] = {sampler.kind: sampler for sampler in _SAMPLERS}
SCHEMES = tuple(SAMPLERS)
EPOCHS = ("shuffle", "allocation")  # schemes of which one count is an epoch
