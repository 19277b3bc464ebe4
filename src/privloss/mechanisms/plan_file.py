"""The plan file format, version 1: strict in what it reads. Everything it knows about mechanisms and samplers it reads
from the registry.

``schema()`` is the published JSON Schema; the parser accepts what the schema describes and says in one sentence what is
wrong with anything else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from privloss.adjacency import ADD_REMOVE, ADJACENCIES
from privloss.errors import InvalidInput, InvalidPlan, Unsupported
from privloss.mechanisms.kinds import ALIASES, KINDS, SCHEMES, Kind, Scheme
from privloss.mechanisms.parameters import declared, public_name
from privloss.numerics import check

_CORRELATED = ("dp-ftrl", "correlated-gaussian")
_DEEPEST = 20  # mechanisms made of mechanisms
MadePlan = TypeVar("MadePlan")


# -- reading -----------------------------------------------------------------------------------------------------------


def decode(text: str) -> Any:
    """The JSON of a plan file."""
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except json.JSONDecodeError as problem:
        raise InvalidPlan(f"plan: is not JSON ({problem}).") from None
    except RecursionError:
        raise InvalidPlan("plan: is nested too deeply.") from None


def _no_constant(name: str) -> Any:
    raise InvalidPlan(f"plan: {name} is not a JSON number.")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise InvalidPlan(f"{key}: is given twice in one object.")
        seen[key] = value
    return seen


def parse(data: Any, make: Callable[[tuple[tuple[Any, int], ...], str], MadePlan]) -> MadePlan:
    """A plan, made by `make(steps, adjacency)`, from the dictionary of a plan file."""
    _keys("plan", data, required=("steps",), optional=("version", "adjacency"))
    if data.get("version", 1) != 1 or isinstance(data.get("version", 1), bool):
        raise InvalidPlan(f"version = {data['version']!r}: this release reads version 1.")
    steps = data["steps"]
    if not isinstance(steps, list) or not steps:
        raise InvalidPlan(f"steps = {_short(steps)}: must be a non-empty list.")
    try:
        read = tuple(_step(f"steps[{i}]", step) for i, step in enumerate(steps))
        return make(read, data.get("adjacency", ADD_REMOVE))
    except InvalidPlan:
        raise
    except InvalidInput as problem:
        raise InvalidPlan(str(problem)) from None


def _steps(where: str, data: Any, depth: int) -> tuple[tuple[Any, int], ...]:
    """The steps that a mechanism is made of."""
    if not isinstance(data, list) or not data:
        raise InvalidPlan(f"{where} = {_short(data)}: must be a non-empty list of steps.")
    if depth > _DEEPEST:
        raise InvalidPlan(f"{where}: is nested too deeply.")
    return tuple(_step(f"{where}[{i}]", step, depth) for i, step in enumerate(data))


def _step(where: str, data: Any, depth: int = 0) -> tuple[Any, int]:
    kind = _kind(where, data)
    required, optional = _parameters(kind.description)
    _keys(where, data, required=("mechanism", *required), optional=(*optional, "sampling", "count"))
    given = {name: data[name] for name in (*required, *optional) if name in data}
    for name, value in given.items():
        if value is None:
            raise InvalidPlan(f"{where}.{name} = null: leave the key out or give a number.")
    for name in _nested(kind.description) & set(given):
        given[name] = _steps(f"{where}.{name}", given[name], depth + 1)
    try:
        mechanism = kind.description(**given)
        times = check.count("count", data.get("count", 1))
        if "sampling" in data:
            mechanism = _sampled(f"{where}.sampling", mechanism, data["sampling"])
    except InvalidPlan:
        raise
    except InvalidInput as problem:
        raise InvalidPlan(f"{where}: {problem}") from None
    return mechanism, times


def _kind(where: str, data: Any) -> Kind:
    if not isinstance(data, Mapping):
        raise InvalidPlan(f"{where} = {_short(data)}: must be an object.")
    name = data.get("mechanism")
    if name in _CORRELATED:
        raise Unsupported(
            f"{where}.mechanism = {name!r}: correlated noise is never accounted for as independent steps; say which "
            "matrix made it: mechanism = 'matrix-mechanism' or 'tree-aggregation'."
        )
    if not isinstance(name, str) or name not in (*KINDS, *ALIASES):
        raise InvalidPlan(f"{where}.mechanism = {name!r}: must be one of {', '.join((*KINDS, *ALIASES))}.")
    return KINDS[ALIASES.get(name, name)]


def _sampled(where: str, mechanism: Any, data: Any) -> Any:
    if not isinstance(data, Mapping):
        raise InvalidPlan(f"{where} = {_short(data)}: must be an object.")
    scheme = check.choice(f"{where}.scheme", data.get("scheme"), tuple(SCHEMES), error=InvalidPlan)
    sampler = SCHEMES[scheme].description
    required, optional = _parameters(sampler)
    _keys(where, data, required=("scheme", *required), optional=optional)
    return sampler(mechanism, **{name: data[name] for name in (*required, *optional) if name in data})


def _parameters(description: type[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Public names of the parameters: those that must be given, and the others."""
    own = [f for f in fields(description) if declared(f) is not None]
    required = tuple(public_name(f) for f in own if f.default is MISSING)
    return required, tuple(public_name(f) for f in own if f.default is not MISSING)


