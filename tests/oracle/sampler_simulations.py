"""The samplers themselves, batch by batch, on explicit neighbouring datasets of a few records.

A release is the sum of a batch's contributions plus N(0, noise^2), at every step. All batches of a sampler are listed
with their probabilities, so an output is a finite mixture of normal distributions. Its outcomes are put into cells,
whose masses are differences of distribution functions. Cells are a post-processing: every delta found here is a lower
bound on the true one (up to rounding), however wide the cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, permutations, product

import numpy as np
from scipy.special import ndtr

Real = np.ndarray
Law = tuple[Real, Real]  # chances, and how often each choice takes each record (in each step of an epoch)
Profile = Callable[[Real], Real]  # eps -> delta, in one order of the neighbours


def _law(choices: Iterable[tuple[float, Real]]) -> Law:
    chances, taken = zip(*choices, strict=True)
    return np.array(chances), np.array(taken)


# -- one step: records ------------------------------------------------------------------------------------------------


@lru_cache
def poisson(n: int, rate: float) -> Law:
    return truncated_poisson(n, rate, n)


@lru_cache
def fixed_size(n: int, m: int) -> Law:
    batches = list(combinations(range(n), m))
    return _law((1 / len(batches), np.bincount(batch, minlength=n)) for batch in batches)


@lru_cache
def with_replacement(n: int, m: int) -> Law:
    return _law((n**-m, np.bincount(draws, minlength=n)) for draws in product(range(n), repeat=m))


@lru_cache
def truncated_poisson(n: int, rate: float, most: int) -> Law:
    def choices() -> Iterator[tuple[float, Real]]:
        for drawn in product((0, 1), repeat=n):
            chance = math.prod(rate if taken else 1 - rate for taken in drawn)
            batches = list(combinations(np.flatnonzero(drawn), min(most, sum(drawn))))
            for batch in batches:
                yield chance / len(batches), np.bincount(np.array(batch, dtype=int), minlength=n)

    return _law(choices())


# -- one epoch: records by steps --------------------------------------------------------------------------------------


@lru_cache
def allocation(n: int, steps: int, k: int = 1) -> Law:
    places = [np.bincount(chosen, minlength=steps) for chosen in combinations(range(steps), k)]
    return _law((len(places) ** -n, np.array(each).reshape(n, steps)) for each in product(places, repeat=n))


@lru_cache
def shuffle(n: int, steps: int) -> Law:
    """Batches of n / steps records each."""
    orders = list(permutations(np.repeat(np.arange(steps), n // steps)))
    return _law((1 / len(orders), np.eye(steps, dtype=int)[list(order)]) for order in orders)


# -- outcomes ---------------------------------------------------------------------------------------------------------


def cell_masses(mean: float, noise: float, edges: Real) -> Real:
    """N(mean, noise^2) below, between and above the edges."""
    y = (edges - mean) / noise
    left, right = ndtr(y), ndtr(-y)
    between = np.where(y[1:] < 0, np.diff(left), -np.diff(right))
    return np.concatenate([left[:1], between, right[-1:]])


def outcome(law: Law, contributions: Iterable[float] | Real, noise: float, edges: Real) -> Real:
    """Masses of the cells of one step, or of an epoch (one axis per step)."""
    chances, taken = law
    given = np.asarray(contributions, dtype=float)
    if given.ndim == 1:
        given, taken = given[:, None], taken[:, :, None]
    sums, which = np.unique(np.round((taken * given).sum(axis=1), 12), axis=0, return_inverse=True)
    weights = np.bincount(which.ravel(), weights=chances)
    steps = [np.array([cell_masses(mean, noise, edges) for mean in column]) for column in sums.T]
    axes = "abcd"[: len(steps)]
    return np.einsum(",".join(["z", *("z" + axis for axis in axes)]) + "->" + axes, weights, *steps, optimize=True)


def edges_for(reach: float, noise: float, count: int) -> Real:
    return np.linspace(-reach - 9 * noise, reach + 9 * noise, count)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Masses of the same cells on two datasets."""

    p: Real
    q: Real

    @property
    def reversed(self) -> Neighbours:
        return Neighbours(self.q, self.p)

    @cached_property
    def loss(self) -> Real:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(self.p > 0, np.log(self.p) - np.log(self.q), -np.inf)).ravel()

    @cached_property
    def _sums(self) -> tuple[Real, Real, Real]:
        order = np.argsort(self.loss)
        p, q = (np.append(np.cumsum(m.ravel()[order][::-1])[::-1], 0.0) for m in (self.p, self.q))
        return self.loss[order], p, q

    def delta(self, eps: Real) -> Real:
        """The sum of (p - e^eps q)_+, for eps of either sign."""
        losses, p, q = self._sums
        first = np.searchsorted(losses, eps, side="right")
        with np.errstate(over="ignore", invalid="ignore"):
            found = p[first] - np.where(q[first] > 0, np.exp(eps) * q[first], 0.0)
        return np.maximum(found, 0.0)

    def then(self, after: Profile, eps: Real) -> Real:
        """delta of this and of a second release with profile `after`, which may be chosen when this one is known."""
        seen = self.p.ravel() > 0
        masses, losses = self.p.ravel()[seen], self.loss[seen]
        return np.array([float(masses @ after(e - losses)) for e in eps])

    def folded(self) -> Neighbours:
        """The symmetric pair with this profile at eps >= 0: losses above 0, their mirror images, the rest at 0."""
        up = self.loss > 0
        p, q = self.p.ravel()[up], self.q.ravel()[up]
        rest = 1 - p.sum() - q.sum()
        return Neighbours(np.concatenate([p, q, [rest]]), np.concatenate([q, p, [rest]]))


def worst(pairs: Iterable[Neighbours]) -> Profile:
    """The largest delta of several pairs at every eps: what an adversary who chooses among them reaches."""
    known = list(pairs)
    return lambda eps: np.max([pair.delta(eps) for pair in known], axis=0)
