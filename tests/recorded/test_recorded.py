"""What 0.1.0 answered, asked again: the same, inside the old interval, or for a reason the changelog names."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.recorded.ask import answer
from tests.recorded.compare import Record, judged, records, written_as_before

SHARDS = 24
QUICK = 0.05  # seconds that 0.1.0 took; `python -m tests.recorded.compare` asks everything
# Few uses of Laplace noise, and many of a table, have slow trade-off curves (docs/design.md, known limits): these were
# quick while noisy max was a box and uneven pairs were refused.
SLOW_NOW = ("noisy-max", "custom", "tabulated", "trade-off")


def _slow_now(step: dict[str, Any]) -> bool:
    """Also what was refused then: other than Gaussian noise drawn with replacement."""
    drawn = step.get("sampling", {}).get("scheme") == "with-replacement"
    return step["mechanism"] in SLOW_NOW or (drawn and step["mechanism"] != "gaussian")


@pytest.mark.parametrize("shard", range(SHARDS))
def test_recorded_answers(shard: int) -> None:
    found: Counter[str] = Counter()
    for i, record in enumerate(records()):
        if i % SHARDS != shard:
            continue
        assert written_as_before(record), record["steps"]
        if record["seconds"] <= QUICK:
            slow = any(_slow_now(step) for step in record["steps"])
            for question, old in record["answers"].items():
                if slow and question.split()[0] in ("tradeoff", "zcdp"):
                    continue
                if "price in GDP" in old and i % 8:  # refused then, and any answer will do: a few are asked
                    continue
                new = answer(record, question)
                verdict = judged(record, question, old, new)
                assert verdict != "UNEXPLAINED", (record["adjacency"], record["steps"], question, old, new)
                found[verdict] += 1
    assert found["same"] > 400


def test_the_record_is_large_and_varied() -> None:
    kept = list(records())
    assert len(kept) > 9_000
    assert sum(any(not isinstance(a, str) for a in r["answers"].values()) for r in kept) > 4_000
    asked = {question.split()[0] for r in kept for question in r["answers"]}
    assert asked == {"epsilon", "delta", "rdp", "tradeoff", "price", "zcdp", "kl", "total_variation"}


def test_a_changed_answer_would_be_noticed() -> None:
    question = "epsilon 1e-06"
    record = next(r for r in records() if r["steps"][0].get("noise_multiplier") == 1.1)
    low, high = record["answers"][question]
    assert judged(record, question, [low, high], [low, high]) == "same"
    assert judged(record, question, [low, high], [low, high * 1.01]) == "UNEXPLAINED"
    assert judged(record, question, [low, high], [low * 0.99, high]) == "UNEXPLAINED"
    assert judged(record, question, [low, high], "Unsupported: no.") == "UNEXPLAINED"


def _record(adjacency: str, mechanism: str, **parameters: object) -> Record:
    return {"adjacency": adjacency, "steps": [{"mechanism": mechanism, **parameters, "count": 2}]}


def test_noisy_max_may_only_fall() -> None:
    """Both ends, up to what a blurred line may add; of a trade-off curve both rise. Gumbel noise did not change."""
    laplace = _record("add-remove", "noisy-max", epsilon=0.3, noise="laplace")
    assert judged(laplace, "epsilon 1e-06", [0.5, 0.6], [0.4, 0.55]) == "noisy max"
    assert judged(laplace, "epsilon 1e-06", [0.5, 0.6], [0.4, 0.6001]) == "UNEXPLAINED"
    assert judged(laplace, "epsilon 1e-06", [0.5, 0.6], [0.51, 0.7]) == "UNEXPLAINED"
    assert judged(laplace, "epsilon 1e-06", [0.5, 0.6], "Unsupported: no.") == "UNEXPLAINED"
    assert judged(laplace, "price pure", {"epsilon": "1/2"}, {"epsilon": "51/100"}) == "UNEXPLAINED"
    assert judged(laplace, "tradeoff 0.01", [0.5, 0.6], [0.55, 0.7]) == "noisy max"
    assert judged(laplace, "tradeoff 0.01", [0.5, 0.6], [0.4, 0.7]) == "UNEXPLAINED"
    gumbel = _record("add-remove", "noisy-max", epsilon=0.3)
    assert judged(gumbel, "epsilon 1e-06", [0.5, 0.6], [0.4, 0.55]) == "UNEXPLAINED"


def test_uneven_pairs_may_only_rise() -> None:
    """Where one order was answered, both ends; where all was refused, not below one order for all steps, which has
    total variation 0.48."""
    uneven = _record("replace-one", "custom", p=[0.9, 0.1], q=[0.5, 0.5])
    assert judged(uneven, "epsilon 0.3", [0.86, 0.87], [1.09, 1.36]) == "uneven pairs"
    assert judged(uneven, "epsilon 0.3", [0.86, 0.87], [0.80, 0.90]) == "UNEXPLAINED"
    assert judged(uneven, "tradeoff 0.1", [0.5, 0.6], [0.3, 0.4]) == "uneven pairs"
    assert judged(uneven, "tradeoff 0.1", [0.5, 0.6], [0.55, 0.7]) == "UNEXPLAINED"
    refused = "Unsupported: Custom: neighbours may swap roles from step to step."
    assert judged(uneven, "total_variation", refused, [0.48, 0.6]) == "uneven pairs"
    assert judged(uneven, "total_variation", refused, [0.4, 0.47]) == "UNEXPLAINED"
    assert judged(uneven, "total_variation", refused, "Unsupported: no.") == "UNEXPLAINED"
    assert judged(uneven, "total_variation", "Unsupported: no.", [0.48, 0.6]) == "UNEXPLAINED"
    assert judged({**uneven, "adjacency": "add-remove"}, "epsilon 0.3", [0.86, 0.87], [1.0, 1.1]) == "UNEXPLAINED"


def test_gdp_boxes_and_bins_may_only_fall() -> None:
    box = {"adjacency": "replace-one", "steps": [{"mechanism": "gdp", "mu": 0.4, "sampling": {"scheme": "poisson"}}]}
    assert judged(box, "epsilon 1e-06", [4.0, 4.1], [2.0, 2.1]) == "gdp"
    assert judged(box, "epsilon 1e-06", [4.0, 4.1], [4.5, 4.6]) == "UNEXPLAINED"
    bins = {"adjacency": "add-remove", "steps": [{"mechanism": "tabulated", "sampling": {"scheme": "poisson"}}]}
    assert judged(bins, "delta 0.5", [0.1, 0.2], [0.05, 0.2]) == "tabulated"
    assert judged(bins, "delta 0.5", [0.1, 0.1], [0.05, 0.1001]) == "UNEXPLAINED"
