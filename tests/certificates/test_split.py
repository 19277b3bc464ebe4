"""Certificates that split few hits by their largest loss."""

from __future__ import annotations

import copy
import itertools
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flint import acb, arb, ctx

import privloss as pl
from privloss.certificates import checker, search
from privloss.certificates.balls import Rejected
from privloss.certificates.methods.line import by_line
from privloss.certificates.methods.split import by_split
from privloss.certificates.methods.threshold import by_threshold
from privloss.certificates.models import Model
from privloss.certificates.pairs.marked import Marked, Part, Side
from privloss.certificates.pairs.mixture import Mixture
from privloss.certificates.pairs.plan import BACKWARD, FORWARD, plan_pairs
from privloss.certificates.splitting import split


def _plan(sigma: float, rate: float, steps: int) -> pl.Plan:
    return pl.Gaussian(noise_multiplier=sigma).poisson(rate) * steps


NAMED = {
    "1.3": (1.3, 1e-3, 10_000, 1e-6, 0.3623217626),
    "1.0": (1.0, 3e-4, 10_000, 1e-6, 0.1529594412),
    "fewer steps": (1.3, 1e-3, 3_000, 1e-6, 0.1940783735),
    "ten steps": (0.5, 1e-6, 10, 1e-8, 0.0019584964326),
    "0.7": (0.7, 1e-5, 2_000, 1e-6, 0.0051421488508),
}


@pytest.mark.parametrize("name", NAMED)
def test_few_hits(name: str, tmp_path: Path) -> None:
    sigma, rate, steps, delta, epsilon = NAMED[name]
    found = pl.certify(_plan(sigma, rate, steps), delta=delta)
    assert found.data["parameters"]["P against Q"]["method"] == "split"
    bound = found.bound
    assert bound.width <= 2e-12 * bound.upper
    assert bound.upper == pytest.approx(epsilon, rel=2e-9)
    floating = _plan(sigma, rate, steps).epsilon(delta)
    assert floating.lower <= bound.upper
    assert bound.lower <= floating.upper
    found.save(tmp_path / "c.json")
    assert pl.verify(tmp_path / "c.json").holds
    assert (tmp_path / "c.json").stat().st_size < 20_000


def test_random_ordinary_settings() -> None:
    rng = random.Random(5)

    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    seen = 0
    while seen < 5:
        sigma, rate, steps, delta = between(0.5, 5), between(1e-6, 0.2), int(between(10, 1e6)), between(1e-12, 1e-5)
        floating = _plan(sigma, rate, steps).epsilon(delta)
        if rate * steps > 20 or not 1e-3 < floating.upper < 50:
            continue
        seen += 1
        found = pl.certify(_plan(sigma, rate, steps), delta=delta)
        assert found.bound.width <= 2e-9 * found.bound.upper, (sigma, rate, steps, delta)
        assert floating.lower <= found.bound.upper
        assert found.bound.lower <= floating.upper
        assert pl.verify(found).holds


def test_several_kinds_and_delta() -> None:
    plan = _plan(1.3, 1e-3, 5_000) + _plan(1.0, 3e-4, 4_000)
    found = pl.certify(plan, delta=1e-6)
    assert found.data["parameters"]["P against Q"]["method"] == "split"
    assert pl.verify(found).holds
    assert found.bound.upper == pytest.approx(0.27175644496885, rel=1e-12)
    back = pl.certify(plan, epsilon=found.bound.upper)
    assert pl.verify(back).holds
    assert back.bound.upper == pytest.approx(1e-6, rel=1e-10)


def test_a_wide_guess_is_drawn_again() -> None:
    """Where the engine's first answer is wide, lines are drawn for the epsilon that was found."""
    plan = _plan(2.455, 4.2e-3, 10)
    found = pl.certify(plan, delta=3.9e-12)
    assert found.bound.width < 1e-12 * found.bound.upper
    assert pl.verify(found).holds


