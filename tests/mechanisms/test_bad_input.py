"""Bad arguments: one sentence with argument, value and rule; a typed error; nothing computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import privloss as pl
from privloss.answers import exact

NOT_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, "1", None, True, [1.0], 1j, {}]

MAKERS: list[tuple[str, Callable[[Any], Any]]] = [
    ("noise_multiplier", lambda v: pl.Gaussian(noise_multiplier=v)),
    ("sigma", lambda v: pl.Gaussian(sigma=v)),
    ("sensitivity", lambda v: pl.Gaussian(sigma=1.0, sensitivity=v)),
    ("rate", lambda v: pl.Gaussian(1.0).poisson(v)),
    ("scale", lambda v: pl.Laplace(v)),
    ("sensitivity", lambda v: pl.Laplace(1.0, sensitivity=v)),
    ("epsilon", lambda v: pl.PureDP(v)),
    ("epsilon", lambda v: pl.ApproxDP(v, 0.1)),
    ("delta", lambda v: pl.ApproxDP(0.1, v)),
    ("rho", lambda v: pl.ZCDP(v)),
    ("mu", lambda v: pl.GDP(v)),
    ("p", lambda v: pl.RandomizedResponse(p=v)),
    ("answers", lambda v: pl.RandomizedResponse(p=0.5, answers=v)),
    ("count", lambda v: pl.Gaussian(1.0) * v),
]


@pytest.mark.parametrize(("name", "make"), MAKERS, ids=[f"{i}-{n}" for i, (n, _) in enumerate(MAKERS)])
@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1.0], ids=repr)
def test_descriptions_refuse(name: str, make: Callable[[Any], Any], value: Any) -> None:
    if value is None and name == "sensitivity":  # not given: 1
        assert make(value).epsilon(1e-3) == make(1.0).epsilon(1e-3)
        return
    if value is None:  # the same as not given, which leaves too little
        with pytest.raises(pl.InvalidInput):
            make(value)
        return
    with pytest.raises(pl.InvalidInput, match=name) as caught:
        make(value)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any attempt to compute fails the test."""

    def refuse(*_: Any) -> None:
        raise AssertionError("computed before checking")

    monkeypatch.setattr(exact, "_epsilon", refuse)
    monkeypatch.setattr(exact, "_delta", refuse)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "value", [math.nan, math.inf, "1", None, True, 1j, -0.1, 1.1, [], [0.1, 2.0], [[0.1]]], ids=repr
)
def test_delta_is_checked_first(value: Any) -> None:
    with pytest.raises(pl.InvalidInput, match="delta"):
        pl.Gaussian(1.0).epsilon(value)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, True, -0.1, [], [0.1, -2.0]], ids=repr)
def test_epsilon_is_checked_first(value: Any) -> None:
    with pytest.raises(pl.InvalidInput, match="epsilon"):
        pl.Gaussian(1.0).delta(value)


@pytest.mark.usefixtures("untouched")
def test_other_arguments() -> None:
    g = pl.Gaussian(1.0)
    with pytest.raises(pl.InvalidInput, match="adjacency"):
        g.epsilon(1e-6, adjacency="swap")
    with pytest.raises(pl.InvalidInput, match="tolerance"):
        g.epsilon(1e-6, tolerance=0.0)
    with pytest.raises(pl.InvalidInput, match="certify"):
        g.epsilon(1e-6, certify="yes")
    with pytest.raises(pl.InvalidInput, match="exactly one"):
        g.explain()
    with pytest.raises(pl.InvalidInput, match="exactly one"):
        g.explain(delta=0.1, epsilon=1.0)
    with pytest.raises(pl.InvalidInput, match="alpha"):
        g.rdp(0.5)
    with pytest.raises(pl.InvalidInput, match="fpr"):
        g.tradeoff(1.5)


def test_contradictions_between_arguments() -> None:
    with pytest.raises(pl.InvalidInput, match="exactly one"):
        pl.Gaussian(1.0, sigma=2.0)
    with pytest.raises(pl.InvalidInput, match="exactly one"):
        pl.Gaussian()
    with pytest.raises(pl.InvalidInput, match="goes with sigma"):
        pl.Gaussian(1.0, sensitivity=2.0)
    with pytest.raises(pl.InvalidInput, match="sampled already"):
        pl.Gaussian(1.0).poisson(0.1).poisson(0.1)
    with pytest.raises(pl.InvalidPlan, match="at least one step"):
        pl.Plan(())


def test_numpy_numbers_are_numbers() -> None:
    assert pl.Gaussian(np.float64(1.0)) == pl.Gaussian(1.0)
    assert (pl.Gaussian(1.0) * np.int64(3)).steps[0][1] == 3
    assert pl.Gaussian(1.0).epsilon(np.float32(0.25)) == pl.Gaussian(1.0).epsilon(0.25)
    assert len(pl.Gaussian(1.0).epsilon(np.array([0.1, 0.2]))) == 2
