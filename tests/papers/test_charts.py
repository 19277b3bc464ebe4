"""Charts for papers: numbers on the safe side, in tables and pictures."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.cli import plots
from privloss.cli.main import main
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


def test_tables_say_what_ran_and_keep_their_digits() -> None:
    chart = Chart(
        "A title, add-remove", EPSILON, DELTA, (1.0,), (Bound(1.42000001e-8, 9.99999e-5),), about="1000 * Step"
    )
    first, *_, row, _, _ = chart.to_latex(4).splitlines()
    assert first == "% A title, add-remove: 1000 * Step"
    assert row == r"1 & $1.420\times10^{-8}$ & 0.0001000 \\"


@pytest.mark.parametrize(
    ("kind", "delta", "named"),
    [
        ("delta", None, "Delta over epsilon, add-remove"),
        ("tradeoff", None, "Errors of any attack, add-remove"),
        ("steps", 1e-6, "Epsilon by steps at delta = 1e-06, add-remove"),
        ("accountants", 1e-6, "Bounds on epsilon at delta = 1e-06, add-remove"),
    ],
)
def test_every_chart_says_what_ran(kind: str, delta: float | None, named: str) -> None:
    points = None if kind == "accountants" else [1]
    chart = SGD.plot(kind, delta=delta, points=points)
    assert chart.title == named
    assert "Gaussian(noise_multiplier=1.1).poisson(0.01)" in chart.about


def test_epochs_are_not_called_steps() -> None:
    chart = (pl.Gaussian(1.0).shuffle(10) * 3).plot("steps", delta=1e-6, adjacency="zero-out")
    assert (chart.x.name, chart.places) == ("epochs", (1, 2, 3))
    assert chart.rows()[0]["epochs"] == 1


def test_points_of_our_own_are_round_numbers_and_meet_the_kink() -> None:
    places = SGD.plot("delta").places
    assert places[:3] == (0.0, 0.1, 0.2)
    assert 20 <= len(places) <= 41
    promise = pl.PureDP(1.0).as_plan().plot("tradeoff")
    at = promise.places.index(0.2689)  # 1/(1 + e)
    assert promise.bounds[at].lower == pytest.approx(0.2689, abs=2e-4)


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


# -- heat maps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--noise-multiplier", "1,2", "--sample-rate", "0.1,1", "--steps", "2000"],
         "Gaussian noise, Poisson samples, 2 000 steps, add-remove"),
        (["--noise-multiplier", "1,2", "--steps", "1,3", "--adjacency", "replace-one"],
         "Gaussian noise, no sampling, replace-one"),
        (["--noise-multiplier", "1.1", "--sample-rate", "0.1,0.2", "--steps", "1,3"],
         "Gaussian noise 1.1, Poisson samples, add-remove"),
        (["--target-epsilon", "1", "--sample-rate", "0.1,0.2", "--steps", "1,3"],
         "Gaussian noise, Poisson samples, add-remove"),
        (["--noise-multiplier", "1,2", "--sample-rate", "0.1", "--steps", "1,3"],
         "Gaussian noise, Poisson samples of rate 0.1, add-remove"),
    ],
)  # fmt: skip
def test_heat_maps_say_steps_sampler_and_adjacency(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles = []
    monkeypatch.setattr("privloss.cli.plots.save_sweep", lambda found, path, ran: titles.append(ran))
    with pytest.raises(SystemExit):
        main(["sweep", *options, "--delta", "1e-6", "--processes", "1", "--out", str(tmp_path / "map.png"), "--json"])
    assert titles == [said]


def test_numbers_in_heat_maps_are_rounded_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = pl.sweep(lambda s, n: pl.Gaussian(s) * n, s=[1.0, 2.0], n=[1, 3], delta=1e-6, processes=1)
    seen: list[str] = []
    monkeypatch.setattr("matplotlib.axes.Axes.text", lambda self, x, y, text, **_: seen.append(text))
    plots.save_sweep(found, tmp_path / "map.png", "said")
    assert len(seen) == 4
    for text, outcome in zip(seen, found.outcomes, strict=True):
        assert Fraction(outcome.number) <= Fraction(text) <= Fraction(outcome.number) * Fraction(101, 100)
