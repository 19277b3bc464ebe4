"""Commands for proofs: ``privloss certify``, ``privloss verify`` and ``privloss selfcheck``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privloss.cli.arguments import Adjacency, AsJson, finite, json_of, number, print_table, takes_plan
from privloss.cli.progress import progress_bar
from privloss.errors import InvalidInput

if TYPE_CHECKING:
    from privloss.mechanisms.base import Plan

Audits = Annotated[
    list[Path] | None,
    typer.Option("--audit", help="What `privloss audit ... --json` printed of this claim; may be given several times."),
]


@takes_plan
def certify(
    plan: Plan,
    delta: Annotated[str | None, typer.Option("--delta", help="Certify epsilon at this delta.")] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="Certify delta at this epsilon.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the certificate.")] = None,
    audit: Audits = None,
    adjacency: Adjacency = None,
    as_json: AsJson = False,
) -> None:
    """Prove an answer in ball arithmetic, and write the proof to a file."""
    if (delta is None) == (epsilon is None):
        raise InvalidInput(f"--delta = {delta!r}, --epsilon = {epsilon!r}: give exactly one of them.")
    _writable(out)
    audits = [json_of(file) for file in audit or []]
    from privloss.certificates.certificate import certify as prove

    at = number("--delta", delta) if delta is not None else number("--epsilon", str(epsilon))
    with progress_bar("proving"):
        found = (
            prove(plan, delta=at, adjacency=adjacency)
            if delta is not None
            else prove(plan, epsilon=at, adjacency=adjacency)
        )
    for each in audits:
        found = found.with_audit(each)
    if out is not None:
        found.save(out)
    if as_json:
        print(json.dumps({**found.data, **({"file": str(out)} if out is not None else {})}))
        return
    name = "epsilon" if delta is not None else "delta"
    ends = found.data["claim"][name]
    print(f"{name} in [{ends['lower']}, {ends['upper']}]   at {'delta' if delta is not None else 'epsilon'} = {at:g}")
    print(f"adjacency {found.data['adjacency']}; {found.bound.method}, {found.data['parameters']['precision']} bits")
    _say_audits(found.audits)
    if out is not None:
        print(f"certificate: {out}   (check it with: privloss verify {out})")


def _writable(out: Path | None) -> None:
    """A place for a certificate, before the work."""
    if out is not None and out.is_dir():
        raise InvalidInput(f"--out = {str(out)!r}: is a directory.")
    if out is not None and not out.parent.is_dir():
        raise InvalidInput(f"--out = {str(out)!r}: its directory does not exist.")


def _say_audits(audits: Iterable[dict[str, Any]]) -> None:
    from privloss.audit.record import line

    for each in audits:
        print(line({**each, "claim": each["claim"]["upper"]}))


def verify(
    file: Annotated[Path, typer.Argument(help="The certificate.")],
    against: Annotated[
        str | None, typer.Option("--against", help="Another tool's upper bound to compare with.")
    ] = None,
    work: Annotated[
        str | None, typer.Option("--work", help="Evaluations allowed; beyond them it is undecided.  [default: 15e6]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a certificate; exit code 0 if its claim is proven, 1 if it is not or remains undecided, or if an audit that
    it carries refutes that this is what ran."""
    other = None if against is None else number("--against", against)
    from privloss.certificates.certificate import Certificate
    from privloss.certificates.certificate import verify as judge

    certificate = Certificate.load(file)
    with progress_bar("checking"):
        verdict = judge(certificate) if work is None else judge(certificate, work=number("--work", work))
    claim = certificate.data.get("claim") if isinstance(certificate.data, dict) else None
    refuted = verdict.holds and other is not None and other < certificate.bound.lower
    if as_json:
        extra = {} if other is None else {"against": other, "refuted": refuted}
        print(
            json.dumps(
                {
                    "holds": verdict.holds,
                    "undecided": verdict.undecided,
                    "reason": verdict.reason,
                    "claim": claim,
                    "audits": list(verdict.audits),
                    "refuted_by_audit": verdict.refuted,
                    **extra,
                }
            )
        )
    elif verdict.holds:
        print(f"{file}: proven. {json.dumps(claim)}")
        if other is not None:
            low = certificate.bound.lower
            print(
                f"{other!r} is {'REFUTED as an upper bound: the truth is at least' if refuted else 'not below'} {low!r}"
            )
    else:
        print(f"{file}: {verdict.reason if verdict.undecided else 'REJECTED. ' + verdict.reason}")
    if not as_json:
        _say_audits(verdict.audits)
    if not verdict.holds or verdict.refuted:
        raise typer.Exit(1)


def selfcheck(
    settings: Annotated[str, typer.Option("--settings", help="Random settings to compare.")] = "65",
    seed: Annotated[str, typer.Option("--seed", help="Which random settings.")] = "0",
    as_json: AsJson = False,
) -> None:
    """Compare floating-point with certified answers on this machine; exit code 1 if any are wrong."""
    from privloss.certificates.selfcheck import selfcheck as audit
    from privloss.numerics import check

    count = check.count("--settings", _whole("--settings", settings))
    with progress_bar("comparing") as bar:
        report = audit(count, _whole("--seed", seed), bar.step)
    rows = report.by_regime()
    if as_json:
        wrong = [{"plan": c.plan.to_dict(), "delta": c.delta} for c in report.violations]
        found = {"settings": report.settings, "violations": wrong, "worst_width": report.worst_width, "regimes": rows}
        print(json.dumps(finite(found)))
    else:
        from rich.table import Table

        print(f"{report.settings} random settings, floating point against certified")
        table = Table(box=None, padding=(0, 2, 0, 0))  # fits into 80 columns
        for name in ("regime", "settings", "wrong", "unproven", "median", "widest", "nearest"):
            table.add_column(name, justify="left" if name == "regime" else "right", no_wrap=True)
        for row in rows:
            near = "" if row["used"] is None else f"{row['used']:.0%}"
            widths = (f"{row['median_width']:.0e}", f"{row['worst_width']:.0e}")
            table.add_row(
                row["regime"], *(str(row[k]) for k in ("settings", "violations", "uncertified")), *widths, near
            )
        print_table(table)
        print("median, widest: relative widths; nearest: truth next to an end, in half widths")
        print(f"violations: {len(report.violations)}; worst relative width: {report.worst_width:.1e}")
        for case in report.violations:
            print(f"  {case.plan!r} at delta = {case.delta!r}: {case.floating!r} against {case.certified!r}")
    if report.violations:
        raise typer.Exit(1)


def _whole(flag: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{flag} = {text!r}: must be a whole number.") from None
