"""Figures, `compare`, and their commands."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.cli import plots
from privloss.cli.main import main
from privloss.theorems.compare import compare, with_noise
from privloss.theorems.figures import FIGURES, composition_figure, subsampling_figure, tracing_figure


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_composition_figure() -> None:
    figure = composition_figure(counts=(10, 100))
    row = {name: curve[1] for name, curve in figure.curves.items()}
    assert row["optimal"] == pytest.approx(4.774567588, abs=5e-10)
    assert row["exact, Laplace noise"] == pytest.approx(4.692667414680189, rel=1e-7)
    assert row["basic"] >= row["advanced, 2010 form"] >= row["advanced"] >= row["CDP"] >= row["optimal"]
    assert row["optimal"] >= row["exact, Laplace noise"] >= row["Gaussian"]


def test_subsampling_figure() -> None:
    figure = subsampling_figure(orders=(2.0, 4.0, 8.0, 16.0))
    for i in range(4):
        row = {name: curve[i] for name, curve in figure.curves.items()}
        exact = row["exact, Gaussian"]
        assert row["theorem and chords"] == pytest.approx(exact, rel=1e-9)
        assert min(row["analytic"], row["limit"], row["unamplified"]) >= exact * (1 - 1e-12)
        assert math.isnan(row["floor"]) or row["floor"] <= exact
    assert figure.curves["unamplified"][0] == 1.0


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".csv"])
def test_figures_are_written(tmp_path: Path, suffix: str) -> None:
    figure = subsampling_figure(orders=(2.0, 3.0))
    path = tmp_path / f"figure{suffix}"
    plots.save(figure, plots.output_path(str(path)))
    assert path.stat().st_size > 100
    if suffix == ".csv":
        rows = list(csv.reader(path.read_text().splitlines()))
        assert rows[0][0] == "order alpha"
        assert float(rows[1][1]) == 1.0
        assert rows[1][rows[0].index("floor")] == ""  # nothing to say there


def test_tracing_figure(tmp_path: Path) -> None:
    figure = tracing_figure(people=20, dimensions=50, trials=200)
    assert figure.curves["measured power"][0] > figure.curves["measured power"][-1]
    path = tmp_path / "tracing.png"
    plots.save(figure, path)
    assert path.stat().st_size > 10_000


def test_figure_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "figure", "subsampling", "--out", str(tmp_path / "s.csv"))
    assert code == 0
    assert out.strip().endswith("s.csv")
    code, out, _ = run(capsys, "figure", "subsampling", "--json")
    assert code == 0
    assert json.loads(out)["columns"]["unamplified"][0] > 0
    for arguments, words in (
        (("figure", "other"), "name = 'other'"),
        (("figure", "composition", "--out", "x.txt"), "--out = 'x.txt'"),
        (("figure", "composition", "--out", "/no/such/place/x.png"), "does not exist"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "")
        assert words in err


def test_missing_matplotlib_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run(capsys, "figure", "composition")
    assert code == 1
    assert "pip install 'privloss[plots]'" in err


PLANS = [
    pl.PureDP(0.1) * 100,
    pl.Gaussian(4.0) * 30,
    pl.Gaussian(2.0).poisson(0.05) * 200,
    pl.RandomizedResponse(p=0.5) * 50,
    pl.ApproxDP(0.1, 1e-9) * 20 + pl.Gaussian(5.0),
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_compare(plan: pl.Plan) -> None:
    rows = compare(plan, 1e-5, noise=False)
    assert rows[-1].bound == "exact"
    assert all(r.epsilon >= plan.epsilon(1e-5).lower for r in rows)
    values = [r.epsilon for r in rows[:-1]]
    assert values == sorted(values, reverse=True)
    names = {r.bound for r in rows}
    assert {"basic composition", "advanced composition", "zCDP, best t", "Renyi DP, best order"} <= names
    sampled = any(isinstance(m, pl.PoissonSampled) for m, _ in plan.steps)
    assert sampled == ("amplification by sampling, then advanced composition" in names)


def test_compare_finds_the_price_in_noise() -> None:
    plan = pl.PureDP(0.1) * 100
    truth = plan.epsilon(1e-6).upper
    for row in compare(plan, 1e-6):
        assert row.noise is not None
        if row.bound == "basic composition":  # linear: the price is the ratio itself
            assert row.noise == pytest.approx(10 / truth, rel=1e-3)
        if row.bound in ("exact", "optimal composition of the steps' (epsilon, delta)"):
            assert row.noise == pytest.approx(1.0, abs=1e-3)
        assert row.noise >= 1


def test_more_noise() -> None:
    plan = (
        pl.Gaussian(1.0) + pl.Gaussian(sigma=2.0, sensitivity=3.0) + pl.Laplace(1.0)
        + pl.RandomizedResponse(epsilon=1.0)
        + pl.PureDP(1.0) + pl.ApproxDP(1.0, 1e-9) + pl.ZCDP(1.0) + pl.GDP(1.0) + pl.RDP([2, 3], [1.0, 1.5])
        + pl.Gaussian(1.0).poisson(0.1)
    )  # fmt: skip
    louder = with_noise(plan, 2.0)
    assert len(louder.steps) == len(plan.steps)
    assert louder.steps[0][0] == pl.Gaussian(2.0)
    assert louder.steps[1][0] == pl.Gaussian(sigma=4.0, sensitivity=3.0)
    assert louder.steps[6][0] == pl.ZCDP(0.25)
    assert louder.epsilon(1e-5).upper < plan.epsilon(1e-5).lower


def test_compare_of_tables_has_no_price() -> None:
    rows = compare(pl.Custom([0.6, 0.4], [0.5, 0.5]) * 20, 1e-5)
    assert all(r.noise is None for r in rows)
    assert rows[0].epsilon > rows[-1].epsilon


def test_compare_of_newer_mechanisms() -> None:
    plan = pl.DiscreteGaussian(4.0) * 5 + pl.Exponential(0.1) * 5 + pl.ZCDP(0.01, 1e-9)
    for row in compare(plan, 1e-5, noise=False):
        assert row.epsilon >= plan.epsilon(1e-5).lower
    louder = with_noise(pl.DiscreteLaplace(2.0) + pl.NoisyMax(0.5) + pl.PrivacyProfile([1.0], [1e-6]), 2.0)
    assert louder == pl.DiscreteLaplace(4.0) + pl.NoisyMax(0.25) + pl.PrivacyProfile([0.5], [1e-6])


def test_compare_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text((pl.PureDP(0.1) * 100).to_json())
    code, out, _ = run(capsys, "compare", str(path), "--delta", "1e-6", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["bounds"][0]["bound"] == "basic composition"
    assert found["bounds"][-1]["epsilon"] == pytest.approx(4.774567588, abs=1e-9)
    code, out, _ = run(capsys, "compare", str(path), "--delta", "1e-6", "--no-noise")
    assert code == 0
    assert "4.774568" in out
    for arguments, words in (
        (("compare", str(path)), "--delta: is missing"),
        (("compare", str(path), "--delta", "0"), "--delta = 0.0"),
        (("compare", str(path), "--delta", "1e-6", "--steps", "3"), "contradicts the plan file"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "")
        assert words in err


def test_every_figure_has_a_name() -> None:
    assert set(FIGURES) == {"composition", "subsampling", "tracing", "central-limit", "sgd", "sgd-delta"}


def test_the_same_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty unequal queries: five splits of delta, basic composition and the truth, each step once per factor."""
    from privloss.answers import exact

    asked: list[tuple[Any, ...]] = []
    real = exact.epsilon

    def watched(plan: pl.Plan, delta: Any, **more: Any) -> Any:
        asked.append((plan.steps, plan.adjacency, delta, *more.values()))
        return real(plan, delta, **more)

    monkeypatch.setattr(exact, "epsilon", watched)
    plan = pl.Plan.of(*((pl.Gaussian(5 + 0.3 * i), 1) for i in range(40)))
    compare(plan, 1e-6, noise=False)
    assert len(asked) <= 40 * 6 + 12
    alone = [a for a in asked if len(a[0]) == 1]
    assert len(alone) == len(set(alone))
    asked.clear()
    compare(plan, 1e-6)
    assert len(asked) < 1600  # it was 6 600


