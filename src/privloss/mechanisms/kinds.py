"""The registry: for every mechanism and every sampler one record of declared facts, read by the whole house.

The plan file and its schema, sampling, groups, calibration, comparison, prices and the table in the docs all read these
records; `pl.register` adds one from outside, with the same rights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privloss.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from privloss.losses.samplers.setting import Setting
    from privloss.losses.step import Step


@dataclass(frozen=True)
class Kind:
    """Everything the house needs to know about one mechanism. Functions take the description first."""

    name: str  # in plan files
    description: type[Any]  # a frozen dataclass, subclass of `Mechanism`
    step: Callable[[Any, str], Step]  # (mechanism, adjacency) -> what one use does to the worst neighbours
    forms: tuple[tuple[str, ...], ...] = ()  # sets of parameters that go together ("name?" may be left out)
    louder: Callable[[Any, float], Any] | None = None  # with all noise multiplied by a factor
    grouped: Callable[[Any, int, str], Any] | None = None  # as k people see it who act together
    # several of this kind on one shared sample as one of them; None where that is not possible
    together: Callable[[Sequence[tuple[Any, int]]], Any | None] | None = None
    mu_squared: Callable[[Any, str], Fraction | None] | None = None  # price in GDP
    without_delta: Callable[[Any], tuple[float, Any]] | None = (
        None  # the delta it brings along, and the same without it
    )
    parts: Callable[[Any], Sequence[tuple[Any, int]]] | None = None  # it is nothing but several uses of others
    aliases: tuple[str, ...] = ()  # other names accepted in plan files
    not_on_a_sample: str = ""  # why no sampler takes it, if none does
    certified: str = ""  # how the checker proves it; empty: not certified


@dataclass(frozen=True)
class Training:
    """The sizes of a training run, from which a sampler takes its parameters."""

    records: int
    batch: int
    steps_per_epoch: int
    most: int | None = None  # the largest batch that is kept

    @property
    def rate(self) -> float:
        return self.batch / self.records


@dataclass(frozen=True)
class Scheme:
    """Everything the house needs to know about one sampler."""

    name: str  # in plan files and on the command line
    description: type[Any]  # a frozen dataclass, subclass of `Sampled`
    sample: Callable[[Step, Any, Setting], Step]
    about: str  # for the schema
    training: Callable[[Training], tuple[dict[str, Any], str]] | None = None  # its parameters in a run, and in words
    limits_batches: bool = False  # whether a largest batch must be given
    epochs: bool = False  # one count of a plan is a whole epoch
    amplification: Callable[[Any], float] | None = None  # the rate of Thm. subsampling_adp, if that applies
    grouped: Callable[[Any, int, str], Any] | None = None
    in_runs: bool = True  # whether a training run can name it; plan files can name every sampler
    certified: str = ""


KINDS: dict[str, Kind] = {}
ALIASES: dict[str, str] = {}  # other names of kinds
SCHEMES: dict[str, Scheme] = {}
SPELLINGS: Mapping[str, str] = {"shuffled": "shuffle"}  # words accepted for others


def add_kind(kind: Kind) -> Kind:
    """Enter a mechanism into the registry."""
    for name in (kind.name, *kind.aliases):
        if name in KINDS or name in ALIASES:
            raise InvalidInput(f"kind = {name!r}: is registered already.")
    KINDS[kind.name] = kind
    ALIASES.update(dict.fromkeys(kind.aliases, kind.name))
    return kind


def add_scheme(scheme: Scheme) -> Scheme:
    """Enter a sampler into the registry."""
    SCHEMES[scheme.name] = scheme
    return scheme


def kind_of(mechanism: Any) -> Kind:
    """The record of a mechanism; refused for a class that was never registered."""
    found = KINDS.get(mechanism.kind)
    if found is None or found.description is not mechanism.__class__:
        name = mechanism.__class__.__name__
        raise Unsupported(f"{mechanism!r}: no proven worst pair is registered for {name}.")
    return found


def scheme_named(word: str) -> str:
    """The one word for a sampler; old ones are accepted."""
    return SPELLINGS.get(word, word)


def schemes() -> tuple[str, ...]:
    """The samplers a training run can name."""
    return tuple(name for name, scheme in SCHEMES.items() if scheme.in_runs)