# -- against other ways ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "rate", "eps"), [(1.0, 1e-3, 0.05), (0.7, 0.01, 1.0), (2.0, 0.05, 0.1)])
def test_one_use_is_a_threshold(sigma: float, rate: float, eps: float) -> None:
    with ctx.workprec(150):
        steps = plan_pairs(_plan(sigma, rate, 1).to_dict(), "add-remove").upper[FORWARD]
        exact = by_threshold(steps, {"reach": 300.0})(arb(eps))[0]
        low, high = by_split(steps, split(steps, eps, float(exact.log())))(arb(eps))
        assert low.lower() <= exact <= high.upper()
        assert high - low < 1e-11 * exact


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
@pytest.mark.parametrize("plan", [_plan(1.1, 0.004, 600), _plan(1.5, 0.02, 200)])
def test_both_directions_against_one_line(plan: pl.Plan, direction: str) -> None:
    with ctx.workprec(130):
        steps = plan_pairs(plan.to_dict(), "add-remove").upper[direction]
        one = by_line(steps, search.line(Model(steps), 0.3, -16.0))(arb(0.3))
        use = split(steps, 0.3, float(one[1].log()))
        assert {c["read"] for c in use["classes"]} & {"forward", "backward"}
        low, high = by_split(steps, use)(arb(0.3))
        assert low.lower() <= one[1].upper()
        assert one[0].lower() <= high.upper()
        assert high - low < 1e-9 * high
        assert one[1] - one[0] < 1e-9 * high


def _marked(rng: random.Random) -> Marked | None:
    rate, shift = 10 ** rng.uniform(-4, -0.5), 1 / rng.uniform(0.4, 4)
    centres = list(itertools.accumulate([rng.uniform(0, 5), *(rng.uniform(0.3, 2) for _ in range(rng.randint(0, 2)))]))
    widths = [rng.uniform(0.1, 1) for _ in centres]
    reach = rng.uniform(1, 9)
    top = max(max(b + reach * w for b, w in zip(centres, widths, strict=True)), shift) + rng.uniform(0.5, 4)
    pair = Mixture([(1 - arb(rate), arb(0), arb(0)), (arb(rate), arb(shift), arb(0))])
    try:
        return Marked(pair, {"centres": centres, "widths": widths, "reach": reach, "top": top})
    except Rejected:  # windows out of order
        return None


def _integral(part: Part, side: Side, z: acb) -> acb:
    """The transform of a part by adaptive integration, ends and all."""
    marked, root = part.marked, arb(2).sqrt()
    power = -z if side.backward else z + 1

    def passed(y: acb, analytic: bool) -> acb:
        ratio = marked.missed + marked.rate * (marked.shift * (y - marked.shift / 2)).exp()
        value = (-y * y / 2 + power * ratio.log(analytic)).exp() / (2 * arb.pi()).sqrt()
        for i in part.above:
            value *= ((y - marked.centres[i]) / marked.widths[i] / root).erfc() / 2
        return value

    def held(y: acb, analytic: bool) -> acb:
        return passed(y, analytic) * ((marked.centres[low] - y) / marked.widths[low] / root).erfc() / 2

    low = part.low
    if low is None:
        return acb.integral(passed, arb(-25), part.end)
    end = part.end if part.above else arb(40)
    return acb.integral(held, arb(-25), marked.ends[low]) + acb.integral(passed, marked.ends[low], end)


