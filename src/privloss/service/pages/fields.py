"""What a form asks about each mechanism and sampler: read from the published schema of plan files, so that everything a
plan file can say can be said here, and the server loads none of the engine.

A mechanism that can be described in several ways (by its noise multiplier, or by sigma and sensitivity) is offered once
for each of them: a `Choice`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from privloss.service import strict
from privloss.service.pages.labels import GROUPS, LABELS, MECHANISMS, SAMPLERS
from privloss.service.problems import Problem

_OTHERS = "Others"


class Wrong(Exception):
    """What a field holds is not what it asks for."""


@dataclass(frozen=True)
class Field:
    """One parameter: its name in plan files, what it is called, and what may stand there."""

    name: str
    label: str
    hint: str
    needed: bool
    options: tuple[str, ...]  # a few words to choose from
    flag: bool
    usual: str  # what holds if nothing is said
    schema: Mapping[str, Any]

    @property
    def wide(self) -> bool:
        return self.schema.get("type") == "array"

    def read(self, text: str) -> Any:
        """The value that a text means; None if there is none and need not be."""
        said = text.strip()
        if self.flag:
            return bool(said) or None
        if not said:
            if self.needed:
                raise Wrong(f"{self.label}: must be given")
            return None
        kind = self.schema.get("type")
        if self.options:
            return said
        if kind == "number":
            return number(self.label, said)
        if kind == "integer":
            return whole(self.label, said)
        return self._several(said)

    def _several(self, said: str) -> Any:
        """Numbers apart by commas or spaces, or JSON for what has more to it."""
        plain = self.schema.get("items", {}).get("type") == "number"
        if plain and said[:1] != "[":
            return [number(self.label, each) for each in said.replace(",", " ").split()]
        if said[:1] not in "[{":
            return said if said[:1].isalpha() else number(self.label, said)
        try:
            return strict.loads(said.encode("utf-8", "surrogatepass"))
        except Problem as problem:
            raise Wrong(f"{self.label}: {problem.text}") from None


@dataclass(frozen=True)
class Choice:
    """A mechanism described in one way, or a sampler."""

    name: str  # in forms
    kind: str  # in plan files
    label: str
    group: str
    fields: tuple[Field, ...]

    def describes(self, step: Mapping[str, Any]) -> bool:
        given = set(step)
        return {f.name for f in self.fields if f.needed} <= given <= {f.name for f in self.fields}


def number(label: str, text: str) -> float:
    """A number as people write it: 0.01, 1e-6, 10 000."""
    plain = "".join(text.split())
    try:
        if "_" in plain:
            raise ValueError
        found = float(plain)
    except ValueError:
        raise Wrong(f"{label}: must be a number, such as 1.1 or 1e-6") from None
    if not math.isfinite(found) or len(plain) > 40:
        raise Wrong(f"{label}: must be a finite number of at most 40 characters")
    return found


def whole(label: str, text: str) -> int:
    found = number(label, text)
    if found != int(found):
        raise Wrong(f"{label}: must be a whole number")
    return int(found)


def shown(value: Any) -> str:
    """A value of a plan file as a field shows it."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, list) and all(isinstance(each, (int, float)) for each in value):
        return ", ".join(shown(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value)


@cache
def choices() -> tuple[dict[str, Choice], dict[str, Choice]]:
    """Mechanisms and samplers by their names in forms."""
    text = resources.files("privloss").joinpath("plan.schema.json").read_text(encoding="utf-8")
    return read(json.loads(text))


def read(schema: Mapping[str, Any]) -> tuple[dict[str, Choice], dict[str, Choice]]:
    forms: dict[str, list[Mapping[str, Any]]] = {}
    for form in schema["$defs"]["step"]["oneOf"]:
        said = form["properties"]["mechanism"]
        forms.setdefault(said.get("const") or said["enum"][0], []).append(form)
    mechanisms = [choice for kind, several in forms.items() for choice in _mechanism(kind, several)]
    samplers = [_sampler(form) for form in schema["$defs"]["sampling"]["oneOf"]]
    return {each.name: each for each in _sorted(mechanisms)}, {each.name: each for each in samplers}


def _sorted(found: Sequence[Choice]) -> list[Choice]:
    """Group by group, in each as the table of names has them."""
    place = {name: at for at, name in enumerate(MECHANISMS)}
    groups = {name: at for at, name in enumerate((*GROUPS, _OTHERS))}
    return sorted(found, key=lambda each: (groups[each.group], place.get(each.kind, len(place))))


def _mechanism(kind: str, forms: Sequence[Mapping[str, Any]]) -> list[Choice]:
    label, group = MECHANISMS.get(kind, (kind, _OTHERS))
    found, common = [], set.intersection(*(set(form["required"]) for form in forms))
    for at, form in enumerate(forms):
        needed = set(form["required"])
        fields = [
            _field(kind, name, said, name in needed)
            for name, said in form["properties"].items()
            if name not in ("mechanism", "count", "sampling")
        ]
        fields.sort(key=lambda each: not each.needed)
        own = [each.label.lower() for each in fields if each.needed and each.name not in common]
        by = f", by {' and '.join(own)}" if own else ""
        found.append(Choice(f"{kind}:{at}", kind, label + by, group, tuple(fields)))
    return found


def _sampler(form: Mapping[str, Any]) -> Choice:
    kind, needed = form["properties"]["scheme"]["const"], set(form["required"])
    fields = [_field(kind, name, said, name in needed) for name, said in form["properties"].items() if name != "scheme"]
    return Choice(kind, kind, SAMPLERS.get(kind, form["description"]), "", tuple(fields))


def _field(kind: str, name: str, said: Mapping[str, Any], needed: bool) -> Field:
    usual = said.get("default", "")
    label = LABELS.get(f"{kind}.{name}") or LABELS.get(name) or name.replace("_", " ").capitalize()
    flag = said.get("type") == "boolean"
    return Field(
        name, label, said.get("description", ""), needed, tuple(said.get("enum", ())), flag,
        "" if flag else shown(usual), said,
    )  # fmt: skip
