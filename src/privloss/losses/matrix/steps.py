"""One run of a matrix mechanism as the accountant sees it, without and with a random pattern of steps."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from privloss.adjacency import REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.composed import ComposedLoss
from privloss.losses.matrix import bins
from privloss.losses.matrix.sensitivity import EPOCHS, Participation, Squared, squared_sensitivity
from privloss.losses.matrix.strategy import MOST_TOEPLITZ, Strategy, Toeplitz
from privloss.losses.samplers.poisson import gaussian_hit
from privloss.losses.samplers.setting import Setting
from privloss.losses.samplers.shuffle import largest_of
from privloss.losses.samplers.truncated_poisson import truncated_poisson
from privloss.losses.step import REVEALED_LOSS, Distances, Step
from privloss.losses.table.allocation import allocation_table
from privloss.losses.table.allocation_below import allocation_below
from privloss.losses.table.loss import TableLoss
from privloss.numerics.floats import Real, lowered, raised

_ADAPTIVE = "contributions may depend on earlier outputs"


@dataclass(frozen=True)
class Noise:
    """How far one contribution may be from its neighbour, in units of the noise, and in words."""

    moved: float
    adjacency: str
    text: str

    def mu_squared(self, squared: Squared) -> tuple[float, float]:
        """Both ends of mu^2; inf without noise."""
        if math.isinf(self.moved):
            return (math.inf, math.inf) if squared.low > 0 else (0.0, math.inf if squared.high > 0 else 0.0)
        unit = self.moved * self.moved
        return lowered(squared.low * unit, 8), raised(squared.high * unit, 8)


def gaussian_ends(low: float, high: float, theorem: str, assumption: str) -> Step:
    """A Gaussian pair of which mu^2 is known between two ends."""
    if high == 0:
        return Step((theorem,), (assumption,), mirrored=True)
    return Step(
        (theorem,), (assumption,), _gaussian(high), mirrored=True, attained=(_gaussian(low) if low > 0 else None,)
    )


def _gaussian(mu_squared: float) -> PrivacyLoss:
    return GaussianLoss(mu_squared) if mu_squared < math.inf else REVEALED_LOSS


def released(squared: Squared, noise: Noise) -> Step:
    """The pattern of steps known: one Gaussian."""
    theorem = (
        f"matrix mechanism: Gaussian with mu = sensitivity of C x / noise, {_ADAPTIVE} (Denisov et al. 2022); "
        f"{squared.why}"
    )
    low, high = noise.mu_squared(squared)
    return gaussian_ends(low, high, theorem, noise.text)


def _fixed_neighbours(noise: Noise, what: str) -> None:
    if noise.adjacency == REPLACE_ONE:
        raise Unsupported(
            f"matrix mechanism, {what}, under replace-one: amplification is proven for records that are there or not; "
            "ask under add-remove or zero-out."
        )


@dataclass(frozen=True)
class Classes:
    """How many, their sampling rate, whether they are secret, and the largest class with the largest sample of it that
    is kept, if samples are cut down."""

    count: int
    rate: float
    secret: bool = False
    cut: tuple[int, int] | None = None


def cyclic(strategy: Strategy, classes: Classes, noise: Noise) -> Step:
    """Class j is sampled at the steps j, j+b, ...: columns that share no row, so a product of Poisson samples."""
    _fixed_neighbours(noise, "cyclic Poisson")
    norms, rate = _class_norms(strategy, classes.count), classes.rate
    theorem = (
        "cyclic Poisson, C with at most as many bands as classes: the steps of a class share no row of C, so its pair "
        "is the product of Poisson-sampled Gaussians, one for every step (Choquette-Choo et al. 2023)"
    )
    ordered = -np.sort(-norms, axis=1)
    above, best = ordered.max(axis=0), ordered[int(np.argmax(ordered.sum(axis=1)))]
    units = 2.0 * strategy.bands + 16
    above, best = np.asarray(raised(above, units)), np.asarray(lowered(best, units))
    if classes.cut is not None:
        return _cut_down(above, best, classes, noise, theorem)
    loss = _hits(above, rate, noise)
    least: PrivacyLoss | None = _hits(best, rate, noise)
    if classes.secret:  # of a single step nothing but that it takes part with probability rate / classes is needed
        least = _hits(best[:1], rate / classes.count, noise)
    return Step((theorem,), (noise.text,), loss, mirrored=loss is None, attained=(least,))


def _class_norms(strategy: Strategy, classes: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Column norms, one row for every class of steps (for Toeplitz matrices class 0, which has the longest columns)."""
    bands = strategy.bands if isinstance(strategy, Toeplitz) else strategy.causal_bands
    if bands is None or bands > classes:
        found = "is not lower triangular" if bands is None else f"has {bands} bands"
        raise Unsupported(
            f"matrix mechanism, cyclic Poisson: C {found}; amplification is proven for a lower triangular C with at "
            f"most as many bands as classes ({classes})."
        )
    if strategy.steps // classes > MOST_TOEPLITZ:
        raise Unsupported(f"steps = {strategy.steps}: a class of cyclic Poisson has at most {MOST_TOEPLITZ} of them.")
    if isinstance(strategy, Toeplitz):
        partial = np.sqrt(np.cumsum(strategy.short**2))
        left = strategy.steps - np.arange(0, strategy.steps, classes)
        return np.asarray(partial[np.minimum(left, bands) - 1])[None, :]
    padded = np.zeros(classes * -(-strategy.steps // classes))
    padded[: strategy.steps] = np.sqrt(strategy.squared_norms)
    return np.asarray(padded.reshape(-1, classes).T)


def _cut_down(above: Real, best: Real, classes: Classes, noise: Noise, theorem: str) -> Step:
    """Samples of a class cut down to a largest size: at step s another record may take the place of this one, which
    moves the rows of column s alone; so the product is over truncated samples."""
    n, most = classes.cut or (0, 0)

    def steps(norms: Real) -> list[Step]:
        found = []
        for d, count in _distances(norms, noise):
            hit = functools.partial(_hit, d)
            one = Step((), (noise.text,), GaussianLoss(d * d), mirrored=True, poisson=hit, null_adds_nothing=True)
            one = replace(one, distances=Distances(d, 2 * d), contributions_known=True)
            at = Setting(noise.adjacency, "matrix mechanism", "matrix mechanism", "truncated-poisson")
            found.append(truncated_poisson(one, classes.rate, n, most, at).times(count))
        return found

    made = steps(above)
    fewer = [] if classes.secret else [(step.attained or (step.loss,))[0] for step in steps(best)]
    loss = ComposedLoss.of(step.loss for step in made if step.loss is not None)
    plain = ComposedLoss.of(GaussianLoss(n * (2 * d) ** 2) for d, n in _distances(above, noise))
    below = ComposedLoss.of(part for part in fewer if part is not None)
    text = made[0].theorems if made else ()
    return Step(
        (theorem, *text), (noise.text,), loss if loss.parts else None, mirrored=not loss.parts,
        attained=(below if below.parts else None,), without_sampler=Step((), (), plain, mirrored=True),
    )  # fmt: skip


def _hit(distance: float, rate: float) -> Step:
    return gaussian_hit(rate, 1 / distance)


def _distances(norms: Iterable[float], noise: Noise) -> list[tuple[float, int]]:
    """The distances of a class's steps in units of the noise, and how often each."""
    sizes, counts = np.unique(np.asarray(norms), return_counts=True)
    return [(float(s) * noise.moved, int(n)) for s, n in zip(sizes, counts, strict=True) if s > 0]


def _hits(norms: Iterable[float], rate: float, noise: Noise) -> PrivacyLoss | None:
    """One Poisson-sampled Gaussian for every norm."""
    kept = _distances(norms, noise)
    if rate == 0 or not kept:
        return None
    if rate == 1:
        return _gaussian(math.fsum(n * s * s for s, n in kept))
    parts = [gaussian_hit(rate, 1 / s).loss for s, _ in kept]
    return ComposedLoss.of(p.times(n) for p, (_, n) in zip(parts, kept, strict=True) if p is not None)


def balls_in_bins(strategy: Strategy, count: int, noise: Noise) -> Step:
    """Kahane's inequality between two exchangeable Gram matrices; without amplification as a second upper end."""
    _fixed_neighbours(noise, "balls in bins")
    theorem = (
        "balls in bins: Gaussian with the largest shared covariance and random allocation with the rest, above and "
        "below (Kahane's inequality; docs/matrix.md)"
    )
    plain = released(squared_sensitivity(strategy, Participation(EPOCHS, count)), noise)
    if math.isinf(noise.moved) or count == 1:
        return plain
    found = bins.gram(strategy, count).scaled(noise.moved * noise.moved)
    loss = _allocated(bins.above(found))
    below = _allocated_below(bins.below(found)) if found.attained else (None,)
    return Step((theorem,), (noise.text,), loss, attained=below, without_sampler=plain)


def _allocated(a: bins.Allocation) -> PrivacyLoss | None:
    """The shared variance, and an epoch of random allocation."""
    shared, own = raised(a.shared, 8), raised(a.own, 8)
    if shared + own == 0:
        return None
    table = allocation_table(a.bins, raised(math.sqrt(own), 4)) if a.bins > 1 and own > 0 else None
    if table is None:
        return _gaussian(raised(shared + own, 4))
    alone = TableLoss.one(table)
    return ComposedLoss.of([GaussianLoss(shared), alone]) if shared > 0 else alone


def _allocated_below(a: bins.Allocation) -> tuple[PrivacyLoss | None, ...]:
    """The same with a rough look at the outputs in place of all of them, or with the largest of them."""
    shared, own = lowered(a.shared, 8), lowered(a.own, 8)
    parts: list[PrivacyLoss] = [GaussianLoss(shared)] if shared > 0 else []
    if own == 0:
        return (ComposedLoss.of(parts) if parts else None,)
    distance = lowered(math.sqrt(own), 4)
    seen = allocation_below(a.bins, distance) if a.bins > 1 else None
    looks = [largest_of(a.bins, distance, 0.0)] if seen is None else [seen, largest_of(a.bins, distance, 0.0)]
    return tuple(ComposedLoss.of([*parts, TableLoss.one(look)]) for look in looks)
