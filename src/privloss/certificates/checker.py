"""The checker: reads a certificate, recomputes its bounds in ball arithmetic, says yes or no.

It shares nothing with the engine that found the certificate; from the package it imports the plan parser only
(`pairs/plan.py`). `pairs` says what a plan's steps tell about a record, `methods` bound delta of their composition;
here a claim is read and compared. Every number is a ball of python-flint, which contains the exact value; `<` between
balls is true only if it holds for all their members. docs/certificates.md derives every inequality.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flint import arb, ctx

from privloss.certificates.balls import Rejected, Use, exact, need, whole
from privloss.certificates.budget import DEFAULT_WORK, Undecided, limited
from privloss.certificates.evidence import check_audits
from privloss.certificates.methods.bounds import DeltaBounds, Enclosure, part
from privloss.certificates.methods.chernoff import by_chernoff
from privloss.certificates.methods.lattice import by_lattice
from privloss.certificates.methods.line import by_line
from privloss.certificates.methods.outcomes import by_largest, by_sum
from privloss.certificates.methods.residues import by_residues
from privloss.certificates.methods.split import by_split
from privloss.certificates.methods.threshold import by_threshold
from privloss.certificates.pairs.base import Steps
from privloss.certificates.pairs.plan import Sides, plan_pairs

FORMAT = "privloss certificate 1"
LEAST_BITS, MOST_BITS = 53, 8192
KEYS = {"format", "library", "plan", "adjacency", "claim", "parameters", "theorems", "hash"}
METHODS: dict[str, Callable[[Steps, Use], DeltaBounds]] = {
    "line": by_line,
    "lattice": by_lattice,
    "chernoff": by_chernoff,
    "largest": by_largest,
    "sum": by_sum,
    "threshold": by_threshold,
    "residues": by_residues,
    "split": by_split,
}


def delta_bounds(steps: Steps, use: Use) -> DeltaBounds:
    """Balls around lower and upper bounds on delta(x) in one direction."""
    method = METHODS.get(str(use.get("method")))
    if method is None:
        raise Rejected(f"method = {use.get('method')!r} must be one of {', '.join(METHODS)}")
    inside = method(steps, use)
    finite, kept = arb(1), arb(1)
    for index, (pair, times) in enumerate(steps):
        finite *= (1 - pair.infinite) ** times
        kept *= (1 - pair.infinite - pair.dropped - pair.thinned(part(use, index))).max(arb(0)) ** times

    def bounds(x: arb) -> Enclosure:
        low, high = inside(x)
        return (low.max(arb(0)) + (1 - finite)).min(arb(1)), (high + (1 - kept)).min(arb(1))

    return bounds


def digest(data: dict[str, Any]) -> str:
    """SHA-256 over every field but the hash itself."""
    rest = {key: value for key, value in data.items() if key != "hash"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def check(data: Any, work: float = DEFAULT_WORK) -> None:
    """Return if the certificate's claim is proven by its parameters; raise `Rejected` if it is not, `Undecided` if that
    would take more work than allowed."""
    try:
        with limited(work):
            _check(data)
    except (Rejected, Undecided):
        raise
    except Exception as problem:  # whatever stops the proof leaves nothing proven
        raise Rejected(f"malformed: {type(problem).__name__}: {problem}") from None


def _check(data: Any) -> None:
    known = isinstance(data, dict) and set(data) - {"audits"} == KEYS
    need(known, f"a certificate has exactly the fields {', '.join(sorted(KEYS))}, and perhaps audits")
    need(data["format"] == FORMAT, f"format = {data['format']!r} must be {FORMAT!r}")
    need(data["hash"] == digest(data), "the hash does not belong to the other fields")
    parameters = data["parameters"]
    need(isinstance(parameters, dict), "parameters must be an object")
    bits = whole(parameters, "precision", MOST_BITS)
    need(bits >= LEAST_BITS, f"parameter precision = {bits} must be at least {LEAST_BITS}")
    with ctx.workprec(bits):
        claim = Claim.of(data["claim"])
        sides = plan_pairs(data["plan"], data["adjacency"])
        if list(sides.theorems) != data["theorems"]:
            sides = plan_pairs(data["plan"], data["adjacency"], boxed=True)
        need(list(sides.theorems) == data["theorems"], "theorems: not those of this plan")
        _judge(claim, sides, parameters)
        check_audits(data)


@dataclass(frozen=True)
class Claim:
    """epsilon (`of_epsilon`) or delta lies in [low, high]; the other one is `at`."""

    of_epsilon: bool
    low: arb
    high: arb
    at: arb

    @classmethod
    def of(cls, data: Any) -> Claim:
        need(isinstance(data, dict) and set(data) == {"delta", "epsilon"}, "claim must have delta and epsilon")
        of_epsilon = isinstance(data["epsilon"], dict)
        interval, point = (data["epsilon"], data["delta"]) if of_epsilon else (data["delta"], data["epsilon"])
        need(isinstance(interval, dict) and set(interval) == {"lower", "upper"}, "claim must have lower and upper")
        claim = cls(of_epsilon, exact(interval["lower"]), exact(interval["upper"]), exact(point))
        need(not claim.low > claim.high, "claim: lower exceeds upper")
        return claim

    def upper(self) -> tuple[arb, arb]:
        """An epsilon, and what delta must not exceed there."""
        return (self.high, self.at) if self.of_epsilon else (self.at, self.high)

    def lower(self) -> tuple[arb, arb]:
        """An epsilon, and what delta must exceed there (or, if delta is claimed, at least be)."""
        return (self.low, self.at) if self.of_epsilon else (self.at, self.low)


def _judge(claim: Claim, sides: Sides, parameters: dict[str, Any]) -> None:
    known: dict[str, DeltaBounds] = {}

    def bounds(steps: Steps, name: str) -> DeltaBounds:
        use = parameters.get(name)
        if not isinstance(use, dict):
            raise Rejected(f"parameters.{name} is missing")
        key = json.dumps([[id(pair), n] for pair, n in steps]) + json.dumps(use, sort_keys=True)
        if key not in known:
            known[key] = delta_bounds(steps, use)
        return known[key]

    x, wanted = claim.upper()
    for direction, steps in sides.upper.items():
        found = bounds(steps, direction)(x)[1]
        enclosed = f"upper end, {direction}: delta({x.str(20)}) is enclosed by {found.str(15)}"
        need(bool(found <= wanted), f"{enclosed}, which is not surely <= {wanted.str(15)}")
    if claim.low == 0:
        return
    x, wanted = claim.lower()
    direction = _attained(sides.lower, parameters)
    found = bounds(sides.lower[direction], "lower" if "lower" in parameters else direction)(x)[0]
    enclosed = f"lower end, {direction}: delta({x.str(20)}) is enclosed by {found.str(15)}"
    if claim.of_epsilon:  # strict: where delta is constant, equality would prove nothing
        need(bool(found > wanted), f"{enclosed}, which is not surely > {wanted.str(15)}")
    else:
        need(bool(found >= wanted), f"{enclosed}, which is not surely >= {wanted.str(15)}")


def _attained(lower: Mapping[str, Steps], parameters: dict[str, Any]) -> str:
    """The direction that the lower end is read in."""
    direction = parameters.get("attained")
    if not (isinstance(direction, str) and direction in lower):
        raise Rejected(f"parameters.attained = {direction!r} must be one of {', '.join(lower)}")
    return direction
