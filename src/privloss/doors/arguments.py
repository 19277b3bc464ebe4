"""Arguments that commands share, and how they become a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from privloss import InvalidInput, Plan, Unsupported

PlanFile = Annotated[Path | None, typer.Argument(metavar="[PLAN]", help="A plan file (JSON); or use the flags.")]
Noise = Annotated[str | None, typer.Option("--noise-multiplier", help="Gaussian noise / clipping norm.")]
Rate = Annotated[str | None, typer.Option("--sample-rate", help="Poisson sampling rate; without it, no sampling.")]
Steps = Annotated[str | None, typer.Option("--steps", help="Number of steps.  [default: 1]")]
Sampling = Annotated[str | None, typer.Option("--sampling", help="The sampler that really ran: poisson.")]
Adjacency = Annotated[
    str | None, typer.Option("--adjacency", help="add-remove, replace-one or zero-out.  [default: the plan's]")
]
Certify = Annotated[bool, typer.Option("--certify", help="Prove the answer in ball arithmetic.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Tolerance = Annotated[str, typer.Option("--tolerance", help="Relative width to aim for.")]


def number(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{flag} = {text!r}: must be a number.") from None


def plan_from(path: Path | None, noise: str | None, rate: str | None, steps: str | None, sampling: str | None) -> Plan:
    """The plan from a file or from flags, never from both."""
    flags = {"--noise-multiplier": noise, "--sample-rate": rate, "--steps": steps, "--sampling": sampling}
    given = [name for name, value in flags.items() if value is not None]
    if path is not None:
        if given:
            raise InvalidInput(f"{given[0]} = {flags[given[0]]!r}: contradicts the plan file {str(path)!r}; give one.")
        return Plan.load(path)
    if noise is None:
        raise InvalidInput("--noise-multiplier: is missing; give it or a plan file.")
    from privloss.mechanisms.gaussian import Gaussian
    from privloss.mechanisms.sampling import SCHEMES
    from privloss.numerics import check

    if sampling is not None:
        check.choice("--sampling", sampling, SCHEMES)
        if sampling != "poisson":
            raise Unsupported(f"--sampling = {sampling!r}: is not supported by this release yet; supported: poisson.")
        if rate is None:
            raise InvalidInput("--sample-rate: is missing; --sampling poisson needs it.")
    sigma = check.number("--noise-multiplier", number("--noise-multiplier", noise), low=0)
    mechanism: Any = Gaussian(noise_multiplier=sigma)
    if rate is not None:
        mechanism = mechanism.poisson(check.number("--sample-rate", number("--sample-rate", rate), low=0, high=1))
    return Plan.of((mechanism, check.count("--steps", number("--steps", "1" if steps is None else steps))))


def finite(value: Any) -> Any:
    """JSON has no infinity: print the string."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return value
