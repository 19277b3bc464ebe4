"""Certificates: every reference case, every mechanism, and attackers who recompute the hash."""

from __future__ import annotations

import ast
import copy
import graphlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from flint import acb, arb, ctx

import privloss as pl
from privloss.certificates import certificate as certificates
from privloss.certificates import checker
from privloss.certificates.balls import Rejected
from privloss.certificates.models import MixtureModel, parts_of
from privloss.certificates.pairs.base import Pair
from privloss.certificates.pairs.mixture import Mixture
from privloss.certificates.pairs.plan import plan_pairs
from privloss.certificates.selfcheck import Compared, selfcheck
from privloss.mechanisms.worst_neighbours import worst_neighbours

CASES = json.loads((Path(__file__).parents[1] / "data" / "reference.json").read_text())["cases"]
NARROW = {f"A{i}" for i in (*range(1, 14), 16)}


def _certified(case: dict[str, Any]) -> pl.Certificate:
    return pl.certify(pl.Plan.from_dict(case["plan"]), delta=case["delta"])


def _signed(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "hash": checker.digest(data)}


@pytest.mark.parametrize("case", [c for c in CASES if c["name"] != "G1"], ids=lambda c: c["name"])
def test_reference_cases(case: dict[str, Any]) -> None:
    found = _certified(case)
    low, high = (float(found.data["claim"]["epsilon"][side]) for side in ("lower", "upper"))
    room = 10.0 ** (2 - case["digits"]) * case["epsilon"]
    assert low - room <= case["epsilon"] <= high + room
    assert (high - low) / 2 <= (1e-12 if case["name"] in NARROW else 1e-9) * high
    assert pl.verify(found) == certificates.Verdict(True, "every inequality holds")


def test_fixed_size_bracket() -> None:
    """The known upper bound for batches of fixed size, and the explicit pair below it."""
    plan = pl.Plan(((pl.Gaussian(sigma=1.1, sensitivity=1.0).fixed_size(60000, 256), 1000),), "replace-one")
    found = pl.certify(plan, delta=1e-6).bound
    assert found.upper == pytest.approx(0.8382609489366135, rel=1e-12)
    assert found.lower == pytest.approx(0.7063583201961826, rel=1e-12)


def test_a_fresh_process_verifies(tmp_path: Path) -> None:
    for name in ("A1", "C5", "D1"):
        _certified(next(c for c in CASES if c["name"] == name)).save(tmp_path / f"{name}.json")
        run = [sys.executable, "-m", "privloss", "verify", str(tmp_path / f"{name}.json")]
        assert subprocess.run(run, capture_output=True, check=False).returncode == 0


# -- every mechanism and sampler ---------------------------------------------------------------------------------------


def _plan(step: Any, count: int, adjacency: str = "add-remove") -> pl.Plan:
    return pl.Plan(((step, count),), adjacency)


