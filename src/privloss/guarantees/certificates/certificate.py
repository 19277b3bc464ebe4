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
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from flint import arb, ctx

import privloss
from privloss.errors import InvalidInput, Unsupported
from privloss.guarantees import exact
from privloss.guarantees.certificates import search
from privloss.guarantees.certificates.checker import FORMAT, Bounds, Rejected, Steps, Use, check, delta_bounds, digest
from privloss.guarantees.certificates.samplers import Sides, plan_pairs
from privloss.mechanisms.plan import ADJACENCIES, Plan
from privloss.numerics import check as checks
from privloss.numerics.bound import Bound

_BITS = 96  # to start with, and log2 of the uses more
_RAISES = 4  # times the precision is doubled
_DIGITS = 24  # of the ends of a claim
_ENOUGH = 1e-13  # relative width that needs no second method


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
    """Whether a certificate proves its claim, and if not, which inequality failed."""

    holds: bool
    reason: str


def _methods(parameters: dict[str, Any]) -> list[str]:
    return [use["method"] for use in parameters.values() if isinstance(use, dict)]


def _double(text: str, up: bool) -> float:
    """The nearest double on the safe side of a decimal."""
    value = float(text)
    if (Fraction(value) < Fraction(text)) if up else (Fraction(value) > Fraction(text)):
        return math.nextafter(value, math.inf if up else 0.0)
    return value


def verify(certificate: Certificate | str | Path | dict[str, Any]) -> Verdict:
    """Check a certificate (or its file) in ball arithmetic."""
    if isinstance(certificate, (str, Path)):
        certificate = Certificate.load(certificate)
    try:
        check(certificate.data if isinstance(certificate, Certificate) else certificate)
    except Rejected as problem:
        return Verdict(False, str(problem))
    return Verdict(True, "every inequality holds")


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
        guess = exact.epsilon(whole, at, adjacency=chosen)
    else:
        at = checks.number("epsilon", epsilon, low=0)
        guess = exact.delta(whole, at, adjacency=chosen)
    assert isinstance(guess, Bound)
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


