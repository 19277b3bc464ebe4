"""The same scores at the same level: JAX Privacy's auditor and ours, errors and medians of both.

Needs an environment that has both: ``python -m venv jax && jax/bin/pip install jax-privacy python-flint``, then
``PYTHONPATH=src jax/bin/python -m bench.audit peer``. Independent trials have n scores a side; one run has 2n canaries
with fair coins, and three budgets of guesses fixed beforehand. Theirs chooses thresholds as it does by default:
Bonferroni over those on the hull of the scores, whose number the data decide.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np

import privloss as pl
from bench.audit_coverage import (
    ALPHA,
    COINS,
    TRIALS,
    WORLDS,
    World,
    canaries,
    counted,
    most_errors,
    of_counts,
    write,
)

N, FEW = 500, 100
BUDGETS = [(N, N), (N // 5, N // 5), (N // 10, N // 10)]  # fixed for all worlds
ONE_RUN_DELTA = 1e-5


def pairs(world: World, peers: Any, audits: int) -> Iterator[tuple[str, float, list[tuple[float, float]]]]:
    """What is compared, the truth, and (theirs, ours) for every audit."""
    rng, delta, auditor = np.random.default_rng(5), world.delta, peers.CanaryScoreAuditor
    level = {"one_sided": False}
    fixed = {"threshold_strategy": peers.Explicit(0.5)}  # "at least 0.5" is the same event here as "above 0.5"
    few = [world.draw(rng, FEW) for _ in range(audits)]
    theirs = [auditor(*each).epsilon_clopper_pearson(ALPHA, delta, **level, **fixed) for each in few]
    joint = [of_counts(world, "joint", False, *counted(each).values()) for each in few]
    yield f"threshold fixed, n = {FEW}", world.epsilon, list(zip(theirs, joint, strict=True))
    data = [world.draw(rng, N) for _ in range(audits)]
    theirs = [auditor(*each).epsilon_clopper_pearson(ALPHA, delta, **level) for each in data]
    band = [pl.audit.scores(*each, delta=delta, **TRIALS) for each in data]
    yield "threshold chosen", world.epsilon, list(zip(theirs, [found.epsilon for found in band], strict=True))
    if delta > 0:
        theirs = [auditor(*each).epsilon_from_gdp(ALPHA, delta) for each in data]
        ours = [found.epsilon_if_gaussian or 0.0 for found in band]
        yield "the same, if Gaussian", world.epsilon, list(zip(theirs, ours, strict=True))
    delta = ONE_RUN_DELTA  # theirs asks for one
    truth = float(world.plan.epsilon(delta).upper)
    found = []
    for seed in range(audits):
        scores, coins = canaries(world, world.draw(np.random.default_rng([seed, 6]), 2 * N), seed)
        other = auditor(scores[coins == 1], scores[coins == 0]).epsilon_one_run(ALPHA, delta)
        ours = pl.audit.one_run_scores(scores, coins, budgets=BUDGETS, delta=delta, seed=0, **COINS)
        found.append((other, ours.epsilon))
    yield f"one run, delta = {delta:g}", truth, found


def peer(audits: int) -> bool:
    """Prints a line for each comparison and writes the table to the docs; whether ours errs no more than it may."""
    if importlib.util.find_spec("jax_privacy") is None:
        raise SystemExit("jax_privacy is not installed here; run this with an environment that has it.")
    from jax_privacy import auditing

    version = importlib.metadata.version("jax-privacy")
    lines = [
        f"| {audits} audits, n = {N} | truth | JAX Privacy {version}: median | errors | ours: median | errors |",
        "|---|---|---|---|---|---|",
    ]
    well = True
    for world in WORLDS:
        for what, truth, found in pairs(world, auditing, audits):
            values = np.array(found, dtype=float)
            errors, medians = np.sum(values > truth, axis=0), np.median(values, axis=0)
            well &= bool(errors[1] <= most_errors(audits))
            cells = [f"{medians[i]:.3f} | {100 * errors[i] / audits:.1f} %" for i in (0, 1)]
            lines.append(f"| {world.name}, {what} | {truth:.4g} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    write("peer", "\n".join(lines))
    return well
