"""Certificates: an answer with its proof in ball arithmetic, as a small JSON file that anyone can check.

>>> from privloss.mechanisms.gaussian import Gaussian
>>> found = certify(Gaussian(noise_multiplier=1.1).poisson(0.01) * 10_000, delta=1e-6)
>>> found.data["claim"]["epsilon"]["upper"][:14], verify(found).holds
('5.806935026565', True)
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from flint import arb, ctx

import privloss
from privloss.adjacency import ADJACENCIES
from privloss.answers import exact
from privloss.certificates import search
from privloss.certificates.balls import Rejected, Use, rational
from privloss.certificates.budget import DEFAULT_WORK, Undecided
from privloss.certificates.checker import FORMAT, check, delta_bounds, digest
from privloss.certificates.claim import crossing, decimal_text, end, lower_of, text, upper_of
from privloss.certificates.evidence import attached, listed
from privloss.certificates.methods.bounds import DeltaBounds
from privloss.certificates.models import Model
from privloss.certificates.pairs.base import Steps
from privloss.certificates.pairs.plan import Sides, plan_pairs
from privloss.certificates.splitting import split
from privloss.errors import InvalidInput, Unsupported
from privloss.mechanisms.base import Plan
from privloss.numerics import check as checks
from privloss.numerics.bound import Bound, Bounds

_BITS = 96  # to start with, and log2 of the uses more
_RAISES = 4  # times the precision is doubled
_REDRAWN = 6  # times lines are drawn for an epsilon found to be far off
_ENOUGH, _ENOUGH_SPLIT = 1e-13, 2e-10  # relative width that needs no second method


@dataclass(frozen=True)
class Certificate:
    """A claim and the parameters that prove it; `data` is the JSON object."""

    data: dict[str, Any]

    @property
    def bound(self) -> Bound:
        """The claimed interval, rounded outwards to doubles."""
        name = "epsilon" if isinstance(self.data["claim"]["epsilon"], dict) else "delta"
        ends = self.data["claim"][name]
        method = " and ".join(dict.fromkeys(_methods(self.data["parameters"])))
        low, high = _double(ends["lower"], up=False), _double(ends["upper"], up=True)
        return Bound(low, high, f"certified ({method})", (f"precision {self.data['parameters']['precision']} bits",))

    @property
    def audits(self) -> list[dict[str, Any]]:
        """What the audits that it carries have found."""
        return listed(self.data)

    def with_audit(self, audit: Any, *, date: str | None = None) -> Certificate:
        """With an audit (`pl.audit`, or its JSON) of what it claims; `date` is the day it was made (today)."""
        try:
            found = attached(self.data, audit.to_json() if hasattr(audit, "to_json") else audit, date)
        except (Rejected, TypeError, ValueError) as problem:
            raise InvalidInput(f"audit: cannot be attached to this certificate: {problem}.") from None
        return Certificate({**found, "hash": digest(found)})

    def to_json(self) -> str:
        return json.dumps(self.data, indent=1)

    def save(self, path: str | Path) -> None:
        """Write the file whole or not at all: to a temporary neighbour, then renamed."""
        target = Path(path)
        try:
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        except OSError as problem:
            raise InvalidInput(f"path = {str(path)!r}: cannot be written ({problem.strerror}).") from None
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.to_json() + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
        except BaseException as problem:  # also Ctrl-C
            with contextlib.suppress(OSError):
                os.unlink(name)
            if isinstance(problem, OSError):
                raise InvalidInput(f"path = {str(path)!r}: cannot be written ({problem.strerror}).") from None
            raise

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as problem:
            raise InvalidInput(f"path = {str(path)!r}: is not a readable certificate ({problem}).") from None
        return cls(data)


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate proves its claim, and if not, which inequality failed; or that it is undecided, since
    deciding it takes more work than was allowed."""

    holds: bool
    reason: str
    undecided: bool = False
    audits: tuple[dict[str, Any], ...] = ()

    @property
    def refuted(self) -> bool:
        """Whether an audit that the certificate carries refutes that what is certified is what ran."""
        return any(found["verdict"] == "refuted" for found in self.audits)


def _methods(parameters: dict[str, Any]) -> list[str]:
    return [use["method"] for use in parameters.values() if isinstance(use, dict)]


def _double(text: str, up: bool) -> float:
    """The nearest double on the safe side of a decimal."""
    value = float(text)
    if (Fraction(value) < Fraction(text)) if up else (Fraction(value) > Fraction(text)):
        return math.nextafter(value, math.inf if up else 0.0)
    return value


def verify(certificate: Certificate | str | Path | dict[str, Any], *, work: float = DEFAULT_WORK) -> Verdict:
    """Check a certificate (or its file) in ball arithmetic, with at most `work` evaluations."""
    allowed = checks.number("work", work, low=1)
    if isinstance(certificate, (str, Path)):
        certificate = Certificate.load(certificate)
    data = certificate.data if isinstance(certificate, Certificate) else certificate
    try:
        check(data, allowed)
    except Undecided as problem:
        return Verdict(False, f"undecided: {problem} ({allowed:.0f} evaluations; `work` allows for more)", True)
    except Rejected as problem:
        return Verdict(False, str(problem))
    return Verdict(True, "every inequality holds", audits=tuple(listed(data)))