G = pl.Gaussian(2.0)
EVERY = {
    "gdp": _plan(pl.GDP(0.1), 5),
    "zcdp": _plan(pl.ZCDP(0.01, 1e-9), 5),
    "randomised response": _plan(pl.RandomizedResponse(epsilon=0.5, answers=4), 20),
    "randomised response by p": _plan(pl.RandomizedResponse(p=0.5), 20),
    "unary": _plan(pl.UnaryEncoding(0.75, 0.25), 10),
    "exponential": _plan(pl.Exponential(0.3), 20),
    "noisy max": _plan(pl.NoisyMax(0.3, "laplace"), 20),
    "noisy max, exponential": _plan(pl.NoisyMax(0.3, "exponential"), 20),
    "noisy max, epsilon 0": _plan(pl.NoisyMax(0.0, "laplace"), 20),
    "sampled noisy max": _plan(pl.NoisyMax(0.5, "exponential").poisson(0.1), 100),
    "sampled noisy max, epsilon 0": _plan(pl.NoisyMax(0.0, "exponential").poisson(0.1), 100),
    "fixed size noisy max": _plan(pl.NoisyMax(0.5, "laplace").fixed_size(1000, 50), 100, "replace-one"),
    "fixed size exponential": _plan(pl.Exponential(0.5).fixed_size(1000, 50), 100, "replace-one"),
    "truncated laplace": _plan(pl.TruncatedLaplace(1.0, 20.0), 30),
    "truncated laplace, once": _plan(pl.TruncatedLaplace(1.0, 15.0, 2.0), 1),
    "truncated gaussian": _plan(pl.TruncatedGaussian(2.0, 12.0), 30),
    "custom": _plan(pl.Custom([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]), 30),
    "custom, infinite": _plan(pl.Custom([0.5, 0.3, 0.2, 0], [0.4, 0.3, 0.299999, 0.000001]), 3),
    "profile": _plan(pl.PrivacyProfile([0.0, 0.5, 1.0], [0.2, 0.05, 1e-6]), 5),
    "trade-off": _plan(pl.TradeOff([0, 0.2, 1], [1, 0.4, 0]), 5),
    "discrete gaussian": _plan(pl.DiscreteGaussian(3.0, 2), 50),
    "discrete gaussian, wide": _plan(pl.DiscreteGaussian(40.0, 3), 1000),
    "discrete gaussian, narrow": _plan(pl.DiscreteGaussian(0.5), 50),
    "discrete laplace": _plan(pl.DiscreteLaplace(3.0, 2), 50),
    "sampled laplace": _plan(pl.Laplace(1.0).poisson(0.05), 200),
    "sampled response": _plan(pl.RandomizedResponse(epsilon=1.0).poisson(0.1), 100),
    "sampled box": _plan(pl.ApproxDP(0.5, 1e-8).poisson(0.1), 30),
    "sampled discrete laplace": _plan(pl.DiscreteLaplace(2.0, 2).poisson(0.1), 30),
    "sampled exponential": _plan(pl.Exponential(0.5).poisson(0.1), 100),
    "sampled truncated laplace": _plan(pl.TruncatedLaplace(1.0, 20.0).poisson(0.1), 100),
    "sampled truncated gaussian": _plan(pl.TruncatedGaussian(2.0, 12.0).poisson(0.1), 100),
    "sampled custom": _plan(pl.Custom([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]).poisson(0.2), 50),
    "sampled gdp": _plan(pl.GDP(1.0).poisson(0.05), 500),
    "fixed size": _plan(G.fixed_size(1000, 50), 500),
    "fixed size, replace": _plan(G.fixed_size(1000, 50), 500, "replace-one"),
    "fixed size, zero-out": _plan(G.fixed_size(1000, 50), 500, "zero-out"),
    "fixed size laplace": _plan(pl.Laplace(2.0).fixed_size(1000, 50), 300, "replace-one"),
    "fixed size box": _plan(pl.PureDP(0.5).fixed_size(1000, 50), 300, "replace-one"),
    "truncated poisson": _plan(G.truncated_poisson(0.05, 1000, 80), 300),
    "truncated poisson, zero-out": _plan(G.truncated_poisson(0.05, 1000, 80), 300, "zero-out"),
    "shuffle": _plan(G.shuffled(20), 1, "zero-out"),
    "shuffled laplace": _plan(pl.Laplace(2.0).shuffled(20), 5, "replace-one"),
    "allocation": _plan(G.allocated(20), 1),
    "poisson, replace": _plan(G.poisson(0.1), 300, "replace-one"),
    "gaussian, replace": _plan(pl.Gaussian(sigma=2.0, sensitivity=0.5), 10, "replace-one"),
    "mixed": G.poisson(0.05) * 300
    + pl.Laplace(10.0) * 3
    + pl.RandomizedResponse(epsilon=0.1) * 2
    + pl.Exponential(0.1),
}


