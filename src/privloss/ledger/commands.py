"""The commands a ledger takes. Each declares what it needs of the state, so that a store holds and loads just that."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from privloss.ledger.filters import Filter
from privloss.ledger.state import EVERYONE, Charges


@dataclass(frozen=True)
class Command:
    """What every command declares; by default it needs nothing."""

    makes_dataset: ClassVar[bool] = False  # there is no row to hold yet: two clients must not both make one

    @property
    def datasets(self) -> Collection[str]:
        """Datasets it names."""
        return ()

    @property
    def moves(self) -> Collection[str]:
        """Keys it moves: the datasets they are charged to are needed too."""
        return ()

    @property
    def claims(self) -> Collection[str]:
        """Keys it would make: needed if they are there, whatever they are charged to."""
        return ()

    @property
    def expires_before(self) -> float | None:
        """Leases on its datasets that ended before this time are given back first."""
        return None


@dataclass(frozen=True)
class AddDataset(Command):
    makes_dataset: ClassVar[bool] = True
    name: str
    adjacency: str
    unit: str

    @property
    def datasets(self) -> Collection[str]:
        return (self.name,)


@dataclass(frozen=True)
class SetBudget(Command):
    dataset: str
    budget: Filter
    analyst: str = EVERYONE

    @property
    def datasets(self) -> Collection[str]:
        return (self.dataset,)


@dataclass(frozen=True)
class Freeze(Command):
    dataset: str
    frozen: bool

    @property
    def datasets(self) -> Collection[str]:
        return (self.dataset,)


@dataclass(frozen=True)
class Reserve(Command):
    key: str
    request: str
    charges: Charges
    adjacency: str | None  # of the plan; None for a typed cost
    analyst: str
    lease: float  # seconds
    now: float
    plan: dict[str, Any] | None = None

    @property
    def datasets(self) -> Collection[str]:
        return self.charges.keys()

    @property
    def claims(self) -> Collection[str]:
        return (self.key,)

    @property
    def expires_before(self) -> float | None:
        return self.now


@dataclass(frozen=True)
class Move(Command):
    """start, commit or void a key. `token` is of the caller that starts: who has it may ask again, nobody else."""

    to: str
    key: str
    now: float
    lease: float | None = None
    token: str = ""

    @property
    def moves(self) -> Collection[str]:
        return (self.key,)