def certify(
    plan: Plan | Any, *, delta: float | None = None, epsilon: float | None = None, adjacency: str | None = None
) -> Certificate:
    """Prove epsilon at a delta, or delta at an epsilon; refuses what has no certified pair."""
    if (delta is None) == (epsilon is None):
        raise InvalidInput(f"delta = {delta!r}, epsilon = {epsilon!r}: give exactly one of them.")
    whole: Plan = plan.as_plan()
    chosen = whole.adjacency if adjacency is None else checks.choice("adjacency", adjacency, ADJACENCIES)
    if delta is not None:
        at = checks.number("delta", delta, low=0, high=1, above=True)
        guess = exact.one_epsilon(whole, at, adjacency=chosen)
    else:
        at = checks.number("epsilon", epsilon, low=0)
        guess = exact.one_delta(whole, at, adjacency=chosen)
    if math.isinf(guess.upper):
        raise Unsupported(f"{'delta' if delta is not None else 'epsilon'} = {at!r}: no finite epsilon to certify.")
    data = whole.to_dict()
    level = math.log(at) if delta is not None else math.log(max(guess.upper, 1e-300))
    try:
        pairs = plan_pairs(data, chosen).upper
    except Rejected as rejected:
        raise Unsupported(f"certify: {rejected}.") from None
    bits = _BITS + max(times for _, times in whole.steps).bit_length()
    bits += max(search.bits(steps, level) for steps in pairs.values())
    problem = ""
    for _ in range(_RAISES):
        with ctx.workprec(bits):
            try:
                sides = plan_pairs(data, chosen)
                found = _Finder(sides, at, delta is not None, guess).run()
            except Rejected as rejected:
                problem, bits = str(rejected), bits * 2
                continue
        claim, parameters = found
        made = {
            "format": FORMAT,
            "library": f"privloss {privloss.__version__}",
            "plan": data,
            "adjacency": chosen,
            "claim": claim,
            "parameters": {"precision": bits, **parameters},
            "theorems": list(sides.theorems),
        }
        return Certificate({**made, "hash": digest(made)})
    raise Unsupported(f"certify: no proof was found ({problem}).")


def epsilon(plan: Plan, delta: Any, *, adjacency: str | None = None) -> Bound | Bounds:
    """Certified answers, one for every delta."""
    return exact.each("delta", delta, 1.0, lambda d: certify(plan, delta=d, adjacency=adjacency).bound)


def delta(plan: Plan, epsilon: Any, *, adjacency: str | None = None) -> Bound | Bounds:
    """Certified answers, one for every epsilon."""
    return exact.each("epsilon", epsilon, math.inf, lambda e: certify(plan, epsilon=e, adjacency=adjacency).bound)


