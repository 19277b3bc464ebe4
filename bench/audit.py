"""Audits: how long they take, how often they err: ``python -m bench.audit [times] [coverage] [peer] [--audits N]``.

*times*: CPU seconds of single calls. *coverage*: N simulated audits (2 000) of mechanisms whose epsilon is known, for
every method: the share of audits whose bound exceeds the truth (at most alpha = 0.05, but for the error of the
simulation, three standard deviations of which are 0.015 at N = 2 000) and the median bound. *peer*: the same scores
given to JAX Privacy's auditor, where it is installed, and to ours.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import privloss as pl
from privloss.audit import bands
from privloss.audit.trials import joint_epsilon

ALPHA = 0.05
Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]  # scores of members, of others
WORLDS: dict[str, tuple[Draw, float, float]] = {  # with the truth: epsilon at delta
    "randomised response": (lambda rng, n: (0.0 + (rng.random(n) < RIGHT), 0.0 + (rng.random(n) > RIGHT)), 1.0, 0.0),
    "Laplace": (lambda rng, n: (rng.laplace(size=n) + 1, rng.laplace(size=n)), 1.0, 0.0),
    "Gaussian": (lambda rng, n: (rng.normal(size=n) + 1, rng.normal(size=n)), 2.3182, 0.01),
    "null": (lambda rng, n: (rng.normal(size=n), rng.normal(size=n)), 0.0, 0.0),
}
RIGHT = math.e / (1 + math.e)


def seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def times() -> None:
    plan = pl.Gaussian(1.1).poisson(0.01) * 10_000
    trials: dict[str, Any] = {"delta": 1e-5, "trials": "independent"}
    run: dict[str, Any] = {
        "canaries": 10**5, "guesses": 10**5, "delta": 1e-7, "inclusion": "coins", "guesses_fixed": True,
    }  # fmt: skip
    small = {**run, "canaries": 1000, "guesses": 1000, "delta": 1e-5}
    counts = functools.partial(pl.audit.counts, positives=400, fp=20, negatives=400, **trials)
    plan.epsilon(1e-5)  # not what is timed
    for name, call in (
        ("counts, 400 a side", lambda: counts(tp=300)),
        ("counts, 400 a side, a plan claimed", lambda: counts(tp=300, claim=plan)),
        ("counts, 2 000 a side", lambda: pl.audit.counts(tp=1500, positives=2000, fp=100, negatives=2000, **trials)),
        ("band, 1 000 scores", lambda: bands.local_level(1000, 0.025)),
        ("one run, 10^5 canaries", lambda: pl.audit.one_run(correct=60_000, **run)),
        (
            "one run, 10^5 canaries, (epsilon, delta) claimed",
            lambda: pl.audit.one_run(correct=60_000, claim=2.0, **run),
        ),
        ("one run, 10^5 canaries, a plan claimed", lambda: pl.audit.one_run(correct=60_000, claim=plan, **run)),
        ("one run, 10^3 canaries, a plan claimed", lambda: pl.audit.one_run(correct=800, claim=plan, **small)),
    ):
        print(f"{name:52} {seconds(call):8.3f} s", flush=True)


@functools.cache
def of_counts(n: int, delta: float) -> Callable[[int, int], float]:
    """The joint test, each outcome once."""
    return functools.cache(lambda tp, fp: joint_epsilon(tp, n, fp, n, delta, ALPHA))


def methods(n: int) -> Iterator[tuple[str, Callable[[Any, Any, float, int], float]]]:
    """Of scores of n members and n others; one run takes them as 2n canaries would have made them."""
    trials: dict[str, Any] = {"trials": "independent"}
    yield "counts, joint", lambda a, b, delta, seed: of_counts(n, delta)(int(np.sum(a > 0.5)), int(np.sum(b > 0.5)))
    yield (
        "counts, Clopper-Pearson",
        lambda a, b, delta, seed: pl.audit.counts(
            tp=int(np.sum(a > 0.5)), positives=n, fp=int(np.sum(b > 0.5)), negatives=n, delta=delta,
            method="clopper-pearson", **trials,
        ).epsilon,
    )  # fmt: skip
    for way in ("band", "bonferroni", "dkw"):
        yield (
            way,
            lambda a, b, delta, seed, way=way: pl.audit.scores(a, b, delta=delta, threshold=way, **trials).epsilon,
        )
    for name, budgets in (
        ("one run, all guessed", [(n // 2, n // 2)]),
        ("one run, a fifth guessed", [(n // 10, n // 10)]),
    ):
        yield (
            name,
            lambda a, b, delta, seed, budgets=budgets: (
                pl.audit.one_run_scores(
                    *one_run(a, b, n, seed), budgets=budgets, delta=delta, inclusion="coins"
                ).epsilon
            ),
        )
    yield (
        "one run, falling confidence",
        lambda a, b, delta, seed: math.nan if delta else pl.audit.one_run_scores(
            *one_run(a, b, n, seed), budgets="confidence", delta=0.0, inclusion="coins"
        ).epsilon,
    )  # fmt: skip


def one_run(a: np.ndarray, b: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """n canaries, each with its coin and the score that goes with it."""
    coins = np.random.default_rng([seed, 1]).integers(0, 2, n)
    return np.where(coins == 1, a, b), coins


def coverage(audits: int, n: int = 100) -> None:
    print(f"{audits} audits, n = {n} a side (one run: {n} canaries); errors, then medians")
    for world, (draw, truth, delta) in WORLDS.items():
        rng = np.random.default_rng(11)
        data = [draw(rng, n) for _ in range(audits)]
        for name, bound in methods(n):
            found = np.array([bound(a, b, delta, i) for i, (a, b) in enumerate(data)])
            if not np.isnan(found).any():
                errors = np.mean(found > truth + 1e-4)  # the Gaussian's truth has five digits
                print(f"{world:20} {name:28} {errors:8.4f} {np.median(found):8.3f}", flush=True)


def peer(audits: int, n: int = 500) -> None:
    """The same scores, the same level: JAX Privacy with its default way to choose a threshold."""
    if importlib.util.find_spec("jax_privacy") is None:
        raise SystemExit("jax_privacy is not installed here; run this with an environment that has it.")
    from jax_privacy.auditing import CanaryScoreAuditor

    print(f"{audits} audits, n = {n} a side: error and median of JAX Privacy, of ours")
    for world in ("Laplace", "Gaussian", "null"):
        draw, truth, delta = WORLDS[world]
        rng, rows = np.random.default_rng(5), []
        for _ in range(audits):
            a, b = draw(rng, n)
            theirs = CanaryScoreAuditor(a, b)
            rows.append((
                theirs.epsilon_clopper_pearson(ALPHA, delta, one_sided=False),
                pl.audit.scores(a, b, delta=delta, trials="independent").epsilon,
            ))  # fmt: skip
        report(world, "thresholds of independent trials", rows, truth)
    for world in ("Laplace", "Gaussian", "null"):
        draw, truth, _ = WORLDS[world]
        delta, truth = 1e-5, 4.377 if world == "Gaussian" else truth
        rng, rows = np.random.default_rng(6), []
        for i in range(audits):
            scores, coins = one_run(*draw(rng, 2 * n), 2 * n, i)
            theirs = CanaryScoreAuditor(scores[coins == 1], scores[coins == 0])
            ours = pl.audit.one_run_scores(scores, coins, budgets=[(n // 10, n // 10)], delta=delta, inclusion="coins")
            rows.append((theirs.epsilon_one_run(ALPHA, delta), ours.epsilon))
        report(world, "one run", rows, truth)


def report(world: str, what: str, rows: list[tuple[float, float]], truth: float) -> None:
    found = np.array(rows, dtype=float)
    errors, medians = (found > truth + 1e-4).mean(axis=0), np.median(found, axis=0)
    print(f"{world:10} {what:34} {errors[0]:7.4f} {medians[0]:7.3f}   {errors[1]:7.4f} {medians[1]:7.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["times", "coverage"], metavar="times|coverage|peer")
    parser.add_argument("--audits", type=int, default=2000)
    chosen = parser.parse_args()
    for name, call in (
        ("times", times),
        ("coverage", lambda: coverage(chosen.audits)),
        ("peer", lambda: peer(chosen.audits)),
    ):
        if name in chosen.what:
            call()


if __name__ == "__main__":
    main()
