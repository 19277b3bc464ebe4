"""What 0.1.0 answered, asked again. `python -m tests.recorded.compare` goes through all of it and prints what changed.

Every answer must be the same, or lie inside the old interval, or fall under one of the reasons below, which the
changelog repeats; an old interval and a new one that do not even overlap need the strongest of reasons.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import privloss as pl
from tests.recorded.ask import answer

DATA = Path(__file__).parents[1] / "data" / "answers-0.1.0.jsonl.gz"
_JIGGLE = 0.3  # of the old width
_ROUNDING = 2e-12  # relative: parts are added in another order, ends are widened by named operations
Record = dict[str, Any]


def records() -> Iterator[Record]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def written_as_before(record: Record) -> bool:
    """The plan file of a 0.1.0 plan, byte by byte."""
    plan = pl.Plan.from_dict({k: record[k] for k in ("adjacency", "steps")})
    return hashlib.sha256(json.dumps(plan.to_dict()).encode()).hexdigest()[:16] == record["written"]


def _ends(found: Any) -> tuple[float, float] | None:
    return (float(found[0]), float(found[1])) if isinstance(found, list) else None


def _kinds(record: Record) -> set[str]:
    return {step["mechanism"] for step in record["steps"]}


def _schemes(record: Record) -> set[str]:
    return {step["sampling"]["scheme"] for step in record["steps"] if "sampling" in step}


def same_or_inside(old: Any, new: Any) -> bool:
    """Equal up to rounding, or an interval inside the old one."""
    before, after = _ends(old), _ends(new)
    if before is None or after is None:
        return bool(old == new) or _prices_agree(old, new)
    low, high = (_slack(x) for x in before)
    return before[0] - low <= after[0] and after[1] <= before[1] + high


def _slack(x: float) -> float:
    return _ROUNDING * abs(x) + 1e-300 if math.isfinite(x) else 0.0


def _prices_agree(old: Any, new: Any, slack: Fraction = Fraction(2, 2**40)) -> bool:
    if not (isinstance(old, dict) and isinstance(new, dict)) or set(old) != set(new):
        return False
    pairs = [(Fraction(old[k]), Fraction(new[k])) for k in old]
    # a price is an upper end, rounded up to 2^-40: it may fall, and moves by a unit where the end moved by an ulp
    return all(b <= a + slack * (1 + a) for a, b in pairs)


# -- what changed, and why ---------------------------------------------------------------------------------------------

Reason = Callable[[Record, str, Any, Any], bool]
_BLUR = 1e-8  # relative: what a blurred line may add to an end that moves for another reason


def _worse(question: str, one: float, other: float, share: float = _ROUNDING) -> bool:
    """Whether `one` is at least as bad as `other`, up to a share; of a trade-off curve less is worse."""
    if question.startswith("tradeoff"):
        one, other = other, one
    return one >= other - (share * abs(other) + 1e-300 if math.isfinite(other) else 0.0)


def _both_ends(question: str, worse: Any, better: Any, share: float = _ROUNDING) -> bool:
    """Two intervals, both ends of the first at least as bad."""
    one, other = _ends(worse), _ends(better)
    return (
        one is not None and other is not None and all(_worse(question, *p, share) for p in zip(one, other, strict=True))
    )


def _noisy_max(record: Record, question: str, old: Any, new: Any) -> bool:
    """Noisy max with exponential or Laplace noise is dominated by the Laplace pair: both ends fall (the old lower end
    was that of a box, which no such mechanism attains)."""
    noises = {step.get("noise", "gumbel") for step in record["steps"] if step["mechanism"] == "noisy-max"}
    return bool(noises & {"exponential", "laplace"}) and _both_ends(question, old, new, _BLUR)


def _exponential_divergences(record: Record, question: str, old: Any, new: Any) -> bool:
    """One use of a bounded range: Renyi divergences of the dominating pair are attained by no instance."""
    before, after = _ends(old), _ends(new)
    named = {"exponential", "noisy-max"} & _kinds(record) and question.split()[0] in ("rdp", "kl", "zcdp")
    return bool(named and before and after and after[1] <= before[1] + _slack(before[1]) and after[0] <= before[0])


def _uneven_pairs(record: Record, question: str, old: Any, new: Any) -> bool:
    """Under replace-one neighbours may swap roles: where one order for all steps was taken, both ends rise; where that
    was refused, the answer is no better than the one for records that come and go, whose order is one of many."""
    if not {"custom", "tabulated"} & _kinds(record) or record["adjacency"] != "replace-one":
        return False
    if not isinstance(old, str):
        return _both_ends(question, new, old)
    refused = "neighbours may swap roles" in old or "need not be the same in both directions" in old
    return refused and _no_better(question, new, answer({**record, "adjacency": "add-remove"}, question))


def _no_better(question: str, new: Any, other: Any) -> bool:
    """An answer that was refused against one that is surely no worse, if there is one; or refused for another reason:
    something is infinite, or another step is not supported."""
    if isinstance(new, str):
        return "is infinite" in new or "needs the bound on one record's contribution" in new
    if isinstance(new, dict):
        return not isinstance(other, dict) or _prices_agree(new, other)
    (low, high), ends = [float(x) for x in new], _ends(other)
    quoted, sure = (low, 1) if question.startswith("tradeoff") else (high, 0)
    return low <= high and (ends is None or _worse(question, quoted, ends[sure]))


def _lower_ends_at_zero(record: Record, question: str, old: Any, new: Any) -> bool:
    """The largest loss has a lower end of its own; the old one was taken from the upper end."""
    before, after = _ends(old), _ends(new)
    at_the_end = question in ("epsilon 0.0", "zcdp") or before is None or before[0] == before[1]
    return bool(before and after) and at_the_end and after[1] <= before[1] + _slack(before[1]) and after[0] <= before[0]


def _shuffle_word(record: Record, question: str, old: Any, new: Any) -> bool:
    """`.shuffled(` is written `.shuffle(`."""
    return isinstance(old, str) and isinstance(new, str) and old.replace(".shuffled(", ".shuffle(") == new


def _gdp_on_the_whole_data(record: Record, question: str, old: Any, new: Any) -> bool:
    """A GDP box on a "sample" of rate 1 under replace-one was taken for noise with a clipping norm, and doubled."""
    named = record["adjacency"] == "replace-one" and "gdp" in _kinds(record) and "poisson" in _schemes(record)
    cheaper = _both_ends(question, old, new) or _prices_agree(old, new)
    return named and (cheaper or (isinstance(old, str) and "is infinite" in old))


def _gdp_of_nothing(record: Record, question: str, old: Any, new: Any) -> bool:
    """A GDP box with mu = 0 loses nothing on a sample either; it was refused."""
    return any(step.get("mu") == 0 for step in record["steps"]) and isinstance(old, str) and not isinstance(new, str)


def _tabulated_on_a_sample(record: Record, question: str, old: Any, new: Any) -> bool:
    """Bins on a sample: the lower end was that of the dominating table, which is not attained. What is quoted stays, or
    moves inside the old interval of that table."""
    before, after = _ends(old), _ends(new)
    named = "tabulated" in _kinds(record) and bool(_schemes(record) & {"poisson", "truncated-poisson"})
    if not named or before is None or after is None:
        return False
    quote = 0 if question.startswith("tradeoff") else 1  # of a trade-off the lower end is quoted
    slack = _slack(before[quote]) + 1e-9 * abs(before[quote])
    still = before[0] - slack <= after[quote] <= before[1] + slack
    return still and _worse(question, before[1 - quote], after[1 - quote])


def _divergence(question: str) -> bool:
    return question in ("kl", "zcdp", "price zcdp", "price rdp") or question.startswith("rdp")


def _infinite_the_other_way(record: Record, question: str, old: Any, new: Any) -> bool:
    """An output that only Q produces makes divergences of Q against P infinite; they were finite."""
    zeros = any(isinstance(step.get("p"), list) and 0.0 in step["p"] for step in record["steps"])
    return zeros and _divergence(question) and (new == ["inf", "inf"] or "is infinite" in str(new))


def _bounds_that_disclose(record: Record, question: str, old: Any, new: Any) -> bool:
    """Where only a sampler's bound has infinite losses, divergences are those without the sampler above, and of an
    instance below; they were said to be infinite."""
    bounded = _schemes(record) & {"allocation", "with-replacement", "truncated-poisson"}
    return bool(bounded) and _divergence(question) and (old == ["inf", "inf"] or "is infinite" in str(old))


def _told_from_disclosure(record: Record, question: str, old: Any, new: Any) -> bool:
    """Draws with replacement: distances up to 20 are told from disclosure; a price that was infinite is finite."""
    return "with-replacement" in _schemes(record) and "is infinite" in str(old) and isinstance(new, dict)


def _no_upper_end(record: Record, question: str, old: Any, new: Any) -> bool:
    """Where a sampler's bound has no finite epsilon, the lower end is asked roughly: it falls by less than 1 %."""
    before, after = _ends(old), _ends(new)
    if not _schemes(record) & {"allocation", "with-replacement", "truncated-poisson"} or not before or not after:
        return False
    return before[1] == after[1] == math.inf and 0.99 * before[0] <= after[0] <= before[0]


