"""Composition is addition of K (Thm. privloss_composition); 1 - delta_inf multiplies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.table.apart import apart
from privloss.losses.table.blocks import MOST_GRID_USES, Blocks
from privloss.losses.table.few import MOST_FEW_USES, FewOnGrid
from privloss.losses.table.halves import MOST_LATTICE_USES, MOST_OWN, MOST_USES, Halves, shares
from privloss.losses.table.lattice import common_lattice
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.mean import MOST_MEANS, MeanOverOutcomes
from privloss.losses.table.outcomes import FEW_OUTCOMES, MOST_OUTCOMES, outcomes, whole
from privloss.losses.table.table import Table
from privloss.numerics.contour.reading import Reading
from privloss.numerics.contour.transform import Apart, Lattice, LineValues, RareLosses, Vertical
from privloss.numerics.floats import UNIT, Real, lowered, raised

_FEW_APART = 16  # outcomes of tables that are taken apart from rare large losses
_SOON, _FALLEN = 30.0, -40.0  # a line that falls so far so soon is short
_DEPTHS = 6.0  # nats of delta that share their brackets
_MANY_ROWS = 8  # different tables, from which on lattice points are fewer than the nodes of a line times the tables


@dataclass(frozen=True)
class ComposedLoss(PrivacyLoss):
    """Independent bundles, added."""

    parts: tuple[PrivacyLoss, ...]

    @property
    def members(self) -> tuple[PrivacyLoss, ...]:
        return self.parts

    @property
    def delta_inf(self) -> float:
        masses = [p.delta_inf for p in self.parts if p.delta_inf > 0]
        if len(masses) <= 1:
            return masses[0] if masses else 0.0
        return -math.expm1(sum(math.log1p(-m) if m < 1 else -math.inf for m in masses))

    @property
    def delta_inf_exact(self) -> bool:
        with_mass = [p for p in self.parts if p.delta_inf > 0]
        return not with_mass or (len(with_mass) == 1 and with_mass[0].delta_inf_exact)

    @property
    def kinds(self) -> int:
        return sum(p.kinds for p in self.parts)

    @property
    def solved_by_closed_form(self) -> bool:
        own = len(self.parts) == 1 and self.parts[0].solved_by_closed_form
        return own or self._enumerated is not None or self._halves is not None or self._mean is not None

    @property
    def closed_is_dear(self) -> bool:
        """Whether the closed form is a sum over two halves, with up to a hundred thousand terms each."""
        own = len(self.parts) == 1 and self.parts[0].solved_by_closed_form
        return not own and self._enumerated is None and self._halves is not None and not self._halves.short

    @property
    def closed_from(self) -> float:
        """The least eps that a closed form answers."""
        return self._halves.least if self._halves is not None else 0.0

    @property
    def largest(self) -> float:
        return raised(math.fsum(p.largest for p in self.parts), 2)

    @property
    def largest_lower(self) -> float:
        return lowered(math.fsum(p.largest_lower for p in self.parts), 2)

    @property
    def symmetric(self) -> bool:
        return all(p.symmetric for p in self.parts)

    @cached_property
    def lattice(self) -> Lattice | None:
        if len(self.parts) == 1:
            return self.parts[0].lattice
        steps = [p.lattice_steps() for p in self.parts]
        known = [s for s in steps if s is not None]
        return common_lattice([s for each in known for s in each]) if len(known) == len(steps) else None

    @property
    def pointwise(self) -> bool:
        return all(p.pointwise for p in self.parts)

    @classmethod
    def of(cls, parts: Iterable[PrivacyLoss]) -> ComposedLoss:
        """Bundles of one kind become one bundle; the one place where parts are put in order."""
        kinds: dict[type[PrivacyLoss], list[PrivacyLoss]] = {}
        for part in itertools.chain.from_iterable(given.members for given in parts):
            kinds.setdefault(type(part), []).append(part)
        found = [loss for kind, same in kinds.items() for loss in kind.merged(same)]
        return cls(tuple(sorted(found, key=lambda loss: loss.place)))

    def times(self, count: int) -> ComposedLoss:
        return ComposedLoss(tuple(p.times(count) for p in self.parts))

    def log_mgf_bounds(self, c: Real, goal: float) -> tuple[Real, Real]:
        each = [p.log_mgf_bounds(c, goal / len(self.parts)) for p in self.parts]
        if len(each) == 1:
            return each[0]
        low, high = (np.sum([ends[i] for ends in each], axis=0) for i in (0, 1))
        with np.errstate(invalid="ignore"):
            size = np.sum([np.abs(ends[1]) for ends in each], axis=0)
            return np.asarray(lowered(low, 2 * len(each), size)), np.asarray(raised(high, 2 * len(each), size))

    def log_mgf_lower(self, c: Real) -> Real:
        return np.asarray(sum((p.log_mgf_lower(c) for p in self.parts), np.zeros_like(c)))

    def reversed(self) -> ComposedLoss:
        return self._turned

    @cached_property
    def _turned(self) -> ComposedLoss:
        """Kept: what it finds out about itself serves every later question."""
        return ComposedLoss(tuple(p.reversed() for p in self.parts))

    def blurred(self, mu: float) -> ComposedLoss:
        """Composed with one more Gaussian of tiny mu: an upper bound (post-processing may ignore it)."""
        return ComposedLoss((*self.parts, GaussianLoss(mu * mu)))

    def log_mgf_simple_upper(self, c: Real) -> Real:
        each = np.array([p.log_mgf_simple_upper(c) for p in self.parts])
        return np.asarray(raised(each.sum(axis=0), 2 * len(self.parts), np.abs(each).sum(axis=0)))

    def log_mgf_simple_lower(self, c: float) -> float:
        return lowered(math.fsum(p.log_mgf_simple_lower(c) for p in self.parts), 2 * len(self.parts))

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        own = self.parts[0].hockey_stick(eps) if len(self.parts) == 1 else None
        if own is None and self._enumerated is not None:
            return self._enumerated.hockey_stick(eps)
        if self._mean is not None:
            return self._mean.hockey_stick(eps)
        return self._halves.hockey_stick(eps) if own is None and self._halves is not None else own

    @cached_property
    def _rows(self) -> list[tuple[Table, int]]:
        """The members as tables, if all of them have finitely many outcomes."""
        rows: list[tuple[Table, int]] = []
        for part in self.parts:
            own = part.tables()
            if own is None:
                return []
            rows += own
        return rows

    @cached_property
    def _listed(self) -> bool:
        """Whether all outcomes could be listed, had we the time."""
        rows = self._rows
        return bool(rows) and self._enumerated is None and all(r.missing is None for r, _ in rows) and self._few_each

    @property
    def _few_each(self) -> bool:
        return all(outcomes([each]) <= MOST_OWN for each in self._rows)

    @cached_property
    def _halves(self) -> Halves | None:
        """Dozens of uses, where all outcomes would be too many; on a lattice where they are many different ones."""
        rows, lattice, count = self._rows, self.lattice, sum(n for _, n in self._rows)
        if lattice is None:
            short = bool(rows) and count <= MOST_USES and all(shares(row, n) for row, n in rows)
            return Halves(rows) if short and self._enumerated is None else None
        if not _MANY_ROWS <= len(rows) <= count <= MOST_LATTICE_USES or not self._listed:
            return None
        found = Halves(rows, lattice.unit * lattice.stride)
        return found if found.short else None

    @cached_property
    def on_grid(self) -> Blocks | None:
        """Uses on no lattice, or a very fine one, whose outcomes would be too many even for halves, or many."""
        count = sum(n for _, n in self._rows)
        if count > MOST_GRID_USES or (self._halves is not None and self._halves.short) or not self._listed:
            return None
        if self.lattice is not None and len(self._rows) < _MANY_ROWS:
            return None
        found = Blocks(self._rows)
        return found if found.feasible else None

    def few_on_grid(self, log_delta: float) -> FewOnGrid | None:
        """A few uses whose outcomes cannot be listed, each on a grid without what is far rarer than delta."""
        few = 1 < sum(n for _, n in self._rows) <= MOST_FEW_USES
        if not few or self._enumerated is not None or self.lattice is not None or self.on_grid is not None:
            return None
        return FewOnGrid.of(self._rows, log_delta)

    @cached_property
    def _enumerated(self) -> Table | None:
        """All outcomes as one row, where they are few; on a lattice only where the line is no better: for very few, or
        where tails are left out."""
        rows = self._rows
        if not rows:
            return None
        many = all(row.missing is None for row, _ in rows) and self.lattice is not None
        return whole(rows) if outcomes(rows) <= (FEW_OUTCOMES if many else MOST_OUTCOMES) else None

    @cached_property
    def _mean(self) -> MeanOverOutcomes | None:
        """Few outcomes of tables beside one part whose profile is known everywhere."""
        closed = [part for part in self.parts if part.profile(np.zeros(1)) is not None]
        rows = [part.tables() for part in self.parts if part not in closed]
        if len(closed) != 1 or not rows or self.lattice is not None:
            return None
        listed = [row for own in rows for row in own or ()]
        if any(own is None for own in rows) or any(row.density is not None for row, _ in listed):
            return None
        falls = closed[0].vertical(1.0).decay(_SOON) < _FALLEN  # then a line costs little
        return MeanOverOutcomes(whole(listed), closed[0]) if outcomes(listed) <= MOST_MEANS[falls] else None

    def closed_reading(self, log_delta: float) -> Reading | None:
        return self.parts[0].closed_reading(log_delta) if len(self.parts) == 1 else None

    def closed_epsilon(self, level: tuple[float, float]) -> tuple[float, float] | None:
        return self.parts[0].closed_epsilon(level) if len(self.parts) == 1 else None

    def mean_bounds(self) -> tuple[float, float]:
        each = [p.mean_bounds() for p in self.parts]
        low, high = sum(m[0] for m in each), sum(m[1] for m in each)
        size = sum(abs(m[1]) for m in each)
        return lowered(low, 2 * len(each), size), raised(high, 2 * len(each), size)

    def weakest(self) -> ComposedLoss:
        raise NotImplementedError("ask the parts")

    @property
    def log_lost(self) -> float:
        if len(self.parts) == 1:
            return self.parts[0].log_lost
        return float(np.logaddexp.reduce([p.log_lost for p in self.parts]))

    @property
    def tilt_limit(self) -> float:
        return min(p.tilt_limit for p in self.parts)

    @property
    def tilt_guess(self) -> float:
        return min(p.tilt_guess for p in self.parts)

    def trimmed(self, c: float, log_delta: float) -> ComposedLoss:
        return self._with(tuple(p.trimmed(c, log_delta) for p in self.parts))

    @cached_property
    def rare(self) -> RareLosses | None:
        """How to split the whole by the largest loss of one part; what lives on a lattice needs no such way."""
        if self.lattice is not None:
            return None
        for i, part in enumerate(self.parts):
            rest = self.parts[:i] + self.parts[i + 1 :]
            found = part.rare_losses(ComposedLoss(rest) if rest else None)
            if found is not None:
                return found
        return None

    @cached_property
    def apart(self) -> Apart | None:
        """The outcomes of all tables, where they are few, apart from losses that are split by the largest."""
        tables = [(part, part.tables()) for part in self.parts]
        rows = [row for _, own in tables if own is not None for row in own]
        rest = ComposedLoss(tuple(part for part, own in tables if own is None))
        if not rows or not rest.parts or self.lattice is not None or any(row.density is not None for row, _ in rows):
            return None
        if (
            outcomes(rows) > _FEW_APART
            or rest.rare is None
            or max(rest.delta_inf_bounds[1], rest.reversed().delta_inf) > 0
        ):
            return None
        return apart(whole(rows), rest, rest.reversed())

    def unsampled(self) -> ComposedLoss:
        return self._with(tuple(p.unsampled() for p in self.parts))

    def rid_of(self, log_mass: float) -> ComposedLoss:
        return self._with(tuple(p.rid_of(log_mass) for p in self.parts))

    @property
    def may_lie_between(self) -> bool:
        return any(p.densities for p in self.parts)

    def between(self, log_delta: float) -> tuple[ComposedLoss, ComposedLoss] | None:
        """Below and above, with finitely many losses in every part that has a density (`table/brackets.py`), as far out
        as this delta asks for; questions about one size of delta share them."""
        depth = math.floor(log_delta / _DEPTHS)
        if depth not in self._brackets:
            self._brackets[depth] = self._bracketed(_DEPTHS * depth)
        return self._brackets[depth]

    @cached_property
    def _brackets(self) -> dict[int, tuple[ComposedLoss, ComposedLoss] | None]:
        return {}

    def _bracketed(self, log_delta: float) -> tuple[ComposedLoss, ComposedLoss] | None:
        found = [p.brackets(log_delta) for p in self.parts]
        if all(each is None for each in found):
            return None
        ends = (
            [
                p if each is None else TableLoss(tuple(pair[k] for pair in each.pairs), each.count)
                for p, each in zip(self.parts, found, strict=True)
            ]
            for k in (0, 1)
        )
        below, above = (ComposedLoss.of(parts) for parts in ends)
        return below, above

    def _with(self, parts: tuple[PrivacyLoss, ...]) -> ComposedLoss:
        return self if all(a is b for a, b in zip(parts, self.parts, strict=True)) else ComposedLoss(parts)

    def log_test_lower(self, eps: float) -> float:
        # looking at one part only is post-processing of the whole, which is all finite only without mass at infinity
        return max(p.log_test_lower(eps) for p in self.parts) if self.delta_inf == 0 else -math.inf

    def vertical(self, c: float) -> Vertical:
        return _Vertical(tuple(p.vertical(c) for p in self.parts))

    def lattice_vertical(self, c: float) -> Vertical:
        return self.parts[0].lattice_vertical(c) if len(self.parts) == 1 else self.vertical(c)

    def moments(self, c: float) -> tuple[float, float, float]:
        if len(self.parts) == 1:
            return self.parts[0].moments(c)
        each = [p.moments(c) for p in self.parts]
        return sum(m[0] for m in each), sum(m[1] for m in each), sum(m[2] for m in each)

    def log_mgf_upper(self, c: Real) -> Real:
        if len(self.parts) == 1:
            return self.parts[0].log_mgf_upper(c)
        each = np.array([p.log_mgf_upper(c) for p in self.parts])
        return np.asarray(raised(each.sum(axis=0), 2 * len(self.parts), np.abs(each).sum(axis=0)))


@dataclass(frozen=True)
class _Vertical:
    parts: tuple[Vertical, ...]

    def line(self, t: Real, goal: float) -> LineValues:
        if not self.parts:  # nothing is lost: K = 0
            return LineValues(np.zeros_like(t), np.zeros_like(t), np.zeros_like(t))
        lines = [p.line(t, goal / len(self.parts)) for p in self.parts]
        if len(lines) == 1:
            return lines[0]
        size = np.sum([np.abs(v.log_modulus) + np.abs(v.phase) for v in lines], axis=0)
        return LineValues(
            np.sum([v.log_modulus for v in lines], axis=0),
            np.sum([v.phase for v in lines], axis=0),
            np.sum([v.error for v in lines], axis=0) + 2 * len(lines) * UNIT * size,
        )

    def decay(self, t: float) -> float:
        return sum(p.decay(t) for p in self.parts)

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        return np.asarray(np.sum([p.cells(start, width, count, enough) for p in self.parts], axis=0))
