"""The numbers of docs/training.md."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import privloss as pl
from privloss.interop.loaders import explain_loader
from tests.interop.training_standins import batches

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text()


def test_the_command_and_its_numbers() -> None:
    (command,) = [line for line in PAGE.splitlines() if line.startswith("privloss ")]
    run = [sys.executable, "-m", *shlex.split(command)]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    for number in ("3.127", "73.2"):
        assert number in PAGE
        assert number in told


def test_what_is_accounted_and_what_is_proven() -> None:
    said = " ".join(PAGE.split())
    for number in ("2.9997", "at least 18.0", "at most 65.3", "3.0001 at rate 1/118", "at least 10.39"):
        assert number in said
    accounted = pl.Gaussian(0.9692).poisson(256 / 60_000) * 14_100
    assert round(accounted.epsilon(1e-5).upper, 4) == 2.9997
    found = explain_loader(batches(60_000, 256)).epsilon(1e-5, noise_multiplier=0.9692, epochs=60)
    assert 18.0 <= found.lower <= found.upper <= 65.3
    assert 3.0 < (pl.Gaussian(1.2143).poisson(1 / 118) * 7080).epsilon(1e-5).upper <= 3.0001
    assert explain_loader(batches(60_000, 512)).epsilon(1e-5, noise_multiplier=1.2143, epochs=60).lower >= 10.39


def test_batches_cut_down() -> None:
    cut = pl.Gaussian(1.0).truncated_poisson(256 / 60_000, 60_000, 300) * 1000
    assert round(cut.epsilon(1e-5).upper, 3) == 0.795
    assert "0.795" in PAGE
