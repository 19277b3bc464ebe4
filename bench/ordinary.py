"""Ordinary training settings, apart from the extreme ones of `bench.sweep`: ``python -m bench.ordinary``.

`--noise` asks for other noise (discrete-gaussian, discrete-laplace).

Log-uniform: sigma .5 to 5, rate 1e-6 to .2, 10 to 10^6 steps, delta 1e-12 to 1e-5; kept if epsilon is 1e-3 to 50.
Widths and CPU times, the worst of both, and how the answers were found. No truth is known here: `tests/data` has some.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import privloss as pl
from bench.sweep import Setting

RANGES = {"sigma": (0.5, 5.0), "rate": (1e-6, 0.2), "steps": (10.0, 1e6), "delta": (1e-12, 1e-5)}


NOISE: dict[str, Callable[[float], pl.Mechanism]] = {
    "gaussian": pl.Gaussian,
    "discrete-gaussian": pl.DiscreteGaussian,
    "discrete-laplace": pl.DiscreteLaplace,
}


@dataclass(frozen=True)
class Answer:
    setting: Setting
    bound: pl.Bound
    seconds: float  # of CPU


def draw(rng: random.Random) -> Setting:
    sigma, rate, steps, delta = (math.exp(rng.uniform(math.log(low), math.log(high))) for low, high in RANGES.values())
    return Setting(sigma, rate, round(steps), delta)


def answers(settings: int, seed: int, quiet: bool = False, noise: str = "gaussian") -> list[Answer]:
    from rich.progress import Progress

    rng, found = random.Random(seed), []
    with Progress(disable=quiet) as progress:
        task = progress.add_task("ordinary settings", total=settings)
        while len(found) < settings:
            setting = draw(rng)
            start = time.process_time()
            bound = (NOISE[noise](setting.sigma).poisson(setting.rate) * setting.steps).epsilon(setting.delta)
            seconds = time.process_time() - start
            if 1e-3 <= bound.upper <= 50:
                found.append(Answer(setting, bound, seconds))
                progress.advance(task)
    return found


def report(found: list[Answer]) -> None:
    widths, times = sorted(a.bound.relative_width for a in found), sorted(a.seconds for a in found)

    def at(values: list[float], share: float) -> float:
        return values[min(int(share * len(values)), len(values) - 1)]

    wide, wider = (sum(w > limit for w in widths) for limit in (1e-9, 1e-6))
    print(f"{len(found)} ordinary settings: {wide} wider than 1e-9, {wider} wider than 1e-6")
    print("relative width: " + ", ".join(f"{s:.0%} below {at(widths, s):.1e}" for s in (0.5, 0.9, 0.99, 1.0)))
    print("CPU ms: " + ", ".join(f"{s:.0%} below {1e3 * at(times, s):.1f}" for s in (0.5, 0.9, 0.95, 0.99, 1.0)))
    for method, count in Counter(a.bound.method.split(" / ")[0] for a in found).most_common():
        print(f"  {count:6d}  {method}")
    for answer in sorted(found, key=lambda a: -a.bound.relative_width)[:3]:
        print(f"  widest: {answer.setting}: {answer.bound} ({answer.bound.relative_width:.1e})")
    for answer in sorted(found, key=lambda a: -a.seconds)[:3]:
        print(f"  slowest: {answer.setting}: {1e3 * answer.seconds:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", choices=NOISE, default="gaussian")
    arguments = parser.parse_args()
    report(answers(arguments.settings, arguments.seed, noise=arguments.noise))


if __name__ == "__main__":
    main()
