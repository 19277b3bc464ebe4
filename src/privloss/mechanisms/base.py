"""A mechanism: a frozen description of what ran, composed with `+`, repeated with `*`.

>>> import privloss as pl
>>> step = pl.Gaussian(noise_multiplier=1.1).poisson(0.01)
>>> step * 3 + pl.Laplace(scale=10)
Plan(3 * Gaussian(noise_multiplier=1.1).poisson(0.01) + Laplace(scale=10.0))
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from privloss.errors import Unsupported
from privloss.mechanisms.questions import Questions

if TYPE_CHECKING:
    from privloss.mechanisms.plan import Plan
    from privloss.mechanisms.sampling import (
        Allocated,
        FixedSize,
        PoissonSampled,
        Shuffled,
        TruncatedPoisson,
        WithReplacement,
    )


@dataclass(frozen=True)
class Mechanism(Questions):
    """Base of all descriptions. Subclasses are frozen dataclasses of plain numbers, checked when made."""

    kind: ClassVar[str]  # the name in plan files
    renamed: ClassVar[dict[str, str]] = {}  # fields whose public name belongs to a question method

    def as_plan(self) -> Plan:
        from privloss.mechanisms.plan import Plan

        return Plan.of((self, 1))

    def __add__(self, other: Any) -> Plan:
        plan: Plan = self.as_plan() + other
        return plan

    def __radd__(self, other: Any) -> Plan:
        plan: Plan = self.as_plan().__radd__(other)
        return plan

    def __mul__(self, count: Any) -> Plan:
        plan: Plan = self.as_plan() * count
        return plan

    __rmul__ = __mul__

    def poisson(self, rate: float) -> PoissonSampled:
        """This mechanism on a Poisson sample: every record enters independently with probability `rate`."""
        from privloss.mechanisms.sampling import PoissonSampled

        return PoissonSampled(self, rate)

    def fixed_size(self, n: int, m: int) -> FixedSize:
        """On a batch of exactly m different records out of n, drawn afresh at every step."""
        from privloss.mechanisms.sampling import FixedSize

        return FixedSize(self, n, m)

    def with_replacement(self, n: int, m: int) -> WithReplacement:
        """On m independent draws out of n records, afresh at every step."""
        from privloss.mechanisms.sampling import WithReplacement

        return WithReplacement(self, n, m)

    def truncated_poisson(self, rate: float, n: int, most: int) -> TruncatedPoisson:
        """On a Poisson sample of n records that is cut down to at most `most` of them."""
        from privloss.mechanisms.sampling import TruncatedPoisson

        return TruncatedPoisson(self, rate, n, most)

    def shuffled(self, steps: int) -> Shuffled:
        """One epoch: permute the records, cut them into `steps` batches, run once on each."""
        from privloss.mechanisms.sampling import Shuffled

        return Shuffled(self, steps)

    def allocated(self, steps: int, k: int = 1) -> Allocated:
        """One epoch of `steps` steps, of which every record independently takes part in k random ones."""
        from privloss.mechanisms.sampling import Allocated

        return Allocated(self, steps, k)

    def to_dict(self) -> dict[str, Any]:
        """The step of a plan file, without its count."""
        return {"mechanism": self.kind, **dict(self._given())}

    def _given(self) -> list[tuple[str, Any]]:
        """Parameters that differ from their default, in order, by their public names."""
        pairs = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.default is MISSING or value != f.default:
                name = self.renamed.get(f.name, f.name)
                pairs.append((name, list(value) if isinstance(value, tuple) else value))
        return pairs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._given())})"


def refuse_sampling(mechanism: Mechanism) -> Unsupported:
    """The refusal for sampled mechanisms that have no proven pair yet."""
    return Unsupported(
        f"{mechanism!r} on a Poisson sample: no proven worst pair is implemented for this mechanism yet."
    )


def set_field(instance: Any, name: str, value: Any) -> None:
    """Store a checked value in a frozen dataclass during __post_init__."""
    object.__setattr__(instance, name, value)
