"""A mechanism given as a function: run it on two neighbouring inputs, learn an event on one half, test it on the
other."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privloss.audit import checks
from privloss.audit.claim import read_claim
from privloss.audit.events import LEVELS, Event, Output, Worth, canonical, learn, promise
from privloss.audit.joint import MOST
from privloss.audit.result import Audit
from privloss.audit.trials import adjacency_of, judge, worth_of
from privloss.errors import InvalidInput, MissingExtra

LEAST = 100


def mechanism(
    f: Callable[..., Any],
    x: Any,
    y: Any,
    *,
    runs: int = 20_000,
    delta: float = 0.0,
    seed: int,
    alpha: float = 0.05,
    claim: Any = None,
    classifier: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """What `runs` runs of f on each of two neighbouring inputs prove. f gets a `numpy.random.Generator` if it has a
    parameter `rng`. Exceptions, NaN, infinities and None are outputs like others. Nothing is said of other inputs.

    >>> def noisy(x, rng):
    ...     return x + rng.laplace(scale=0.5)
    >>> found = mechanism(noisy, 0.0, 1.0, runs=4000, seed=1, claim=1.0)
    >>> found.verdict
    'refuted'
    """
    if not callable(f):
        raise InvalidInput(f"f = {f!r}: must be a function of one input.")
    runs = checks.whole("runs", runs, LEAST, 10**8)
    delta, alpha = checks.lost(delta), checks.level(alpha)
    source = np.random.default_rng(checks.whole("seed", seed, 0, 2**63))
    if classifier is not None and not (hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")):
        if classifier is True:
            raise MissingExtra(
                "classifier = True: give an object with fit and predict_proba (pip install scikit-learn)."
            )
        raise InvalidInput(f"classifier = {classifier!r}: must have methods fit and predict_proba.")
    known = read_claim(claim, delta)
    before = _held(x, y)
    outputs = _run(f, (x, y), runs, source, progress)
    _fresh(outputs)
    if _held(x, y) != before:
        raise InvalidInput("f: changed its input, so that later runs were on other data; give f copies to work on.")
    half = runs // 2
    learned, tested = [o[:half] for o in outputs], [o[half:] for o in outputs]
    i, event = _best_event(learned, worth_of(known, delta), classifier)
    n = runs - half
    tp, fp = event.count(tested[i]), event.count(tested[1 - i])
    found = judge(tp, n, fp, n, delta, alpha, known, 2 * n <= MOST)
    return replace(
        found,
        event=f"{event.text}, likelier on {'x' if i == 0 else 'y'}",
        method=f"an event learned from half of the runs, {found.method} on the other",
        assumptions=(
            "x and y are neighbours; nothing is said of other inputs",
            *adjacency_of(known),
            "runs are independent: f draws fresh randomness each time",
            "delta, alpha and the number of runs were fixed in advance",
        ),
    )


def _best_event(outputs: Sequence[Sequence[Output]], worth: Worth, classifier: Any) -> tuple[int, Event]:
    """The order of the neighbours, and an event for it, that look best on the runs it was learned from."""
    found = []
    for i in (0, 1):
        here, there = outputs[i], outputs[1 - i]
        event = learn(here, there, worth, classifier=classifier)
        tp, fp = event.count(here), event.count(there)
        shown = [round(float(each), 9) for each in promise(tp, fp, len(here), len(there), worth, LEVELS)]
        found.append(((*shown, -tp - fp), i, event))  # an event and its complement show as much: the rarer one
    _, order, best = max(found, key=lambda each: each[0])
    return order, best


def _run(
    f: Callable[..., Any],
    inputs: tuple[Any, Any],
    runs: int,
    source: np.random.Generator,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[Output], list[Output]]:
    """Interleaved, so that a drift over time cannot look like a difference between inputs."""
    seeded = _takes_rng(f)
    outputs: tuple[list[Output], list[Output]] = ([], [])
    for k in range(runs):
        for i, value in enumerate(inputs):
            try:
                output = f(value, rng=source.spawn(1)[0]) if seeded else f(value)
            except MemoryError:
                raise
            except Exception as problem:
                output = problem
            outputs[i].append(canonical(output))
        if progress is not None and not k % 256:
            progress(k, runs)
    return outputs


def _takes_rng(f: Callable[..., Any]) -> bool:
    try:
        return "rng" in inspect.signature(f).parameters
    except (TypeError, ValueError):  # built-in functions may have no signature
        return False


def _fresh(outputs: Sequence[list[Output]]) -> None:
    """A block of outputs that comes again, at whatever place: f repeats its randomness."""
    for values in outputs:
        block = min(len(values) // 2, 64)
        first = values[:block]
        if len(set(first)) > 8 and any(
            values[k] == first[0] and values[k : k + block] == first for k in range(1, len(values) - block + 1)
        ):
            raise InvalidInput("f: gave the same outputs in the same order twice; it seems to reseed itself.")


def _held(*inputs: Any) -> bytes | None:
    """What inputs hold, to see whether f changes it; None of those that cannot be written down."""
    try:
        return pickle.dumps(inputs)
    except Exception:
        return None
