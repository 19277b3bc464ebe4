"""The plans whose answers are kept: every mechanism, sampler and adjacency, at three counts, and mixes.

Everything is said in the words of plan files, so that the list outlives any rearrangement of the code.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

Step = dict[str, Any]
ADJACENCIES = ("add-remove", "replace-one", "zero-out")
COUNTS = (1, 2, 10_000)


def _step(mechanism: str, **parameters: Any) -> Step:
    return {"mechanism": mechanism, **parameters}


GAUSSIAN = [_step("gaussian", noise_multiplier=x) for x in (0.0, 0.3, 1.1, 5.0, 40.0)] + [
    _step("gaussian", sigma=2.0, sensitivity=3.0),
    _step("gaussian", sigma=0.7),
]
OTHERS = [
    *(_step("laplace", scale=x) for x in (0.0, 0.3, 1.0, 10.0)),
    _step("laplace", scale=3.0, sensitivity=2.0),
    *(_step("discrete-gaussian", sigma=x) for x in (0.0, 0.4, 1.0, 100.0)),
    _step("discrete-gaussian", sigma=5.0, sensitivity=2),
    *(_step("discrete-laplace", scale=x) for x in (0.0, 0.5, 3.0)),
    _step("discrete-laplace", scale=20.0, sensitivity=4),
    _step("truncated-gaussian", sigma=2.0, bound=20.0),
    _step("truncated-gaussian", sigma=1.0, bound=4.0),
    _step("truncated-laplace", scale=2.0, bound=60.0),
    _step("truncated-laplace", scale=1.0, bound=5.0, sensitivity=2.0),
    *(_step("randomized-response", epsilon=x) for x in (0.0, 0.3, 5.0)),
    *(_step("randomized-response", p=x) for x in (0.0, 0.5)),
    _step("randomized-response", epsilon=0.7, answers=6),
    *(_step("unary-encoding", p=p, q=q) for p, q in ((0.75, 0.25), (1.0, 0.3), (0.4, 0.4))),
    *(_step("exponential", epsilon=x) for x in (0.0, 0.3, 4.0)),
    *(_step("noisy-max", epsilon=x, noise=n) for x in (0.3, 2.0) for n in ("exponential", "laplace")),
    _step("noisy-max", epsilon=0.3),
    *(_step("pure-dp", epsilon=x) for x in (0.0, 0.1, 3.0, 800.0)),
    *(_step("approx-dp", epsilon=e, delta=d) for e, d in ((0.1, 1e-9), (0.0, 1e-3), (2.0, 0.5), (1.0, 1.0))),
    *(_step("zcdp", rho=x) for x in (0.0, 0.1)),
    _step("zcdp", rho=0.02, delta=1e-9),
    _step("rdp", orders=[2.0, 8.0, 32.0], epsilons=[0.1, 0.4, 1.8]),
    *(_step("gdp", mu=x) for x in (0.0, 0.4, 3.0)),
    _step("privacy-profile", epsilons=[0.0, 0.5, 1.0], deltas=[0.1, 1e-3, 0.0]),
    _step("privacy-profile", epsilons=[0.7], deltas=[1e-7]),
    _step("trade-off", fpr=[0.0, 0.2, 1.0], fnr=[1.0, 0.6, 0.0]),
    _step("trade-off", fpr=[0.0, 0.1, 0.5, 1.0], fnr=[0.9, 0.7, 0.2, 0.0]),
    _step("custom", p=[0.9, 0.1], q=[0.5, 0.5]),
    _step("custom", p=[0.75, 0.25], q=[0.25, 0.75]),
    _step("custom", p=[0.5, 0.3, 0.2, 0.0], q=[0.4, 0.25, 0.3, 0.05]),
    _step("tabulated", p_above=[0.6, 0.3, 0.1], q_above=[0.1, 0.3, 0.6], p_below=[0.6, 0.4], q_below=[0.15, 0.85]),
    _step("tabulated", p_above=[0.7, 0.3], q_above=[0.5, 0.5], p_below=[0.65, 0.35], q_below=[0.5, 0.5]),
]
SAMPLERS: list[dict[str, Any] | None] = [
    None,
    {"scheme": "poisson", "rate": 0.0},
    {"scheme": "poisson", "rate": 0.01},
    {"scheme": "poisson", "rate": 0.3},
    {"scheme": "poisson", "rate": 1.0},
    {"scheme": "fixed-size", "n": 1000, "m": 20},
    {"scheme": "fixed-size", "n": 10, "m": 10},
    {"scheme": "with-replacement", "n": 1000, "m": 30},
    {"scheme": "truncated-poisson", "rate": 0.02, "n": 1000, "most": 40},
    {"scheme": "truncated-poisson", "rate": 0.02, "n": 1000, "most": 2000},
    {"scheme": "shuffle", "steps": 1},
    {"scheme": "shuffle", "steps": 50},
    {"scheme": "allocation", "steps": 50, "k": 1},
    {"scheme": "allocation", "steps": 12, "k": 3},
]
QUESTIONS = (
    "delta 0.5", "rdp 8.0", "tradeoff 0.01", "price pure", "zcdp", "epsilon 0.0", "price approx", "kl", "delta 3.0",
    "price zcdp", "epsilon 1e-12", "price rdp", "total_variation", "price gdp", "epsilon 0.3", "price advanced",
)  # fmt: skip


def _sampled(step: Step, sampling: dict[str, Any] | None, count: int) -> Step:
    return {**step, **({} if sampling is None else {"sampling": sampling}), "count": count}


def plans() -> Iterator[dict[str, Any]]:
    """Plan files, some with `people`: the plan as it looks to a group of that size."""
    for step, sampling, adjacency, count in itertools.product(GAUSSIAN + OTHERS, SAMPLERS, ADJACENCIES, COUNTS):
        yield {"adjacency": adjacency, "steps": [_sampled(step, sampling, count)]}
    for step, sampling, adjacency, people in itertools.product(
        GAUSSIAN + OTHERS, (None, {"scheme": "poisson", "rate": 0.01}), ADJACENCIES, (2, 5)
    ):
        yield {"adjacency": adjacency, "steps": [_sampled(step, sampling, 3)], "people": people}
    draw = random.Random(13)
    for _ in range(300):
        chosen = draw.sample([s for s in GAUSSIAN + OTHERS if s.get("noise_multiplier") != 0], draw.choice((2, 2, 3)))
        steps = [_sampled(s, draw.choice(SAMPLERS[:3]), draw.choice((1, 3, 50))) for s in chosen]
        yield {"adjacency": draw.choice(ADJACENCIES), "steps": steps}


def asked() -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Every plan with its questions: epsilon always, two of the others in turn."""
    for i, plan in enumerate(plans()):
        first, second = QUESTIONS[i % len(QUESTIONS)], QUESTIONS[(i // len(QUESTIONS) + 7 * i + 3) % len(QUESTIONS)]
        yield plan, tuple(dict.fromkeys(("epsilon 1e-06", first, second)))
