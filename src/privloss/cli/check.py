"""``privloss check``: is the epsilon that another tool printed true?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privloss.cli.arguments import Adjacency, AsJson, finite, number
from privloss.cli.progress import progress_bar
from privloss.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from privloss.interop.claims import Claim

_CODES = {"proven": 0, "refuted": 1, "undecided": 4}
_TOOLS = ("dp-accounting", "opacus", "claim")


def check(
    file: Annotated[Path, typer.Argument(help="The event, history or claim.")],
    tool: Annotated[str, typer.Option("--tool", help="Whose file it is: dp-accounting, opacus or claim.")],
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="The epsilon that was printed.")] = None,
    delta: Annotated[str | None, typer.Option("--delta", help="At this delta.")] = None,
    adjacency: Adjacency = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the certificate of a refutation.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge a claim: exit code 0 if it is proven, 1 if it is refuted, 4 if it remains undecided."""
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise InvalidInput(f"--out = {str(out)!r}: is no file in a directory that exists.")
    from privloss.interop.claims import judge

    claim = _read(tool, file, epsilon, delta, adjacency)
    with progress_bar("proving"):
        found = judge(claim)
    written = out if out is not None and found.certificate is not None else None
    if written is not None and found.certificate is not None:
        found.certificate.save(written)
    said = {
        "verdict": found.verdict,
        "reason": found.reason,
        "claim": {"epsilon": claim.epsilon, "delta": claim.delta, "adjacency": claim.above.adjacency},
        "epsilon": {"lower": found.truth.lower, "upper": found.truth.upper},
        "plan": claim.above.to_dict(),
        "certificate": None if written is None else str(written),
    }
    if as_json:
        print(json.dumps(finite(said)))
    else:
        print(f"claimed: epsilon = {claim.epsilon!r} at delta = {claim.delta!r}, {claim.above.adjacency}")
        print(f"what ran: {claim.above!r}")
        print(f"{found.verdict.upper() if found.verdict == 'refuted' else found.verdict}: {found.reason}")
        if written is not None:
            print(f"certificate: {written}   (check it with: privloss verify {written} --against {claim.epsilon!r})")
    raise typer.Exit(_CODES[found.verdict])


def _read(tool: str, file: Path, epsilon: str | None, delta: str | None, adjacency: str | None) -> Claim:
    from privloss.interop import claims
    from privloss.numerics import check as checks

    checks.choice("--tool", tool, _TOOLS)
    if tool == "claim":
        for flag, value in (("--epsilon", epsilon), ("--delta", delta), ("--adjacency", adjacency)):
            if value is not None:
                raise InvalidInput(f"{flag} = {value!r}: a claim says this itself.")
        return claims.from_claim(file)
    if epsilon is None or delta is None:
        raise InvalidInput("--epsilon, --delta: are missing; the file says what ran, not what was claimed.")
    read = claims.from_event if tool == "dp-accounting" else claims.from_opacus
    try:
        return read(file, number("--epsilon", epsilon), number("--delta", delta), adjacency)
    except MissingExtra as problem:  # not exit code 1: nothing was refuted
        raise InvalidInput(str(problem)) from None
