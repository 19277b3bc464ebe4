"""Ten thousand ordinary cells as one `pl.sweep`, against a Renyi accountant: ``python -m bench.grid [--plans 1000]``.

Plans are drawn as in `bench.ordinary` and kept if epsilon is 1e-3 to 50 at all ten deltas, log-spaced from 1e-12 to
1e-5. One sweep on all cores answers them; dp-accounting's Renyi accountant is asked a random sample of the same cells
in the same run, one by one, with its default orders. Times are wall clock and CPU, per cell; the goal is a fifth of the
Renyi accountant's.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from dataclasses import dataclass, replace

import privloss as pl
from bench.ordinary import RANGES, draw
from bench.sweep import Setting

GOAL = 5.0


@dataclass(frozen=True)
class Spent:
    """Seconds per cell."""

    wall: float
    cpu: float


def values(name: str, points: int) -> list[float]:
    low, high = RANGES[name]
    return [low * (high / low) ** (i / (points - 1)) for i in range(points)]


def ordinary_plans(count: int, seed: int) -> list[Setting]:
    """Settings that are ordinary at the smallest and at the largest delta."""
    rng, found = random.Random(seed), list[Setting]()
    low, high = RANGES["delta"]
    while len(found) < count:
        setting = draw(rng)
        if replace(setting, delta=high).answer().upper >= 1e-3 and replace(setting, delta=low).answer().upper <= 50:
            found.append(setting)
    return found


def _cpu() -> float:
    at = os.times()
    return at.user + at.system + at.children_user + at.children_system


def swept(settings: list[Setting], deltas: list[float]) -> tuple[pl.Sweep, Spent]:
    def family(plan: int) -> pl.Plan:
        s = settings[plan]
        return pl.Gaussian(s.sigma).poisson(s.rate) * s.steps

    wall, cpu = time.perf_counter(), _cpu()
    found = pl.sweep(family, delta=deltas, plan=range(len(settings)))
    return found, Spent((time.perf_counter() - wall) / len(found), (_cpu() - cpu) / len(found))


def renyi(s: Setting, delta: float) -> tuple[float, Spent]:
    """dp-accounting's epsilon of one cell."""
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    wall, cpu = time.perf_counter(), time.process_time()
    event = dp.PoissonSampledDpEvent(s.rate, dp.GaussianDpEvent(s.sigma))
    epsilon = RdpAccountant().compose(dp.SelfComposedDpEvent(event, s.steps)).get_epsilon(delta)
    return float(epsilon), Spent(time.perf_counter() - wall, time.process_time() - cpu)


def report(settings: list[Setting], found: pl.Sweep, ours: Spent, sample: int, seed: int) -> list[str]:
    cells = found.points()
    answers = [p["epsilon"] for p in cells]
    wide = sum(a is not None and a.relative_width > 1e-6 for a in answers)
    print(f"{len(cells)} ordinary cells, {wide} of them wider than 1e-6")
    print(f"privloss: {1e3 * ours.wall:.2f} ms per cell on all cores, {1e3 * ours.cpu:.2f} ms of CPU")
    wrong = [f"{settings[p['plan']]} at {p['delta']}: {p['problem']}" for p in cells if p["epsilon"] is None]
    spent, looser = list[Spent](), list[float]()
    for i in random.Random(seed).sample(range(len(cells)), sample):
        epsilon, one = renyi(settings[cells[i]["plan"]], cells[i]["delta"])
        spent.append(one)
        bound = answers[i]
        if bound is not None:
            looser.append(epsilon / bound.upper)
            if epsilon < bound.lower * (1 - 1e-9):
                wrong.append(f"the Renyi accountant says {epsilon!r}, below {bound!r}: {settings[cells[i]['plan']]}")
    wall, cpu = (statistics.fmean(getattr(s, kind) for s in spent) for kind in ("wall", "cpu"))
    print(f"Renyi accountant, {sample} of these cells: {1e3 * wall:.2f} ms per cell, {1e3 * cpu:.2f} ms of CPU; its ")
    print(f"  epsilon is {statistics.median(looser):.3f} times ours (median)")
    print(f"ratio: {wall / ours.wall:.1f} in wall clock, {cpu / ours.cpu:.1f} in CPU (goal: {GOAL:g})")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=1000)
    parser.add_argument("--deltas", type=int, default=10)
    parser.add_argument("--sample", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    settings = ordinary_plans(arguments.plans, arguments.seed)
    found, ours = swept(settings, values("delta", arguments.deltas))
    wrong = report(settings, found, ours, min(arguments.sample, len(found)), arguments.seed)
    for text in wrong[:20]:
        print("PROBLEM", text)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
