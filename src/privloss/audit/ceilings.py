"""What an audit could show at best: worth asking before it is run."""

from __future__ import annotations

from privloss.audit import checks
from privloss.audit.canaries import perfect
from privloss.audit.joint import MOST
from privloss.audit.rates import epsilon_of, least_rate, most_rate
from privloss.audit.trials import joint_ceiling
from privloss.errors import InvalidInput


def ceiling(
    *,
    canaries: int | None = None,
    guesses: int | None = None,
    positives: int | None = None,
    negatives: int | None = None,
    delta: float,
    alpha: float = 0.05,
) -> float:
    """The largest epsilon that `one_run` (canaries, guesses) or `counts` (positives, negatives) could ever show.

    >>> ceiling(canaries=1000, delta=1e-5)  # all guessed
    5.809004...
    """
    delta, alpha = checks.lost(delta), checks.level(alpha)
    if (canaries is None) == (positives is None):
        raise InvalidInput("ceiling: give canaries (one run) or positives and negatives (independent trials).")
    if (canaries is None and guesses is not None) or (positives is None and negatives is not None):
        raise InvalidInput("ceiling: guesses go with canaries, negatives with positives.")
    if canaries is not None:
        m = checks.whole("canaries", canaries, 1, 10**9)
        r = m if guesses is None else checks.whole("guesses", guesses, 1, m)
        return perfect(m, r, delta, alpha)
    n1 = checks.whole("positives", positives, 1, 10**9)
    n0 = checks.whole("negatives", n1 if negatives is None else negatives, 1, 10**9)
    if n0 + n1 <= MOST:
        return joint_ceiling(n1, n0, delta, alpha)
    return float(epsilon_of(least_rate(n1, n1, alpha / 2), most_rate(0, n0, alpha / 2), delta))
