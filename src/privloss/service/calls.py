"""A request on its way: who asks, for what, and what workers have found for it so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from privloss.ledger.ledger import Ledger
from privloss.service.access import Caller
from privloss.service.problems import bad, unknown_dataset
from privloss.service.services import Services

Job = Callable[..., Any]
_Shape = TypeVar("_Shape", bound=BaseModel)


class Needs(Exception):
    """A handler needs what only a worker may compute: the request leaves its thread, waits, and is handled again."""

    def __init__(self, job: Job, arguments: tuple[Any, ...]) -> None:
        super().__init__(job.__name__)
        self.job, self.arguments = job, arguments


@dataclass
class Call:
    """What a handler sees of a request."""

    services: Services
    caller: Caller
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: BaseModel | None
    found: dict[str, Any] = field(default_factory=dict)  # by job and arguments

    @property
    def ledger(self) -> Ledger:
        """The ledger, in the caller's name."""
        return self.services.ledger_of(self.caller)

    def given(self, shape: type[_Shape]) -> _Shape:
        assert isinstance(self.body, shape)
        return self.body

    def worked(self, job: Job, *arguments: Any) -> Any:
        """What a worker finds; a failure there is raised here."""
        name = self.services.workers.name_of(job, arguments)
        if name not in self.found:
            raise Needs(job, arguments)
        return self.found[name].value()

    def seen(self, name: str) -> str:
        """A dataset that the caller may see, if it is there at all."""
        if not self.caller.sees(name):
            raise unknown_dataset(name)
        return name

    def dataset(self, name: str) -> str:
        """A dataset or group that is there and may be seen by the caller; otherwise it is as if it did not exist."""
        if not self.services.has_dataset(self.seen(name)):
            raise unknown_dataset(name)
        return name

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number of the query."""
        text = self.query.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and low <= int(text) <= high):
            raise bad(f"{name} must be a whole number from {low} to {high}")
        return int(text)


@dataclass(frozen=True)
class Answer:
    """What a handler answers: what is to be written as JSON, bytes as they are, or a file that is open."""

    body: Any
    status: int = 200
    media: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
