"""``make demo``: the same year for the same day, in which everything happens that a page can show."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest

import privloss as pl
from privloss.ledger.ledger import Ledger

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", FILE)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules["demo"] = found
    spec.loader.exec_module(found)
    return found


def _bodies(lines: list[str]) -> list[dict[str, object]]:
    """Of datasets; the ledger's own chain says who was given a token. A run is drawn at random."""
    rows = [json.loads(line) for line in lines]
    return [{k: v for k, v in row["body"].items() if k != "run"} for row in rows if row.get("chain")]


def test_a_year_is_the_same_for_the_same_day(demo: ModuleType, tmp_path: Path) -> None:
    years = []
    for name in ("one.db", "two.db"):
        assert set(demo.make(str(tmp_path / name), date(2026, 11, 19))) == {"steward", "analyst", "auditor"}
        ledger = Ledger(str(tmp_path / name))
        years.append(_bodies(list(ledger.export())))
    assert years[0] == years[1]
    kinds = Counter(str(body["kind"]) for body in years[0])
    wanted = {"account", "budget", "reserved", "started", "committed", "voided", "refused", "frozen", "audited"}
    assert wanted <= kinds.keys()
    assert kinds["committed"] > 100
    seconds = [float(str(body["at"])) for body in years[0]]
    assert 360 * 86400 < max(seconds) - min(seconds) < 366 * 86400
    assert ledger.verify().clean
    assert all(set(ledger.status(name)) & {"remaining", "spent"} for name in ("visits", "survey", "wearables"))
    names = ("visits", "survey", "wearables")
    reasons = {event["why"] for name in names for event in ledger.history(name, kind="refused")}
    assert len(reasons) >= 3
    ledger.close()


def test_one_command_opens_it_and_ctrl_c_ends_it() -> None:
    """As `make demo` calls it, on a free port."""
    assert "$(BIN)/python examples/demo.py" in (ROOT / "Makefile").read_text()
    call = [sys.executable, str(FILE), "--port", "0", "--today", "2026-11-19"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        said = ""
        while "serving at" not in said:
            line = running.stdout.readline()
            assert line, running.stderr.read()
            said += line
        (place,) = re.findall(r"serving at (\S+)", said)
        tokens = dict(re.findall(r"^  (\w+).* (pl_\S+)$", said, re.MULTILINE))
        ledger = pl.Ledger(place, token=tokens["auditor"])
        assert len(ledger.datasets()) == 4
        ledger.close()
        alice = pl.Ledger(place, token=tokens["analyst"])
        assert alice.reservation("next-week") is not None
        alice.close()
        running.send_signal(signal.SIGINT)
        running.stdout.read()
        errors = running.stderr.read()
    assert "Traceback" not in errors
    assert set(tokens) == {"steward", "analyst", "auditor"}
