"""DP-FTRL and matrix mechanisms from the numbers people have: data size, batch size, epochs, noise, participation.

>>> import privloss as pl
>>> run = pl.dp_ftrl(
...     dataset_size=60_000, batch_size=600, epochs=4, noise_multiplier=8.0,
...     strategy="square-root", participation="fixed-epochs",
... )
>>> print(run)
60,000 records, batch 600, 100 steps per epoch (60000 / 600 = 100), 4 epochs: 400 steps
noise: square-root, sigma = 8 C for every row of C x; sensitivity 4.249 C
participation: fixed-epochs, the same one of 100 steps of every epoch
>>> run.epsilon(1e-5).upper < 2.14
True

`noise_multiplier` is sigma / C for the independent noise z of C x + z, C the bound on one record's contribution to one
step. Libraries that scale z by the sensitivity of C x besides report a larger sigma: their number is the noise
multiplier of one plain Gaussian release. The default adjacency is zero-out: where batches are cut from an order, a
record more or less moves all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privloss.adjacency import ADJACENCIES, ZERO_OUT
from privloss.errors import InvalidInput
from privloss.losses.matrix.sensitivity import EPOCHS, SEPARATED, SINGLE
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.matrix_mechanism import BINS, CYCLIC, PARTICIPATIONS, MatrixMechanism
from privloss.mechanisms.questions import Questions
from privloss.mechanisms.tree import TreeAggregation
from privloss.numerics import check
from privloss.planning.dp_sgd import sizes_in_words, steps_in_all

SQUARE_ROOT, IDENTITY, TREE = "square-root", "identity", "tree"
STRATEGIES = (SQUARE_ROOT, IDENTITY, TREE)


@dataclass(frozen=True)
class DpFtrl(Questions):
    """What was derived from the arguments; ask it like a plan."""

    plan: Plan
    dataset_size: int
    batch_size: int
    steps: int
    steps_per_epoch: int
    told: tuple[str, ...]  # what was derived and how it was rounded

    def as_plan(self) -> Plan:
        return self.plan

    def __str__(self) -> str:
        return "\n".join(self.told)


def dp_ftrl(
    *,
    dataset_size: int,
    batch_size: int,
    noise_multiplier: float,
    participation: str,
    strategy: str | Sequence[float] | Any = SQUARE_ROOT,
    epochs: float | None = None,
    steps: int | None = None,
    bands: int | None = None,
    separation: int | None = None,
    classes: str = "public",
    adjacency: str = ZERO_OUT,
) -> DpFtrl:
    """The plan of a run with correlated noise. Give epochs or steps; `strategy` is square-root (its first `bands`
    diagonals), identity (independent noise), tree (restarted every epoch), Toeplitz coefficients or the matrix C.
    `separation`: least distance of a record's steps, or the number of classes (cyclic-poisson; `bands` by default)."""
    size, batch = check.count("dataset_size", dataset_size), check.count("batch_size", batch_size)
    if batch > size:
        raise InvalidInput(f"batch_size = {batch_size!r}: must be at most dataset_size = {size}.")
    check.choice("adjacency", adjacency, ADJACENCIES)
    kind = check.choice("participation", participation, PARTICIPATIONS)
    per_epoch = -(-size // batch)
    total, told = steps_in_all(epochs, steps, per_epoch)
    noise = check.number("noise_multiplier", noise_multiplier, low=0)
    first = f"{sizes_in_words(size, batch)}, {told}"
    if isinstance(strategy, str) and check.choice("strategy", strategy, STRATEGIES) == TREE:
        made, words = _tree(total, per_epoch, noise, kind, (bands, separation))
    else:
        pattern, what = _pattern(kind, size, batch, total, separation or (bands if kind == CYCLIC else None))
        chosen = _strategy(strategy, total, bands)
        made = MatrixMechanism(**chosen, **pattern, classes=classes, noise_multiplier=noise)
        words = (_noise_in_words(made, strategy, bands), f"participation: {kind}, {what}")
    return DpFtrl(Plan.of((made, 1), adjacency=adjacency), size, batch, total, per_epoch, (first, *words))


def _strategy(strategy: Any, total: int, bands: int | None) -> dict[str, Any]:
    """C, for the constructor."""
    if isinstance(strategy, str) and strategy == SQUARE_ROOT:
        made = MatrixMechanism.square_root(steps=total, bands=bands, noise_multiplier=1.0, participation=SINGLE)
        return {"toeplitz": made.toeplitz, "steps": total}
    if bands is not None:
        raise InvalidInput(f"bands = {bands!r}: goes with strategy = 'square-root'.")
    if isinstance(strategy, str):
        return {"toeplitz": [1.0], "steps": total}
    if getattr(strategy, "ndim", 0) == 2 or (len(strategy) and isinstance(strategy[0], (list, tuple))):
        columns = len(strategy[0])
        if columns != total:
            raise InvalidInput(f"strategy: has {columns} columns, the run has {total} steps.")
        return {"matrix": strategy}
    return {"toeplitz": list(strategy), "steps": total}


def _pattern(kind: str, size: int, batch: int, total: int, separation: int | None) -> tuple[dict[str, Any], str]:
    """The parameters of the participation, and in words."""
    per_epoch = -(-size // batch)
    if kind in (SINGLE, EPOCHS, BINS) and separation is not None:
        raise InvalidInput(f"separation = {separation!r}: does not go with participation = {kind!r}.")
    if kind == SINGLE:
        if total > per_epoch:
            raise InvalidInput(f"participation = 'single': {total} steps are more than one epoch of {per_epoch}.")
        return {"participation": kind}, "one step"
    if kind in (EPOCHS, BINS):
        parts = min(per_epoch, total)
        what = {EPOCHS: f"the same one of {parts} steps of every epoch", BINS: f"one of {parts} bins, kept"}[kind]
        return {"participation": kind, "separation": parts}, what
    if separation is None:
        raise InvalidInput(f"separation = None: participation = {kind!r} needs it.")
    b = check.count("separation", separation)
    if kind == SEPARATED:
        passes = -(-total // per_epoch)
        words = f"steps at least {b} apart, at most {passes} (one for every epoch begun)"
        return {"participation": kind, "separation": b, "times": passes}, words
    if batch * b > size:
        raise InvalidInput(f"separation = {b}: classes of {size}/{b} records are smaller than batch_size = {batch}.")
    rate = batch * b / size
    words = f"{b} classes, rate {batch} * {b} / {size} = {rate:g}"
    return {"participation": kind, "separation": b, "rate": rate}, words


def _noise_in_words(made: MatrixMechanism, strategy: Any, bands: int | None) -> str:
    name = strategy if isinstance(strategy, str) else "C as given"
    name += f" with {bands} bands" if bands is not None else ""
    about = f"noise: {name}, sigma = {made.noise_multiplier:g} C for every row of C x"
    if made.participation in (CYCLIC, BINS):
        return about
    low, high = made.sensitivity_of()
    return f"{about}; sensitivity {high:.4g} C" + (f" (at least {low:.4g} C)" if low < high * (1 - 1e-6) else "")


def _tree(total: int, per_epoch: int, noise: float, kind: str, others: tuple[Any, ...]) -> tuple[Mechanism, Any]:
    """A tree that restarts with every epoch, in each of which a record has one step."""
    if kind not in (SINGLE, EPOCHS) or any(x is not None for x in others):
        raise InvalidInput(
            f"strategy = 'tree': restarts every epoch, in which a record has one step; participation = {kind!r}, bands "
            "and separation do not go with it (say pl.MatrixMechanism with the matrix of nodes)."
        )
    trees = 1 if kind == SINGLE else -(-total // per_epoch)
    made = TreeAggregation(steps=min(per_epoch, total), trees=trees, noise_multiplier=noise)
    levels = made.nodes // trees
    about = f"noise: tree, sigma = {noise:g} C for every node, {levels} levels"
    return made, (about, f"participation: {kind}, one step in each of {trees} trees")
