"""How much noise, relative to what one record can change: the one place that knows what an adjacency does to it.

- ``noise_multiplier``: noise / bound C on one record's contribution to a *sum* (the clipping norm). The sensitivity
  follows from the adjacency: C under add-remove and zero-out, 2 C under replace-one, which swaps two contributions.
- an absolute scale with ``sensitivity``: the query's sensitivity under the plan's adjacency; nothing is doubled.
"""

from __future__ import annotations

import math
from typing import Any

from privloss.adjacency import REPLACE_ONE
from privloss.errors import InvalidInput
from privloss.losses.step import Distances


def contributions(adjacency: str) -> int:
    """How many clipping norms apart two neighbouring sums may be."""
    return 2 if adjacency == REPLACE_ONE else 1


def exactly_one(noise_multiplier: Any, name: str, absolute: Any, sensitivity: Any) -> None:
    """Refuse noise said twice or not at all, or a sensitivity beside a multiplier."""
    if (noise_multiplier is None) == (absolute is None):
        raise InvalidInput(f"noise_multiplier = {noise_multiplier!r}, {name} = {absolute!r}: give exactly one of them.")
    if noise_multiplier is not None and sensitivity is not None:
        raise InvalidInput(
            f"sensitivity = {sensitivity!r}: goes with {name}; noise_multiplier is noise / clipping norm."
        )


def alone(one: tuple[str, Any], other: tuple[str, Any], rest: tuple[Any, ...]) -> None:
    """Refuse noise given by a promise and in another way as well."""
    given = one if one[1] is not None else other
    if (one[1] is not None and other[1] is not None) or any(value is not None for value in rest):
        raise InvalidInput(f"{given[0]} = {given[1]!r}: says how much noise there is; give nothing else.")


def said(noise_multiplier: float | None, absolute: float | None) -> float:
    """The noise, in units of C or absolute."""
    return (noise_multiplier if noise_multiplier is not None else absolute) or 0.0


def sensitivity(noise_multiplier: float | None, given: float | None, adjacency: str) -> float:
    """How far neighbours may be apart, in the units of `said`."""
    if noise_multiplier is not None:
        return float(contributions(adjacency))
    return 1.0 if given is None else given


def sensitivity_text(noise_multiplier: float | None, given: float | None, adjacency: str) -> str:
    """The same in words."""
    if noise_multiplier is None:
        return f"sensitivity {1.0 if given is None else given:g} under {adjacency}"
    if adjacency == REPLACE_ONE:
        return "sensitivity 2 C (replace-one swaps two contributions), noise_multiplier = noise / C given"
    return f"sensitivity C ({adjacency}), noise_multiplier = noise / C given"


def distances(noise_multiplier: float | None, absolute: float | None, given: float | None, adjacency: str) -> Distances:
    """How far one record moves a sum, added and replaced, in units of the noise. With a sensitivity only the one that
    belongs to the adjacency is known (and a replacement is at most two additions)."""
    noise = said(noise_multiplier, absolute)
    size = 1.0 if noise_multiplier is not None or given is None else given
    moved = size / noise if noise > 0 else math.inf
    if noise_multiplier is None and adjacency == REPLACE_ONE:
        return Distances(None, moved)
    return Distances(moved, 2 * moved)


def needs_bound(bound: Any) -> None:
    """Truncated noise says where it ends."""
    if bound is None:
        raise InvalidInput("bound = None: must be given, in the units of the noise.")
