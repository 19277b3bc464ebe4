"""The example trains, stops at its budget, charges the ledger and leaves certificates that hold."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privloss as pl

SCRIPT = Path(__file__).parents[2] / "examples" / "train_private.py"


@pytest.fixture
def script() -> Any:
    spec = importlib.util.spec_from_file_location("train_private", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_stops_at_the_budget(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--planned", "30", "--steps", "40", "--epsilon", "1", "--directory", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["train_private.py", *arguments])
    script.main()
    told = capsys.readouterr().out
    assert told.count("stopped after 30 steps") == 2
    for name in ("regression", "network"):
        proof = pl.Certificate(json.loads((tmp_path / f"{name}.json").read_text()))
        assert proof.bound.upper <= 1
        assert pl.verify(proof).holds
    ledger = pl.Ledger(str(tmp_path / "ledger.db"))
    assert float(ledger.status("made")["committed"]["epsilon"]) >= 2 * 0.999
    ledger.close()


@pytest.mark.parametrize("name", ["logistic", "network"])
def test_gradients_of_single_examples(script: Any, name: str) -> None:
    """Against differences of the loss."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(4, script.FEATURES)), np.array([0.0, 1.0, 1.0, 0.0])
    hidden = script.FEATURES * script.HIDDEN + script.HIDDEN
    weights = rng.normal(size=script.FEATURES if name == "logistic" else hidden)

    def loss(at: np.ndarray) -> np.ndarray:
        score = x @ at if name == "logistic" else script.network_score(at, x)[0]
        return np.logaddexp(0, score) - y * score

    found = getattr(script, name)(weights, x, y)
    for i in range(len(weights)):
        step = np.zeros(len(weights))
        step[i] = 1e-5
        assert found[:, i] == pytest.approx((loss(weights + step) - loss(weights - step)) / 2e-5, abs=1e-6)
