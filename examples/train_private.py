"""Private training, from the budget to the certificate: ``python examples/train_private.py [--epsilon E] [--steps N]``.

A logistic regression and a small network on data made here, in plain NumPy: Poisson batches, every example's gradient
clipped, Gaussian noise; then the regression again through Opacus, if it is installed. The noise is calibrated to the
budget, the whole run is reserved in a ledger before the data is read and committed after it, epsilon is shown while it
grows, training stops before the step that would exceed the budget, and a certificate of what ran is left behind.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

import privloss as pl

RECORDS, FEATURES, RATE, CLIP, DELTA, HIDDEN = 4000, 8, 0.02, 1.0, 1e-5, 16
Run = tuple[Callable[[], None], Callable[[], np.ndarray], Callable[[], str]]  # a step, the scores, what else to say
Gradients = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # (weights, x, y) -> one row per example


def made_data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two classes with a boundary that is nearly straight."""
    x = rng.normal(size=(RECORDS, FEATURES))
    return x, (x @ np.linspace(1, -1, FEATURES) + 0.5 * x[:, 0] * x[:, 1] > 0).astype(float)


def probability(score: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(score, -30, 30)))


def logistic(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (probability(x @ weights) - y)[:, None] * x


def network_score(weights: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, second = weights[: FEATURES * HIDDEN].reshape(FEATURES, HIDDEN), weights[FEATURES * HIDDEN :]
    inner = np.tanh(x @ first)
    return inner @ second, inner


def network(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    score, inner = network_score(weights, x)
    back = (probability(score) - y)[:, None]
    to_first = (back * weights[FEATURES * HIDDEN :]) * (1 - inner**2)
    return np.concatenate([(x[:, :, None] * to_first[:, None, :]).reshape(len(x), -1), back * inner], axis=1)


def private_step(
    weights: np.ndarray, gradients: Gradients, data: tuple[np.ndarray, np.ndarray], noise: float, rng: Any
) -> np.ndarray:
    """A Poisson batch, clipped gradients, noise; divided by the expected size, which is public."""
    x, y = data
    drawn = rng.random(RECORDS) < RATE
    rows = gradients(weights, x[drawn], y[drawn])
    rows = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True) / CLIP)
    total = rows.sum(axis=0) + rng.normal(scale=noise * CLIP, size=weights.shape)
    return weights - 2.0 * total / (RATE * RECORDS)


def watched(name: str, steps: int, budget: float, noise: float, step: Callable[[], None]) -> pl.Accountant:
    """Steps with a live epsilon, as long as the next one fits into the budget."""
    accountant, next_one = pl.Accountant(), pl.Accountant()
    shown = TextColumn("{task.completed} steps, epsilon {task.fields[eps]}")
    with Progress(TextColumn("{task.description:<10}"), BarColumn(), shown, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=steps, eps="0")
        for _ in range(steps):
            next_one.step(noise_multiplier=noise, sample_rate=RATE)
            now = next_one.get_epsilon(DELTA)
            if now > budget:
                print(f"{name}: stopped after {len(accountant)} steps, the next one would need epsilon {now:.4f}")
                break
            accountant.step(noise_multiplier=noise, sample_rate=RATE)
            step()
            bar.update(task, advance=1, eps=f"{now:.4f}")
    return accountant


def numpy_run(gradients: Gradients, start: np.ndarray, score: Any, data: Any, noise: float, seed: int) -> Run:
    """A model of this file, with a generator of its own."""
    held, rng = [start], np.random.default_rng(seed)

    def step() -> None:
        held[0] = private_step(held[0], gradients, data, noise, rng)

    return step, lambda: score(held[0], data[0]), lambda: ""


def opacus_run(data: tuple[np.ndarray, np.ndarray], noise: float) -> Run:
    """The same regression through Opacus, which draws the batches, clips and adds the noise."""
    import torch

    import privloss.interop.opacus  # noqa: F401  # registers the accountant
    from opacus import PrivacyEngine

    torch.manual_seed(0)
    x, y = (torch.tensor(part, dtype=torch.float32) for part in data)
    model = torch.nn.Linear(FEATURES, 1)
    engine = PrivacyEngine(accountant="privloss")
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=round(RATE * RECORDS))
    module, optimizer, batches = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=2.0), data_loader=loader,
        noise_multiplier=noise, max_grad_norm=CLIP,
    )  # fmt: skip
    endless = itertools.chain.from_iterable(itertools.repeat(batches))

    def step() -> None:
        some, labels = next(endless)
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(module(some)[:, 0], labels).backward()
        optimizer.step()

    def told() -> str:
        return f"; its engine says {len(engine.accountant)} steps, epsilon {engine.get_epsilon(DELTA):.6f}"

    return step, lambda: model(x)[:, 0].detach().numpy(), told


def main() -> None:
    parser = argparse.ArgumentParser(description="Private training with a budget.")
    parser.add_argument("--epsilon", type=float, default=1.0, help="for each of the models")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--planned", type=int, help="steps the noise is calibrated for  [default: --steps]")
    parser.add_argument("--directory", type=Path, help="for the ledger and the certificates  [default: a new one]")
    given = parser.parse_args()
    home = given.directory or Path(tempfile.mkdtemp(prefix="train-private-"))
    home.mkdir(parents=True, exist_ok=True)
    planned = given.planned or given.steps
    found = pl.calibrate(lambda s: pl.Gaussian(s).poisson(RATE) * planned, epsilon=given.epsilon, delta=DELTA)
    noise = float(found.value)
    print(f"noise multiplier {noise:.4f} for {planned} steps at rate {RATE}: {found.target.describe()}")
    ledger = pl.Ledger.create(str(home / "ledger.db"))
    ledger.add_dataset("made", adjacency="add-remove")
    ledger.set_budget("made", currency="approx", cap=str(3 * given.epsilon), delta="1e-4")
    data, rng = made_data(np.random.default_rng(0)), np.random.default_rng(1)
    random = rng.normal(scale=0.3, size=FEATURES * HIDDEN + HIDDEN)
    runs: dict[str, Callable[[], Run]] = {
        "regression": lambda: numpy_run(logistic, np.zeros(FEATURES), lambda w, x: x @ w, data, noise, 1),
        "network": lambda: numpy_run(network, random, lambda w, x: network_score(w, x)[0], data, noise, 2),
    }
    if find_spec("opacus") is None:
        print("opacus: not installed")
    else:
        runs["opacus"] = lambda: opacus_run(data, noise)
    for name, made in runs.items():
        with ledger.spend("made", found.plan, key=name, cost_delta=str(DELTA)):  # reserved before, committed after
            step, score, told = made()
            accountant = watched(name, given.steps, given.epsilon, noise, step)
        proof = pl.certify(accountant.plan, delta=DELTA)
        proof.save(home / f"{name}.json")
        right = np.mean((score() > 0) == (data[1] > 0.5))
        print(f"{name}: {len(accountant)} steps, {right:.1%} right, epsilon {proof.bound}{told()}")
        print(f"{name}: certificate {home / name}.json   (check it with: privloss verify {home / name}.json)")
    status = ledger.status("made")
    print(f"ledger {home / 'ledger.db'}: committed {status['committed']}, remaining {status['remaining']}")
    ledger.close()


if __name__ == "__main__":
    try:
        main()
    except pl.PrivlossError as problem:  # a ledger that is there already, a budget that cannot be met
        raise SystemExit(f"train_private: {problem}") from None
