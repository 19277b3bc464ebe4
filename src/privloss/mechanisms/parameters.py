"""Parameters of a mechanism, declared once: how a value is checked, and how the schema of plan files describes it.

A parameter is a field of a frozen dataclass:

    scale: float | None = number(default=None)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field
from typing import Any

from privloss.errors import InvalidInput
from privloss.numerics import check


@dataclass(frozen=True)
class Parameter:
    """`public` is the name in calls and plan files where it differs from the field's; `plain` is left out of files."""

    check: Callable[[str, Any], Any]
    schema: dict[str, Any]
    public: str | None = None
    plain: Any = None
    nested: bool = False  # mechanisms with counts, written like the steps of a plan


def declared(f: Field[Any]) -> Parameter | None:
    """What a field declares."""
    found: Parameter | None = f.metadata.get("parameter")
    return found


def public_name(f: Field[Any]) -> str:
    """The name of a field in calls and plan files."""
    found = declared(f)
    return f.name if found is None or found.public is None else found.public


def declare(parameter: Parameter, default: Any = MISSING) -> Any:
    """A field with this parameter."""
    return field(default=default, metadata={"parameter": parameter})


def number(
    *,
    low: float = 0.0,
    high: float = math.inf,
    above: bool = False,
    default: Any = MISSING,
    public: str | None = None,
    plain: Any = None,
    description: str | None = None,
) -> Any:
    """A finite number from `low` (not included if `above`) to `high`."""
    schema: dict[str, Any] = {"type": "number", "exclusiveMinimum" if above else "minimum": low}
    if high < math.inf:
        schema["maximum"] = high
    if plain is not None:
        schema["default"] = plain
    if description is not None:
        schema["description"] = description
    return declare(
        Parameter(lambda name, v: check.number(name, v, low=low, high=high, above=above), schema, public, plain),
        default,
    )


def whole(*, low: int = 1, default: Any = MISSING, plain: Any = None, description: str | None = None) -> Any:
    """A whole number from `low` to 10^12."""
    schema: dict[str, Any] = {"type": "integer", "minimum": low, "maximum": check.MAX_COUNT}
    if description is not None:
        schema["description"] = description
    if plain is not None:
        schema["default"] = plain

    def checked(name: str, value: Any) -> int:
        found = check.count(name, value)
        if found < low:
            raise InvalidInput(f"{name} = {value!r}: must be at least {low}.")
        return found

    return declare(Parameter(checked, schema, None, plain), default)


def word(options: tuple[str, ...], default: str | None = None) -> Any:
    """One of a few words; without a default it must be said."""
    schema: dict[str, Any] = {"enum": list(options)} if default is None else {"enum": list(options), "default": default}
    found = Parameter(lambda name, v: check.choice(name, v, options), schema, None, default)
    return declare(found, MISSING if default is None else default)


def numbers(
    *,
    low: float = 0.0,
    high: float = math.inf,
    above: bool = False,
    default: Any = MISSING,
    description: str | None = None,
) -> Any:
    """A list of numbers, kept as a tuple."""
    entry: dict[str, Any] = {"type": "number"}
    if low > -math.inf:
        entry["exclusiveMinimum" if above else "minimum"] = low
    if high < math.inf:
        entry["maximum"] = high
    schema: dict[str, Any] = {"type": "array", "minItems": 1, "items": entry}
    if description is not None:
        schema["description"] = description

    def checked(name: str, values: Any) -> tuple[float, ...]:
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise InvalidInput(f"{name} = {values!r}: must be a list of numbers.")
        found = tuple(check.number(f"{name}[{i}]", v, low=low, high=high, above=above) for i, v in enumerate(values))
        if not found:
            raise InvalidInput(f"{name} = {values!r}: must not be empty.")
        return found

    return declare(Parameter(checked, schema), default)


def steps() -> Any:
    """Mechanisms with counts, kept as a tuple of pairs; in plan files a list of steps."""
    schema = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/step"}}
    return declare(Parameter(lambda name, v: v, schema, nested=True), MISSING)


def flag() -> Any:
    """True or False, False if left out."""

    def checked(name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} = {value!r}: must be True or False.")
        return value

    return declare(Parameter(checked, {"type": "boolean", "default": False}, None, False), False)


SHAPES: dict[str, float | str] = {"geometric": 1.0, "logarithmic": 0.0, "poisson": "poisson"}


def shape() -> Any:
    """The shape of a number of runs: above -1 (1: geometric, 0: logarithmic), or Poisson, which is infinity."""
    schema = {"anyOf": [{"type": "number", "exclusiveMinimum": -1}, {"enum": list(SHAPES)}], "default": 1.0}

    def checked(name: str, value: Any) -> float | str:
        if isinstance(value, str):
            return SHAPES[check.choice(name, value, tuple(SHAPES))]
        if isinstance(value, (int, float)) and value == math.inf:
            return "poisson"
        return check.number(name, value, low=-1.0, high=1e3, above=True)

    return declare(Parameter(checked, schema, None, 1.0), 1.0)
