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
BROKEN = -1  # no test failed, but pytest did
COPY = "PRIVLOSS_COPY"  # where the tests must find the sources
TESTS = (
    "tests/ledger/test_safeguards.py",
    "tests/ledger/test_ledger.py",
    "tests/ledger/test_decide.py",
    "tests/ledger/test_once.py",
)
_SQLITE, _POSTGRES = "stores/migrations/sqlite/0001.sql", "stores/migrations/postgres/0001.sql"


@dataclass(frozen=True)
class Mutant:
    """One safeguard taken out: every `old` in a file becomes `new`. `test` is tried first, then all tests."""

    name: str
    file: str
    old: str
    new: str
    test: str


_DECIDED = """
                outcomes = [self._inner.run_in(cursor, command, now) for command, now, _ in group]
"""
_ANSWERED = """
                for (_, _, early), made in zip(group, outcomes, strict=True):
                    early.set_result(made)
            return
"""
MUTANTS = (
    Mutant(
        "sqlite: BEGIN for BEGIN IMMEDIATE",
        "stores/sqlite.py",
        '"BEGIN IMMEDIATE"',
        '"BEGIN"',
        "sees_what_the_first_wrote",
    ),
    Mutant(
        "sqlite: commits not synced", "stores/sqlite.py", "synchronous = FULL", "synchronous = OFF", "commits_of_sqlite"
    ),
    Mutant("sqlite: no CHECK of the cap", _SQLITE, ",\n  CHECK (total_units <= cap_units)", "", "holds_the_cap"),
    Mutant("sqlite: no CHECK of the sign", _SQLITE, " CHECK (total_units >= 0)", "", "holds_the_cap"),
    Mutant("sqlite: events can be changed", _SQLITE, "BEFORE UPDATE ON event", "BEFORE UPDATE ON meta", "keeps_events"),
    Mutant(
        "sqlite: events can be deleted", _SQLITE, "BEFORE DELETE ON event", "BEFORE DELETE ON analysis", "keeps_events"
    ),
    Mutant(
        "postgresql: no FOR UPDATE",
        "stores/postgres.py",
        '_HOLD = " FOR UPDATE"',
        '_HOLD = ""',
        "sees_what_the_first_wrote",
    ),
    Mutant(
        "postgresql: datasets not held",
        "stores/postgres.py",
        "name = ?{_HOLD}",
        "name = ?",
        "sees_what_the_first_wrote",
    ),
    Mutant("postgresql: head not held", "stores/postgres.py", "'head'{_HOLD}", "'head'", "extend_one_chain"),
    Mutant(
        "postgresql: head not held by a new dataset",
        "stores/base.py",
        "            self.lock_head(cursor)\n            return self._state",
        "            return self._state",
        "added_twice",
    ),
    Mutant(
        "postgresql: commits not synced",
        "stores/postgres.py",
        '"SET synchronous_commit = on"',
        '"SELECT 1"',
        "commits_of_postgresql",
    ),
    Mutant("postgresql: no CHECK of the cap", _POSTGRES, ",\n  CHECK (total_units <= cap_units)", "", "holds_the_cap"),
    Mutant("postgresql: no CHECK of the sign", _POSTGRES, " CHECK (total_units >= 0)", "", "holds_the_cap"),
    Mutant(
        "postgresql: events can be changed",
        _POSTGRES,
        "UPDATE OR DELETE OR TRUNCATE",
        "DELETE OR TRUNCATE",
        "keeps_events",
    ),
    Mutant(
        "postgresql: events can be deleted",
        _POSTGRES,
        "UPDATE OR DELETE OR TRUNCATE",
        "UPDATE OR TRUNCATE",
        "keeps_events",
    ),
    Mutant(
        "postgresql: events can be truncated",
        _POSTGRES,
        "UPDATE OR DELETE OR TRUNCATE",
        "UPDATE OR DELETE",
        "keeps_events",
    ),
    Mutant("audit: hashes not compared", "verify.py", " or chain(before, body) != link", "", "forged_event"),
    Mutant("audit: links not compared", "verify.py", "before != previous or ", "", "forged_event"),
    Mutant("audit: caps not compared", "verify.py", "over = exceeded(state)", "over = list[str]()", "at_every_event"),
    Mutant(
        "audit: tables not compared",
        "verify.py",
        "problems += differences(state, tables)",
        "pass",
        "compares_the_tables",
    ),
    Mutant("rules: cap not compared", "decide.py", "if over > 0:", "if over > 10**9:", "eleven_elevenths"),
    Mutant(
        "rules: keys not compared",
        "decide.py",
        "if known.request == command.request:",
        "if True:",
        "keys_take_effect_once",
    ),
    Mutant(
        "rules: anybody may start again",
        "decide.py",
        "command.token and command.token == analysis.token",
        "True",
        "test_states",
    ),
    Mutant("rules: a known key enters frozen", "decide.py", "_any_frozen(datasets) or []", "[]", "frozen"),
    Mutant("rules: a start enters frozen", "decide.py", "if frozen is not None:", "if False:", "frozen"),
    Mutant("audit: order of events not compared", "verify.py", "if wrong:", "if False:", "out_of_turn"),
    Mutant(
        "rules: void after start", "decide.py", "VOIDED: (RESERVED,)}", "VOIDED: (RESERVED, STARTED)}", "test_states"
    ),
    Mutant(
        "postgresql: what is not there counts as held",
        "stores/postgres.py",
        "if self.execute(cursor, query, [name]).fetchall()]",
        "if self.execute(cursor, query, [name]).fetchall() or True]",
        "made_meanwhile_is_not_written",
    ),
    Mutant(
        "stores: keys of datasets not held",
        "stores/base.py",
        "held = set(found.charges) <= set(state.datasets)",
        "held = True",
        "key_made_meanwhile",
    ),
    Mutant("rules: leases of all datasets", "decide.py", "if here and ", "if ", "only_these_datasets"),
    Mutant(
        "group commit: answers before the commit",
        "stores/grouped.py",
        _DECIDED,
        _DECIDED + _ANSWERED,
        "after_its_commit",
    ),
    Mutant(
        "pool: connections shared with a fork",
        "stores/pool.py",
        "self._process != os.getpid()",
        "False",
        "forked_child",
    ),
)


