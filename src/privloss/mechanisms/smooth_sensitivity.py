"""Noise scaled to a smooth sensitivity: f(x) + (S(x) / s) T, S a t-smooth upper bound on the local sensitivity of f
(S(x) <= e^t S(x') for neighbours).

*Student's t, d degrees of freedom*: pure DP of max(1, d) t + s (d+1)/(2 sqrt d). With h its density, |(log h)'| is at
most (d+1)/(2 sqrt d), at z = sqrt d, and neighbours are at most s apart in units of S(x)/s; the derivative of
log(h(z e^-u) e^-u) in u is -1 + (d+1) (z^2/d)/(1 + z^2/d), between -1 and d, and |u| <= t. *Laplace log-normal*, T =
e^(sg Z) times a Laplace variable, Z normal: eps^2/2-zCDP, eps = t/sg + e^(1.5 sg^2) s (Bun, Steinke 2019).

>>> SmoothSensitivity(noise="student-t", smoothness=0.1, scale=0.5, degrees=3).epsilon(0.0).upper     # 0.3 + 0.5774
0.877350269...
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.losses.step import Step
from privloss.mechanisms.approx_dp import box_step
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number, word
from privloss.mechanisms.zcdp import ZCDP
from privloss.numerics.floats import raised

_LARGEST = 1e150  # epsilon: its square is a double
STUDENT, LOG_NORMAL = "student-t", "laplace-log-normal"


@dataclass(frozen=True, repr=False, kw_only=True)
class SmoothSensitivity(Mechanism):
    """Noise T times S(x) / scale."""

    kind: ClassVar[str] = "smooth-sensitivity"
    noise: str = word((STUDENT, LOG_NORMAL))
    smoothness: float = number(description="t: neighbours' S differ by a factor of e^t at most")
    scale: float = number(above=True, description="s: the noise is S(x) / s times T")
    degrees: float | None = number(above=True, default=None, description="of freedom, of Student's t")
    shape: float | None = number(above=True, default=None, description="sg of the log-normal factor")

    def __post_init__(self) -> None:
        super().__post_init__()
        needed, other = ("degrees", "shape") if self.noise == STUDENT else ("shape", "degrees")
        if getattr(self, needed) is None or getattr(self, other) is not None:
            raise InvalidInput(
                f"degrees = {self.degrees!r}, shape = {self.shape!r}: noise = {self.noise!r} needs {needed} alone."
            )
        if self.box > _LARGEST:
            raise InvalidInput(f"{self!r}: its epsilon is above {_LARGEST:g}.")

    @property
    def box(self) -> float:
        """The epsilon of the box; of log-normal noise, that of eps^2/2-zCDP."""
        if self.noise == STUDENT:
            d = self.degrees or 1.0
            return raised(max(1.0, d) * self.smoothness + self.scale * (d + 1) / (2 * math.sqrt(d)), 12)
        shape = self.shape or 1.0
        power = 1.5 * min(shape, 1e3) ** 2
        grown = math.exp(power) if power < 700 else math.inf
        return raised(self.smoothness / shape + grown * self.scale, 12 + 4 * power)


def _step(m: SmoothSensitivity, adjacency: str) -> Step:
    about = (
        f"smooth-sensitivity: S is a {m.smoothness:g}-smooth upper bound on the local sensitivity under {adjacency}; "
        "lower end: nothing is claimed"
    )
    if m.noise == STUDENT:
        found = box_step(m.kind, m.box, 0.0, adjacency)
        theorem = "smooth sensitivity with Student's t noise: max(1, d) t + s (d+1)/(2 sqrt d) (docs/mechanisms.md)"
    else:
        found = ZCDP(raised(0.5 * m.box * m.box, 4)).step(adjacency)
        theorem = "smooth sensitivity, Laplace log-normal noise: (t/sg + e^(1.5 sg^2) s)^2/2-zCDP (Bun, Steinke 2019)"
    return dataclasses.replace(
        found, theorems=(theorem, *found.theorems), assumptions=(about,), attained=(None,), stand_in=None, poisson=None,
        symmetric=None, fixed_size=None,
    )  # fmt: skip


add_kind(
    Kind(
        "smooth-sensitivity",
        SmoothSensitivity,
        _step,
        forms=(("noise", "smoothness", "scale", "degrees"), ("noise", "smoothness", "scale", "shape")),
        not_on_a_sample="it is told by its box; account for the box itself on a sample: pl.PureDP or pl.ZCDP.",
    )
)
