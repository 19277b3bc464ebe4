"""Privacy amplification by shuffling: n people report through an eps0-local randomiser, the reports lose their senders.

>>> round(clones(1.0, people=100_000, delta=1e-6), 6)
0.072555
>>> round(stronger(1.0, people=100_000, delta=1e-6), 6)
0.06036
>>> print(numerical_epsilon(1.0, people=100_000, delta=1e-6))
[0.0109, 0.0125]
>>> print(numerical_epsilon(1.0, people=100_000, delta=1e-6, answers=10))        # 10-ary randomised response
[0.0066384..., 0.0066384...]

`clones` and `stronger` are closed forms; `numerical_delta` and `numerical_epsilon` evaluate the pair itself. Adjacency
is always replace-one: one person's value changes.
"""

from __future__ import annotations

import math

from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.numerics.bound import Bound
from privloss.numerics.floats import log_raised, lowered, next_down, next_up, raised, rounded_up, widened
from privloss.numerics.solve import decreasing_root
from privloss.numerics.stable import exp_or_inf
from privloss.theorems import shuffled_bits
from privloss.theorems.shuffle_pair import blanket, held, log_delta

_SMALLEST = 1e-100  # below, the values of the pair would leave the range of doubles; one report alone is a fine bound
_LARGEST = 100.0  # far beyond any amplification: with 10^12 people none is left above log(10^12) = 27.6
_GENERIC = "shuffled reports, binary randomised response dominates"
_RESPONSE = "shuffled randomised response, privacy blanket"
_BITS = "shuffled randomised response, all values of the others"


def clones(local_epsilon: float, people: int, delta: float) -> float:
    """The epsilon of the shuffled reports at delta (Feldman, McMillan, Talwar 2021, Thm. 3.1); adjacency: replace-one.

    log(1 + (e^eps0 - 1)/(e^eps0 + 1) (8 sqrt(e^eps0 log(4/delta) / n) + 8 e^eps0 / n)) for
    eps0 <= log(n/(16 log(2/delta))), and never more than eps0 itself; for small eps0 O(eps0 sqrt(log(1/delta)/n)).
    """
    eps0 = check.number("local_epsilon", local_epsilon, low=0)
    n, target = check.count("people", people), check.number("delta", delta, low=0, high=1, above=True)
    room = n / (16 * (math.log(2) - math.log(target)))
    if not eps0 <= math.log(room):
        raise InvalidInput(
            f"local_epsilon = {local_epsilon!r}: must be at most log(n / (16 log(2/delta))) = {math.log(room):g}; "
            "with fewer people no amplification is proven."
        )
    grown = math.exp(eps0)
    share = math.tanh(eps0 / 2) * (8 * math.sqrt(grown * (math.log(4) - math.log(target)) / n) + 8 * grown / n)
    return min(float(rounded_up(math.log1p(share), 16)), eps0)


def stronger(local_epsilon: float, people: int, delta: float) -> float:
    """The epsilon of the shuffled reports at delta (Feldman, McMillan, Talwar 2023), never above eps0 itself.

    log(1 + (e^eps0 - 1) (4 sqrt(2 log(4/delta) / ((e^eps0 + 1) n)) + 4/n)) for eps0 <= log(n/(8 log(2/delta)) - 1).

    It holds for the pair of binary randomised response: there the ratio is (e^eps0 a + b)/(a + e^eps0 b) for a and b of
    the C + 1 reports on either side, and it exceeds e^eps only if C is less than about half its mean (Chernoff) or
    a - b is large (Hoeffding), together with probability below delta. That no other eps0-local randomiser is worse is
    proven in `shuffle_pair.blanket`, if all people use the same one and none sees the others' reports. (The authors'
    errata, arXiv:2208.04591, restrict their own proof to a class of randomisers. `clones` needs neither.)
    """
    eps0, n, target = _checked(local_epsilon, people, delta)
    room = n / (8 * (math.log(2) - math.log(target))) - 1
    if not (room >= 1 and eps0 <= math.log(room)):
        most = f"{math.log(room):g}" if room > 0 else "-inf"
        raise InvalidInput(
            f"local_epsilon = {local_epsilon!r}: must be at most log(n / (8 log(2/delta)) - 1) = {most}; "
            "with fewer people this closed form is not proven, but numerical_epsilon is."
        )
    rare, logarithm = math.exp(-eps0), math.log(4) - math.log(target)
    # (e^eps0 - 1) / sqrt(e^eps0 + 1), and no overflow: the condition keeps e^eps0 below n
    share = math.expm1(eps0) * (4 * math.sqrt(2 * logarithm * rare / ((1 + rare) * n)) + 4 / n)
    return min(float(rounded_up(math.log1p(share), 32)), eps0)


