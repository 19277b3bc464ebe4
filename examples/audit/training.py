"""Audit a small private training run, honest and with four planted bugs: ``python examples/audit/training.py``.

The claim is a plan, Gaussian noise on Poisson batches; the attack adds one record with a feature of its own and looks
at what was released about that feature. Each bug is one that ordinary unit tests do not see: the model still trains.
The noise is small, so that batches that are shuffled instead of sampled show: every record is then in some batch.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

import privloss as pl

RECORDS, FEATURES, CLIP = 60, 4, 1.0
NOISE, RATE, STEPS, DELTA = 0.3, 0.05, 20, 1e-5
BUGS = ("none", "no clipping", "noise halved", "batches shuffled", "seed reused")


@dataclass(frozen=True)
class Training:
    """Logistic regression by noisy gradients; calling it trains, and returns what was seen of the extra record."""

    bug: str = "none"

    def __call__(self, extra: float, rng: np.random.Generator) -> float:
        rows, labels = data(extra)
        weights, seen = np.zeros(rows.shape[1]), []
        batches = self._batches(len(rows), rng)
        noise = np.random.default_rng(7) if self.bug == "seed reused" else rng
        sigma = NOISE / 2 if self.bug == "noise halved" else NOISE
        for chosen in batches:
            gradients = (1 / (1 + np.exp(-rows[chosen] @ weights)) - labels[chosen])[:, None] * rows[chosen]
            if self.bug != "no clipping":
                norms = np.linalg.norm(gradients, axis=1, keepdims=True)
                gradients = gradients / np.maximum(norms / CLIP, 1.0)
            released = gradients.sum(axis=0) + sigma * CLIP * noise.normal(size=len(weights))
            weights = weights - 0.1 * released
            seen.append(-float(released[-1]))  # the feature that only the extra record has
        return max(seen)

    def _batches(self, records: int, rng: np.random.Generator) -> list[np.ndarray]:
        if self.bug != "batches shuffled":
            return [np.flatnonzero(rng.random(records) < RATE) for _ in range(STEPS)]
        return np.array_split(rng.permutation(records), STEPS)


def data(extra: float) -> tuple[np.ndarray, np.ndarray]:
    """Made once; `extra` is 1 with the record and 0 without. Its gradient is longer than the clipping norm."""
    source = np.random.default_rng(1)
    rows = np.column_stack([source.normal(size=(RECORDS, FEATURES)), np.zeros(RECORDS)])
    labels = (rows[:, 0] + 0.3 * source.normal(size=RECORDS) > 0).astype(float)
    if not extra:
        return rows, labels
    return np.vstack([rows, [*np.zeros(FEATURES), 6.0]]), np.append(labels, 1.0)


def audit(bug: str, runs: int, seed: int = 1) -> pl.audit.Audit:
    """The claimed plan against what this training run does."""
    claim = pl.Gaussian(noise_multiplier=NOISE).poisson(RATE) * STEPS
    return pl.audit.mechanism(Training(bug), 1.0, 0.0, runs=runs, delta=DELTA, seed=seed, claim=claim)


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    table = Table("bug", "epsilon, at least", "claimed", "p", "verdict")
    for bug in BUGS:
        try:
            found = audit(bug, runs)
        except pl.InvalidInput as problem:
            table.add_row(bug, "", "", "", str(problem))
            continue
        assert found.claim is not None
        table.add_row(bug, f"{found.epsilon:.3f}", f"{found.claim.upper:.3f}", f"{found.p_value:.2g}", found.verdict)
    Console().print(table)


if __name__ == "__main__":
    main()