def test_parts_against_adaptive_integration() -> None:
    """Whatever the parameters, the balls contain the transform, and the bounds beyond a height hold."""
    rng, checked, sharp = random.Random(3), 0, 0
    with ctx.workprec(90):
        while checked < 60:
            marked = _marked(rng)
            if marked is None:
                continue
            classes, own = len(marked.centres), rng.random() < 0.6
            high = rng.randint(0, classes if own else classes - 1)
            low = high - 1 if own and high else None
            h, most = rng.uniform(0.03, 0.5), 1.5 / float(marked.shift)
            first = (
                -rng.uniform(2, 9)
                if low is None
                else float(marked.centres[low] - rng.uniform(1, 9) * marked.widths[low])
            )
            use = {"h": h, "v": min(rng.uniform(0.05, 1.5), most), "bend": min(rng.uniform(0.02, 1.2), most)}
            use["nodes"] = max(2, int((float(marked.ends[high]) - first) / h))
            part = Part(marked, high, low, use)
            backward = rng.random() < 0.5
            tilted = backward or bool(part.above)
            side = Side(backward, arb(rng.choice([0.0, rng.uniform(0, 3), rng.uniform(0, 20)]) if tilted else 0.0))
            step = arb(rng.uniform(0.1, 8))
            values, start = part.line(side, step, 3), _integral(part, side, acb(side.c)).real
            bound = part.fallen(side, step, start)
            for n, value in enumerate(values):
                truth = _integral(part, side, acb(side.c, n * step))
                assert value.overlaps(truth), (checked, n)
                assert n == 0 or not abs(truth) > bound, (checked, n)
                sharp += bool(value.real.rad() < 1e-6 * start)
            checked += 1
    assert sharp > 10


# -- attackers ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest() -> dict[str, Any]:
    data = pl.certify(_plan(1.0, 3e-4, 10_000), delta=1e-6).data
    assert pl.verify(data).holds
    return data


def _signed(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "hash": checker.digest(data)}


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    return [path] if items is None else [leaf for key, inner in items for leaf in _leaves(inner, (*path, key))]


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def test_every_parameter_changed(honest: dict[str, Any]) -> None:
    """A false claim is refused whatever the parameters; for a true one most of them matter."""
    ends = honest["claim"]["epsilon"]
    false = {"lower": "0", "upper": repr(float(ends["lower"]) * (1 - 1e-6))}
    paths = [p for p in _leaves(honest["parameters"]) if not isinstance(_at(honest["parameters"], p), str)]
    assert len(paths) > 40
    holds = []
    for k, path in enumerate(paths):
        data = copy.deepcopy(honest)
        value = _at(data["parameters"], path)
        _at(data["parameters"], path[:-1])[path[-1]] = type(value)(value * (0.7 if k % 2 else 1.4))
        if k % 5 == 0:
            holds.append(pl.verify(_signed(data)).holds)
        data["claim"]["epsilon"] = false
        assert not pl.verify(_signed(data)).holds, path
    assert any(holds)
    assert not all(holds)


def _use(data: dict[str, Any]) -> Any:
    return data["parameters"]["P against Q"]


def _dropped(data: dict[str, Any]) -> None:
    _use(data)["classes"].pop()


def _neglected(data: dict[str, Any]) -> None:
    _use(data)["classes"][1] = {**_use(data)["classes"][1], "read": "negligible", "c": 0.0}


