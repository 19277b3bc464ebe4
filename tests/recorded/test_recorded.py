"""What 0.1.0 answered, asked again: the same, inside the old interval, or for a reason the changelog names."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.recorded.ask import answer
from tests.recorded.compare import judged, records, written_as_before

SHARDS = 24
QUICK = 0.05  # seconds that 0.1.0 took; `python -m tests.recorded.compare` asks everything
# Few uses of Laplace noise, and many of a table, have slow trade-off curves (docs/design.md, known limits): these were
# quick while noisy max was a box and uneven pairs were refused.
SLOW_NOW = ("noisy-max", "custom", "tabulated", "trade-off")


@pytest.mark.parametrize("shard", range(SHARDS))
def test_recorded_answers(shard: int) -> None:
    found: Counter[str] = Counter()
    for i, record in enumerate(records()):
        if i % SHARDS != shard:
            continue
        assert written_as_before(record), record["steps"]
        if record["seconds"] <= QUICK:
            slow = {step["mechanism"] for step in record["steps"]} & set(SLOW_NOW)
            for question, old in record["answers"].items():
                if slow and question.split()[0] in ("tradeoff", "zcdp"):
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
