"""What docs/service.md says about running a service: its commands run, on both stores; deploy/ is well formed."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from privloss.cli.main import main
from privloss.ledger import maintenance
from privloss.ledger.ledger import Ledger
from privloss.service.tokens import Tokens
from privloss.service.workers import Workers
from tests.client.real import Real

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TEXT = (ROOT / "docs" / "service.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)


def _lines(language: str) -> list[str]:
    return [line for found, text in BLOCKS if found == language for line in text.strip().splitlines()]


@pytest.fixture
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("a secret kept elsewhere")

    def call(line: str, db: str) -> str:
        monkeypatch.setenv("PRIVLOSS_LEDGER", db)
        words, _, target = line.partition(" > ")
        assert words.startswith("privloss ")
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(words)[1:])
        out = capsys.readouterr().out
        assert not stop.value.code, (line, out)
        if target:
            Path(target).write_text(out)
        return out

    return call


# -- backup, restore, upgrade ------------------------------------------------------------------------------------------


@pytest.fixture
def empty(request: pytest.FixtureRequest, tmp_path: Path, place: str) -> str:
    """A second place in the same kind of store."""
    if place.startswith("postgres"):
        return str(request.getfixturevalue("server").fresh(f"restored{os.getpid()}"))
    return str(tmp_path / "restored.db")


def test_backup_and_restore_as_described(place: str, empty: str, console: Callable[..., str]) -> None:
    """Beside a service that runs; afterwards tokens are gone, everything is frozen, and nothing spent is forgotten."""
    ledger = Ledger.create(place)
    ledger.add_dataset("census", adjacency="add-remove")
    ledger.set_budget("census", currency="pure", cap="1")
    with ledger.spend("census", cost="1/11", key="alice/k", analyst="alice"):
        pass
    old = Tokens(ledger.store).create("analyst", analyst="alice", datasets=["census"])[1]
    for line in _lines("operate"):
        console(line, place)
    steps = _lines("restore")
    assert len(steps) == 4
    console(steps[0], empty)
    restored = Ledger(empty)
    assert restored.status("census")["frozen"]
    assert restored.status("census")["committed"] == "1/11"
    assert Tokens(restored.store).authenticate(old) is None
    restored.close()
    assert "goes on from the head" in console(steps[1], empty)
    console(steps[2], empty)
    made = console(steps[3], empty).strip()
    restored = Ledger(empty)
    assert not restored.status("census")["frozen"]
    assert Tokens(restored.store).authenticate(made) is not None
    restored.close()
    ledger.close()


def test_upgrade_as_described(place: str, console: Callable[..., str], tmp_path: Path) -> None:
    """From the first release: a file as it left it; on PostgreSQL, its history."""
    first = tmp_path / "first.db"
    shutil.copy(ROOT / "tests" / "data" / "ledger-0.1.0.sqlite", first)
    db = str(first)
    if place.startswith("postgres"):
        kept, new = Ledger(str(first)), Ledger.create(place)
        maintenance.backup(kept, tmp_path / "first.jsonl")
        maintenance.restore(tmp_path / "first.jsonl", new)
        for each in new.datasets():
            new.freeze(each["dataset"], False, reason="reconciled")
        kept.close()
        new.close()
        db = place
    said = [console(line, db) for line in _lines("upgrade")]
    assert len(said[1].splitlines()) > 7
    assert said[2].startswith("clean: ")


# -- curl --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path: Path, workers: Workers) -> Iterator[Real]:
    made = Real(Ledger.create(str(tmp_path / "privloss.db"), group=True), workers)
    yield made
    made.close()


def test_the_examples_with_curl(served: Real, tmp_path: Path) -> None:
    """Every block in order, in one shell each; it prints what stands beneath it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "privloss").write_text(f'#!/bin/sh\nexec {sys.executable} -m privloss "$@"\n')
    (tools / "privloss").chmod(0o755)
    tokens = {"STEWARD": served.token("steward"), "ALICE": served.analyst(), "AUDITOR": served.token("auditor")}
    known = {name: f"Authorization: Bearer {token}" for name, token in tokens.items()} | {"BASE": served.place}
    known["PATH"] = f"{tools}:{os.environ['PATH']}"
    blocks = [(i, text) for i, (language, text) in enumerate(BLOCKS) if language == "sh"]
    assert len(blocks) == 5
    for number, text in blocks:
        call = ["sh", "-euc", text]
        done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **known})
        assert done.returncode == 0, done.stdout + done.stderr
        language, expected = BLOCKS[number + 1]
        assert language == "text"
        assert re.sub(r"\d+ events", "EVENTS events", done.stdout) == expected, done.stderr
    assert served.ledger.status("census")["committed"] == "1/11"


