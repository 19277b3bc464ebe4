"""Audits that may be stopped, looked at and gone on with at any time: a bet against (epsilon, delta)-DP on each pair.

Pairs (x_s, y_s) are fresh outputs on two neighbours, A_s an event fitted on earlier pairs only. Under the null z_s =
(1[y_s in A_s] - e^eps 1[x_s in A_s] - delta)/(e^eps + delta) has E[z_s | past] <= 0, so W = mean over bets kappa of
prod (1 + kappa z_s) is a nonnegative supermartingale: it reaches 1/alpha with probability at most alpha (Ville),
whenever one looks. Both orders of the neighbours: their wealths are averaged, which is a supermartingale again.

`epsilon` is read on a fixed grid by the prefix rule: the largest grid point such that it and all smaller ones have been
refuted. Then only the first grid point at or above the truth matters, and one level alpha serves the whole grid.
"""

from __future__ import annotations

import math
import secrets
from typing import Any

import numpy as np

from privloss.audit import checks
from privloss.audit.events import Event, canonical, learn
from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.numerics.floats import Real

BETS = np.geomspace(0.02, 0.98, 16)
GRID = np.concatenate([np.arange(0.0, 4.0, 0.02), np.arange(4.0, 12.01, 0.1)])
_LEVELS = (0.25,)  # of the limits by which events are chosen: a bad bet costs little, a late one more
_FIRST = 32  # pairs after which the first event is fitted
_PARTS = {"name", "epsilon", "delta", "alpha", "rounds", "logs", "highest", "seen"}  # of a state
_seen_here: dict[str, int] = {}  # rounds of every audit that this process has looked at
_SLACK = 1e-9  # what logarithms of wealth are lowered by, for all roundings


