"""dp-accounting's events: every row of the table against an oracle of its own, the traps, and the refusals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attr
import mpmath
import pytest
from dp_accounting import dp_event as dpa

import privloss as pl
from privloss.interop import events
from privloss.interop.dp_accounting import from_dp_event, to_dp_event
from privloss.interop.events import RefusedEvent

RELATIONS = ("add-remove", "zero-out", "replace-one")
MOVED = [("add-remove", 1), ("zero-out", 1), ("replace-one", 2)]


def _gaussian_delta(mu: float, eps: float) -> float:
    """Balle and Wang 2018."""
    cdf: Callable[[float], float] = mpmath.ncdf
    return float(cdf(mu / 2 - eps / mu) - math.exp(eps) * cdf(-mu / 2 - eps / mu))


def _holds(plan: pl.Plan, eps: float, truth: float, rel: float = 1e-9) -> None:
    found = plan.delta(eps)
    assert found.lower <= truth * (1 + 1e-12) + 1e-300
    assert truth * (1 - 1e-12) <= found.upper
    assert found.upper == pytest.approx(truth, rel=rel)


@pytest.mark.parametrize(("adjacency", "moved"), MOVED)
def test_noise_multipliers_are_noise_over_c(adjacency: str, moved: int) -> None:
    """Values of norm at most C: one more moves the sum by C, another one instead by 2 C, as the docstrings say."""
    _holds(from_dp_event(dpa.GaussianDpEvent(1.1), adjacency), 0.7, _gaussian_delta(moved / 1.1, 0.7))
    laplace = from_dp_event(dpa.LaplaceDpEvent(2.0), adjacency)
    _holds(laplace, 0.2, -math.expm1((0.2 - moved / 2) / 2))


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(("adjacency", "moved"), MOVED)
def test_discrete_laplace(adjacency: str, moved: int, size: int) -> None:
    a, shift = 0.3, moved * size
    mass = {k: math.exp(-a * abs(k)) * math.tanh(a / 2) for k in range(-200, 201)}
    for eps in (0.0, 0.25):
        truth = sum(max(mass[k] - math.exp(eps) * mass.get(k - shift, 0.0), 0.0) for k in range(-190, 191))
        _holds(from_dp_event(dpa.DiscreteLaplaceDpEvent(a, size), adjacency), eps, truth)


def _sum_of_uses(p: list[float], q: list[float], uses: int, eps: float) -> float:
    total = 0.0
    for outcome in itertools.product(range(len(p)), repeat=uses):
        total += max(math.prod(p[i] for i in outcome) - math.exp(eps) * math.prod(q[i] for i in outcome), 0.0)
    return total


@pytest.mark.parametrize(("buckets", "uses"), [(2, 1), (2, 7), (4, 5)])
def test_randomised_response_counts(buckets: int, uses: int) -> None:
    """The trap: a count that is dropped."""
    noise = 0.5
    report = [[(1 - noise) * (i == j) + noise / buckets for i in range(buckets)] for j in range(2)]
    event = dpa.SelfComposedDpEvent(dpa.RandomizedResponseDpEvent(noise, buckets), uses)
    plan = from_dp_event(event, "replace-one")
    assert len(plan) == uses
    for eps in (0.5, 1.5):
        _holds(plan, eps, _sum_of_uses(report[0], report[1], uses, eps))
    uniform = [1 / buckets] * buckets  # a null record that reports at random: covered, and nothing claimed below
    above, below = (events.read(event, "zero-out", below=b) for b in (False, True))
    for pair in ((report[0], uniform), (uniform, report[0])):
        assert _sum_of_uses(*pair, uses, 0.5) <= above.delta(0.5).upper
    assert below.delta(0.5).lower == 0


def test_one_bucket_says_nothing() -> None:
    for adjacency in RELATIONS:
        assert from_dp_event(dpa.RandomizedResponseDpEvent(0.0, 1), adjacency).epsilon(0.0).upper == 0


def _sampled_delta(mu: float, rate: float, eps: float) -> float:
    """(1-q) N(0) + q N(mu) against N(0): the ratio exceeds e^eps from one point on."""
    if math.exp(eps) <= 1 - rate:
        raise ValueError(eps)
    x = math.log((math.exp(eps) - 1 + rate) / rate) / mu + mu / 2
    tail: Callable[[float], float] = mpmath.ncdf
    return float((1 - rate - math.exp(eps)) * tail(-x) + rate * tail(mu - x))


@pytest.mark.parametrize("nest", [False, True])
def test_several_releases_on_one_sample(nest: bool) -> None:
    """All releases see the same sample: one hit moves all of them, mu^2 = 1/1 + 2/4. Not a sample for each."""
    inside = dpa.ComposedDpEvent([dpa.GaussianDpEvent(1), dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(2.0), 2)])
    event = dpa.PoissonSampledDpEvent(0.1, inside)
    if nest:
        event = dpa.PoissonSampledDpEvent(0.5, dpa.PoissonSampledDpEvent(0.2, inside))
    truth = _sampled_delta(math.sqrt(1.5), 0.1, 0.3)
    _holds(from_dp_event(event), 0.3, truth)
    apart = pl.Gaussian(1.0).poisson(0.1) + pl.Gaussian(2.0).poisson(0.1) * 2
    assert apart.delta(0.3).upper < 0.8 * truth


def test_an_int_is_a_number() -> None:
    """The trap: composition inside a sample, ignored where the noise multiplier is an int."""
    both = [
        from_dp_event(dpa.PoissonSampledDpEvent(0.01, dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(noise), 100)))
        for noise in (1, 1.0)
    ]
    assert both[0] == both[1]
    _holds(both[0], 3.0, _sampled_delta(10.0, 0.01, 3.0))


def test_disclosure_and_nothing() -> None:
    empty: list[Any] = [
        dpa.NoOpDpEvent(),
        dpa.ComposedDpEvent([]),
        dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1.0), 0),
        dpa.PoissonSampledDpEvent(0.0, dpa.GaussianDpEvent(1.0)),
        dpa.PoissonSampledDpEvent(0.5, dpa.NoOpDpEvent()),
        dpa.SampledWithoutReplacementDpEvent(10, 2, dpa.ComposedDpEvent([])),
        dpa.SampledWithoutReplacementDpEvent(10, 0, dpa.GaussianDpEvent(1.0)),
        dpa.SampledWithReplacementDpEvent(10, 0, dpa.GaussianDpEvent(1.0)),
        dpa.MixtureOfGaussiansDpEvent(1.0, [0.0], [1.0]),
        dpa.SingleEpochTreeAggregationDpEvent(1.0, 0),
        dpa.TruncatedSubsampledGaussianDpEvent(10, 0.0, 2, 1.0),
    ]
    for event in empty:
        adjacency = "zero-out"
        plan = from_dp_event(event, adjacency)
        assert (plan.epsilon(0.0).upper, plan.delta(0.0).upper) == (0, 0)
    seen = dpa.NonPrivateDpEvent()
    assert from_dp_event(dpa.ComposedDpEvent([seen, dpa.GaussianDpEvent(1.0)])).epsilon(0.99).lower == math.inf
    assert from_dp_event(dpa.GaussianDpEvent(0)).epsilon(0.99).lower == math.inf
    for adjacency in RELATIONS:  # seen whenever it is sampled
        found = from_dp_event(dpa.PoissonSampledDpEvent(0.25, seen), adjacency).delta(40.0)
        assert found.lower == pytest.approx(0.25) == found.upper


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 8, 21, 64])
def test_trees_by_counting_nodes(steps: int) -> None:
    """Every complete dyadic interval of steps is a node; how many hold one step, at worst."""
    nodes = [
        range(j << level, (j + 1) << level)
        for level in range(steps.bit_length())
        for j in range(steps)
        if (j + 1) << level <= steps
    ]
    most = max(sum(leaf in node for node in nodes) for leaf in range(steps))
    plan = from_dp_event(dpa.SingleEpochTreeAggregationDpEvent(1.5, [steps, 1]), "zero-out")
    assert plan == pl.TreeAggregation(steps=steps, noise_multiplier=1.5).as_plan().under("zero-out")
    _holds(plan, 0.5, _gaussian_delta(math.sqrt(most) / 1.5, 0.5))


def test_mixtures_that_are_a_sample() -> None:
    plan = from_dp_event(dpa.MixtureOfGaussiansDpEvent(3.0, [0.0, 2.0], [0.9, 0.1]))
    _holds(plan, 0.1, _sampled_delta(2 / 3, 0.1, 0.1))
    assert (
        from_dp_event(dpa.MixtureOfGaussiansDpEvent(3.0, [2.0], [1.0]))
        == pl.Gaussian(sigma=3.0, sensitivity=2.0).as_plan()
    )


def test_zcdp_with_an_offset() -> None:
    """Randomised response of epsilon 1 is (alpha, 1)-RDP for all alpha, and one more Gaussian may have rho alpha."""
    event = dpa.ZCDpEvent(rho=0.125, xi=1.0)
    instance = pl.RandomizedResponse(epsilon=1.0) + pl.Gaussian(2.0)
    found = from_dp_event(event).epsilon(1e-5)
    assert instance.epsilon(1e-5).lower <= found.upper
    assert found.upper >= pl.ZCDP(0.125).epsilon(1e-5).upper + 0.9
    below = events.read(event, below=True)
    assert below == pl.ZCDP(0.125).as_plan()
    assert below.epsilon(1e-5).lower <= instance.epsilon(1e-5).upper


@pytest.mark.parametrize("relation", ["add-remove", "zero-out", "replace-one"])
def test_batches(relation: str) -> None:
    inner = dpa.GaussianDpEvent(1.2)
    assert from_dp_event(dpa.SampledWithoutReplacementDpEvent(100, 7, inner), relation) == (
        pl.Gaussian(1.2).fixed_size(n=100, m=7).as_plan().under(relation)
    )
    assert from_dp_event(dpa.SampledWithReplacementDpEvent(100, 7, inner), relation) == (
        pl.Gaussian(1.2).with_replacement(n=100, m=7).as_plan().under(relation)
    )
    assert from_dp_event(dpa.TruncatedSubsampledGaussianDpEvent(100, 0.05, 7, 1.2), relation) == (
        pl.Gaussian(1.2).truncated_poisson(0.05, n=100, most=7).as_plan().under(relation)
    )


def test_what_cannot_be_said_in_doubles_is_rounded_to_the_right_side() -> None:
    event = dpa.DiscreteLaplaceDpEvent(0.3, 2)
    above, below = (events.read(event, below=b).steps[0][0] for b in (False, True))
    assert Fraction(above.scale) < 1 / Fraction(0.3) < Fraction(below.scale)  # type: ignore[attr-defined]
    assert from_dp_event(dpa.DiscreteLaplaceDpEvent(0.25, 2)) == pl.DiscreteLaplace(4.0, 2).as_plan()
    nested = dpa.PoissonSampledDpEvent(0.1, dpa.PoissonSampledDpEvent(0.3, dpa.GaussianDpEvent(1.0)))
    above, below = (events.read(nested, below=b).steps[0][0] for b in (False, True))
    assert Fraction(above.rate) > Fraction(0.1) * Fraction(0.3) > Fraction(below.rate)  # type: ignore[attr-defined]
    shared = dpa.PoissonSampledDpEvent(0.1, dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1.1), 3))
    above, below = (events.read(shared, below=b).steps[0][0].mechanism for b in (False, True))  # type: ignore[attr-defined]
    true_squared = Fraction(1.1) ** 2 / 3
    assert Fraction(above.noise_multiplier) ** 2 < true_squared < Fraction(below.noise_multiplier) ** 2  # type: ignore[attr-defined]


# -- classes that only their repository has ----------------------------------------------------------------------------


def _coming(name: str, *fields: str, **optional: Any) -> Any:
    """As it is defined there."""
    said = {field: attr.field() for field in fields} | {f: attr.field(default=v) for f, v in optional.items()}
    made = attr.make_class(name, said, bases=(dpa.DpEvent,), frozen=True)
    made.__module__ = dpa.__name__
    return made


COMING = {
    "EpsilonDeltaDpEvent": _coming("EpsilonDeltaDpEvent", "epsilon", "delta"),
    "ExponentialMechanismDpEvent": _coming("ExponentialMechanismDpEvent", "epsilon"),
    "PermuteAndFlipDpEvent": _coming("PermuteAndFlipDpEvent", "epsilon"),
    "DiscreteGaussianDpEvent": _coming("DiscreteGaussianDpEvent", "sigma", sensitivity=1.0, dimension=None),
}


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        ("EpsilonDeltaDpEvent", pl.ApproxDP(0.5, 1e-7)),
        ("ExponentialMechanismDpEvent", pl.Exponential(0.5)),
        ("PermuteAndFlipDpEvent", pl.PermuteAndFlip(0.5)),
        ("DiscreteGaussianDpEvent", pl.DiscreteGaussian(3.0, 2)),
    ],
)
def test_what_the_repository_has_goes_there_and_back(
    name: str, mechanism: pl.Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(pl.Unsupported, match=f"this version of dp-accounting has no {name}"):
        to_dp_event(mechanism)
    monkeypatch.setattr(dpa, name, COMING[name], raising=False)
    for adjacency in RELATIONS:
        event = to_dp_event((mechanism * 3).under(adjacency))
        assert type(event.event).__name__ == name
        assert from_dp_event(event, adjacency) == (mechanism * 3).under(adjacency)


def test_permute_and_flip_counts_and_is_a_laplace_pair() -> None:
    event = dpa.SelfComposedDpEvent(COMING["PermuteAndFlipDpEvent"](0.5), 2)
    laplace = dpa.SelfComposedDpEvent(dpa.LaplaceDpEvent(2.0), 2)
    assert from_dp_event(event).epsilon(1e-3).upper == pytest.approx(from_dp_event(laplace).epsilon(1e-3).upper)
    twice = from_dp_event(dpa.SelfComposedDpEvent(COMING["ExponentialMechanismDpEvent"](0.5), 20))
    assert len(twice) == 20  # their Renyi accountant drops the count


def _whole_noise(sigma: float, shifts: tuple[int, ...], eps: float) -> float:
    """Independent discrete Gaussian noise in every coordinate, summed over all outcomes."""
    reach = range(-int(9 * sigma) - 3, int(9 * sigma) + 4)
    weight = {k: math.exp(-k * k / (2 * sigma * sigma)) for k in reach}
    total = sum(weight.values()) ** len(shifts)
    outcomes = itertools.product(reach, repeat=len(shifts))
    shifted = (
        (
            math.prod(weight[k] for k in ks),
            math.prod(weight.get(k - s, 0.0) for k, s in zip(ks, shifts, strict=True)),
        )
        for ks in outcomes
    )
    return sum(max(p - math.exp(eps) * q, 0.0) for p, q in shifted) / total


@pytest.mark.parametrize(("sensitivity", "dimension"), [(1.0, 1), (2.9, 1), (1.5, 2), (1.5, None), (2.5, 2)])
def test_discrete_gaussian_noise_by_all_outcomes(sensitivity: float, dimension: int | None) -> None:
    """Every whole shift within the sensitivity; one coordinate alone is attained, vectors stay below the box."""
    event, eps = COMING["DiscreteGaussianDpEvent"](1.5, sensitivity, dimension), 0.4
    above, below = (events.read(event, below=b).delta(eps) for b in (False, True))
    size = range(int(sensitivity) + 1)
    shifts = [s for s in itertools.product(size, repeat=dimension or 2) if math.hypot(*s) <= sensitivity]
    truth = max(_whole_noise(1.5, s, eps) for s in shifts)
    assert below.lower <= truth * (1 + 1e-9)
    assert truth * (1 - 1e-9) <= above.upper
    assert below.lower >= 0.3 * truth
    if dimension == 1:
        assert above.upper == pytest.approx(truth, rel=1e-9)


def test_discrete_gaussian_noise_at_its_ends() -> None:
    made = COMING["DiscreteGaussianDpEvent"]
    assert from_dp_event(made(1.0, 0.9)) == from_dp_event(dpa.NoOpDpEvent())  # whole numbers: they do not move
    assert from_dp_event(made(0.0, 2.0, 3)).epsilon(0.9).lower == math.inf
    (box,) = (m for m, _ in from_dp_event(made(1e200, 1.0)).steps)
    assert box.rho > 0  # type: ignore[attr-defined]
    with pytest.raises(pl.InvalidInput, match="dimension"):
        from_dp_event(made(1.0, 1.0, 0))


# -- refusals ----------------------------------------------------------------------------------------------------------

REFUSED = [
    (dpa.UnsupportedDpEvent(), "add-remove", "without a description"),
    (dpa.RepeatAndSelectDpEvent(dpa.UnsupportedDpEvent(), 10.0, 1.0), "add-remove", "without a description"),
    (dpa.MixtureOfGaussiansDpEvent(1.0, [-1.0], [1.0]), "add-remove", "both signs"),
    (dpa.MixtureOfGaussiansDpEvent(1.0, [-1.0, 1.0], [0.5, 0.5]), "add-remove", "both signs"),
    (dpa.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]), "replace-one", "add-remove"),
    (dpa.PoissonSampledDpEvent(0.1, dpa.ComposedDpEvent([dpa.GaussianDpEvent(1.0), dpa.ZCDpEvent(0.1)])),
     "add-remove", "no proven worst pair"),
    (dpa.PoissonSampledDpEvent(0.1, dpa.ComposedDpEvent([dpa.GaussianDpEvent(1.0), dpa.LaplaceDpEvent(1.0)])),
     "replace-one", "replaced"),
    (dpa.PoissonSampledDpEvent(0.1, dpa.LaplaceDpEvent(1.0)), "replace-one", "replaced"),
    (dpa.PoissonSampledDpEvent(0.1, dpa.SampledWithoutReplacementDpEvent(9, 3, dpa.GaussianDpEvent(1.0))),
     "add-remove", "sampler inside a sampler"),
    (dpa.PoissonSampledDpEvent(0.1, dpa.SelfComposedDpEvent(
        dpa.PoissonSampledDpEvent(0.1, dpa.GaussianDpEvent(1.0)), 2)), "add-remove", "sampler inside a sampler"),
    (dpa.PoissonSampledDpEvent(0.1, dpa.TruncatedSubsampledGaussianDpEvent(9, 0.1, 3, 1.0)),
     "add-remove", "sampler inside a sampler"),
    (dpa.PoissonSampledDpEvent(0.1, dpa.SingleEpochTreeAggregationDpEvent(1.0, 4)), "zero-out", "tree"),
    (dpa.SingleEpochTreeAggregationDpEvent(1.0, 4), "add-remove", "tree"),
    (dpa.SingleEpochTreeAggregationDpEvent(1.0, 4), "replace-one", "tree"),
    (dpa.RandomizedResponseDpEvent(0.5, 2), "add-remove", "absent"),
    (dpa.SampledWithReplacementDpEvent(9, 3, dpa.LaplaceDpEvent(1.0)), "add-remove", "replaced records"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "adjacency", "word"), REFUSED)
def test_what_has_no_proven_bound_is_refused_by_name(event: Any, adjacency: str, word: str) -> None:
    with pytest.raises(RefusedEvent, match=word) as found:
        from_dp_event(dpa.ComposedDpEvent([dpa.GaussianDpEvent(1.0), event]), adjacency)
    assert str(found.value).startswith(type(found.value.event).__name__)
    assert repr(found.value.event) in repr(event)
    assert isinstance(found.value, pl.Unsupported)
    assert str(found.value).endswith(".")


class GaussianDpEvent(dpa.DpEvent):
    """Of the same name, with another meaning."""

    noise_multiplier = 3.0


def test_classes_of_others_are_refused() -> None:
    for event in (GaussianDpEvent(), 3, None, {"class_name": "Other"}, {}):
        with pytest.raises(RefusedEvent, match="no event class"):
            from_dp_event(event)
    with pytest.raises(RefusedEvent, match="'clip' is not known"):
        from_dp_event({"class_name": "GaussianDpEvent", "noise_multiplier": 1.0, "clip": 2.0})


@pytest.mark.parametrize(
    "event",
    [
        dpa.GaussianDpEvent(-1.0),
        dpa.GaussianDpEvent(math.nan),
        dpa.LaplaceDpEvent(math.inf),
        dpa.DiscreteLaplaceDpEvent(0, 1),
        dpa.DiscreteLaplaceDpEvent(1.0, 1.5),
        dpa.PoissonSampledDpEvent(1.5, dpa.GaussianDpEvent(1.0)),
        dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1.0), -1),
        dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1.0), True),
        dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1.0), 2.5),
        dpa.ComposedDpEvent("ab"),
        dpa.SampledWithoutReplacementDpEvent(5, 6, dpa.GaussianDpEvent(1.0)),
        dpa.SampledWithoutReplacementDpEvent(5, None, dpa.GaussianDpEvent(1.0)),
        dpa.SampledWithoutReplacementDpEvent(5, False, dpa.GaussianDpEvent(1.0)),
        dpa.SampledWithoutReplacementDpEvent(0, 0, dpa.GaussianDpEvent(1.0)),
        dpa.MixtureOfGaussiansDpEvent(1.0, [1.0], [0.5]),
        dpa.RandomizedResponseDpEvent(1.5, 2),
        dpa.SingleEpochTreeAggregationDpEvent(1.0, -3),
        dpa.RepeatAndSelectDpEvent(dpa.GaussianDpEvent(1.0), 0.5, 1.0),
        dpa.RepeatAndSelectDpEvent(dpa.GaussianDpEvent(1.0), 5.0, -1.0),
        {"class_name": "GaussianDpEvent"},
    ],
)
def test_bad_numbers_are_named(event: Any) -> None:
    name = event["class_name"] if isinstance(event, dict) else type(event).__name__
    with pytest.raises(pl.InvalidInput, match=name):
        from_dp_event(event, "zero-out")


# -- there and back ----------------------------------------------------------------------------------------------------

SAID = [
    (pl.Gaussian(1.1).poisson(0.01) * 100, RELATIONS),
    (pl.Gaussian(0.0).as_plan(), RELATIONS),
    (pl.PureDP(0.0).as_plan(), RELATIONS),
    (pl.Gaussian(sigma=3.0, sensitivity=2.0).as_plan(), RELATIONS[:2]),
    (pl.Laplace(noise_multiplier=3.0) * 2 + pl.Gaussian(2.0), RELATIONS),
    (pl.DiscreteLaplace(noise_multiplier=4.0).as_plan(), RELATIONS),
    (pl.DiscreteLaplace(scale=4.0, sensitivity=6).as_plan(), RELATIONS),
    (pl.RandomizedResponse(p=0.5, answers=3) * 5, RELATIONS[1:]),
    (pl.ZCDP(0.1) * 3, RELATIONS),
    (pl.GaussianMixture([0.0, 1.0, 2.0], [0.75, 0.125, 0.125], 2.0) * 5, RELATIONS[:2]),
    (pl.TreeAggregation(steps=1000, noise_multiplier=8.0) * 2, RELATIONS[1:2]),
    (pl.Gaussian(1.1).fixed_size(n=100, m=5) * 3, RELATIONS),
    (pl.select_best(pl.Gaussian(3.0).poisson(0.1) * 500, mean=5.0) * 2, RELATIONS[:1]),
    (
        pl.select_best(pl.Gaussian(3.0), mean=5.0, shape=0)
        + pl.select_best(pl.Gaussian(3.0), mean=5.0, shape=math.inf),
        RELATIONS,
    ),
    (pl.together(pl.Gaussian(3.0), pl.Laplace(noise_multiplier=9.0)).poisson(0.1).as_plan(), RELATIONS[:1]),
    (pl.Gaussian(1.1).with_replacement(n=100, m=5) * 3, RELATIONS),
    (pl.Gaussian(1.1).truncated_poisson(0.05, n=100, most=9) * 3, RELATIONS),
]


@pytest.mark.parametrize(("plan", "relations"), SAID, ids=lambda v: repr(v)[:60])
def test_there_and_back(plan: pl.Plan, relations: tuple[str, ...]) -> None:
    for adjacency in relations:
        asked = plan.under(adjacency)
        event = to_dp_event(asked)
        assert isinstance(event, dpa.DpEvent)
        assert from_dp_event(event, adjacency) == asked
        assert from_dp_event(event.to_named_tuple(), adjacency) == asked  # their own way to write events down


@pytest.mark.parametrize(
    ("mechanism", "adjacency"),
    [
        (pl.Laplace(scale=2.0, sensitivity=3.0), "add-remove"),
        (pl.Gaussian(sigma=1.0), "replace-one"),
        (pl.DiscreteLaplace(scale=10.0, sensitivity=2), "add-remove"),  # 1/10 is no double
        (pl.DiscreteLaplace(scale=4.0, sensitivity=3), "replace-one"),
        (pl.RandomizedResponse(epsilon=1.0), "replace-one"),
        (pl.RandomizedResponse(p=0.5), "add-remove"),
        (pl.PureDP(1.0), "add-remove"),
        (pl.ZCDP(0.1, delta=1e-9), "add-remove"),
        (pl.Gaussian(1.0).shuffle(10), "replace-one"),
        (pl.Laplace(scale=1.0).poisson(0.1), "add-remove"),
    ],
    ids=repr,
)
def test_what_no_event_says_is_refused(mechanism: pl.Mechanism, adjacency: str) -> None:
    with pytest.raises(pl.Unsupported, match="no event class of dp-accounting says this"):
        to_dp_event(mechanism.as_plan().under(adjacency))
