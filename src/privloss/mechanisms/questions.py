"""The question methods of mechanisms and plans.

This is the one module that reaches down the house: each method hands the question to the room that answers it, at call
time. Everything else imports upwards only, and a test says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from privloss.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privloss.answers.explain import Explanation
    from privloss.mechanisms.base import Plan
    from privloss.mechanisms.worst_neighbours import Support
    from privloss.numerics.bound import Bound, Bounds
    from privloss.papers.chart import Chart
    from privloss.theorems.compare import ComparedBound

DEFAULT_TOLERANCE = 1e-10


def _certified(certify: bool) -> bool:
    if not isinstance(certify, bool):
        raise InvalidInput(f"certify = {certify!r}: must be True or False.")
    return certify


class Questions:
    """What may be said about a mechanism or a plan."""

    def as_plan(self) -> Plan:
        """This as a plan."""
        raise NotImplementedError

    @overload
    def epsilon(
        self,
        delta: float,
        *,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        certify: bool = False,
        work: float | None = None,
    ) -> Bound: ...
    @overload
    def epsilon(
        self,
        delta: Sequence[float],
        *,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        certify: bool = False,
        work: float | None = None,
    ) -> Bounds: ...
    def epsilon(
        self,
        delta: Any,
        *,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        certify: bool = False,
        work: float | None = None,
    ) -> Bound | Bounds:
        """The least eps for which this is (eps, delta)-DP, as an interval; for an array of deltas, an array.

        `work` limits the evaluations that one answer may take; where it is reached, the interval is the best so far.

        >>> import privloss as pl
        >>> pl.Gaussian(noise_multiplier=2.0).epsilon(delta=1e-5)
        Bound(1.99309140441..., 1.99309140441...)
        """
        if _certified(certify):
            from privloss.certificates import certificate

            return certificate.epsilon(self.as_plan(), delta, adjacency=adjacency)
        from privloss.answers import exact

        return exact.epsilon(self.as_plan(), delta, adjacency=adjacency, tolerance=tolerance, work=work)

    @overload
    def delta(
        self,
        epsilon: float,
        *,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        certify: bool = False,
        work: float | None = None,
    ) -> Bound: ...
    @overload
    def delta(
        self,
        epsilon: Sequence[float],
        *,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        certify: bool = False,
        work: float | None = None,
    ) -> Bounds: ...
    def delta(
        self,
        epsilon: Any,
        *,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        certify: bool = False,
        work: float | None = None,
    ) -> Bound | Bounds:
        """The least delta for which this is (epsilon, delta)-DP, as an interval; for an array, an array."""
        if _certified(certify):
            from privloss.certificates import certificate

            return certificate.delta(self.as_plan(), epsilon, adjacency=adjacency)
        from privloss.answers import exact

        return exact.delta(self.as_plan(), epsilon, adjacency=adjacency, tolerance=tolerance, work=work)

    def supported(self, adjacency: str | None = None) -> Support:
        """Whether every step has a proven pair under the adjacency (the plan's own, if none is given), and why not.

        >>> import privloss as pl
        >>> bool(pl.Gaussian(1.0).shuffle(10).supported("replace-one"))
        True
        >>> pl.PureDP(1.0).poisson(0.1).supported("replace-one").reason[:61]
        'PureDP(epsilon=1.0).poisson(0.1) under replace-one: needs the'
        """
        from privloss.mechanisms import worst_neighbours

        return worst_neighbours.supported(self.as_plan(), adjacency)

    @overload
    def rdp(self, alpha: float, *, adjacency: str | None = None) -> Bound: ...
    @overload
    def rdp(self, alpha: Sequence[float], *, adjacency: str | None = None) -> Bounds: ...
    def rdp(self, alpha: Any, *, adjacency: str | None = None) -> Bound | Bounds:
        """The Renyi divergence of order alpha >= 1 between worst neighbours, the larger of both directions; for an
        array of orders, an array."""
        from privloss.answers import renyi

        return renyi.rdp(self.as_plan(), alpha, adjacency=adjacency)

    def kl(self, *, adjacency: str | None = None) -> Bound:
        """The Kullback-Leibler divergence between worst neighbours: the mean privacy loss."""
        from privloss.answers import renyi

        return renyi.kl(self.as_plan(), adjacency=adjacency)

    def zcdp(self, *, adjacency: str | None = None) -> Bound:
        """The least rho for which this is rho-zCDP."""
        from privloss.answers import concentrated

        return concentrated.zcdp(self.as_plan(), adjacency=adjacency)

    def total_variation(self, *, adjacency: str | None = None) -> Bound:
        """delta(0): the largest advantage of any test between worst neighbours."""
        from privloss.answers import tradeoff

        return tradeoff.total_variation(self.as_plan(), adjacency=adjacency)

    @overload
    def tradeoff(self, fpr: float, *, adjacency: str | None = None, tolerance: float = DEFAULT_TOLERANCE) -> Bound: ...
    @overload
    def tradeoff(
        self, fpr: Sequence[float], *, adjacency: str | None = None, tolerance: float = DEFAULT_TOLERANCE
    ) -> Bounds: ...
    def tradeoff(
        self, fpr: Any, *, adjacency: str | None = None, tolerance: float = DEFAULT_TOLERANCE
    ) -> Bound | Bounds:
        """The least false negative rate of any test at false positive rate `fpr` (f-DP), to a width of `tolerance`.
        Quote the lower end. For an array of rates, an array: all points share their evaluations."""
        from privloss.answers import tradeoff

        return tradeoff.tradeoff(self.as_plan(), fpr, adjacency=adjacency, tolerance=tolerance)

    def explain(
        self,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        adjacency: str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
    ) -> Explanation:
        """Which theorem and engine gave the number, and what it assumes."""
        from privloss.answers import explain

        return explain.explain(self.as_plan(), delta=delta, epsilon=epsilon, adjacency=adjacency, tolerance=tolerance)

    def compare(self, delta: float, *, adjacency: str | None = None, noise: bool = True) -> list[ComparedBound]:
        """Every bound that applies at this delta, from loosest to exact, and what each costs in noise."""
        from privloss.theorems import compare

        return compare.compare(self.as_plan(), delta, adjacency=adjacency, noise=noise)

    def plot(
        self,
        kind: str = "delta",
        *,
        delta: float | None = None,
        points: Sequence[float] | None = None,
        adjacency: str | None = None,
    ) -> Chart:
        """A chart for a paper, to be saved as a picture or written as a table: "delta" over epsilon, "tradeoff" of
        attacks, and at a `delta` epsilon by "steps" and "accountants" side by side."""
        from privloss.papers import charts

        return charts.chart(self.as_plan(), kind, delta=delta, points=points, adjacency=adjacency)
