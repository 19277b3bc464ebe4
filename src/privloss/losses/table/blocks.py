"""Many unequal tables: a few blocks of outcomes, each moved to a grid with both of its masses kept, and convolved.

*Above.* In a block with few enough outcomes they are listed. Each is moved at random to the two ends of its cell of a
grid of width h, in proportions that keep its mass under P and under Q. (1 - e^(eps - v))_+ is convex in e^-v, so no
delta falls.

*Below.* Let eps lie on the grid of the sum of n blocks. Given what was drawn, the sum is moved by h times B - b,
where B is a sum of n independent bits, b in [0, n] a number, and eps lies m cells above the sum of lower ends. With
w_j = P[B_j = 1], mu = E B, the bits keep E e^(-hB) = e^(-hb), so w_j >= b_j and mu >= b. If b >= m the delta of what
was drawn grows by E(e^(h(m-B)) - 1)_+; if b < m by E(1 - e^(h(m-B)))_+, which is at most the same where also mu >= m,
and at most h E(B - m)_+ else. Both are at most h e^(hn) times E(m - B)_+ if mu >= m, E(B - m)_+ if mu <= m. And that
is at most (n/4) P[B = m]:

    E(B - m)_+ <= E[(B - mu); B > m] = sum_j w_j (1 - w_j) P[B - B_j = m] = E[sum over j with B_j = 0 of w_j; B = m].

(The first = holds for every sum of bits: E[(B_j - w_j) f(B)] = w_j (1 - w_j) E[f(B - B_j + 1) - f(B - B_j)].) P[B_j =
0 | B = m] is the smaller the larger w_j is, so by Chebyshev's inequality for sums this is at most P[B = m] (1/n) (sum
w_j) (n - m) <= P[B = m] m (n - m)/n. The case mu >= m is its mirror image. Averaged over what was drawn:

    delta moved - (n/4) h e^(hn) P[sum moved = eps]  <=  delta  <=  delta moved.

Off the grid: delta is convex in e^eps, so it lies above the extension of a chord, and below the chord.

The convolution is cyclic, of masses tilted by e^(cv): what wraps around is made smaller by e^(-cL), L the period, and
only adds. A tilt beyond the saddle makes L short, as long as rounding (`numerics/fourier.py`) allows. Any choice is
sound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.losses.table.halves import shortfalls
from privloss.losses.table.outcomes import Uses, uses
from privloss.losses.table.table import Table
from privloss.numerics.floats import UNIT, Real, exp_up, log_lowered, log_raised, padded_up
from privloss.numerics.fourier import convolved, fast_size, transform_error
from privloss.numerics.work import charge

MOST_GRID_USES = 128
_IN_BLOCK, _MOST_IN_BLOCK = 2**13, 2**15  # outcomes: as intended, at most
_MOST_ENTRIES = 4096  # outcomes of all different uses, taken one by one
_LONGEST, _SHORTEST = 2**20, 2**11  # period, in cells; cells up to eps
_NEAR = 16  # cells over which a density is averaged
_COARSER = 16  # cells of the first look
_SHARE = 3e-10  # of delta that wrapping and rounding may hide, roughly
_STEEPEST = 600.0  # tilt times what eps falls short of the largest loss: e^that is a double
_BELOW = 0.97, 0.75, 0.4  # of the epsilon expected, where the first looks begin
_STEEPER = np.linspace(3.0, 1.0, 21)  # tilts, in units of that of the saddle
_WIDTH = 5.0  # relative width in units of the tolerance
_TINY = 1e-290


@dataclass(frozen=True)
class _Saddle:
    """Roughly: epsilon, log delta, and the tilt at which the loss has its mean there."""

    eps: float
    log_delta: float
    tilt: float


@dataclass(frozen=True)
class _Law:
    """Tilted masses of the moved sum by the cells it falls short of the largest, up to `cells`, which is eps, and a
    few more; times e^(scale + tilt (eps - v)) they are masses."""

    masses: Real
    wrong: float  # Euclidean norm of their error
    units: float  # their relative error
    cells: int
    step: float
    tilt: float
    scale: float
    eps: float
    size: int
    blocks: int

    def about(self, log_delta: float) -> tuple[float, float] | None:
        """Roughly where delta of the moved sum has this logarithm, and the density of the sum there, in units of
        -delta'."""
        back = np.arange(len(self.masses)) - self.cells
        under_p = np.maximum(self.masses, 0.0) * np.exp(self.tilt * self.step * back)
        first, second = np.cumsum(under_p), np.cumsum(under_p * np.exp(self.step * back))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # far below eps nothing is looked for
            second *= np.exp(-self.step * back)  # times e^eps
            found = np.log(first - second) + self.scale
        good = np.flatnonzero(found > log_delta)
        if not len(good) or good[0] == 0 or not np.isfinite(found[good[0] - 1]):
            return None
        k = int(good[0])
        share = (log_delta - found[k - 1]) / (found[k] - found[k - 1])
        density = float(np.mean(under_p[max(k - _NEAR, 0) : k + _NEAR])) / self.step / float(second[k])
        return float(self.eps - self.step * (back[k - 1] + share)), density


