"""What dp-accounting calls an event, read as a plan: every class of its versions 0.4 to 0.6 and its repository.

Nothing here needs dp-accounting: an event may be one of its objects, its named tuple, or the same as JSON,
``{"class_name": "GaussianDpEvent", "noise_multiplier": 1.1}``. Whatever has no proven bound is refused by name.

>>> read({"class_name": "PoissonSampledDpEvent", "sampling_probability": 0.01,
...       "event": {"class_name": "GaussianDpEvent", "noise_multiplier": 1}}, "add-remove")
Plan(Gaussian(noise_multiplier=1.0).poisson(0.01))

Where a number of theirs has no double of ours the plan is rounded to less privacy, so that its upper end holds; with
``below=True`` to more privacy, so that its lower end does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from privloss.adjacency import ADD_REMOVE, ADJACENCIES, REPLACE_ONE, ZERO_OUT
from privloss.errors import InvalidInput, Unsupported
from privloss.interop.rounded import inverse, product
from privloss.mechanisms.approx_dp import ApproxDP
from privloss.mechanisms.base import Mechanism, Plan, Sampled, on_scheme
from privloss.mechanisms.discrete_gaussian import DiscreteGaussian
from privloss.mechanisms.discrete_laplace import DiscreteLaplace
from privloss.mechanisms.exponential import Exponential
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.gaussian_mixture import GaussianMixture
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.noise import contributions
from privloss.mechanisms.permute_and_flip import PermuteAndFlip
from privloss.mechanisms.pure_dp import PureDP
from privloss.mechanisms.randomized_response import RandomizedResponse
from privloss.mechanisms.rdp import RDP
from privloss.mechanisms.select_best import SelectBest
from privloss.mechanisms.tree import TreeAggregation
from privloss.mechanisms.worst_neighbours import Support
from privloss.mechanisms.zcdp import ZCDP
from privloss.numerics import check
from privloss.numerics.floats import raised

NOTHING = PureDP(0.0)  # a plan has at least one step: the one that does not look at the data
DISCLOSURE = Gaussian(noise_multiplier=0.0)
Steps = tuple[tuple[Mechanism, int], ...]

_ORDERS = tuple(1 + 2 ** (k / 4) for k in range(-24, 41))  # where a curve xi + rho alpha is read; any orders are sound
_LEAST = 1e-300  # its inverse is a double, and its roundings are relative
_SUM = Fraction(1, 2**48)  # how far probabilities may be from summing to one
_SHARED = raised(1.0, 32)  # several Gaussian releases are rounded by at most 16 units together


class RefusedEvent(Unsupported):
    """An event without a proven bound; `event` is the part to blame, as it was given."""

    def __init__(self, event: Any, message: str) -> None:
        super().__init__(message)
        self.event = event


@dataclass(frozen=True)
class Event:
    """An event by the name of its class."""

    name: str
    fields: Mapping[str, Any]
    given: Any

    def __getitem__(self, field: str) -> Any:
        return self.fields[field]

    def refused(self, why: str) -> RefusedEvent:
        return RefusedEvent(self.given, f"{self.name}: {why}")


@dataclass(frozen=True)
class Reader:
    """Under which adjacency, for which end, and whether the event runs on a sample."""

    adjacency: str
    below: bool = False
    on_sample: bool = False

    def steps(self, given: Any) -> Steps:
        """The steps of an event; none if nothing happens."""
        event = described(given)
        if event.name in _COMPOSITIONS:
            return _COMPOSITIONS[event.name].read(self, event)
        try:
            found = READ[event.name].read(self, event)
        except RefusedEvent:
            raise
        except InvalidInput as problem:
            raise InvalidInput(f"{event.name}: {problem}") from None
        except Unsupported as problem:
            raise event.refused(str(problem)) from None
        for mechanism, _ in () if self.on_sample else found:  # what runs on a sample is judged with its sampler
            proven = _proven(mechanism, self.adjacency)
            if not proven:
                raise event.refused(proven.reason)
        return found

    def plan(self, given: Any) -> Plan:
        return Plan(self.steps(given) or ((NOTHING, 1),), self.adjacency)


@dataclass(frozen=True)
class Entry:
    """One class of events: its fields, and how it is read."""

    fields: tuple[str, ...]
    read: Callable[[Reader, Event], Steps]
    optional: tuple[str, ...] = ()


def read(event: Any, adjacency: str = ADD_REMOVE, *, below: bool = False) -> Plan:
    """The plan of an event; `below`: rounded to more privacy, for lower ends."""
    check.choice("adjacency", adjacency, ADJACENCIES)
    try:
        return Reader(adjacency, below).plan(event)
    except RecursionError:
        raise InvalidInput("event: is nested too deeply.") from None


def described(given: Any) -> Event:
    """An event's class and fields, whichever way it was given; other packages' classes are refused."""
    if hasattr(given, "_asdict"):
        given = given._asdict()
    if isinstance(given, Mapping):
        name = str(given.get("class_name"))
        fields = {k: v for k, v in given.items() if k not in ("class_name", "module_name")}
        home = str(given.get("module_name", "dp_accounting"))
    else:
        name, home = type(given).__name__, type(given).__module__
        fields = {a.name: getattr(given, a.name) for a in getattr(type(given), "__attrs_attrs__", ())}
    event, entry = Event(name, fields, given), READ.get(name) or _COMPOSITIONS.get(name)
    if entry is None or home.split(".")[0] != "dp_accounting":
        raise event.refused("is no event class of dp-accounting known here; compose what it stands for instead.")
    for field in entry.fields:
        if field not in fields:
            raise InvalidInput(f"{name}: the field {field!r} is missing.")
    for field in fields:
        if field not in (*entry.fields, *entry.optional):
            raise event.refused(f"the field {field!r} is not known here, so its meaning is not either.")
    return event


@lru_cache(maxsize=1024)
def _proven(mechanism: Mechanism, adjacency: str) -> Support:
    return mechanism.supported(adjacency)


# -- nothing, everything, and compositions -----------------------------------------------------------------------------


def _unsupported(reader: Reader, event: Event) -> Steps:
    raise event.refused("stands for an operation without a description; there is nothing to account for.")


def _composed(reader: Reader, event: Event) -> Steps:
    if isinstance(event["events"], (str, bytes, Mapping)) or not isinstance(event["events"], Sequence):
        raise InvalidInput(f"{event.name}: events = {event['events']!r}: must be a list of events.")
    return tuple(step for part in event["events"] for step in reader.steps(part))


def _self_composed(reader: Reader, event: Event) -> Steps:
    inner, given = reader.steps(event["event"]), event["count"]
    if _is_zero(given):
        return ()
    times = check.count(f"{event.name}: count", given)
    return tuple((mechanism, n * times) for mechanism, n in inner)


# -- releases ----------------------------------------------------------------------------------------------------------


def _discrete_laplace(reader: Reader, event: Event) -> Steps:
    """P[x] proportional to e^(-a |x|): scale 1/a. Values of l1 norm at most C: two of them are 2 C apart."""
    size = check.count("sensitivity", event["sensitivity"])
    scale = inverse(check.number("noise_parameter", event["noise_parameter"], low=_LEAST), up=reader.below)
    if size == 1:
        return ((DiscreteLaplace(noise_multiplier=scale), 1),)
    return ((DiscreteLaplace(scale=scale, sensitivity=size * contributions(reader.adjacency)), 1),)


def _discrete_gaussian(reader: Reader, event: Event) -> Steps:
    """Whole numbers at most the sensitivity apart under the adjacency asked, so one alone moves by its whole part.
    Vectors: zCDP (Canonne, Kamath, Steinke 2020); below, one coordinate moves and the others do not."""
    size = check.number("sensitivity", event.fields.get("sensitivity", 1.0), low=0)
    sigma, dimension = check.number("sigma", event["sigma"], low=0), event.fields.get("dimension")
    single = dimension is not None and check.count("dimension", dimension) == 1
    if size < 1:
        return ()
    if single or reader.below or sigma == 0:
        return ((DiscreteGaussian(sigma, math.floor(size)), 1),)
    return ((ZCDP(max(raised((size / sigma) * (size / sigma) / 2, 4), _LEAST)), 1),)


def _randomized_response(reader: Reader, event: Event) -> Steps:
    """Under zero-out the event does not say what a null record reports. If a uniform bucket, that is the mean of all
    reports, and by joint convexity no further from any of them than another one is: the pair of two reports is an
    upper bound either way, and the lower end claims nothing."""
    answers = check.count("num_buckets", event["num_buckets"])
    truthful = check.number("noise_parameter", event["noise_parameter"], low=0, high=1)
    if answers == 1:
        return ()
    if reader.adjacency == ADD_REMOVE or (reader.on_sample and reader.adjacency == ZERO_OUT):
        raise event.refused("a record that is absent sends no report, which shows; ask under replace-one.")
    if reader.adjacency == ZERO_OUT and reader.below:
        return ()
    return ((RandomizedResponse(p=truthful, answers=answers), 1),)


def _tree(reader: Reader, event: Event) -> Steps:
    """The longest of the trees: a record has one step in one of them."""
    if reader.adjacency != ZERO_OUT or reader.on_sample:
        raise event.refused(
            "a tree keeps every record at its own step, so there is a bound under zero-out only, without a sampler."
        )
    counts = event["step_counts"]
    counts = [counts] if not isinstance(counts, (list, tuple)) else counts
    most = max((0 if _is_zero(c) else check.count("step_counts", c) for c in counts), default=0)
    return ((TreeAggregation(steps=most, noise_multiplier=event["noise_multiplier"]), 1),) if most else ()


def _mixture(reader: Reader, event: Event) -> Steps:
    """N(0) against sum p_i N(c_i)."""
    if reader.adjacency == REPLACE_ONE:
        raise event.refused("describes a record that is there or not; ask under add-remove or zero-out.")
    sizes = [check.number("sensitivities", c) for c in event["sensitivities"]]
    weights = [check.number("sampling_probs", p, low=0, high=1) for p in event["sampling_probs"]]
    if len(sizes) != len(weights) or abs(sum(map(Fraction, weights), -Fraction(1))) > _SUM:
        raise InvalidInput(f"sampling_probs = {weights!r}: one for every sensitivity, and they sum to 1.")
    parts = [(c, p) for c, p in zip(sizes, weights, strict=True) if c != 0 and p > 0]
    if not parts:
        return ()
    if any(c < 0 for c, _ in parts):
        raise event.refused("shifts of both signs have no monotone likelihood ratio, and no proven pair.")
    if len(parts) > 1:
        return ((GaussianMixture(sizes, weights, event["standard_deviation"]), 1),)
    ((size, rate),) = parts
    release = Gaussian(sigma=event["standard_deviation"], sensitivity=size)
    return ((release if all(sizes) else release.poisson(rate), 1),)


def _zcdp(reader: Reader, event: Event) -> Steps:
    """(alpha, xi + rho alpha)-RDP for all alpha: below, the Gaussian that has rho alpha satisfies it too."""
    offset = check.number("xi", event.fields.get("xi", 0.0), low=0)
    box = ZCDP(event["rho"])
    if offset == 0 or reader.below:
        return ((box, 1),)
    return ((RDP(_ORDERS, [raised(offset + box.rho * a, 4) for a in _ORDERS]), 1),)


def _select(reader: Reader, event: Event) -> Steps:
    """The best of a truncated negative binomial number of runs (shape 0: logarithmic), or of a Poisson number (infinite
    shape), each of which may have samples of its own."""
    runs = replace(reader, on_sample=False).steps(event["event"])
    return ((SelectBest(runs, event["mean"], event["shape"]), 1),) if runs else ()


# -- samplers ----------------------------------------------------------------------------------------------------------


def _on_sample(reader: Reader, event: Event, scheme: str, **parameters: Any) -> Steps:
    """One sample, on which everything inside runs: never the sampler of each part."""
    steps = replace(reader, on_sample=True).steps(event["event"])
    if not steps:
        return ()
    if any(isinstance(m, Sampled) for m, _ in steps):
        raise event.refused("a sampler inside a sampler has a proven bound for one Poisson sample of another only.")
    if len(steps) == 1 and steps[0][1] == 1:
        return ((on_scheme(steps[0][0], scheme, **parameters), 1),)
    ((made, _),) = Plan(steps)._on_sample(scheme, **parameters).steps
    if reader.below and isinstance(made, Sampled):
        made = on_scheme(made.mechanism.louder(_SHARED), scheme, **parameters)
    return ((made, 1),)


def _poisson(reader: Reader, event: Event) -> Steps:
    rate = check.number("sampling_probability", event["sampling_probability"], low=0, high=1)
    if rate == 1:
        return reader.steps(event["event"])
    inner = described(event["event"])
    if inner.name == event.name:  # a sample of a sample, both of independent records
        other = check.number("sampling_probability", inner["sampling_probability"], low=0, high=1)
        both = {"sampling_probability": product(rate, other, up=not reader.below), "event": inner["event"]}
        return _poisson(reader, replace(event, fields=both))
    found = _on_sample(reader, event, "poisson", rate=rate)
    return found if rate > 0 else ()


def _truncated(reader: Reader, event: Event) -> Steps:
    if reader.on_sample:
        raise event.refused("a sampler inside a sampler has no proven bound.")
    sizes = {"n": event["dataset_size"], "most": event["truncated_batch_size"]}
    rate = check.number("sampling_probability", event["sampling_probability"], low=0, high=1)
    if rate == 0 or 0 in sizes.values():
        return ()
    return ((Gaussian(noise_multiplier=event["noise_multiplier"]).truncated_poisson(rate, **sizes), 1),)


def _batches(scheme: str) -> Entry:
    fields = ("source_dataset_size", "sample_size", "event")

    def read_batch(reader: Reader, event: Event) -> Steps:
        records, size = event["source_dataset_size"], event["sample_size"]
        found = _on_sample(reader, event, scheme, n=records, m=1 if _is_zero(size) else size)
        return () if _is_zero(size) else found  # an empty batch shows nothing, once what it is asked is understood

    return Entry(fields, read_batch)


def _is_zero(count: Any) -> bool:
    return bool(count == 0) and not isinstance(count, bool)


_COMPOSITIONS = {
    "ComposedDpEvent": Entry(("events",), _composed),
    "SelfComposedDpEvent": Entry(("event", "count"), _self_composed),
}
READ = {
    "NoOpDpEvent": Entry((), lambda reader, event: ()),
    "NonPrivateDpEvent": Entry((), lambda reader, event: ((DISCLOSURE, 1),)),
    "UnsupportedDpEvent": Entry((), _unsupported),
    "GaussianDpEvent": Entry(("noise_multiplier",), lambda r, e: ((Gaussian(e["noise_multiplier"]), 1),)),
    "LaplaceDpEvent": Entry(
        ("noise_multiplier",), lambda r, e: ((Laplace(noise_multiplier=e["noise_multiplier"]), 1),)
    ),
    "DiscreteLaplaceDpEvent": Entry(("noise_parameter", "sensitivity"), _discrete_laplace),
    "DiscreteGaussianDpEvent": Entry(("sigma",), _discrete_gaussian, optional=("sensitivity", "dimension")),
    "EpsilonDeltaDpEvent": Entry(("epsilon", "delta"), lambda r, e: ((ApproxDP(e["epsilon"], e["delta"]), 1),)),
    "ExponentialMechanismDpEvent": Entry(("epsilon",), lambda r, e: ((Exponential(e["epsilon"]), 1),)),
    "PermuteAndFlipDpEvent": Entry(("epsilon",), lambda r, e: ((PermuteAndFlip(e["epsilon"]), 1),)),
    "RandomizedResponseDpEvent": Entry(("noise_parameter", "num_buckets"), _randomized_response),
    "SingleEpochTreeAggregationDpEvent": Entry(("noise_multiplier", "step_counts"), _tree),
    "MixtureOfGaussiansDpEvent": Entry(("standard_deviation", "sensitivities", "sampling_probs"), _mixture),
    "ZCDpEvent": Entry(("rho",), _zcdp, optional=("xi",)),
    "RepeatAndSelectDpEvent": Entry(("event", "mean", "shape"), _select),
    "PoissonSampledDpEvent": Entry(("sampling_probability", "event"), _poisson),
    "SampledWithReplacementDpEvent": _batches("with-replacement"),
    "SampledWithoutReplacementDpEvent": _batches("fixed-size"),
    "TruncatedSubsampledGaussianDpEvent": Entry(
        ("dataset_size", "sampling_probability", "truncated_batch_size", "noise_multiplier"), _truncated
    ),
}
