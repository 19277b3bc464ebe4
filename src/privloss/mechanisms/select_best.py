"""The best of several private runs: hyper-parameter tuning, private selection.

>>> import privloss as pl
>>> run = pl.Gaussian(1.1).poisson(0.01) * 1000
>>> tuned = pl.select_best(run, mean=10)                       # geometric: ten runs in the mean
>>> tuned
select_best(1000 * Gaussian(noise_multiplier=1.1).poisson(0.01), mean=10.0)
>>> run.epsilon(1e-6).upper < tuned.epsilon(1e-6).upper < 1.6 * run.epsilon(1e-6).upper
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privloss.adjacency import REPLACE_ONE
from privloss.errors import InvalidInput, Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.product import product
from privloss.losses.selection import Trials, bound_points, concentration, cost, instances, look
from privloss.losses.step import Step
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.polygon import privacy_profile
from privloss.losses.table.table import Table
from privloss.mechanisms.base import Mechanism, Plan, set_field, shown
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number, shape, steps, whole
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics.floats import Real, exp_up, raised

POISSON = "poisson"
NOTHING = Table(np.zeros(1), np.ones(1), symmetric=True, exact=True)  # one outcome, without loss
_DELTAS = (1e-2, 1e-5, 1e-9, 1e-18)  # where the profile is looked for
_FARTHEST = -math.log(1e-30)  # beyond the last of them moments do
_BEYOND = 4.0
_ORDERS = tuple(float(a) for a in 1 + np.geomspace(0.05, 2e4, 60))
_INSTANCES = 40
_RAREST, _PER_DECADE, _COMMON = (1e-11, 4e-13), 7, 20  # rates of tests that may be ranked first or last


@dataclass(frozen=True, repr=False)
class SelectBest(Mechanism):
    """The best of K independent runs of a base, by a score of the run's own output; K and the other runs stay secret. K
    is truncated negative binomial with this mean and shape (1: geometric, 0: logarithmic), Poisson, or fixed
    (`trials`)."""

    kind: ClassVar[str] = "select-best"
    base: tuple[tuple[Mechanism, int], ...] = steps()
    mean: float | None = number(above=True, high=1e9, default=None)
    shape: float | str = shape()
    trials: int | None = whole(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.mean is None) == (self.trials is None):
            raise InvalidInput(f"mean = {self.mean!r}, trials = {self.trials!r}: give exactly one of them.")
        if self.trials is not None and self.shape != 1.0:
            raise InvalidInput(f"shape = {self.shape!r}: goes with mean; the number of trials is fixed.")
        if self.mean is not None and self.mean < 1 and self.shape != POISSON:
            raise InvalidInput(f"mean = {self.mean!r}: must be at least 1; only a Poisson number of runs may be 0.")
        if self.law.gamma == 0:
            raise InvalidInput(
                f"shape = {self.shape!r}, mean = {self.mean!r}: gamma would be below 1e-200; use a larger shape."
            )
        set_field(self, "base", Plan(tuple(self.base)).steps)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given() if name != "base")
        return f"select_best({' + '.join(shown(self.base))}, {given})"

    @property
    def law(self) -> Trials:
        """How many runs."""
        if self.trials is not None:
            return Trials(float(self.trials), 1.0, self.trials)
        return Trials(self.mean or 1.0, math.inf if self.shape == POISSON else float(self.shape))


def select_best(
    base: Plan | Mechanism, *, mean: float | None = None, shape: float | str = 1.0, trials: int | None = None
) -> SelectBest:
    """The best of a random number of runs of `base`, `mean` of them on average, or of `trials` runs."""
    return SelectBest(Plan.of(base).steps, mean, shape, trials)


@lru_cache(maxsize=64)
def _step(m: SelectBest, adjacency: str) -> Step:
    if m.trials is not None:
        return _fixed(m, m.trials, adjacency)
    plan, law = Plan(m.base, adjacency), m.law
    profile = _Profile(plan)
    seen = look(profile.at, profile.marks)
    spent = cost(law, profile.at, seen)
    points = bound_points(law, spent, profile.at, seen, profile.largest)
    table = privacy_profile([x for x, _ in points], [d for _, d in points])
    step = Step.of_table(table, _theorem(m, spent.least), _assumption(m, adjacency), mirrored=True)
    # everywhere: of Poisson's ways only the first holds for all outcomes
    step = replace(step, rho=concentration(law, spent.ways[0][0], plan.zcdp().upper))
    return _with_instances(step, _instances(plan, law, points), _unranked(plan, law))


class _Profile:
    """Upper ends of a plan's delta: the exact engine's, and far out Chernoff's, which take no work.

    delta(e) <= (1 - 1/a)^(a-1)/a e^((a-1) (D_a - e)), D_a the Renyi divergence of order a (Canonne, Kamath, Steinke
    2020, Prop. 12)."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.known: dict[float, float] = {}
        self.largest = plan.epsilon(0.0).upper
        first = self.at([0.0])[0]
        near = [plan.epsilon(d).upper for d in (first / 3, *_DELTAS) if d < first] if first > 0 else []
        self.near = max((e for e in near if e < math.inf), default=0.0)
        self.orders, self.logs = self._moments()
        far = float(np.min((_FARTHEST + self.logs) / (self.orders - 1), initial=math.inf))
        self.marks = [*near, far] if far < _BEYOND * self.near else near  # so much farther would cost digits nearby

    def _moments(self) -> tuple[Real, Real]:
        """Orders a, and (a-1) D_a plus the logarithm of the factor in front, rounded up."""
        found = self.plan.rdp(list(_ORDERS))
        pairs = [(a, d.upper) for a, d in zip(_ORDERS, found, strict=True) if d.upper < math.inf]
        a, d = np.array(pairs).reshape(-1, 2).T
        front = (a - 1) * np.log1p(-1 / a) - np.log(a)
        return a, np.asarray(raised((a - 1) * d + front, 64, (a - 1) * (d + 1) + np.log(a)))

    def at(self, epsilons: Sequence[float]) -> list[float]:
        """Upper ends of delta at these epsilons."""
        new = [e for e in dict.fromkeys(epsilons) if e not in self.known]
        asked = [e for e in new if e == 0 or e <= self.near]
        if asked:
            self.known.update(zip(asked, (d.upper for d in self.plan.delta(asked)), strict=True))
        self.known.update((e, self._chernoff(e)) for e in new if e not in self.known)
        return [self.known[e] for e in epsilons]

    def _chernoff(self, e: float) -> float:
        if e >= self.largest:
            return 0.0
        logs = self.logs - (self.orders - 1) * e
        least = np.min(raised(logs, 8, np.abs(logs) + (self.orders - 1) * e), initial=0.0)
        return float(min(exp_up(float(least)), self.known.get(self.near, 1.0)))


