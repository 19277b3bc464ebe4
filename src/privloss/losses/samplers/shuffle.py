"""Shuffled epochs: the records are permuted once and cut into batches, one step each. One use is one epoch."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.samplers.setting import Setting, distance_text
from privloss.losses.step import Distances, Step
from privloss.losses.table.build import from_vectors
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.table import Table

_SMOOTH = 1e-11


def shuffle(step: Step, steps: int, at: Setting) -> Step:
    """Given the permutation a record touches one step of the epoch: no amplification is proven."""
    if at.adjacency == ADD_REMOVE:
        raise Unsupported(
            f"{at.sampled} under add-remove: a record more or less moves all others to other batches; ask under "
            "zero-out or replace-one, or use poisson or allocation."
        )
    if steps == 1:
        return step
    text = f"sampler: shuffled epochs of {steps} steps, one count per epoch; no amplification is claimed"
    theorem = "shuffled epochs: given the permutation a record touches one step per epoch (parallel composition)"
    if step.distances is not None:
        return _gaussian(step, step.distances, steps, theorem, text, at)
    if step.curve is not None:
        raise Unsupported(f"{at.sampled}: is supported for mechanisms with a pair, not for Renyi curves.")
    if step.loss is None:
        return step
    return replace(
        step, theorems=(theorem,), assumptions=(f"{at.inner}; {text}", *step.assumptions), attained=(None,),
        attained_pointwise=False, span=None, poisson=None, symmetric=None,
    )  # fmt: skip


def _gaussian(step: Step, d: Distances, steps: int, theorem: str, text: str, at: Setting) -> Step:
    if math.isinf(d.replace):
        return step
    there, away = d.replace, 0.0
    if at.adjacency != REPLACE_ONE:
        there, away = (d.replace, d.add or 0.0) if step.contributions_known else (d.add or 0.0, 0.0)
    below = largest_of(steps, there, away)
    theorem += "; lower end: the largest of the steps' outputs (Chua et al. 2024)"
    about = f"gaussian: {distance_text(there - away)}; {text}"
    bound = GaussianLoss((there - away) ** 2)
    return Step((theorem,), (about,), bound, mirrored=True, attained=(TableLoss.one(below),))


def largest_of(steps: int, with_record: float, without: float) -> Table:
    """The largest of `steps` outputs, one of them moved by one distance or the other: a post-processing, so a lower
    end. P[max <= x] = Phi(x - s) Phi(x)^(steps - 1); its bins are post-processing again."""
    x = np.linspace(-8.0, 9.0 + with_record, 300)
    # log Phi from the smaller tail: its rounding is multiplied by the number of steps
    log_phi = np.where(x > 0, np.log1p(-ndtr(-x)), np.log(np.maximum(ndtr(x), 1e-300)))
    rest = (steps - 1) * log_phi

    def cells(distance: float) -> list[float]:
        cdf = np.exp(np.log(np.maximum(ndtr(x - distance), 1e-300)) + rest)
        # mixed with the same noise on both sides (post-processing), far above rounding
        masses = np.maximum(np.diff(np.concatenate([[0.0], cdf, [1.0]])), 0.0) + _SMOOTH
        return [float(m) for m in masses / masses.sum()]

    return from_vectors(cells(with_record), cells(without))