def test_few_factors_of_noise_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secants: two or three new factors for each bound, and those of other bounds where they serve."""
    from privloss.theorems import compare as module

    made = 0
    real = module.with_noise

    def counted(plan: pl.Plan, factor: float) -> pl.Plan:
        nonlocal made
        made += 1
        return real(plan, factor)

    monkeypatch.setattr(module, "with_noise", counted)
    rows = compare(pl.Gaussian(1.1).poisson(0.01) * 1000 + pl.Laplace(30.0) * 2, 1e-6)
    assert made <= 8 * len(rows)


def test_crossings_are_found_from_anywhere() -> None:
    from privloss.theorems.compare import _crossing

    for root in (0.01, 0.3, 2.0, 8.0):
        for bend in (0.0, 0.3, -0.05):
            f = lambda x, root=root, bend=bend: min((root - x) * (1 + bend * abs(root - x)), 50.0)  # noqa: E731
            for tried in ([], [root * 0.5], [root * 2, root * 3], [root]):
                assert _crossing(f, f(0.0), tried, 9.2) == pytest.approx(root, abs=2e-4)
    assert _crossing(lambda x: 20.0 - x, 20.0, [], 9.2) is None
    assert _crossing(lambda x: -1.0, -1.0, [], 9.2) == 0.0
    assert _crossing(lambda x: 50.0 if x < 3 else 4.0 - x, 50.0, [], 9.2) == pytest.approx(4.0, abs=2e-4)


def test_prices_are_where_the_bounds_meet_the_truth() -> None:
    plan = pl.Gaussian(4.0) * 30 + pl.Laplace(20.0) * 3
    rows = compare(plan, 1e-6)
    truth = rows[-1].epsilon
    for row in rows[:-1]:
        assert row.noise is not None
        louder = {r.bound: r.epsilon for r in compare(with_noise(plan, row.noise), 1e-6, noise=False)}
        assert louder[row.bound] == pytest.approx(truth, rel=1e-3)


def test_orders_chosen_roughly_lose_nothing() -> None:
    """The best of all orders, each asked to all digits, is among the few that compare asks."""
    from privloss.theorems.compare import ORDERS

    for plan in (pl.Gaussian(1.1).poisson(0.01) * 1000, pl.Laplace(3.0) * 20, pl.Gaussian(0.5) * 3):
        values = [plan.rdp(a).upper for a in ORDERS]
        rows = {r.bound: r.epsilon for r in compare(plan, 1e-6, noise=False)}
        for form, name in (("simple", "simple conversion"), ("infimum", "best order")):
            best = pl.conversion.renyi_to_epsilon(ORDERS, values, delta=1e-6, form=form)
            assert rows[f"Renyi DP, {name}"] == pytest.approx(best, rel=1e-12)
