"""Write tests/data/ordinary.json: reference epsilons of ordinary runs of noisy SGD, by summed_losses.

Settings are drawn from a fixed seed, log-uniformly: sigma 0.5 to 5, rate 1e-6 to 0.2, 10 to 10^6 steps, delta 1e-12 to
1e-5; those with an epsilon outside 1e-3 to 50 are passed over. Each epsilon is computed twice: by two methods from 40
to 300 steps, by two cuts above, with two sets of panels below. `trust` is three times their relative difference, and
2e-13 at least. The other direction must be smaller.
Usage: python -m tests.oracle.make_ordinary [output.json]
"""

from __future__ import annotations

import json
import math
import random
import sys
from multiprocessing import Pool
from pathlib import Path

from tests.oracle.summed_losses import Pair, delta_other, epsilon, highest

SEED = 20261116
COUNT = 330
ABOUT = (
    "Reference epsilons of the T-fold Poisson-subsampled Gaussian in ordinary settings, from "
    "tests/oracle/summed_losses.py; true up to the relative error `trust`. "
    "tests/oracle/make_ordinary.py computes them anew."
)
Setting = tuple[float, float, int, float]


def draw(rng: random.Random) -> Setting:
    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    sigma, q = round(between(0.5, 5), 6), float(f"{between(1e-6, 0.2):.6g}")
    return sigma, q, round(between(10, 1e6)), float(f"{between(1e-12, 1e-5):.6g}")


def solve(setting: Setting) -> dict[str, float] | None:
    sigma, q, steps, delta = setting
    if highest(Pair(q, sigma), steps, delta) < 1e-3:
        return None
    first = epsilon(Pair(q, sigma), steps, delta, 0.01 if steps >= 40 else steps)
    if not 1e-3 < first < 50:
        return None
    second = epsilon(Pair(q, sigma), steps, delta, 0.001 if steps >= 300 else steps, 0.73)
    if steps >= 40 and delta_other(Pair(q, sigma), steps, first, delta) > delta:
        raise ValueError(f"{setting}: the other direction is larger")
    trust = float(f"{max(3 * abs(second / first - 1), 2e-13):.1e}")
    return {"sigma": sigma, "q": q, "steps": steps, "delta": delta, "epsilon": first, "trust": trust}


def main(path: Path) -> None:
    rng = random.Random(SEED)
    settings = [draw(rng) for _ in range(2 * COUNT)]
    cases: list[dict[str, float]] = []
    with Pool(2) as pool:
        for case in pool.imap(solve, settings):
            cases += [case] if case else []
            if len(cases) == COUNT:
                pool.terminate()
                break
    rows = ",\n  ".join(json.dumps(case) for case in cases)
    path.write_text(f'{{"about": {json.dumps(ABOUT)},\n "cases": [\n  {rows}\n ]}}\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "data" / "ordinary.json")
