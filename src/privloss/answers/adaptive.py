"""Choices of one range: what is known of the best adversary, use by use on a grid (`losses/closed/adaptive_range.py`),
beside the rest of the engine."""

from __future__ import annotations

from collections.abc import Callable

from privloss.numerics.bound import Bound

ADAPTIVE = "recursion over adaptive choices of bounded range (Dong, Durfee, Rogers 2020)"
_FAIR = 1e-3  # relative width from which on nothing else is asked


def narrowed(found: Bound, recursion: tuple[float, float] | None) -> Bound:
    """What else is known, cut with the ends of the recursion."""
    if recursion is None or (recursion[0] <= found.lower and found.upper <= recursion[1]):
        return found
    lower, upper = max(found.lower, recursion[0]), min(found.upper, recursion[1])
    notes = tuple(note for note in found.notes if not note.startswith("lower end"))
    return Bound(lower, upper, f"{found.method}; {ADAPTIVE}", notes)


def read_off(ends: tuple[float, float], enough: float, ask: Callable[[], Bound]) -> Bound:
    """From a grid that many questions share; where that is too coarse, the rest of the engine is asked too."""
    lower, upper = ends
    good = 0 < lower <= upper <= (1 + _FAIR) * lower or upper - lower <= enough
    return Bound(lower, upper, ADAPTIVE) if good else narrowed(ask(), ends)
