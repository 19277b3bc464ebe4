"""Symmetric pairs with windows, for the tests of how they are split by the largest loss."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from privloss.losses.mixture.windows import at_losses
from privloss.losses.symmetric.pair import SymmetricPair
from privloss.losses.symmetric.step import SymmetricStep, mean_loss

PAIRS = {  # rate, sigma, two-sided, the losses at the centres of windows
    "replace-one": (1e-3, 0.9, True, (0.1, 0.25, 0.7)),
    "fixed size": (2e-3, 1.2, False, (0.1, 0.25, 0.7)),
    "often, two-sided": (0.3, 2.0, True, (1.5, 3.0)),  # |B| and arg B matter
    "almost always": (1 - 1e-9, 1.5, True, (2.2, 4.0)),
}


@lru_cache(maxsize=8)
def step_of(name: str) -> SymmetricStep:
    rate, sigma, two_sided, levels = PAIRS[name]
    pair = SymmetricPair(rate, sigma, two_sided)
    windows = at_losses(rate, sigma, np.array(levels))
    windows = type(windows)(windows.centre, np.minimum(windows.width, (windows.centre[0] - 1.1) / 18))
    mean = mean_loss(pair)
    top = max(windows.end(windows.count - 1), 1 + 10 * sigma)
    return SymmetricStep(rate, sigma, windows, (mean, mean), top, two_sided=two_sided)
