"""The outcomes of a table, apart from the rest of a composition (`numerics/contour/apart.py`)."""

from __future__ import annotations

import numpy as np

from privloss.losses.table.table import Table
from privloss.numerics.contour.transform import Apart, Transform
from privloss.numerics.floats import UNIT, lowered, raised


def apart(table: Table, rest: Transform, back: Transform) -> Apart:
    """Equal values are one outcome; what tails left out is at most `missing` of M at 0."""
    values, place = np.unique(table.values, return_inverse=True)
    masses = np.zeros(len(values))
    np.add.at(masses, place, table.masses)
    units = float(np.max(table.slack)) + len(table.values)
    low, high = lowered(masses[::-1], units), raised(masses[::-1], units)
    left = 0.0 if table.missing is None else float(table.missing[0](0.0, np.zeros(1))[0])
    off = UNIT * (float(np.max(table.wobble)) * float(np.abs(values).max()) + table.absolute)
    return Apart(values[::-1], raised(off, 4), (np.maximum(low, 0.0), high), left, rest, back)
