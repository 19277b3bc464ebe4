"""OpenDP's measurements as black boxes: what `measurement.map(d_in)` promises, in the measure it is promised in.

    import opendp.prelude as dp
    box = from_measurement(dp.m.make_laplace(*space, scale=2.0), d_in=1.0, adjacency="add-remove")

OpenDP itself is not imported: everything is read from the measurement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from privloss.adjacency import ADD_REMOVE, ADJACENCIES, REPLACE_ONE, ZERO_OUT
from privloss.errors import InvalidInput, Unsupported
from privloss.mechanisms.approx_dp import ApproxDP
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.privacy_profile import PrivacyProfile
from privloss.mechanisms.pure_dp import PureDP
from privloss.mechanisms.rdp import RDP
from privloss.mechanisms.zcdp import ZCDP
from privloss.numerics import check

_EPSILONS = (0.0, *(2 ** (k / 4) for k in range(-24, 29)))  # where a profile is read; any points are sound
_ORDERS = tuple(1 + 2 ** (k / 4) for k in range(-24, 41))

# how far apart neighbours are in a metric between data sets; a replaced record is one removed and one added
_DISTANCES = {
    "SymmetricDistance": {ADD_REMOVE: 1, REPLACE_ONE: 2, ZERO_OUT: 2},
    "InsertDeleteDistance": {ADD_REMOVE: 1, REPLACE_ONE: 2, ZERO_OUT: 2},
    "ChangeOneDistance": {REPLACE_ONE: 1, ZERO_OUT: 1},
    "HammingDistance": {REPLACE_ONE: 1, ZERO_OUT: 1},
}


def from_measurement(measurement: Any, d_in: Any, adjacency: str) -> Plan:
    """One use of a measurement whose input distance is `d_in` for neighbours under the adjacency.

    Where the metric compares data sets, `d_in` must reach the neighbours: 2 for a replaced record in the symmetric
    distance. Where it compares numbers or vectors, `d_in` is the sensitivity of what comes before, under the adjacency.
    """
    check.choice("adjacency", adjacency, ADJACENCIES)
    _reaches(str(measurement.input_metric).split("(")[0], d_in, adjacency)
    measure = str(measurement.output_measure)
    if measure not in _BOXES:
        raise Unsupported(f"{measure}: is no measure with a proven bound here; known are {', '.join(_BOXES)}.")
    try:
        box = _BOXES[measure](measurement.map(d_in))
    except InvalidInput as problem:
        raise InvalidInput(f"{measure} at d_in = {d_in!r}: {problem}") from None
    return Plan(((box, 1),), adjacency)


def _reaches(metric: str, d_in: Any, adjacency: str) -> None:
    if metric not in _DISTANCES:
        return
    least = _DISTANCES[metric].get(adjacency)
    if least is None:
        raise InvalidInput(f"adjacency = {adjacency!r}: {metric} compares data sets of one size.")
    if not d_in >= least:
        raise InvalidInput(f"d_in = {d_in!r}: neighbours under {adjacency} are {least} apart in {metric}.")


def _profile(found: Any) -> Mechanism:
    """A curve delta(epsilon), read where it is below 1."""
    points = [(e, found.delta(e)) for e in _EPSILONS]
    kept = [(e, d) for e, d in points if d < 1] or points[-1:]
    return PrivacyProfile([e for e, _ in kept], [d for _, d in kept])


def _curve(found: Callable[[float], float]) -> Mechanism:
    points = [(a, found(a)) for a in _ORDERS]
    kept = [(a, e) for a, e in points if e < math.inf]
    return RDP([a for a, _ in kept], [e for _, e in kept])


_BOXES: dict[str, Callable[[Any], Mechanism]] = {
    "MaxDivergence": PureDP,
    "Approximate(MaxDivergence)": lambda found: ApproxDP(*found),
    "ZeroConcentratedDivergence": ZCDP,
    "Approximate(ZeroConcentratedDivergence)": lambda found: ZCDP(found[0], delta=found[1]),
    "SmoothedMaxDivergence": _profile,
    "RenyiDivergence": _curve,
}
