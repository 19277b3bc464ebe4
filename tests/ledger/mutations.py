"""Is every safeguard of the ledger needed, and would a test notice its loss? ``python -m tests.ledger.mutations``, or
in parts: ``--part 1/3``, ``--part 2/3``, ``--part 3/3`` (the control is run with the first).

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
from pathlib import Path

from tests.ledger.mutants import MUTANTS
from tests.ledger.mutants.base import Mutant

ROOT = Path(__file__).parents[2]
BROKEN = -1  # no test failed, but pytest did
COPY = "PRIVLOSS_COPY"  # where the tests must find the sources
TESTS = tuple(
    f"tests/ledger/test_{name}.py"
    for name in (
        "amounts", "decide", "files", "forged", "grouped", "leases", "ledger", "nested", "old_ledgers", "once",
        "places", "quotas", "remembered", "renyi_periods", "repeats", "runs", "safeguards", "server", "upgrades",
        "ways",
    )
)  # fmt: skip


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
    parser.add_argument("--part", default="1/1", help="the i-th of n parts of them")
    given = parser.parse_args()
    part, parts = (int(number) for number in given.part.split("/"))
    chosen = [mutant for mutant in MUTANTS if given.only in mutant.name][part - 1 :: parts]
    bad = False
    if part == 1:
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
