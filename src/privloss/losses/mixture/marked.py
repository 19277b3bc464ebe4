"""One kind of step whose outcomes are marked: the sums M_j(z) = E[e^(zZ); mark j] over quadrature nodes.

"Forward" (P against Q) means weights phi r and Z = log r, "backward" (Q against P) weights phi and Z = -log r. Classes
j >= 1 are rare and are summed as they stand. For the bulk, as in `sums.py` and for the same reason,

    M_0(z) = E[e^(zZ) - 1 - zZ; mark 0] + z (E[Z] - E[Z; mark > 0]) + 1 - P[mark > 0]

keeps relative accuracy in M_0 - 1. The last class has no upper window: its nodes end at `top`, and what lies beyond is
an error; it is only ever asked at real points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privloss.losses.mixture.grid import Members, quick_range
from privloss.losses.mixture.law import Law, OneHit
from privloss.losses.mixture.strip import Strips
from privloss.losses.mixture.sums import Mean
from privloss.losses.mixture.tail import Decay
from privloss.losses.mixture.windows import Windows
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.floats import UNIT, Complex, Real
from privloss.numerics.stable import product
from privloss.numerics.work import charge

Index = NDArray[np.intp]

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_FAR = 11.0  # standard deviations at which the nodes of the bulk begin
_PER_WIDTH = 4.5  # nodes to a window's width
_FINER = 1.5
_MOST_NODES = 60_000
_MOST_PRODUCTS = 40
_PAIRWISE = 32  # roundings of a sum by pairs
_DEGREE = 20  # of the polynomial for |zZ| < 1; 2/21! < 1e-19 of the leading term is left out
_FACTORIALS = np.cumprod(np.arange(1.0, _DEGREE + 1))[1:]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of one class."""

    spacing: float
    log_mass: Real  # log of phi h w_j: the Q-mass of a node
    log_r: Real
    slack: Real  # relative roundings of the mass
    drift: Real  # absolute roundings of log r: its own, and p |y|/sigma^2 for those of the node

    @classmethod
    def joined(cls, parts: list[Nodes]) -> Nodes:
        arrays = ([getattr(p, name) for p in parts] for name in ("log_mass", "log_r", "slack", "drift"))
        return cls(math.nan, *(np.concatenate(each) for each in arrays))


@dataclass(frozen=True)
class Sums:
    """Complex values at the heights of a line, and absolute errors."""

    value: Complex
    error: Real

    def plus(self, other: Sums) -> Sums:
        rounding = 4 * UNIT * (np.abs(self.value) + np.abs(other.value))
        return Sums(self.value + other.value, self.error + other.error + rounding)


@dataclass(frozen=True)
class Above:
    """P[mark = j] of each class j >= 1 with its error, and E[Z; mark > 0] with its error."""

    masses: Real
    errors: Real
    mean: float
    mean_error: float


class BulkDecay(Protocol):
    """How far the bulk has fallen."""

    def log_upper(self, t: float) -> Real:
        """An upper bound (<= 0) on log |M_0(c + iu)| - log M_0(c) for all u >= t, in an array of one."""


