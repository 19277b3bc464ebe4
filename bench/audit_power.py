"""What audits show where the truth is known: medians, beside those of a second implementation less 5 %."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import privloss as pl
from bench.audit_coverage import TRIALS

Rng = np.random.Generator
Floor = tuple[str, float, float]  # what, its median, and the least that it should be


def geometric(x: int, rng: Rng) -> int:
    p = 1 - math.exp(-1)
    return int(x + rng.geometric(p) - rng.geometric(p))


def above_threshold(x: int, rng: Rng) -> tuple[bool, bool]:
    """Noise on the threshold, none on the queries: infinite."""
    threshold = rng.laplace()
    return bool(x >= threshold), bool(1 - x >= threshold)


FUNCTIONS: tuple[tuple[str, Callable[[Any, Rng], Any], float, float, float], ...] = (
    ("Laplace", lambda x, rng: x + rng.laplace(), 0.0, 0.617, 0.881),
    ("Laplace, scale halved", lambda x, rng: x + rng.laplace(scale=0.5), 0.0, 1.488, 1.829),
    ("two-sided geometric", geometric, 0.0, 0.826, 0.943),
    ("Gaussian", lambda x, rng: x + rng.normal(), 0.01, 1.222, 1.880),
    ("above threshold, queries without noise", above_threshold, 0.0, 3.97, 6.36),
)


def functions(runs: int, audits: int) -> Iterator[Floor]:
    for name, f, delta, few, many in FUNCTIONS:
        found = [pl.audit.mechanism(f, 0, 1, runs=runs, delta=delta, seed=seed).epsilon for seed in range(audits)]
        yield f"function, {runs} runs: {name}", float(np.median(found)), few if runs <= 2000 else many


def splits(audits: int) -> Iterator[Floor]:
    rng = np.random.default_rng(2)
    for name, draw, delta, floor in (("Laplace", rng.laplace, 0.0, 0.703), ("Gaussian", rng.normal, 0.01, 1.11)):
        found = [
            pl.audit.scores(
                draw(size=1000) + 1, draw(size=1000), delta=delta, threshold="split", seed=seed, **TRIALS
            ).epsilon
            for seed in range(audits)
        ]
        yield f"split and joint test, n = 1000: {name}", float(np.median(found)), floor


def streams(audits: int) -> Iterator[Floor]:
    """Pairs until epsilon = 1 is refuted: fewer are better, so their negatives are compared."""
    for truth, most in ((2.0, 85), (1.5, 198), (1.2, 1084)):
        keep = math.exp(truth) / (1 + math.exp(truth))
        for name in ("randomised response", "Laplace"):
            rounds = []
            for seed in range(audits):
                rng, audit = np.random.default_rng([seed, 9]), pl.audit.stream(epsilon=1.0, delta=0.0)
                while not audit.refuted and audit.rounds < 5000:
                    if name == "Laplace":
                        audit.observe(rng.laplace(0, 1 / truth), rng.laplace(1, 1 / truth))
                    else:
                        audit.observe(float(rng.random() > keep), float(rng.random() < keep))
                rounds.append(-audit.rounds)
            yield f"stream, truth {truth:g}: {name}", float(np.median(rounds)), -float(most)


def power(audits: int) -> bool:
    """Prints a line for each; whether all are at least 95 % of what they should be."""
    well = True
    parts = (functions(2000, audits), splits(audits), streams(audits), functions(20_000, max(audits // 5, 1)))
    for part in parts:
        for what, found, floor in part:
            reached = found >= floor - 0.05 * abs(floor)
            well &= reached
            print(f"{what:60} {found:9.3f} {floor:9.3f}{'' if reached else '  BELOW'}", flush=True)
    return well