def _set(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        _at(_use(data), path[:-1])[path[-1]] = value

    return change


FORGED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a class dropped": (_dropped, "classes"),
    "a class neglected": (_neglected, "upper end"),
    "no classes": (_set("classes", value=None), "classes"),
    "a class that is none": (_set("classes", 0, value=3), "object"),
    "unknown reading": (_set("classes", 0, "read", value="magic"), "read"),
    "wider step": (_set("classes", 0, "steps", "0", "own", "h", value=0.6), ""),
    "no nodes": (_set("classes", 0, "steps", "0", "own", "nodes", value=1), ""),
    "step too wide": (_set("classes", 0, "steps", "0", "own", "h", value=5.0), "parameter h"),
    "too many nodes": (_set("classes", 0, "steps", "0", "own", "nodes", value=10**9), "parameter nodes"),
    "too many nodes on a line": (_set("classes", 0, "N", value=200_001), "parameter N"),
    "strip beyond the zeros": (_set("classes", 0, "steps", "0", "own", "v", value=1.6), "zeros"),
    "bend beyond the zeros": (_set("classes", 0, "steps", "0", "own", "bend", value=1.6), "zeros"),
    "no own part": (_set("classes", 0, "steps", "0", value={}), "own"),
    "windows out of order": (_set("steps", "0", "centres", 1, value=-3.0), "order"),
    "top below the windows": (_set("steps", "0", "top", value=5.0), "order"),
    "negative width": (_set("steps", "0", "widths", 0, value=-0.1), "width"),
    "no width": (_set("steps", "0", "widths", 0, value=0.0), "width"),
    "a width too many": (_set("steps", "0", "widths", value=[0.1] * 9), "match"),
    "too many windows": (_set("steps", "0", "centres", value=[float(i) for i in range(99)]), "at most"),
    "no windows": (_set("steps", "0", value={"centres": [], "widths": [], "reach": 9.0, "top": 9.0}), "match"),
    "a number as text": (_set("steps", "0", "centres", 0, value="4"), "centres"),
    "infinite centre": (_set("steps", "0", "centres", 0, value=1e300), "centres"),
    "short reach": (_set("steps", "0", "reach", value=2.0), ""),
    "negative tilt": (_set("classes", 0, "c", value=-0.5), "parameter c"),
    "left of zero": (_set("classes", 0, "left", value=-0.5), "left"),
    "left beyond c": (_set("classes", 0, "left", value=1e6), "between"),
    "right before c": (_set("classes", 0, "right", value=1e-6), "between"),
    "few nodes": (_set("classes", 0, "N", value=2), ""),
    "short period": (_set("classes", 0, "L", value=1e-3), ""),
    "the last class read ahead": (_set("classes", -1, "read", value="forward"), ""),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_certificates_are_refused(honest: dict[str, Any], name: str) -> None:
    data = copy.deepcopy(honest)
    change, says = FORGED[name]
    change(data)
    verdict = pl.verify(_signed(data))
    assert not verdict.holds
    assert says in verdict.reason


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_not_a_number_is_refused(honest: dict[str, Any], value: float) -> None:
    """By the hash, which has no such numbers, and by the method itself."""
    steps = plan_pairs(honest["plan"], "add-remove").upper[FORWARD]
    for path in [p for p in _leaves(_use(honest)) if isinstance(_at(_use(honest), p), float)]:
        data = copy.deepcopy(honest)
        _at(_use(data), path[:-1])[path[-1]] = value
        assert not pl.verify(json.loads(json.dumps(data))).holds
        if path[-1] != "bend" or path[1] == 0:
            with pytest.raises(Rejected, match="must be in"):
                by_split(steps, _use(data))


@pytest.mark.parametrize("shift", [1e-12, 1e-9, 1e-3, 0.5])
def test_smaller_claims_are_refused(honest: dict[str, Any], shift: float) -> None:
    ends = honest["claim"]["epsilon"]
    for end, sign in (("upper", -1), ("lower", 1)):
        data = copy.deepcopy(honest)
        data["claim"]["epsilon"] = dict.fromkeys(("lower", "upper"), repr(float(ends[end]) * (1 + sign * shift)))
        assert not pl.verify(_signed(data)).holds


def test_other_pairs_are_refused(honest: dict[str, Any]) -> None:
    data = copy.deepcopy(honest)
    data["adjacency"] = "replace-one"
    plan = pl.Plan.from_dict({**data["plan"], "adjacency": "replace-one"})
    data["theorems"] = pl.certify(plan, delta=1e-3, adjacency="replace-one").data["theorems"]
    verdict = pl.verify(_signed(data))
    assert not verdict.holds
    assert "needs (1-q) N(0) + q N(s)" in verdict.reason


def test_the_work_is_bounded(honest: dict[str, Any]) -> None:
    """What asks for too much is refused when the limit of work is reached."""
    data = copy.deepcopy(honest)
    for one in _use(data)["classes"]:
        for part in one["steps"]["0"].values():
            part["nodes"] = 100_000
    verdict = pl.verify(_signed(data))
    assert not verdict.holds
    assert "work" in verdict.reason
