"""The plan file format, version 1: strict in what it reads.

``schema()`` is the published JSON Schema; this parser accepts exactly what the schema describes and says in one
sentence what is wrong with anything else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from importlib import resources
from typing import Any

from privloss.errors import InvalidInput, InvalidPlan, Unsupported
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.black_box import GDP, RDP, ZCDP, ApproxDP, PureDP
from privloss.mechanisms.custom import Custom, PrivacyProfile, Tabulated, TradeOff
from privloss.mechanisms.discrete_gaussian import DiscreteGaussian
from privloss.mechanisms.discrete_laplace import DiscreteLaplace
from privloss.mechanisms.exponential import Exponential, NoisyMax
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.plan import DEFAULT_ADJACENCY, Plan
from privloss.mechanisms.randomized_response import RandomizedResponse
from privloss.mechanisms.sampling import SAMPLERS, SCHEMES
from privloss.mechanisms.truncated import TruncatedGaussian, TruncatedLaplace
from privloss.mechanisms.unary_encoding import UnaryEncoding
from privloss.numerics import check

_KINDS: dict[str, type[Mechanism]] = {
    cls.kind: cls
    for cls in (
        Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace, TruncatedGaussian, TruncatedLaplace, RandomizedResponse,
        UnaryEncoding, Exponential, NoisyMax, PureDP, ApproxDP, ZCDP, RDP, GDP, PrivacyProfile, TradeOff,
        Custom, Tabulated,
    )
}  # fmt: skip
_CORRELATED = ("dp-ftrl", "matrix-mechanism", "correlated-gaussian", "tree-aggregation")


def schema() -> dict[str, Any]:
    """The JSON Schema of plan files."""
    text = resources.files("privloss").joinpath("plan.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def parse_text(text: str) -> Plan:
    """A plan from the text of a plan file."""
    try:
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except json.JSONDecodeError as problem:
        raise InvalidPlan(f"plan: is not JSON ({problem}).") from None
    except RecursionError:
        raise InvalidPlan("plan: is nested too deeply.") from None
    return parse(data)


def _no_constant(name: str) -> Any:
    raise InvalidPlan(f"plan: {name} is not a JSON number.")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise InvalidPlan(f"{key}: is given twice in one object.")
        seen[key] = value
    return seen


def parse(data: Any) -> Plan:
    """A plan from the dictionary of a plan file."""
    _keys("plan", data, required=("steps",), optional=("version", "adjacency"))
    if data.get("version", 1) != 1 or isinstance(data.get("version", 1), bool):
        raise InvalidPlan(f"version = {data['version']!r}: this release reads version 1.")
    steps = data["steps"]
    if not isinstance(steps, list) or not steps:
        raise InvalidPlan(f"steps = {_short(steps)}: must be a non-empty list.")
    try:
        read = tuple(_step(f"steps[{i}]", step) for i, step in enumerate(steps))
        return Plan(read, data.get("adjacency", DEFAULT_ADJACENCY))
    except InvalidPlan:
        raise
    except InvalidInput as problem:
        raise InvalidPlan(str(problem)) from None


def _step(where: str, data: Any) -> tuple[Mechanism, int]:
    if not isinstance(data, Mapping):
        raise InvalidPlan(f"{where} = {_short(data)}: must be an object.")
    kind = data.get("mechanism")
    if kind in _CORRELATED:
        raise Unsupported(
            f"{where}.mechanism = {kind!r}: correlated noise (DP-FTRL, matrix mechanisms) has no proven bound here, "
            "and is never accounted for as independent steps."
        )
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidPlan(f"{where}.mechanism = {kind!r}: must be one of {', '.join(_KINDS)}.")
    cls = _KINDS[kind]
    required = tuple(cls.renamed.get(f.name, f.name) for f in fields(cls) if f.default is MISSING)
    optional = tuple(cls.renamed.get(f.name, f.name) for f in fields(cls) if f.default is not MISSING)
    _keys(where, data, required=("mechanism", *required), optional=(*optional, "sampling", "count"))
    given = {name: data[name] for name in (*required, *optional) if name in data}
    for name, value in given.items():
        if value is None:
            raise InvalidPlan(f"{where}.{name} = null: leave the key out or give a number.")
    try:
        mechanism: Mechanism = cls(**given)
        times = check.count("count", data.get("count", 1))
        if "sampling" in data:
            mechanism = _sampled(f"{where}.sampling", mechanism, data["sampling"])
    except InvalidPlan:
        raise
    except InvalidInput as problem:
        raise InvalidPlan(f"{where}: {problem}") from None
    return mechanism, times


def _sampled(where: str, mechanism: Mechanism, data: Any) -> Mechanism:
    if not isinstance(data, Mapping):
        raise InvalidPlan(f"{where} = {_short(data)}: must be an object.")
    scheme = check.choice(f"{where}.scheme", data.get("scheme"), SCHEMES, error=InvalidPlan)
    sampler = SAMPLERS[scheme]
    own = [f for f in fields(sampler) if f.name != "mechanism"]
    required = tuple(f.name for f in own if f.default is MISSING)
    optional = tuple(f.name for f in own if f.default is not MISSING)
    _keys(where, data, required=("scheme", *required), optional=optional)
    return sampler(mechanism, **{name: data[name] for name in (*required, *optional) if name in data})


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
