"""Write tests/data/symmetric.json: reference epsilons of symmetric pairs of sampled Gaussian noise with few hits, by
symmetric_losses.

Settings are drawn from a fixed seed, log-uniformly: noise over the distance of a hit 0.5 to 5, rate 1e-6 to 0.2, 10 to
10^5 steps, delta 1e-10 to 1e-5; kept are those with fewer than ten expected hits, an epsilon from 1e-3 to 50, and a
trust of 1e-9 at most. Usage: python -m tests.oracle.make_symmetric [output.json]
"""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

from tests.oracle.symmetric_losses import epsilon

SEED = 20261117
COUNT = 48  # of either kind
POPULATION = 10**7  # of a fixed-size batch
ABOUT = (
    "Reference epsilons of T steps of a symmetric pair of sampled Gaussian noise (tests/oracle/symmetric_losses.py): "
    "Poisson samples under replace-one (two_sided) or batches of fixed size, sigma in units of the distance of a hit; "
    "true up to the relative error `trust`. tests/oracle/make_symmetric.py computes them anew."
)


def draw(rng: random.Random, two_sided: bool) -> tuple[float, float, int, float]:
    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    sigma, q = round(between(0.5, 5), 6), float(f"{between(1e-6, 0.2):.6g}")
    q = q if two_sided else max(round(q * POPULATION), 1) / POPULATION
    return sigma, q, round(between(10, 1e5)), float(f"{between(1e-10, 1e-5):.6g}")


def solve(sigma: float, q: float, steps: int, delta: float, two_sided: bool) -> dict[str, float] | None:
    if q * steps > 10:
        return None
    found, trust = epsilon(q, sigma, steps, delta, two_sided)
    if not (1e-3 < found < 50 and trust <= 1e-9):
        return None
    trust = float(f"{1.1 * trust:.1e}")
    setting = {"sigma": sigma, "q": q, "steps": steps, "delta": delta, "two_sided": two_sided}
    return {**setting, "epsilon": found, "trust": trust}


def main(path: Path) -> None:
    rng = random.Random(SEED)
    rows = []
    for two_sided in (True, False):
        cases: list[dict[str, float]] = []
        while len(cases) < COUNT:
            case = solve(*draw(rng, two_sided), two_sided)
            cases += [case] if case else []
        rows += cases
    text = ",\n  ".join(json.dumps(case) for case in rows)
    path.write_text(f'{{"about": {json.dumps(ABOUT)},\n "cases": [\n  {text}\n ]}}\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "data" / "symmetric.json")
