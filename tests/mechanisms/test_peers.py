"""The table of what other accountants have (docs/mechanisms.md): it is whole, and what it calls exists."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution

import privloss as pl
from privloss.interop.events import _COMPOSITIONS, READ
from tests.mechanisms.peers import column, rows

AUTODP = (  # its mechanism and transformer zoos
    "GaussianMechanism", "ExactGaussianMechanism", "LaplaceMechanism", "RandresponseMechanism", "zCDP_Mechanism",
    "ExponentialMechanism", "PureDP_Mechanism", "DiscreteGaussianMechanism", "SubsampleGaussianMechanism",
    "ComposedGaussianMechanism", "NoisyScreenMechanism", "GaussianSVT_Mechanism", "LaplaceSVT_Mechanism",
    "StageWiseMechanism", "NoisySGD_Mechanism", "NoisyGD_Mechanism", "Composition", "ComposeAFA", "ComposeGaussian",
    "AmplificationBySampling", "AmplificationBySampling_pld",
)  # fmt: skip


def test_every_class_of_dp_accounting_has_a_row() -> None:
    """Those installed, those of the repository that are read, and the constructors of their distributions."""
    installed = {n for n, c in vars(dp_event).items() if isinstance(c, type) and issubclass(c, dp_event.DpEvent)}
    constructors = {n for n in vars(privacy_loss_distribution) if n.startswith("from_")}
    assert len(installed) == 18
    assert column("dp-accounting") >= (installed - {"DpEvent"}) | {*READ, *_COMPOSITIONS} | constructors


def test_marked_as_the_repositorys_are_those_that_no_release_has() -> None:
    marked = {name for row in rows() for name in re.findall(r"`(\w+)` \*r\*", row["dp-accounting"])}
    assert marked == {*READ, *_COMPOSITIONS} - set(vars(dp_event))


def test_the_zoo_of_autodp_has_rows() -> None:
    assert column("autodp") >= set(AUTODP)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[""])
def test_every_row_is_answered_or_refused_with_a_reason(row: dict[str, str]) -> None:
    """What is called can be called; what is a plan has an answer."""
    calls = [span for span in re.findall(r"`([^`]*)`", row["here"]) if span.startswith("pl.")]
    assert calls or "refused: " in row["here"] or row["here"].startswith("box")
    for call in calls:
        found = eval(call, {"pl": pl})
        if isinstance(found, (pl.Mechanism, pl.Plan)):
            assert found.as_plan().under("zero-out").total_variation().upper <= 1


@pytest.mark.parametrize("base", [([8, 1, 1], [4, 4, 2]), ([1, 0, 9], [1, 1, 8]), ([5, 3, 2], [2, 3, 5])])
@pytest.mark.parametrize("stop", [Fraction(1, 2), Fraction(1, 10)])
def test_the_first_run_above_a_threshold_is_a_selection(base: tuple[list[int], list[int]], stop: Fraction) -> None:
    """Its law in fractions: outcome 0 lies below the threshold; both orders, all sets, never above the selection."""

    def law(p: list[int]) -> list[Fraction]:
        run = [Fraction(x, 10) for x in p]
        reached = 1 / (1 - run[0] * (1 - stop))  # how many runs there are in the mean
        return [run[0] * stop * reached, *(x * reached for x in run[1:])]

    p, q = law(base[0]), law(base[1])
    assert sum(p) == sum(q) == 1
    selection = pl.select_best(pl.Custom([x / 10 for x in base[0]], [x / 10 for x in base[1]]), mean=float(1 / stop))
    for eps in (0.0, 0.25, 0.5, 1.0, 2.0):
        scale = Fraction(math.exp(eps))
        truth = max(
            sum(max(a - scale * b, Fraction(0)) for a, b in zip(*pair, strict=True)) for pair in ((p, q), (q, p))
        )
        assert float(truth) <= selection.delta(eps).upper * (1 + 1e-12)
