"""Samplers by the epoch: every record takes part in one step of a pass over the data, or in k of them."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from privloss.errors import Unsupported
from privloss.losses.allocation import allocation_row
from privloss.losses.collected import Collect, Collected
from privloss.losses.distances import NOTHING, Distances, distance_text, rows
from privloss.losses.gaussian import GaussianLoss
from privloss.losses.row import Row
from privloss.losses.tables import from_vectors
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.sampling import Allocated, Shuffled


def collect_shuffled(found: Collected, sampler: Shuffled, times: int, adjacency: str, collect: Collect) -> None:
    """Given the permutation a record touches one step of the epoch: no amplification is proven."""
    inner = sampler.mechanism
    if adjacency == "add-remove":
        raise Unsupported(
            f"{sampler!r} under add-remove: a record more or less moves all others to other batches; ask under "
            "zero-out or replace-one, or use poisson or allocation."
        )
    if sampler.steps == 1:
        collect(found, inner, times, adjacency)
        return
    text = f"sampler: shuffled epochs of {sampler.steps} steps, one count per epoch; no amplification is claimed"
    theorem = "shuffled epochs: given the permutation a record touches one step per epoch (parallel composition)"
    if isinstance(inner, Gaussian):
        d = Distances.of(inner, adjacency)
        if math.isinf(d.replace):
            collect(found, inner, times, adjacency)
            return
        if adjacency == "replace-one":
            with_record, without = d.replace, 0.0
        else:
            with_record, without = (d.replace, d.add or 0.0) if inner.noise_multiplier else (d.add or 0.0, 0.0)
        below = _largest_of(sampler.steps, with_record, without)
        theorem += "; lower end: the largest of the steps' outputs (Chua et al. 2024)"
        found.say(theorem, f"gaussian: {distance_text(with_record - without)}; {text}")
        found.between(GaussianLoss(times * (with_record - without) ** 2), rows(below, times))
        return
    found.say(theorem, f"{inner!r}; {text}")
    alone = Collected()
    collect(alone, inner, times, adjacency)
    if alone.rho or alone.tables or alone.sampled:
        raise Unsupported(f"{sampler!r}: is supported for mechanisms with a pair, not for Renyi curves.")
    found.assumptions.update(alone.assumptions)
    found.above += alone.parts() + [GaussianLoss(mu) for mu in alone.mu_squared]
    found.below.append(rows(NOTHING, 1))


_SMOOTH = 1e-11


def _largest_of(steps: int, with_record: float, without: float) -> Row:
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


def collect_allocated(
    found: Collected, sampler: Allocated, distances: Distances, times: int, adjacency: str, collect: Collect
) -> None:
    """A record in k of t steps is, given a random split of the steps into k blocks, in one step of each block (Feldman
    and Shenfeld 2025)."""
    block = sampler.steps // sampler.k
    places = f"every record in {sampler.k} of {sampler.steps} steps per epoch, chosen at random"
    text = f"sampler: {places}; one count per epoch"
    if adjacency == "replace-one":
        found.say(
            "allocation under replace-one: given the places a record touches k steps per epoch (no amplification is "
            "proven)",
            f"gaussian: {distance_text(distances.replace)}; {text}",
        )
        uses = times * sampler.k
        found.between(GaussianLoss(uses * distances.replace**2), rows(NOTHING, uses))
        return
    if distances.add is None:
        raise Unsupported(f"{sampler!r}: needs the distance of one record.")
    if sampler.k == sampler.steps:
        collect(found, sampler.mechanism, times * sampler.k, adjacency)
        return
    found.say(
        "allocation: the mean of the steps' likelihood ratios against N(0), both directions (Feldman, Shenfeld 2025; "
        "Chua et al. 2025), each ratio moved to a grid with its mean kept (convex order)",
        f"gaussian: {distance_text(distances.add)}; {text}",
    )
    uses = times * sampler.k
    row = allocation_row(block, distances.add) if block > 1 else None
    below = _largest_of(block, distances.add, 0.0) if sampler.k == 1 else NOTHING
    above = GaussianLoss(uses * distances.add**2) if row is None else rows(row, uses)
    found.between(above, rows(below, uses))
