"""What an audit says: a lower bound on epsilon with its ceiling, and a verdict on the claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from privloss.audit.claim import Claim
from privloss.audit.record import BLIND, NOT_REFUTED, REFUTED, rounded_down
from privloss.numerics.bound import Bound

_SAYING = (None, BLIND, NOT_REFUTED, REFUTED)  # how much a verdict says


@dataclass(frozen=True, kw_only=True)
class Audit:
    """`epsilon` exceeds the truth with probability at most `alpha`, under the assumptions listed; it is never more than
    `ceiling`, what a perfect result would have shown."""

    epsilon: float
    delta: float
    alpha: float
    ceiling: float
    method: str
    assumptions: tuple[str, ...]
    p_value: float | None = None  # of the claim
    verdict: str | None = None  # "refuted", "not refuted", "blind"; None without a claim
    claim: Bound | None = None  # the epsilon that is claimed at claim_delta
    claim_delta: float | None = None  # of a plan: delta; of a pair: its own
    claim_text: str = ""
    claim_plan: dict[str, Any] | None = None  # as in a plan file
    region: tuple[float, float] | None = None  # TPR is at least, FPR at most
    counts: dict[str, int] | None = None
    threshold: float | None = None
    event: str = ""
    mu: float | None = None  # not mu-GDP for any smaller mu
    epsilon_if_gaussian: float | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = (
            f"With {_confidence(self.alpha)} confidence epsilon >= {rounded_down(self.epsilon)} "
            f"at delta = {self.delta:g} (ceiling {rounded_down(self.ceiling)})."
        )
        if self.verdict is not None and self.claim is not None:
            p = "" if self.p_value is None else f", p = {self.p_value:.2g}"
            at = "" if self.claim_delta in (None, self.delta) else f" at delta = {self.claim_delta:g}"
            text += f" Claim {self.claim.upper:.6g}{at}: {self.verdict}{p}."
        return text

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        found = {key: value for key, value in asdict(self).items() if key != "claim"}
        found["claim"] = None if self.claim is None else {"lower": self.claim.lower, "upper": self.claim.upper}
        found["audit_version"] = 1
        return {key: _plain(value) for key, value in found.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (tuple, list)) else value


def _confidence(alpha: float) -> str:
    """1 - alpha, never rounded to 1."""
    return f"{math.floor((1 - alpha) * 1e6 + 1e-6) / 1e6:.6g}" if alpha >= 1e-5 else f"1 - {alpha:g}"


def strongest(found: Sequence[Audit]) -> Audit:
    """Of audits of one claim that share alpha: the one that says most."""
    return max(found, key=lambda a: (_SAYING.index(a.verdict), a.epsilon))


def below(claim: Claim | None, ceiling: float) -> tuple[str, ...]:
    """A note where the bound on epsilon could never reach what is claimed."""
    if claim is None or ceiling >= claim.epsilon.lower:
        return ()
    least = "no result can refute it" if claim.plan is None else "only its curve at another delta can be refuted"
    return (f"the ceiling lies below the claim: {least}",)


def judged(claim: Claim | None, refuted: bool, could: bool) -> dict[str, Any]:
    """The fields of a verdict; `could` says whether a perfect result would have refuted the claim."""
    if claim is None:
        return {}
    verdict = REFUTED if refuted else NOT_REFUTED if could else BLIND
    plan = None if claim.plan is None else {**claim.plan.to_dict(), "adjacency": claim.adjacency}
    said = {"verdict": verdict, "claim": claim.epsilon, "claim_delta": claim.delta, "claim_text": claim.text}
    return {**said, "claim_plan": plan}
