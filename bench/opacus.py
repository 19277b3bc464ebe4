"""Opacus's calibration with each of its accountants: ``python -m bench.opacus``, where Opacus is installed.

Epsilon 3 at delta 1e-5 for 14 100 steps at rate 256/60 000; CPU time, the least of several repeats.
"""

from __future__ import annotations

import time
import warnings

from opacus.accountants.utils import get_noise_multiplier

import privloss.interop.opacus  # registers the accountant
from privloss.mechanisms.gaussian import Gaussian

RATE, STEPS, DELTA = 256 / 60_000, 14_100, 1e-5
REPEATS = {"privloss": 20, "prv": 3, "rdp": 10}


def timed(accountant: str, repeats: int) -> tuple[float, float]:
    """The noise found, and the CPU seconds it took."""
    noise, best = 0.0, float("inf")
    for _ in range(repeats):
        begun = time.process_time()
        noise = get_noise_multiplier(
            target_epsilon=3.0, target_delta=DELTA, sample_rate=RATE, steps=STEPS, accountant=accountant
        )
        best = min(best, time.process_time() - begun)
    return noise, best


def main() -> None:
    warnings.simplefilter("ignore")
    found = {name: timed(name, repeats) for name, repeats in REPEATS.items()}
    _, ours = found[privloss.interop.opacus.NAME]
    print("| accountant | noise multiplier | its true epsilon | CPU seconds | ratio |\n|---|---|---|---|---|")
    for name, (noise, seconds) in found.items():
        true = (Gaussian(noise).poisson(RATE) * STEPS).epsilon(DELTA).upper
        print(f"| {name} | {noise:.5f} | {true:.4f} | {seconds:.3f} | {seconds / ours:.1f} |")


if __name__ == "__main__":
    main()
