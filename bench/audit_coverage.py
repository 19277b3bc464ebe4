"""How often audits err: simulated audits of mechanisms whose curve is known, by every method.

An error is an audit whose epsilon exceeds the truth, or (rows "claim") that refutes the true claim. Each is one with
probability at most alpha = 0.05, so more errors than a binomial law with that probability has one time in a thousand
are too many (131 of 2 000 audits). The best threshold without any correction is a row too: where it is known to err it
must have too many, or nothing would be noticed.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import binom

import privloss as pl
from privloss.audit import rates, trials

ALPHA = 0.05
PAGE = Path(__file__).parents[1] / "docs" / "auditing.md"
N = 100  # runs a side; canaries of one run
ROUNDS = 500  # pairs that a stream sees
Scores = tuple[np.ndarray, np.ndarray]  # of members, of others
RIGHT = float(np.e / (1 + np.e))


@dataclass(frozen=True)
class World:
    """A mechanism, the truth about it, and how a score of it is drawn."""

    name: str
    draw: Callable[[np.random.Generator, int], Scores]
    plan: pl.Mechanism
    delta: float = 0.0

    @property
    def epsilon(self) -> float:
        return float(self.plan.epsilon(self.delta).upper)


WORLDS = (
    World(
        "randomised response",
        lambda rng, n: (0.0 + (rng.random(n) < RIGHT), 0.0 + (rng.random(n) > RIGHT)),
        pl.RandomizedResponse(1.0),
    ),
    World("Laplace", lambda rng, n: (rng.laplace(size=n) + 1, rng.laplace(size=n)), pl.Laplace(1.0)),
    World("Gaussian", lambda rng, n: (rng.normal(size=n) + 1, rng.normal(size=n)), pl.Gaussian(1.0), 0.01),
    World("null", lambda rng, n: (rng.normal(size=n), rng.normal(size=n)), pl.PureDP(0.0)),
)
Bound = Callable[[World, Scores, int], float]  # an epsilon; or whether the claim is refuted, infinity if so


def most_errors(audits: int) -> int:
    """The largest number of errors that a valid audit exceeds at most one time in a thousand."""
    return int(binom.isf(1e-3, audits, ALPHA))


# -- methods -----------------------------------------------------------------------------------------------------------

TRIALS: dict[str, Any] = {"trials": "independent"}
COINS: dict[str, Any] = {"inclusion": "coins"}


def counted(scores: Scores) -> dict[str, int]:
    """At a threshold fixed in advance."""
    tp, fp = (int(np.sum(some > 0.5)) for some in scores)
    return {"tp": tp, "positives": len(scores[0]), "fp": fp, "negatives": len(scores[1])}


@functools.cache
def of_counts(world: World, method: str, claimed: bool, tp: int, positives: int, fp: int, negatives: int) -> float:
    found = pl.audit.counts(
        tp=tp, positives=positives, fp=fp, negatives=negatives, delta=world.delta, method=method,
        claim=world.plan if claimed else None, **TRIALS,
    )  # fmt: skip
    return said(found, claimed)


def said(found: pl.audit.Audit, claimed: bool) -> float:
    return found.epsilon if not claimed else np.inf if found.verdict == "refuted" else 0.0


def counts(method: str, claimed: bool = False) -> Bound:
    return lambda world, scores, seed: of_counts(world, method, claimed, *counted(scores).values())


def threshold(way: str, claimed: bool = False, **more: Any) -> Bound:
    def bound(world: World, scores: Scores, seed: int) -> float:
        claim = world.plan if claimed else None
        given = {"delta": world.delta, "threshold": way, "claim": claim, "seed": seed, **TRIALS, **more}
        return said(pl.audit.scores(*scores, **given), claimed)

    return bound


def mu(world: World, scores: Scores, seed: int) -> float:
    """Gaussian DP: not mu-GDP for any smaller mu."""
    return pl.audit.scores(*scores, delta=world.delta, **TRIALS).mu or 0.0


def least_mu(world: World) -> float:
    """The least mu with which the mechanism is mu-GDP: where FPR = 1 - TPR, for each of these curves."""
    at = {"randomised response": RIGHT, "Laplace": 1 - np.exp(-0.5) / 2, "Gaussian": ndtr(0.5), "null": 0.5}
    return float(2 * ndtri(at[world.name]))


def canaries(world: World, scores: Scores, seed: int) -> Scores:
    """Each with its coin and the score that goes with it."""
    coins = np.random.default_rng([seed, 1]).integers(0, 2, len(scores[0]))
    return np.where(coins == 1, *scores), coins


def one_run(budgets: Any, claimed: bool = False) -> Bound:
    def bound(world: World, scores: Scores, seed: int) -> float:
        claim = world.plan if claimed else None
        given = {"budgets": budgets, "delta": world.delta, "claim": claim, "seed": 0, **COINS}
        return said(pl.audit.one_run_scores(*canaries(world, scores, seed), **given), claimed)

    return bound


def guesses_decided(world: World, scores: Scores, seed: int) -> float:
    """As many guesses as there are scores beyond 1.5 and below -0.5."""
    values, coins = canaries(world, scores, seed)
    high, low = values > 1.5, values < -0.5
    made, right = int(np.sum(high | low)), int(np.sum(coins[high]) + np.sum(1 - coins[low]))
    if not made:
        return 0.0
    given = {"canaries": len(values), "guesses": made, "correct": right, "delta": world.delta, **COINS}
    return pl.audit.one_run(**given, guesses_fixed=False).epsilon


def stream(world: World, scores: Scores, seed: int) -> float:
    """Looked at after every pair: the largest bound ever, or infinity if the truth as a claim was ever refuted."""
    audit = pl.audit.stream(epsilon=world.epsilon, delta=world.delta)
    members, others = world.draw(np.random.default_rng([seed, 2]), ROUNDS)
    for pair in zip(others.tolist(), members.tolist(), strict=True):
        audit.observe(*pair)
    return np.inf if audit.refuted else audit.epsilon  # both only grow


def function(claimed: bool) -> Bound:
    def bound(world: World, scores: Scores, seed: int) -> float:
        outputs = [iter(some.tolist()) for some in world.draw(np.random.default_rng([seed, 3]), 2 * N)]
        given = {"runs": 2 * N, "delta": world.delta, "seed": seed, "claim": world.plan if claimed else None}
        return said(pl.audit.mechanism(lambda which: next(outputs[which]), 0, 1, **given), claimed)

    return bound


@functools.cache
def limits(n: int) -> tuple[np.ndarray, np.ndarray]:
    hits = np.arange(n + 1)
    return rates.least_rate(hits, n, ALPHA / 2), rates.most_rate(hits, n, ALPHA / 2)


def naive(world: World, scores: Scores, seed: int, n: int = 1000) -> float:
    """The best threshold of n scores a side, by limits that hold at one: what must not be done."""
    members, others = world.draw(np.random.default_rng([seed, 4]), n)
    places = np.concatenate([members, others])
    tp, fp = (n - np.searchsorted(np.sort(some), places) for some in (members, others))
    low, high = limits(n)
    return float(rates.epsilon_of(low[tp], high[fp], world.delta).max())


NAIVE = "naive: best threshold, uncorrected"
MUST_FAIL = ("Laplace", "null")  # where the uncorrected threshold errs more than 5 % of the time
EXTREMES = [(N // 10, N // 10)]
METHODS: dict[str, Bound] = {
    "counts, joint": counts("joint"),
    "counts, Clopper-Pearson": counts("clopper-pearson"),
    "counts, joint; claim": counts("joint", True),
    "counts, Clopper-Pearson; claim": counts("clopper-pearson", True),
    "threshold by band": threshold("band"),
    "threshold by band; claim": threshold("band", True),
    "threshold by band, both directions": threshold("band", direction="both"),
    "threshold by Bonferroni": threshold("bonferroni"),
    "threshold by DKW": threshold("dkw"),
    "threshold by split": threshold("split"),
    "mu of a band": mu,
    "one run, all guessed": one_run([(N // 2, N // 2)]),
    "one run, a fifth guessed": one_run(EXTREMES),
    "one run, three budgets": one_run([(N // 2, N // 2), *EXTREMES, (N // 20, 0)]),
    "one run, all guessed; claim (curve)": one_run([(N // 2, N // 2)], True),
    "one run, a fifth guessed; claim (curve)": one_run(EXTREMES, True),
    "one run, guesses decided by data": guesses_decided,
    "one run, falling confidence": one_run("confidence"),
    f"stream, {ROUNDS} pairs": stream,
    "function": function(False),
    "function; claim": function(True),
    NAIVE: naive,
}
TRUTHS: dict[str, Callable[[World], float]] = {"mu of a band": least_mu}  # where it is not the world's epsilon
REFUSED: dict[str, Callable[[World], bool]] = {"one run, falling confidence": lambda world: world.delta > 0}


def rows(audits: int, names: Iterable[str], within: str = "") -> Iterator[tuple[World, str, int, float]]:
    """Errors and the median bound, for every world (with this in its name) and these methods."""
    for world, name in itertools.product([world for world in WORLDS if within in world.name], names):
        if REFUSED.get(name, lambda world: False)(world):
            continue
        rng = np.random.default_rng(11)  # the same scores for every method
        found = np.array([METHODS[name](world, world.draw(rng, N), seed) for seed in range(audits)])
        truth = TRUTHS.get(name, lambda world: world.epsilon)(world)
        yield world, name, int(np.sum(found > truth)), float(np.median(found))


def bad(world: World, name: str, errors: int, audits: int) -> bool:
    """Whether a method errs more often than it may, or the naive one less often than it does."""
    if name == NAIVE:
        return world.name in MUST_FAIL and errors <= most_errors(audits)
    return errors > most_errors(audits)


def coverage(audits: int, only: str = "", within: str = "") -> bool:
    """Prints a line for each method and world, and writes these cells to the docs; whether all is as it must be."""
    print(
        f"{audits} audits, {N} runs a side (one run: {N} canaries); more than {most_errors(audits)} errors are too many"
    )
    trials._HALVINGS = 14  # bounds to four digits, still rounded down
    for name in ("joint_epsilon", "joint_p"):  # each pair of counts once
        setattr(trials, name, functools.cache(getattr(trials, name)))
    found = {name: written(name) for name in METHODS}
    wrong = False
    for world, name, errors, median in rows(audits, [name for name in METHODS if only in name], within):
        verdict = bad(world, name, errors, audits)
        wrong |= verdict
        share = f"{100 * errors / audits:.2f}"
        found[name][world.name] = share if "claim" in name else f"{share} / {median:.3f}"
        print(f"{world.name:20} {name:42} {errors:6} {median:8.3f}{'  BAD' if verdict else ''}", flush=True)
    write("coverage", table(found, audits))
    return not wrong


def written(name: str) -> dict[str, str]:
    """A row as it stands in the docs."""
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith(f"| {name} | ")]
    cells = [cell.removesuffix(" |").strip() for row in rows for cell in row[1:]]
    return dict(zip((world.name for world in WORLDS), cells, strict=False))


def table(found: dict[str, dict[str, str]], audits: int) -> str:
    worlds = [world.name for world in WORLDS]
    truths = ", ".join(f"{world.name} {world.epsilon:.4g}" for world in WORLDS)
    mus = ", ".join(f"{least_mu(world):.4g}" for world in WORLDS)
    head = [f"| {audits} audits each | {' | '.join(worlds)} |", "|---" * (len(worlds) + 1) + "|"]
    body = [f"| {name} | {' | '.join(row.get(world, 'refused') for world in worlds)} |" for name, row in found.items()]
    return "\n".join([*head, *body, "", f"The truth: {truths} (delta = 0.01 for the Gaussian, else 0); of mu {mus}."])


def write(mark: str, text: str) -> None:
    """Between two comments of docs/auditing.md."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before, _, rest = PAGE.read_text().partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}{text}\n{end}{after}")
