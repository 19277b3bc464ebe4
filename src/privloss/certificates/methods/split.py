"""Few hits of unequal size: delta as a sum over classes of the largest loss, each read on a line of its own
(docs/certificates.md, section 15).

S_j(z) is the transform of one step whose outcome passes the windows j, j + 1, ... (all outcomes for the last j), M_j =
S_j - S_(j-1). A product over steps is the sum over j of T_j = prod S_j^n - prod S_(j-1)^n, transforms of positive
measures. Class j adds E[(1 - e^(x-Z))+] of its measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

from flint import acb, acb_mat, arb

from privloss.certificates.balls import MOST_NODES, Rejected, Use, given, need, powers, whole
from privloss.certificates.budget import charge
from privloss.certificates.methods.bounds import DeltaBounds, Enclosure, part
from privloss.certificates.methods.chernoff import chernoff
from privloss.certificates.pairs.base import Steps
from privloss.certificates.pairs.marked import Marked, Part, Side

Kind = tuple[Part | None, Part, int]  # S_(j-1), M_j, and how often the step is used
FORWARD, BACKWARD, RESIDUES, NEGLIGIBLE = "forward", "backward", "residues", "negligible"


def by_split(steps: Steps, use: Use) -> DeltaBounds:
    """All classes; their number is that of the windows, and one more."""
    kinds = [(Marked(pair, part(use, index)), times) for index, (pair, times) in enumerate(steps)]
    classes, size = use.get("classes"), len(kinds[0][0].centres)
    alike = all(len(m.centres) == size and m.reversed == kinds[0][0].reversed for m, _ in kinds)
    need(alike, "split: every step needs as many windows, and the same direction")
    if not isinstance(classes, list) or len(classes) != size + 1:
        raise Rejected(f"split: {size} windows make {size + 1} classes")
    need(all(isinstance(one, dict) for one in classes), "split: a class must be an object")
    groups = [Class(kinds, j, one) for j, one in enumerate(classes)]
    readers = [group.reader() for group in groups]

    def read(x: arb) -> Enclosure:
        both = [reader(x) for reader in readers]
        return sum((low for low, _ in both), arb(0)), sum((high for _, high in both), arb(0))

    return read


class Class:
    """The measure of all outcomes whose largest mark is j."""

    def __init__(self, kinds: list[tuple[Marked, int]], j: int, use: Use) -> None:
        self.use, self.kinds, self.reversed = use, list[Kind](), kinds[0][0].reversed
        for index, (marked, times) in enumerate(kinds):
            mine = part(use, index)
            below = Part(marked, j - 1, None, _object(mine, "below")) if j else None
            self.kinds.append((below, Part(marked, j, j - 1 if j else None, _object(mine, "own")), times))

    @cached_property
    def count(self) -> int:
        return whole(self.use, "N", MOST_NODES) if self.use.get("read") in (FORWARD, BACKWARD) else 0

    def values(self, side: Side, step: arb, count: int) -> list[acb]:
        """T_j at c + i n step."""
        lines = [
            (below.line(side, step, count) if below else [acb(0)] * (count + 1), own.line(side, step, count), times)
            for below, own, times in self.kinds
        ]
        return [_difference([(below[n], own[n], times) for below, own, times in lines]) for n in range(count + 1)]

    def side(self, c: arb, backward: bool) -> Side:
        return Side(backward != self.reversed, c)

    def value(self, c: arb, backward: bool = False) -> arb:
        return self.values(self.side(c, backward), arb(0), 0)[0].real

    def beyond(self, side: Side, t: arb) -> arb:
        """At least |T_j(c + iu)| for every u >= t: T_j rises with |S_(j-1)| and |M_j|."""
        bounds = []
        for below, own, times in self.kinds:
            sizes = [p.fallen(side, t, p.line(side, arb(0), 0)[0].real) if p else arb(0) for p in (below, own)]
            bounds.append((acb(sizes[0].upper()), acb(sizes[1].upper()), times))
        return _difference(bounds).real

    def reader(self) -> DeltaBounds:
        kind = self.use.get("read")
        makers: dict[object, Callable[[], DeltaBounds]] = {
            NEGLIGIBLE: self._negligible,
            RESIDUES: self._residues,
            FORWARD: lambda: self._line(False),
            BACKWARD: self._backward,
        }
        if not isinstance(kind, str) or kind not in makers:
            raise Rejected(f"split: read = {kind!r} must be one of {', '.join(map(str, makers))}")
        return makers[kind]()

    def _negligible(self) -> DeltaBounds:
        bound = self._chernoff("c", False)
        return lambda x: (arb(0), bound(x))

    def _chernoff(self, name: str, backward: bool) -> Callable[[arb], arb]:
        """A Chernoff bound; at c = 0 the mass."""
        c = given(self.use, name, -1.0)
        need(bool(c >= 0), f"parameter {name} must not be negative")
        mgf = self.value(c, backward)
        return lambda x: chernoff(c, mgf, x) if c > 0 else mgf

    def _residues(self) -> DeltaBounds:
        """(1 - e^(x-Z))+ = 1 - e^(x-Z) + e^(x-Z) (1 - e^(Z-x))+, the last bounded."""
        bound, residues = self._chernoff("c", True), self._both_residues()

        def read(x: arb) -> Enclosure:
            at = residues(x)
            return at, at + x.exp() * bound(-x)

        return read

    def _both_residues(self) -> Callable[[arb], arb]:
        here, there = self.value(arb(0)), self.value(arb(0), True)
        return lambda x: here - x.exp() * there

    def _backward(self) -> DeltaBounds:
        """The same, the last read on a line: the loss of the reversed measure is -Z."""
        line, residues = self._line(True), self._both_residues()

        def read(x: arb) -> Enclosure:
            low, high = line(-x)
            return residues(x) + x.exp() * low, residues(x) + x.exp() * high

        return read

    def _line(self, backward: bool) -> DeltaBounds:
        c, length, count = given(self.use, "c"), given(self.use, "L"), self.count
        side, step = self.side(c, backward), 2 * arb.pi() / length
        charge(6 * count * len(self.kinds))
        shifts = (acb(c, n * step) for n in range(count + 1))
        weighted = [w / (z * (z + 1)) for w, z in zip(self.values(side, step, count), shifts, strict=True)]
        weighted[0] /= 2
        beyond = self.beyond(side, step * count)
        alias = self._images(c, length, backward)
        width = math.isqrt(count) + 1
        rows = count // width + 1
        weighted += [acb(0)] * (width * rows - len(weighted))
        table = acb_mat([weighted[k * width : (k + 1) * width] for k in range(rows)])

        def read(x: arb) -> Enclosure:
            charge(2 * count + 2 * width)
            turns = powers([acb(0, -x * step).exp()], width + 1)
            jumps = powers(turns.pop(), rows)
            total = (acb_mat([[jump[0] for jump in jumps]]) * (table * acb_mat(turns)))[0, 0].real
            scale = (-c * x).exp() / arb.pi()
            at, cut = total * step * scale, beyond * scale / (step * count)
            return at - cut - alias(x), at + cut

        return read

    def _images(self, c: arb, length: arb, backward: bool) -> Callable[[arb], arb]:
        """What the images f(x + kL) e^(ckL), k != 0, add at most: Chernoff bounds on either side of c."""
        left, right = given(self.use, "left", -1.0), given(self.use, "right")
        need(bool(left >= 0) and bool(left < c) and bool(c < right), "split: c must lie between left and right")
        before, after = self._chernoff("left", backward), self._chernoff("right", backward)
        shares = ((c - left) * length).exp() - 1, ((right - c) * length).exp() - 1
        return lambda x: before(x) / shares[0] + after(x) / shares[1]


def _difference(terms: list[tuple[acb, acb, int]]) -> acb:
    """prod (s + m)^n - prod s^n; where all m/s are small, as prod s^n times e^B - 1."""
    base, whole_product, rise = acb(1), acb(1), acb(0)
    small = all(abs(m) < abs(s) / 2 for s, m, _ in terms)
    for s, m, times in terms:
        base *= s**times
        if small:
            rise += times * (m / s).log1p()
        else:
            whole_product *= (s + m) ** times
    return base * rise.expm1() if small else whole_product - base


def _object(use: Use, name: str) -> Use:
    found = use.get(name)
    if not isinstance(found, dict):
        raise Rejected(f"split: {name} must be an object")
    return found
