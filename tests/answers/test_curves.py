"""Many questions on shared lines, and a limit of work: every end still holds."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import pytest

import privloss as pl
from privloss.answers import exact
from privloss.answers.curves import _REACH, Glance, _next
from privloss.answers.pair import directions, exact_epsilon
from privloss.losses.composed import ComposedLoss
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics.contour.largest import draw
from privloss.numerics.contour.many import Mirrored, Silent, epsilons
from privloss.numerics.contour.solve import delta_bounds
from privloss.numerics.floats import Real
from tests.oracle.summed_losses import Oracle, Pair

PLANS = [
    pl.Gaussian(1.1).poisson(0.01) * 10_000,
    pl.Gaussian(1.3).poisson(0.001) * 3_000,
    pl.Gaussian(0.9).poisson(1e-4) * 200,
]


@pytest.mark.parametrize("plan", PLANS)
def test_shared_epsilons_hold_what_single_answers_say(plan: pl.Plan) -> None:
    deltas = np.geomspace(1e-9, 1e-5, 24)
    together = plan.epsilon(deltas.tolist())
    assert sum("shared" in " ".join(b.notes) for b in together) > 8
    for delta, bound in list(zip(deltas, together, strict=True))[::5]:
        alone = plan.epsilon(float(delta))
        assert bound.lower <= alone.upper
        assert alone.lower <= bound.upper
        assert bound.relative_width < 2e-9
        assert plan.delta(bound.upper).lower <= delta
        assert plan.delta(bound.lower).upper >= delta


@pytest.mark.parametrize("plan", PLANS)
def test_shared_deltas_hold_what_single_answers_say(plan: pl.Plan) -> None:
    low, high = plan.epsilon(1e-5).lower, plan.epsilon(1e-9).upper
    places = np.linspace(low, high, 24)
    together = plan.delta(places.tolist())
    assert sum("shared" in " ".join(b.notes) for b in together) > 8
    for eps, bound in list(zip(places, together, strict=True))[::5]:
        alone = plan.delta(float(eps))
        assert bound.lower <= alone.upper
        assert alone.lower <= bound.upper
        assert bound.relative_width < 2e-9


class Crooked:
    """log delta = -eps with errors that grow quickly: a first step away from the root is not enough."""

    def log_bounds(self, eps: Real) -> tuple[Real, Real]:
        off = 1e-6 * np.exp(20 * np.abs(eps - np.round(eps)))
        return -eps - off, -eps + off


def test_ends_read_off_a_line_meet_their_levels() -> None:
    line = Crooked()
    levels = np.array([[-5.02, -4.0, -6.11], [-5.01, -4.0, -6.1]])
    lower, upper = epsilons(line, 5.0, levels)
    assert np.all(np.isfinite(lower) & np.isfinite(upper))
    assert np.all(line.log_bounds(upper)[1] <= levels[0])
    assert np.all(line.log_bounds(lower)[0] >= levels[1])


def test_a_silent_direction_is_silent_from_its_largest_loss_on() -> None:
    lower, upper = Silent(2.0).log_bounds(np.array([1.999, 2.0, 3.0]))
    assert upper.tolist() == [0.0, -math.inf, -math.inf]
    assert np.all(lower == -math.inf)


@pytest.mark.parametrize("plan", [pl.Gaussian(1.0).poisson(0.3) * 5, pl.Gaussian(0.6).poisson(1e-3) * 40])
def test_the_mirror_image_of_a_line_is_the_other_direction(plan: pl.Plan) -> None:
    """Never below it; close to it where delta is not small and large losses are those of the direction drawn."""
    loss = worst_neighbours(plan).loss
    eps = plan.epsilon(0.3 * plan.delta(0.0).lower).lower
    for here, there in ((loss, loss.reversed()), (loss.reversed(), loss)):
        drawn = delta_bounds(here, 0.0, 1e-10)
        assert drawn.readable is not None
        places = np.array([0.0, 0.01 * eps, 0.1 * eps])
        mirrored = np.exp(Mirrored(drawn.readable).log_bounds(places)[1])
        for place, found in zip(places, mirrored, strict=True):
            low, high = np.exp(delta_bounds(there, float(place), 1e-10).logs)
            assert low <= found
            assert found == pytest.approx(high, rel=1e-6)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"), [(0.5153, 1.409e-5, 250), (1.0369, 8.7e-6, 25), (0.7, 2.2e-6, 321)]
)
def test_few_hits_at_epsilons_far_below_usual_losses(sigma: float, rate: float, steps: int) -> None:
    """delta near 0 is nearly the total variation; it came out up to thirty times too large."""
    plan = pl.Gaussian(sigma).poisson(rate) * steps
    before = plan.total_variation()
    assert before.relative_width < 1e-9
    for eps in (1e-7, 1e-5):
        found = plan.delta(eps)
        truth = Oracle(Pair(rate, sigma), steps, eps, found.upper).delta(eps)
        assert found.relative_width < 1e-9
        assert found.lower * (1 - 1e-13) <= truth <= found.upper * (1 + 1e-13)
        assert found.lower <= before.upper <= found.upper + math.expm1(eps)  # slopes in e^eps lie between -1 and 0
        before = found


def test_a_curve_of_few_hits_draws_a_handful_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []
    monkeypatch.setattr(
        exact, "delta_bounds", lambda loss, eps, *how: drawn.append(eps) or delta_bounds(loss, eps, *how)
    )
    plan = pl.Gaussian(0.7).poisson(2.2e-6) * 321
    curve = plan.tradeoff(np.linspace(0.005, 0.995, 100).tolist())
    assert 0 < len(drawn) < 40
    assert all(b.upper - b.lower <= 1e-10 for b in curve)
    alone = plan.tradeoff(0.5)
    assert alone.upper - alone.lower <= 1e-13
    assert curve[50].upper <= alone.upper + 1e-10  # at 0.505
    assert curve[49].lower >= alone.lower - 1e-10  # at 0.495


def test_few_hits_need_a_handful_of_lines_for_a_hundred_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []
    monkeypatch.setattr(
        exact, "delta_bounds", lambda loss, eps, *how: drawn.append(eps) or delta_bounds(loss, eps, *how)
    )
    plan = pl.Gaussian(0.62).poisson(1.4e-6) * 150_000
    places = np.linspace(0.004, 0.19, 100).tolist()
    found = plan.delta(places)
    assert 0 < len(drawn) < 10
    assert max(b.relative_width for b in found) < 2e-9
    for k in (0, 9, 55, 99):
        alone = plan.delta(places[k])
        assert found[k].lower <= alone.upper
        assert alone.lower <= found[k].upper


@pytest.mark.parametrize(
    ("plan", "delta"),
    [(PLANS[2], 1e-7), (pl.Gaussian(0.82).poisson(1.7e-4) * 14, 1e-9), (pl.Gaussian(0.53).poisson(2e-5) * 77, 1e-8)],
)
def test_lines_drawn_to_be_read_far_away_are(plan: pl.Plan, delta: float) -> None:
    loss = worst_neighbours(plan).loss
    rare, eps = loss.rare, plan.epsilon(delta).upper
    assert rare is not None
    places = eps * np.array([1 / 1.6, 1.0, 1.6])
    near, far = (draw(rare, eps, math.log(delta), 1e-10, reach).log_bounds(places) for reach in (1.0, 1.6))
    assert np.all(far[1] - far[0] < 1e-9)
    assert np.max(near[1] - near[0]) > 1e-7  # which is why
    for place, low, high in zip(places, *far, strict=True):
        alone = delta_bounds(loss, float(place), 1e-10).logs
        assert low <= alone[1]
        assert alone[0] <= high


def test_lines_that_cannot_be_read_so_far_away_are_drawn_for_one_place() -> None:
    loss = worst_neighbours(pl.Gaussian(0.5212).poisson(9.0721525e-4) * 50).loss
    assert loss.rare is not None
    alone, far = (draw(loss.rare, 4.5036, -19.65, 1e-10, reach) for reach in (1.0, 1.9))
    assert far.log_bounds(np.array([4.5036])) == alone.log_bounds(np.array([4.5036]))


def test_the_next_question_is_beside_what_is_known() -> None:
    places = np.log(np.geomspace(1e-3, 1.0, 61))
    assert _next(places, [True] * 61) == (30, _REACH)
    where, reach = _next(places, [k > 20 for k in range(61)])  # beside the lower end
    assert 22 < where < 28
    assert 1.3 < reach < _REACH**1.3
    assert _next(places, [k < 40 for k in range(61)])[0] in range(32, 38)  # and beside the upper
    assert _next(places, [k == 7 for k in range(61)]) == (7, 1.0)
    assert _next(places, [k in (3, 4, 50, 51, 52) for k in range(61)])[0] == 51  # the wider row


UNEVEN = ([0.6123, 0.1007, 0.287], [0.2987, 0.5011, 0.2002])


@pytest.mark.parametrize("swapped", [False, True])
def test_whichever_direction_is_worse(swapped: bool) -> None:
    """A glance at the second direction must not overlook it where it is the larger one."""
    p, q = UNEVEN[::-1] if swapped else UNEVEN
    plan = pl.Custom(p, q) * 200
    deltas = np.geomspace(1e-9, 1e-2, 8).tolist()
    for delta, bound in zip(deltas, plan.epsilon(deltas), strict=True):
        alone = plan.epsilon(delta)
        assert bound.lower <= alone.upper
        assert alone.lower <= bound.upper
        assert bound.upper == pytest.approx(alone.upper, rel=1e-6)


@pytest.mark.parametrize(("p", "q", "count"), [
    (*UNEVEN, 20), ([0.52, 0.31, 0.17], [0.43, 0.33, 0.24], 300), ([0.7, 0.2, 0.1], [0.6, 0.25, 0.15], 100),
    ([0.5, 0.3001, 0.1999], [0.4, 0.35, 0.25], 7),
])  # fmt: skip
def test_the_order_in_which_neighbours_are_named_changes_nothing(p: list[float], q: list[float], count: int) -> None:
    """One of both orders has its worse direction second, little worse than the first: it must not be left out."""
    plan, swapped = pl.Custom(p, q) * count, pl.Custom(q, p) * count
    for delta in (1e-2, 1e-8):
        one, other = plan.epsilon(delta), swapped.epsilon(delta)
        assert max(one.lower, other.lower) <= min(one.upper, other.upper)
        eps = 0.7 * one.upper
        one, other = plan.delta(eps), swapped.delta(eps)
        assert max(one.lower, other.lower) <= min(one.upper, other.upper)


@pytest.mark.parametrize("plan", [*PLANS, pl.Custom(*UNEVEN) * 200, pl.Laplace(2.0).poisson(0.3) * 40])
def test_a_glance_says_only_what_is_true(plan: pl.Plan) -> None:
    """Wherever it shows delta(eps) <= delta, so does the full answer in that direction; often it shows nothing."""
    often = 0
    for loss in directions(worst_neighbours(plan).loss):
        middle = exact_epsilon(loss, 1e-6, 1e-9).upper
        glance = Glance(loss, middle)
        eps = np.repeat(middle * np.geomspace(0.2, 5.0, 9), 6)
        log_delta = np.tile(np.log(np.geomspace(1e-14, 1e-1, 6)), 9)
        shown = glance.at_most(eps, log_delta)
        assert shown.sum() < len(shown)
        often += int(shown.sum())
        for e, level in zip(eps[shown], log_delta[shown], strict=True):
            if e < loss.largest:
                assert delta_bounds(loss, float(e), 1e-9).logs[0] <= level
    assert often > 5


class Cut:
    """No loss above 1, but for what was left out."""

    largest, log_lost = 1.0, -5.0

    def log_mgf_upper(self, c: Real) -> Real:
        return 0.1 * c


def test_a_glance_beyond_all_losses_and_at_zero() -> None:
    glance = Glance(cast(ComposedLoss, Cut()), 0.5)
    upper = glance.log_bounds(np.array([0.0, 0.9, 1.0, 50.0]))[1]
    assert upper[0] == 0
    assert -5 < upper[1] < 0
    assert upper[2:].tolist() == [-5, -5]


@pytest.mark.parametrize("plan", PLANS)
def test_a_glance_at_what_is_left_counts_what_is_not(plan: pl.Plan) -> None:
    loss = worst_neighbours(plan).loss
    eps = plan.epsilon(1e-6).upper
    cut = loss.rid_of(math.log(1e-4))
    assert cut.log_lost > math.log(1e-6)
    places = eps * np.geomspace(0.5, 20, 9)
    for place, top in zip(places, Glance(cut, eps).log_bounds(places)[1], strict=True):
        assert delta_bounds(loss, float(place), 1e-9).logs[0] <= top
    assert Glance(cut, eps).log_bounds(places)[1][-1] == pytest.approx(cut.log_lost, abs=0.1)


@pytest.mark.parametrize("plan", [*PLANS, pl.Custom(*UNEVEN) * 200])
def test_where_small_deltas_need_not_be_known(plan: pl.Plan) -> None:
    """As narrow as they have to be, and around the truth, in both directions and from the largest loss on."""
    enough = 1e-9
    curve = exact.DeltaCurve(worst_neighbours(plan), enough=enough)
    eps = [0.0, *(plan.epsilon(d).upper for d in (0.1 * plan.delta(0.0).upper, 30 * enough, enough, 0.01 * enough))]
    for place, found in zip(eps, curve.read(eps), strict=True):
        alone = plan.delta(place)
        for one in (found, exact.DeltaCurve(curve.worst, enough=enough)._ask(place, 1.0)[0]):
            assert one.lower <= alone.upper
            assert alone.lower <= one.upper <= alone.upper + 1.1 * enough


def test_nothing_is_left_beyond_the_largest_loss() -> None:
    curve = exact.DeltaCurve(worst_neighbours(pl.Custom(*UNEVEN) * 200), enough=1e-30)
    assert curve.shared
    end = max(direction.largest for direction in curve.directions)
    assert curve._ask(end, 1.0)[0].upper == 0
    assert curve._ask(0.99 * end, 1.0)[0].upper <= 1e-30


def test_order_and_repetition_do_not_matter() -> None:
    plan = PLANS[1]
    deltas = [1e-6, 1e-8, 1e-6, 1e-7, 1e-8, 1e-6]
    found = plan.epsilon(deltas)
    assert found[0] == found[2] == found[5]
    assert found[1].lower > found[3].upper > found[0].upper


def test_a_limit_of_work_ends_in_a_sound_interval_that_says_so() -> None:
    plan = pl.Laplace(1.0).poisson(0.3) * 3
    whole, little = plan.epsilon(1e-6), plan.epsilon(1e-6, work=1e4)
    assert little.lower <= whole.lower
    assert whole.upper <= little.upper
    assert any("limit of work" in note for note in little.notes)
    assert not any("limit of work (" in note for note in whole.notes)
    assert plan.epsilon(1e-6, work=1e4) == little  # whatever else the machine does


@pytest.mark.parametrize("work", [0, -1, math.nan, "much"])
def test_bad_limits_are_refused(work: object) -> None:
    with pytest.raises(pl.InvalidInput, match="work"):
        pl.Gaussian(1.0).epsilon(1e-6, work=work)  # type: ignore[call-overload]


@pytest.mark.parametrize("work", [1, 1e5, 1e7, 3e7])
@pytest.mark.parametrize(
    ("plan", "eps"),
    [
        (pl.Gaussian(0.165).poisson(0.000268) * 14, 0.003867),
        (pl.Gaussian(0.165).poisson(0.0192) * 13875, 3.23),
        (pl.Gaussian(0.3).poisson(0.05) * 20, 0.1),
        (pl.DiscreteGaussian(2.0).poisson(1e-3) * 20, 0.01),
    ],
)
def test_little_work_gives_wide_answers_not_errors(plan: pl.Plan, eps: float, work: float) -> None:
    whole, little = plan.delta(eps), plan.delta(eps, work=work)
    assert little.lower <= whole.upper
    assert whole.lower <= little.upper


@pytest.mark.parametrize("delta", [7e-6, 9e-6, 1e-5, 1.1e-5, 1.2e-5])
def test_epsilons_far_below_usual_losses(delta: float) -> None:
    """Near delta(0) = 1.217e-5 epsilon is a hundredth of what a hit loses: read off lines for a usual loss."""
    plan = pl.Gaussian(0.7943144092170726).poisson(1.3556775382182252e-06) * 142
    found = plan.epsilon(delta)
    assert found.relative_width < 3e-8
    assert plan.delta(found.lower).upper >= delta >= plan.delta(found.upper).lower
    assert plan.delta(found.lower * (1 - 1e-6)).lower > delta > plan.delta(found.upper * (1 + 1e-6)).upper
    assert plan.epsilon(1.2172e-5).upper == 0


def test_epsilons_far_below_usual_losses_where_no_line_near_them_falls() -> None:
    plan = pl.Gaussian(1.0726232464944507).poisson(4.572907486705803e-06) * 12
    found = plan.epsilon(6.552585905325594e-06)
    assert found.relative_width < 1e-7
    assert plan.delta(found.lower).upper >= 6.552585905325594e-06 >= plan.delta(found.upper).lower
