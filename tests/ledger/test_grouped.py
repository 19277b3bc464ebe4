"""Group commit as users reach it: `group=True`."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import privloss as pl
from privloss.ledger import maintenance
from privloss.ledger.ledger import Ledger
from privloss.ledger.stores.base import LedgerError, Store
from privloss.ledger.stores.grouped import GroupedStore
from privloss.ledger.stores.postgres import PostgresStore
from privloss.ledger.stores.sqlite import SqliteStore
from tests.ledger.postgres import Server


def _open(path: Path) -> pl.Ledger:
    made = pl.Ledger.create(str(path), group=True)
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap="1")
    return made


def test_many_threads_share_one_commit(tmp_path: Path) -> None:
    """While one commit is held up, forty commands gather, and become durable together."""
    made = _open(tmp_path / "g.db")
    store = made.store
    assert isinstance(store, GroupedStore)
    inner = store._inner
    held, goes_on, commits = threading.Event(), threading.Event(), []

    def boundary(statement: str) -> None:
        if statement == "COMMIT":
            commits.append(statement)
            if len(commits) == 1:
                held.set()
                goes_on.wait()

    inner.boundary = boundary
    threads = [threading.Thread(target=made.reserve, args=("d",), kwargs={"cost": "1/50", "key": "first"})]
    threads += [
        threading.Thread(target=made.reserve, args=("d",), kwargs={"cost": "1/50", "key": f"k{i}"}) for i in range(40)
    ]
    threads[0].start()
    held.wait()
    for thread in threads[1:]:
        thread.start()
    while store._waiting.qsize() < 40:
        goes_on.wait(0.01)
    goes_on.set()
    for thread in threads:
        thread.join()
    assert len(commits) == 2
    assert made.status("d")["reserved"] == "0.82"
    assert made.verify().clean


def test_opened_again(tmp_path: Path) -> None:
    _open(tmp_path / "g.db").close()
    again = pl.Ledger(str(tmp_path / "g.db"), group=True)
    assert isinstance(again.store, GroupedStore)
    with again.spend("d", cost="1/2", key="k"):
        pass
    assert [row["check"] for row in maintenance.doctor(again)][:3] == ["schema", "pages", "disk"]
    again.close()
    plain = pl.Ledger(str(tmp_path / "g.db"))
    assert isinstance(plain.store, SqliteStore)
    assert plain.status("d")["committed"] == "0.5"


def test_where_it_does_not_go(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(pl.Ledger.create(server.fresh("ungrouped"), group=True).store, PostgresStore)  # does so itself
    made = _open(tmp_path / "g.db")
    with pytest.raises(pl.InvalidInput, match="contradict"):
        pl.Ledger(store=made.store, group=True)
    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: -1)
        with pytest.raises(LedgerError, match="before a fork"):
            made.reserve("d", cost="1/2", key="k")


@pytest.mark.parametrize("kind", [SqliteStore, PostgresStore])
def test_what_a_store_does_in_its_own_way_is_handed_on(kind: type[Store], tmp_path: Path) -> None:
    """A restore into a grouped ledger wrote events in the wrong order, and its `verify` left out a check."""
    store = GroupedStore(Ledger.create(str(tmp_path / "a.db")).store)
    own = [name for name in dir(Store) if not name.startswith("_") and getattr(kind, name) is not getattr(Store, name)]
    assert {"write", "run_all", "transaction"} <= {*own, "write"}
    for name in own:
        handed = name in vars(store) or getattr(GroupedStore, name) is not getattr(Store, name)
        assert handed, name
    store.close()


def test_a_backup_is_restored_into_a_grouped_ledger(tmp_path: Path) -> None:
    kept = Ledger.create(str(tmp_path / "first.db"))
    kept.add_dataset("d", adjacency="add-remove")
    kept.set_budget("d", currency="pure", cap="100")
    for number in range(20):
        kept.reserve("d", cost=1, key=f"k{number}")
    maintenance.backup(kept, tmp_path / "backup")
    kept.close()
    again = Ledger.create(str(tmp_path / "second.db"), group=True)
    maintenance.restore(tmp_path / "backup", again)
    assert again.verify().clean
    assert len(again.history("d")) == 23
    again.close()
