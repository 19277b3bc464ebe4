"""A plan: how often each mechanism ran, and what neighbouring means.

>>> import privloss as pl
>>> plan = pl.Gaussian(2.0) * 3 + pl.PureDP(0.1) + pl.Gaussian(2.0)
>>> plan.steps                                # flattened once, here
((Gaussian(noise_multiplier=2.0), 4), (PureDP(epsilon=0.1), 1))
>>> pl.Plan.from_json(plan.to_json()) == plan
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privloss.errors import InvalidInput, InvalidPlan, Unsupported
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.questions import Questions
from privloss.numerics import check

ADJACENCIES = ("add-remove", "replace-one", "zero-out")
DEFAULT_ADJACENCY = "add-remove"


@dataclass(frozen=True, eq=False)
class Plan(Questions):
    """Mechanisms with counts, all parameters fixed before the first runs; order does not matter for privacy."""

    steps: tuple[tuple[Mechanism, int], ...]
    adjacency: str = DEFAULT_ADJACENCY

    def __post_init__(self) -> None:
        check.choice("adjacency", self.adjacency, ADJACENCIES)
        if not self.steps:
            raise InvalidPlan("steps = []: a plan needs at least one step.")
        # The one place where counts are added up.
        merged: dict[Mechanism, int] = {}
        for mechanism, times in self.steps:
            if not isinstance(mechanism, Mechanism):
                raise InvalidInput(f"step = {mechanism!r}: must be a mechanism.")
            merged[mechanism] = merged.get(mechanism, 0) + check.count("count", times)
        for mechanism, times in merged.items():
            check.count(f"count of {mechanism!r}", times)
        object.__setattr__(self, "steps", tuple(merged.items()))

    @classmethod
    def of(cls, *steps: tuple[Mechanism, int], adjacency: str = DEFAULT_ADJACENCY) -> Plan:
        """A plan from (mechanism, count) pairs."""
        return cls(tuple(steps), adjacency)

    def as_plan(self) -> Plan:
        return self

    def under(self, adjacency: str) -> Plan:
        """The same steps under another adjacency: another question, not a conversion."""
        return Plan(self.steps, adjacency)

    def __len__(self) -> int:
        """The number of steps that run."""
        return sum(times for _, times in self.steps)

    def __add__(self, other: Any) -> Plan:
        if not isinstance(other, (Mechanism, Plan)):
            return NotImplemented
        plan = other.as_plan()
        if isinstance(other, Plan) and other.adjacency != self.adjacency:
            raise InvalidInput(
                f"adjacency = {other.adjacency!r}: plans compose under one adjacency, the other has {self.adjacency!r}."
            )
        return Plan(self.steps + plan.steps, self.adjacency)

    def __radd__(self, other: Any) -> Plan:
        if isinstance(other, int) and other == 0:  # so that sum([...]) works
            return self
        return NotImplemented

    def __mul__(self, count: Any) -> Plan:
        if isinstance(count, (Mechanism, Plan)):
            return NotImplemented
        times = check.count("count", count)
        return Plan(tuple((m, n * times) for m, n in self.steps), self.adjacency)

    __rmul__ = __mul__

    def poisson(self, rate: float) -> Plan:
        """Refused: several releases from one sample do not compose like releases from independent samples."""
        raise Unsupported(
            f"rate = {rate!r}: a plan of several releases on one shared Poisson sample has no proven pair; "
            "sample each mechanism: (a.poisson(q) + b.poisson(q))."
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return self.adjacency == other.adjacency and dict(self.steps) == dict(other.steps)

    def __hash__(self) -> int:
        return hash((self.adjacency, frozenset(self.steps)))

    def __repr__(self) -> str:
        parts = [f"{n} * {m!r}" if n > 1 else repr(m) for m, n in self.steps[:8]]
        if len(self.steps) > 8:
            parts.append(f"... {len(self.steps) - 8} more")
        suffix = "" if self.adjacency == DEFAULT_ADJACENCY else f", adjacency={self.adjacency!r}"
        return f"Plan({' + '.join(parts)}{suffix})"

    def to_dict(self) -> dict[str, Any]:
        """The plan file as a dictionary."""
        steps = [{**m.to_dict(), "count": n} for m, n in self.steps]
        return {"version": 1, "adjacency": self.adjacency, "steps": steps}

    def to_json(self) -> str:
        """The plan file."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Read a plan file given as a dictionary; unknown keys are refused."""
        from privloss.mechanisms.plan_file import parse

        return parse(data)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan file given as text."""
        from privloss.mechanisms.plan_file import parse_text

        return parse_text(text)

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise InvalidPlan(f"plan = {str(path)!r}: cannot be read ({problem}).") from None
        return cls.from_json(text)
