"""A randomised sweep over all regimes of noisy SGD: ``python -m bench.sweep [--settings N] [--seed S] [--jobs J]``.

delta from 0.5 down to 1e-300, sigma from 0.05 to 10^4, rate from 1e-9 to 1, steps from 1 to 10^12. Settings come in
chains: each differs from the one before in one parameter, so that it can only be *less* private, and two intervals that
contradict that are reported. The settings of tests/data/oracle_mixture.json, whose answers are known from ball
arithmetic, run along; an interval that misses the known answer is reported.

Extreme settings are reported apart from ordinary ones (`bench.ordinary`, a tenth as many), each with the share of
answers wider than 1e-6 and why: the family of the setting, and how it was answered.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import privloss as pl

ORACLE = Path(__file__).parents[1] / "tests" / "data" / "oracle_mixture.json"
CHAIN = 8
WIDE = 1e-6  # relative width that needs a cause


@dataclass(frozen=True)
class Setting:
    sigma: float
    rate: float
    steps: int
    delta: float

    def answer(self) -> pl.Bound:
        return (pl.Gaussian(self.sigma).poisson(self.rate) * self.steps).epsilon(self.delta)


FAMILIES: tuple[tuple[str, Callable[[Setting], bool]], ...] = (
    ("delta below 1e-20", lambda s: s.delta < 1e-20),
    ("five steps or fewer", lambda s: s.steps <= 5),
    ("fewer than a tenth of a hit expected", lambda s: s.rate * s.steps < 0.1),
    ("noise below 0.4", lambda s: s.sigma < 0.4),
    ("noise above 10", lambda s: s.sigma > 10),
    ("none of these", lambda s: True),
)
Answer = tuple[Setting, float, float, str, float]  # lower, upper, method, seconds


@dataclass(frozen=True)
class Outcome:
    """What one chain found."""

    answers: list[Answer]
    problems: list[str]


def draw(rng: random.Random) -> Setting:
    deep = rng.random() < 0.5
    delta = 10 ** rng.uniform(-300 if deep else -20, math.log10(0.5))
    sigma = 10 ** rng.uniform(math.log10(0.05), 4 if rng.random() < 0.5 else 1)
    rate = min(1.0, 10 ** rng.uniform(-9, 0.05))
    return Setting(sigma, rate, int(10 ** rng.uniform(0, 12)), delta)


def less_private(setting: Setting, rng: random.Random) -> Setting:
    """One parameter changed towards less privacy, by a little or by a lot."""
    factor = 1 + 10 ** rng.uniform(-6, 1)
    which = rng.randrange(4)
    if which == 0:
        return Setting(max(setting.sigma / factor, 0.05), setting.rate, setting.steps, setting.delta)
    if which == 1:
        return Setting(setting.sigma, min(setting.rate * factor, 1.0), setting.steps, setting.delta)
    if which == 2:
        steps = min(max(int(setting.steps * factor), setting.steps + 1), 10**12)
        return Setting(setting.sigma, setting.rate, steps, setting.delta)
    return Setting(setting.sigma, setting.rate, setting.steps, max(setting.delta / factor, 1e-300))


def run_chain(seed: int) -> Outcome:
    """One chain of settings, each less private than the one before."""
    rng = random.Random(seed)
    setting, before, out = draw(rng), None, Outcome([], [])
    for _ in range(CHAIN):
        start = time.perf_counter()
        bound = _ask(setting, out)
        if bound is not None:
            took = time.perf_counter() - start
            out.answers.append((setting, bound.lower, bound.upper, bound.method, took))
            if before is not None and before.lower > bound.upper:
                out.problems.append(f"not monotone: {setting} gives {bound!r} after {before!r}")
        before = bound
        setting = less_private(setting, rng)
    return out


def _ask(setting: Setting, out: Outcome) -> pl.Bound | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            bound = setting.answer()
        except Exception as problem:
            out.problems.append(f"{type(problem).__name__}: {problem} for {setting}")
            return None
    if not 0 <= bound.lower <= bound.upper:
        out.problems.append(f"not an interval: {bound!r} for {setting}")
    return bound


def oracle_cases() -> list[tuple[Setting, Decimal, int]]:
    cases = json.loads(ORACLE.read_text())["cases"]
    return [
        (Setting(c["sigma"], c["q"], int(c["steps"]), c["delta"]), Decimal(c["epsilon"]), c["digits"]) for c in cases
    ]


def run_oracle(case: tuple[Setting, Decimal, int]) -> Outcome:
    setting, truth, digits = case
    out = Outcome([], [])
    start = time.perf_counter()
    bound = _ask(setting, out)
    if bound is not None:
        out.answers.append((setting, bound.lower, bound.upper, bound.method, time.perf_counter() - start))
        slack = abs(truth) * Decimal(10) ** (1 - digits)
        if not (Decimal(bound.lower) <= truth + slack and Decimal(bound.upper) >= truth - slack):
            out.problems.append(f"misses the oracle's {truth}: {bound!r} for {setting}")
    return out


def sweep(settings: int, seed: int, jobs: int, quiet: bool = False) -> tuple[list[Outcome], int]:
    """All outcomes, and the number of settings compared with the oracle."""
    from rich.progress import Progress

    cases = oracle_cases()
    chains = range(seed * 10**6, seed * 10**6 + max(1, (settings - len(cases) + CHAIN - 1) // CHAIN))
    outcomes = []
    with ProcessPoolExecutor(jobs) as pool, Progress(disable=quiet) as progress:
        task = progress.add_task("sweep", total=len(cases) + len(chains))
        for source in (pool.map(run_oracle, cases, chunksize=4), pool.map(run_chain, chains, chunksize=2)):
            for outcome in source:
                outcomes.append(outcome)
                progress.advance(task)
    return outcomes, len(cases)


def width(lower: float, upper: float) -> float:
    return (upper - lower) / upper if 0 < upper < math.inf and lower < upper else 0.0


def family(setting: Setting) -> str:
    """The first that fits: what makes a setting hard."""
    return next(name for name, fits in FAMILIES if fits(setting))


def causes(answers: list[Answer]) -> Counter[tuple[str, str]]:
    """Families and methods of the answers that are too wide."""
    return Counter((family(s), _short(method)) for s, lower, upper, method, _ in answers if width(lower, upper) > WIDE)


def _short(method: str) -> str:
    return "wide" if "one step" in method else method.split(" / ")[0]


def ordinary(settings: int, seed: int, quiet: bool = False) -> Outcome:
    """Ordinary settings; an answer that is no interval, or none at all, is a problem as well."""
    from bench.ordinary import answers

    found = answers(settings, seed, quiet)
    told = [(a.setting, a.bound.lower, a.bound.upper, a.bound.method, a.seconds) for a in found]
    return Outcome(
        told, [f"not an interval: {a.bound!r} for {a.setting}" for a in found if a.bound.lower > a.bound.upper]
    )


def report(outcomes: list[Outcome], compared: int, usual: Outcome | None = None) -> list[str]:
    """Print what was found, ordinary settings apart from extreme ones; return the problems."""
    problems = [p for o in outcomes for p in o.problems] + ([] if usual is None else usual.problems)
    extreme = [a for o in outcomes for a in o.answers]
    print(f"{len(extreme)} settings, {compared} of them compared with ball arithmetic, {len(problems)} problems")
    if usual is not None:
        describe("ordinary", usual.answers)
    describe("extreme", extreme)
    for problem in problems[:20]:
        print("PROBLEM", problem)
    return problems


def describe(title: str, answers: list[Answer]) -> None:
    widths = sorted(width(a[1], a[2]) for a in answers)
    times = sorted(a[4] for a in answers)

    def at(values: list[float], share: float) -> float:
        return values[min(int(share * len(values)), len(values) - 1)]

    print(f"{title}: {len(answers)} settings")
    print("  relative width: " + ", ".join(f"{s:.0%} below {at(widths, s):.1e}" for s in (0.5, 0.75, 0.85, 0.9, 0.95)))
    print("  seconds: " + ", ".join(f"{s:.0%} below {at(times, s):.3f}" for s in (0.5, 0.9, 0.99, 1.0)))
    for method, count in Counter(_short(a[3]) for a in answers).most_common():
        print(f"  {count:6d}  {method}")
    found = causes(answers)
    print(f"  wider than {WIDE:g}: {found.total()} ({found.total() / len(answers):.2%})")
    for (name, method), count in found.most_common():
        print(f"  {count:6d}  {name}: {method}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    usual = ordinary(max(arguments.settings // 10, 1), arguments.seed)
    sys.exit(1 if report(*sweep(arguments.settings, arguments.seed, arguments.jobs), usual) else 0)


if __name__ == "__main__":
    main()
