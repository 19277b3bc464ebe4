"""The test of propose-test-release: how many records would have to change before the local sensitivity exceeds the
proposed bound, that number plus Laplace noise of scale 1/eps, and what follows only if it exceeds log(1/(2 delta))/eps.

*Pair: Laplace of ratio eps, and delta.* Let x, x' be neighbours, gamma their numbers, which differ by one at most. If
both are 0 the test has the same law on both and passes with probability delta: (0, delta)-DP, whatever follows. If not,
the local sensitivity at x or at x' is within the bound, and so is |f(x) - f(x')|: what follows has its own pair, the
test that of Laplace noise.

>>> from privloss.mechanisms.laplace import Laplace
>>> propose_test_release(Laplace(2.0), epsilon=0.5, delta=1e-7)
Plan(DistanceTest(epsilon=0.5, delta=1e-07) + Laplace(scale=2.0))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privloss.errors import InvalidInput
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.laplace import LaplaceLoss
from privloss.losses.closed.point import PointLoss
from privloss.losses.composed import ComposedLoss
from privloss.losses.step import Step
from privloss.mechanisms.base import Mechanism, Plan, Sampled, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number


@dataclass(frozen=True, repr=False, init=False)
class DistanceTest(Mechanism):
    """Stored as `eps` and `slack`."""

    kind: ClassVar[str] = "distance-test"
    eps: float = number(above=True, high=100.0, public="epsilon")
    slack: float = number(above=True, high=0.5, public="delta")

    def __init__(self, epsilon: float, delta: float) -> None:
        set_field(self, "eps", epsilon)
        set_field(self, "slack", delta)
        self.__post_init__()


def _step(m: DistanceTest, adjacency: str) -> Step:
    parts: list[PrivacyLoss] = [
        PointLoss(math.log1p(-m.slack), 0.0, m.slack),
        LaplaceLoss(np.array([m.eps]), np.ones(1)),
    ]
    return Step(
        ("propose-test-release: Laplace pair of the noisy distance, and delta (Dwork, Lei 2009; docs/mechanisms.md)",),
        (
            f"distance-test: neighbours under {adjacency}; what follows is calibrated to the proposed bound, and runs "
            "only if the test passes; lower end: nothing is claimed of the test",
        ),
        ComposedLoss.of(parts),
        mirrored=True,
        attained=(None,),
    )


def propose_test_release(release: Mechanism, *, epsilon: float, delta: float) -> Plan:
    """The test, and the release that is calibrated to the proposed bound on the local sensitivity."""
    if isinstance(release, Sampled) or not isinstance(release, Mechanism):
        raise InvalidInput(f"release = {release!r}: must be one mechanism on the whole data.")
    return DistanceTest(epsilon, delta) + release


add_kind(
    Kind(
        "distance-test",
        DistanceTest,
        _step,
        not_on_a_sample="what follows the test is calibrated to the data it runs on.",
    )
)
