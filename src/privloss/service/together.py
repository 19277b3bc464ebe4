"""Commands of many requests, handled together: one change of thread, one question for all their tokens, one commit.

What has come in at once, or while others were made durable, is handed to the ledger's writer, which reads it, decides
it, and answers when it is durable. Only what is plain is handled so: a small request of an analyst with a good token
that repeats an earlier one but for its key, or moves a key. Everything else is left, before it has had any effect, to
be handled alone: there it is told what is wrong with it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from starlette.responses import Response

from privloss.ledger.commands import Command
from privloss.ledger.ledger import unsettled
from privloss.ledger.stores.base import LedgerError
from privloss.ledger.stores.grouped import Found, GroupedStore
from privloss.service import api_spend
from privloss.service.callers import bearer, note
from privloss.service.calls import Call
from privloss.service.exchange import Exchange, response
from privloss.service.services import Services
from privloss.service.tokens import Token

_MOST, _LONGEST = 128, 4096  # requests that are handled together; bytes of a body
_Waiting = tuple[Exchange, "asyncio.Future[Response | None]"]


class _Asked(NamedTuple):
    """A request that is plain."""

    number: int  # among those handled together
    exchange: Exchange
    call: Call
    command: Command


class _Batch:
    """Requests that are handled together. It is open for more until the writer has time for it."""

    def __init__(self, services: Services, *waiting: _Waiting) -> None:
        self.clock = services.ledger.clock
        self._services, self._waiting = services, list(waiting)
        self._asked: list[_Asked] = []
        self._door, self._closed = threading.Lock(), False

    def joined(self, one: _Waiting) -> bool:
        """Whether it came in time."""
        with self._door:
            if self._closed or len(self._waiting) >= _MOST:
                return False
            self._waiting.append(one)
            return True

    def close(self) -> list[_Waiting]:
        with self._door:
            self._closed = True
            return self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def commands(self) -> Sequence[Command]:
        """In the writer's thread."""
        try:
            self._asked = self._plain([exchange for exchange, _ in self.close()])
        except Exception:  # the store does not answer: they are told so alone
            self._asked = []
        return [each.command for each in self._asked]

    def done(self, found: Sequence[Found]) -> None:
        answers: list[Response | None] = [None] * len(self._waiting)
        for each, one in zip(self._asked, found, strict=True):
            answers[each.number] = _answer(each, one)
        loop = self._waiting[0][1].get_loop()
        with suppress(RuntimeError):  # it has ended, and nobody waits
            loop.call_soon_threadsafe(_deliver, self._waiting, answers)

    def _plain(self, exchanges: Sequence[Exchange]) -> list[_Asked]:
        tokens = self._services.tokens.plain([_bearer(exchange) for exchange in exchanges])
        pairs, rates = zip(exchanges, tokens, strict=True), self._services.rates
        asked = [_asked(number, exchange, token) for number, (exchange, token) in enumerate(pairs)]
        return [each for each in asked if each is not None and rates.take(each.call.caller.token_id) == 0]


class Together:
    """Gathers requests in the event loop."""

    def __init__(self, services: Services) -> None:
        self._services, self._store = services, services.ledger.store
        self._open = _Batch(services)
        self._open.close()

    def takes(self, exchange: Exchange) -> bool:
        """Whether it may be plain; only a store that decides commands in groups gains by it."""
        if exchange.route.command is None or not isinstance(self._store, GroupedStore):
            return False
        return len(exchange.body) <= _LONGEST and not exchange.scope["query_string"]

    async def answered(self, exchange: Exchange) -> Response | None:
        """The answer; None if it must be handled alone."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Response | None] = loop.create_future()
        if not self._open.joined((exchange, found)):
            self._open = _Batch(self._services, (exchange, found))
            loop.call_soon(self._hand_over, self._open, 0)
        return await found

    def _hand_over(self, batch: _Batch, before: int) -> None:
        """As soon as a turn of the loop has brought no more: a larger group costs hardly more than a small one."""
        if before < len(batch) < _MOST:
            asyncio.get_running_loop().call_soon(self._hand_over, batch, len(batch))
            return
        assert isinstance(self._store, GroupedStore)
        try:
            self._store.hand_over(batch)
        except LedgerError:  # it was closed
            waiting = batch.close()
            _deliver(waiting, [None] * len(waiting))


def _asked(number: int, exchange: Exchange, token: Token | None) -> _Asked | None:
    make = exchange.route.command
    if token is None or make is None:
        return None
    try:
        call = exchange.begun(token.caller)
        command = make(call)
    except Exception:  # alone it will fail again, and be told why
        return None
    note(exchange.scope, token=token.id)
    return None if command is None else _Asked(number, exchange, call, command)


def _bearer(exchange: Exchange) -> str:
    given = [value for name, value in exchange.scope["headers"] if name == b"authorization"]
    return bearer(given[0]) if len(given) == 1 else ""


def _answer(asked: _Asked, outcome: Found) -> Response | None:
    try:
        if isinstance(outcome, BaseException):
            raise outcome
        if asked.command.claims and unsettled(outcome):  # priced for settings that may have changed
            return None
        return response(api_spend.done(asked.call, asked.command, outcome))
    except Exception as error:
        return asked.exchange.failed(error)


def _deliver(batch: Sequence[_Waiting], answers: Sequence[Response | None]) -> None:
    for (_, found), answer in zip(batch, answers, strict=True):
        if not found.done():
            found.set_result(answer)
