"""What ran: a mechanism, a mechanism on a sample, and a plan of how often each ran. `+` composes, `*` repeats.

>>> import privloss as pl
>>> step = pl.Gaussian(noise_multiplier=1.1).poisson(0.01)
>>> plan = step * 3 + pl.Laplace(scale=10) + step
>>> plan
Plan(4 * Gaussian(noise_multiplier=1.1).poisson(0.01) + Laplace(scale=10.0))
>>> plan.steps                                # flattened once, here
((Gaussian(noise_multiplier=1.1).poisson(0.01), 4), (Laplace(scale=10.0), 1))
>>> pl.Plan.from_json(plan.to_json()) == plan
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from privloss.adjacency import ADD_REMOVE, ADJACENCIES
from privloss.errors import InvalidInput, InvalidPlan, Unsupported
from privloss.losses.samplers.setting import Setting
from privloss.mechanisms import plan_file
from privloss.mechanisms.kinds import KINDS, SCHEMES, kind_of, scheme_named
from privloss.mechanisms.parameters import declared, public_name
from privloss.mechanisms.questions import Questions
from privloss.mechanisms.yaml_file import decode_yaml
from privloss.numerics import check

if TYPE_CHECKING:
    from privloss.losses.step import Step

DEFAULT_ADJACENCY = ADD_REMOVE
Made = TypeVar("Made")
Steps = tuple[tuple["Mechanism", int], ...]


class Sampling(Questions, Generic[Made]):
    """The samplers, as methods of whatever can run on a sample."""

    def _on_sample(self, scheme: str, **parameters: Any) -> Made:
        raise NotImplementedError

    def poisson(self, rate: float) -> Made:
        """On a Poisson sample: every record enters independently with probability `rate`."""
        return self._on_sample("poisson", rate=rate)

    def fixed_size(self, n: int, m: int) -> Made:
        """On a batch of exactly m different records out of n, drawn afresh at every step."""
        return self._on_sample("fixed-size", n=n, m=m)

    def with_replacement(self, n: int, m: int) -> Made:
        """On m independent draws out of n records, afresh at every step."""
        return self._on_sample("with-replacement", n=n, m=m)

    def truncated_poisson(self, rate: float, n: int, most: int) -> Made:
        """On a Poisson sample of n records that is cut down to at most `most` of them."""
        return self._on_sample("truncated-poisson", rate=rate, n=n, most=most)

    def shuffle(self, steps: int) -> Made:
        """One epoch: permute the records, cut them into `steps` batches, run once on each."""
        return self._on_sample("shuffle", steps=steps)

    def shuffled(self, steps: int) -> Made:
        """The old word for `shuffle`."""
        return self.shuffle(steps)

    def allocated(self, steps: int, k: int = 1) -> Made:
        """One epoch of `steps` steps, of which every record independently takes part in k random ones."""
        return self._on_sample("allocation", steps=steps, k=k)


@dataclass(frozen=True)
class Mechanism(Sampling["Sampled"]):
    """Base of all descriptions. Subclasses are frozen dataclasses of plain numbers, checked when made; what is known
    about them stands in their `Kind`."""

    kind: ClassVar[str]  # the name in plan files

    def __post_init__(self) -> None:
        for f in fields(self):
            parameter, value = declared(f), getattr(self, f.name)
            if parameter is not None and not (value is None and f.default is None):  # None: not given
                set_field(self, f.name, parameter.check(public_name(f), value))

    def as_plan(self) -> Plan:
        return Plan(((self, 1),))

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

    def _on_sample(self, scheme: str, **parameters: Any) -> Sampled:
        made: Sampled = SCHEMES[scheme].description(self, **parameters)
        return made

    # -- declared facts ------------------------------------------------------------------------------------------------

    def parts(self) -> Steps:
        """What it is made of, where it is nothing but several uses of others; itself otherwise."""
        record = KINDS.get(self.kind)
        if record is None or record.parts is None:
            return ((self, 1),)
        return tuple(record.parts(self))

    def step(self, adjacency: str) -> Step:
        """One use, as the accountant sees it."""
        return kind_of(self).step(self, adjacency)

    def louder(self, factor: float) -> Mechanism:
        """The same with all noise multiplied by a factor."""
        change = kind_of(self).louder
        if change is None:
            raise Unsupported(f"{self!r}: has no noise to compare.")
        found: Mechanism = change(self, factor)
        return found

    def grouped(self, people: int, adjacency: str) -> Mechanism:
        """The same as it looks to `people` who act together."""
        if people == 1:
            return self
        change = kind_of(self).grouped
        found = None if change is None else change(self, people, adjacency)
        if found is None:
            raise Unsupported(f"{self!r} for a group of {people} under {adjacency}: no proven pair is implemented.")
        made: Mechanism = found
        return made

    def mu_squared(self, adjacency: str) -> Fraction | None:
        """mu^2 of the Gaussian DP it is exactly, None if it is not."""
        price = kind_of(self).mu_squared
        return None if price is None else price(self, adjacency)

    def without_delta(self) -> tuple[float, Mechanism]:
        """The delta it brings along, and the same without it."""
        split = kind_of(self).without_delta
        return (0.0, self) if split is None else split(self)

    def amplification(self) -> tuple[Mechanism, float] | None:
        """What runs on the sample, and its rate, where Thm. subsampling_adp applies."""
        return None

    # -- plan files ----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The step of a plan file, without its count."""
        return {"mechanism": self.kind, **dict(self._given())}

    def _given(self) -> list[tuple[str, Any]]:
        """Parameters that differ from their default, in order, by their public names."""
        pairs = []
        for f in fields(self):
            value, parameter = getattr(self, f.name), declared(f)
            usual = parameter is not None and parameter.plain is not None and value == parameter.plain
            if not usual and (f.default is MISSING or value != f.default):
                if parameter is not None and parameter.nested:
                    value = written(value)
                pairs.append((public_name(f), list(value) if isinstance(value, tuple) else value))
        return pairs

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({', '.join(f'{k}={v!r}' for k, v in self._given())})"