@pytest.mark.parametrize("name", EVERY)
def test_certified_and_floating_intervals_meet(name: str) -> None:
    plan = EVERY[name]
    floating, found = plan.epsilon(1e-5), pl.certify(plan, delta=1e-5)
    certified = found.bound
    assert floating.lower <= certified.upper
    assert certified.lower <= floating.upper
    assert pl.verify(found).holds
    if name not in ("allocation", "exponential"):  # certified without amplification, and by the product of pairs
        assert certified.upper <= floating.upper * (1 + 2e-3) + 1e-9


@pytest.mark.parametrize("name", ["gdp", "sampled laplace", "truncated gaussian", "poisson, replace", "custom"])
def test_delta_at_an_epsilon(name: str) -> None:
    plan = EVERY[name]
    epsilon = 0.8 * plan.epsilon(1e-5).upper
    floating, found = plan.delta(epsilon), pl.certify(plan, epsilon=epsilon)
    assert floating.lower <= found.bound.upper
    assert found.bound.lower <= floating.upper
    assert pl.verify(found).holds
    wrong = copy.deepcopy(found.data)
    wrong["claim"]["delta"]["upper"] = repr(found.bound.lower * (1 - 1e-9))
    wrong["claim"]["delta"]["lower"] = "0"
    assert not pl.verify(_signed(wrong)).holds


# not: what is known by moments only, what is certified otherwise than answered, and what loses nothing (test_pairs.py)
PAIRS = [
    n for n in EVERY if not any(w in n for w in ("zcdp", "shuffle", "allocation", "epsilon 0", "truncated poisson"))
]


@pytest.mark.parametrize("name", PAIRS)
def test_the_checkers_pairs_are_those_of_the_engine(name: str) -> None:
    """Two derivations of K agree on a vertical line, in both directions; K(0) and K(-1) are known."""
    plan = EVERY[name]
    worst = worst_neighbours(plan, plan.adjacency)
    with ctx.workprec(160):
        sides = plan_pairs(plan.to_dict(), plan.adjacency)
        for direction, loss in zip(sides.upper, (worst.loss, worst.loss.reversed()), strict=False):
            for z in (0j, 0.7 + 0j, 2.0 + 1.5j):
                total = acb(0)
                for pair, times in sides.upper[direction]:
                    use = _quadrature(pair, z)
                    value = pair.line(arb(z.real), arb(z.imag), 1, use)[1 if z.imag else 0]
                    total += value.log() * times
                expected = loss.log_mgf(z)
                slack = 1e-8
                assert abs(float(total.real.mid()) - expected.real) <= slack * (1 + abs(expected)), direction
                turn = (float(total.imag.mid()) - expected.imag + 3.14159265358979) % 6.28318530717959
                assert abs(turn - 3.14159265358979) <= slack * (1 + abs(expected))


def _quadrature(pair: Pair, z: complex) -> dict[str, Any]:
    mixtures = [MixtureModel.of(p) for p in parts_of(pair) if p.triples]
    if not mixtures:
        return {}
    use = max(mixtures, key=lambda m: m.reach).use(z.real, z.real, z.imag, 50.0, {})
    low = min(m.range(z.real, z.real, 50.0)[0] for m in mixtures)
    high = max(m.range(z.real, z.real, 50.0)[1] for m in mixtures)
    return {**use, "from": low, "nodes": int((high - low) / use["h"]) + 3}


def test_refusals() -> None:
    plan = pl.Gaussian(1.0) * 1
    with pytest.raises(pl.InvalidInput, match="exactly one"):
        pl.certify(plan)
    with pytest.raises(pl.InvalidInput, match="delta"):
        pl.certify(plan, delta=0.0)
    with pytest.raises(pl.InvalidInput, match="must be True or False"):
        plan.epsilon(1e-6, certify=1)  # type: ignore[call-overload]
    with pytest.raises(pl.Unsupported, match="finite"):
        pl.certify(pl.ApproxDP(1.0, 1e-3) * 1, delta=1e-6)
    with pytest.raises(pl.Unsupported, match="certified pair"):
        pl.certify(pl.RDP(orders=[2, 4], epsilons=[0.1, 0.25]) * 1, delta=1e-6)