class Stream:
    """One audit over time; `stream` makes it."""

    def __init__(self, epsilon: float, delta: float, alpha: float) -> None:
        self.claimed, self.delta, self.alpha = epsilon, delta, alpha
        self._eps = np.append(GRID, epsilon)
        self._grown = np.exp(self._eps)
        self._logs: Real = np.zeros((2, len(BETS), len(self._eps)))  # per order of the neighbours
        self._highest: Real = np.zeros(len(self._eps))  # log of the largest mean wealth so far
        self._seen: tuple[list[Any], list[Any]] = ([], [])
        self._events: list[Event | None] = [None, None]
        self.rounds = 0
        self.name = secrets.token_hex(8)  # of this audit, in all its states

    def observe(self, first: Any, second: Any) -> None:
        """One fresh output on either input."""
        if _seen_here.get(self.name, self.rounds) != self.rounds:
            raise InvalidInput("observe: this audit has gone on elsewhere; two ways on from one state are a choice.")
        pair = canonical(first), canonical(second)
        for i, event in enumerate(self._events):
            if event is not None:
                self._bet(i, event.holds(pair[i]), event.holds(pair[1 - i]))
        wealth = self._log_wealth()
        self._highest = np.maximum(self._highest, wealth)
        for outputs, each in zip(self._seen, pair, strict=True):
            outputs.append(each)
        self.rounds += 1
        _seen_here[self.name] = self.rounds
        if self.rounds >= _FIRST and self.rounds & (self.rounds - 1) == 0:  # 32, 64, 128, ...
            self._events = [learn(self._seen[i], self._seen[1 - i], self._gain, _LEVELS) for i in (0, 1)]

    def _gain(self, least_true: Real, most_false: Real) -> Real:
        """What an event is chosen for: how much a bet on it gains at least. (The largest ratio of the rates would be
        that of rare events, on which a wealth grows slowly.)"""
        return np.asarray(least_true - math.exp(self.claimed) * most_false - self.delta)

    def _bet(self, order: int, likely: bool, unlikely: bool) -> None:
        z = (float(likely) - self._grown * float(unlikely) - self.delta) / (self._grown + self.delta)
        self._logs[order] += np.log1p(BETS[:, None] * z[None, :])

    def _log_wealth(self) -> Real:
        logs = self._logs.reshape(-1, len(self._eps))
        top = logs.max(axis=0)
        return np.asarray(top + np.log(np.mean(np.exp(logs - top), axis=0)) - _SLACK)

    @property
    def wealth(self) -> float:
        """Of the bet against the claim, now."""
        return float(np.exp(self._log_wealth()[-1]))

    @property
    def p_value(self) -> float:
        """Valid at any time: one over the largest wealth so far."""
        return min(1.0, float(np.exp(-self._highest[-1])))

    @property
    def refuted(self) -> bool:
        """Whether the claim is."""
        return bool(self._highest[-1] >= -math.log(self.alpha))

    @property
    def epsilon(self) -> float:
        """With confidence 1 - alpha, at all times together, the truth is at least this."""
        refuted = self._highest[:-1] >= -math.log(self.alpha)
        first_open = int(np.argmin(refuted)) if not refuted.all() else len(refuted)
        return float(GRID[first_open - 1]) if first_open else 0.0

    def ceiling(self, rounds: int) -> float:
        """The largest epsilon that so many rounds of bets that all win could refute."""
        low, high = 0.0, 40.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            gain = rounds * np.log1p(BETS * (1 - self.delta) / (math.exp(middle) + self.delta))
            won = float(gain.max() + np.log(np.mean(np.exp(gain - gain.max())))) >= -math.log(self.alpha)
            low, high = (middle, high) if won else (low, middle)
        return low

    def state_dict(self) -> dict[str, Any]:
        """Everything, as JSON can hold it for numbers and strings as outputs."""
        return {
            "version": 1, "name": self.name, "epsilon": self.claimed, "delta": self.delta, "alpha": self.alpha,
            "rounds": self.rounds,
            "logs": self._logs.tolist(), "highest": self._highest.tolist(), "seen": [list(s) for s in self._seen],
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state; never from one with fewer rounds than this process has seen of it, nor in place of
        what was seen here: going back after looking, or choosing among audits, voids the guarantee."""
        if not isinstance(state, dict) or state.get("version") != 1 or not set(state) >= _PARTS:
            raise InvalidInput("state: must come from state_dict().")
        said = (state["epsilon"], state["delta"], state["alpha"])
        if said != (self.claimed, self.delta, self.alpha):
            raise InvalidInput(f"state: is of another audit (epsilon, delta, alpha = {said}).")
        name, rounds = str(state["name"]), checks.whole("rounds", state["rounds"], 0, 10**12)
        seen = max(self.rounds, _seen_here.get(name, 0))
        if rounds < seen:
            raise InvalidInput(f"state: has {rounds} rounds where {seen} were seen; going back voids the guarantee.")
        if self.rounds > 0 and name != self.name:
            raise InvalidInput(f"state: is of another audit than the one that has seen {self.rounds} rounds here.")
        self.rounds, self._logs, self._highest, self._seen = _parts(state, self._logs.shape)
        self.name = name
        _seen_here[name] = self.rounds
        last = 1 << max(self.rounds.bit_length() - 1, 0)
        if last >= _FIRST:
            parts = [s[:last] for s in self._seen]
            self._events = [learn(parts[i], parts[1 - i], self._gain, _LEVELS) for i in (0, 1)]


def _parts(state: dict[str, Any], shape: tuple[int, ...]) -> tuple[int, Real, Real, tuple[list[Any], list[Any]]]:
    """Rounds, wealths, the highest of them, and outputs seen."""
    try:
        logs, highest = (np.array(state[part], dtype=float) for part in ("logs", "highest"))
        first, second = ([canonical(_tuples(x)) for x in some] for some in state["seen"])
        fits = logs.shape == shape and highest.shape == shape[-1:] and state["rounds"] == len(first) == len(second)
        if fits and np.isfinite(logs).all() and np.isfinite(highest).all():
            return len(first), logs, highest, (first, second)
    except (TypeError, ValueError):
        pass
    raise InvalidInput("state: is damaged; its parts do not fit together.")


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def stream(*, epsilon: float, delta: float, alpha: float = 0.05) -> Stream:
    """An audit of the claim (epsilon, delta) that may be looked at after every pair of outputs.

    >>> import numpy as np
    >>> rng, audit = np.random.default_rng(1), stream(epsilon=1.0, delta=0.0)
    >>> while not audit.refuted:
    ...     audit.observe(rng.laplace(0.0, 0.5), rng.laplace(1.0, 0.5))
    >>> audit.rounds < 2000, audit.p_value <= 0.05
    (True, True)
    """
    return Stream(check.number("epsilon", epsilon, low=0, high=600), checks.lost(delta), checks.level(alpha))