class _Finder:
    """Searches the parameters of every direction, then the ends of the claim."""

    def __init__(self, sides: Sides, at: float, of_epsilon: bool, guess: Bound) -> None:
        self.sides, self.of_epsilon, self.guess = sides, of_epsilon, guess
        self.at = arb(at)
        self.text = decimal_text(at)

    def run(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._epsilon() if self.of_epsilon else self._delta()

    # -- epsilon at a delta --

    def _epsilon(self) -> tuple[dict[str, Any], dict[str, Any]]:
        target, parameters = rational(Fraction(self.text)), dict[str, Any]()
        high = low = Fraction(0)
        attained = None
        known: dict[str, tuple[Use, DeltaBounds]] = {}
        order = sorted(self.sides.upper, key=lambda name: -self._rough(self.sides.upper[name]))
        for name in order:
            use, bounds, end = self._upper_end(self.sides.upper[name], target, high)
            parameters[name] = use
            known[name] = use, bounds
            high = max(high, end)
        for name, steps in self.sides.lower.items():
            same = name in known and _same(steps, self.sides.upper[name])
            if same:
                use, bounds = known[name]
                if use["method"] in ("chernoff", "largest"):
                    continue
                end = crossing(lower_of(bounds), target, high, up=False)
            elif low > 0 and self._rough(steps) < float(low) * 0.999:
                continue
            else:
                use, end = self._lower_end(steps, target, high)
            if end > low:
                low, attained = end, (name, None if same else use)
        claim = {"delta": self.text, "epsilon": {"lower": text(low), "upper": text(high)}}
        if attained is not None:
            parameters["attained"] = attained[0]
            if attained[1] is not None:
                parameters["lower"] = attained[1]
        return claim, parameters

    def _rough(self, steps: Steps) -> float:
        """About where this direction's delta is the target: for the order of work only."""
        model = Model(steps)
        x = max(self.guess.upper, 1e-9)
        c = model.saddle(x)
        return x + (model.k(c) - c * x - math.log(c) - math.log1p(c) - float(self.at.log())) / c

    def _upper_end(self, steps: Steps, target: arb, known: Fraction) -> tuple[Use, DeltaBounds, Fraction]:
        """Parameters whose upper end is least; a Chernoff bound where another direction is known to be worse."""
        floor = rational(known)
        if known > 0 or self.guess.upper == 0:
            for make in (search.largest, search.chernoff):
                with contextlib.suppress(search.Unaffordable, Rejected):
                    use = make(steps, float(known), float(target.log()))
                    bounds = delta_bounds(steps, use)
                    if bounds(floor)[1] <= target:
                        return use, bounds, known
        best: tuple[Use, DeltaBounds, Fraction] | None = None
        for first in search.candidates(steps, self.guess.upper, float(target.log())):
            try:
                bounds = delta_bounds(steps, first)
                if bounds(floor)[1] <= target:
                    return first, bounds, known
                use, bounds, end = self._drawn(steps, first, bounds, target)
                below = crossing(lower_of(bounds), target, end, up=False)
            except Rejected:
                continue
            if best is None or end < best[2]:
                best = use, bounds, end
            if end - below <= _enough(use) * end or use["method"] in ("sum", "residues", "threshold"):
                break
        if best is None:
            raise Rejected("no method reaches this plan")
        return best

    def _drawn(self, steps: Steps, use: Use, bounds: DeltaBounds, target: arb) -> tuple[Use, DeltaBounds, Fraction]:
        """The upper end; a split that was made for an epsilon far from it is made again."""
        made = self.guess.upper
        end = crossing(upper_of(bounds), target, Fraction(made), up=True)
        for _ in range(_REDRAWN):
            if use["method"] != "split" or not end > 0 or 0.98 < made / float(end) < 1.02:
                break
            made = float(end)
            use = split(steps, made, float(target.log()))
            bounds = delta_bounds(steps, use)
            end = crossing(upper_of(bounds), target, end, up=True)
        return use, bounds, end

    def _lower_end(self, steps: Steps, target: arb, high: Fraction) -> tuple[Use, Fraction]:
        best: tuple[Use, Fraction] = ({}, Fraction(0))
        start = self.guess.lower if self.guess.lower > 0 else float(high)
        for use in search.candidates(steps, max(start, 1e-12), float(target.log())):
            with contextlib.suppress(Rejected):
                bounds = delta_bounds(steps, use)
                end = crossing(lower_of(bounds), target, Fraction(start), up=False)
                if end > best[1]:
                    best = use, min(end, high)
                if use["method"] != "line" or "blur" not in use:
                    break
        return best

    # -- delta at an epsilon --

    def _delta(self) -> tuple[dict[str, Any], dict[str, Any]]:
        x, parameters = rational(Fraction(self.text)), dict[str, Any]()
        level = math.log(max(self.guess.upper, 1e-300))
        high = low = arb(0)
        attained = None
        known: dict[str, tuple[Use, arb, arb]] = {}
        for name, steps in self.sides.upper.items():
            known[name] = self._small_delta(steps, x, high) or self._best_delta(steps, x, level)
            parameters[name] = known[name][0]
            high = high.max(known[name][2])
        for name, steps in self.sides.lower.items():
            same = _same(steps, self.sides.upper.get(name, ()))
            use, value, _ = known[name] if same else self._best_delta(steps, x, level)
            if value > low:
                low, attained = value, (name, None if same else use)
        ends = {"lower": text(end(low, up=False)), "upper": text(end(high, up=True))}
        if attained is not None:
            parameters["attained"] = attained[0]
            if attained[1] is not None:
                parameters["lower"] = attained[1]
        return {"delta": ends, "epsilon": self.text}, parameters

    def _small_delta(self, steps: Steps, x: arb, known: arb) -> tuple[Use, arb, arb] | None:
        """A bound that is cheap, and enough where another direction is known to be worse."""
        for make in (search.largest, search.chernoff) if known > 0 else ():
            with contextlib.suppress(search.Unaffordable, Rejected):
                use = make(steps, float(x), float(known.log()))
                low, high = delta_bounds(steps, use)(x)
                if high <= known:
                    return use, low, high
        return None

    def _best_delta(self, steps: Steps, x: arb, level: float) -> tuple[Use, arb, arb]:
        best: tuple[Use, arb, arb] | None = None
        for first in search.candidates(steps, float(x), level):
            try:
                use = first
                low, high = delta_bounds(steps, use)(x)
                if (
                    use["method"] == "split" and high > 0 and abs(float(high.log()) - level) > 2
                ):  # drawn for another delta
                    use = split(steps, float(x), float(high.log()))
                    low, high = delta_bounds(steps, use)(x)
            except Rejected:
                continue
            if not (low.is_finite() and high.is_finite()):
                continue
            if best is None or high.upper() < best[2].upper():
                best = use, low, high
            if high - low <= _enough(use) * high:
                break
        if best is None:
            raise Rejected("no method reaches this plan")
        return best


def _enough(use: Use) -> float:
    return _ENOUGH_SPLIT if use["method"] == "split" else _ENOUGH


def _same(steps: Steps, others: Steps) -> bool:
    return len(steps) == len(others) and all(a[0] is b[0] and a[1] == b[1] for a, b in zip(steps, others, strict=True))