def test_certified_answers_by_keyword() -> None:
    plan = pl.Gaussian(1.1).poisson(0.01) * 1000
    one, several = plan.epsilon(1e-6, certify=True), plan.epsilon([1e-6, 1e-5], certify=True)
    assert one.method.startswith("certified")
    assert one.lower <= plan.epsilon(1e-6).upper
    assert one.relative_width < 1e-12
    assert several[0] == one
    assert plan.delta(1.0, certify=True).relative_width < 1e-10
    assert plan.explain(delta=1e-6).to_dict()["certified"] is False


@pytest.mark.parametrize(("delta", "epsilon"), [(1.0, 0.0), (0.9, 0.0), (0.38292492254802624, 0.0)])
def test_epsilon_zero(delta: float, epsilon: float) -> None:
    found = pl.certify(pl.Gaussian(1.0) * 1, delta=delta).bound  # delta(0) = 0.3829249225480262
    assert found.lower == 0.0
    assert found.upper <= epsilon + 1e-9


# -- attackers ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest() -> dict[str, Any]:
    return pl.certify(pl.Gaussian(1.1).poisson(0.01) * 1000 + pl.Gaussian(20.0) * 3, delta=1e-6).data


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key in value for leaf in _leaves(value[key], (*path, key))]
    if isinstance(value, list):
        return [leaf for i, item in enumerate(value) for leaf in _leaves(item, (*path, i))]
    return [path]


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def _changed(value: Any) -> Any:
    return value + 1 if isinstance(value, (int, float)) else value + "0" if value[:1].isdigit() else value + " "


def test_any_edit_is_seen_by_the_hash(honest: dict[str, Any]) -> None:
    paths = _leaves(honest)
    assert len(paths) > 25
    for path in paths:
        data = copy.deepcopy(honest)
        _at(data, path[:-1])[path[-1]] = _changed(_at(data, path))
        assert not pl.verify(data).holds, path
    for key in honest:
        assert not pl.verify({k: v for k, v in honest.items() if k != key}).holds
    assert not pl.verify({**honest, "extra": 1}).holds


def _truth(data: dict[str, Any]) -> pl.Bound:
    """Epsilon of the plan a mutation led to, from the floating-point engine."""
    return pl.Plan.from_dict(data["plan"]).epsilon(float(data["claim"]["delta"]), adjacency=data["adjacency"])


