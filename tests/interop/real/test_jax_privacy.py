"""The config and the accountant in JAX Privacy's own calibrations."""

from __future__ import annotations

from typing import Any

import pytest

accounting = pytest.importorskip("jax_privacy.accounting")

import privloss as pl  # noqa: E402
from privloss.interop.jax_privacy import PrivlossAccountantConfig, TrainingAccountant  # noqa: E402
from tests.interop.training_signatures import described, recorded  # noqa: E402
from tests.mechanisms.peers import column  # noqa: E402

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


def test_banded_noise_on_cyclic_samples() -> None:
    theirs = accounting.DpsgdTrainingAccountant(dp_accountant_config=accounting.PldAccountantConfig())
    found = TrainingAccountant().estimate(1000, params(cycle_length=8))
    assert found.lower <= theirs.compute_epsilon(1000, params(cycle_length=8)) * 1.001
    assert found.upper == pytest.approx(ours().compute_epsilon(1000, params(cycle_length=8)), rel=1e-6)


# -- sensitivities of their matrix families ----------------------------------------------------------------------------


def run_of(**given: Any) -> Any:
    return pl.MatrixMechanism(**{"noise_multiplier": 1.0, **given})


@pytest.fixture
def families() -> Any:
    """Their families in double precision."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    yield pytest.importorskip("jax_privacy.matrix_factorization")
    jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize(("separation", "times"), [(10, None), (10, 4), (25, 3), (1, None)])
def test_toeplitz_sensitivities_agree(families: Any, separation: int, times: int | None) -> None:
    coefficients = families.toeplitz.optimal_max_error_strategy_coefs(100)
    given = {"participation": "min-separation", "separation": separation, "times": times}
    ours = pl.MatrixMechanism.square_root(steps=100, noise_multiplier=1.0, **given)
    assert list(ours.toeplitz or ()) == pytest.approx([float(c) for c in coefficients], rel=1e-12)
    theirs = float(families.toeplitz.minsep_sensitivity_squared(coefficients, separation, times)) ** 0.5
    low, high = ours.sensitivity_of()
    assert low * (1 - 1e-11) <= theirs <= high * (1 + 1e-11)


def test_banded_and_buffered_sensitivities_agree(families: Any) -> None:
    banded = families.banded.ColumnNormalizedBanded.default(60, 6)
    theirs = float(families.banded.minsep_sensitivity_squared(banded, 6, 8)) ** 0.5
    ours = run_of(matrix=banded.materialize(), participation="min-separation", separation=6, times=8)
    assert ours.sensitivity_of() == pytest.approx((theirs, theirs), rel=1e-11)
    blt = families.buffered_toeplitz.BufferedToeplitz.from_rational_approx_to_sqrt_x(3, max_buf_decay=0.999)
    made = pl.MatrixMechanism.blt(
        omega=[float(x) for x in blt.output_scale], theta=[float(x) for x in blt.buf_decay], steps=500,
        noise_multiplier=1.0, participation="single",
    )  # fmt: skip
    theirs = float(families.buffered_toeplitz.sensitivity_squared(blt, 500)) ** 0.5
    assert made.sensitivity_of() == pytest.approx((theirs, theirs), rel=1e-10)


@pytest.mark.parametrize("signs", [False, True])
def test_dense_sensitivities_are_never_above_theirs(families: Any, signs: bool) -> None:
    import numpy as np

    rng = np.random.default_rng(3)
    c = np.tril(rng.normal(size=(30, 30)) if signs else rng.uniform(size=(30, 30)))
    theirs = families.sensitivity.fixed_epoch_sensitivity(np.asarray(c), 3)
    low, high = run_of(matrix=c, participation="fixed-epochs", separation=10).sensitivity_of()
    assert low <= theirs * (1 + 1e-11)
    assert high == pytest.approx(theirs, rel=1e-11)
    theirs = families.sensitivity.get_min_sep_sensitivity_upper_bound(np.asarray(c), 7, 3)
    low, high = run_of(matrix=c, participation="min-separation", separation=7, times=3).sensitivity_of()
    assert low <= high <= theirs * (1 + 1e-11)
    theirs = float(families.sensitivity.single_participation_sensitivity(np.asarray(c)))
    assert run_of(matrix=c, participation="single").sensitivity_of() == pytest.approx((theirs, theirs), rel=1e-11)


def test_everything_that_decides_about_privacy_has_a_row() -> None:
    """In the table of docs/mechanisms.md: accountants, samplers, events, families of correlated noise, privatizers."""
    from jax_privacy import batch_selection, matrix_factorization, noise_addition
    from jax_privacy.accounting import analysis
    from jax_privacy.experimental import accounting as events

    found = {n for n in vars(batch_selection) if n.endswith(("Sampling", "SelectionStrategy"))}
    found |= {n for n in vars(analysis) if n.endswith("Accountant")}
    found |= {n for n in vars(events) if n.endswith("_event")}
    found |= {n for n in vars(noise_addition) if n.endswith("privatizer") and not n.startswith("_")}
    found |= {"toeplitz", "banded", "buffered_toeplitz", "dense", "streaming_matrix"} & {*vars(matrix_factorization)}
    shared = {"BatchSelectionStrategy", "TrainingAccountant", "DpTrainingAccountant", "CachedExperimentAccountant"}
    assert found - shared <= column("JAX Privacy")
    assert column("JAX Privacy") - found == {"BandMFExecutionPlanConfig", "monte_carlo", "replace"}
