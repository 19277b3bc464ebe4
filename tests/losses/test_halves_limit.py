"""Tables of many unequal outcomes are left to the contour: listing them would never end."""

from __future__ import annotations

import numpy as np

import privloss as pl


def test_many_uses_of_a_table_with_many_values_are_not_listed() -> None:
    rng = np.random.default_rng(5)
    p, q = rng.random(9), rng.random(9)
    plan = pl.Custom((p / p.sum()).tolist(), (q / q.sum()).tolist()) * 60
    found = plan.delta(1.0)
    assert 0 < found.lower <= found.upper < 1
