"""One run against a whole trade-off curve: the recursion of Mahloujifar, Melis and Chaudhuri (2024).

Let F be the curve (largest true positive rate), g its inverse, R_i = sum_(j>=i) (j/m) p_j and H_i = sum_(j>=i)
((r-j)/m) p_j. Flipping coins as in `canaries.py` on {V >= i} and averaging, with F concave, R_i <= F(H_(i-1)), that is
H_(i-1) >= g(R_i). If P[V >= v] = tau, mass at v exactly is the least costly tail: R = tau v/m, H = tau (r-v)/m. Going
down, H' = max(H, g(R)) is the least that is possible, and what it adds to H was put on V = i, adding i/(r-i) of it to
R. The whole mass is R + H = r/m, so tau is impossible if that is exceeded. Feasibility is convex in tau: bisection,
and the impossible end is an upper bound on the tail.
"""

from __future__ import annotations

from collections.abc import Callable

_HALVINGS = 50
_SLACK = 1 + 1e-10  # of the whole mass: above the roundings of 20 000 steps, each below 1e-15
_DOWN = 1 - 1e-11  # what right guesses are lowered by where g may be as steep as e^12


def recursion_tail(canaries: int, guesses: int, correct: int, least_false: Callable[[float], float]) -> float:
    """An upper bound on P[V >= correct] under the curve."""
    if not _impossible(1.0, canaries, guesses, correct, least_false):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if _impossible(middle, canaries, guesses, correct, least_false):
            high = middle
        else:
            low = middle
        if high - low < 1e-10 * high:
            break
    return min(high * (1 + 1e-10), 1.0)


def _impossible(tau: float, m: int, r: int, v: int, least_false: Callable[[float], float]) -> bool:
    right, wrong = tau * v / m, tau * (r - v) / m
    for i in range(v - 1, -1, -1):
        most = max(wrong, least_false(right * _DOWN))
        if most == wrong:
            break  # nothing changes any more
        right += i / (r - i) * (most - wrong)
        wrong = most
        if right + wrong > r / m * _SLACK:
            return True
    return right + wrong > r / m * _SLACK