def _nested(description: type[Any]) -> set[str]:
    """Public names of the parameters that are steps themselves."""
    return {public_name(f) for f in fields(description) if (p := declared(f)) is not None and p.nested}


def _keys(where: str, data: Any, required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    if not isinstance(data, Mapping):
        raise InvalidPlan(f"{where} = {_short(data)}: must be an object.")
    for key in required:
        if key not in data:
            raise InvalidPlan(f"{where}: the key {key!r} is missing.")
    for key in data:
        if key not in required and key not in optional:
            raise InvalidPlan(f"{where}: the key {key!r} is unknown; known are {', '.join((*required, *optional))}.")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# -- the schema --------------------------------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """The JSON Schema of plan files, made from the registry (mechanisms from outside included)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "privloss/plan.schema.json",
        "title": "privloss plan, version 1",
        "description": "Which mechanisms ran, how often, and what neighbouring means.",
        "type": "object",
        "properties": {
            "version": {"const": 1, "default": 1},
            "adjacency": {"enum": list(ADJACENCIES), "default": ADD_REMOVE},
            "steps": {
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/step"},
            },
        },
        "required": ["steps"],
        "additionalProperties": False,
        "$defs": {
            "step": {"oneOf": [form for kind in KINDS.values() for form in _step_forms(kind)]},
            "sampling": {"oneOf": [_scheme_form(scheme) for scheme in SCHEMES.values()]},
        },
    }


def _step_forms(kind: Kind) -> list[dict[str, Any]]:
    """One object for every set of parameters that go together."""
    required, optional = _parameters(kind.description)
    forms = kind.forms or ((*required, *(f"{name}?" for name in optional)),)
    described = {public_name(f): p.schema for f in fields(kind.description) if (p := declared(f)) is not None}
    count = {"type": "integer", "minimum": 1, "maximum": check.MAX_COUNT, "default": 1}
    return [
        {
            "type": "object",
            "properties": {
                "mechanism": {"enum": [kind.name, *kind.aliases]} if kind.aliases else {"const": kind.name},
                **{name.rstrip("?"): described[name.rstrip("?")] for name in form},
                "count": count,
                "sampling": {"$ref": "#/$defs/sampling"},
            },
            "required": ["mechanism", *(name for name in form if not name.endswith("?"))],
            "additionalProperties": False,
        }
        for form in forms
    ]


def _scheme_form(scheme: Scheme) -> dict[str, Any]:
    required, _ = _parameters(scheme.description)
    described = {public_name(f): p.schema for f in fields(scheme.description) if (p := declared(f)) is not None}
    return {
        "type": "object",
        "description": scheme.about,
        "properties": {"scheme": {"const": scheme.name}, **described},
        "required": ["scheme", *required],
        "additionalProperties": False,
    }
