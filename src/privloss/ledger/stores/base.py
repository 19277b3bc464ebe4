"""What SQLite and PostgreSQL share: one transaction per command (or per group of them), decided by the pure rules.

A transaction locks, loads the part of the state its commands need, decides, writes balances, analyses and events (each
chained, in every account it concerns, to the last by its hash), and commits. Nothing is answered before the commit is
durable. What a store knows to be unchanged since its last transaction is not loaded again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from privloss.ledger.commands import Command, Expire
from privloss.ledger.decide import step
from privloss.ledger.state import LEDGER, Account, Analysis, Event, State
from privloss.ledger.stores.loading import Clock as Clock
from privloss.ledger.stores.parts import Entry as Entry
from privloss.ledger.stores.parts import Finding as Finding
from privloss.ledger.stores.parts import LedgerError as LedgerError
from privloss.ledger.stores.parts import Loaded as Loaded
from privloss.ledger.stores.parts import LostReply as LostReply
from privloss.ledger.stores.parts import NoAnswer as NoAnswer
from privloss.ledger.stores.parts import Outcome as Outcome
from privloss.ledger.stores.repeats import learn
from privloss.ledger.stores.rows import ACCOUNT, ANALYSIS, BALANCE, account_from, analysis_from, balance_from
from privloss.ledger.stores.writing import Change as Change
from privloss.ledger.stores.writing import Writing

_MOST_ROUNDS = 100  # transactions that give ended leases back, before a command


class Store(Writing, ABC):
    """A place for the ledger."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """A cursor inside a write transaction, committed durably at the end."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Any]:
        """A cursor that sees one consistent snapshot, and holds up nobody."""

    @abstractmethod
    def stream(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """The rows of a long answer, a few at a time."""

    @abstractmethod
    def look(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of one short question by itself, without a snapshot: the cheapest way to ask."""

    @abstractmethod
    def version(self, cursor: Any) -> int:
        """The schema's version, 0 for an empty database."""

    @abstractmethod
    def close(self) -> None: ...

    def own_checks(self) -> list[Finding]:
        """What a check-up should know about this kind of store."""
        return []

    def misplaced(self, cursor: Any) -> list[str]:
        """What is wrong with that by which events are found, other than the events."""
        return []

    # -- commands --

    def run(self, command: Command, clock: Clock | None = None) -> Outcome:
        return self.run_all([command], clock)[0]

    def run_all(self, commands: Sequence[Command], clock: Clock | None = None) -> list[Outcome]:
        """Decide commands in one transaction; leases that have ended are given back in others before it."""
        answers: dict[int, Outcome] = {}
        for left in range(_MOST_ROUNDS, -1, -1):  # in the end without them: what they hold stays held
            with self.transaction() as cursor:
                held = self.remembered(cursor)
                rest = {number: command for number, command in enumerate(commands) if number not in answers}
                repeated = self.repeated(cursor, held, rest, clock)
                if repeated:
                    answers |= repeated
                    rest = {number: command for number, command in rest.items() if number not in repeated}
                late = self._decide_rest(cursor, held, rest, answers, clock, wait=left > 0) if rest else ()
                if not late:
                    self.remember(cursor, held)
                    return [answers[number] for number in range(len(commands))]
            self.run_all([Expire(late)], clock)
        raise AssertionError("the last round decides")

    def _decide_rest(
        self,
        cursor: Any,
        held: Loaded,
        rest: dict[int, Command],
        answers: dict[int, Outcome],
        clock: Clock | None,
        wait: bool,
    ) -> tuple[str, ...]:
        """Load, decide and write; or name the keys whose leases must be given back before."""
        commands = list(rest.values())
        self.load(cursor, commands, clock, held)
        if held.late and wait:
            return held.late
        outcomes, made = self.decided(held, commands)
        events = [event for each in made for event in each]
        if events:
            self.write(cursor, held, events)
            learn(held, commands, made)
        answers |= zip(rest, outcomes, strict=True)
        return ()

    def repeated(self, cursor: Any, held: Loaded, asked: dict[int, Command], clock: Clock | None) -> dict[int, Outcome]:
        """What became of those commands that repeat others, by what is remembered of these."""
        return {}

    def remembered(self, cursor: Any) -> Loaded:
        """What is known since the last transaction, if nobody can have changed it; it is taken, and given back by
        `remember` when all that has changed is written."""
        return Loaded(0.0)

    def remember(self, cursor: Any, held: Loaded) -> None:
        """Keep what is known for the next transaction, if this one is committed."""

    def decided(self, held: Loaded, commands: Sequence[Command]) -> tuple[list[Outcome], list[list[Event]]]:
        """What commands lead to, one after the other, and the events that each has caused."""
        outcomes: list[Outcome] = []
        events: list[list[Event]] = []
        for command in commands:
            made, refused = step(held.state, command, held.now)
            events.append(made)
            outcomes.append(Outcome.of(command, refused, held.state, held.now, made=bool(made)))
        return outcomes, events

    # -- reading --

    def entries(self, cursor: Any, after: int = 0) -> Iterator[Entry]:
        """All events in the order in which they came to be, in each chain they stand in."""
        query = "SELECT number, chain, seq, previous, body, hash FROM event WHERE number > ? ORDER BY number"
        for row in self.stream(cursor, query, [after]):
            yield Entry(*row)

    def account(self, cursor: Any, name: str) -> Account | None:
        """An account with all its balances."""
        found = self.settings(cursor, name)
        if found is None:
            return None
        for row in self.execute(cursor, f"{BALANCE} WHERE dataset = ?", [name]).fetchall():
            found.balances[(row[1], row[2])] = balance_from(row)
        return found

    def settings(self, cursor: Any, name: str) -> Account | None:
        """An account without balances."""
        rows = self.execute(cursor, f"{ACCOUNT} WHERE name = ?", [name]).fetchall() if name != LEDGER else []
        return account_from(rows[0]) if rows else None

    def accounts(self, cursor: Any) -> list[str]:
        query = "SELECT name FROM dataset WHERE name <> '' ORDER BY name"
        return [row[0] for row in self.execute(cursor, query).fetchall()]

    def analysis(self, cursor: Any, key: str) -> Analysis | None:
        rows = self.analyses(cursor, [key]).fetchall()
        return analysis_from(rows[0]) if rows else None

    def everything(self, cursor: Any) -> State:
        """The whole state as the tables have it."""
        found = {name: self.account(cursor, name) for name in self.accounts(cursor)}
        state = State({name: account for name, account in found.items() if account is not None})
        for row in self.stream(cursor, ANALYSIS):
            state.analyses[row[0]] = analysis_from(row)
        return state

    def ends(self, cursor: Any) -> dict[str, tuple[int, str]]:
        """The end of every chain, as the tables have it."""
        rows = self.execute(cursor, "SELECT name, seq, head FROM dataset").fetchall()
        return {row[0]: (row[1], row[2]) for row in rows if row[1] > 0}
