"""Is every safeguard of the ledger needed, and would a test notice its loss? ``python -m tests.ledger.mutations``.

Each mutant is a copy of the sources with one safeguard taken out. The tests run against the copy and must fail; against
an unchanged copy they must pass.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPY = "PRIVLOSS_COPY"  # where the tests must find the sources
TESTS = ("tests/ledger/test_safeguards.py", "tests/ledger/test_ledger.py")
_BUDGET = "privloss/budget"
_SQLITE, _POSTGRES = f"{_BUDGET}/migrations/sqlite/0001.sql", f"{_BUDGET}/migrations/postgres/0001.sql"


@dataclass(frozen=True)
class Mutant:
    """One safeguard taken out: every `old` in a file becomes `new`."""

    name: str
    file: str
    old: str
    new: str


def _without(name: str, file: str, text: str) -> Mutant:
    return Mutant(name, file, text, "")


_DECIDED = """
                outcomes = [self._inner.run_in(cursor, command, now) for command, now, _ in group]
"""
_ANSWERED = """
                for (_, _, early), made in zip(group, outcomes, strict=True):
                    early.set_result(made)
            return
"""
MUTANTS = (
    Mutant("sqlite: BEGIN for BEGIN IMMEDIATE", f"{_BUDGET}/sqlite.py", '"BEGIN IMMEDIATE"', '"BEGIN"'),
    Mutant("sqlite: commits not synced", f"{_BUDGET}/sqlite.py", "synchronous = FULL", "synchronous = OFF"),
    _without("sqlite: no CHECK of the cap", _SQLITE, ",\n  CHECK (total_units <= cap_units)"),
    _without("sqlite: no CHECK of the sign", _SQLITE, " CHECK (total_units >= 0)"),
    Mutant("sqlite: events can be changed", _SQLITE, "BEFORE UPDATE ON event BEGIN", "BEFORE UPDATE ON meta BEGIN"),
    Mutant("sqlite: events can be deleted", _SQLITE, "BEFORE DELETE ON event BEGIN", "BEFORE DELETE ON analysis BEGIN"),
    Mutant("postgresql: no FOR UPDATE", f"{_BUDGET}/postgres.py", '_HOLD = " FOR UPDATE"', '_HOLD = ""'),
    Mutant("postgresql: datasets not held", f"{_BUDGET}/postgres.py", "name = ?{_HOLD}", "name = ?"),
    Mutant("postgresql: head not held", f"{_BUDGET}/postgres.py", "'head'{_HOLD}", "'head'"),
    Mutant("postgresql: commits not synced", f"{_BUDGET}/postgres.py", '"SET synchronous_commit = on"', '"SELECT 1"'),
    _without("postgresql: no CHECK of the cap", _POSTGRES, ",\n  CHECK (total_units <= cap_units)"),
    _without("postgresql: no CHECK of the sign", _POSTGRES, " CHECK (total_units >= 0)"),
    Mutant("postgresql: events can be changed", _POSTGRES, "UPDATE OR DELETE OR TRUNCATE", "DELETE OR TRUNCATE"),
    Mutant("postgresql: events can be deleted", _POSTGRES, "UPDATE OR DELETE OR TRUNCATE", "UPDATE OR TRUNCATE"),
    Mutant("postgresql: events can be truncated", _POSTGRES, "UPDATE OR DELETE OR TRUNCATE", "UPDATE OR DELETE"),
    _without("audit: hashes not compared", f"{_BUDGET}/audit.py", " or chain(before, body) != link"),
    _without("audit: links not compared", f"{_BUDGET}/audit.py", "before != previous or "),
    Mutant("audit: caps not compared", f"{_BUDGET}/audit.py", "over = exceeded(state)", "over = list[str]()"),
    Mutant("audit: tables not compared", f"{_BUDGET}/audit.py", "problems += differences(state, tables)", "pass"),
    Mutant("rules: cap not compared", f"{_BUDGET}/decide.py", "if over > 0:", "if over > 10**9:"),
    Mutant("rules: keys not compared", f"{_BUDGET}/decide.py", "if known.request == command.request:", "if True:"),
    Mutant("rules: void after start", f"{_BUDGET}/decide.py", "VOIDED: (RESERVED,)}", "VOIDED: (RESERVED, STARTED)}"),
    Mutant(
        "leases: collected without a lock",
        f"{_BUDGET}/store.py",
        "if set(late.charges) <= set(names):",
        "if set(late.charges) & set(names):",
    ),
    Mutant("group commit: answers before the commit", f"{_BUDGET}/grouping.py", _DECIDED, _DECIDED + _ANSWERED),
    Mutant("pool: connections shared with a fork", f"{_BUDGET}/pool.py", "self._process != os.getpid()", "False"),
)


def pytest_configure() -> None:
    """As a plugin of the inner pytest: make sure that the copy is what is tested."""
    import privloss

    if not Path(privloss.__file__).is_relative_to(os.environ[COPY]):
        raise RuntimeError(f"{privloss.__file__} is not in {os.environ[COPY]}")


def run(mutant: Mutant | None, tests: tuple[str, ...]) -> tuple[int, str]:
    """The exit code of pytest against a copy with one safeguard taken out (None: with all), and the failing test."""
    with tempfile.TemporaryDirectory(prefix="privloss-mutant-") as home:
        source = Path(home).resolve() / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            path = source / mutant.file
            text = path.read_text()
            if mutant.old not in text:
                raise SystemExit(f"{mutant.name}: {mutant.old!r} is not in {mutant.file}")
            path.write_text(text.replace(mutant.old, mutant.new))
        environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", COPY: str(source)}
        call = [sys.executable, "-m", "pytest", *tests, "-x", "-q", "-p", "no:cacheprovider", "-p", __spec__.name]
        ended = subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    failed = re.search(r"^(?:FAILED|ERROR) \S+::(\S+)", ended.stdout, re.MULTILINE)
    return ended.returncode, failed[1] if failed else (ended.stdout + ended.stderr).strip()[-300:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mutants with this in their name")
    chosen = [mutant for mutant in MUTANTS if parser.parse_args().only in mutant.name]
    code, said = run(None, TESTS)
    print(f"{'control passes' if code == 0 else 'CONTROL FAILS: ' + said}", flush=True)
    bad = code != 0
    for mutant in chosen:
        begun = time.monotonic()
        code, said = run(mutant, TESTS)
        verdict = {0: "SURVIVED", 1: "killed"}.get(code, f"BROKEN (pytest ends with {code})")
        bad |= verdict != "killed"
        by = f"by {said}" if verdict == "killed" else "" if code == 0 else said
        print(f"{verdict:9} {mutant.name:42} {time.monotonic() - begun:4.1f} s  {by}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
