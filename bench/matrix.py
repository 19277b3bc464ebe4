"""How long sensitivities of matrix mechanisms take: `python -m bench.matrix` (one dense matrix has 800 MB)."""

from __future__ import annotations

import time

import numpy as np

from privloss.losses.matrix.families import square_root
from privloss.losses.matrix.sensitivity import EPOCHS, SEPARATED, SINGLE, Participation, squared_sensitivity
from privloss.losses.matrix.strategy import Dense, Strategy, Toeplitz

WAYS = (
    Participation(SINGLE),
    Participation(EPOCHS, 1000),
    Participation(SEPARATED, 1000),
    Participation(SEPARATED, 1000, 8),
)


def measure(name: str, strategy: Strategy) -> None:
    """One line for every participation."""
    for how in WAYS:
        start = time.process_time()
        found = squared_sensitivity(strategy, how)
        seconds = time.process_time() - start
        width = (found.high / found.low) ** 0.5 - 1
        most = "" if how.most is None else f", at most {how.most}"
        told = f"{name:24} {how.kind:16}{most:12} {found.high**0.5:10.4f}  width {width:.1e}"
        print(f"{told}  {seconds:8.4f} s of CPU", flush=True)


def main() -> None:
    measure("Toeplitz, 10^6 steps", Toeplitz(square_root(10**6), 10**6))
    c = square_root(10_000)
    measure("Toeplitz, 10^4 steps", Toeplitz(c, 10_000))
    column = np.concatenate([np.zeros(9_999), c])
    dense = np.lib.stride_tricks.sliding_window_view(column, 10_000)[:, ::-1]
    measure("dense, 10^4 steps", Dense(np.ascontiguousarray(dense)))


if __name__ == "__main__":
    main()
