"""Whatever can be asked like a plan can be charged like one; nothing else can."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import privloss as pl
from privloss.ledger.ledger import Ledger, RefusedError

RUN = pl.dp_sgd(dataset_size=1000, batch_size=10, steps=5, noise_multiplier=10.0, sampling="poisson")


@pytest.fixture
def ledger(place: str) -> Ledger:
    made = Ledger.create(place)
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="approx", cap="10", delta="1e-4")
    return made


@pytest.mark.parametrize(
    ("given", "plan"),
    [
        (pl.Laplace(20), pl.Plan.of(pl.Laplace(20))),
        (pl.Gaussian(10).poisson(0.1), pl.Plan.of(pl.Gaussian(10).poisson(0.1))),
        (RUN, RUN.plan),
    ],
    ids=["mechanism", "sampled", "training run"],
)
def test_charged_like_its_plan(ledger: Ledger, given: Any, plan: pl.Plan) -> None:
    assert ledger.quote("d", given) == ledger.quote("d", plan)
    held = ledger.reserve("d", given, key="k")
    assert ledger.reserve("d", plan, key="k") == held  # the same request
    assert ledger.history("d")[-1]["plan"] == plan.to_dict()
    with ledger.spend("d", given, key="k"):
        pass

    async def spend() -> None:
        async with ledger.aspend("d", given, key="async"):
            pass

    asyncio.run(spend())

    @ledger.spending("d", given)
    def answer() -> int:
        return 42

    assert answer(key="call") == 42
    assert [e["plan"] for e in ledger.history("d") if e["kind"] == "reserved"] == [plan.to_dict()] * 3


@pytest.mark.parametrize("given", [pl.Laplace, "laplace", 0.5, {"steps": []}, object(), [pl.Laplace(1)], True])
def test_anything_else_is_refused_in_one_sentence(ledger: Ledger, given: Any) -> None:
    asks = (
        lambda: ledger.quote("d", given),
        lambda: ledger.reserve("d", given, key="k"),
        lambda: ledger.spend("d", given, key="k").__enter__(),
    )
    for ask in asks:
        with pytest.raises(pl.InvalidInput, match="must be a plan, a mechanism or a training run") as problem:
            ask()
        assert str(problem.value).startswith(f"plan = {given!r}: ")
    assert ledger.status("d")["reserved"]["epsilon"] == "0"


def test_a_mechanism_alone_is_for_add_remove(ledger: Ledger) -> None:
    ledger.add_dataset("other", adjacency="replace-one")
    ledger.set_budget("other", currency="pure", cap="1")
    with pytest.raises(RefusedError, match="adjacency"):
        ledger.reserve("other", pl.Laplace(20), key="k")
    assert ledger.reserve("other", pl.Laplace(20).as_plan().under("replace-one"), key="k").state == "RESERVED"
