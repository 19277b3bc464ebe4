"""Whatever a certificate asks for, checking it ends: evaluations are counted, and beyond the limit it is undecided."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest
from flint import arb, ctx

import privloss as pl
from privloss.certificates import budget
from privloss.certificates.budget import Undecided, charge, integral, limited
from privloss.certificates.certificate import Verdict
from privloss.certificates.checker import FORMAT, _check, digest
from privloss.certificates.methods.outcomes import _binomials
from privloss.certificates.pairs.plan import plan_pairs
from privloss.cli.main import main

WORK = 200_000
MOST_CALLS = 12  # calls of functions of FLINT and Python per evaluation allowed for
NODES = 200_000
MIXTURE = {"h": 1e-4, "v": 0.1, "from": -10.0, "nodes": NODES}
LINE = {"method": "line", "c": 5.0, "L": 10.0, "N": NODES, "c'": 9.0}
LATTICE = {"method": "lattice", "c": 5.0, "h": 0.1, "N": 10_000_000, "evaluated": NODES, "c'": 9.0}
SAMPLED = pl.Gaussian(1.1).poisson(0.01)
WINDOWS = {"centres": [1.0 + i for i in range(24)], "widths": [0.1] * 24, "reach": 5.0, "top": 60.0}
FEW, MANY = {"h": 0.1, "v": 0.1, "nodes": 10}, {"h": 0.1, "v": 0.1, "nodes": NODES}
KINDS = 200
EXAMPLES = pl.Plan.of(*((pl.Gaussian(2.0 + i / 1e4).poisson(0.01), 10) for i in range(KINDS)))


def certificate(plan: pl.Plan | dict[str, Any], use: dict[str, Any], bits: int, adjacency: str) -> dict[str, Any]:
    data = plan if isinstance(plan, dict) else plan.to_dict()
    try:
        with ctx.workprec(64), limited(10 * WORK):
            theorems = list(plan_pairs(data, adjacency).theorems)
    except Undecided:
        theorems = []
    made = {
        "format": FORMAT, "library": "hostile", "plan": data, "adjacency": adjacency,
        "claim": {"delta": "1e-6", "epsilon": {"lower": "0", "upper": "0.5"}},
        "parameters": {"precision": bits, "P against Q": use, "Q against P": use}, "theorems": theorems,
    }  # fmt: skip
    return {**made, "hash": digest(made)}


def steps(*rows: dict[str, Any], adjacency: str = "add-remove") -> dict[str, Any]:
    return {**(pl.PureDP(0.1) * 1).to_dict(), "adjacency": adjacency, "steps": [{"count": 1, **row} for row in rows]}


def sampled(scheme: str, **more: Any) -> dict[str, Any]:
    return {"mechanism": "gaussian", "noise_multiplier": 1.0, "sampling": {"scheme": scheme, **more}}


def _split_kinds() -> dict[str, Any]:
    parts = {str(i): {"below": FEW, "own": FEW} for i in range(KINDS)}
    one = {"read": "negligible", "c": 1.0, "steps": parts}
    return {"method": "split", "steps": {str(i): WINDOWS for i in range(KINDS)}, "classes": [one] * 25}


def _split_nodes() -> dict[str, Any]:
    one = {"read": "forward", "c": 1.0, "L": 5.0, "N": NODES, "left": 0.5, "right": 2.0,
           "steps": {"0": {"below": MANY, "own": MANY}}}  # fmt: skip
    return {"method": "split", "steps": {"0": WINDOWS}, "classes": [one] * 25}


def _curve(n: int) -> dict[str, Any]:
    xs = [i / n for i in range(n + 1)]
    return steps({"mechanism": "trade-off", "fpr": xs, "fnr": [(1 - x**0.5) ** 2 for x in xs]})


def _wide(n: int) -> pl.Custom:
    return pl.Custom([1 / n] * n, [1.5 / n if i % 2 else 0.5 / n for i in range(n)])


HOSTILE: dict[str, Callable[[], tuple[Any, ...]]] = {
    "line": lambda: (pl.Gaussian(2.0) * 10**12, LINE),
    "line, truncated noise": lambda: (pl.TruncatedGaussian(2.0, 10.0) * 10**6, LINE),
    "line, table": lambda: (_wide(100) * 10**9, {**LINE, "N": 2000}),
    "line, quadrature": lambda: (SAMPLED * 10**6, {**LINE, "steps": {"0": MIXTURE}}),
    "line, integrals": lambda: (pl.Laplace(2.0).poisson(0.1) * 100, {**LINE, "N": 10_000}),
    "line, bent integral": lambda: (
        pl.Laplace(2.0).poisson(0.1) * 9, {**LINE, "N": 1, "steps": {"0": {"turn": 0.5, "scale": 1e6}}},
    ),
    "lattice": lambda: (pl.PureDP(0.1) * 10**9, LATTICE),
    "lattice, fine": lambda: (_wide(10) * 100, {**LATTICE, "h": 1e-5}),
    "chernoff": lambda: (SAMPLED * 10, {"method": "chernoff", "c": 5.0, "steps": {"0": MIXTURE}}),
    "sum, wide": lambda: (_wide(890) * 2, {"method": "sum"}),
    "sum, long": lambda: (pl.PureDP(0.1) * 399_000, {"method": "sum"}),
    "residues": lambda: (pl.Laplace(5.0) * 1000, {"method": "residues", "most": 1000}),
    "residues, long": lambda: (pl.Laplace(5.0) * 100_000, {"method": "residues", "most": 1}),
    "threshold": lambda: (SAMPLED * 1, {"method": "threshold", "reach": 40.0}),
    "split, kinds": lambda: (EXAMPLES, _split_kinds()),
    "split, nodes": lambda: (SAMPLED * 100, _split_nodes()),
    "plan of many steps": lambda: (
        pl.Plan.of(*((pl.PureDP(0.1 + i / 1e7), 1) for i in range(5_000))), {"method": "largest"},
    ),
    "large table": lambda: (_wide(20_000) * 1, {"method": "largest"}),
    "trade-off curve": lambda: (_curve(1000), {"method": "sum"}),
    "profile": lambda: (
        steps({"mechanism": "privacy-profile", "epsilons": [0.001 * i for i in range(1000)],
               "deltas": [0.5 * 0.999**i for i in range(1000)]}), {"method": "sum"},
    ),
    "shuffled epochs": lambda: (
        steps(*({**sampled("shuffle", steps=10**6), "noise_multiplier": 1 + i / 99} for i in range(99)),
              adjacency="replace-one"), {"method": "largest"}, "replace-one",
    ),
    "with replacement": lambda: (
        steps(sampled("with-replacement", n=1000, m=50_000), adjacency="replace-one"), {**LINE, "N": 2000},
        "replace-one",
    ),
    "truncated Poisson": lambda: (
        steps(*(sampled("truncated-poisson", n=10**7, rate=0.5, most=5_003_000 + i) for i in range(20))),
        {"method": "chernoff", "c": 2.0},
    ),
}  # fmt: skip


class TooMany(BaseException):
    pass


def count_calls(most: float, ask: Callable[[], Any]) -> tuple[Any, int]:
    """What was answered, and how many functions written in C were called on the way; stops where they are too many."""
    calls = 0

    def seen(frame: Any, event: str, what: Any) -> None:
        nonlocal calls
        calls += event == "c_call"
        if calls > most:
            raise TooMany

    sys.setprofile(seen)
    try:
        return ask(), calls
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("bits", [64, 2048])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_certificates_end_undecided(name: str, bits: int) -> None:
    plan, use, *rest = HOSTILE[name]()
    adjacency = rest[0] if rest else "add-remove"
    hostile = certificate(plan, use, bits, adjacency)
    numbers = budget.numbers(hostile)  # reading what was sent is linear in it
    most = MOST_CALLS * WORK + 100 * numbers
    verdict, _ = count_calls(most, lambda: pl.verify(hostile, work=WORK))
    assert not verdict.holds
    # these are refused at once instead, the last two at few bits
    cheap = {"threshold": "threshold", "lattice, fine": "spacing", "line, bent integral": "not surely",
             "truncated Poisson": "parameter"}  # fmt: skip
    if name in cheap and not verdict.undecided:
        assert cheap[name] in verdict.reason
        return
    assert verdict.undecided, verdict
    assert f"the limit of work is reached ({WORK} evaluations" in verdict.reason


def test_a_long_power_is_charged_for_what_it_is() -> None:
    """Coefficients of very different sizes: a power of degree k takes k^2 steps inside FLINT, where none is counted."""
    plan, use = HOSTILE["residues, long"]()
    assert pl.verify(certificate(plan, use, 64, "add-remove"), work=10_000_000).undecided


PROVEN = [
    pl.Gaussian(1.1) * 3, pl.Gaussian(1.1).poisson(0.01) * 1000, pl.PureDP(0.1) * 30, pl.Laplace(2.0) * 5,
    pl.Laplace(2.0).poisson(0.1) * 50, pl.Gaussian(1.0).poisson(1e-4) * 500, pl.Custom([0.6, 0.4], [0.5, 0.5]) * 4,
]  # fmt: skip


@pytest.mark.parametrize("plan", PROVEN, ids=str)
def test_a_little_less_than_enough_is_undecided(plan: pl.Plan) -> None:
    """The count is the same every time: with exactly what it takes a certificate is proven, with less undecided."""
    made = pl.certify(plan, delta=1e-6)
    used = 0.0
    with limited(budget.DEFAULT_WORK):
        _check(made.data)
        used = budget.DEFAULT_WORK - budget._left.get()
    assert 10 < used < budget.DEFAULT_WORK / 2
    assert pl.verify(made, work=used + 1e-3) == Verdict(True, "every inequality holds")
    verdict = pl.verify(made, work=used - 1)
    assert (verdict.holds, verdict.undecided) == (False, True)
    assert verdict.reason.startswith("undecided: ")


def test_more_bits_count_for_more() -> None:
    with ctx.workprec(4096), limited(100), pytest.raises(Undecided):
        charge(10)
    with ctx.workprec(64), limited(100):
        charge(10)


def test_an_integral_stops_at_the_limit() -> None:
    calls = 0

    def wild(x: Any, analytic: bool) -> Any:
        nonlocal calls
        calls += 1
        return (1 / (x - arb("0.3"))).sin()  # no end of subdivision

    with ctx.workprec(64), limited(1000), pytest.raises(Undecided):
        integral(wild, arb(0), arb(1), 10)
    assert 50 < calls <= 101
    with ctx.workprec(64), limited(1000):
        assert abs(integral(lambda x, analytic: x.exp(), arb(0), arb(1), 1).real - (arb(1).exp() - 1)) < 1e-15


def test_binomial_coefficients() -> None:
    for n in (1, 7, 4000, 4001, 5000):
        with ctx.workprec(96), limited(1e9):
            found = list(_binomials(n))
        assert len(found) == n + 1
        for k in (0, 1, n // 3, n):
            assert found[k].contains(arb(math.comb(n, k))) if n < 100 else found[k].overlaps(arb(math.comb(n, k)))
            assert found[k].rel_accuracy_bits() > 70


@pytest.mark.parametrize("work", [0, -1, float("nan"), "much"])
def test_bad_limits_are_refused(work: object) -> None:
    with pytest.raises(pl.InvalidInput, match="work"):
        pl.verify({}, work=work)  # type: ignore[arg-type]


def test_the_command_says_undecided(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cert.json"
    pl.certify(PROVEN[0], delta=1e-6).save(file)
    for arguments, code, says in (
        ((), 0, "proven"),
        (("--work", "1"), 1, "undecided"),
        (("--work", "1e6"), 0, "proven"),
        (("--work", "x"), 2, ""),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["verify", str(file), *arguments])
        assert stop.value.code == code
        assert says in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["verify", str(file), "--work", "1", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["holds"], told["undecided"]) == (False, True)
