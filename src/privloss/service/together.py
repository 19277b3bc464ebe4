"""Commands of many requests, handled together: one change of thread, one question for all their tokens, one commit.

What has come in at once, or while others were made durable, is handed to the ledger's writer, which reads it, decides
it, and answers when it is durable. Only what is plain is handled so: a small request of an analyst with a good token
that repeats an earlier one but for its key, or moves a key. Everything else is left, before it has had any effect, to
be handled alone: there it is told what is wrong with it.
"""

from __future__ import annotations

import asyncio
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
    """Requests that are handled together, as the writer sees them."""

    def __init__(self, services: Services, waiting: Sequence[_Waiting]) -> None:
        self.clock = services.ledger.clock
        self._services, self._waiting = services, waiting
        self._asked: list[_Asked] = []

    def commands(self) -> Sequence[Command]:
        try:
            self._asked = self._plain([exchange for exchange, _ in self._waiting])
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
        self._arrived: list[_Waiting] = []
        self._seen = 0  # of them, a turn of the loop ago

    def takes(self, exchange: Exchange) -> bool:
        """Whether it may be plain; only a store that decides commands in groups gains by it."""
        if exchange.route.command is None or not isinstance(self._store, GroupedStore):
            return False
        return len(exchange.body) <= _LONGEST and not exchange.scope["query_string"]

    async def answered(self, exchange: Exchange) -> Response | None:
        """The answer; None if it must be handled alone."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Response | None] = loop.create_future()
        self._arrived.append((exchange, found))
        if len(self._arrived) == 1:
            loop.call_soon(self._hand_over)
        return await found

    def _hand_over(self) -> None:
        """As soon as a turn of the loop has brought no more: a larger group costs hardly more than a small one."""
        if len(self._arrived) > self._seen and len(self._arrived) < _MOST:
            self._seen = len(self._arrived)
            asyncio.get_running_loop().call_soon(self._hand_over)
            return
        arrived, self._arrived, self._seen = self._arrived, [], 0
        assert isinstance(self._store, GroupedStore)
        for first in range(0, len(arrived), _MOST):
            batch = arrived[first : first + _MOST]
            try:
                self._store.hand_over(_Batch(self._services, batch))
            except LedgerError:  # it was closed
                _deliver(batch, [None] * len(batch))


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
