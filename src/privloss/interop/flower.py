"""Flower: an accountant for its server app, by the protocol `flwr.serverapp.PrivacyAccountant` (from version 1.41).

``DifferentialPrivacyServerSideFixedClipping(..., accountant=PrivlossAccountant(config))`` reports proven values then,
and stops at `max_epsilon`. What is answered depends on the configuration's sampling:

- Poisson: every client independently with probability sample_size / population_size, under add-remove;
- without replacement: sample_size different clients, under replace-one;
- no amplification: plain Gaussian noise, under zero-out: a client whose update is replaced by none still counts in the
  number by which the sum is divided. Flower calls this relation add-or-remove, but its mean over the replies moves by
  up to twice the clipping norm over their number if that number changes, or if a client takes another's place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE, ZERO_OUT
from privloss.answers import exact
from privloss.errors import InvalidInput, MissingExtra
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.gaussian import Gaussian
from privloss.numerics import check
from privloss.numerics.bound import Bound

try:
    from flwr.supercore.privacy_accounting import GaussianPrivacyEvent, PrivacySpent
except ImportError as problem:
    raise MissingExtra(f"Flower 1.41 or later is not installed ({problem}): pip install 'privloss[flower]'.") from None

_BACKEND, _VERSION = "privloss", 1
_SAMPLINGS: dict[str, tuple[str, Callable[[Any], Mechanism]]] = {
    "poisson": (ADD_REMOVE, lambda e: Gaussian(e.noise_multiplier).poisson(e.sample_size / e.population_size)),
    "without-replacement": (
        REPLACE_ONE,
        lambda e: Gaussian(e.noise_multiplier).fixed_size(e.population_size, e.sample_size),
    ),
    "no-amplification": (ZERO_OUT, lambda e: Gaussian(e.noise_multiplier)),
}


class PrivlossAccountant:
    """An accountant whose `get_...` are upper ends; `epsilon` is the whole interval."""

    def __init__(self, config: Any) -> None:
        sampling = str(config.sampling_method.value)
        check.choice("sampling_method", sampling, tuple(_SAMPLINGS))
        self._config = config
        self._adjacency, self._mechanism = _SAMPLINGS[sampling]
        self._composed: list[tuple[Any, int]] = []

    @property
    def config(self) -> Any:
        return self._config

    @property
    def num_releases(self) -> int:
        return sum(n for _, n in self._composed)

    def compose(self, event: Any, count: int = 1) -> None:
        """Add releases of one kind."""
        self._composed.append(self._checked(event, count))

    def epsilon(self, delta: float) -> Bound:
        """The least epsilon so far, as an interval."""
        return self._epsilon(self._composed, delta)

    def get_epsilon(self, delta: float) -> float:
        return self.epsilon(delta).upper

    def get_delta(self, epsilon: float) -> float:
        if not self._composed:
            check.number("epsilon", epsilon, low=0)
            return 0.0
        return exact.one_delta(self._plan(self._composed), epsilon).upper

    def get_privacy_spent(self, delta: float | None = None) -> Any:
        at = self._config.target_delta if delta is None else delta
        method = f"privloss (proven, {self._adjacency})"
        return PrivacySpent(self.get_epsilon(at), at, self.num_releases, method)

    def would_exceed(self, event: Any, max_epsilon: float | None = None, count: int = 1) -> bool:
        """Whether the upper end would be above the limit after this; changes nothing."""
        limit = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise InvalidInput("max_epsilon: is missing; give it here or in PrivacyConfig.")
        top = check.number("max_epsilon", limit, low=0, above=True)
        after = [*self._composed, self._checked(event, count)]
        return self._epsilon(after, self._config.target_delta).upper > top

    def state_dict(self) -> dict[str, object]:
        """Everything, as plain JSON."""
        return {
            "schema_version": _VERSION,
            "backend": _BACKEND,
            "config": self._settings(),
            "compositions": [{"event": asdict(event), "count": n} for event, n in self._composed],
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Go on from a checkpoint of the same configuration; another one, or a broken one, changes nothing."""
        if state.get("schema_version") != _VERSION or state.get("backend") != _BACKEND:
            raise InvalidInput(f"state of {state.get('backend')!r}: must be of {_BACKEND!r}, version {_VERSION}.")
        if state.get("config") != self._settings():
            raise InvalidInput("state: was written under another configuration.")
        found: Any = state.get("compositions")
        try:
            self._composed = [self._checked(GaussianPrivacyEvent(**part["event"]), part["count"]) for part in found]
        except (TypeError, KeyError) as problem:
            raise InvalidInput(f"compositions: must be a list of events with counts ({problem}).") from None

    def _settings(self) -> dict[str, Any]:
        return {key: getattr(value, "value", value) for key, value in asdict(self._config).items()}

    def _checked(self, event: Any, count: int) -> tuple[Any, int]:
        if event.population_size != self._config.population_size:
            raise InvalidInput(
                f"population_size = {event.population_size!r}: must be the configuration's, "
                f"{self._config.population_size}."
            )
        return event, check.count("count", count)

    def _plan(self, composed: list[tuple[Any, int]]) -> Plan:
        return Plan(tuple((self._mechanism(event), n) for event, n in composed), self._adjacency)

    def _epsilon(self, composed: list[tuple[Any, int]], delta: float) -> Bound:
        if not composed:
            check.number("delta", delta, low=0, high=1)
            return Bound(0.0, 0.0, "nothing has run")
        return exact.one_epsilon(self._plan(composed), delta)
