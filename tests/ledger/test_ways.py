"""Looking at a ledger holds up nobody, and grows no faster than its history; what is no ledger is said to be none."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from privloss.ledger import maintenance
from privloss.ledger.commands import Command, Move, Reserve
from privloss.ledger.ledger import Ledger
from privloss.ledger.state import COMMITTED, STARTED
from privloss.ledger.stores.base import LedgerError


def _made(place: str) -> Ledger:
    made = Ledger.create(place)
    for name in ("d", "e"):
        made.add_dataset(name, adjacency="add-remove")
        made.set_budget(name, currency="pure", cap="1")
    return made


def _grow(made: Ledger, first: int, keys: int) -> None:
    charges = {name: {"epsilon": Fraction(1, 10**6)} for name in ("d", "e")}
    names = [f"k{i}" for i in range(first, first + keys)]
    commands: list[Command] = [Reserve(key, key, charges, None, "", 3600.0) for key in names]
    for to in (STARTED, COMMITTED):
        commands += [Move(to, key) for key in names]
    made.store.run_all(commands)


def _work(made: Ledger, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Statements that an audit asks, and events that it decides again."""
    asked, decided = list[str](), list[str]()
    store = made.store
    with monkeypatch.context() as watched:
        watched.setattr(store, "boundary", asked.append)
        from privloss.ledger import replay

        unlawful = replay.unlawful

        def counted(state: object, event: dict[str, str]) -> str:
            decided.append(event["kind"])
            return unlawful(state, event)  # type: ignore[arg-type]

        watched.setattr(replay, "unlawful", counted)
        assert made.verify().clean
    return len(asked), len(decided)


def test_an_audit_grows_with_the_history_and_no_faster(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same statements for any history, each row read once, each event decided once."""
    made = _made(place)
    _grow(made, 0, 20)
    few = _work(made, monkeypatch)
    _grow(made, 20, 200)
    many = _work(made, monkeypatch)
    assert many[0] == few[0]
    assert many[1] == few[1] + 3 * 200


def test_an_audit_keeps_no_closed_keys(place: str) -> None:
    from privloss.ledger.replay import Replay

    made = _made(place)
    _grow(made, 0, 50)
    closed: list[str] = []
    with made.store.reading() as cursor:
        replay = Replay(lambda analysis: closed.append(analysis.key)).run(made.store.entries(cursor))
    assert len(closed) == 50
    assert replay.state.analyses == {}


def test_the_last_of_a_history_is_found_without_the_rest(place: str) -> None:
    made = _made(place)
    _grow(made, 0, 600)
    asked: list[str] = []
    made.store.boundary = asked.append
    (last,) = made.history("d", last=1)
    assert (last["kind"], last["key"]) == ("committed", "k599")
    # its first event, what the ledger's own chain has of restores, and one page
    assert len([statement for statement in asked if f"FROM {made.store.chained}" in statement]) == 3
    assert len(made.history("d", key="k3")) == 3
    assert len(made.history("d", kind="started")) == 600


def test_looking_while_another_holds_the_write_lock(tmp_path: Path) -> None:
    place = tmp_path / "privloss.db"
    made = _made(str(place))
    made.reserve("d", cost="0.25", key="k")
    raw = sqlite3.connect(place, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    try:
        for looking in (made, Ledger(str(place))):  # open already, or opened now
            assert looking.status("d")["reserved"] == "0.25"
            assert [row["dataset"] for row in looking.datasets()] == ["d", "e"]
            assert looking.quote("d", cost="0.5")["d"]["fits"]
            assert looking.history("d", last=1)[0]["key"] == "k"
            assert looking.verify().clean
            assert maintenance.backup(looking, tmp_path / "backup") == 7
    finally:
        raw.execute("ROLLBACK")
        raw.close()


@pytest.mark.parametrize("table", ["event (x)", "dataset (name)", "balance (x)", "analysis (x)", "open_lease (x)"])
def test_tables_of_another_program(tmp_path: Path, table: str) -> None:
    place = str(tmp_path / "other.db")
    with sqlite3.connect(place) as raw:
        raw.execute(f"CREATE TABLE {table}")
    before = Path(place).read_bytes()
    for make in (Ledger, Ledger.create):
        with pytest.raises(LedgerError, match="tables of another program") as problem:
            make(place)
        assert "\n" not in str(problem.value)
    assert Path(place).read_bytes()[100:] == before[100:]


def test_nobody_but_its_owner_reads_a_ledger(tmp_path: Path) -> None:
    made = _made(str(tmp_path / "privloss.db"))
    made.reserve("d", cost="0.25", key="k")
    for path in tmp_path.glob("privloss.db*"):
        assert path.stat().st_mode & 0o077 == 0, path