class _Finder:
    """Searches the parameters of every direction, then the ends of the claim."""

    def __init__(self, sides: Sides, at: float, of_epsilon: bool, guess: Bound) -> None:
        self.sides, self.of_epsilon, self.guess = sides, of_epsilon, guess
        self.at = arb(at)
        self.text = _decimal_text(at)

    def run(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._epsilon() if self.of_epsilon else self._delta()

    # -- epsilon at a delta --

    def _epsilon(self) -> tuple[dict[str, Any], dict[str, Any]]:
        target, parameters = arb(_fraction(self.text)), {}
        high = low = Fraction(0)
        attained = None
        known: dict[str, tuple[Use, Bounds]] = {}
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
                end = _root(lambda x, b=bounds: b(x)[0], target, high, up=False)
            elif low > 0 and self._rough(steps) < float(low) * 0.999:
                continue
            else:
                use, end = self._lower_end(steps, target, high)
            if end > low:
                low, attained = end, (name, None if same else use)
        claim = {"delta": self.text, "epsilon": {"lower": _text(low), "upper": _text(high)}}
        if attained is not None:
            parameters["attained"] = attained[0]
            if attained[1] is not None:
                parameters["lower"] = attained[1]
        return claim, parameters

    def _rough(self, steps: Steps) -> float:
        """About where this direction's delta is the target: for the order of work only."""
        model = search.Model(steps)
        x = max(self.guess.upper, 1e-9)
        c = model.saddle(x)
        return x + (model.k(c) - c * x - math.log(c) - math.log1p(c) - float(self.at.log())) / c

    def _upper_end(self, steps: Steps, target: arb, known: Fraction) -> tuple[Use, Bounds, Fraction]:
        """Parameters whose upper end is least; a Chernoff bound where another direction is known to be worse."""
        floor = _arb(known)
        if known > 0 or self.guess.upper == 0:
            for make in (search.largest, search.chernoff):
                with contextlib.suppress(search.Unaffordable, Rejected):
                    use = make(steps, float(known))
                    bounds = delta_bounds(steps, use)
                    if bounds(floor)[1] <= target:
                        return use, bounds, known
        best: tuple[Use, Bounds, Fraction] | None = None
        for use in search.candidates(steps, self.guess.upper, float(target.log())):
            try:
                bounds = delta_bounds(steps, use)
                if bounds(floor)[1] <= target:
                    return use, bounds, known
                end = _root(lambda x, b=bounds: b(x)[1], target, Fraction(self.guess.upper), up=True)
                below = _root(lambda x, b=bounds: b(x)[0], target, end, up=False)
            except Rejected:
                continue
            if best is None or end < best[2]:
                best = use, bounds, end
            if end - below <= _ENOUGH * end or use["method"] in ("sum", "residues", "threshold"):
                break
        if best is None:
            raise Rejected("no method reaches this plan")
        return best

    def _lower_end(self, steps: Steps, target: arb, high: Fraction) -> tuple[Use, Fraction]:
        best: tuple[Use, Fraction] = ({}, Fraction(0))
        start = self.guess.lower if self.guess.lower > 0 else float(high)
        for use in search.candidates(steps, max(start, 1e-12), float(target.log())):
            with contextlib.suppress(Rejected):
                bounds = delta_bounds(steps, use)
                end = _root(lambda x, b=bounds: b(x)[0], target, Fraction(start), up=False)
                if end > best[1]:
                    best = use, min(end, high)
                if use["method"] != "line" or "blur" not in use:
                    break
        return best

    # -- delta at an epsilon --

    def _delta(self) -> tuple[dict[str, Any], dict[str, Any]]:
        x, parameters = arb(_fraction(self.text)), {}
        level = math.log(max(self.guess.upper, 1e-300))
        high = low = arb(0)
        attained = None
        for name, steps in self.sides.upper.items():
            found = self._best_delta(steps, x, level)
            parameters[name] = found[0]
            high = high.max(found[2])
        for name, steps in self.sides.lower.items():
            same = _same(steps, self.sides.upper.get(name, ()))
            use, value, _ = (
                (parameters[name], *delta_bounds(steps, parameters[name])(x))
                if same
                else (self._best_delta(steps, x, level))
            )
            if value > low:
                low, attained = value, (name, None if same else use)
        ends = {"lower": _text(_end(low, up=False)), "upper": _text(_end(high, up=True))}
        if attained is not None:
            parameters["attained"] = attained[0]
            if attained[1] is not None:
                parameters["lower"] = attained[1]
        return {"delta": ends, "epsilon": self.text}, parameters

    def _best_delta(self, steps: Steps, x: arb, level: float) -> tuple[Use, arb, arb]:
        best: tuple[Use, arb, arb] | None = None
        for use in search.candidates(steps, float(x), level):
            try:
                low, high = delta_bounds(steps, use)(x)
            except Rejected:
                continue
            if not (low.is_finite() and high.is_finite()):
                continue
            if best is None or high.upper() < best[2].upper():
                best = use, low, high
            if high - low <= _ENOUGH * high:
                break
        if best is None:
            raise Rejected("no method reaches this plan")
        return best


def _same(steps: Steps, others: Steps) -> bool:
    return len(steps) == len(others) and all(a[0] is b[0] and a[1] == b[1] for a, b in zip(steps, others, strict=True))


def _root(function: Any, target: arb, start: Fraction, up: bool) -> Fraction:
    """A rational x, as near to the crossing as the balls allow, at which the falling function is surely <= target
    (`up`), or surely >= target (0 if none is found)."""
    goal = target.log()

    def log_ratio(x: arb) -> float:
        value = function(x)
        return float((value.log() - goal).mid()) if value > 0 and value.is_finite() else -1e6

    low, high = arb(0), arb(0)
    x, width = _arb(start), max(float(start) * 1e-9, 1e-12)
    at = log_ratio(x)
    # bracket, then halve or interpolate in the precision of the balls
    low = high = x
    at_low = at_high = at
    while at_low < 0 and low > 0:
        low = (x - width).max(arb(0)).mid()
        at_low = log_ratio(low)
        width *= 8
    width = max(float(start) * 1e-9, 1e-12)
    while at_high > 0:
        high = (x + width).mid()
        at_high = log_ratio(high)
        width *= 8
        if width > 1e30:
            raise Rejected("the upper end could not be bracketed")
    if low == 0 and at_low < 0:
        low_end, high_end = arb(0), arb(0)
    else:
        low_end, high_end = _narrow(log_ratio, low, high, at_low, at_high)
    return _settle(function, target, low_end if not up else high_end, up)


def _narrow(log_ratio: Any, low: arb, high: arb, at_low: float, at_high: float) -> tuple[arb, arb]:
    """The Illinois rule until the ends agree to `_DIGITS` digits."""
    for _ in range(100):
        gap = high - low
        if gap <= high * arb(10) ** (-_DIGITS) or at_low == at_high:
            break
        share = min(max(at_low / (at_low - at_high), 1e-12), 1 - 1e-12) if at_high > -1e5 else 0.5
        x = (low + gap * share).mid()
        value = log_ratio(x)
        if value > 0:
            low, at_low, at_high = x, value, at_high / 2 if at_high > -1e5 else at_high
        else:
            high, at_high, at_low = x, value, at_low / 2
    return low, high


def _settle(function: Any, target: arb, x: arb, up: bool) -> Fraction:
    """Step outwards until the inequality is certain at a decimal."""
    step = Fraction(1, 10**_DIGITS) * max(_end(x, up=True), Fraction(1, 10**6))
    value = _end(x, up)
    for _ in range(80):
        at = _end(_arb(value), up)
        found = function(_arb(at))
        if at == 0 and not up:
            return Fraction(0)
        if bool(found <= target) if up else bool(found >= target):
            return at
        value, step = max(value + step if up else value - step, Fraction(0)), 2 * step
    raise Rejected("the end of the claim could not be settled")


def _arb(value: Fraction) -> arb:
    from flint import fmpq

    return arb(fmpq(value.numerator, value.denominator))


def _fraction(text: str) -> arb:
    return _arb(Fraction(text))


def _end(x: arb, up: bool) -> Fraction:
    """The end of a ball, rounded outwards to `_DIGITS` digits."""
    end = x.upper() if up else x.lower()
    mantissa, exponent = end.man_exp()
    value = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    if value <= 0:
        return Fraction(0)
    rounding = Context(prec=_DIGITS + 1, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return Fraction(rounding.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _text(value: Fraction) -> str:
    """The decimal, which is exact: all ends come from `_end`."""
    exact_value = Context(prec=400).divide(Decimal(value.numerator), Decimal(value.denominator))
    return (
        format(exact_value.normalize(), "f")
        if exact_value > Decimal("1e-30")
        else format(exact_value.normalize(), "e").replace("e+", "e")
        if value
        else "0"
    )


def _decimal_text(value: float) -> str:
    """A double as people write it; the decimal, not the double, is what is certified."""
    return format(Decimal(repr(value)), "f") if 1e-4 <= value < 1e16 or value == 0 else repr(value)