def _last_digits(record: Record, question: str, old: Any, new: Any) -> bool:
    """Parameters of a line are searched in floating point, so the ends of a wide interval move out by a part of its
    width; how far they move in is not limited, as long as both intervals meet. Prices are upper ends."""
    before, after = _ends(old), _ends(new)
    if before is not None and after is not None and all(map(math.isfinite, (*before, *after))):
        width = before[1] - before[0]
        out = max(before[0] - after[0], after[1] - before[1])
        return out <= _JIGGLE * width and max(before[0], after[0]) <= min(before[1], after[1])
    return _prices_agree(old, new, slack=Fraction(1, 10**9))


def _shared_points(record: Record, question: str, old: Any, new: Any) -> bool:
    """Trade-off curves are read between points shared by all rates: the intervals meet, and the new one is at most
    1e-10 wide, or its ends moved out by less than 1e-3 and less than half of the old width."""
    ends, now = _ends(old), _ends(new)
    if not question.startswith("tradeoff") or ends is None or now is None:
        return False
    met = max(ends[0], now[0]) <= min(ends[1], now[1]) + 1e-15
    moved = max(ends[0] - now[0], now[1] - ends[1])  # outwards
    return met and (now[1] - now[0] <= 1.01e-10 or moved <= min(1e-3, 0.5 * (ends[1] - ends[0])))


