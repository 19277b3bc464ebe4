"""What Opacus's accountants keep of a run, read without Opacus: (noise multiplier, rate, steps), and in checkpoints of
ours also the loaders that drew something else than the Poisson samples Opacus records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from privloss.errors import InvalidInput, Unsupported
from privloss.interop.loaders import Draw, Phase, Ran, Steps
from privloss.mechanisms.gaussian import Gaussian
from privloss.numerics import check

History = list[tuple[float, float, int]]
Others = dict[tuple[float, float, Ran], int]  # of the history: steps of loaders that differ
LOADERS = "loaders"  # the key in a state dict


def phase(noise: Any, rate: Any, times: Any) -> tuple[float, float, int]:
    return (
        check.number("noise_multiplier", noise, low=0),
        check.number("sample_rate", rate, low=0, high=1),
        check.count("steps", times),
    )


def poisson(phases: Iterable[tuple[float, float, int]]) -> Steps:
    return tuple((Gaussian(noise_multiplier=s).poisson(q), n) for s, q, n in phases)


def split(history: History, others: Others) -> tuple[list[Phase], Steps]:
    """What ran: on loaders that differ, and as recorded."""
    left: dict[tuple[float, float], int] = {}
    for noise, rate, n in history:
        left[noise, rate] = left.get((noise, rate), 0) + n
    for (noise, rate, _), n in others.items():
        left[noise, rate] = left.get((noise, rate), 0) - n
    if any(n < 0 for n in left.values()):
        raise InvalidInput("history: fewer steps than ran; assign to it, which forgets the loaders too.")
    return [(ran, noise, n) for (noise, _, ran), n in others.items()], poisson(
        (s, q, n) for (s, q), n in left.items() if n
    )


def refused(claim: str, reasons: Mapping[str, int]) -> Unsupported | None:
    """The first loader that has no proven bound."""
    return next((Unsupported(f"{claim}, but in {n} of them {why}") for why, n in reasons.items()), None)


def written(others: Others, reasons: Mapping[str, int]) -> dict[str, Any]:
    """The entry of a state dict."""
    return {
        "ran": [[noise, rate, _plain(ran), n] for (noise, rate, ran), n in others.items()],
        "refused": dict(reasons),
    }


def loaders(state: Mapping[str, Any]) -> tuple[Others, dict[str, int]]:
    """The entry of a state dict; those of other accountants have none."""
    entry = state.get(LOADERS, {"ran": [], "refused": {}})
    try:
        others = {(noise, rate, _ran(ran)): n for noise, rate, ran, n in entry["ran"]}
        reasons = {str(why): check.count(LOADERS, n) for why, n in entry["refused"].items()}
        for (noise, rate, _), n in others.items():
            phase(noise, rate, n)
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, InvalidInput):
            raise
        raise InvalidInput(f"{LOADERS}: is not what this accountant writes ({problem}).") from None
    return others, reasons


def _plain(ran: Ran) -> list[Any]:
    draws = [[draw.scheme, [list(pair) for pair in draw.numbers], draw.batches] for draw in ran.draws]
    return [ran.what, draws, ran.by_epoch, ran.attained, list(ran.adjacencies)]


def _ran(plain: Any) -> Ran:
    what, draws, by_epoch, attained, adjacencies = plain
    made = tuple(Draw(scheme, tuple((k, v) for k, v in numbers), n) for scheme, numbers, n in draws)
    return Ran(what, made, by_epoch, attained, tuple(adjacencies))