@dataclass(frozen=True, repr=False)
class Sampled(Mechanism):
    """`mechanism` run on a sample; `kind` is the name of the sampler."""

    method: ClassVar[str]  # the method of a mechanism that makes it
    mechanism: Mechanism

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidInput(f"mechanism = {self.mechanism!r}: must be a mechanism.")
        if isinstance(self.mechanism, Sampled):
            hint = "; multiply the rates of nested Poisson samples" if self.mechanism.method == self.method else ""
            raise InvalidInput(f"mechanism = {self.mechanism!r}: is sampled already{hint}.")
        known = KINDS.get(self.mechanism.kind)
        if known is not None and known.not_on_a_sample:
            raise Unsupported(f"{self.mechanism!r} on a sample: {known.not_on_a_sample}")
        super().__post_init__()

    def step(self, adjacency: str) -> Step:
        scheme = SCHEMES[self.kind]
        at = Setting(adjacency, repr(self), repr(self.mechanism), self.kind)
        return scheme.sample(self.mechanism.step(adjacency), self, at)

    def louder(self, factor: float) -> Mechanism:
        if self.amplification() is None:
            raise Unsupported(f"{self!r}: has no noise to compare.")
        return self.__class__(self.mechanism.louder(factor), **self.parameters())

    def grouped(self, people: int, adjacency: str) -> Mechanism:
        change = SCHEMES[self.kind].grouped
        found = self if people == 1 else None if change is None else change(self, people, adjacency)
        if found is None:
            raise Unsupported(f"{self!r} for a group of {people} under {adjacency}: no proven pair is implemented.")
        made: Mechanism = found
        return made

    def mu_squared(self, adjacency: str) -> Fraction | None:
        return None

    def without_delta(self) -> tuple[float, Mechanism]:
        return 0.0, self

    def amplification(self) -> tuple[Mechanism, float] | None:
        rate = SCHEMES[self.kind].amplification
        return None if rate is None else (self.mechanism, rate(self))

    def parameters(self) -> dict[str, Any]:
        """The sampler's own numbers."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "mechanism"}

    def to_dict(self) -> dict[str, Any]:
        return {**self.mechanism.to_dict(), "sampling": {"scheme": self.kind, **self.parameters()}}

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self.parameters().items())
        return f"{self.mechanism!r}.{self.method}({given})"


@dataclass(frozen=True, eq=False)
class Plan(Sampling["Plan"]):
    """Mechanisms with counts, all parameters fixed before the first runs; order does not matter for privacy."""

    steps: Steps
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
            for part, n in mechanism.parts():
                merged[part] = merged.get(part, 0) + n * check.count("count", times)
        for mechanism, times in merged.items():
            check.count(f"count of {mechanism!r}", times)
        object.__setattr__(self, "steps", tuple(merged.items()))

    @classmethod
    def of(cls, *steps: Plan | Mechanism | tuple[Mechanism, int], adjacency: str = DEFAULT_ADJACENCY) -> Plan:
        """A plan from mechanisms, plans or (mechanism, count) pairs.

        >>> import privloss as pl
        >>> pl.Plan.of(pl.Laplace(1), (pl.Gaussian(2), 3))
        Plan(Laplace(scale=1.0) + 3 * Gaussian(noise_multiplier=2.0))
        """
        found: list[tuple[Mechanism, int]] = []
        for step in steps:
            found.extend(step.as_plan().steps if isinstance(step, Sampling) else (step,))
        return cls(tuple(found), adjacency)

    def as_plan(self) -> Plan:
        return self

    def under(self, adjacency: str) -> Plan:
        """The same steps under another adjacency: another question, not a conversion."""
        return Plan(self.steps, adjacency)

    def __len__(self) -> int:
        """The number of steps that run."""
        return sum(times for _, times in self.steps)

    def __add__(self, other: Any) -> Plan:
        if not isinstance(other, Sampling):
            return NotImplemented
        plan = other.as_plan()
        if plan is other and plan.adjacency != self.adjacency:
            raise InvalidInput(
                f"adjacency = {plan.adjacency!r}: plans compose under one adjacency, the other has {self.adjacency!r}."
            )
        return Plan(self.steps + plan.steps, self.adjacency)

    def __radd__(self, other: Any) -> Plan:
        if isinstance(other, int) and other == 0:  # so that sum([...]) works
            return self
        return NotImplemented

    def __mul__(self, count: Any) -> Plan:
        if isinstance(count, Sampling):
            return NotImplemented
        times = check.count("count", count)
        return Plan(tuple((m, n * times) for m, n in self.steps), self.adjacency)

    __rmul__ = __mul__

    def _on_sample(self, scheme: str, **parameters: Any) -> Plan:
        """All releases of the plan on one shared sample: one release of a product. For Gaussian noise that is again
        Gaussian noise, with 1/sigma^2 added up."""
        if len(self) == 1:
            return Plan(((self.steps[0][0]._on_sample(scheme, **parameters), 1),), self.adjacency)
        for mechanism, _ in self.steps:
            if isinstance(mechanism, Sampled):
                raise Unsupported(f"{self!r} on one shared sample: {mechanism!r} has a sample of its own.")
        kinds = {m.kind for m, _ in self.steps}
        one = KINDS.get(next(iter(kinds))) if len(kinds) == 1 else None
        whole = None if one is None or one.together is None else one.together(self.steps)
        shared = KINDS["together"].description(self.steps) if whole is None else whole
        return Plan(((shared._on_sample(scheme, **parameters), 1),), self.adjacency)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return self.adjacency == other.adjacency and dict(self.steps) == dict(other.steps)

    def __hash__(self) -> int:
        return hash((self.adjacency, frozenset(self.steps)))

    def __repr__(self) -> str:
        suffix = "" if self.adjacency == DEFAULT_ADJACENCY else f", adjacency={self.adjacency!r}"
        return f"Plan({' + '.join(shown(self.steps))}{suffix})"

    def to_dict(self) -> dict[str, Any]:
        """The plan file as a dictionary."""
        return {"version": 1, "adjacency": self.adjacency, "steps": written(self.steps)}

    def to_json(self) -> str:
        """The plan file."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Read a plan file given as a dictionary; unknown keys are refused."""
        return plan_file.parse(data, cls)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan file given as text."""
        return plan_file.parse(plan_file.decode(text), cls)

    @classmethod
    def from_yaml(cls, text: str) -> Plan:
        """Read a plan file given as YAML; needs PyYAML."""
        return plan_file.parse(decode_yaml(text), cls)

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan file: YAML where its name ends in .yaml or .yml, otherwise JSON."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise InvalidPlan(f"plan = {str(path)!r}: cannot be read ({problem}).") from None
        return cls.from_yaml(text) if Path(path).suffix in (".yaml", ".yml") else cls.from_json(text)


def written(steps: Steps) -> list[dict[str, Any]]:
    """Steps as in a plan file."""
    return [{**m.to_dict(), "count": n} for m, n in steps]


def shown(steps: Steps) -> list[str]:
    """Steps as in Python, the first eight of them."""
    found = [f"{n} * {m!r}" if n > 1 else repr(m) for m, n in steps[:8]]
    return [*found, f"... {len(steps) - 8} more"] if len(steps) > 8 else found


def on_scheme(mechanism: Mechanism, scheme: str, **parameters: Any) -> Sampled:
    """A mechanism on a sampler given by its name."""
    return mechanism._on_sample(scheme_named(scheme), **parameters)


def set_field(instance: Any, name: str, value: Any) -> None:
    """Store a checked value in a frozen dataclass during __post_init__."""
    object.__setattr__(instance, name, value)