def _as_narrow_as_asked(record: Record, question: str, old: Any, new: Any) -> bool:
    """An epsilon around the old one, no wider than the tolerance of 1e-10 that was asked for; or a divergence that is
    read off a shorter grid, and at most 1e-9 wide."""
    before, after = _ends(old), _ends(new)
    share = 1e-10 if question.startswith("epsilon") else 1e-9 if _divergence(question) else None
    if before is None or after is None or share is None:
        return False
    return after[0] <= before[0] <= before[1] <= after[1] <= after[0] + share * abs(after[1])


def _gdp_prices(record: Record, question: str, old: Any, new: Any) -> bool:
    """Every plan with a proven mu has a price in GDP; only Gaussian and gdp steps had one, and what is refused still is
    refused for a reason of its own."""
    return question.endswith("gdp") and isinstance(old, str) and "price in GDP" in old


def _batches_of_boxes(record: Record, question: str, old: Any, new: Any) -> bool:
    """Mechanisms other than Gaussian noise with replacement, and Renyi boxes of fixed size, were refused; under
    replace-one they are answered now, else refused for want of the guarantee for replaced records."""
    named = bool(_schemes(record) & {"with-replacement", "fixed-size"}) and isinstance(old, str)
    refused = isinstance(old, str) and ("for Gaussian noise only" in old or "replaced records" in old)
    refused = refused or (isinstance(old, str) and "batches of fixed size are not supported" in old)
    answered = record["adjacency"] == "replace-one" and not isinstance(new, str)
    return named and refused and (answered or (isinstance(new, str) and new.startswith("Unsupported")))


REASONS: dict[str, Reason] = {
    "batches of boxes": _batches_of_boxes,
    "last digits": _last_digits,
    "as narrow as asked": _as_narrow_as_asked,
    "gdp": _gdp_on_the_whole_data,
    "gdp prices": _gdp_prices,
    "infinite the other way": _infinite_the_other_way,
    "bounds that disclose": _bounds_that_disclose,
    "gdp of nothing": _gdp_of_nothing,
    "tabulated": _tabulated_on_a_sample,
    "shuffle": _shuffle_word,
    "noisy max": _noisy_max,
    "divergences": _exponential_divergences,
    "uneven pairs": _uneven_pairs,
    "lower ends": _lower_ends_at_zero,
    "no upper end": _no_upper_end,
    "told from disclosure": _told_from_disclosure,
    "shared points": _shared_points,
}


def judged(record: Record, question: str, old: Any, new: Any) -> str:
    """ "same", the name of a reason, or "UNEXPLAINED"."""
    if same_or_inside(old, new):
        return "same"
    return next((name for name, holds in REASONS.items() if holds(record, question, old, new)), "UNEXPLAINED")


def main(every: int, first: int) -> None:
    counts: Counter[str] = Counter()
    for i, record in enumerate(records()):
        if i % every != first:
            continue
        for question, old in record["answers"].items():
            new = answer(record, question)
            verdict = judged(record, question, old, new)
            counts[verdict] += 1
            if verdict == "UNEXPLAINED":
                shown = {k: record[k] for k in ("adjacency", "steps", "people") if k in record}
                print(i, json.dumps(shown), question, "\n   old", old, "\n   new", new, flush=True)
    print(counts)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
