"""JAX Privacy 2: a configuration for its accountants, and an accountant for what they do not describe.

`PrivlossAccountantConfig()` goes wherever `PldAccountantConfig()` goes: into `DpsgdTrainingAccountant` and so into its
calibrations, also with batches cut down to a largest size. `TrainingAccountant()` reads the run itself instead of the
events that JAX Privacy makes of it: batches of fixed size are answered under replace-one as such (JAX Privacy describes
them as Poisson samples with half the noise, which is a bound under add-remove only), and users with several examples
on Poisson samples as groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE
from privloss.answers import exact
from privloss.errors import MissingExtra, Unsupported
from privloss.interop.dp_accounting import PrivlossAccountant
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.matrix_mechanism import MatrixMechanism
from privloss.numerics.bound import Bound
from privloss.theorems import group

try:
    from jax_privacy.accounting import accountants, analysis
except ImportError as problem:
    raise MissingExtra(f"JAX Privacy is not installed ({problem}): pip install 'privloss[jax-privacy]'.") from None


@dataclass(kw_only=True, slots=True)
class PrivlossAccountantConfig(accountants.PldAccountantConfig):
    """Where batches are cut down JAX Privacy insists on the class above; its grid is not used."""

    def create_accountant(self) -> PrivlossAccountant:
        return PrivlossAccountant()


class TrainingAccountant(analysis.DpTrainingAccountant):
    """A `DpTrainingAccountant` that turns the parameters of a run into a plan."""

    def __init__(self) -> None:
        super().__init__(PrivlossAccountantConfig())

    def can_calibrate_steps(self) -> bool:
        return True

    def can_calibrate_batch_size(self) -> bool:
        return True

    def can_calibrate_noise_multipliers(self) -> bool:
        return True

    def plan(self, num_updates: Any, dp_params: Any) -> Plan:
        """What runs; for users with several examples, as they see it."""
        fixed = dp_params.sampling_method is analysis.SamplingMethod.FIXED_BATCH_SIZE
        if dp_params.cycle_length not in (None, 1):
            return Plan(((_banded(int(num_updates), dp_params, fixed), 1),))
        steps = tuple(_steps(int(num_updates), dp_params, fixed))
        plan = Plan(steps, REPLACE_ONE if fixed else ADD_REMOVE)
        return group.plan(plan, people=dp_params.examples_per_user or 1)

    def estimate(self, num_updates: Any, dp_params: Any) -> Bound:
        """Epsilon as an interval."""
        self._validate_dp_params(dp_params)
        return exact.one_epsilon(self.plan(num_updates, dp_params), dp_params.delta)

    def _compute_epsilon(self, num_updates: Any, dp_params: Any) -> float:
        if dp_params.noise_multipliers == 0:  # where calibrations begin: no sampler makes a promise without noise
            return math.inf
        return self.estimate(num_updates, dp_params).upper


def _banded(updates: int, run: Any, fixed: bool) -> Mechanism:
    """BandMF on cyclic Poisson samples: with at most `cycle_length` bands and columns of norm 1 at most any C has the
    pair of C = 1, a Poisson-sampled Gaussian for every step of a class (docs/matrix.md)."""
    cycle, users = run.cycle_length, run.examples_per_user or 1
    if fixed or users != 1 or run.truncated_batch_size is not None:
        raise Unsupported(
            f"cycle_length = {cycle}: correlated noise is proven here for Poisson samples that are not cut down and "
            "one example each; DpsgdTrainingAccountant(PrivlossAccountantConfig()) answers by JAX Privacy's reduction."
        )
    return MatrixMechanism(
        toeplitz=[1.0], steps=updates, participation="cyclic-poisson", separation=cycle,
        rate=int(run.batch_size) / (run.num_samples // cycle), noise_multiplier=float(run.noise_multipliers),
    )  # fmt: skip


def _steps(updates: int, run: Any, fixed: bool) -> Iterator[tuple[Mechanism, int]]:
    """One phase for every noise and batch size, cut as JAX Privacy cuts its schedules."""
    most = run.truncated_batch_size
    if fixed and most is not None:
        raise Unsupported("truncated_batch_size with FIXED_BATCH_SIZE: such batches have one size already.")
    for count, noise, batch in analysis._interleave_nm_and_bs(run.noise_multipliers, run.batch_sizes, updates):
        release, size = Gaussian(noise_multiplier=float(noise)), int(batch)
        if not count:
            continue
        if fixed:
            yield release.fixed_size(run.num_samples, size), int(count)
        elif most is None:
            yield release.poisson(size / run.num_samples), int(count)
        else:
            yield release.truncated_poisson(size / run.num_samples, run.num_samples, most), int(count)
