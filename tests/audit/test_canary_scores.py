"""Scores of canaries: ties, several budgets, the order by confidence."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privloss as pl

COINS = {"inclusion": "coins"}


def gaussian_canaries(rng: np.random.Generator, m: int, mu: float) -> tuple[np.ndarray, np.ndarray]:
    coins = rng.integers(0, 2, m)
    return mu * coins + rng.normal(size=m), coins


def test_extreme_guesses_against_all_guesses() -> None:
    rng = np.random.default_rng(5)
    few, every = [], []
    for _ in range(30):
        scores, coins = gaussian_canaries(rng, 1000, 1.0)
        few.append(pl.audit.one_run_scores(scores, coins, budgets=[(50, 50)], delta=1e-5, **COINS).epsilon)
        every.append(pl.audit.one_run_scores(scores, coins, budgets=[(500, 500)], delta=1e-5, **COINS).epsilon)
    assert np.median(few) > 1.55
    assert 0.6 < np.median(every) < 0.8


@pytest.mark.parametrize("first", [0, 1])
def test_ties_are_broken_without_looking_at_coins_or_order(first: int) -> None:
    """Members listed first (or last) and scores of three levels: a stable sort would call this epsilon 3.49."""
    coins = np.array([first] * 500 + [1 - first] * 500)
    scores = np.random.default_rng(0).permutation(np.repeat([0.0, 1.0, 2.0], [100, 800, 100]))
    for budgets in ([(400, 400)], "confidence"):
        found = [
            pl.audit.one_run_scores(scores, coins, budgets=budgets, delta=0.0, seed=seed, **COINS).epsilon
            for seed in range(5)
        ]
        assert np.median(found) == 0
    constant = pl.audit.one_run_scores(np.ones(1000), coins, budgets=[(500, 500)], delta=0.0, **COINS)
    assert constant.epsilon == 0


def test_several_budgets_share_alpha() -> None:
    scores, coins = gaussian_canaries(np.random.default_rng(1), 1000, 2.0)
    alone = pl.audit.one_run_scores(scores, coins, budgets=[(50, 50)], delta=0.0, alpha=0.025, **COINS)
    both = pl.audit.one_run_scores(scores, coins, budgets=[(50, 50), (3, 3)], delta=0.0, **COINS)
    assert both.epsilon >= alone.epsilon
    assert both.alpha == 0.05
    assert any("alpha divided" in note for note in both.notes)


def test_wealth_finds_a_few_exposed_canaries() -> None:
    rng = np.random.default_rng(2)
    keep = math.exp(4) / (1 + math.exp(4))
    found, every = [], []
    for _ in range(10):
        coins = rng.integers(0, 2, 1000)
        seen = np.where(rng.random(1000) < keep, coins, 1 - coins)
        scores = np.where(np.arange(1000) < 100, 10.0 * seen - 5, 0.0) + 0.01 * rng.normal(size=1000)
        found.append(pl.audit.one_run_scores(scores, coins, budgets="confidence", delta=0.0, **COINS).epsilon)
        every.append(pl.audit.one_run_scores(scores, coins, budgets=[(500, 500)], delta=0.0, **COINS).epsilon)
    assert np.median(found) > 2.1
    assert np.median(every) < 0.3


def test_unfair_coins_are_noticed() -> None:
    coins = np.array([1] * 700 + [0] * 300)
    found = pl.audit.one_run_scores(np.arange(1000.0), coins, budgets=[(5, 5)], delta=0.0, **COINS)
    assert any("fair coins" in note for note in found.notes)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"included": [1, 0]}, "equal length"), ({"included": [1, 0, 2]}, "included"), ({"scores": []}, "scores"),
        ({"scores": [1.0, math.nan, 2.0]}, "scores"), ({"budgets": "all"}, "budgets"),
        ({"budgets": [(4, 0)]}, "k_in"),
        ({"budgets": [(0, 0)]}, "budgets"), ({"budgets": []}, "budgets"), ({"budgets": 3}, "budgets"),
        ({"budgets": "confidence", "delta": 1e-5}, "delta"), ({"inclusion": "half"}, "inclusion"),
        ({"seed": -1}, "seed"),
    ],
)  # fmt: skip
def test_bad_input(change: dict[str, object], match: str) -> None:
    good: dict[str, object] = {
        "scores": [1.0, 2.0, 3.0], "included": [0, 1, 1], "budgets": [(1, 1)], "delta": 0.0, "inclusion": "coins",
    }  # fmt: skip
    with pytest.raises(pl.InvalidInput, match=match):
        pl.audit.one_run_scores(**{**good, **change})
