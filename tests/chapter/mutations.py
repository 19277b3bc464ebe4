"""Would the tests notice a wrong constant in the chapter's theorems? ``python -m tests.chapter.mutations``.

Each mutant of `mutants.py` is a copy of the sources with one change; the tests that docs/chapter.md names for its label
run against the copy and must fail. Against an unchanged copy they must pass. The table goes to docs/mutants.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.chapter.mutants import MUTANTS, Mutant
from tests.chapter.test_map import ROOT, ROWS, named

PAGE = ROOT / "docs" / "mutants.md"
_REWRITTEN = "ignore::pytest.PytestAssertRewriteWarning"  # plugins are loaded before the fork
HEAVY = (
    "numpy",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "scipy.integrate",
    "mpmath",
    "hypothesis",
    "pytest",
)


def tests_of(label: str) -> list[str]:
    """What docs/chapter.md names for a label."""
    return [test for row in ROWS if row["label"] == label for test in named(row["tests"])]


def run(mutant: Mutant | None, tests: list[str]) -> tuple[int, str]:
    """The exit code of pytest against a copy, in a child process, and the test that failed first."""
    with tempfile.TemporaryDirectory(prefix="privloss-mutant-") as home:
        source = Path(home).resolve() / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            path = source / "privloss" / mutant.file
            text = path.read_text()
            if mutant.old not in text:
                raise SystemExit(f"{mutant.label}, {mutant.what}: {mutant.old!r} is not in {mutant.file}")
            path.write_text(text.replace(mutant.old, mutant.new))
        log = Path(home) / "log"
        child = os.fork()  # numpy and the like are loaded already
        if child == 0:
            _in_child(source, log, tests)
        _, status = os.waitpid(child, 0)
        said = log.read_text()
    failed = re.search(r"^FAILED (\S+?::.+?)(?: - .*)?$", said, re.MULTILINE)
    if os.WEXITSTATUS(status) != 0 and failed is None:
        return -1, said.strip().rpartition("\n")[2]
    return os.WEXITSTATUS(status), failed[1] if failed else ""


def _in_child(source: Path, log: Path, tests: list[str]) -> None:
    code = 70
    try:
        with log.open("w") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            sys.path.insert(0, str(source))
            os.environ["PYTHONPATH"] = str(source)  # of processes that a test starts
            sys.dont_write_bytecode = True
            for name in [n for n in sys.modules if n.split(".")[0] in ("privloss", "tests")]:
                del sys.modules[name]
            import pytest

            import privloss

            if not Path(privloss.__file__).is_relative_to(source):
                raise RuntimeError(f"{privloss.__file__} is not the copy")
            os.chdir(ROOT)
            code = int(pytest.main([*tests, "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-W", _REWRITTEN]))
            sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mutants with this in their label or description")
    only = parser.parse_args().only
    chosen = [m for m in MUTANTS if only in m.label or only in m.what]
    for name in HEAVY:
        __import__(name)
    every = list(dict.fromkeys(test for m in chosen for test in tests_of(m.label)))
    code, said = run(None, every)
    print("control passes" if code == 0 else f"CONTROL FAILS: {said}", flush=True)
    lines, bad = [], code != 0
    for mutant in chosen:
        begun = time.monotonic()
        code, said = run(mutant, tests_of(mutant.label))
        verdict = {0: "SURVIVED", 1: "killed"}.get(code, "BROKEN")
        bad |= verdict != "killed"
        print(f"{verdict:8} {mutant.label:42} {mutant.what:44} {time.monotonic() - begun:4.1f} s  {said}", flush=True)
        lines.append(f"| `{mutant.label}` | {mutant.what} | {verdict} | `{said}` |")
    if not only:
        PAGE.write_text(written(PAGE.read_text(), page(lines), "# Planted errors in the chapter's theorems"))
    return 1 if bad else 0


def written(whole: str, part: str, title: str) -> str:
    """A page of parts that begin with a title each, with one of them written anew."""
    parts = {
        text.partition("\n")[0]: text.rstrip("\n") for text in re.split(r"^(?=# )", whole, flags=re.MULTILINE) if text
    }
    return "\n\n".join((parts | {title: part.rstrip("\n")}).values()) + "\n"


def page(lines: list[str]) -> str:
    """docs/mutants.md."""
    labels = {m.label for m in MUTANTS}
    return (
        "# Planted errors in the chapter's theorems\n\n"
        f"{len(lines)} wrong constants, dropped hypotheses and turned signs, for {len(labels)} results. Each is\n"
        "planted in a copy of the sources; the tests that [chapter.md](chapter.md) names for that result must fail.\n"
        "Written by `python -m tests.chapter.mutations`.\n\n"
        "| result | planted | verdict | by |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
