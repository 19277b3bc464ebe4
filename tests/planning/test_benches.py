"""The benches notice what they are there for: wide answers with their cause, noise that is too little or too much."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench import calibration, curves, grid, ordinary, sweep

import privloss as pl

SETTING = sweep.Setting(1.0, 0.01, 1000, 1e-6)


def test_every_wide_answer_has_a_cause() -> None:
    told: list[sweep.Answer] = [
        (SETTING, 1.0, 1.0 + 1e-9, "exact privacy loss (contour)", 0.1),
        (replace(SETTING, delta=1e-30), 1.0, 1.1, "moments bound above, one step below", 0.1),
        (replace(SETTING, steps=3), 1.0, 1.1, "exact privacy loss (blurred contour) / closed form", 0.1),
        (replace(SETTING, rate=1e-5), 1.0, 1.1, "exact privacy loss (blurred contour)", 0.1),
        (SETTING, 1.0, 1.1, "exact privacy loss (contour)", 0.1),
    ]
    assert dict(sweep.causes(told)) == {
        ("delta below 1e-20", "wide"): 1,
        ("five steps or fewer", "exact privacy loss (blurred contour)"): 1,
        ("fewer than a tenth of a hit expected", "exact privacy loss (blurred contour)"): 1,
        ("none of these", "exact privacy loss (contour)"): 1,
    }


def test_ordinary_settings_are_reported_apart(capsys: pytest.CaptureFixture[str]) -> None:
    usual = sweep.ordinary(3, 5, quiet=True)
    assert len(usual.answers) == 3
    wrong = sweep.Outcome([(SETTING, 1.0, 2.0, "exact privacy loss (contour)", 0.1)], ["a problem"])
    assert sweep.report([wrong], 0, usual) == ["a problem"]
    out = capsys.readouterr().out
    assert "ordinary: 3 settings" in out
    assert "extreme: 1 settings" in out
    assert "wider than 1e-06: 0 (0.00%)" in out.split("extreme")[0]
    assert "wider than 1e-06: 1 (100.00%)" in out.split("extreme")[1]
    assert "none of these: exact privacy loss (contour)" in out


def test_calibrations_are_close_and_others_would_be_noticed() -> None:
    for problem in calibration.problems(3, 11):
        solved = calibration.ours(problem)
        assert solved.close
        for factor in (1 + 1e-6, 1 - 1e-6):  # more than is needed, and too little
            assert not replace(solved, found=replace(solved.found, value=solved.found.value * factor)).close


def test_the_peer_is_believed_only_if_it_is_right(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    solved = calibration.ours(calibration.problems(1, 11)[0])
    sigma = float(solved.found)
    for theirs, known in ((sigma * 1.1, 0), (sigma * 0.9, 0)):  # more noise; less, and refuted
        monkeypatch.setattr(calibration, "theirs", lambda problem, theirs=theirs: (theirs, 1.0))
        assert len(calibration.compare([solved])) == known
    assert "smaller, and too little" in capsys.readouterr().out
    monkeypatch.setattr(calibration.Problem, "surely_too_little", lambda self, sigma: False)
    assert len(calibration.compare([solved])) == 1


def test_a_grid_of_ordinary_cells(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    settings = grid.ordinary_plans(2, 3)
    deltas = grid.values("delta", 3)
    assert deltas == pytest.approx([1e-12, 10**-8.5, 1e-5])
    found, spent = grid.swept(settings, deltas)
    assert len(found) == 6
    for point in found.points():
        assert 1e-3 <= point["epsilon"].upper <= 50
        assert point["epsilon"].lower <= replace(settings[point["plan"]], delta=point["delta"]).answer().upper
    monkeypatch.setattr(grid, "renyi", lambda setting, delta: (1e9, spent))
    assert grid.report(settings, found, spent, 6, 1) == []
    assert "ratio: 1.0 in wall clock, 1.0 in CPU" in capsys.readouterr().out
    monkeypatch.setattr(grid, "renyi", lambda setting, delta: (1e-9, spent))
    assert len(grid.report(settings, found, spent, 6, 1)) == 6


def test_draws_stay_in_their_ranges() -> None:
    import random

    rng = random.Random(0)
    for _ in range(50):
        drawn = ordinary.draw(rng)
        for value, (low, high) in zip(
            (drawn.sigma, drawn.rate, drawn.steps, drawn.delta), ordinary.RANGES.values(), strict=True
        ):
            assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
    assert isinstance(drawn.answer(), pl.Bound)


def test_curves_are_timed_against_one_answer(capsys: pytest.CaptureFixture[str]) -> None:
    found = curves.measure(replace(SETTING, rate=0.001))
    assert found is not None
    assert set(found.ratios) == set(curves.GOALS)
    assert curves.measure(replace(SETTING, sigma=0.2, rate=0.5)) is None  # epsilon is far above 50
    slow = curves.Ratios(SETTING, 1.0, dict.fromkeys(curves.GOALS, 1e6))
    curves.report([found, slow])
    assert capsys.readouterr().out.count("largest 1000000.0") == 3
