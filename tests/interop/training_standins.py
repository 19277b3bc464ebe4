"""Small stand-ins for Opacus, PyTorch's samplers, JAX Privacy and Flower: what the adapters touch, with the signatures
of the real classes (tests/data/training_signatures.json), so that `make test` needs none of these packages."""

from __future__ import annotations

import abc
import enum
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


def installed(monkeypatch: pytest.MonkeyPatch, adapter: str, modules: dict[str, dict[str, Any]]) -> Any:
    """The adapter, loaded afresh with stand-ins for the modules it imports."""
    paths = {".".join(name.split(".")[: i + 1]) for name in modules for i in range(len(name.split(".")))}
    for path in sorted(paths):  # parents first
        made = ModuleType(path)
        made.__path__ = []
        made.__dict__.update(modules.get(path, {}))
        monkeypatch.setitem(sys.modules, path, made)
        parent, _, last = path.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, made)  # where ``from package import module`` looks
    monkeypatch.delitem(sys.modules, f"privloss.interop.{adapter}", raising=False)
    found = importlib.import_module(f"privloss.interop.{adapter}")
    monkeypatch.setitem(sys.modules, found.__name__, found)  # forgotten again afterwards
    return found


def _from(module: str) -> Callable[[type], type]:
    """As if the class had been defined there: samplers are known by their full names."""

    def place(made: type) -> type:
        made.__module__, made.__qualname__ = module, made.__name__
        return made

    return place


# -- Opacus ------------------------------------------------------------------------------------------------------------

ACCOUNTANTS: dict[str, Any] = {}


class IAccountant(abc.ABC):
    @abc.abstractmethod
    def __init__(self) -> None:
        self.history: Any = []

    @abc.abstractmethod
    def step(self, *, noise_multiplier: float, sample_rate: float) -> None: ...

    @abc.abstractmethod
    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float: ...

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @classmethod
    @abc.abstractmethod
    def mechanism(cls) -> str: ...

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        def hook(optimizer: Any) -> None:
            rate = sample_rate * optimizer.accumulated_iterations
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=rate)

        return hook

    def state_dict(self, destination: Any = None) -> Any:
        raise AssertionError("the adapter writes its own")

    def load_state_dict(self, state_dict: Any) -> None:
        raise AssertionError("the adapter reads its own")


def register_accountant(mechanism: str, accountant: Any, force: bool = False) -> None:
    if mechanism in ACCOUNTANTS and not force:
        raise ValueError(f"Accountant for mechanism {mechanism} is already registered")
    ACCOUNTANTS[mechanism] = accountant


def create_accountant(mechanism: str) -> Any:
    return ACCOUNTANTS[mechanism]()


class PrivacyEngine:
    """Only what an accountant sees of it."""

    def __init__(self, *, accountant: str = "prv", secure_mode: bool = False) -> None:
        self.accountant = create_accountant(accountant)

    def make_private(
        self, *, module: Any, optimizer: Any, criterion: Any = None, data_loader: Any, noise_multiplier: float,
        max_grad_norm: float, batch_first: bool = True, loss_reduction: str = "mean", poisson_sampling: bool = True,
        clipping: str = "flat", noise_generator: Any = None, grad_sample_mode: str = "hooks", wrap_model: bool = True,
        rand_on_empty: bool = False, **kwargs: Any,
    ) -> Any:  # fmt: skip
        if poisson_sampling:
            records, rate = 1000, 1 / len(data_loader.batch_sampler)
            data_loader = loader(UniformWithReplacementSampler(num_samples=records, sample_rate=rate))
        hook = self.accountant.get_optimizer_hook_fn(sample_rate=1 / len(data_loader.batch_sampler))
        return module, SimpleNamespace(step=hook), data_loader

    def get_epsilon(self, delta: float) -> float:
        found: float = self.accountant.get_epsilon(delta)
        return found


@_from("opacus.utils.uniform_sampler")
class UniformWithReplacementSampler:
    def __init__(self, *, num_samples: int, sample_rate: float, generator: Any = None, steps: Any = None) -> None:
        self.num_samples, self.sample_rate = num_samples, sample_rate
        self.steps = int(1 / sample_rate) if steps is None else steps

    def __len__(self) -> int:
        return self.steps


@_from("opacus.utils.uniform_sampler")
class DistributedUniformWithReplacementSampler:
    def __init__(
        self, *, total_size: int, sample_rate: float, shuffle: bool = True, shuffle_seed: int = 0, steps: Any = None,
        generator: Any = None,
    ) -> None:  # fmt: skip
        self.total_size, self.sample_rate, self.num_replicas = total_size, sample_rate, 2
        self.num_batches = int(1 / sample_rate) if steps is None else steps

    def __len__(self) -> int:
        return self.num_batches


@_from("opacus.utils.batch_memory_manager")
class BatchSplittingSampler:
    def __init__(self, *, sampler: Any, max_batch_size: int, optimizer: Any) -> None:
        self.sampler = sampler


@_from("torch.utils.data.sampler")
class SequentialSampler:
    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __len__(self) -> int:
        return len(self.data_source)


@_from("torch.utils.data.sampler")
class RandomSampler:
    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: Any = None, generator: Any = None
    ) -> None:
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples

    def __len__(self) -> int:
        return len(self.data_source) if self._num_samples is None else int(self._num_samples)


