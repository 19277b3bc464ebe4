"""Random allocation: every record takes part in k of the steps of an epoch, chosen at random. One use is one epoch."""

from __future__ import annotations

from privloss.adjacency import REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.samplers.setting import Setting, distance_text
from privloss.losses.samplers.shuffle import largest_of
from privloss.losses.step import Step
from privloss.losses.table.allocation import allocation_table
from privloss.losses.table.allocation_below import allocation_below
from privloss.losses.table.loss import TableLoss


def allocation(step: Step, steps: int, k: int, at: Setting) -> Step:
    """A record in k of t steps is, given a random split of the steps into k blocks, in one step of each block (Feldman
    and Shenfeld 2025)."""
    distances = at.distances(step)
    text = f"sampler: every record in {k} of {steps} steps per epoch, chosen at random; one count per epoch"
    if at.adjacency == REPLACE_ONE:
        theorem = (
            "allocation under replace-one: given the places a record touches k steps per epoch (no amplification is "
            "proven); lower end: a record that contributes nothing in its place, or the opposite (the largest output)"
        )
        about = f"gaussian: {distance_text(distances.replace)}; {text}"
        bound: PrivacyLoss = GaussianLoss(k * distances.replace**2)
        known = k == 1 and step.contributions_known and distances.add is not None
        below = _attained(steps, distances.add or 0.0, -(distances.add or 0.0)) if known else (None,)
        return Step((theorem,), (about,), bound, mirrored=True, attained=below)
    if distances.add is None:
        raise Unsupported(f"{at.sampled}: needs the distance of one record.")
    if k == steps:
        return step.times(k)
    theorem = (
        "allocation: the mean of the steps' likelihood ratios against N(0), both directions (Feldman, Shenfeld 2025; "
        "Chua et al. 2025), each ratio moved to a grid with its mean kept (convex order); lower end: others that "
        "contribute nothing, the same sum seen in cells of a grid"
    )
    block = steps // k
    table = allocation_table(block, distances.add) if block > 1 else None
    bound = GaussianLoss(distances.add**2) if table is None else TableLoss.one(table)
    below = _attained(block, distances.add, 0.0) if k == 1 else (None,)
    plain = Step((), (), GaussianLoss(distances.add**2), mirrored=True)
    found = Step(
        (theorem,), (f"gaussian: {distance_text(distances.add)}; {text}",), bound, mirrored=table is None,
        attained=below, without_sampler=plain,
    )  # fmt: skip
    return at.with_null(step, found.times(k))


def _attained(steps: int, distance: float, replaced: float) -> tuple[PrivacyLoss | None, ...]:
    """Others that contribute nothing, seen roughly, against no record or one that contributes nothing either; and a
    simple test, which is better at deltas that hardly occur, or against a record on the other side."""
    rough = allocation_below(steps, distance) if steps > 1 else None
    test = TableLoss.one(largest_of(steps, distance, replaced))
    return (test,) if rough is None else (TableLoss.one(rough), test)
