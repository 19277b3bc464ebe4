"""The best choice of steps at least b apart, at most k of them, for values v_0, ..., v_(n-1) >= 0 of the steps.

F_j(i), the most that at most j steps from i on can be worth, is max(F_j(i+1), v_i + F_(j-1)(i+b)): a running maximum
from the right of v + the shifted F_(j-1). Where k does not bind, as it cannot from ceil(n/b) on, one pass over blocks
of b steps does. Sums of at most k terms >= 0: k relative roundings.

>>> best_sums(np.array([[3.0, 4.0, 3.0, 1.0]]), 2, 2), best_pattern(np.array([3.0, 4.0, 3.0, 1.0]), 2, 2)
(array([6.]), [0, 2])
"""

from __future__ import annotations

import numpy as np

from privloss.numerics.floats import Real

_MOST_KEPT = 20_000_000  # numbers that are kept to find the choice itself
_MOST_WORK = 30_000_000_000  # additions: half a minute


def most_steps(steps: int, separation: int, most: int | None) -> int:
    """How many steps at least `separation` apart fit, at most `most`."""
    fitting = -(-steps // separation)
    return fitting if most is None else min(most, fitting)


def best_sums(values: Real, separation: int, most: int) -> Real:
    """For every row of values the most that a choice is worth; an upper bound on it where all choices are too dear."""
    rows, n = values.shape
    work = n * most * (n if rows > 1 else 1)  # several rows are a part of n
    if most >= most_steps(n, separation, None) or work > _MOST_WORK:
        return np.asarray(_unrestricted(values, separation)[:, 0])
    best = np.zeros((rows, n + separation))
    for _ in range(most):
        best[:, :n] = _from_right(values + best[:, separation:])
    return np.asarray(best[:, 0])


def best_pattern(values: Real, separation: int, most: int) -> list[int]:
    """A best choice for one row of values (a good one where it would take too long)."""
    n = len(values)
    if most < most_steps(n, separation, None) and most * n > _MOST_KEPT:
        return list(range(0, n, separation))[:most]
    if most >= most_steps(n, separation, None):
        layers = [_unrestricted(values[None, :], separation)[0]] * most
    else:
        layers, best = [], np.zeros(n + separation)
        for _ in range(most):
            best = np.concatenate([_from_right(values + best[separation:]), np.zeros(separation)])
            layers.append(best)
    chosen, at = [], 0
    for layer in reversed(layers):
        if at >= n or layer[at] <= 0:
            break
        at += int(np.argmax(layer[at:n] < layer[at])) - 1 if layer[n - 1] < layer[at] else n - 1 - at
        chosen.append(at)
        at += separation
    return chosen or [0]


def _from_right(values: Real) -> Real:
    """The running maximum from the right."""
    return np.asarray(np.maximum.accumulate(values[..., ::-1], axis=-1)[..., ::-1])


def _unrestricted(values: Real, separation: int) -> Real:
    """F where any number of steps may be chosen, block by block from the right."""
    rows, n = values.shape
    best = np.zeros((rows, n + separation))
    for start in range(separation * ((n - 1) // separation), -1, -separation):
        stop = min(start + separation, n)
        block = _from_right(values[:, start:stop] + best[:, start + separation : stop + separation])
        best[:, start:stop] = np.maximum(block, best[:, stop : stop + 1])
    return best
