"""What the adapters rely on in the packages they adapt to: ``python -m tests.interop.training_signatures PACKAGE``, in
an environment with that package, writes it into tests/data/training_signatures.json.

The stand-ins of `make test` must agree with the file, and so must the packages themselves in `tests/interop/real`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "data" / "training_signatures.json"
_ACCOUNTANT = ["step", "get_epsilon", "__len__", "mechanism", "get_optimizer_hook_fn", "state_dict", "load_state_dict"]
_FLOWER = ["compose", "get_epsilon", "get_delta", "get_privacy_spent", "would_exceed", "state_dict", "load_state_dict"]
NAMES: dict[str, list[str]] = {
    "opacus": [
        *(f"opacus.accountants:IAccountant.{name}" for name in ("__init__", *_ACCOUNTANT)),
        "opacus.accountants:register_accountant",
        "opacus.accountants:create_accountant",
        "opacus.accountants.utils:get_noise_multiplier",
        "opacus:PrivacyEngine.__init__",
        "opacus:PrivacyEngine.make_private",
        "opacus:PrivacyEngine.make_private_with_epsilon",
        "opacus:PrivacyEngine.get_epsilon",
        "opacus.utils.uniform_sampler:UniformWithReplacementSampler.__init__",
        "opacus.utils.uniform_sampler:DistributedUniformWithReplacementSampler.__init__",
        "opacus.utils.batch_memory_manager:BatchSplittingSampler.__init__",
        "torch.utils.data.sampler:BatchSampler.__init__",
        "torch.utils.data.sampler:RandomSampler.__init__",
        "torch.utils.data.sampler:SequentialSampler.__init__",
    ],
    "jax-privacy": [
        "jax_privacy.accounting.accountants:PldAccountantConfig.__init__",
        "jax_privacy.accounting.accountants:PldAccountantConfig.create_accountant",
        "jax_privacy.accounting.analysis:DpTrainingAccountant.__init__",
        "jax_privacy.accounting.analysis:DpTrainingAccountant.compute_epsilon",
        "jax_privacy.accounting.analysis:DpTrainingAccountant._compute_epsilon",
        "jax_privacy.accounting.analysis:DpTrainingAccountant._validate_dp_params",
        "jax_privacy.accounting.analysis:DpParams.__init__",
        "jax_privacy.accounting.analysis:SamplingMethod",
        "jax_privacy.accounting.analysis:_interleave_nm_and_bs",
    ],
    "tensorflow-privacy": [
        "tensorflow_privacy.privacy.analysis.compute_dp_sgd_privacy_lib:AccountantType.get_accountant",
        "tensorflow_privacy.privacy.analysis.compute_dp_sgd_privacy_lib:compute_dp_sgd_privacy_statement",
    ],
    "flwr": [
        *(f"flwr.supercore.privacy_accounting:PrivacyAccountant.{name}" for name in _FLOWER),
        "flwr.supercore.privacy_accounting:PrivacyConfig.__init__",
        "flwr.supercore.privacy_accounting:GaussianPrivacyEvent.__init__",
        "flwr.supercore.privacy_accounting:PrivacySpent.__init__",
        "flwr.supercore.privacy_accounting:SamplingMethod",
        "flwr.supercore.privacy_accounting:NeighboringRelation",
    ],
}


def described(place: str) -> str:
    """The parameters of a function, or the members of an enumeration."""
    module, _, path = place.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if isinstance(found, type) and issubclass(found, Enum):
        return ", ".join(f"{name} = {member.value}" for name, member in found.__members__.items())
    return ", ".join(_parameter(p) for p in inspect.signature(found).parameters.values())


def _parameter(p: inspect.Parameter) -> str:
    mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**", p.KEYWORD_ONLY: "keyword "}.get(p.kind, "")
    return f"{mark}{p.name}{'' if p.default is p.empty else '='}"


def recorded(package: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(FILE.read_text())[package]["signatures"]
    return found


def main(package: str) -> None:
    held = json.loads(FILE.read_text()) if FILE.exists() else {}
    held[package] = {"version": version(package), "signatures": {place: described(place) for place in NAMES[package]}}
    FILE.write_text(json.dumps(dict(sorted(held.items())), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