def pytest_configure() -> None:
    """As a plugin of the inner pytest: make sure that the copy is what is tested."""
    import privloss

    if not Path(privloss.__file__).is_relative_to(os.environ[COPY]):
        raise RuntimeError(f"{privloss.__file__} is not in {os.environ[COPY]}")


def run(mutant: Mutant | None, only: str = "") -> tuple[int, str]:
    """The exit code of pytest against a copy with one safeguard taken out (None: with all), and the failing test."""
    with tempfile.TemporaryDirectory(prefix="privloss-mutant-") as home:
        source = Path(home).resolve() / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            path = source / "privloss" / "ledger" / mutant.file
            text = path.read_text()
            if mutant.old not in text:
                raise SystemExit(f"{mutant.name}: {mutant.old!r} is not in {mutant.file}")
            path.write_text(text.replace(mutant.old, mutant.new))
        environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", COPY: str(source)}
        call = [sys.executable, "-m", "pytest", *TESTS, "-k", only, "-x", "-q"]
        call += ["-p", "no:cacheprovider", "-p", "tests.ledger.mutations"]
        ended = subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    failed = re.search(r"^FAILED \S+::(\S+)", ended.stdout, re.MULTILINE)
    if failed is None and ended.returncode != 0:
        return BROKEN, (ended.stdout + ended.stderr).strip()[-300:]
    return ended.returncode, failed[1] if failed else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mutants with this in their name")
    chosen = [mutant for mutant in MUTANTS if parser.parse_args().only in mutant.name]
    code, said = run(None)
    print(f"{'control passes' if code == 0 else 'CONTROL FAILS: ' + said}", flush=True)
    bad = code != 0
    for mutant in chosen:
        begun = time.monotonic()
        code, said = run(mutant, mutant.test)
        if code == 0:
            code, said = run(mutant)
        verdict = {0: "SURVIVED", 1: "killed"}.get(code, "BROKEN")
        bad |= verdict != "killed"
        by = f"by {said}" if verdict == "killed" else "" if code == 0 else said
        print(f"{verdict:9} {mutant.name:42} {time.monotonic() - begun:4.1f} s  {by}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
