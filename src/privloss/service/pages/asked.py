"""What the calculator's form says: read into a plan, written from one, and changed step by step.

Everything is kept as the texts that a person has typed, so that a mistake is shown where it was made.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from privloss.adjacency import ADD_REMOVE, ADJACENCIES
from privloss.service import strict
from privloss.service.pages.fields import Choice, Wrong, choices, number, shown, whole
from privloss.service.pages.visits import Visit
from privloss.service.problems import Problem, bad

MOST_STEPS = 40  # kinds of step that a form shows
NONE = "none"  # no sampler
_FIRST = "gaussian:0"
_LONGEST_LINK = 8000
UNITS = ("person", "household", "device", "record")


@dataclass(frozen=True)
class StepForm:
    """One kind of step, as it stands in the form."""

    mechanism: str = _FIRST
    values: Mapping[str, str] = field(default_factory=dict)
    sampler: str = NONE
    drawn: Mapping[str, str] = field(default_factory=dict)  # the sampler's parameters
    count: str = "1"

    @property
    def choice(self) -> Choice:
        return choices()[0][self.mechanism]

    @property
    def sampling(self) -> Choice | None:
        return choices()[1].get(self.sampler)


@dataclass(frozen=True)
class Asked:
    """The whole form."""

    steps: tuple[StepForm, ...]
    unit: str = UNITS[0]
    adjacency: str = ADD_REMOVE
    delta: str = "1e-6"
    certify: bool = False
    target: str = "3"
    what: str = "noise"  # of what calibration looks for the value

    @classmethod
    def first(cls) -> Asked:
        """Noisy SGD: what a visitor sees first."""
        step = StepForm(values={"noise_multiplier": "1.1"}, sampler="poisson", drawn={"rate": "0.01"}, count="10000")
        return cls((step,))

    @classmethod
    def of(cls, visit: Visit) -> Asked:
        steps: list[StepForm] = []
        while f"s{len(steps)}.mechanism" in visit.form:
            if len(steps) == MOST_STEPS:
                raise bad(f"steps: this page shows at most {MOST_STEPS} kinds of step")
            steps.append(_step(visit, f"s{len(steps)}."))
        usual = cls.first()
        adjacency = visit.one("adjacency", ADD_REMOVE)
        if adjacency not in ADJACENCIES:
            raise bad("adjacency: is none of those offered")
        unit = " ".join(visit.one("unit").split())[:60]
        return cls(
            tuple(steps) or usual.steps, unit or usual.unit, adjacency, visit.one("delta", usual.delta).strip()[:60],
            bool(visit.one("certify")), visit.one("target", usual.target).strip()[:60], visit.one("what", usual.what),
        )  # fmt: skip

    @classmethod
    def with_plan(cls, asked: Asked, plan: Mapping[str, Any]) -> Asked:
        """The same questions about another plan, as a plan file has it."""
        steps = plan["steps"]
        if len(steps) > MOST_STEPS:
            raise bad(f"steps: this page shows at most {MOST_STEPS} kinds of step; the API and Python take more")
        return replace(asked, steps=tuple(_shown(step) for step in steps), adjacency=plan["adjacency"])

    def changed(self, do: str) -> Asked:
        """With a step added, or one copied or removed."""
        what, _, place = do.partition("-")
        steps = list(self.steps)
        if what == "add":
            steps.append(StepForm())
        elif place.isascii() and place.isdigit() and int(place) < len(steps):
            at = int(place)
            if what == "copy":
                steps.insert(at + 1, steps[at])
            elif what == "remove" and len(steps) > 1:
                del steps[at]
        if len(steps) > MOST_STEPS:
            raise bad(f"steps: this page shows at most {MOST_STEPS} kinds of step")
        return replace(self, steps=tuple(steps))

    # -- as a plan --

    def plan(self) -> dict[str, Any]:
        """The plan file; `Wrong` says which field holds what cannot be read."""
        named = len(self.steps) > 1
        steps = [_written(step, f"step {at}, " if named else "") for at, step in enumerate(self.steps, 1)]
        return {"version": 1, "adjacency": self.adjacency, "steps": steps}

    def delta_value(self) -> float:
        return number("delta", self.delta)

    def target_value(self) -> float:
        return number("epsilon to reach", self.target)

    def link(self) -> str:
        """All of it in a text for an address; empty where that would be too long."""
        said = {"plan": self.plan(), "delta": self.delta, "unit": self.unit}
        text = base64.urlsafe_b64encode(json.dumps(said, separators=(",", ":")).encode()).decode().rstrip("=")
        return text if len(text) <= _LONGEST_LINK else ""


def linked(text: str) -> tuple[dict[str, Any], str, str]:
    """Plan, delta and unit of a link."""
    try:
        raw = base64.urlsafe_b64decode(text[:_LONGEST_LINK] + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        raise bad("the link is damaged: it holds no plan") from None
    found = strict.loads(raw)
    plan = found.get("plan") if isinstance(found, dict) else None
    if not isinstance(plan, dict):
        raise bad("the link is damaged: it holds no plan")
    return plan, str(found.get("delta", "1e-6"))[:60], str(found.get("unit", UNITS[0]))[:60]


def file_of(text: str) -> dict[str, Any]:
    """A plan file, as text."""
    if not text.strip():
        raise bad("plan.json: choose a file, or paste its text")
    found = strict.loads(text.encode("utf-8", "surrogatepass"))
    if not isinstance(found, dict):
        raise bad("plan.json: must be a JSON object with steps")
    return found


def _step(visit: Visit, start: str) -> StepForm:
    def below(prefix: str) -> dict[str, str]:
        return {name.removeprefix(prefix): visit.one(name) for name in visit.form if name.startswith(prefix)}

    mechanism, sampler = visit.one(f"{start}mechanism"), visit.one(f"{start}sampler", NONE)
    if mechanism not in choices()[0] or sampler not in (NONE, *choices()[1]):
        raise bad("steps: a mechanism or a sampler is none of those offered")
    return StepForm(mechanism, below(f"{start}m."), sampler, below(f"{start}q."), visit.one(f"{start}count", "1"))


def _written(step: StepForm, where: str) -> dict[str, Any]:
    def values(choice: Choice, texts: Mapping[str, str]) -> dict[str, Any]:
        found = {each.name: each.read(texts.get(each.name, "")) for each in choice.fields}
        return {name: value for name, value in found.items() if value is not None}

    try:
        found: dict[str, Any] = {"mechanism": step.choice.kind, **values(step.choice, step.values)}
        sampling = step.sampling
        if sampling is not None:
            found["sampling"] = {"scheme": sampling.kind, **values(sampling, step.drawn)}
        times = whole("times", step.count)
    except Wrong as problem:
        raise Wrong(f"{where}{problem}") from None
    if times != 1:
        found["count"] = times
    return found


def _shown(step: Mapping[str, Any]) -> StepForm:
    """A step of a canonical plan file."""
    mechanisms, _ = choices()
    texts = {name: shown(value) for name, value in step.items() if name not in ("mechanism", "count", "sampling")}
    forms = (each for each in mechanisms.values() if each.kind == step["mechanism"] and each.describes(texts))
    found = next(forms, None)
    if found is None:
        raise Problem(422, "unsupported", f"this page cannot show a step {step['mechanism']!r} described like that")
    drawn = {name: shown(value) for name, value in step.get("sampling", {}).items()}
    sampler = drawn.pop("scheme", NONE)
    return StepForm(found.name, texts, sampler, drawn, str(step.get("count", 1)))