def _mutations(honest: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    rng = random.Random(7)
    found: list[tuple[str, dict[str, Any]]] = []

    def change(name: str, path: tuple[Any, ...], value: Any) -> None:
        data = copy.deepcopy(honest)
        _at(data, path[:-1])[path[-1]] = value
        found.append((name, data))

    ends = honest["claim"]["epsilon"]
    for shift in (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5):
        change(f"upper - {shift}", ("claim", "epsilon", "upper"), repr(float(ends["upper"]) * (1 - shift)))
        change(f"upper + {shift}", ("claim", "epsilon", "upper"), repr(float(ends["upper"]) * (1 + shift)))
        change(f"lower + {shift}", ("claim", "epsilon", "lower"), repr(float(ends["lower"]) * (1 + shift)))
        change(f"lower - {shift}", ("claim", "epsilon", "lower"), repr(float(ends["lower"]) * (1 - shift)))
    for delta in ("1e-7", "0.99e-6", "1.01e-6", "1e-5", "0.1"):
        change(f"delta {delta}", ("claim", "delta"), delta)
    for path in _leaves(honest["parameters"]):
        value = _at(honest["parameters"], path)
        if isinstance(value, (int, float)):
            for factor in (0.5, 0.9, 1.1, 2.0):
                change(f"{path} x {factor}", ("parameters", *path), type(value)(value * factor))
    for key, values in (("noise_multiplier", (1.0, 1.2)), ("count", (900, 1100))):
        for value in values:
            change(f"plan {key} {value}", ("plan", "steps", 0, key), value)
    change("rate", ("plan", "steps", 0, "sampling", "rate"), 0.011)
    change("adjacency", ("adjacency",), "zero-out")
    change("adjacency r1", ("adjacency",), "replace-one")
    rng.shuffle(found)
    return found


def test_attackers_who_recompute_the_hash(honest: dict[str, Any]) -> None:
    mutations = _mutations(honest)
    assert len(mutations) >= 50
    accepted = 0
    for name, data in mutations:
        if pl.verify(_signed(data)).holds:
            accepted += 1
            truth = _truth(data)
            assert float(data["claim"]["epsilon"]["lower"]) <= truth.upper * (1 + 1e-12), name
            assert truth.lower * (1 - 1e-12) <= float(data["claim"]["epsilon"]["upper"]), name
    assert 0 < accepted < len(mutations)  # wider claims and other parameters may pass, false ones never


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("claim", "delta"), "1e-6x", "decimal"),
        (("claim", "delta"), "nan", "decimal"),
        (("claim", "delta"), "-1", "decimal"),
        (("claim", "delta"), "1e999999", "decimal"),
        (("claim", "epsilon", "lower"), "99", "lower exceeds upper"),
        (("parameters", "precision"), 10**9, "precision"),
        (("parameters", "precision"), True, "precision"),
        (("parameters", "precision"), 2, ""),
        (("parameters", "P against Q", "method"), "magic", "method"),
        (("parameters", "P against Q", "c"), float("1e308"), ""),
        (("parameters", "P against Q", "c"), "1", "parameter c"),
        (("parameters", "P against Q", "N"), 10**12, "parameter N"),
        (("parameters", "P against Q", "steps"), [], "object"),
        (("parameters", "attained"), "both", "attained"),
        (("plan", "steps"), [], "plan"),
        (("adjacency",), "swap", "plan"),
        (("theorems",), ["trust me"], "theorems"),
        (("format",), "privloss certificate 2", "format"),
    ],
)
def test_nonsense_is_rejected_with_a_reason(
    honest: dict[str, Any], path: tuple[Any, ...], value: Any, says: str
) -> None:
    data = copy.deepcopy(honest)
    _at(data, path[:-1])[path[-1]] = value
    verdict = pl.verify(_signed(data))
    assert not verdict.holds
    assert says in verdict.reason