def _theorem(m: SelectBest, shift: float) -> str:
    kind = "Poisson" if m.shape == POISSON else f"shape {m.shape:g}"
    return (
        f"private selection, {m.mean:g} runs in the mean ({kind}): delta(x) <= {m.mean:g} delta_run(x - {shift:.4g}), "
        f"so tuning costs {shift:.4g} in epsilon beside what one run costs at delta/{m.mean:g} (docs/mechanisms.md); "
        "below: outcomes ranked so that selection helps the adversary"
    )


def _assumption(m: SelectBest, adjacency: str) -> str:
    inside = "; ".join(worst_neighbours(Plan(m.base), adjacency).assumptions)
    return (
        "select-best: runs are independent, the score is a function of a run's own output (and coins), ties are broken "
        f"without the data, the number of runs and the other runs are never shown; one run: {inside}"
    )


def _instances(plan: Plan, law: Trials, points: list[tuple[float, float]]) -> list[Table]:
    """Rankings of a base that is one even pair: only then do all tests on the curve belong to the same neighbours. (The
    curve of an uneven pair is the hull of both orders', and between them no neighbours need have it.)"""
    worst = worst_neighbours(plan)
    if not worst.curve.empty or not worst.loss.parts or worst.attained or not worst.loss.symmetric:
        return []
    rates = _rates(plan.total_variation().upper)
    powers = [1 - fnr.upper for fnr in plan.tradeoff(rates, tolerance=1e-12)]
    used = [x for x, d in points if d > 1e-25]
    at = [float(x) for x in np.linspace(0.0, max(used, default=0.0), _INSTANCES)]
    return instances(law, list(zip(rates, powers, strict=True)), at)