@_from("torch.utils.data.sampler")
class BatchSampler:
    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (rest > 0 and not self.drop_last)


def loader(batch_sampler: Any) -> Any:
    return SimpleNamespace(batch_sampler=batch_sampler)


def batches(records: int, size: int, drop_last: bool = False, order: type = RandomSampler, **how: Any) -> Any:
    """A loader of PyTorch's own samplers."""
    return loader(BatchSampler(order(range(records), **how), size, drop_last))


OPACUS: dict[str, dict[str, Any]] = {
    "opacus": {"PrivacyEngine": PrivacyEngine, "__version__": "1.6.0"},
    "opacus.accountants": {
        "IAccountant": IAccountant, "register_accountant": register_accountant, "create_accountant": create_accountant,
    },
    "opacus.utils.uniform_sampler": {
        "UniformWithReplacementSampler": UniformWithReplacementSampler,
        "DistributedUniformWithReplacementSampler": DistributedUniformWithReplacementSampler,
    },
    "opacus.utils.batch_memory_manager": {"BatchSplittingSampler": BatchSplittingSampler},
    "torch.utils.data.sampler": {
        "BatchSampler": BatchSampler, "RandomSampler": RandomSampler, "SequentialSampler": SequentialSampler,
    },
}  # fmt: skip


# -- JAX Privacy -------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class PldAccountantConfig:
    value_discretization_interval: float = 1e-4

    def create_accountant(self) -> Any:
        raise AssertionError("the adapter's own is asked")


class SamplingMethod(enum.Enum):
    POISSON = enum.auto()
    FIXED_BATCH_SIZE = enum.auto()


@dataclass(frozen=True, kw_only=True)
class DpParams:
    noise_multipliers: Any
    num_samples: int
    delta: float
    batch_size: int
    batch_size_scale_schedule: Any = None
    is_finite_guarantee: bool = True
    batch_sizes: Any = field(init=False)
    examples_per_user: int | None = None
    cycle_length: int | None = None
    sampling_method: SamplingMethod = SamplingMethod.POISSON
    truncated_batch_size: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_sizes", self.batch_size)


class DpTrainingAccountant(abc.ABC):
    def __init__(self, dp_accountant_config: Any) -> None:
        self._dp_accountant_config = dp_accountant_config

    @abc.abstractmethod
    def _compute_epsilon(self, num_updates: Any, dp_params: Any) -> float: ...

    @abc.abstractmethod
    def can_calibrate_steps(self) -> bool: ...

    @abc.abstractmethod
    def can_calibrate_batch_size(self) -> bool: ...

    @abc.abstractmethod
    def can_calibrate_noise_multipliers(self) -> bool: ...

    def _validate_dp_params(self, dp_params: Any) -> None:
        if dp_params.noise_multipliers is None:
            raise ValueError("requires noise_multipliers.")

    def compute_epsilon(self, num_updates: Any, dp_params: Any, allow_approximate_cache: bool = False) -> float:
        self._validate_dp_params(dp_params)
        return self._compute_epsilon(num_updates, dp_params) if num_updates else 0.0


def _interleave_nm_and_bs(noise_multipliers: Any, batch_sizes: Any, num_steps: int) -> Iterator[Any]:
    """One noise and one batch size."""
    yield num_steps, noise_multipliers, batch_sizes


JAX: dict[str, dict[str, Any]] = {
    "jax_privacy.accounting": {},
    "jax_privacy.accounting.accountants": {"PldAccountantConfig": PldAccountantConfig},
    "jax_privacy.accounting.analysis": {
        "DpTrainingAccountant": DpTrainingAccountant, "DpParams": DpParams, "SamplingMethod": SamplingMethod,
        "_interleave_nm_and_bs": _interleave_nm_and_bs,
    },
}  # fmt: skip


# -- Flower ------------------------------------------------------------------------------------------------------------


class NeighboringRelation(enum.StrEnum):
    ADD_OR_REMOVE_ONE = "add-or-remove-one"
    REPLACE_ONE = "replace-one"


class FlowerSampling(enum.StrEnum):
    POISSON = "poisson"
    WITHOUT_REPLACEMENT = "without-replacement"
    NO_AMPLIFICATION = "no-amplification"


@dataclass(frozen=True)
class PrivacyConfig:
    target_delta: float
    population_size: int
    neighboring_relation: NeighboringRelation
    sampling_method: FlowerSampling
    max_epsilon: float | None = None


@dataclass(frozen=True)
class GaussianPrivacyEvent:
    noise_multiplier: float
    sample_size: int
    population_size: int


@dataclass(frozen=True)
class PrivacySpent:
    epsilon: float
    delta: float
    num_releases: int
    accounting_method: str
    optimal_order: float | None = None


FLOWER: dict[str, dict[str, Any]] = {
    "flwr.supercore.privacy_accounting": {
        "NeighboringRelation": NeighboringRelation, "SamplingMethod": FlowerSampling, "PrivacyConfig": PrivacyConfig,
        "GaussianPrivacyEvent": GaussianPrivacyEvent, "PrivacySpent": PrivacySpent,
    },
}  # fmt: skip
