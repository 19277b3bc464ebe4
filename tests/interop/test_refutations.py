"""docs/refutations.md, 5 to 9: what dp-accounting prints for these events today; tests/cli runs the commands."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import dp_accounting as dpa
import pytest
from dp_accounting import dp_event

import privloss as pl

PAGE = (Path(__file__).parents[2] / "docs" / "refutations.md").read_text()
REPLACE = dpa.NeighboringRelation.REPLACE_ONE
GAUSSIAN, COIN = dp_event.GaussianDpEvent(1.1), dp_event.RandomizedResponseDpEvent(0.5, 2)
SHARED = dp_event.PoissonSampledDpEvent(0.01, dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(1), 100))


@pytest.mark.parametrize(
    ("section", "accountant", "event"),
    [
        (5, dpa.pld.PLDAccountant(REPLACE), dp_event.SelfComposedDpEvent(COIN, 100)),
        (6, dpa.rdp.RdpAccountant(), dp_event.SelfComposedDpEvent(SHARED, 10)),
        (7, dpa.rdp.RdpAccountant(neighboring_relation=REPLACE), GAUSSIAN),
        (8, dpa.rdp.RdpAccountant(neighboring_relation=REPLACE),
         dp_event.SelfComposedDpEvent(dp_event.SampledWithoutReplacementDpEvent(60_000, 256, GAUSSIAN), 1000)),
    ],
    ids=["5", "6", "7", "8"],
)  # fmt: skip
def test_what_they_print(section: int, accountant: Any, event: Any) -> None:
    (text,) = [part for part in PAGE.split("\n## ") if part.startswith(f"{section}. ")]
    printed = float(accountant.compose(event).get_epsilon(1e-6))
    assert printed == pytest.approx(float(text.split("**")[1]), rel=1e-9)


def test_the_other_meaning_of_the_noise() -> None:
    """As noise / sensitivity under replace-one their numbers are right, as the page says."""
    batch = (pl.Gaussian(sigma=1.1).fixed_size(n=60_000, m=256) * 1000).under("replace-one").epsilon(1e-6)
    assert 0.706 <= batch.lower <= batch.upper <= 0.839 < 1.487


def test_the_best_of_many_runs() -> None:
    """Geometric on 1, 2, ... with mean 200: P[no run publishes] = sum of g (1-g)^(k-1) w^k."""
    g, w = Fraction(1, 200), 1 - Fraction(0.049)
    silent = g * w / (1 - (1 - g) * w)
    assert float(sum(float(g) * (1 - float(g)) ** (k - 1) * float(w) ** k for k in range(1, 2000))) == pytest.approx(
        float(silent), rel=1e-12
    )
    assert 1 - silent >= Fraction(0.9115)
    assert not hasattr(dp_event, "EpsilonDeltaDpEvent"), "it is released: run 9 of docs/refutations.md again"