def _rates(variation: float) -> list[float]:
    """False positive rates of tests: rarer ones where something is told often."""
    least = max(_RAREST[0], min(_RAREST[1] / variation, 1e-6)) if variation > 0 else 1e-6
    many = math.ceil(_PER_DECADE * math.log10(0.05 / least))
    return [float(a) for a in np.concatenate([np.geomspace(least, 0.05, many), np.linspace(0.06, 0.98, _COMMON)])]


def _unranked(plan: Plan, law: Trials) -> tuple[PrivacyLoss | None, ...]:
    """A score that is always the same: the best is one run, if there surely is one."""
    worst = worst_neighbours(plan)
    if not worst.curve.empty or law.nothing > 0:
        return (None,)
    return tuple(loss if loss.parts else None for loss in worst.attained or (worst.loss,))


def _with_instances(step: Step, tables: list[Table], unranked: tuple[PrivacyLoss | None, ...]) -> Step:
    """The step with what is attained, also on samples."""
    below = tables[len(tables) // 2] if tables else NOTHING
    sampled = Step.of_table(_row(step), "", "", mirrored=True, below=below)
    attained = tuple(_some([*(TableLoss.one(table) for table in tables), *unranked]))
    return replace(step, attained=attained, poisson=sampled.poisson, symmetric=sampled.symmetric, finite=sampled.finite)


def _some(members: Sequence[PrivacyLoss | None]) -> list[PrivacyLoss | None]:
    """Those that say something; nothing is said if there is none."""
    return [m for m in members if m is not None] or [None]


def _row(step: Step) -> Table:
    rows = None if step.finite is None else step.finite(1)
    if rows is None:
        raise Unsupported("select-best: has no finite row.")
    return rows[0]


def _fixed(m: SelectBest, trials: int, adjacency: str) -> Step:
    """A fixed number of runs: all of them are a composition, of which the best is a post-processing."""
    plan = Plan(m.base, adjacency)
    runs = worst_neighbours(plan * trials)  # under replace-one, every pair of several has been made even
    even = all(b.step(adjacency).mirrored for b, _ in m.base) or (adjacency == REPLACE_ONE and len(plan) * trials > 1)
    far = math.sqrt(trials) * plan.epsilon(1e-12).upper
    asked = [(x, 1.0) for x in (0.0, min(far, runs.loss.largest)) if x < math.inf]
    theorem = f"best of {trials} runs: a post-processing of their composition; below: ranked outcomes"
    shared = product([(b.step(adjacency), n * trials) for b, n in m.base])  # all runs on one sample

    def silent(sampled: Callable[[float], Step] | None) -> Callable[[float], Step] | None:
        return None if sampled is None else lambda rate: replace(sampled(rate), attained=(None,))

    return Step(
        (theorem, *runs.theorems),
        (_assumption(m, adjacency),),
        runs.loss if runs.loss.parts else None,
        mirrored=even,
        attained=tuple(_some([*map(TableLoss.one, _instances(plan, m.law, asked)), *_unranked(plan, m.law)])),
        curve=None if runs.curve.empty else runs.curve,
        poisson=silent(shared.poisson),
        symmetric=silent(shared.symmetric),
    )


def _changed(m: SelectBest, base: Any) -> SelectBest:
    return SelectBest(tuple(base), m.mean, m.shape, m.trials)


add_kind(
    Kind(
        "select-best",
        SelectBest,
        _step,
        forms=(("base", "mean", "shape?"), ("base", "trials")),
        louder=lambda m, factor: _changed(m, ((b.louder(factor), n) for b, n in m.base)),
        grouped=lambda m, people, adjacency: _changed(m, ((b.grouped(people, adjacency), n) for b, n in m.base)),
    )
)
