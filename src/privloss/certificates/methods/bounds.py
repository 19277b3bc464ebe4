"""What every method works with: steps, their parameters, a plan's M on a line; and what it returns.

A plan's M is the product of its steps'; f(x) = E[(1 - e^(x-Z))+; Z finite], so that delta(x) = P[Z = inf] + f(x). A
method encloses f. docs/certificates.md, section 1.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import acb, arb

from privloss.certificates.balls import Rejected, Use
from privloss.certificates.budget import charge
from privloss.certificates.pairs.base import Steps

Enclosure = tuple[arb, arb]  # a ball whose members are <= f, and one whose members are >= f
DeltaBounds = Callable[[arb], Enclosure]


def part(use: Use, index: int) -> Use:
    """The parameters of one step."""
    parts = use.get("steps", {})
    found = parts.get(str(index), {}) if isinstance(parts, dict) else None
    if not isinstance(found, dict):
        raise Rejected("parameters of a step must be an object")
    return found


def product(steps: Steps, use: Use, c: arb, step: arb, count: int) -> list[acb]:
    """The plan's M at c + i n step."""
    totals = [acb(1)] * (count + 1)
    for index, (pair, times) in enumerate(steps):
        charge((count + 1) * (1 + times.bit_length() / 8))
        values = pair.line(c, step, count, part(use, index))
        totals = [x * value**times for x, value in zip(totals, values, strict=True)]
    return totals
