"""What pages ask of workers beyond the API's jobs: curves to draw, a certificate that was checked, one parameter that
meets a target, and a plan as Python. Arguments and results are plain data."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from privloss.errors import InvalidInput

_NEAR, _ALL = 31, 61  # points up to where trade-off curves bend most, and in all
_BEND = 7.0  # an epsilon: attacks with a false alarm in a thousand are decided below it
_FARTHEST = 700.0
_ALARMS = (0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_PRICES = 1.5  # seconds of a processor in which prices in noise are found, or left out
_ROUNDING = 8 * 2.0**-53


def curves(body: dict[str, Any], delta: float) -> dict[str, Any]:
    """delta(epsilon) at some points, and the trade-off curve that they prove.

    If delta(eps_k) <= d_k, no attack has a smaller false negative rate than
    f(a) = max over k of 0, 1 - d_k - e^eps_k a, e^-eps_k (1 - d_k - a)  (Dong, Roth, Su 2022).
    """
    import numpy as np

    plan = _plan(body)
    here = plan.epsilon(delta)
    asked = sorted(_points(here.upper))
    found = plan.delta(asked)
    low, high = [b.lower for b in found], [b.upper for b in found]
    rates = sorted({*_ALARMS, *(i / 50 for i in range(51)), *(0.02 * i * i / 100 for i in range(1, 10))})
    u, d, a = np.exp(np.minimum(asked, _FARTHEST)), np.array(high), np.array(rates)[:, None]
    lines = np.maximum(1 - d - u * a, (1 - d - a) / u).max(axis=1)
    misses = np.maximum(lines - _ROUNDING, 0.0)  # where a line is above 0 no part of it exceeds 1
    return {
        "epsilon": asked, "lower": low, "upper": high,
        "alarms": rates, "misses": [float(x) for x in misses],
    }  # fmt: skip


def _points(epsilon: float) -> set[float]:
    """Of four digits, so that a table may show them as they are."""
    end = min(1.3 * epsilon, 10 * _FARTHEST) if math.isfinite(epsilon) else 20.0
    end = max(end, 0.01)
    near = min(end, _BEND)
    some = {near * i / (_NEAR - 1) for i in range(_NEAR)}
    return {float(f"{x:.4g}") for x in some | {end * i / (_ALL - _NEAR) for i in range(1, _ALL - _NEAR + 1)}}


def compared(body: dict[str, Any], delta: float) -> dict[str, Any]:
    """Every bound that applies, and what it costs in noise, unless finding that takes too long."""
    from privloss.service.jobs import compare

    began = time.process_time()
    plain = compare(body, delta, None, False)
    if time.process_time() - began > _PRICES / 6:  # a search asks for all bounds several times
        return {**plain, "priced": False}
    try:
        with _within(_PRICES):
            return {**compare(body, delta, None, True), "priced": True}
    except _TooLong:
        return {**plain, "priced": False}


class _TooLong(Exception):
    """The time of the processor is used up."""


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """`_TooLong` after so much time of the processor: the worker's own limit would end it, and with it all answers."""

    def end(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def certified(body: dict[str, Any], delta: float) -> dict[str, Any]:
    """A certificate's interval, and what the checker says of it."""
    from privloss.certificates.certificate import certify, verify

    made = certify(_plan(body), delta=delta)
    verdict = verify(made)
    claim = made.data["claim"]["epsilon"]
    return {"lower": str(claim["lower"]), "upper": str(claim["upper"]), "valid": bool(verdict), "text": str(verdict)}


def calibrated(body: dict[str, Any], what: str, epsilon: float, delta: float) -> dict[str, Any]:
    """The plan with the least noise, or the most uses, that meets a target: `what` is "noise" (of all steps), or
    "noise-2" or "count-2" of one of them."""
    from privloss.mechanisms.base import Plan
    from privloss.planning.calibrate import calibrate
    from privloss.theorems.compare import with_noise

    name, _, text = what.partition("-")
    steps = body["steps"]
    at = range(len(steps)) if not text else [int(text) - 1] if text in map(str, range(1, len(steps) + 1)) else []
    if name not in ("noise", "count") or not at or (name == "count" and not text):
        raise InvalidInput(f"what = {what!r}: must be noise, or noise or count of one of the steps.")
    rest = [Plan.from_dict({**body, "steps": [step]}) for place, step in enumerate(steps) if place not in at]

    def family(value: Any) -> Plan:
        if name == "noise":
            changed = [with_noise(Plan.from_dict({**body, "steps": [steps[place]]}), value) for place in at]
        else:
            changed = [Plan.from_dict({**body, "steps": [{**steps[place], "count": value}]}) for place in at]
        return Plan.of(*changed, *rest, adjacency=changed[0].adjacency)

    found = calibrate(family, epsilon=epsilon, delta=delta, whole=name == "count")
    achieved = {"lower": found.achieved.lower, "upper": found.achieved.upper}
    return {"value": found.value, "epsilon": achieved, "plan": found.plan.to_dict()}


def python(body: dict[str, Any], delta: float) -> str:
    """A program that asks the same."""
    from privloss.mechanisms.base import DEFAULT_ADJACENCY

    plan = _plan(body)
    steps = [_call(step) for step in body["steps"]]
    if all(steps):
        made = " + ".join(steps)
        if plan.adjacency != DEFAULT_ADJACENCY:
            made = f"pl.Plan.of({', '.join(steps)}, adjacency={plan.adjacency!r})"
    else:  # something in it has no short form
        made = f"pl.Plan.from_dict({body!r})"
    asked = f"bound = plan.epsilon(delta={delta!r})  # neighbours: {plan.adjacency}"
    said = 'print(f"epsilon <= {bound.upper}, proven: the truth is in [{bound.lower}, {bound.upper}]")'
    return f"import privloss as pl\n\nplan = {made}\n{asked}\n{said}\n"


def _call(step: dict[str, Any]) -> str:
    """A step as people write it; empty where the package has no public name for it, or it is made of steps."""
    import privloss
    from privloss.mechanisms.kinds import ALIASES, KINDS, SCHEMES

    kind = KINDS[ALIASES.get(step["mechanism"], step["mechanism"])]
    given = {name: value for name, value in step.items() if name not in ("mechanism", "count", "sampling")}
    name = kind.description.__name__
    if name not in privloss.__all__ or any(isinstance(v, list) and isinstance(v[0], dict) for v in given.values()):
        return ""
    text = f"pl.{name}({_named(given)})"
    if "sampling" in step:
        drawn = dict(step["sampling"])
        method = SCHEMES[drawn.pop("scheme")].description.method
        if not hasattr(kind.description, method):
            return ""
        text += f".{method}({_named(drawn)})"
    times = step.get("count", 1)
    return text if times == 1 else f"{text} * {times}"


def _named(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _plan(body: dict[str, Any]) -> Any:
    from privloss.mechanisms.base import Plan

    return Plan.from_dict(body)
