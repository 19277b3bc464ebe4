"""Least noise for a target, side by side with dp-accounting's calibrator: ``python -m bench.calibration``.

Both solve the same problem, 14 100 steps at rate 256/60000 for epsilon = 3, delta = 1e-5, in one process; ours is timed
as a median over slightly different targets, so that nothing can be cached.
"""

from __future__ import annotations

import statistics
import time

RATE, STEPS, EPSILON, DELTA = 256 / 60_000, 14_100, 3.0, 1e-5
TRUTH = 0.9691482867362087


def main() -> None:
    import dp_accounting as dp

    import privloss as pl

    def ours(epsilon: float) -> float:
        return float(pl.calibrate(lambda s: pl.Gaussian(s).poisson(RATE) * STEPS, epsilon=epsilon, delta=DELTA))

    ours(2.5)
    times = []
    for k in range(9):
        start = time.perf_counter()
        ours(EPSILON * (1 + 1e-3 * (k - 4)))
        times.append(time.perf_counter() - start)
    mine, value = statistics.median(times), ours(EPSILON)
    start = time.perf_counter()
    theirs = dp.calibrate_dp_mechanism(
        lambda: dp.pld.PLDAccountant(value_discretization_interval=1e-4),
        lambda s: dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(RATE, dp.GaussianDpEvent(s)), STEPS),
        EPSILON, DELTA, tol=1e-6,
    )  # fmt: skip
    other = time.perf_counter() - start
    print(f"privloss       {value:.12f}  {mine * 1e3:9.1f} ms   relative to the optimum {value / TRUTH - 1:+.1e}")
    print(f"dp-accounting  {theirs:.12f}  {other * 1e3:9.1f} ms   relative to the optimum {theirs / TRUTH - 1:+.1e}")
    print(f"ratio {other / mine:.0f}")


if __name__ == "__main__":
    main()