@pytest.mark.parametrize("data", [None, [], 3, "x", {}, {"hash": "x"}])
def test_what_is_no_certificate(data: Any, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    assert not pl.verify(path).holds


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(pl.InvalidInput, match="readable"):
        pl.verify(tmp_path / "missing.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(pl.InvalidInput, match="readable"):
        pl.verify(tmp_path / "bad.json")


# -- the checker stands alone ------------------------------------------------------------------------------------------


ROOM = Path(checker.__file__).parent
AROUND = {
    f"privloss.certificates.{name}" for name in ("certificate", "search", "models", "selfcheck", "splitting", "views")
}


def _modules() -> dict[str, Path]:
    """Every module of the room by its name."""
    found = {}
    for path in ROOM.rglob("*.py"):
        parts = path.relative_to(ROOM).with_suffix("").parts
        found[".".join(("privloss", "certificates", *(p for p in parts if p != "__init__")))] = path
    return found


def _imported(path: Path) -> set[str]:
    """All modules that a file imports, at its top or within a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            below = {f"{node.module}.{a.name}" for a in node.names} & set(_modules())
            found |= below or {str(node.module)}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
    return found


def test_the_checker_imports_nothing_but_flint_and_the_plan_parser() -> None:
    files = {name: path for name, path in _modules().items() if name not in AROUND}
    assert len(files) >= 20
    allowed = {"privloss.errors", "privloss.adjacency", "privloss.mechanisms.base"}
    standard = set(sys.stdlib_module_names) | {"flint"}
    parsers = set()
    for name, path in files.items():
        for found in _imported(path):
            assert found in files or found in allowed or found.split(".")[0] in standard, (name, found)
            parsers |= {name} if found == "privloss.mechanisms.base" else set()
    assert parsers == {"privloss.certificates.pairs.plan"}
    text = files["privloss.certificates.pairs.plan"].read_text()
    assert "from privloss.mechanisms.base import Plan\n" in text
    assert text.count("Plan.") == text.count("Plan.from_dict(") == 1


def test_imports_run_one_way() -> None:
    """No module of the room imports itself on a detour, and none imports at call time."""
    modules = _modules()
    below = {name: _imported(path) & set(modules) for name, path in modules.items()}
    order = list(graphlib.TopologicalSorter(below).static_order())  # raises CycleError
    assert set(order) == set(modules)
    for path in modules.values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                assert not any(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in ast.walk(node)), path


def test_a_mixture_that_is_not_ordered_is_refused() -> None:
    with pytest.raises(Rejected, match="ordered"):
        Mixture([(arb(0.5), arb(0), arb(1)), (arb(0.5), arb(2), arb(0))])


def test_self_audit() -> None:
    report = selfcheck(settings=13, seed=3)
    assert report.violations == ()
    assert report.settings == 13
    assert {row["regime"] for row in report.by_regime()} == {c.regime for c in report.compared}
    case = report.compared[0]
    assert case.certified is not None
    low, high = case.certified
    above = Compared(case.regime, case.plan, case.delta, pl.Bound(2 * high, 3 * high), case.certified)
    below = Compared(case.regime, case.plan, case.delta, pl.Bound(0.1 * low, 0.2 * low), case.certified)
    assert above.violated  # the audit can fail
    assert below.violated


# -- files, memory, interruption ---------------------------------------------------------------------------------------


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, honest: dict[str, Any]) -> None:
    target = tmp_path / "cert.json"
    target.write_text("old")

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pl.Certificate(honest).save(target)
    assert [p.name for p in tmp_path.iterdir()] == ["cert.json"]
    assert target.read_text() == "old"
    monkeypatch.undo()
    pl.Certificate(honest).save(target)
    assert pl.verify(target).holds
    with pytest.raises(pl.InvalidInput, match="cannot be written"):
        pl.Certificate(honest).save(tmp_path / "no" / "cert.json")


def test_memory_stays_below_300_megabytes() -> None:
    code = (
        "import privloss as pl\n"
        "c = pl.certify(pl.Gaussian(1.0).poisson(0.01) * 10, delta=1e-6)\n"  # the largest quadrature of the cases
        "assert pl.verify(c).holds\n"
        "print(open('/proc/self/status').read())"  # ru_maxrss would include the process that started this one
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    most = next(line for line in run.stdout.splitlines() if line.startswith("VmHWM"))
    assert 10 * 1024 < int(most.split()[1]) < 300 * 1024


# -- findings of a review: each of these was accepted once -------------------------------------------------------------


def _forged(plan: pl.Plan, claim: dict[str, Any], use: dict[str, Any], bits: int = 53) -> dict[str, Any]:
    with ctx.workprec(53):
        sides = plan_pairs(plan.to_dict(), plan.adjacency)
    parameters = {"precision": bits, "attained": "P against Q", **dict.fromkeys(sides.upper, use)}
    data = {
        "format": checker.FORMAT, "library": "x", "plan": plan.to_dict(), "adjacency": plan.adjacency, "claim": claim,
        "parameters": parameters, "theorems": list(sides.theorems),
    }  # fmt: skip
    return _signed(data)


def test_findings_of_a_review() -> None:
    box = _plan(pl.PureDP(1.0), 10)
    near_whole = {"method": "lattice", "c": 1.0, "c'": 2.0, "h": 9.817054656678356e-05, "N": 1}
    zero = {"epsilon": "5.0", "delta": {"lower": "0", "upper": "0"}}
    for bits in (20, 53, 60):
        assert not pl.verify(_forged(box, zero, near_whole, bits)).holds
    batch = _plan(pl.PureDP(1.0).fixed_size(1000, 10), 1000, "replace-one")
    nothing = {"delta": "0", "epsilon": {"lower": "0", "upper": "0"}}
    assert not pl.verify(_forged(batch, nothing, {"method": "sum"}, 10)).holds
    assert not pl.verify(_forged(batch, nothing, {"method": "sum"}, 53)).holds
    rows = (
        [0.041666666666666664, 0.8333333333333333, 0.125],
        [0.057971014492753624, 0.014492753623188406, 0.9275362318840],
    )
    uneven = _plan(pl.Custom(rows[0], rows[1]), 1)
    late = {"epsilon": "2.6509", "delta": {"lower": "0", "upper": "0"}}
    for bits in (3, 53):
        assert not pl.verify(_forged(uneven, late, {"method": "largest"}, bits)).holds
    apart = pl.Custom([1.0, 0.0], [0.0, 1.0]) * 1 + pl.PureDP(1.0) * 4
    more = {"epsilon": "0.5", "delta": {"lower": "1.05", "upper": "1.1"}}
    assert not pl.verify(_forged(apart, more, {"method": "sum"})).holds


@pytest.mark.parametrize("attained", [[], {}, None, 3])
def test_malformed_parameters_are_rejected(honest: dict[str, Any], attained: Any) -> None:
    data = copy.deepcopy(honest)
    data["parameters"]["attained"] = attained
    assert not pl.verify(_signed(data)).holds
    data["parameters"]["attained"] = float("nan")
    assert "malformed" in pl.verify({**data, "hash": "x"}).reason
    data["plan"]["steps"][0]["mechanism"] = "dp-ftrl"
    assert not pl.verify({**data, "hash": "x"}).holds


def test_work_is_bounded(honest: dict[str, Any]) -> None:
    for path, value in ((("P against Q", "N"), 10**9), (("P against Q", "steps", "0", "nodes"), 10**7)):
        data = copy.deepcopy(honest)
        _at(data["parameters"], path[:-1])[path[-1]] = value
        assert "must be a whole number" in pl.verify(_signed(data)).reason


def test_findings_of_a_second_review() -> None:
    """Equality is no proof where delta is constant; uneven pairs swap roles; what is not attained has no lower end."""
    never = {"delta": "0", "epsilon": {"lower": "5", "upper": "6"}}
    assert not pl.verify(_forged(_plan(pl.PureDP(1.0), 1), never, {"method": "largest"})).holds
    late = {"delta": "0.5", "epsilon": {"lower": "100", "upper": "101"}}
    assert not pl.verify(_forged(_plan(pl.ApproxDP(1.0, 0.5), 1), late, {"method": "largest"})).holds
    uneven = pl.Custom([0.0039, 0.2215, 0.7746], [0.2837, 0.6817, 0.0346])
    assert pl.certify(_plan(uneven, 1, "replace-one"), delta=1e-6)
    for several in (_plan(uneven, 2, "replace-one"), (uneven + pl.Gaussian(2.0)).under("replace-one")):
        with pytest.raises(pl.Unsupported, match="roles"):
            pl.certify(several, delta=1e-6)
        with pytest.raises(Rejected, match="roles"), ctx.workprec(100):
            plan_pairs(several.to_dict(), "replace-one")
    assert pl.certify(_plan(pl.Laplace(1.0).shuffled(3), 1, "replace-one"), epsilon=0.0).bound.lower == 0.0
    bent = pl.TradeOff([0, 0.2, 0.4, 1], [1, 0.7, 0.7 - 0.2 * (1.5 + 2e-9), 0])
    with pytest.raises(pl.Unsupported, match="convex"):
        pl.certify(_plan(bent, 1), delta=1e-9)
