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
from tests.mechanisms.peers import column

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


def test_every_measurement_has_a_row() -> None:
    """In the table of docs/mechanisms.md; chains of a measurement with what comes before or after it add nothing."""
    made = {n for module in (dp.m, dp.c) for n in module.__all__ if n.startswith("make_")}
    assert made - {"make_chain_mt", "make_chain_pm", "make_chain_tt"} <= column("OpenDP")
    assert {n for n in column("OpenDP") if n.startswith("make_")} <= made


def test_bits_cost_what_the_table_says() -> None:
    """Vectors of weight m differ in at most 2 m bits; each is answered at random with probability f."""
    bits = dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=2), dp.discrete_distance(), f=0.5)
    ours = (pl.RandomizedResponse(p=0.5) * 4).epsilon(0.0)
    assert bits.map(1) == pytest.approx(ours.upper, rel=1e-9)


def test_choices_cost_what_the_table_says() -> None:
    """epsilon / 2 D is one over the scale."""
    scores: Any = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    best = dp.m.make_noisy_max(*scores, dp.max_divergence(), scale=4.0)
    assert best.map(1.0) == pytest.approx(pl.PermuteAndFlip(0.5).epsilon(0.0).upper)
    gumbel = dp.m.make_noisy_max(*scores, dp.zero_concentrated_divergence(), scale=4.0)
    assert pl.Exponential(0.5).epsilon(1e-6).upper <= pl.ZCDP(gumbel.map(1.0)).epsilon(1e-6).upper
    three = dp.m.make_noisy_top_k(*scores, dp.max_divergence(), k=3, scale=4.0)
    assert three.map(1.0) == pytest.approx(pl.TopK(0.5, k=3, noise="exponential").epsilon(0.0).upper)


def test_the_code_in_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("opendp")
