"""How much noise a step has, and how far neighbours are apart: read from the plan file, under an adjacency.

- `noise_multiplier`: the noise in units of the bound C on one record's contribution. Neighbours are C apart under
  add-remove and zero-out, 2 C under replace-one, which swaps two contributions. For noise on whole numbers C = 1.
- an absolute scale: `sensitivity` (1 if not given) is the distance under the plan's adjacency.
"""

from __future__ import annotations

from typing import Any

from flint import arb

from privloss.adjacency import REPLACE_ONE
from privloss.certificates.balls import Rejected, need

Step = dict[str, Any]  # one step of a plan file
WITHOUT_NOISE = "plan: without noise no finite epsilon can be certified"


def refuse(text: str) -> Rejected:
    return Rejected(f"plan: {text} has no certified pair")


def noise_and_size(step: Step, name: str, adjacency: str) -> tuple[float, float]:
    """The noise (the parameter `name`, or a multiple of C) and the distance of neighbours, in the same units."""
    if "noise_multiplier" in step:
        return float(step["noise_multiplier"]), 2.0 if adjacency == REPLACE_ONE else 1.0
    return float(step[name]), float(step.get("sensitivity", 1.0))


def ratio(step: Step, name: str, adjacency: str) -> arb:
    """The distance of neighbours in units of the noise."""
    noise, size = noise_and_size(step, name, adjacency)
    need(noise > 0, WITHOUT_NOISE)
    return arb(size) / arb(noise)


def distances(step: Step, adjacency: str) -> tuple[arb, arb]:
    """How far a record moves the sum of a Gaussian step when added and when replaced, in units of the noise; with a
    sensitivity under replace-one the first is only half of what is known."""
    one = ratio(step, "sigma", adjacency)
    return (one / 2, one) if adjacency == REPLACE_ONE else (one, 2 * one)
