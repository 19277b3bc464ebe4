"""The config and the accountant in JAX Privacy's own calibrations."""

from __future__ import annotations

from typing import Any

import pytest

accounting = pytest.importorskip("jax_privacy.accounting")

import privloss as pl  # noqa: E402
from privloss.interop.jax_privacy import PrivlossAccountantConfig, TrainingAccountant  # noqa: E402
from tests.interop.training_signatures import described, recorded  # noqa: E402

DELTA = 1e-5
RUN: dict[str, Any] = {"num_samples": 60_000, "target_delta": DELTA, "target_epsilon": 3.0}


def ours() -> Any:
    return accounting.DpsgdTrainingAccountant(dp_accountant_config=PrivlossAccountantConfig())


def params(**more: Any) -> Any:
    given = {"noise_multipliers": 1.0, "num_samples": 60_000, "delta": DELTA, "batch_size": 256, **more}
    return accounting.DpParams(**given)


def test_signatures() -> None:
    for place, parameters in recorded("jax-privacy").items():
        assert described(place) == parameters, place


@pytest.mark.parametrize("accountant", [ours(), TrainingAccountant()])
def test_calibrations_keep_the_promise(accountant: Any) -> None:
    noise = accounting.calibrate_noise_multiplier(accountant=accountant, batch_sizes=256, num_updates=1410, **RUN)
    assert 2.8 < (pl.Gaussian(noise).poisson(256 / 60_000) * 1410).epsilon(DELTA).upper <= 3
    updates = accounting.calibrate_num_updates(accountant=accountant, noise_multipliers=1.0, batch_sizes=256, **RUN)
    assert 2.99 < (pl.Gaussian(1.0).poisson(256 / 60_000) * updates).epsilon(DELTA).upper <= 3
    batch = accounting.calibrate_batch_size(accountant=accountant, noise_multipliers=1.0, num_updates=1000, **RUN)
    assert 2.99 < (pl.Gaussian(1.0).poisson(batch / 60_000) * 1000).epsilon(DELTA).upper <= 3


def test_batches_cut_down_are_accepted_and_below_theirs() -> None:
    cut = params(truncated_batch_size=300)
    theirs = accounting.DpsgdTrainingAccountant(dp_accountant_config=accounting.PldAccountantConfig())
    found = ours().compute_epsilon(1000, cut)
    assert found == TrainingAccountant().compute_epsilon(1000, cut)
    assert found < theirs.compute_epsilon(1000, cut)


def test_users_and_schedules() -> None:
    theirs = accounting.DpsgdTrainingUserLevelAccountant(dp_accountant_config=accounting.PldAccountantConfig())
    users = params(examples_per_user=3)
    found = TrainingAccountant().estimate(1000, users)
    assert found.lower <= theirs.compute_epsilon(1000, users) < found.upper * 1.001
    growing = params(batch_size_scale_schedule={100: 2}, noise_multipliers=[(0, 1.0), (50, 2.0)])
    quiet, loud = pl.Gaussian(1.0), pl.Gaussian(2.0)
    plan = quiet.poisson(256 / 60_000) * 50 + loud.poisson(256 / 60_000) * 50 + loud.poisson(512 / 60_000) * 50
    assert TrainingAccountant().plan(150, growing) == plan
