"""The question methods of mechanisms and plans.

This is the one module that reaches down the house: each method hands the question to the room that answers it, at call
time, so that describing a plan never pays for numerics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privloss.guarantees.compare import Row
    from privloss.guarantees.explain import Explanation
    from privloss.mechanisms.plan import Plan
    from privloss.numerics.bound import Bound, Bounds

DEFAULT_TOLERANCE = 1e-10


class Questions:
    """What may be said about a mechanism or a plan."""

    def as_plan(self) -> Plan:
        """This as a plan."""
        raise NotImplementedError

    @overload
    def epsilon(
        self, delta: float, *, adjacency: str | None = None, tolerance: float = DEFAULT_TOLERANCE, certify: bool = False
    ) -> Bound: ...
    @overload
    def epsilon(
        self,
        delta: Sequence[float],
        *,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        certify: bool = False,
    ) -> Bounds: ...
    def epsilon(
        self, delta: Any, *, adjacency: str | None = None, tolerance: float = DEFAULT_TOLERANCE, certify: bool = False
    ) -> Bound | Bounds:
        """The least eps for which this is (eps, delta)-DP, as an interval; for an array of deltas, an array.

        >>> import privloss as pl
        >>> pl.Gaussian(noise_multiplier=2.0).epsilon(delta=1e-5)
        Bound(1.99309140441..., 1.99309140441...)
        """
        from privloss.guarantees import exact

        return exact.epsilon(self.as_plan(), delta, adjacency=adjacency, tolerance=tolerance, certify=certify)

    @overload
    def delta(
        self,
        epsilon: float,
        *,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        certify: bool = False,
    ) -> Bound: ...
    @overload
    def delta(
        self,
        epsilon: Sequence[float],
        *,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        certify: bool = False,
    ) -> Bounds: ...
    def delta(
        self, epsilon: Any, *, adjacency: str | None = None, tolerance: float = DEFAULT_TOLERANCE, certify: bool = False
    ) -> Bound | Bounds:
        """The least delta for which this is (epsilon, delta)-DP, as an interval; for an array, an array."""
        from privloss.guarantees import exact

        return exact.delta(self.as_plan(), epsilon, adjacency=adjacency, tolerance=tolerance, certify=certify)

    def rdp(self, alpha: float, *, adjacency: str | None = None) -> Bound:
        """The Renyi divergence of order alpha >= 1 between worst neighbours, the larger of both directions."""
        from privloss.guarantees import renyi

        return renyi.rdp(self.as_plan(), alpha, adjacency=adjacency)

    def kl(self, *, adjacency: str | None = None) -> Bound:
        """The Kullback-Leibler divergence between worst neighbours: the mean privacy loss."""
        from privloss.guarantees import renyi

        return renyi.kl(self.as_plan(), adjacency=adjacency)

    def zcdp(self, *, adjacency: str | None = None) -> Bound:
        """The least rho for which this is rho-zCDP."""
        from privloss.guarantees import concentrated

        return concentrated.zcdp(self.as_plan(), adjacency=adjacency)

    def total_variation(self, *, adjacency: str | None = None) -> Bound:
        """delta(0): the largest advantage of any test between worst neighbours."""
        from privloss.guarantees import tradeoff

        return tradeoff.total_variation(self.as_plan(), adjacency=adjacency)

    def tradeoff(self, fpr: float, *, adjacency: str | None = None) -> Bound:
        """The least false negative rate of any test at false positive rate `fpr` (f-DP). Quote the lower end."""
        from privloss.guarantees import tradeoff

        return tradeoff.tradeoff(self.as_plan(), fpr, adjacency=adjacency)

    def explain(
        self,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
    ) -> Explanation:
        """Which theorem and engine gave the number, and what it assumes."""
        from privloss.guarantees import explain

        return explain.explain(self.as_plan(), delta=delta, epsilon=epsilon, adjacency=adjacency, tolerance=tolerance)

    def compare(self, delta: float, *, adjacency: str | None = None, noise: bool = True) -> list[Row]:
        """Every bound that applies at this delta, from loosest to exact, and what each costs in noise."""
        from privloss.guarantees import compare

        return compare.compare(self.as_plan(), delta, adjacency=adjacency, noise=noise)
