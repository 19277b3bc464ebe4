"""Privacy amplification by shuffling: n people report through an eps0-local randomiser, the reports lose their senders.

>>> round(clones(1.0, people=100_000, delta=1e-6), 6)
0.072555
"""

from __future__ import annotations

import math

from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.numerics.arrays import rounded_up


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
