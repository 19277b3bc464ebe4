"""OpenDP itself: measures, metrics and maps are what the adapter reads, and the boxes answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import opendp.prelude as dp
import pytest
from opendp.mod import Measurement, PrivacyProfile

import privloss as pl
from privloss.interop.opendp import from_measurement
from tests.interop.pages import run
from tests.interop.signatures import recorded, signatures

dp.enable_features("contrib")
NUMBER: Any = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
VECTOR: Any = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)


def test_signatures_are_those_recorded() -> None:
    found = signatures(Measurement, ("map", "input_metric", "output_measure"))
    found |= signatures(PrivacyProfile, ("delta", "epsilon"))
    found["measures"] = ", ".join(
        str(m)
        for m in (
            dp.max_divergence(), dp.zero_concentrated_divergence(), dp.smoothed_max_divergence(), dp.renyi_divergence(),
            dp.approximate(dp.max_divergence()), dp.approximate(dp.zero_concentrated_divergence()),
        )
    )  # fmt: skip
    found["metrics"] = ", ".join(
        str(m)
        for m in (
            dp.symmetric_distance(), dp.insert_delete_distance(), dp.change_one_distance(), dp.hamming_distance(),
        )
    )  # fmt: skip
    assert found == recorded("opendp")


def test_measures() -> None:
    laplace, gaussian = dp.m.make_laplace(*NUMBER, scale=2.0), dp.m.make_gaussian(*VECTOR, scale=1.1)
    assert from_measurement(laplace, 1.0, "add-remove") == pl.PureDP(laplace.map(1.0)).as_plan()
    zcdp = from_measurement(gaussian, 1.0, "add-remove")
    assert zcdp == pl.ZCDP(gaussian.map(1.0)).as_plan()
    assert pl.Gaussian(1.1).epsilon(1e-6).upper <= zcdp.epsilon(1e-6).upper
    approx = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)
    assert from_measurement(approx, 1.0, "replace-one") == pl.ApproxDP(*approx.map(1.0)).as_plan().under("replace-one")
    rounded = dp.c.make_approximate(laplace)
    assert from_measurement(rounded, 1.0, "add-remove") == pl.ApproxDP(*rounded.map(1.0)).as_plan()


def test_profiles() -> None:
    smoothed = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*VECTOR, scale=1.1))
    plan = from_measurement(smoothed, 1.0, "add-remove")
    assert pl.Gaussian(1.1).epsilon(1e-6).lower <= plan.epsilon(1e-6).upper
    assert plan.epsilon(1e-6).upper <= 1.3 * smoothed.map(1.0).epsilon(1e-6)


def test_metrics() -> None:
    count = (
        (dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance())
        >> dp.t.then_count()
        >> dp.m.then_laplace(scale=1.0)
    )
    assert from_measurement(count, 1, "add-remove") == pl.PureDP(count.map(1)).as_plan()
    with pytest.raises(pl.InvalidInput, match="2 apart"):
        from_measurement(count, 1, "replace-one")
    assert from_measurement(count, 2, "replace-one").steps[0][0] == pl.PureDP(count.map(2))


def test_the_code_in_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("opendp")
