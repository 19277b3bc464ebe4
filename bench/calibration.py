"""Least noise for a target, side by side with dp-accounting's calibrator: ``python -m bench.calibration``.

Problems are drawn from the ordinary grid of `bench.ordinary`: rate, steps and delta of a setting, and the epsilon of
its noise as the target, a little changed. Ours must be within 1e-7 of the best noise: with so much less the exact
answer's lower end exceeds the target. Some of the problems, chosen at random, are put to dp-accounting in the same run;
wherever its noise is smaller than ours, it must be shown not to keep the promise. CPU times.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import dataclass

import privloss as pl
from bench.ordinary import draw

CLOSE = 1e-7


@dataclass(frozen=True)
class Problem:
    rate: float
    steps: int
    delta: float
    epsilon: float

    def plan(self, sigma: float) -> pl.Plan:
        return pl.Gaussian(sigma).poisson(self.rate) * self.steps

    def surely_too_little(self, sigma: float) -> bool:
        return self.plan(sigma).epsilon(self.delta).lower > self.epsilon


@dataclass(frozen=True)
class Solved:
    problem: Problem
    found: pl.Calibrated
    seconds: float  # of CPU

    @property
    def close(self) -> bool:
        """Whether a little less noise is known to be too little; the noise itself must keep the promise."""
        problem, sigma = self.problem, float(self.found)
        kept = problem.plan(sigma).epsilon(problem.delta).upper <= problem.epsilon
        return kept and problem.surely_too_little(sigma * (1 - CLOSE))


def problems(count: int, seed: int) -> list[Problem]:
    rng, found = random.Random(seed), list[Problem]()
    while len(found) < count:
        setting = draw(rng)
        epsilon = setting.answer().upper * rng.uniform(0.9, 1.1)
        if 1e-3 <= epsilon <= 50:
            found.append(Problem(setting.rate, setting.steps, setting.delta, epsilon))
    return found


def ours(problem: Problem) -> Solved:
    start = time.process_time()
    found = pl.calibrate(problem.plan, epsilon=problem.epsilon, delta=problem.delta)
    return Solved(problem, found, time.process_time() - start)


def theirs(problem: Problem) -> tuple[float, float]:
    """Noise and CPU seconds of dp-accounting, its accountant of privacy loss distributions; nan if it gives up."""
    import dp_accounting as dp

    start = time.process_time()
    try:
        sigma = dp.calibrate_dp_mechanism(
            lambda: dp.pld.PLDAccountant(value_discretization_interval=1e-4),
            lambda s: dp.SelfComposedDpEvent(
                dp.PoissonSampledDpEvent(problem.rate, dp.GaussianDpEvent(s)), problem.steps
            ),
            problem.epsilon, problem.delta, dp.LowerEndpointAndGuess(0.05, 1.0), tol=1e-6,
        )  # fmt: skip
    except Exception as problem_found:
        print(f"  dp-accounting gave up: {type(problem_found).__name__}: {problem_found}")
        sigma = float("nan")
    return float(sigma), time.process_time() - start


def compare(solved: list[Solved]) -> list[str]:
    """Ask dp-accounting the same, print both; return where its smaller noise is not refuted."""
    ratios, wrong = list[float](), list[str]()
    for one in solved:
        sigma, seconds = theirs(one.problem)
        ratios.append(seconds / one.seconds)
        smaller = sigma < float(one.found) * (1 - CLOSE)
        note = ""
        if smaller:
            refuted = one.problem.surely_too_little(sigma)
            note = "  smaller, and too little" if refuted else "  SMALLER"
            if not refuted:
                wrong.append(f"{one.problem}: {sigma!r} is smaller than {one.found.value!r} and not refuted")
        print(f"  privloss {float(one.found):.9f} {one.seconds * 1e3:7.1f} ms   dp-accounting {sigma:.9f} "
              f"{seconds * 1e3:9.1f} ms   ratio {ratios[-1]:6.0f}{note}")  # fmt: skip
    print(f"ratio: median {statistics.median(ratios):.0f}, least {min(ratios):.0f}")
    return wrong


def report(solved: list[Solved]) -> list[str]:
    times, asked = sorted(s.seconds for s in solved), sorted(s.found.evaluations for s in solved)
    far = [s for s in solved if not s.close]
    print(f"{len(solved)} ordinary problems: {len(far)} not within {CLOSE:g} of the least noise")
    shown = ", ".join(
        f"{share:.0%} below {1e3 * times[int(share * (len(times) - 1))]:.1f}" for share in (0.5, 0.9, 1.0)
    )
    print(f"CPU ms: {shown}; exact answers: median {statistics.median(asked):.0f}, most {asked[-1]}")
    return [f"not within {CLOSE:g} of the least noise: {s.problem}, {s.found!r}" for s in far]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--peer", type=int, default=10, help="problems that dp-accounting is asked as well")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    solved = [ours(problem) for problem in problems(arguments.problems, arguments.seed)]
    wrong = report(solved)
    if arguments.peer:
        wrong += compare(random.Random(arguments.seed).sample(solved, min(arguments.peer, len(solved))))
    for text in wrong:
        print("PROBLEM", text)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
