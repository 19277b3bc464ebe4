"""Write tests/data/oracle_mixture.json: reference epsilons over all regimes, by the ball-arithmetic oracle.

Settings are drawn from a fixed seed; those the oracle cannot settle to 12 digits at its cost limit are passed over.
Where sampled and unsampled steps are separated, each epsilon must also fit the independent balls.hits_delta.
Usage: python make_cases.py [output.json]
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter
from pathlib import Path

from flint import arb
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.oracle import balls

SEED = 20240611
MIN_DIGITS = 12
MAX_DIGITS = 20
ZERO_SHARE = 0.10
HITS_LIMIT = 1e-3  # hits_delta serves as a check where its error bound is below this
QUOTAS = {
    "steps 1": 30,
    "steps 2": 28,
    "steps 3": 16,
    "steps >= 1e9": 48,
    "delta < 1e-100": 46,
    "sigma < 0.3": 46,
    "few hits": 36,
    "any": 96,
}
ABOUT = (
    "Reference epsilons of the T-fold Poisson-subsampled Gaussian (Q = N(0, sigma^2), P = (1-q) Q + q N(1, sigma^2), "
    "the larger of both directions), from tests/oracle/balls.py. q, sigma and delta are exact doubles; epsilon is a "
    "decimal string whose first `digits` significant digits agreed between two runs with different contours, steps "
    "and precisions ('0' when delta(0) <= delta). Written by tests/oracle/make_cases.py."
)


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def draw(rng: random.Random, kind: str) -> tuple[float, float, int, float]:
    """One setting of the given kind."""
    q = log_uniform(rng, 1e-9, 0.999)
    sigma = log_uniform(rng, 0.05, 1e4)
    steps = max(1, round(log_uniform(rng, 1, 1e12)))
    delta = log_uniform(rng, 1e-20, 0.5) if rng.random() < 0.5 else log_uniform(rng, 1e-300, 0.5)
    if kind.startswith("steps ") and kind[6:].isdigit():
        steps = int(kind[6:])
        sigma = log_uniform(rng, 0.05, 50.0)
    elif kind == "steps >= 1e9":
        steps = round(log_uniform(rng, 1e9, 1e12))
    elif kind == "delta < 1e-100":
        delta = log_uniform(rng, 1e-300, 1e-100)
    elif kind == "sigma < 0.3":
        sigma = log_uniform(rng, 0.05, 0.3)
    elif kind == "few hits":
        steps = max(3, round(log_uniform(rng, 3, 1e9)))
        q = min(0.5, log_uniform(rng, 1e-3, 10.0) / steps)
        sigma = log_uniform(rng, 0.05, 5.0)
    return q, sigma, steps, delta


def hits_check(q: float, sigma: float, steps: int, delta: float, value: arb) -> bool:
    """Whether the conditioning on sampled steps could check the epsilon; RuntimeError if it contradicts."""
    room = arb(10) ** -MIN_DIGITS
    try:
        after, _ = balls.hits_delta_with_bound(q, sigma, steps, value.mid() * (1 + room), HITS_LIMIT)
        before, bound = balls.hits_delta_with_bound(q, sigma, steps, value.mid() * (1 - room), HITS_LIMIT)
    except ValueError:
        return False
    fits = after * (1 - room) <= delta
    if value > -steps * math.log1p(-q):  # otherwise the add direction may be the binding one
        fits = fits and delta <= before * (1 + arb(bound) + room)
    if not fits:
        raise RuntimeError(f"the oracle and hits_delta differ at q={q!r} sigma={sigma!r} steps={steps} delta={delta!r}")
    return True


def main() -> None:
    default = Path(__file__).resolve().parents[1] / "data" / "oracle_mixture.json"
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    target.parent.mkdir(parents=True, exist_ok=True)
    total = sum(QUOTAS.values())
    zeros_allowed = int(ZERO_SHARE * total)
    cases: list[dict[str, object]] = []
    zeros = 0
    checked = 0
    passed = Counter[str]()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TimeRemainingColumn()) as progress:
        task = progress.add_task("cases", total=total)
        for kind, quota in QUOTAS.items():
            rng = random.Random(f"{SEED} {kind}")
            zeros_here = 0
            accepted = 0
            while accepted < quota:
                q, sigma, steps, delta = draw(rng, kind)
                progress.update(task, description=f"{kind} (passed over {passed[kind]})")
                try:
                    value, common = balls.epsilon_with_digits(q, sigma, steps, delta, MIN_DIGITS)
                except (ValueError, OverflowError, ZeroDivisionError, IndexError):
                    passed[kind] += 1
                    continue
                zero = value.mid() == 0
                if zero and (zeros_here >= ZERO_SHARE * quota or zeros >= zeros_allowed):
                    continue
                if not zero and sigma < 0.3:
                    checked += int(hits_check(q, sigma, steps, delta, value))
                zeros += int(zero)
                zeros_here += int(zero)
                digits = min(MAX_DIGITS, int(common))
                text = "0" if zero else value.mid().str(digits, radius=False)
                cases.append(
                    {"q": q, "sigma": sigma, "steps": steps, "delta": delta, "epsilon": text, "digits": digits}
                )
                accepted += 1
                progress.advance(task)
            write(target, cases)
    print(f"{len(cases)} cases, {zeros} zeros, {checked} also by hits_delta, passed over: {dict(passed)}")


def write(target: Path, cases: list[dict[str, object]]) -> None:
    """One case per line; json writes doubles by repr."""
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    target.write_text(f'{{"about": {json.dumps(ABOUT)},\n "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
