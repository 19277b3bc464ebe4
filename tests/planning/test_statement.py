"""Privacy statements: every number is an upper end for the sampler it is printed beside."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from mpmath import mp

import privloss as pl
from privloss.planning.statement import statement
from tests.cli import inside

RUN: dict[str, Any] = {
    "dataset_size": 60_000, "batch_size": 256, "noise_multiplier": 1.1, "epochs": 10, "delta": 1e-5,
}  # fmt: skip
FLAGS = ["--dataset-size", "60000", "--batch-size", "256", "--noise-multiplier", "1.1", "--epochs", "10"]


def gaussian_delta(epsilon: float, distance: float) -> float:
    """delta(epsilon) of N(distance) against N(0), unit noise."""
    with mp.workdps(30):
        d = mp.mpf(distance)
        return float(mp.ncdf(d / 2 - epsilon / d) - mp.exp(epsilon) * mp.ncdf(-d / 2 - epsilon / d))


def test_both_usual_samplers_are_stated_each_under_an_adjacency_with_a_proof() -> None:
    said = statement(**RUN, people=3)
    assert [(row.sampling, row.adjacency) for row in said.rows] == [("shuffle", "zero-out"), ("poisson", "add-remove")]
    shuffled, poisson = said.rows
    assert shuffled.example == pl.dp_sgd(
        dataset_size=60_000, batch_size=256, noise_multiplier=1.1, epochs=10, sampling="shuffle", adjacency="zero-out"
    ).epsilon(1e-5)
    step = pl.Gaussian(noise_multiplier=1.1).poisson(256 / 60_000)
    assert poisson.example == (step * 2350).epsilon(1e-5)
    assert poisson.user == pl.group.plan(step * 2350, people=3).epsilon(1e-5)


@pytest.mark.parametrize(("people", "epochs"), [(2, 1), (3, 2), (5, 4)])
def test_a_user_whose_examples_are_always_together_is_covered(people: int, epochs: int) -> None:
    """One batch per epoch: the distance is `people` in every epoch, and nothing less bounds it."""
    whole = {**RUN, "batch_size": 60_000, "epochs": epochs, "noise_multiplier": 4.0}
    (row,) = statement(**whole, people=people, sampling="shuffle").rows
    assert row.user is not None
    distance = people * epochs**0.5 / 4.0
    assert gaussian_delta(row.user.upper, distance) <= 1e-5 <= gaussian_delta(row.user.upper * (1 - 1e-9), distance)


def test_a_users_placements_are_covered() -> None:
    """Two batches: a user's two examples are together or apart; the truth of either is below the upper end."""
    small = {**RUN, "dataset_size": 10, "batch_size": 5, "epochs": 1, "noise_multiplier": 2.0}
    (row,) = statement(**small, people=2, sampling="shuffle").rows
    assert row.user is not None
    assert row.user.lower == row.example.lower
    for distance in (2 / 2.0, 2**0.5 / 2.0):
        assert gaussian_delta(row.user.upper, distance) <= 1e-5


def test_one_example_per_user_is_the_example() -> None:
    for row in statement(**RUN, people=1).rows:
        assert row.user == row.example


def test_what_has_no_proof_is_said_not_guessed() -> None:
    (row,) = statement(**RUN, people=3, sampling="fixed-size").rows
    assert row.user is None
    assert "no proven pair" in row.refused
    assert "not stated" in str(statement(**RUN, people=3, sampling="fixed-size"))
    with pytest.raises(pl.Unsupported, match="add-remove"):
        statement(**RUN, sampling="shuffle", adjacency="add-remove")


def test_printed_numbers_are_rounded_up() -> None:
    said = statement(**RUN)
    for row in said.rows:
        (line,) = [x for x in str(said).splitlines() if x.strip().startswith(row.sampling)]
        printed = Decimal(line.split("<=")[1].split()[0])
        assert Decimal(row.example.upper) <= printed <= Decimal(row.example.upper) + Decimal("0.001")


def run(*arguments: str) -> inside.Done:
    return inside.run("statement", *arguments)


def test_command() -> None:
    done = run(*FLAGS, "--delta", "1e-5", "--max-examples-per-user", "3")
    assert done.returncode == 0, done.stderr
    for words in ("60000 examples with 256", "Example-level DP", "User-level DP", "checkpoints"):
        assert words in done.stdout
    told = json.loads(run(*FLAGS, "--delta", "1e-5", "--sampling", "poisson", "--json").stdout)
    (row,) = told["rows"]
    assert (row["sampling"], row["adjacency"], row["user"]) == ("poisson", "add-remove", None)
    assert row["example"]["lower"] <= 0.92017 <= row["example"]["upper"] + 1e-6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (FLAGS, "--delta: is missing"),
        ([*FLAGS, "--delta", "x"], "--delta = 'x'"),
        ([*FLAGS, "--delta", "1e-5", "--sampling", "guess"], "sampling = 'guess'"),
        ([*FLAGS, "--delta", "1e-5", "--max-examples-per-user", "0"], "people"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
