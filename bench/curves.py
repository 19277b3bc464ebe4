"""What curves cost beside one answer, in ordinary settings: ``python -m bench.curves [--settings 40]``.

Settings are drawn as in `bench.ordinary`. A hundred deltas, evenly spaced between epsilon at the largest and at the
smallest ordinary delta, are timed against one of them; a hundred deltas asked for epsilon against one; and a trade-off
curve at a hundred rates against one epsilon. Times are of CPU, medians of a few repetitions for the single answers.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import privloss as pl
from bench.ordinary import RANGES, draw
from bench.sweep import Setting

POINTS = 100
GOALS = {"deltas": 10.0, "epsilons": 10.0, "trade-off": 30.0}
_REPEATED = 5  # single answers, each with its noise changed in the ninth digit


@dataclass(frozen=True)
class Ratios:
    setting: Setting
    epsilon: float  # seconds of one answer
    ratios: dict[str, float]  # of a curve's time to that of one answer


def spent(ask: Callable[[], object]) -> float:
    start = time.process_time()
    ask()
    return time.process_time() - start


def spread(low: float, high: float) -> list[float]:
    return [low + (high - low) * i / (POINTS - 1) for i in range(POINTS)]


def plan(setting: Setting, repetition: int = 0) -> pl.Plan:
    return pl.Gaussian(setting.sigma * (1 + 1e-9 * repetition)).poisson(setting.rate) * setting.steps


def one(setting: Setting, ask: Callable[[pl.Plan], object]) -> float:
    return statistics.median(spent(lambda n=n: ask(plan(setting, n))) for n in range(_REPEATED))  # type: ignore[misc]


def measure(setting: Setting) -> Ratios | None:
    """None where the setting is not an ordinary one."""
    low, high = RANGES["delta"]
    middle = plan(setting).epsilon(setting.delta)
    if not 1e-3 <= middle.upper <= 50:
        return None
    first, last = plan(setting).epsilon(high).upper, plan(setting).epsilon(low).upper
    epsilons = spread(first, last)
    deltas = [low * (high / low) ** (i / (POINTS - 1)) for i in range(POINTS)]
    rates = [(i + 0.5) / POINTS for i in range(POINTS)]
    epsilon = one(setting, lambda p: p.epsilon(setting.delta))
    delta = one(setting, lambda p: p.delta(middle.upper))
    return Ratios(
        setting,
        epsilon,
        {
            "deltas": spent(lambda: plan(setting).delta(epsilons)) / delta,
            "epsilons": spent(lambda: plan(setting).epsilon(deltas)) / epsilon,
            "trade-off": spent(lambda: plan(setting).tradeoff(rates)) / epsilon,
        },
    )


def report(found: list[Ratios]) -> None:
    for name, goal in GOALS.items():
        worst = sorted(found, key=lambda r: -r.ratios[name])
        ratios = [r.ratios[name] for r in worst]
        over = sum(r > goal for r in ratios)
        print(f"{name}: median {statistics.median(ratios):.1f}, largest {ratios[0]:.1f}, {over} above {goal:g}")
        for r in worst[:3]:
            print(f"  {r.ratios[name]:.1f}: {r.setting}, one epsilon {1e3 * r.epsilon:.1f} ms")


def main() -> None:
    from rich.progress import Progress

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng, found = random.Random(arguments.seed), list[Ratios]()
    with Progress() as progress:
        task = progress.add_task("ordinary settings", total=arguments.settings)
        while len(found) < arguments.settings:
            measured = measure(draw(rng))
            if measured is not None:
                found.append(measured)
                progress.advance(task)
    report(found)


if __name__ == "__main__":
    main()
