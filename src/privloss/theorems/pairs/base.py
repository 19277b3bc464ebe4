"""Two distributions and everything that can be said about telling them apart: the privacy loss as an object.

`Pair` is P against Q, Z = log P(Y)/Q(Y) for Y ~ P (Defn. priv_loss), possibly infinite. Three ways to have one:
`DiscretePair` (two probability vectors), `GaussianPair` (closed form) and `DensityPair` (two densities on an interval,
by numerical quadrature). All answers are numbers to rounding (for densities: to the quadrature's tolerance), meant for
seeing what the definitions say; proven intervals for mechanisms come from plans.

>>> from privloss.theorems.pairs.discrete import DiscretePair
>>> coin = DiscretePair([0.75, 0.25], [0.25, 0.75])
>>> coin.kl(), coin.total_variation(), round(coin.hockey_stick(0.5), 6)
(0.549306144334..., 0.5, 0.33782)
>>> {round(coin.hockey_stick(0.5, expression=e), 12) for e in EXPRESSIONS}
{0.337819682325}
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from privloss.errors import InvalidInput
from privloss.numerics import check

EXPRESSIONS = ("tails", "expectation", "integral")  # of Prop. privloss_adp, in its order
Function = Callable[[float], float]


class Pair(ABC):
    """P against Q."""

    @abstractmethod
    def reversed(self) -> Pair:
        """Q against P. Its loss under Q is -Z (Rem. dual_privloss)."""

    @abstractmethod
    def expectation(self, g: Function) -> float:
        """E[g(Z); Z < inf] over Z ~ PrivLoss(P||Q)."""

    @abstractmethod
    def tail(self, epsilon: float) -> float:
        """P[Z > epsilon], infinite losses included."""

    @property
    @abstractmethod
    def mass_at_infinity(self) -> float:
        """P[Z = inf]: what P can produce and Q cannot."""

    @abstractmethod
    def max_divergence(self) -> float:
        """D_inf: the largest loss."""

    def tail_under_q(self, epsilon: float) -> float:
        """Q[Z > epsilon] = P[-Z' > epsilon] with Z' ~ PrivLoss(Q||P); change of distribution: E[e^-Z; Z > epsilon]."""
        return self.expectation(lambda z: math.exp(-z) if z > epsilon else 0.0)

    def change_of_distribution(self, g: Function) -> float:
        """Lem. dual_privloss: E_Q[g(log P/Q)] = E[g(Z) e^-Z], over outcomes that P can produce."""
        return self.expectation(lambda z: g(z) * math.exp(-z))

    def kl(self) -> float:
        """The mean loss, D_1."""
        return math.inf if self.mass_at_infinity > 0 else self.expectation(lambda z: z)

    def total_variation(self) -> float:
        """E[max(0, 1 - e^-Z)]."""
        return self.expectation(lambda z: -math.expm1(-z) if z > 0 else 0.0) + self.mass_at_infinity

    def total_variation_as_half(self) -> float:
        """The second expression: half of E|1 - e^-Z|, plus what each side alone can produce."""
        only_q = self.reversed().mass_at_infinity
        return 0.5 * (self.expectation(lambda z: abs(math.expm1(-z))) + self.mass_at_infinity + only_q)

    def hockey_stick(self, epsilon: float, *, expression: str = "expectation") -> float:
        """sup_S P(S) - e^eps Q(S), by any of the three expressions of Prop. privloss_adp."""
        eps = check.number("epsilon", epsilon)
        check.choice("expression", expression, EXPRESSIONS)
        if expression == "tails":
            under_q = self.tail_under_q(eps)
            return self.tail(eps) - (math.exp(min(eps, 709.0)) * under_q if under_q > 0 else 0.0)
        if expression == "expectation":
            return self.expectation(lambda z: -math.expm1(eps - z) if z > eps else 0.0) + self.mass_at_infinity
        return self._tail_integral(eps)

    def hockey_stick_upper(self, epsilon: float) -> float:
        """The upper bound of the same proposition: P[Z > epsilon]."""
        return self.tail(check.number("epsilon", epsilon))

    @abstractmethod
    def _tail_integral(self, epsilon: float) -> float:
        """The integral of e^(epsilon - z) P[Z > z] over z > epsilon."""

    def renyi(self, alpha: float) -> float:
        """D_alpha for alpha >= 1; math.inf is allowed."""
        if alpha == math.inf:
            return self.max_divergence()
        order = check.number("alpha", alpha, low=1)
        if self.mass_at_infinity > 0:
            return math.inf
        if order == 1:
            return self.kl()
        return self.log_moment(order - 1) / (order - 1)

    def log_moment(self, t: float) -> float:
        """K(t) = log E[e^(tZ); Z < inf]."""
        return math.log(self.expectation(lambda z: math.exp(t * z)))

    def neyman_pearson(self, fpr: float) -> NeymanPearson:
        """The most powerful test of Q against P with false positive rate `fpr` (says P under Q)."""
        raise NotImplementedError

    def tradeoff(self, fpr: float) -> float:
        """The least false negative rate (says Q under P) at this false positive rate."""
        return 1 - self.neyman_pearson(fpr).power


class NeymanPearson:
    """Say P if the loss exceeds `threshold`; if it equals it, with probability `coin`."""

    def __init__(self, threshold: float, coin: float, power: float) -> None:
        self.threshold, self.coin, self.power = threshold, coin, power

    def __repr__(self) -> str:
        return f"NeymanPearson(threshold={self.threshold!r}, coin={self.coin!r}, power={self.power!r})"


def probabilities(name: str, values: Any) -> list[float]:
    """A checked probability vector, made to sum to one exactly as far as doubles can."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InvalidInput(f"{name} = {values!r}: must be a list of probabilities.")
    entries = [check.number(f"{name}[{i}]", v, low=0, high=1 + 1e-12) for i, v in enumerate(values)]
    if not entries or abs(math.fsum(entries) - 1) > 1e-9:
        raise InvalidInput(f"{name}: probabilities must sum to 1, not {math.fsum(entries):.12g}.")
    total = math.fsum(entries)
    return [v / total for v in entries]
