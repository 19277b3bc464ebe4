"""Charts for papers: numbers on the safe side, in tables and pictures."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.numerics.bound import Bound
from privloss.papers.chart import DELTA, EPSILON, Chart

SGD = pl.Gaussian(1.1).poisson(0.01) * 1000


def test_numbers_are_the_plans() -> None:
    profile = SGD.plot("delta", points=[0.5, 1.0])
    assert profile.bounds == tuple(SGD.delta([0.5, 1.0]))
    steps = SGD.plot("steps", delta=1e-6, points=[1, 1000])
    assert steps.bounds[1] == SGD.epsilon(1e-6)
    attacks = SGD.plot("tradeoff", points=[0.1, 0.5])
    assert attacks.quoted == "lower"
    for found, rate in zip(attacks.bounds, (0.1, 0.5), strict=True):
        truth = SGD.tradeoff(rate)
        assert found.lower <= truth.upper <= found.upper + 1e-12
    side = SGD.plot("accountants", delta=1e-6)
    assert [b.upper for b in side.bounds] == [row.epsilon for row in SGD.compare(1e-6, noise=False)]
    assert all(b.lower <= SGD.epsilon(1e-6).upper for b in side.bounds)
    assert SGD.plot("delta", points=[1.0], adjacency="replace-one").bounds[0] == SGD.delta(1.0, adjacency="replace-one")


def _read(cell: str) -> Fraction:
    return Fraction(re.sub(r"\\times10\^\{(-?\d+)\}", r"e\1", cell.strip().strip("$")))


@pytest.mark.parametrize("digits", [1, 3, 6])
def test_tables_are_rounded_outwards(digits: int) -> None:
    ends = [(0.12345678, 0.12345679), (1.5e-9, 1.6e-9), (99.999, 99.9999), (2.0, 2.0)]
    chart = Chart("", EPSILON, DELTA, (0.5, 1.0, 1500, 2.5e-7), tuple(Bound(*pair) for pair in ends))
    lines = chart.to_latex(digits).splitlines()[4:-2]
    for line, (low, high) in zip(lines, ends, strict=True):
        _, lower, upper = line.removesuffix(r" \\").split(" & ")
        assert _read(lower) <= Fraction(low) <= Fraction(high) <= _read(upper)
        assert _read(upper) <= Fraction(high) * (1 + Fraction(10, 10**digits))
    assert [line.split(" & ")[0] for line in lines] == ["0.5", "1", r"1\,500", r"$2.5\times10^{-7}$"]


def test_names_and_infinities_in_tables() -> None:
    chart = Chart("", EPSILON, DELTA, ("a_b & c",), (Bound(1.0, float("inf")),))
    assert r"a\_b \& c & 1 & $\infty$ \\" in chart.to_latex()
    assert chart.to_latex().startswith(r"\begin{tabular}{lrr}")


def test_frames() -> None:
    frame = SGD.plot("steps", delta=1e-6, points=[10, 100]).to_frame()
    assert list(frame.columns) == ["steps", "epsilon_lower", "epsilon_upper", "method"]
    assert len(frame) == 2


@pytest.mark.parametrize(
    ("kind", "delta"), [("delta", None), ("tradeoff", None), ("steps", 1e-6), ("accountants", 1e-6)]
)
def test_pictures(kind: str, delta: float | None, tmp_path: Path) -> None:
    target = tmp_path / f"{kind}.png"
    SGD.plot(kind, delta=delta).save(target)
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("plan", "asked"),
    [
        (SGD, {"kind": "area"}),
        (SGD, {"kind": "delta", "delta": 1e-6}),
        (SGD, {"kind": "steps"}),
        (SGD, {"kind": "steps", "delta": 1e-6, "points": []}),
        (SGD, {"kind": "steps", "delta": 1e-6, "points": [1.5]}),
        (SGD, {"kind": "accountants", "delta": 1e-6, "points": [1]}),
        (SGD + pl.Laplace(1), {"kind": "steps", "delta": 1e-6}),
        (pl.Gaussian(0.0).as_plan(), {"kind": "delta"}),
    ],
)
def test_what_cannot_be_drawn_is_refused(plan: pl.Plan, asked: dict[str, Any]) -> None:
    with pytest.raises(pl.PrivlossError):
        plan.plot(**asked)


def test_bad_files_and_digits(tmp_path: Path) -> None:
    chart = SGD.plot("steps", delta=1e-6, points=[10])
    for path in (tmp_path / "a.bmp", tmp_path / "no" / "a.png"):
        with pytest.raises(pl.InvalidInput, match="path"):
            chart.save(path)
    for digits in (0, 18):
        with pytest.raises(pl.InvalidInput, match="digits"):
            chart.to_latex(digits)
