"""The sampler of a loader is what really runs, and its epsilon holds for that."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from mpmath import mp

import privloss as pl
from privloss.interop.loaders import Ran, epsilon, explain_loader
from tests.interop import training_standins as standins
from tests.interop.training_standins import RandomSampler, SequentialSampler, batches, loader

NOISE, DELTA = 0.9692, 1e-5


def poisson(rate: float, **how: Any) -> Any:
    return loader(standins.UniformWithReplacementSampler(num_samples=1000, sample_rate=rate, **how))


def test_the_sampler_named_with_replacement_is_poisson() -> None:
    ran = explain_loader(poisson(1 / 64))
    assert ran.plan(noise_multiplier=NOISE, epochs=3) == pl.Gaussian(NOISE).poisson(1 / 64) * 192
    assert ran.is_poisson(1 / 64)
    assert not ran.is_poisson(1 / 63)
    assert ran.notes == ()


def test_opacus_rounds_93_batches_to_92_and_that_is_told() -> None:
    ran = explain_loader(poisson(1 / 93))
    assert ran.batches == 92
    assert "1/93, but 92 batches per epoch: int(1/rate) was rounded down" in ran.notes[0]
    assert "int(1/rate) = 92 of the 93" in explain_loader(batches(930, 10)).notes[-1]


def test_distributed_and_split_batches_are_the_same_sampler() -> None:
    spread = standins.DistributedUniformWithReplacementSampler(total_size=1000, sample_rate=1 / 64)
    assert explain_loader(loader(spread)).is_poisson(1 / 64)
    assert "replicas" in str(explain_loader(loader(spread)))
    inner = standins.BatchSplittingSampler(sampler=spread, max_batch_size=8, optimizer=None)
    assert explain_loader(loader(inner)) == explain_loader(loader(spread))


@pytest.mark.parametrize(
    ("given", "plan"),
    [
        (batches(1000, 10), pl.Gaussian(NOISE).shuffle(100) * 3),
        (batches(1001, 10), pl.Gaussian(NOISE).shuffle(101) * 3),
        (batches(1001, 10, drop_last=True), pl.Gaussian(NOISE).shuffle(100) * 3),
        (batches(1000, 10, order=SequentialSampler), pl.Gaussian(NOISE) * 3),
    ],
)
def test_epochs(given: Any, plan: pl.Plan) -> None:
    assert explain_loader(given).plan(noise_multiplier=NOISE, epochs=3) == plan.under("zero-out")


def test_draws_with_replacement_count_their_last_batch_by_its_size() -> None:
    ran = explain_loader(batches(1000, 15, replacement=True, num_samples=100))
    step = pl.Gaussian(NOISE)
    assert ran.plan(noise_multiplier=NOISE, epochs=2) == step.with_replacement(1000, 15) * 12 + (
        step.with_replacement(1000, 10) * 2
    )
    assert dict(ran.steps(NOISE, 8)) == {step.with_replacement(1000, 15): 7, step.with_replacement(1000, 10): 1}
    dropped = explain_loader(batches(1000, 15, drop_last=True, replacement=True, num_samples=100))
    assert dropped.plan(noise_multiplier=NOISE, epochs=2) == step.with_replacement(1000, 15) * 12


def test_a_shuffled_run_that_poisson_accounting_calls_2_9997() -> None:
    """60 000 records, batches of 256, 60 epochs."""
    found = explain_loader(batches(60_000, 256)).epsilon(DELTA, noise_multiplier=NOISE, epochs=60)
    assert found.lower >= 18.0
    assert found.upper >= (pl.Gaussian(NOISE) * 60).epsilon(DELTA).upper
    assert "zero-out" in found.method


def test_a_part_of_an_epoch_counts_whole_above_and_not_at_all_below() -> None:
    ran = explain_loader(batches(1000, 10))
    part, one, two = (epsilon([(ran, NOISE, n)], DELTA) for n in (150, 100, 200))
    assert (part.lower, part.upper) == (one.lower, two.upper)
    assert epsilon([(ran, NOISE, 50)], DELTA).lower == 0


def test_records_left_out_have_no_lower_end() -> None:
    for given in (batches(1001, 10, drop_last=True), batches(1000, 10, num_samples=500)):
        found = explain_loader(given).epsilon(DELTA, noise_multiplier=NOISE, epochs=2)
        assert found.lower == 0
        assert found.upper >= (pl.Gaussian(NOISE) * 2).epsilon(DELTA).upper
    assert explain_loader(batches(1000, 10, drop_last=True)).attained


def _delta(outcomes: list[tuple[float, ...]], eps: float, noise: float) -> float:
    """delta of a public mixture: all others are silent, the record is at one of these places (its own epochs)."""
    with mp.workdps(30):
        total = mp.mpf(0)
        for places in outcomes:
            d = mp.sqrt(sum(x * x for x in places)) / noise
            total += mp.ncdf(d / 2 - eps / d) - mp.exp(eps) * mp.ncdf(-d / 2 - eps / d)
        return float(total / len(outcomes))


@pytest.mark.parametrize(("records", "size", "epochs"), [(4, 2, 1), (5, 2, 2), (3, 3, 2)])
def test_shuffled_epochs_against_all_permutations(records: int, size: int, epochs: int) -> None:
    """Given the permutations the record moves one batch per epoch: the upper end is that mixture's, exactly."""
    ran = explain_loader(batches(records, size))
    found = ran.epsilon(DELTA, noise_multiplier=2.0, epochs=epochs)
    places = [order.index(0) for order in permutations(range(records))]
    moved = [tuple(float(place // size == batch) for batch in range(ran.batches)) for place in places]
    assert _delta([m * epochs for m in moved], found.upper, 2.0) <= DELTA
    assert _delta([m * epochs for m in moved], found.upper * (1 - 1e-9), 2.0) > DELTA * (1 - 1e-6)


def test_several_batches_behind_one_update() -> None:
    ran = explain_loader(batches(1000, 10))
    assert ran.accumulated(1) is ran
    four = ran.accumulated(4)
    assert four.batches == 25
    assert four.plan(noise_multiplier=NOISE, epochs=1) == (pl.Gaussian(NOISE).shuffle(25) * 1).under("zero-out")
    with pytest.raises(pl.Unsupported, match="several clipping norms"):
        ran.accumulated(3)  # the last update of an epoch would reach into the next one
    with pytest.raises(pl.Unsupported, match="several clipping norms"):
        explain_loader(poisson(1 / 64)).accumulated(2)


class Weighted:
    """Unknown."""


class Later(RandomSampler):
    """A subclass may draw otherwise."""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: loader(Weighted()), "Weighted"),
        (lambda: loader(None), "without a batch sampler"),
        (lambda: batches(10, 2, order=Later), "Later"),
        (lambda: batches(10, 2, num_samples=20), "repeats records"),
    ],
)
def test_refused_by_name(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(pl.Unsupported, match=words):
        explain_loader(make())


@pytest.mark.parametrize("replacement", [False, True])
def test_no_batch_left(replacement: bool) -> None:
    with pytest.raises(pl.InvalidInput, match="no batch is left"):
        explain_loader(batches(5, 10, drop_last=True, replacement=replacement))


def test_several_phases_share_an_adjacency_that_holds_for_all() -> None:
    shuffled, sequence = explain_loader(batches(1000, 10)), explain_loader(batches(1000, 10, order=SequentialSampler))
    others = ((pl.Gaussian(NOISE).poisson(0.01), 50),)
    found = epsilon([(shuffled, NOISE, 100), (sequence, 2.0, 200)], DELTA, others)
    plan = pl.Gaussian(NOISE).poisson(0.01) * 50 + pl.Gaussian(NOISE).shuffle(100) + pl.Gaussian(2.0) * 2
    assert found == plan.under("zero-out").epsilon(DELTA)
    assert not math.isinf(found.upper)
    assert isinstance(shuffled, Ran)
