"""Parallel composition: each record belongs to one part of the data, so only one part's promise matters to it.

>>> import privloss as pl
>>> north, south = pl.Gaussian(2.0) * 3, pl.Laplace(4.0) * 2
>>> both = pl.parallel({"north": north, "south": south})
>>> both.epsilon(1e-6).upper == max(north.epsilon(1e-6).upper, south.epsilon(1e-6).upper)
True

Conditions, stated in every answer: which part a record belongs to depends on that record alone (or on nothing), the
parts are disjoint, and every part's plan sees its own records only; later queries may depend on all earlier outputs.
Under add-remove and zero-out a neighbour then differs in one part. Under replace-one a record may leave one part and
enter another, so that two parts change: that is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from privloss.answers import exact
from privloss.errors import InvalidInput, Unsupported
from privloss.mechanisms.base import Mechanism, Plan
from privloss.numerics.bound import Bound, largest

CONDITION = "parallel composition: disjoint parts, each record's part depends on that record alone"


@dataclass(frozen=True)
class Parallel:
    """Plans on disjoint parts of the data."""

    parts: tuple[tuple[str, Plan], ...]

    def epsilon(self, delta: float) -> Bound:
        """The largest of the parts' epsilons."""
        return self._largest(lambda plan: exact.one_epsilon(plan, delta))

    def delta(self, epsilon: float) -> Bound:
        """The largest of the parts' deltas."""
        return self._largest(lambda plan: exact.one_delta(plan, epsilon))

    def _largest(self, ask: Callable[[Plan], Bound]) -> Bound:
        found = largest([ask(plan) for _, plan in self.parts])
        return Bound(found.lower, found.upper, found.method, (*found.notes, CONDITION))


def parallel(
    parts: Mapping[str, Plan | Mechanism], members: Mapping[str, Iterable[Hashable]] | None = None
) -> Parallel:
    """Plans by the name of their part; give `members` (the records of each part) to have disjointness checked."""
    if not isinstance(parts, Mapping) or not parts:
        raise InvalidInput(f"parts = {parts!r}: must map names to plans.")
    plans = []
    for name, plan in parts.items():
        if not isinstance(plan, (Plan, Mechanism)):
            raise InvalidInput(f"parts[{name!r}] = {plan!r}: must be a plan or a mechanism.")
        plans.append((str(name), plan.as_plan()))
    adjacencies = {plan.adjacency for _, plan in plans}
    if len(adjacencies) > 1:
        raise InvalidInput(f"adjacency = {sorted(adjacencies)!r}: all parts need the same.")
    if adjacencies == {"replace-one"}:
        raise Unsupported(
            "adjacency = 'replace-one': a replaced record may move from one part to another, and then two parts "
            "change; ask under add-remove or zero-out, or compose the plans."
        )
    if members is not None:
        if set(members) != set(parts):
            raise InvalidInput(f"members = {sorted(map(str, members))}: must name the same parts as the plans.")
        owner: dict[Hashable, str] = {}
        for name, records in members.items():
            for record in records:
                if owner.setdefault(record, name) != name:
                    raise InvalidInput(
                        f"record {record!r}: is in {owner[record]!r} and in {name!r}; parts must be disjoint."
                    )
    return Parallel(tuple(plans))