def test_the_example_in_python(served: Real, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on where the examples with curl have stopped."""
    served.ledger.add_dataset("census", adjacency="add-remove")
    served.ledger.set_budget("census", currency="pure", cap="1")
    served.ledger.reserve("census", cost="1/11", key="alice/mean-age", analyst="alice")
    monkeypatch.setenv("PRIVLOSS_TOKEN", served.analyst())
    (code,) = [text for language, text in BLOCKS if language == "python"]
    space: dict[str, Any] = {}
    exec(code.replace("https://budget.example.org", served.place), space)
    assert space["ledger"].status("census")["committed"] == served.ledger.status("census")["committed"] != "0"
    space["ledger"].close()


def test_the_table_of_flags_is_whole() -> None:
    out = subprocess.run([sys.executable, "-m", "privloss", "serve", "--help"], capture_output=True, text=True).stdout
    flags = set(re.findall(r"(--[a-z][a-z-]+)", out)) - {"--help"}
    assert flags
    table = TEXT[TEXT.index("| flag |") : TEXT.index("An address that")]
    assert flags == set(re.findall(r"(--[a-z][a-z-]+)", table))


# -- files -------------------------------------------------------------------------------------------------------------


def test_the_compose_file() -> None:
    whole: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = whole["services"]
    assert set(services) == {"db", "privloss"}
    assert re.fullmatch(r"postgres:\d+\.\d+-\w+", services["db"]["image"])
    assert "ports" not in services["db"]  # nobody outside talks to the database
    assert services["db"]["networks"] == ["inside"]
    assert whole["networks"]["inside"] == {"internal": True}
    command = services["privloss"]["command"]
    assert any(each.startswith("--tls-cert=") for each in command)
    with pytest.raises(SystemExit) as stop:  # the flags are flags
        main([*command[:1], "--help"])
    assert not stop.value.code
    assert "@" in services["privloss"]["environment"]["PRIVLOSS_LEDGER"]
    assert ":" not in services["privloss"]["environment"]["PRIVLOSS_LEDGER"].split("//")[1].split("@")[0]
    used = {name for each in services.values() for name in each["secrets"]}
    assert used == set(whole["secrets"])
    assert int(services["privloss"]["stop_grace_period"].removesuffix("s")) > 30
    assert (DEPLOY / "entrypoint.sh").stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(DEPLOY / "entrypoint.sh")], check=True)


def test_the_entrypoint_hands_over_the_password_by_the_environment(tmp_path: Path) -> None:
    script = (DEPLOY / "entrypoint.sh").read_text().replace("/run/secrets", str(tmp_path))
    (tmp_path / "db_password").write_text("hunter2\n")
    (tmp_path / "privloss").write_text('#!/bin/sh\necho "$PGPASSWORD $*"\n')
    (tmp_path / "privloss").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", script, "sh", "serve", "--x"], capture_output=True, text=True, env=env)
    assert done.stdout == "hunter2 serve --x\n", done.stderr


def test_the_dockerfile() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    for line in lines:
        if line.startswith("COPY") and "--from" not in line:
            *sources, _ = [word for word in line.split()[1:] if not word.startswith("--")]
            assert all((ROOT / each).exists() for each in sources), line
    assert "USER privloss" in lines


UNITS = ("privloss.service", "privloss-backup.service", "privloss-backup.timer")


@pytest.mark.parametrize("name", UNITS)
def test_units(name: str, tmp_path: Path) -> None:
    """As systemd reads them, where it is installed."""
    text = (DEPLOY / name).read_text()
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    if name.endswith(".service"):
        assert parser["Service"]["User"] == "privloss"
        assert parser["Service"]["ProtectSystem"] == "strict"
    if shutil.which("systemd-analyze"):
        for each in UNITS:  # the program and the user are not on this machine
            found = (DEPLOY / each).read_text().replace("/opt/privloss/bin/privloss", "/bin/true")
            (tmp_path / each).write_text(re.sub("^(User|Group)=.*$", r"\1=root", found, flags=re.MULTILINE))
        done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / name)], capture_output=True, text=True)
        assert (done.returncode, [line for line in done.stderr.splitlines() if str(tmp_path) in line]) == (0, [])
