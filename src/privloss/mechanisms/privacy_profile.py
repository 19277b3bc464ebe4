"""A box that is (epsilon, delta)-DP at several points.

>>> PrivacyProfile(epsilons=[0.0, 1.0], deltas=[0.3, 1e-5])        # is (0, 0.3)-DP and (1, 1e-5)-DP
PrivacyProfile(epsilons=[0.0, 1.0], deltas=[0.3, 1e-05])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.losses.step import Step
from privloss.losses.table.polygon import privacy_profile
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import numbers


@dataclass(frozen=True, repr=False)
class PrivacyProfile(Mechanism):
    """Any mechanism that is (epsilons[i], deltas[i])-DP for every i."""

    kind: ClassVar[str] = "privacy-profile"
    epsilons: Sequence[float] = numbers()
    deltas: Sequence[float] = numbers(high=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.epsilons) != len(self.deltas):
            raise InvalidInput(
                f"epsilons has {len(self.epsilons)} entries, deltas {len(self.deltas)}: must be equally many."
            )
        pairs = sorted(zip(self.epsilons, self.deltas, strict=True))
        set_field(self, "epsilons", tuple(e for e, _ in pairs))
        set_field(self, "deltas", tuple(d for _, d in pairs))


def _step(m: PrivacyProfile, adjacency: str) -> Step:
    return Step.of_table(
        privacy_profile(m.epsilons, m.deltas),
        "(eps_i, delta_i)-DP for all i is f-DP with the largest of their curves (Dong, Roth, Su 2022)",
        f"privacy-profile: the guarantees hold under {adjacency}",
        mirrored=True,  # every segment of the curve has its mirror image
    )


add_kind(
    Kind(
        "privacy-profile",
        PrivacyProfile,
        _step,
        louder=lambda m, factor: PrivacyProfile([e / factor for e in m.epsilons], m.deltas),
        certified="all outcomes",
    )
)
