"""Opacus, from version 1.6: ``import privloss.interop.opacus`` once, then ``PrivacyEngine(accountant="privloss")``.

`make_private_with_epsilon`, `get_noise_multiplier`, the optimizer's hook and checkpoints work as with Opacus's own
accountants, and checkpoints of those are read. `get_epsilon` returns the upper end of the interval that `epsilon`
returns.

Opacus records Poisson samples, whatever the loader does. This accountant also looks at the loader: where it draws
otherwise a warning says so, and the answer is for what ran, or refused if there is no proven bound for that.
"""

from __future__ import annotations

import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from privloss.answers import exact
from privloss.errors import InvalidInput, MissingExtra, Unsupported
from privloss.interop import histories
from privloss.interop.histories import LOADERS, History, Others
from privloss.interop.loaders import Phase, Ran, Steps, explain_loader
from privloss.interop.loaders import epsilon as epsilon_of
from privloss.mechanisms.base import Plan
from privloss.numerics import check
from privloss.numerics.bound import Bound

try:
    from opacus.accountants import IAccountant

    import opacus
except ImportError as problem:
    raise MissingExtra(f"Opacus is not installed ({problem}): pip install 'privloss[opacus]'.") from None
try:
    from opacus.accountants import register_accountant
except ImportError:
    version = getattr(opacus, "__version__", "of unknown version")
    raise Unsupported(
        f"Opacus {version}: has no registry of accountants; privloss needs Opacus 1.6 or later."
    ) from None

__all__ = ["PrivlossAccountant", "Ran", "SamplerWarning", "explain_loader"]
NAME = "privloss"
_READS = (NAME, "rdp", "prv", "gdp")  # accountants with the same history


class SamplerWarning(UserWarning):
    """What Opacus recorded is not what ran."""


class PrivlossAccountant(IAccountant):
    """An accountant whose answers are proven; `history` holds (noise multiplier, rate, steps), as in all of Opacus."""

    def __init__(self) -> None:
        self.history = []

    @property
    def history(self) -> History:
        return self._history

    @history.setter
    def history(self, phases: Iterable[tuple[float, float, int]]) -> None:
        """Another run: what was known about the loaders of the one before does not concern it."""
        self._history: History = [histories.phase(*phase) for phase in phases]
        self._other: Others = {}
        self._refused: dict[str, int] = {}
        self._told: set[str] = set()

    @classmethod
    def mechanism(cls) -> str:
        return NAME

    def __len__(self) -> int:
        return sum(n for _, _, n in self._history)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        noise, rate, times = histories.phase(noise_multiplier, sample_rate, 1)
        if self._history and tuple(self._history[-1][:2]) == (noise, rate):
            times += self._history.pop()[2]
        self._history.append((noise, rate, times))

    # -- what ran --

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """The hook of one `make_private`, which also knows the loader that `make_private` was given."""
        record = super().get_optimizer_hook_fn(sample_rate)
        # Opacus tells an accountant the rate only; the loader is an argument of the method that asks for the hook
        loader = sys._getframe(1).f_locals.get("data_loader")
        ran, why = _looked_at(loader)
        if ran is not None and not ran.is_poisson(sample_rate):
            self._tell(f"Opacus records Poisson samples of rate {sample_rate:g}, but the loader is: {ran}")
        if why:
            self._tell(f"Opacus records Poisson samples of rate {sample_rate:g}, but {why}")

        def hook(optimizer: Any) -> None:
            record(optimizer)
            self._note(ran, why, optimizer.accumulated_iterations)

        return hook

    def _note(self, ran: Ran | None, why: str, batches: int) -> None:
        """The step just recorded, if its loader was something else."""
        noise, rate, _ = self._history[-1]
        try:
            told = None if ran is None else ran.accumulated(batches)
        except Unsupported as problem:
            told, why = None, str(problem)
        if why:
            self._refused[why] = self._refused.get(why, 0) + 1
        elif told is not None and not told.is_poisson(rate):
            self._other[noise, rate, told] = self._other.get((noise, rate, told), 0) + 1

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            warnings.warn(text, SamplerWarning, stacklevel=4)

    def recorded(self) -> Plan:
        """The run as Opacus records it: Poisson samples."""
        if not self._history:
            raise InvalidInput("history = []: no step has been recorded.")
        return Plan(histories.poisson(self._history))

    def phases(self) -> tuple[list[Phase], Steps]:
        """What ran: on loaders that differ, and as recorded."""
        return histories.split(self._history, self._other)

    # -- answers --

    def epsilon(self, delta: float) -> Bound:
        """The least epsilon of what ran so far, as an interval; 0 before the first step."""
        if not self._history:
            check.number("delta", delta, low=0, high=1)
            return Bound(0.0, 0.0, "nothing has run")
        if not self._other and not self._refused:
            return exact.one_epsilon(self.recorded(), delta)
        recorded = exact.one_epsilon(self.recorded(), delta).upper
        claim = f"{recorded:.4f} was accounted at delta {delta:g} for {len(self)} steps on Poisson samples"
        problem = histories.refused(claim, self._refused)
        if problem is not None:
            raise problem
        phases, others = self.phases()
        found = epsilon_of(phases, delta, others)
        ran = "; ".join(dict.fromkeys(ran.what for ran, _, _ in phases))
        self._tell(f"epsilon {claim}, but what ran was {ran}: epsilon is {found} ({found.method})")
        return found

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """The upper end; arguments of other accountants (alphas, eps_error) change nothing."""
        return self.epsilon(delta).upper

    # -- checkpoints --

    def state_dict(self, destination: Any = None) -> Any:
        """As Opacus writes it, and what ran where that is something else."""
        state = OrderedDict() if destination is None else destination
        state["history"], state["mechanism"] = list(self._history), self.mechanism()
        if self._other or self._refused:
            state[LOADERS] = histories.written(self._other, self._refused)
        return state

    def load_state_dict(self, state_dict: Any) -> None:
        """Go on from a checkpoint, also one of Opacus's own accountants; a broken one changes nothing."""
        state = dict(state_dict or {})
        for key in ("history", "mechanism"):
            if key not in state:
                raise InvalidInput(f"state_dict: has no {key!r}; it is no checkpoint of an accountant.")
        check.choice("mechanism", state["mechanism"], _READS)
        loaded = PrivlossAccountant()
        loaded.history = state["history"]
        loaded._other, loaded._refused = histories.loaders(state)
        loaded.phases()
        self._history, self._other, self._refused = loaded._history, loaded._other, loaded._refused


def _looked_at(loader: Any) -> tuple[Ran | None, str]:
    """The sampler of a loader, or why there is no answer for it; neither, if no `make_private` made the hook."""
    if loader is None:
        return None, ""
    try:
        return explain_loader(loader), ""
    except (Unsupported, InvalidInput) as problem:
        return None, str(problem)


register_accountant(NAME, PrivlossAccountant, force=True)  # force: importing again is no mistake
