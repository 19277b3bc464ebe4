"""Where an answer comes from: theorems, engine, assumptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privloss.answers import exact
from privloss.errors import InvalidInput
from privloss.mechanisms.base import Plan
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics import check
from privloss.numerics.bound import Bound

IDEAL_NOISE = "ideal real-valued noise"
ADAPTIVE = "all parameters fixed before the first step; outcomes may steer later queries"


@dataclass(frozen=True)
class Explanation:
    """An answer with its reasons; `str()` prints it for people, `to_dict()` for programs."""

    plan: Plan
    adjacency: str
    question: str  # "epsilon" or "delta"
    given: float  # the delta or epsilon asked at
    answer: Bound
    theorems: tuple[str, ...]
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        other = "delta" if self.question == "epsilon" else "epsilon"
        return {
            self.question: {"lower": self.answer.lower, "upper": self.answer.upper},
            other: self.given,
            "adjacency": self.adjacency,
            "method": self.answer.method,
            "certified": self.answer.method.startswith("certified"),
            "assumptions": list(self.assumptions),
            "theorems": list(self.theorems),
            "notes": list(self.answer.notes),
        }

    def __str__(self) -> str:
        other = "delta" if self.question == "epsilon" else "epsilon"
        steps = [f"  {n:>12,} x {m!r}" for m, n in self.plan.steps[:20]]
        if len(self.plan.steps) > 20:
            steps.append(f"  ... and {len(self.plan.steps) - 20} more kinds of step")
        lines = [
            f"{self.question} = {self.answer}   at {other} = {self.given:g}",
            f"adjacency: {self.adjacency}",
            "plan:",
            *steps,
            f"engine: {self.answer.method}; relative width {self.answer.relative_width:.1e}",
            *(f"  note: {note}" for note in self.answer.notes),
            "theorems:",
            *(f"  - {text}" for text in self.theorems),
            "assumed:",
            *(f"  - {text}" for text in self.assumptions),
        ]
        return "\n".join(lines)


def explain(
    plan: Plan,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    adjacency: str | None = None,
    tolerance: float = 1e-10,
    answer: Callable[[float], Bound] | None = None,
) -> Explanation:
    """Answer for exactly one of delta and epsilon, with reasons; `answer` may bring a number of its own, a certified
    one say."""
    if (delta is None) == (epsilon is None):
        raise InvalidInput(f"delta = {delta!r}, epsilon = {epsilon!r}: give exactly one of them.")
    worst = worst_neighbours(plan, adjacency)
    question, ask, given = (
        ("epsilon", exact.one_epsilon, delta) if epsilon is None else ("delta", exact.one_delta, epsilon)
    )
    at = check.number("delta", given, low=0, high=1) if epsilon is None else check.number("epsilon", given, low=0)
    found = ask(plan, at, adjacency=adjacency, tolerance=tolerance) if answer is None else answer(at)
    return Explanation(
        plan=plan,
        adjacency=worst.adjacency,
        question=question,
        given=at,
        answer=found,
        theorems=(*worst.theorems, "Dominating pairs compose adaptively (Zhu, Dong, Wang 2022, Thm. 10)"),
        assumptions=(f"adjacency: {worst.adjacency}", *worst.assumptions, ADAPTIVE, IDEAL_NOISE),
    )
