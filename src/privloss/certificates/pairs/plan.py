"""The pairs of a whole plan, for the checker: from the plan file to steps in both directions.

`upper` dominates every pair of neighbours; `lower` is attained by some, where the two differ. This is the one place
where the checker reads a plan: it shares the parser with the engine, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from privloss.adjacency import REPLACE_ONE
from privloss.certificates.balls import Rejected, need
from privloss.certificates.budget import charge, numbers
from privloss.certificates.pairs.base import NOTHING, Named, Steps
from privloss.certificates.pairs.gaussian import GAUSSIAN
from privloss.certificates.pairs.noise import Step
from privloss.certificates.pairs.other import sampled
from privloss.certificates.pairs.unsampled import unsampled
from privloss.mechanisms.base import Plan

FORWARD, BACKWARD = "P against Q", "Q against P"


@dataclass(frozen=True)
class Sides:
    """Steps by direction; a symmetric plan has one direction only."""

    upper: dict[str, Steps]
    lower: dict[str, Steps]
    theorems: tuple[str, ...]


def plan_pairs(data: Any, adjacency: Any, boxed: bool = False) -> Sides:
    """The steps of a plan file under an adjacency (one of the plan format's); `boxed` reads noisy max as 0.1.0 did."""
    charge(16 * numbers(data), exact=True)
    try:
        plan = Plan.from_dict({**data, "adjacency": adjacency} if isinstance(data, dict) else data)
    except ValueError as problem:
        raise Rejected(f"plan: {problem}") from None
    read = _boxed if boxed else _named
    named = [(read(mechanism.to_dict(), adjacency), times) for mechanism, times in plan.steps]
    uneven = any(not n.symmetric for n, _ in named)
    # one uneven pair among even ones is too many: which order is worse may depend on what the others have shown
    mixed_up = adjacency == REPLACE_ONE and uneven and sum(times for _, times in named) > 1
    need(not mixed_up, "plan: roles of neighbours may swap; uneven pairs cannot be composed")
    upper, lower = _directions(named, attained=False), _directions(named, attained=True)
    if not uneven:
        del upper[BACKWARD]
        if all(n.attained is None for n, _ in named):
            del lower[BACKWARD]
    return Sides(upper, lower, tuple(dict.fromkeys(n.theorem for n, _ in named)))


def _directions(named: list[tuple[Named, int]], attained: bool) -> dict[str, Steps]:
    found: dict[str, Steps] = {}
    for i, name in enumerate((FORWARD, BACKWARD)):
        found[name] = [(((n.attained if attained else None) or n.pairs)[i], times) for n, times in named]
    return found


def _boxed(step: Step, adjacency: str) -> Named:
    """Noisy max with other than Gumbel noise as any epsilon-DP mechanism, of which nothing is claimed to be attained:
    true as well, and what certificates of 0.1.0 rest on."""
    if step["mechanism"] != "noisy-max" or step.get("noise", "gumbel") == "gumbel":
        return _named(step, adjacency)
    box = {name: value for name, value in step.items() if name != "noise"} | {"mechanism": "pure-dp"}
    return replace(_named(box, adjacency), attained=NOTHING)


def _named(step: Step, adjacency: str) -> Named:
    sampling = step.get("sampling")
    if sampling is None:
        return unsampled(step, adjacency)
    need(sampling["scheme"] in GAUSSIAN, f"plan: the sampler {sampling['scheme']!r} has no certified pair")
    if step["mechanism"] == "gdp":  # any mu-GDP mechanism is dominated by the Gaussian with sigma = 1/mu
        step = {"mechanism": "gaussian", "sigma": 1.0, "sensitivity": step["mu"], "sampling": sampling}
    if step["mechanism"] == "gaussian":
        return GAUSSIAN[sampling["scheme"]](step, sampling, adjacency)
    return sampled(step, sampling, adjacency)
