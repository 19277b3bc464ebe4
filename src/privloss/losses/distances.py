"""How far one record moves a sum, and small makers that all samplers share.

`add` is the distance when a record joins, `replace` when it is replaced by another, both in units of the noise. With a
noise multiplier these are 1 and 2 clipping norms; with sigma and sensitivity only the one that belongs to the plan's
adjacency is known (and replace <= 2 add).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.losses.discrete import DiscreteLoss
from privloss.losses.gaussian_mixture import GaussianMixtureLoss
from privloss.losses.row import Row
from privloss.losses.tables import from_vectors
from privloss.mechanisms.gaussian import Gaussian

NOTHING = from_vectors([1.0], [1.0])  # a lower end that claims nothing


@dataclass(frozen=True)
class Distances:
    """How far one record moves the sum, in units of the noise."""

    add: float | None
    replace: float

    @classmethod
    def of(cls, mechanism: Gaussian, adjacency: str) -> Distances:
        if mechanism.noise_multiplier is not None:
            add = 1 / mechanism.noise_multiplier if mechanism.noise_multiplier > 0 else math.inf
            return cls(add, 2 * add)
        size = 1.0 if mechanism.sensitivity is None else mechanism.sensitivity
        given = size / mechanism.sigma if mechanism.sigma else math.inf
        return cls(None, given) if adjacency == "replace-one" else cls(given, 2 * given)


def rows(row: Row, times: int) -> DiscreteLoss:
    return DiscreteLoss((row,), np.array([float(times)]))


def mixture(rate: float, sigma: float, times: int) -> GaussianMixtureLoss:
    return GaussianMixtureLoss(np.array([rate]), np.array([sigma]), np.array([float(times)]))


def distance_text(distance: float) -> str:
    return f"one record moves the sum by up to {distance:.6g} times the noise"