@dataclass(frozen=True)
class _Read:
    """Bounds on delta at eps and upper ones at its neighbours on the grid, all times e^-scale."""

    scale: float
    lower: float
    uppers: tuple[float, float, float]  # at eps - h, eps, eps + h


class Blocks:
    """The composition of tables (no densities, no tails left out) with their counts."""

    def __init__(self, rows: Sequence[tuple[Table, int]]) -> None:
        self._rows = rows

    @cached_property
    def _members(self) -> list[Uses]:
        different = {(id(row), n): row for row, n in self._rows}
        known = {key: uses(row, key[1]) for key, row in different.items()}
        return [known[id(row), n] for row, n in self._rows]

    @cached_property
    def _different(self) -> tuple[list[Uses], Real]:
        """The members, and how often each occurs."""
        found = {id(one): one for one in self._members}
        times = Counter(map(id, self._members))
        return list(found.values()), np.array([times[key] for key in found])

    @cached_property
    def _top(self) -> float:
        return math.fsum(float(one.values.max()) for one in self._members)

    @cached_property
    def _off(self) -> float:
        """A bound on the error of any value, of the largest one, and of where the grid lies."""
        size = math.fsum(float(np.abs(one.values).max()) for one in self._members)
        own = math.fsum(one.off for one in self._members)
        return padded_up(UNIT * (own + 16 * (2 + len(self._members)) * (size + 1)), 0.1)

    @cached_property
    def _blocks(self) -> list[list[Uses]] | None:
        """The members, shared out evenly; None if one is too long for any block."""
        logs = [math.log(len(one.values)) for one in self._members]
        least = max(math.ceil(math.fsum(logs) / math.log(_IN_BLOCK)), 2)
        for count in range(least, max(least, len(logs)) + 1):
            found: list[list[Uses]] = [[] for _ in range(count)]
            filled = [0.0] * count
            for log, i in sorted(((log, i) for i, log in enumerate(logs)), reverse=True):
                place = min(range(count), key=lambda k: filled[k])
                filled[place] += log
                found[place].append(self._members[i])
            if max(filled) <= math.log(_MOST_IN_BLOCK):
                return found
        return None

    @cached_property
    def feasible(self) -> bool:
        return sum(len(one.values) for one in self._different[0]) <= _MOST_ENTRIES and self._blocks is not None

    def delta(self, eps: float, tolerance: float) -> tuple[float, float] | None:
        """log of lower and upper bounds on sum m (1 - e^(eps - v))_+; None where this is not the way."""
        rough = _at(self._curve, 0, eps) if self.feasible and eps < self._top - 8 * self._off else None
        if rough is None:
            return None
        step, tilt = self._shape(rough, tolerance)
        finer = 1 / math.sqrt(max(rough.tilt * eps, 1.0))  # delta moves by so much more than epsilon
        law = self._law(rough, max(step * finer, self._period(rough, tilt) / (0.7 * _LONGEST)), tilt)
        if law is None:
            return None
        read = self._read(law)
        if not read.lower > 0:
            return None
        low, high = math.log(read.lower) + read.scale, math.log(read.uppers[1]) + read.scale
        units = 8 * (1 + abs(read.scale))
        return log_lowered(low, units), min(log_raised(high, units), 0.0)

    def epsilon(self, level: tuple[float, float], tolerance: float) -> tuple[float, float] | None:
        """(lower, upper) with delta(upper) <= delta <= delta(lower), delta known by its `level`, an interval of logs;
        None where this is not the way."""
        rough = _at(self._curve, 1, level[0]) if self.feasible else None
        if rough is None or not 0 < rough.eps < self._top - 8 * self._off:
            return None
        step, tilt = self._shape(rough, tolerance)
        found = None
        for share in _BELOW:
            if found is None:
                law = self._law(_Saddle(share * rough.eps, level[0], rough.tilt), _COARSER * step, tilt)
                found = None if law is None else law.about(level[0])
        if found is None or not found[0] > 0:
            return None
        near, density = found
        step = math.sqrt(4 * _wish(near, tolerance) / (len(self._blocks or ()) * max(density, 1e-300)))
        at = _Saddle(near, level[0], rough.tilt)
        law = self._law(at, max(step, self._period(at, tilt) / (0.7 * _LONGEST)), tilt)
        return None if law is None else _ends(self._read(law), near, law.step, level)

    @cached_property
    def _curve(self) -> Real:
        """Rows eps, log delta, tilt: roughly, by the saddle point, for all tilts worth looking at."""
        tilts = np.geomspace(0.02, 2e4, 240) / max(self._top, 1e-300)
        members, times = self._different
        values = np.concatenate([one.values for one in members])
        logs = np.concatenate([one.logs for one in members])
        starts = np.cumsum([0] + [len(one.values) for one in members])[:-1]
        tops = np.maximum.reduceat(values, starts)
        short = np.repeat(tops, np.diff([*starts, len(values)])) - values
        weights = np.exp(logs - tilts[:, None] * short)
        mass = np.add.reduceat(weights, starts, axis=1)
        mean = np.add.reduceat(weights * short, starts, axis=1) / mass
        square = np.add.reduceat(weights * short**2, starts, axis=1) / mass
        missing, variance = mean @ times, (square - mean**2) @ times
        eps = self._top - missing - 1 / tilts - 1 / (tilts + 1)
        curvature = variance + 1 / tilts**2 + 1 / (tilts + 1) ** 2
        size = np.log(mass) @ times
        log_delta = size + tilts * (self._top - eps) - np.log(tilts * (tilts + 1) * np.sqrt(2 * math.pi * curvature))
        return np.array([eps, log_delta, tilts, size])

    def _shape(self, rough: _Saddle, tolerance: float) -> tuple[float, float]:
        """Width of a cell and tilt: for a relative width of epsilon as wished, and the shortest period."""
        count = len(self._blocks or ())
        step = math.sqrt(4 * _wish(rough.eps, tolerance) / (count * (rough.tilt + 1)))
        short = self._top - rough.eps
        step = min(step, short / _SHORTEST)
        tilts = rough.tilt * _STEEPER
        size = np.interp(tilts, self._curve[2], self._curve[3])
        # rounding of a mass, times the weights of all that are added
        seen = (
            math.log(0.3 * transform_error(_LONGEST) * count) - 0.5 * np.log(4 * tilts**3 * step) + tilts * short + size
        )
        fits = seen <= rough.log_delta + math.log(_SHARE)
        tilt = float(tilts[int(np.argmax(fits))]) if np.any(fits) else rough.tilt
        tilt = min(tilt, 0.9 * _STEEPEST / short)
        return max(step, self._period(rough, tilt) / (0.7 * _LONGEST)), tilt

    def _period(self, at: _Saddle, tilt: float) -> float:
        """Long enough for what wraps around to be next to nothing."""
        return max((-at.log_delta - math.log(_SHARE)) / tilt, self._top - at.eps)

    def _law(self, at: _Saddle, step: float, tilt: float) -> _Law | None:
        """The moved law down to eps and a little further, with eps on the grid."""
        blocks = self._blocks or []
        short, more = self._top - at.eps, len(blocks) + 4
        cells = max(math.ceil(short / step), _SHORTEST)
        step = short / cells
        size = fast_size(max(self._period(at, tilt) / step, cells + 2 * more))
        if size > _LONGEST or not tilt * short < _STEEPEST:
            return None
        keys = [tuple(map(id, block)) for block in blocks]
        moved: dict[tuple[int, ...], tuple[Real, float]] = {}  # blocks of the same members are moved once
        most = 0
        for key, block in dict(zip(keys, blocks, strict=True)).items():
            listed = shortfalls(block, (cells + more) * step, 2 * _MOST_IN_BLOCK)
            if listed is None:
                return None
            moved[key] = _moved(*listed, step, tilt)
            most = max(most, len(listed[0]))
        log_size = math.fsum(math.log(moved[key][1]) for key in keys)
        charge(8.0 * size * len(moved) + size * len(blocks))
        law, wrong = convolved([moved[key][0] for key in keys], size)
        units = 64 + most + (len(blocks) + 4) * (8 + 2 * tilt * (cells + more) * step) + abs(log_size)
        above = law[: cells + more]
        return _Law(above, wrong, units, cells, step, tilt, log_size + tilt * short, at.eps, size, len(blocks))

    def _read(self, law: _Law) -> _Read:
        """Bounds on delta at eps, and upper ones beside it."""
        back = np.arange(len(law.masses)) - law.cells
        grow = np.exp(law.tilt * law.step * back)
        units = law.units + math.fsum(one.units + 4 for one in self._members)
        relative = padded_up((units + len(law.masses) / 64) * UNIT, 1e-6)
        mass = float(np.abs(law.masses) @ grow) + law.wrong * float(np.linalg.norm(grow))
        values, doubts = [], []
        for i in (1, 0, -1):  # eps - h, eps, eps + h
            weight = -np.expm1(law.step * np.minimum(back - i, 0.0)) * grow
            values.append(float(law.masses @ weight))
            noise = law.wrong * float(np.linalg.norm(weight))
            doubts.append(padded_up(noise + (relative + 4 * self._off) * mass, 1e-6))
        at_eps = max(float(law.masses[law.cells]), 0.0) + law.wrong
        width = law.blocks * law.step
        gap = padded_up(0.25 * width * math.exp(width) * at_eps, 1e-6 + 2 * relative)
        wrapped = exp_up(min(-law.tilt * law.size * law.step - law.scale, 0.0))
        uppers = [value + doubt + _TINY for value, doubt in zip(values, doubts, strict=True)]
        return _Read(law.scale, values[1] - doubts[1] - gap - wrapped, (uppers[0], uppers[1], uppers[2]))


