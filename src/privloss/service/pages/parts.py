"""The components of a budget: what there is of each, and which of them ends first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from privloss.service.pages import words
from privloss.service.pages.charts import bar
from privloss.service.pages.pictures import amount

_NAMES = {"pure": "epsilon", "zcdp": "rho", "gdp": "mu squared", "rdp": "Renyi", "approx": "epsilon"}
_SHOWN = {"mu_squared": "mu squared", "epsilon_squared": "epsilon squared"}


def called(component: str) -> str:
    """A component as pages name it."""
    return _SHOWN.get(component, component)


@dataclass(frozen=True)
class Part:
    """One component of a budget: exact texts, and a bar."""

    name: str
    cap: str
    committed: str
    held: str
    left: str

    @property
    def share(self) -> float:
        """How much of it is gone."""
        cap = amount(self.cap)
        return (amount(self.committed) + amount(self.held)) / cap if cap > 0 else 1.0

    @property
    def bar(self) -> Markup:
        return bar(amount(self.cap), amount(self.committed), amount(self.held))


def parts(status: Mapping[str, Any], amounts: Mapping[str, Any] | None = None) -> list[Part]:
    """The components of a budget; `amounts` are those of a period or a block of it."""
    found = status if amounts is None else amounts
    if "committed" not in found or "remaining" not in found:
        return []

    def each(value: Any) -> dict[str, str]:
        return dict(value) if isinstance(value, Mapping) else {_NAMES[status["currency"]]: value}

    known = (status["cap"], found["committed"], found["reserved"], found["remaining"])
    cap, done, held, rest = (each(value) for value in known)
    return [
        Part(called(name), cap[name], done[name], held[name], rest[name])
        for name, _ in words.sort_parts(rest)
        if name in cap
    ]


def tightest(found: list[Part], some: bool) -> Part | None:
    """The component that ends first; where one of several is enough, the one that lasts longest."""
    if not found:
        return None
    return (min if some else max)(found, key=lambda part: part.share)
