"""An event learned from outputs on either input: cells ordered by how much likelier they are on the first.

Symbols, bins of numbers, or bins of a projection of vectors. Whatever is learned, the test on fresh outputs is exact;
learning only decides how much it can show.
"""

from __future__ import annotations

import copy
import math
import numbers
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privloss.audit import rates
from privloss.numerics.floats import Real

_SYMBOLS, _BINS = 50, 40
_EACH = 25  # outputs a bin should have, so that few outputs are not overfitted
LEVELS = (0.002, 0.05)  # the first that shows anything decides: by strict limits, rare outputs do not win by luck
Output = Any
Worth = Callable[[Real, Real], Real]  # of an event, from limits on its rates: what it would show


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs."""

    holds: Callable[[Output], bool]
    text: str

    def count(self, outputs: Sequence[Output]) -> int:
        return sum(self.holds(each) for each in outputs)


def canonical(output: Output) -> Output:
    """NaN equals NaN; arrays become tuples; what failed is known by its type."""
    if isinstance(output, BaseException):
        return ("raised", type(output).__name__)
    if isinstance(output, np.ndarray):
        return tuple(canonical(each) for each in output.ravel().tolist())
    if isinstance(output, (list, tuple)):
        return tuple(canonical(each) for each in output)
    if _is_number(output):
        try:
            value = float(output)
        except OverflowError:  # a whole number beyond all doubles
            return repr(output)
        return "nan" if math.isnan(value) else int(output) if isinstance(output, numbers.Integral) else value
    return output if _hashable(output) else repr(output)


def _hashable(output: Output) -> bool:
    try:
        hash(output)
    except TypeError:
        return False
    return True


def promise(tp: Any, fp: Any, positives: int, negatives: int, worth: Worth, levels: Sequence[float]) -> list[Real]:
    """What events look worth where they were learned: by limits at each level, and then by the rates alone.

    Nothing shown is 0: among events that break no claim yet, "all outputs" would come closest to breaking it."""
    shown = [
        np.maximum(worth(rates.least_rate(tp, positives, a), rates.most_rate(fp, negatives, a)), 0.0) for a in levels
    ]
    return [*shown, np.asarray(tp / positives - fp / negatives)]


def learn(
    first: Sequence[Output],
    second: Sequence[Output],
    worth: Worth,
    levels: Sequence[float] = LEVELS,
    classifier: Any = None,
) -> Event:
    """An event that is likelier on the first input; outputs are canonical."""

    def learned(cell: Callable[[Output], Output], text: str, shown: Callable[[Output], str] = repr) -> Event:
        return _learned(first, second, worth, levels, cell, text, shown)

    kinds = {*first, *second}
    if len(kinds) <= _SYMBOLS:
        return learned(lambda each: each, "outputs")
    length = _length(first, second)
    if length == 0:
        return learned(*_bins(first, second, lambda each: each, "outputs between"))
    if length is None:
        return learned(lambda each: type(each).__name__, "outputs of type")
    if classifier is not None:
        view = _classified(classifier, first, second, length)
        return learned(*_bins(first, second, view, "classifier's score between"))
    found = [learned(*_bins(first, second, view, text)) for view, text in _views(first, second, length)]

    def worth_of(event: Event) -> tuple[float, ...]:
        hits = event.count(first), event.count(second)
        return tuple(float(each) for each in promise(*hits, len(first), len(second), worth, levels))

    return max(found, key=worth_of)


def _length(first: Sequence[Output], second: Sequence[Output]) -> int | None:
    """0 for numbers, the common length of vectors, None for anything else; rare exceptions and NaN are left aside."""
    kinds = Counter(len(each) if _is_vector(each) else 0 if _is_number(each) else -1 for each in (*first, *second))
    kind, count = kinds.most_common(1)[0]
    return None if kind < 0 or count < 0.5 * (len(first) + len(second)) else kind


def _is_number(each: Output) -> bool:
    return isinstance(each, numbers.Real) and not isinstance(each, bool)


def _is_vector(each: Output) -> bool:
    return isinstance(each, tuple) and len(each) > 0 and all(_is_number(x) and math.isfinite(x) for x in each)


def _shape(each: Output) -> Output:
    """Of an unusual vector: its length, and what is no finite number in it."""
    if not isinstance(each, tuple):
        return each
    return tuple("finite" if _is_number(x) and math.isfinite(x) else repr(x) for x in each)


def _views(
    first: Sequence[Output], second: Sequence[Output], length: int
) -> list[tuple[Callable[[Output], Output], str]]:
    """Coordinates, the norm, and the linear discriminant of vectors."""
    a, b = (np.array([x for x in some if _is_vector(x) and len(x) == length]) for some in (first, second))
    shared = np.atleast_2d(np.cov(np.concatenate([a - a.mean(axis=0), b - b.mean(axis=0)]).T))
    ridge = 1e-6 * max(float(np.trace(shared)) / length, 1e-300) * np.eye(length)
    normal = np.linalg.solve(shared + ridge, a.mean(axis=0) - b.mean(axis=0))

    def of_vectors(view: Callable[[Real], float]) -> Callable[[Output], Output]:
        return lambda each: view(np.array(each)) if _is_vector(each) and len(each) == length else _shape(each)

    views = [(of_vectors(lambda x: float(x @ normal)), "linear discriminant between")]
    views.append((of_vectors(lambda x: float(np.linalg.norm(x))), "norm between"))
    for i in range(min(length, 8)):
        views.append((of_vectors(lambda x, i=i: float(x[i])), f"coordinate {i} between"))  # type: ignore[misc]
    return views


def _classified(
    classifier: Any, first: Sequence[Output], second: Sequence[Output], length: int
) -> Callable[[Output], Output]:
    """Any object with `fit` and `predict_proba`."""

    def usual(x: Output) -> bool:
        return _is_vector(x) and len(x) == length

    rows = [list(x) for x in (*first, *second) if usual(x)]
    labels = [1] * sum(map(usual, first)) + [0] * sum(map(usual, second))
    fitted = copy.deepcopy(classifier)  # either order of the inputs fits its own
    fitted.fit(np.array(rows), np.array(labels))
    return lambda each: float(fitted.predict_proba(np.array([each]))[0][1]) if usual(each) else _shape(each)


def _bins(
    first: Sequence[Output], second: Sequence[Output], view: Callable[[Output], Output], text: str
) -> tuple[Callable[[Output], Output], str, Callable[[Output], str]]:
    """Quantile bins of the pooled outputs, and how they are called; what is no number is a cell of its own."""
    pooled = np.array([value for each in (*first, *second) if _is_number(value := view(each))], dtype=float)
    finite = pooled[np.isfinite(pooled)]
    bins = min(_BINS, max(4, len(pooled) // _EACH))
    edges = np.unique(np.quantile(finite, np.linspace(0, 1, bins + 1)[1:-1])) if len(finite) else np.zeros(0)

    def cell(each: Output) -> Output:
        value = view(each)
        if not _is_number(value):
            return value
        return str(float(value)) if math.isinf(value) else int(np.searchsorted(edges, value, side="right"))

    def shown(place: Output) -> str:
        if not isinstance(place, int):
            return repr(place)
        low = "-inf" if place == 0 else f"{edges[place - 1]:.4g}"
        return f"[{low}, {'inf' if place == len(edges) else f'{edges[place]:.4g}'})"

    return cell, text, shown


def _learned(
    first: Sequence[Output],
    second: Sequence[Output],
    worth: Worth,
    levels: Sequence[float],
    cell: Callable[[Output], Output],
    text: str,
    shown: Callable[[Output], str],
) -> Event:
    """Cells in falling order of the ratio of their counts; the prefix that promises most here."""
    here, there = Counter(map(cell, first)), Counter(map(cell, second))
    order = sorted({*here, *there}, key=lambda c: (-math.log((here[c] + 0.5) / (there[c] + 0.5)), repr(c)))
    tp = np.cumsum([here[c] for c in order])
    fp = np.cumsum([there[c] for c in order])
    values = promise(tp, fp, len(first), len(second), worth, levels)
    best = max(range(len(order)), key=lambda i: tuple(each[i] for each in values))
    chosen = frozenset(order[: best + 1])
    names = ", ".join(shown(c) for c in order[: min(best + 1, 6)]) + (", ..." if best >= 6 else "")
    return Event(lambda each: cell(each) in chosen, f"{text} {names}")