def _moved(missing: Real, masses: Real, step: float, tilt: float) -> tuple[Real, float]:
    """The tilted law of a block on the grid, made to sum to 1, and its sum before."""
    index = np.floor(missing / step)
    left = np.clip(missing - index * step, 0.0, step)
    stay = np.expm1(left - step) / math.expm1(-step)
    tilted = masses * np.exp(-tilt * step * index)
    places = index.astype(np.int64)
    found = np.zeros(int(places.max()) + 2)
    found[:-1] += np.bincount(places, weights=tilted * stay)
    found[1:] += np.bincount(places, weights=tilted * (1 - stay)) * math.exp(-tilt * step)
    total = float(found.sum())
    return found / total, total


def _ends(read: _Read, eps: float, step: float, level: tuple[float, float]) -> tuple[float, float] | None:
    """Where delta meets the level, in a = e^(x - eps): above, the chord of upper bounds; below, the extension of the
    chord to an upper bound on the other side."""
    before, here, after = read.uppers
    low_level, high_level = (math.exp(min(end - read.scale, 700.0)) for end in level)
    wrong = 8 * UNIT * (1 + abs(read.scale) + abs(level[0]))
    low_level, high_level = low_level * (1 - wrong), high_level * (1 + wrong)
    left, right = -math.expm1(-step), math.expm1(step)
    if not before > low_level >= after or not before > read.lower > after or not read.lower > 0:
        return None
    if here > low_level:
        up = right * (here - low_level) / (here - after)
    else:
        up = -left * (low_level - here) / (before - here)
    if read.lower >= high_level:
        down = left * (read.lower - high_level) / (before - read.lower)
    else:
        down = -right * (high_level - read.lower) / (read.lower - after)
    if not down > -0.5:
        return None
    far = 16 * UNIT * (abs(up) + abs(down) + step) + 4 * UNIT * eps
    return eps + math.log1p(down) - far, eps + math.log1p(up) + far


def _wish(eps: float, tolerance: float) -> float:
    """How wide the interval for epsilon may be."""
    return _WIDTH * max(tolerance, 1e-10) * max(eps, 1e-3)


def _at(curve: Real, row: int, value: float) -> _Saddle | None:
    """Where the rough curve has this eps (row 0) or this log delta (row 1)."""
    known = curve[row] if row == 0 else -curve[row]
    wish = value if row == 0 else -value
    rising = np.maximum.accumulate(known)
    if not rising[0] < wish < rising[-1]:
        return None
    eps, log_delta, tilt, _ = (float(np.interp(wish, rising, one)) for one in curve)
    return _Saddle(value if row == 0 else eps, value if row == 1 else log_delta, tilt)