@dataclass(frozen=True, eq=False)
class MarkedStep:
    """`means` are E[Z] forward and backward, `top` is where the nodes of the last class end."""

    rate: float
    sigma: float
    windows: Windows
    means: tuple[Mean, Mean]
    top: float
    fineness: int = 0
    _made_for: dict[int, Nodes] = field(default_factory=dict, repr=False)
    _joined: dict[int, Nodes] = field(default_factory=dict, repr=False)
    _some: dict[int, Nodes] = field(default_factory=dict, repr=False)
    _above: dict[bool, Above] = field(default_factory=dict, repr=False)
    _bulk: dict[bool, tuple[Real, Real, Real, Real]] = field(default_factory=dict, repr=False)

    @property
    def last(self) -> int:
        return self.windows.count

    @property
    def law(self) -> Law:
        return OneHit(self.rate, self.sigma)

    @property
    def one_sided(self) -> bool:
        """Whether losses are large in one direction only."""
        return True

    def finer(self) -> MarkedStep:
        """The same with more nodes."""
        step = MarkedStep(self.rate, self.sigma, self.windows, self.means, self.top, self.fineness + 1)
        step.__dict__.update(bulk_strip=self.bulk_strip, rare_strips=self.rare_strips)
        step._above.update({backward: self.above_bulk(backward) for backward in (False, True)})  # good enough
        return step

    def span(self, j: int) -> tuple[float, float]:
        """The outcomes of class j that carry nodes."""
        low = self.windows.start(j) if j else -_FAR * self.sigma
        return low, min(self.windows.end(j), self.top)

    @cached_property
    def bulk_strip(self) -> Strips:
        return Strips.of(self.law, self.windows, [(0, *self.span(0))])

    @cached_property
    def rare_strips(self) -> Strips:
        """Class j is entry j - 1."""
        return Strips.of(self.law, self.windows, [(j, *self.span(j)) for j in range(1, self.last + 1)])

    @cached_property
    def nodes(self) -> list[Nodes]:
        return [self.of(j) for j in range(self.last + 1)]

    def of(self, j: int) -> Nodes:
        """The nodes of class j."""
        if j not in self._made_for:
            self._made_for[j] = self._made(j)
        return self._made_for[j]

    def spacing(self, j: int) -> float:
        width = float(self.windows.width[max(j - 1, 0) : j + 1].min())
        return min(width / _PER_WIDTH, 0.25 * self.sigma) / _FINER**self.fineness

    @cached_property
    def spacings(self) -> Real:
        """Of the rare classes."""
        return np.array([self.spacing(j) for j in range(1, self.last + 1)])

    @cached_property
    def starts(self) -> Index:
        """Where the nodes of each rare class begin among all of them."""
        return np.cumsum([0, *(len(nodes.log_r) for nodes in self.nodes[1:-1])])

    def bulk_nodes(self, backward: bool) -> tuple[Real, Real, Real, Real]:
        """Z, the log of the weights, the weights of the bulk and their roundings."""
        if backward not in self._bulk:
            z, log_weight, slack = _turned_to(self.of(0), backward)
            self._bulk[backward] = z, log_weight, np.exp(log_weight), slack
        return self._bulk[backward]

    def joined(self, j: int) -> Nodes:
        """The nodes of classes 1 to j together."""
        if j not in self._joined:
            self._joined[j] = Nodes.joined([self.of(i) for i in range(1, j + 1)])
        return self._joined[j]

    def some_below(self, j: int) -> Nodes:
        """Some of the nodes below class j, or of the bulk, with the weight of all: for searching only."""
        if j not in self._some:
            few = [self._thinned(i, max(len(self.nodes[i].log_r) // (40 if i else 200), 1)) for i in range(max(j, 1))]
            self._some[j] = Nodes.joined(few)
        return self._some[j]

    def _thinned(self, j: int, every: int) -> Nodes:
        nodes, part = self.nodes[j], slice(every // 2, None, every)
        log_mass = nodes.log_mass[part] + math.log(every)
        return Nodes(math.nan, log_mass, nodes.log_r[part], nodes.slack[part], nodes.drift[part])

    def _made(self, j: int) -> Nodes:
        (low, high), spacing = self.span(j), self.spacing(j)
        size = math.ceil((high - low) / spacing)
        if not 0 < size <= _MOST_NODES:
            raise TooExpensive(f"{size} quadrature nodes")
        y = high - spacing * (np.arange(size) + 0.5)
        log_r = self.law.log_ratio(y)
        squared = (y / self.sigma) ** 2
        log_mass = self.windows.log_weights(j, y) - 0.5 * squared + (math.log(spacing / self.sigma) - _LOG_SQRT_2PI)
        drift = self.law.drift(y, log_r)
        return Nodes(spacing, log_mass, log_r, 32 + 3 * squared + self.windows.slack(j, y), drift)

    def log_beyond(self, power: float) -> float:
        """log of a bound on E_Q[r^power; y > top] for power <= 1."""
        return self.law.log_beyond(self.top, power)

    def bulk_decay(self, c: float, backward: bool) -> BulkDecay:
        rows = Members(np.array([self.rate]), np.array([self.sigma]), np.array([c]), backward)
        return Decay.on(rows, quick_range(rows)[0], np.array([self.span(0)[1]]), self.windows)

    def above_bulk(self, backward: bool) -> Above:
        if backward not in self._above:
            self._above[backward] = self._summed_above(backward)
        return self._above[backward]

    def _summed_above(self, backward: bool) -> Above:
        power = 0.0 if backward else 1.0
        missed = np.exp(self.rare_strips.log_missed(power, 0.0, self.spacings))
        missed_mean = np.exp(self.rare_strips.log_missed_mean(power, self.spacings))
        nodes = self.joined(self.last)
        weight = np.exp(nodes.log_mass + power * nodes.log_r)
        slack = nodes.slack + power * nodes.drift
        masses = np.array([each.sum() for each in np.split(weight, self.starts[1:])])
        errors = UNIT * np.add.reduceat(weight * (slack + _PAIRWISE), self.starts)
        mean = float(weight @ nodes.log_r)
        mean_error = UNIT * float(weight @ (np.abs(nodes.log_r) * (slack + len(weight)) + nodes.drift))
        beyond = math.exp(self.log_beyond(power))
        found = errors + missed
        found[-1] += beyond
        # E[y; y > top] <= (top + sigma) P[y > top] for a normal law, and log r <= s <= y/sigma^2
        mean_error += float(missed_mean.sum()) + 8 * UNIT * abs(mean) + beyond * (self.top + self.sigma) / self.sigma**2
        return Above(masses, found, -mean if backward else mean, mean_error)


@dataclass(frozen=True, eq=False)
class MarkedLine:
    """One kind of step on Re z = c, forward or backward, at equally spaced heights from 0 on."""

    step: MarkedStep
    c: float
    backward: bool
    t: Real

    @property
    def power(self) -> float:
        """Of r, in the integrand at height 0."""
        return -self.c if self.backward else self.c + 1

    @cached_property
    def _missed(self) -> Real:
        """Quadrature errors of the rare classes."""
        logs = self.step.rare_strips.log_missed(self.power, float(self.t[-1]), self.step.spacings)
        return np.exp(np.minimum(logs, 700.0))

    def bulk(self) -> Sums:
        """M_0 - 1."""
        step, nodes, t = self.step, self.step.of(0), self.t
        z, log_weight, weights, slack = step.bulk_nodes(self.backward)
        point = self.c + 1j * t
        size = np.abs(point)
        if len(t) == 1:
            rest, rounding = _real_rest(weights, z, slack, nodes.drift, self.c)
        else:
            light = np.abs(z) * size[-1] < 1.0
            rest, rounding = _light(weights[light], z[light], slack[light], nodes.drift[light], point, size)
        if len(t) > 1 and not np.all(light):
            heavy = ~light
            weight = weights[heavy]
            grown, error = turned(log_weight[heavy], z[heavy], slack[heavy], nodes.drift[heavy], self.c, t)
            rest = rest + (grown - weight.sum() - point * (weight @ z[heavy]))
            flat = UNIT * float(weight @ (slack[heavy] + _PAIRWISE))
            slope = UNIT * float(weight @ (np.abs(z[heavy]) * (slack[heavy] + len(weight)) + nodes.drift[heavy]))
            rounding = rounding + error + flat + size * slope
        mean, above = step.means[self.backward], step.above_bulk(self.backward)
        mass, drawn = float(above.masses.sum()), float(mean.value[0]) - above.mean
        value = np.asarray(rest + point * drawn - mass, dtype=complex)
        missed = step.bulk_strip.log_missed_rest(self.c, self.backward, float(t[-1]), np.array([nodes.spacing]))
        slope = float(mean.error[0]) + above.mean_error + 8 * UNIT * (abs(drawn) + abs(above.mean))
        error = rounding + math.exp(min(float(missed[0]), 700.0)) + size * slope + float(above.errors.sum())
        return Sums(value, error + 8 * UNIT * (np.abs(rest) + size * abs(drawn) + mass))

    def up_to(self, j: int) -> Sums:
        """M_1 + ... + M_j."""
        if not j:
            return Sums(np.zeros(len(self.t), dtype=complex), np.zeros(len(self.t)))
        return self._summed(self.step.joined(j), float(self._missed[:j].sum()))

    def rare(self, j: int) -> Sums:
        """M_j for j >= 1; the last class only at t = 0."""
        missed = float(self._missed[j - 1])
        if j == self.step.last:
            missed += math.exp(self.step.log_beyond(self.power)) if self.power <= 1 else math.inf
        return self._summed(self.step.of(j), missed)

    def rares(self) -> tuple[Real, Real]:
        """M_j of all classes j >= 1 at height 0, and their errors."""
        nodes, starts = self.step.joined(self.step.last), self.step.starts
        z, log_weight, slack = _turned_to(nodes, self.backward)
        exponent = log_weight + self.c * z
        with np.errstate(over="ignore"):  # beyond the range of doubles: nothing is known
            tilted = np.exp(exponent)
        roundings = tilted * (slack + (len(z) + 32) + 4 * np.abs(exponent) + self.c * nodes.drift)
        error = UNIT * np.add.reduceat(roundings, starts) + self._missed
        error[-1] += math.exp(self.step.log_beyond(self.power)) if self.power <= 1 else math.inf
        return np.add.reduceat(tilted, starts), error

    def _summed(self, nodes: Nodes, missed: float) -> Sums:
        z, log_weight, slack = _turned_to(nodes, self.backward)
        value, error = turned(log_weight, z, slack, nodes.drift, self.c, self.t)
        return Sums(value, error + missed)


def _turned_to(nodes: Nodes, backward: bool) -> tuple[Real, Real, Real]:
    """Z, the log of the weights, and their relative roundings: forward, log r is a part of them."""
    if backward:
        return -nodes.log_r, nodes.log_mass, nodes.slack
    return nodes.log_r, nodes.log_mass + nodes.log_r, nodes.slack + nodes.drift


def _real_rest(weight: Real, z: Real, slack: Real, drift: Real, c: float) -> tuple[Complex, Real]:
    """The sum of weight (e^(cZ) - 1 - cZ), and its rounding: |e^u - 1 - u| <= u^2/2 max(1, e^u) and
    |e^u - 1| <= |u| max(1, e^u), which bounds what the difference of e^u - 1 and u loses."""
    u = c * z
    grown = np.expm1(np.minimum(u, 700.0))
    value = float((weight * (grown - u)).sum())
    size = np.abs(u)
    most = weight * size * (1 + np.maximum(grown, 0.0))
    error = UNIT * float(most @ (0.5 * size * (slack + 160) + (c * drift + 8)))
    return np.array([complex(value)]), np.array([error])


def _light(weight: Real, z: Real, slack: Real, drift: Real, point: Complex, size: Real) -> tuple[Complex, Real]:
    """The sum of weight (e^(zZ) - 1 - zZ) over nodes with |zZ| < 1, by powers of z, and its rounding: with
    |e^u - 1 - u| <= e |u|^2/2 and |e^u - 1| <= e |u|."""
    second = weight * z * z
    powers = np.empty((_DEGREE - 1, len(z)))
    powers[0], powers[1:] = second, z
    moments = np.multiply.accumulate(powers, axis=0).sum(axis=1) / _FACTORIALS
    value = np.zeros_like(point)
    for moment in moments[::-1]:
        value = value * point + moment
    error = 2.72 * size**2 * float(0.5 * second @ (slack + 96) + (weight * np.abs(z)) @ drift)
    return value * point * point, UNIT * error


def turned(log_weight: Real, z: Real, slack: Real, drift: Real, c: float, t: Real) -> tuple[Complex, Real]:
    """The sum of weight e^((c+it)Z) as a product of two small tables, and its rounding."""
    exponent = log_weight + c * z
    with np.errstate(over="ignore"):  # beyond the range of doubles: nothing is known
        tilted = np.exp(exponent)
    flat = float(tilted @ (slack + len(z) + 32 + 4 * np.abs(exponent)))
    if len(t) == 1:
        slope = float(tilted @ drift)
        return np.array([tilted.sum() + 0j]), UNIT * np.array([flat + c * slope])
    charge(len(z) * (2 * math.sqrt(len(t)) + len(t) / 20))
    block = max(1, math.isqrt(len(t)))
    rows = -(-len(t) // block)
    width = float(t[1] - t[0])
    first, second = _turns(block * width * z, rows), _turns(width * z, block)
    value = product(tilted * first, second.T).reshape(-1)[: len(t)]
    flat += 8 * (rows + block) * float(tilted.sum())
    slope = float(tilted @ (drift + 8 * np.abs(z)))
    return value, UNIT * (flat + np.hypot(c, t) * slope)


def _turns(angle: Real, count: int) -> Complex:
    """e^(ik angle) for k < count: products of one, each with a few roundings more, or each by itself where they are
    many."""
    if count > _MOST_PRODUCTS:
        return np.asarray(np.exp(1j * np.multiply.outer(np.arange(count), angle)))
    turns = np.empty((count, len(angle)), dtype=complex)
    turns[0], turns[1:] = 1.0, np.cos(angle) + 1j * np.sin(angle)
    return np.asarray(np.multiply.accumulate(turns, axis=0))