def numerical_delta(local_epsilon: float, people: int, epsilon: float, answers: int | None = None) -> Bound:
    """The smallest delta for which the shuffled reports are (epsilon, delta)-DP, as an interval.

    Without `answers`: the largest such delta over all eps0-local randomisers that everybody uses, none seeing the
    others' reports. With `answers`: k-ary randomised response (the truth with probability e^eps0/(e^eps0 + k - 1), each
    other answer with 1/(e^eps0 + k - 1)), over all values that the people may hold.

    The upper end is the pair of `shuffle_pair.blanket`, in the generic case that of the 2023 paper: C ~ Bin(n-1, 2p)
    others say one of the two answers that matter, A ~ Bin(C, 1/2) of them the first, p = 1/(e^eps0 + 1). For
    k >= 3 the third component is the number of all other answers *from the blanket*: it tells whether the changed
    report is among the two, and a pair that hides it is too optimistic. The lower end is a real mechanism, randomised
    response where all others hold one value (`shuffle_pair.held`), in the generic case with 2 or 3 answers. For two
    answers and up to a million people both ends are the truth, the largest delta over all values that the others may
    hold (`shuffled_bits`); often they are not all the same.

    >>> print(numerical_delta(4.0, people=1000, epsilon=1.0, answers=4))
    [0.00030047, 0.00030090]
    """
    eps0, n, k = _described(local_epsilon, people, answers)
    eps = check.number("epsilon", epsilon, low=0)
    low = max(_log_lower(eps0, n, eps, k, which) for which in range(_how_many(k)))
    lower, upper = _exp_down(low), min(_exp_up(_log_upper(eps0, n, eps, k)), 1.0)
    return Bound(min(lower, upper), upper, _method(n, k))


def numerical_epsilon(local_epsilon: float, people: int, delta: float, answers: int | None = None) -> Bound:
    """The smallest epsilon for which the shuffled reports are (epsilon, delta)-DP; see `numerical_delta`.

    >>> bound = numerical_epsilon(4.0, people=100_000, delta=1e-6)
    >>> bound.upper < stronger(4.0, people=100_000, delta=1e-6) < clones(4.0, people=100_000, delta=1e-6)
    True
    """
    eps0, n, k = _described(local_epsilon, people, answers)
    target = check.number("delta", delta, low=0, high=1, above=True)
    log_target = math.log(target)
    level = widened(log_target, 4, 1 + abs(log_target))
    # a normal approximation of the two binomials, to start from
    spread = math.sqrt(2 * math.exp(-eps0) / n) * math.expm1(eps0) / math.sqrt(1 + math.exp(-eps0))
    start = min(math.log1p(spread * math.sqrt(2 * (1 - log_target))), eps0)
    if _enumerated(n, k) and n > 1 and eps0 >= _SMALLEST:
        found = shuffled_bits.epsilon(eps0, n, level, start)
        return Bound(found[0], found[1], _method(n, k))
    upper = min(decreasing_root(lambda eps: (math.inf, _log_upper(eps0, n, eps, k)), level, start)[1], eps0)
    lower = _attained_epsilon(eps0, n, k, level, upper) if upper > 0 else 0.0
    return Bound(min(lower, upper), upper, _method(n, k))


def _method(n: int, answers: int | None) -> str:
    return _GENERIC if answers is None else _BITS if _enumerated(n, answers) else _RESPONSE


def _attained_epsilon(eps0: float, n: int, k: int | None, level: tuple[float, float], start: float) -> float:
    """An eps at which a real mechanism surely has at least the delta asked for, or 0."""
    # any of them would do; the one that is best close to the upper end
    which = max(range(_how_many(k)), key=lambda i: _log_lower(eps0, n, 0.99 * start, k, i))

    def both(eps: float) -> tuple[float, float]:
        low = _log_lower(eps0, n, eps, k, which)
        return low, low

    return decreasing_root(both, level, start)[0]


def _how_many(answers: int | None) -> int:
    return 1 if answers == 2 else 2


def _log_lower(eps0: float, n: int, eps: float, answers: int | None, which: int) -> float:
    """The log of a lower bound on delta of a real mechanism: 0, the others hold the same value; 1, a third value."""
    if eps >= eps0 or eps0 < _SMALLEST:
        return -math.inf
    if _enumerated(n, answers):
        return shuffled_bits.log_delta(eps0, eps, n)[0]
    k = answers or (3 if which else 2)
    return log_delta(held(eps0, eps, k)[which], eps0, n)[0]


def _log_upper(eps0: float, n: int, eps: float, answers: int | None) -> float:
    """The log of an upper bound on delta; shuffling never makes it larger than for one report (post-processing)."""
    if eps >= eps0:
        return -math.inf
    k = answers or 2
    local = math.log(-math.expm1(eps - eps0)) - math.log1p((k - 1) * math.exp(-eps0))
    local = log_raised(local, 16)
    if n == 1 or eps0 < _SMALLEST:
        return local
    if _enumerated(n, answers):
        return min(local, shuffled_bits.log_delta(eps0, eps, n)[1])
    return min(local, log_delta(blanket(eps0, eps, k), eps0, n)[1])


def _enumerated(n: int, answers: int | None) -> bool:
    """Binary randomised response: all values that the others may hold are gone through."""
    return answers == 2 and n <= shuffled_bits.MOST_PEOPLE


def _exp_down(log: float) -> float:
    """A lower bound on e^log, the logarithm known to 4 units of 1."""
    return max(next_down(exp_or_inf(lowered(log, 4, 1.0))), 0.0)


def _exp_up(log: float) -> float:
    """An upper bound likewise; 0 stays 0."""
    return next_up(exp_or_inf(raised(log, 4, 1.0))) if log > -math.inf else 0.0


def _described(local_epsilon: float, people: int, answers: int | None) -> tuple[float, int, int | None]:
    eps0, n, _ = _checked(local_epsilon, people, 1.0)
    k = None if answers is None else check.count("answers", answers)
    if k == 1:
        raise InvalidInput(f"answers = {answers!r}: must be at least 2.")
    return eps0, n, k


def _checked(local_epsilon: float, people: int, delta: float) -> tuple[float, int, float]:
    return (
        check.number("local_epsilon", local_epsilon, low=0, high=_LARGEST),
        check.count("people", people),
        check.number("delta", delta, low=0, high=1, above=True),
    )
