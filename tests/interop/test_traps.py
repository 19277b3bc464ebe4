"""The numbers of docs/traps.md, theirs and ours."""

from __future__ import annotations

import math
import re
from pathlib import Path

import dp_accounting as dpa
import pytest
from dp_accounting import dp_event

import privloss as pl
from privloss.interop.dp_accounting import PrivlossAccountant

PAGE = (Path(__file__).parents[2] / "docs" / "traps.md").read_text()
REPLACE, SPECIAL = dpa.NeighboringRelation.REPLACE_ONE, dpa.NeighboringRelation.REPLACE_SPECIAL
GAUSSIAN, LAPLACE = dp_event.GaussianDpEvent(1.1), dp_event.LaplaceDpEvent(1.0)
COIN = dp_event.RandomizedResponseDpEvent(0.5, 2)


def _said(row: str) -> list[float]:
    """The numbers in the last column of the row that begins so."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {row}")]
    last = line.strip().strip("|").split("|")[-1].rsplit(":", 1)[-1]
    return [float(n) for n in re.findall(r"\d+\.\d+(?:e-\d+)?|\b1\b", last)]


def _near(row: str, *numbers: float) -> None:
    assert _said(row) == [pytest.approx(n, abs=6e-4) for n in numbers]


def test_noise_over_c() -> None:
    ours = PrivlossAccountant(REPLACE).compose(GAUSSIAN).get_epsilon(1e-6)
    theirs = dpa.rdp.RdpAccountant(neighboring_relation=REPLACE).compose(GAUSSIAN).get_epsilon(1e-6)
    assert dpa.pld.PLDAccountant(REPLACE).compose(GAUSSIAN).get_epsilon(1e-6) == pytest.approx(ours, rel=1e-6)
    _near("`noise_multiplier`", ours, theirs)
    # the other meaning is another description here
    assert pl.Gaussian(sigma=1.1).epsilon(1e-6, adjacency="replace-one").upper == pytest.approx(4.3857, abs=1e-4)


def test_laplace() -> None:
    ours = PrivlossAccountant(REPLACE).compose(LAPLACE).get_epsilon(1e-6)
    theirs = dpa.rdp.RdpAccountant(neighboring_relation=REPLACE).compose(LAPLACE).get_epsilon(1e-6)
    assert not dpa.pld.PLDAccountant(REPLACE).supports(LAPLACE)
    _near("`LaplaceDpEvent`", ours, theirs)


def test_one_sample() -> None:
    together = dp_event.PoissonSampledDpEvent(0.01, dp_event.SelfComposedDpEvent(GAUSSIAN, 4))
    apart = dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(0.01, GAUSSIAN), 4)
    _near("several releases", *(PrivlossAccountant().compose(e).get_epsilon(1e-6) for e in (together, apart)))


def test_null_reports() -> None:
    ours = PrivlossAccountant(SPECIAL).compose(COIN).get_epsilon(0.0)
    theirs = dpa.pld.PLDAccountant(SPECIAL).compose(COIN).get_epsilon(0.0)
    assert (ours, theirs) == (pytest.approx(math.log(3), abs=1e-4), pytest.approx(math.log(2), abs=1e-4))
    _near("`num_buckets`", ours, theirs)


def test_zero_noise_on_a_sample() -> None:
    event = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(0.0))
    _near("zero noise", *(a.compose(event).get_delta(1.0) for a in (PrivlossAccountant(), dpa.pld.PLDAccountant())))


def test_no_noise_has_no_name() -> None:
    event = dp_event.DiscreteLaplaceDpEvent(0, 1)
    with pytest.raises(pl.InvalidInput):
        PrivlossAccountant().compose(event)
    assert dpa.pld.PLDAccountant().compose(event).get_delta(1.0) == 1
