"""Would the tests notice a wrong constant in an audit? ``python -m tests.audit.mutations``, in parts: ``--part 1/3``.

Each mutant of `mutants.py` is a copy of the sources with one change; the tests named for its label run against the copy
and must fail. Against an unchanged copy they must pass. The whole run writes its table to docs/mutants.md.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.audit.mutants import MUTANTS, TESTS
from tests.chapter.mutations import HEAVY, PAGE, run, written


def tests_of(label: str) -> list[str]:
    """Arguments of pytest for a label."""
    file, _, chosen = TESTS[label].partition(" -k ")
    return [f"tests/audit/{file}", *(["-k", chosen] if chosen else [])]


def line(label: str, what: str, verdict: str, by: str) -> str:
    return f"| {label} | {what} | {verdict} | `{by}` |"


def page(lines: list[str]) -> str:
    """The part of docs/mutants.md about audits."""
    return (
        f"# Planted errors in audits\n\n{len(lines)} errors in the formulas of [auditing.md](auditing.md) and in what "
        "keeps audits in ledgers and certificates,\nplanted in the same way. "
        "Written by `python -m tests.audit.mutations`.\n\n"
        "| formula | planted | verdict | by |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mutants with this in their label or description")
    parser.add_argument("--part", default="1/1", help="the i-th of n parts of them")
    parser.add_argument("--no-control", action="store_true", help="do not run the tests against an unchanged copy")
    given = parser.parse_args()
    part, parts = (int(number) for number in given.part.split("/"))
    chosen = [m for m in MUTANTS if given.only in m.label or given.only in m.what][part - 1 :: parts]
    for name in HEAVY:
        __import__(name)
    bad = False
    if not given.no_control:
        for label in dict.fromkeys(m.label for m in chosen):
            code, said = run(None, tests_of(label))
            bad |= code != 0
            print(f"control of {label} {'passes' if code == 0 else 'FAILS: ' + said}", flush=True)
    lines = []
    for mutant in chosen:
        begun = time.process_time()
        code, said = run(mutant, tests_of(mutant.label))
        verdict = {0: "SURVIVED", 1: "killed"}.get(code, "BROKEN")
        bad |= verdict != "killed"
        lines.append(line(mutant.label, mutant.what, verdict, said))
        print(lines[-1], f"{time.process_time() - begun:.1f} s", flush=True)
    if len(chosen) == len(MUTANTS):
        PAGE.write_text(written(PAGE.read_text(), page(lines), "# Planted errors in audits"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
