"""Random plans keep the promises: intervals, monotonicity, inversion, JSON."""

from __future__ import annotations

import json
import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privloss as pl

log_uniform = st.floats(-3.0, 1.0).map(lambda x: 10.0**x)
sigmas = st.floats(-1.0, 2.0).map(lambda x: 10.0**x)
rates = st.floats(-6.0, 0.0).map(lambda x: 10.0**x)
counts = st.floats(0.0, 9.0).map(lambda x: int(10.0**x))
deltas = st.floats(-40.0, -0.5).map(lambda x: 10.0**x)

gaussians = st.builds(lambda s, n: pl.Gaussian(s) * n, sigmas, counts)
sampled = st.builds(lambda s, q, n: pl.Gaussian(s).poisson(q) * n, sigmas, rates, counts)
laplaces = st.builds(lambda b, n: pl.Laplace(b) * n, log_uniform.map(lambda x: 100 * x), counts)
boxes = st.builds(lambda e, n: pl.PureDP(e) * n, log_uniform, counts)
parts = st.one_of(gaussians, sampled, laplaces, boxes)
plans = st.lists(parts, min_size=1, max_size=3).map(lambda found: sum(found[1:], found[0]))

WORK = 1e8  # a twentieth of what is usually allowed: what is extreme is wider then, and must be as sound
careful = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


@careful
@given(plans, deltas)
def test_interval_and_inversion(plan: pl.Plan, delta: float) -> None:
    bound = plan.epsilon(delta, work=WORK)
    assert 0 <= bound.lower <= bound.upper
    if 0 < bound.upper < 1e8:
        assert plan.delta(bound.upper, work=WORK).lower <= delta
        assert plan.delta(bound.lower, work=WORK).upper >= delta or bound.lower == 0


@careful
@given(plans, deltas, st.floats(1.01, 100.0))
def test_more_delta_less_epsilon(plan: pl.Plan, delta: float, factor: float) -> None:
    assert plan.epsilon(min(delta * factor, 1.0), work=WORK).lower <= plan.epsilon(delta, work=WORK).upper


@careful
@given(plans, parts, deltas)
def test_more_steps_more_epsilon(plan: pl.Plan, extra: pl.Plan, delta: float) -> None:
    assert plan.epsilon(delta, work=WORK).lower <= (plan + extra).epsilon(delta, work=WORK).upper


@careful
@given(sampled, deltas)
def test_sampling_helps(plan: pl.Plan, delta: float) -> None:
    ((mechanism, times),) = plan.steps
    assert isinstance(mechanism, pl.PoissonSampled)
    assert plan.epsilon(delta, work=WORK).lower <= (mechanism.mechanism * times).epsilon(delta, work=WORK).upper


@careful
@given(st.floats(-6.0, 3.0), st.floats(-300.0, -0.31))
def test_gaussian_closed_form_and_contour_agree(log_mu: float, log_delta: float) -> None:
    """The closed form and a sampled Gaussian with rate one minus a rounding are two different engines."""
    mu, delta = 10.0**log_mu, 10.0**log_delta
    closed = pl.GDP(mu).epsilon(delta)
    near = pl.Gaussian(1 / mu).poisson(math.nextafter(1.0, 0.0)).epsilon(delta)
    assert near.lower <= closed.upper
    assert closed.lower <= near.upper * (1 + 1e-9) + 1e-12


@settings(max_examples=200, deadline=None)
@given(plans)
def test_json(plan: pl.Plan) -> None:
    assert pl.Plan.from_json(json.dumps(plan.to_dict())) == plan
