"""What every sampler is told beside the step: under which adjacency, and how to name what it refuses."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privloss.adjacency import ZERO_OUT
from privloss.errors import Unsupported
from privloss.losses.step import Distances, Step

NULL_ADDS_NOTHING = (
    "zero-out on a sample: a null record leaves the output as if it were absent (the guarantee as given only compares "
    "the record with its null record)"
)


@dataclass(frozen=True)
class Setting:
    """The adjacency; `sampled` and `inner` are the mechanisms in words."""

    adjacency: str
    sampled: str
    inner: str
    scheme: str

    def distances(self, step: Step) -> Distances:
        """How far a record moves the sum; refused where the step is not Gaussian noise, or has none."""
        if step.distances is None:
            raise Unsupported(
                f"{self.sampled}: {self.scheme} sampling has a proven bound for Gaussian noise only; for other "
                "mechanisms use poisson, fixed-size or shuffle."
            )
        if not step.distances.replace < math.inf:
            raise Unsupported(
                f"{self.sampled}: without noise this sampler has no finite bound; use poisson or fixed-size."
            )
        return step.distances

    def with_null(self, step: Step, found: Step) -> Step:
        """Under zero-out a sampled pair also compares "not sampled" with "null record sampled"."""
        known = self.adjacency != ZERO_OUT or step.null_adds_nothing
        return found if known else found.assuming(NULL_ADDS_NOTHING)


def distance_text(distance: float) -> str:
    return f"one record moves the sum by up to {distance:.6g} times the noise"
