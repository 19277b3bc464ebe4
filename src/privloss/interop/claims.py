"""Claims of others: what ran, read from what their tools leave behind, and whether the epsilon they name holds.

>>> claim = Claim.of_plan(Gaussian(1.1).poisson(0.01) * 10_000, epsilon=5.5, delta=1e-6)
>>> judged = judge(claim)
>>> judged.verdict, judged.truth.lower > 5.8
('refuted', True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privloss.adjacency import ADD_REMOVE, ADJACENCIES
from privloss.errors import InvalidInput, MissingExtra, Unsupported
from privloss.interop import events, histories
from privloss.interop.loaders import plans
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.plan_file import decode
from privloss.numerics import check
from privloss.numerics.bound import Bound

if TYPE_CHECKING:
    from privloss.certificates.certificate import Certificate

PROVEN, REFUTED, UNDECIDED = "proven", "refuted", "undecided"
_RUN = ("noise_multiplier", "sample_rate", "steps")
_CHECKPOINT = "privacy_accountant_state_dict"  # where Opacus keeps its accountant in a checkpoint
_TORCH = (b"PK\x03\x04", b"\x80")  # how files of torch.save begin, whatever they are called; no JSON does


@dataclass(frozen=True)
class Claim:
    """(epsilon, delta)-DP of what ran; `above` is rounded to less privacy and `below` to more, where that is needed."""

    above: Plan
    below: Plan
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check.number("epsilon", self.epsilon, low=0)
        check.number("delta", self.delta, low=0, high=1)

    @classmethod
    def of_plan(cls, plan: Plan | Mechanism, epsilon: float, delta: float) -> Claim:
        whole = plan.as_plan()
        return cls(whole, whole, epsilon, delta)


@dataclass(frozen=True)
class Judgement:
    """The verdict, the interval it rests on, and for a refutation its certificate, if there is one."""

    verdict: str
    truth: Bound
    reason: str
    certificate: Certificate | None = None


def judge(claim: Claim) -> Judgement:
    """Proven if the upper end of the truth is at most the epsilon named, refuted if its lower end exceeds it."""
    above = claim.above.epsilon(claim.delta)
    below = above if claim.above == claim.below else claim.below.epsilon(claim.delta)
    truth = Bound(min(below.lower, above.upper), above.upper, above.method, above.notes)
    if truth.upper <= claim.epsilon:
        return Judgement(PROVEN, truth, f"the least epsilon is at most {truth.upper!r}")
    if not below.lower > claim.epsilon:
        return Judgement(UNDECIDED, truth, f"the claim lies inside [{truth.lower!r}, {truth.upper!r}]")
    from privloss.certificates.certificate import certify

    try:
        proof = certify(claim.below, delta=claim.delta)
    except (Unsupported, InvalidInput) as problem:  # delta = 0, no noise at all, or no certified pair
        return Judgement(REFUTED, truth, f"the truth is at least {below.lower!r}; without a certificate: {problem}")
    if not proof.bound.lower > claim.epsilon:
        return Judgement(UNDECIDED, truth, f"no certificate shows more than {proof.bound.lower!r}")
    return Judgement(REFUTED, truth, f"the truth is at least {proof.bound.lower!r}", proof)


# -- files -------------------------------------------------------------------------------------------------------------


def from_event(path: Path, epsilon: float, delta: float, adjacency: str | None) -> Claim:
    """An event of dp-accounting as JSON."""
    event, chosen = decode(_text(path)), adjacency or ADD_REMOVE
    return Claim(events.read(event, chosen), events.read(event, chosen, below=True), epsilon, delta)


def from_opacus(path: Path, epsilon: float, delta: float, adjacency: str | None) -> Claim:
    """The history of an Opacus accountant: a JSON list of (noise multiplier, sample rate, steps), its state dict, or a
    checkpoint that holds one. Where a state dict says which loaders ran, the claim is about those."""
    state = _checkpoint(path) if _head(path).startswith(_TORCH) else decode(_text(path))
    if isinstance(state, Mapping):
        state = state.get(_CHECKPOINT, state)
    phases = _history(state.get("history") if isinstance(state, Mapping) else state, path)
    others, reasons = histories.loaders(state if isinstance(state, Mapping) else {})
    problem = histories.refused(f"{sum(n for _, _, n in phases)} steps are recorded", reasons)
    if problem is not None:
        raise problem
    if not others:
        return Claim.of_plan(Plan.of(*histories.poisson(phases), adjacency=adjacency or ADD_REMOVE), epsilon, delta)
    ran, recorded = histories.split(phases, others)
    above, below = plans(ran, recorded) if adjacency is None else plans(ran, recorded, [adjacency])
    return Claim(above, below, epsilon, delta)


def _history(given: Any, path: Path) -> histories.History:
    if not isinstance(given, list) or not given:
        raise InvalidInput(f"{str(path)!r}: holds no history of (noise multiplier, sample rate, steps).")
    for one in given:
        if not isinstance(one, (list, tuple)) or len(one) != 3:
            raise InvalidInput(f"history: {one!r} must be (noise multiplier, sample rate, steps).")
    return [histories.phase(*one) for one in given]


def from_claim(path: Path) -> Claim:
    """``{"plan": {...}, "epsilon": e, "delta": d}``, or noise_multiplier, sample_rate and steps in place of the plan;
    `adjacency` may be added."""
    data = decode(_text(path))
    known = {"plan", *_RUN, "epsilon", "delta", "adjacency"}
    if not isinstance(data, Mapping) or not {"epsilon", "delta"} <= set(data) <= known:
        raise InvalidInput(
            f"{str(path)!r}: a claim has epsilon, delta and what ran; known keys are {', '.join(sorted(known))}."
        )
    if ("plan" in data) == any(name in data for name in _RUN):
        raise InvalidInput(f"{str(path)!r}: a claim has either a plan or {', '.join(_RUN)}.")
    if "plan" in data:
        plan = Plan.from_dict(data["plan"])
    elif "noise_multiplier" in data:
        step: Mechanism = Gaussian(noise_multiplier=data["noise_multiplier"])
        step = step.poisson(data["sample_rate"]) if "sample_rate" in data else step
        plan = step * data.get("steps", 1)
    else:
        raise InvalidInput(f"{str(path)!r}: noise_multiplier is missing.")
    if "adjacency" in data:
        plan = plan.under(check.choice("adjacency", data["adjacency"], ADJACENCIES))
    return Claim.of_plan(plan, data["epsilon"], data["delta"])


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as problem:
        raise InvalidInput(f"file = {str(path)!r}: cannot be read ({problem}).") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"file = {str(path)!r}: cannot be read ({problem}).") from None


def _checkpoint(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra("a checkpoint needs torch: pip install torch (or save its history as JSON).") from None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)  # numbers and tensors, no code
    except Exception as problem:
        raise InvalidInput(f"file = {str(path)!r}: is no checkpoint that can be read safely ({problem}).") from None
