"""Bundles of steps with several hits: groups on a Poisson sample, Gaussian mixtures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privloss.losses.base import Concentration, PrivacyLoss
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.mixture.marked import MarkedLine
from privloss.losses.mixture.search import SearchNodes
from privloss.losses.mixture.sums import Mean
from privloss.losses.mixture.tail import Decay
from privloss.losses.several.fall import SeveralDecay
from privloss.losses.several.hits import SeveralHits
from privloss.losses.several.one import one_use
from privloss.losses.several.rare import SeveralRare
from privloss.losses.several.step import NO_WINDOWS, SeveralStep, mean_losses
from privloss.numerics.contour.transform import LineValues, RareLosses, TooExpensive
from privloss.numerics.floats import UNIT, Real, lowered, padded_up, raised
from privloss.numerics.stable import log1p_polar

_MOST_KINDS = 40  # of steps in a plan that are split by the largest loss
_MOST_NODES = 1_000_000
_FINER = 6  # attempts with more nodes
_FAR, _PEAK = 11.0, 10.0  # standard deviations that nodes reach below 0, and beyond the peak of the tilted outcome
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class SeveralHitsLoss(PrivacyLoss):
    """Laws with counts; `flipped` is Q against P."""

    place = 1
    pointwise = False  # equally spaced heights factor
    laws: tuple[SeveralHits, ...]
    count: Real
    flipped: bool = False
    _searched: dict[int, list[SearchNodes]] = field(default_factory=dict, repr=False)  # by the log of the largest tilt

    @classmethod
    def one(cls, law: SeveralHits) -> SeveralHitsLoss:
        """A single step."""
        return cls((law,), np.ones(1))

    def times(self, count: int) -> SeveralHitsLoss:
        return SeveralHitsLoss(self.laws, count * self.count, self.flipped)

    @classmethod
    def merged(cls, parts: Sequence[SeveralHitsLoss]) -> Sequence[SeveralHitsLoss]:
        found = []
        for flipped in (False, True):
            same = [p for p in parts if p.flipped == flipped]
            if same:
                laws = tuple(law for p in same for law in p.laws)
                found.append(cls(laws, np.concatenate([p.count for p in same]), flipped))
        return found

    def reversed(self) -> SeveralHitsLoss:
        other = SeveralHitsLoss(self.laws, self.count, not self.flipped)
        if "means" in self.__dict__:  # both directions were found together
            other.__dict__["means"] = self.means
        return other

    @property
    def kinds(self) -> int:
        return len(self.laws)

    @property
    def solved_by_closed_form(self) -> bool:
        return bool(self.count.sum() == 1)

    @property
    def largest(self) -> float:
        """Q against P: Z = -log r < -log p_0."""
        return raised(self._largest_back, 8 + len(self.laws)) if self.flipped else math.inf

    @property
    def largest_lower(self) -> float:
        return lowered(self._largest_back, 8 + len(self.laws)) if self.flipped else math.inf

    @property
    def _largest_back(self) -> float:
        return -math.fsum(float(n) * law.log_least for law, n in zip(self.laws, self.count, strict=True))

    def concentration(self) -> Concentration:
        """1/(2 sigma^2) each, in the limit t -> inf: E[r^(t+1)] <= sum p_k e^(t(t+1) a_k^2/2sigma^2) by convexity, a_k
        at most 1, and at least p_K^(t+1) e^(t(t+1)/2sigma^2); backward likewise (joint convexity)."""
        sigma = np.array([law.sigma for law in self.laws])
        return Concentration(limit=float((0.5 * self.count / sigma**2).sum()))

    def unsampled(self) -> GaussianLoss:
        sigma = np.array([law.sigma for law in self.laws])
        return GaussianLoss(raised(float((self.count / sigma**2).sum()), 8 + len(self.laws)))

    def rare_losses(self, rest: PrivacyLoss | None) -> RareLosses | None:
        if len(self.laws) > _MOST_KINDS:
            return None
        return SeveralRare(self.laws, self.count, self.means, rest, self.flipped)

    @cached_property
    def means(self) -> tuple[tuple[Mean, Mean], ...]:
        """Of each law, forward and backward."""
        return tuple(mean_losses(law) for law in self.laws)

    def mean_bounds(self) -> tuple[float, float]:
        own = [pair[self.flipped] for pair in self.means]
        each = [
            (float(n) * float(m.value[0]), float(n) * float(m.error[0])) for n, m in zip(self.count, own, strict=True)
        ]
        mean, slack = math.fsum(m for m, _ in each), math.fsum(e for _, e in each)
        slack += (16 + len(each)) * UNIT * math.fsum(abs(m) for m, _ in each)
        return mean - slack, mean + slack

    def moments(self, c: float) -> tuple[float, float, float]:
        own = [pair[self.flipped] for pair in self.means]
        if c == 0:
            first = math.fsum(float(n * m.value[0]) for n, m in zip(self.count, own, strict=True))
            return 0.0, first, math.fsum(float(n * m.variance[0]) for n, m in zip(self.count, own, strict=True))
        reach = math.ceil(math.log2(c))
        if reach not in self._searched:
            self._searched[reach] = [_search_nodes(law, 2.0**reach, self.flipped) for law in self.laws]
        totals = np.zeros(3)
        for nodes, n, mean in zip(self._searched[reach], self.count, own, strict=True):
            totals += float(n) * np.array([float(x[0]) for x in nodes.moments(c, mean.value)])
        return float(totals[0]), float(totals[1]), float(totals[2])

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self, c)

    def log_mgf_upper(self, c: Real) -> Real:
        found = []
        for point in c:
            at = self.vertical(float(point)).line(np.zeros(1), 1e-14)
            found.append(float(at.log_modulus[0] + at.error[0]))
        return np.array(found)

    def log_mgf_simple_upper(self, c: Real) -> Real:
        """The smaller of two bounds: K(c) <= log sum p_k e^(c(c+1) a_k^2/2sigma^2), the terms of a mixture apart
        (joint convexity, in both directions); forward also (c+1) log sum p_k e^(c a_k^2/2sigma^2) by Minkowski's
        inequality."""
        total = np.zeros_like(c)
        for law, n in zip(self.laws, self.count, strict=True):
            squares = 0.5 * (np.array(law.shifts) / law.sigma)[:, None] ** 2
            logs = np.log(np.array(law.weights))[:, None]
            apart = np.logaddexp(law.log_least, np.logaddexp.reduce(logs + c * (c + 1) * squares, axis=0))
            if not self.flipped:
                whole = (c + 1) * np.logaddexp(law.log_least, np.logaddexp.reduce(logs + c * squares, axis=0))
                apart = np.minimum(apart, whole)
            total += float(n) * padded_up(apart, 1e-12, 1 + np.abs(apart))
        return np.asarray(raised(total, 4 + len(self.laws)))

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        return one_use(self.laws[0], eps, self.flipped) if self.count.sum() == 1 else None

    def weakest(self) -> SeveralHitsLoss:
        best = max(self.laws, key=lambda law: law.rate / law.sigma)
        return SeveralHitsLoss((best,), np.ones(1), self.flipped)


def _top(law: SeveralHits, power: float) -> float:
    """Where nodes end: well beyond the largest solution of y = power h(y), approached from above."""
    y = max(power, 1.0)
    for _ in range(4):
        at = np.array([y])
        y = max(power * float(law.slope(at, law.log_ratio(at))[0]), 1.0)
    return y + _PEAK * law.sigma + 1.0 * law.sigma**2


def _search_nodes(law: SeveralHits, c: float, flipped: bool) -> SearchNodes:
    """For searching only."""
    low, high = -9.0 * law.sigma, _top(law, 0.0 if flipped else c + 1)
    size = int((high - low) / min(0.4 * law.sigma, 0.3 * law.sigma**2 / max(law.shifts[0], 0.3))) + 2
    if size > _MOST_NODES:
        raise TooExpensive(f"{size} quadrature nodes")
    y = np.linspace(low, high, size)
    log_r = law.log_ratio(y)
    log_phi = math.log((y[1] - y[0]) / law.sigma) - _LOG_SQRT_2PI - 0.5 * (y / law.sigma) ** 2
    z, log_weight = (-log_r, log_phi) if flipped else (log_r, log_phi + log_r)
    return SearchNodes(z[None], log_weight[None], np.exp(log_weight)[None])


@dataclass(frozen=True, eq=False)
class _Vertical:
    """exp K on Re z = c: every step as a bulk without windows."""

    loss: SeveralHitsLoss
    c: float

    @cached_property
    def _steps(self) -> list[SeveralStep]:
        """As many nodes as the first line that was asked for needs, or more."""
        power = -self.c if self.loss.flipped else self.c + 1
        return [
            SeveralStep.marked(law, NO_WINDOWS, means, _top(law, power))
            for law, means in zip(self.loss.laws, self.loss.means, strict=True)
        ]

    @cached_property
    def _decays(self) -> list[Decay]:
        found = []
        for i, (law, step) in enumerate(zip(self.loss.laws, self._steps, strict=True)):
            decay = SeveralDecay.of(law, self.c, self.loss.flipped, (-9.0 * law.sigma, step.top), None)
            if not np.all(np.isfinite(decay.total_up)):
                modulus, _, error = self._one(i, np.zeros(1), 1e-8)
                decay = decay.with_total(modulus + error)
            found.append(decay)
        return found

    def decay(self, t: float) -> float:
        each = [float(n) * float(d.log_upper(t)[0]) for d, n in zip(self._decays, self.loss.count, strict=True)]
        return math.fsum(each)

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        return np.zeros(count)  # no claim: lines of mixtures are not sparse

    def line(self, t: Real, goal: float) -> LineValues:
        if len(t) == 1 and t[0] > 0:  # heights are equally spaced from 0 on
            found = self.line(np.array([0.0, float(t[0])]), goal)
            return LineValues(found.log_modulus[1:], found.phase[1:], found.error[1:])
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for i, n in enumerate(self.loss.count):
            re, im, off = self._one(i, t, goal / (float(n) * len(self.loss.laws)))
            modulus, phase = modulus + n * re, phase + n * im
            error = error + n * off + (8 + len(self.loss.laws)) * UNIT * n * (np.abs(re) + np.abs(im))
        return LineValues(modulus, phase, error)

    def _one(self, i: int, t: Real, goal: float) -> tuple[Real, Real, Real]:
        """Re K, Im K and the error of one use: nodes are made finer until the strip is as good as that, or as the
        leading digits of M - 1."""
        step = self._steps[i]
        flipped, height = self.loss.flipped, float(t[-1])
        mean = step.means[flipped]
        about = 0.5 * self.c * (self.c + 1) * float(mean.variance[0])
        enough = math.log(max(goal, 1e-16 * about, 1e-300))
        for _ in range(_FINER):
            if step.bulk_strip.log_missed_rest(self.c, flipped, height, np.array([step.spacing(0)]))[0] < enough:
                break
            step = step.finer()
        self._steps[i] = step
        bulk = MarkedLine(step, self.c, flipped, t).bulk()
        point = np.hypot(self.c, t)
        off = bulk.error + self._beyond(step, point)
        re, im = log1p_polar(bulk.value.real, bulk.value.imag)
        re = np.maximum(re, -600.0)  # an exact zero must not hide its error
        with np.errstate(over="ignore", invalid="ignore"):
            relative = np.log1p(off * np.exp(-re))
        return re, im, np.where(np.isnan(relative), np.inf, relative)

    def _beyond(self, step: SeveralStep, size: Real) -> Real:
        """E[|e^(zZ) - 1 - zZ|] beyond the nodes, where r >= 1: forward at most 2 r^(c+1) + |z| r log r under Q,
        backward 2 + |z| log r; log r <= y/sigma^2, and E[y; y > top] <= (top + sigma) P[y > top]."""
        law, top = step.law, step.top
        power = 0.0 if self.loss.flipped else self.c + 1
        slope = math.exp(law.log_beyond(top, min(power, 1.0))) * (top + law.sigma) / law.sigma**2
        grown = law.log_beyond(top, power)
        return 2 * (math.exp(grown) if grown < 700 else math.inf) + size * slope
