"""A release with finitely many outcomes and a Gaussian one on the same Poisson sample.

Let outcome j have mass b_j under Q and e^v_j b_j under P, and let N(d) stand against N(0) beside it. The sampled
product (1-q) Q + q P has, at outcome j and the number y, density b_j phi(y) (1 - q + q e^v_j e^(dy - d^2/2)) against
b_j phi(y). With s_j = 1 - q + q e^v_j that is e^log s_j times a Gaussian on a sample of rate q e^v_j / s_j: a
weighted list of sampled Gaussians, each lifted by log s_j. What only Q produces has the loss log(1-q), whatever y;
what only P produces, an infinite one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privloss.losses.density.normal import NormalPair, normal_table
from privloss.losses.table.table import Table
from privloss.numerics.floats import raised
from privloss.numerics.stable import log_sampled


def sampled_beside_normal(row: Table, rate: float, distance: float) -> Table:
    """The product of a finite row, all of whose outcomes are in it, and N(distance) against N(0), on a Poisson sample
    (Zhu, Dong, Wang 2022, Thm. 11)."""
    lifts = log_sampled(rate, row.values)
    weights = row.masses * np.exp(-row.values)  # under Q
    hits = rate * np.exp(row.values - lifts)
    missed = (1 - rate) * np.exp(-lifts)
    parts = [
        (float(w), NormalPair(((float(hit), distance),), missed=float(miss), lift=float(lift)))
        for w, hit, miss, lift in zip(weights, hits, missed, lifts, strict=True)
        if w > 0
    ]
    rare = []
    if row.back > 0:
        rare.append((row.back * (1 - rate), Table(np.array([math.log1p(-rate)]), np.ones(1))))
    top = float(np.abs(row.values).max())
    units = float(np.max(row.wobble)) * top + row.absolute  # by how much a loss of the row is wrong
    slack = float(np.max(row.slack)) + 2 * units + 32
    found = normal_table(parts, rare, slack=slack)
    # Renyi divergences of a mixture with Q are at most those of P against Q (quasi-convexity), which add; losses of at
    # most e have rho <= e^2/2 (Bun and Steinke 2016, Prop. 3.3)
    rho = raised(0.5 * distance**2 + 0.5 * top**2, 8 + 2 * units) if row.delta == row.back == 0 else math.inf
    return replace(found, delta=rate * row.delta, absolute=found.absolute + 2 * units + 16, rho=rho)
