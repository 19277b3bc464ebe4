"""An accountant for training loops: tell it every step, ask it any time; asking changes nothing.

>>> import privloss as pl
>>> accountant = pl.Accountant()
>>> for _ in range(1000):
...     accountant.step(noise_multiplier=1.1, sample_rate=0.01)
>>> len(accountant), round(accountant.get_epsilon(delta=1e-6), 6)
(1000, 1.752976)
>>> again = pl.Accountant()
>>> again.load_state_dict(accountant.state_dict())
>>> again.get_epsilon(delta=1e-6) == accountant.get_epsilon(delta=1e-6)
True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privloss.adjacency import ADJACENCIES
from privloss.answers import exact
from privloss.errors import InvalidInput
from privloss.mechanisms.base import DEFAULT_ADJACENCY, Plan
from privloss.mechanisms.gaussian import Gaussian
from privloss.numerics import check
from privloss.numerics.bound import Bound

_MECHANISM, _VERSION = "privloss/poisson-gaussian", 1
_KEYS = {"mechanism", "version", "adjacency", "history"}


class Accountant:
    """Steps of Gaussian noise on Poisson samples, whose order does not matter."""

    def __init__(self, adjacency: str = DEFAULT_ADJACENCY) -> None:
        self.adjacency = check.choice("adjacency", adjacency, ADJACENCIES)
        self._history: list[tuple[float, float, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float, steps: int = 1) -> None:
        """Record `steps` steps."""
        noise = check.number("noise_multiplier", noise_multiplier, low=0)
        rate = check.number("sample_rate", sample_rate, low=0, high=1)
        times = check.count("steps", steps)
        if self._history and self._history[-1][:2] == (noise, rate):
            times += self._history.pop()[2]
        self._history.append((noise, rate, check.count("steps", times)))

    @property
    def history(self) -> list[tuple[float, float, int]]:
        """(noise multiplier, sample rate, steps) for every phase, as a copy."""
        return list(self._history)

    def __len__(self) -> int:
        return sum(times for _, _, times in self._history)

    @property
    def plan(self) -> Plan:
        """What has run so far."""
        if not self._history:
            raise InvalidInput("history = []: no step has been recorded.")
        return Plan.of(*((Gaussian(s).poisson(q), n) for s, q, n in self._history), adjacency=self.adjacency)

    def epsilon(self, delta: float) -> Bound:
        """The least epsilon so far, as an interval; 0 before the first step."""
        if not self._history:
            check.number("delta", delta, low=0, high=1)
            return Bound(0.0, 0.0, "nothing has run")
        return exact.one_epsilon(self.plan, delta)

    def get_epsilon(self, delta: float) -> float:
        """The upper end."""
        return self.epsilon(delta).upper

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "mechanism": _MECHANISM,
            "version": _VERSION,
            "adjacency": self.adjacency,
            "history": [list(phase) for phase in self._history],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint; a state of something else, or a broken one, is refused and changes nothing."""
        if not isinstance(state, Mapping) or set(state) != _KEYS:
            raise InvalidInput(f"state = {state!r}: must have exactly the keys {', '.join(sorted(_KEYS))}.")
        if state["mechanism"] != _MECHANISM or state["version"] != _VERSION:
            raise InvalidInput(
                f"state of {state['mechanism']!r}, version {state['version']!r}: must be {_MECHANISM!r}, version "
                f"{_VERSION}."
            )
        history = state["history"]
        if not isinstance(history, (list, tuple)) or not all(
            isinstance(p, (list, tuple)) and len(p) == 3 for p in history
        ):
            raise InvalidInput(f"history = {history!r}: must be a list of (noise multiplier, sample rate, steps).")
        loaded = Accountant(state["adjacency"])
        for noise, rate, times in history:
            loaded.step(noise_multiplier=noise, sample_rate=rate, steps=times)
        self.adjacency, self._history = loaded.adjacency, loaded._history

    def __repr__(self) -> str:
        return f"Accountant({len(self):,} steps, adjacency={self.adjacency!r})"
