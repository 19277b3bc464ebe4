"""How wide the intervals of samplers are whose two ends are different pairs: ``python -m bench.widths [--settings N]``.

Log-uniform training runs: 10^3 to 10^5 records, an expected share of 0.001 to 0.05 in a batch, noise 0.6 to 4, 10 to
3 000 steps, delta 1e-7 to 1e-5; batches of at most one to six standard deviations more than expected; allocation to 5
to 300 steps, 1 to 50 epochs. Relative widths of epsilon, and CPU time.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
import warnings
from collections.abc import Iterator

import privloss as pl

FAMILIES = (
    ("fixed size", "replace-one"),
    ("fixed size", "zero-out"),
    ("with replacement", "add-remove"),
    ("with replacement", "replace-one"),
    ("with replacement", "zero-out"),
    ("truncated Poisson", "add-remove"),
    ("truncated Poisson", "replace-one"),
    ("random allocation", "add-remove"),
)


def drawn(family: str, draw: random.Random) -> tuple[pl.Plan, float]:
    """A plan and a delta."""

    def between(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    noise, records, steps = pl.Gaussian(between(0.6, 4)), round(between(1e3, 1e5)), round(between(10, 3000))
    batch = max(2, round(records * between(1e-3, 0.05)))
    if family == "fixed size":
        plan = noise.fixed_size(n=records, m=batch) * steps
    elif family == "with replacement":
        plan = noise.with_replacement(n=records, m=batch) * steps
    elif family == "truncated Poisson":
        most = round(batch + draw.uniform(1, 6) * math.sqrt(batch))
        plan = noise.truncated_poisson(rate=batch / records, n=records, most=most) * steps
    else:
        plan = noise.allocated(steps=round(between(5, 300))) * round(between(1, 50))
    return plan, between(1e-7, 1e-5)


def widths(family: str, adjacency: str, settings: int, seed: int) -> Iterator[tuple[float, float]]:
    """Relative width, and seconds, of each setting."""
    draw = random.Random(f"{family} {adjacency} {seed}")
    for _ in range(settings):
        plan, delta = drawn(family, draw)
        start = time.process_time()
        yield plan.epsilon(delta, adjacency=adjacency).relative_width, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| sampler | adjacency | median width | nine in ten | widest | median, s | slowest, s |")
    print("|---|---|---|---|---|---|---|")
    for family, adjacency in FAMILIES:
        found = list(widths(family, adjacency, arguments.settings, arguments.seed))
        wide, seconds = (sorted(each) for each in zip(*found, strict=True))
        nine_tenths = wide[math.ceil(0.9 * len(wide)) - 1]
        print(f"| {family} | {adjacency} | {statistics.median(wide):.1e} | {nine_tenths:.1e} | {wide[-1]:.1e} "
              f"| {statistics.median(seconds):.2f} | {seconds[-1]:.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
