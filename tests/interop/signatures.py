"""What the adapters rely on in other packages: names and signatures, kept in tests/data/signatures.json."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "data" / "signatures.json"


def recorded(package: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(FILE.read_text())[package]
    return found


def signatures(owner: Any, names: tuple[str, ...]) -> dict[str, str]:
    """The signature of each method without annotations, "property" for a property."""
    return {f"{owner.__name__}.{name}": _signature(inspect.getattr_static(owner, name)) for name in names}


def _signature(member: Any) -> str:
    if isinstance(member, property):
        return "property"
    function = getattr(member, "__func__", member)
    parameters = inspect.signature(function).parameters.values()
    return f"({', '.join(str(p.replace(annotation=inspect.Parameter.empty)) for p in parameters)})"


def record(package: str, found: dict[str, str]) -> None:
    """Write down what a new version of a package has."""
    data = json.loads(FILE.read_text()) if FILE.exists() else {}
    FILE.write_text(json.dumps({**data, package: found}, indent=1, sort_keys=True) + "\n")
