"""Asking until there is an answer, as far as that is safe.

A question that takes effect once however often it is asked (a key is charged once, a start knows its run) is asked
again after a lost answer. Others are asked again only if the service cannot have acted on them.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from privloss.client.connection import Broken, Connections, NotSent, Reply
from privloss.client.problems import body_of, problem_of
from privloss.ledger.stores.base import LedgerError, LostReply, NoAnswer

_FIRST, _LONGEST = 0.05, 2.0  # seconds between two attempts, each twice the one before
_NOT_NOW = (429, 503)  # and nothing was done
_IN_BETWEEN = (502, 504)  # a proxy does not know


@dataclass(frozen=True)
class Question:
    """A request; `repeatable` if it may be asked again when nobody knows whether it took effect."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    repeatable: bool = True


@dataclass(frozen=True)
class Patience:
    """How long to go on, in seconds, and by what clock."""

    seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = field(default=random.random)


class Asking:
    """Questions to one service, with one token."""

    def __init__(self, connections: Connections, shown: str, token: str, patience: Patience) -> None:
        self._connections, self._shown, self._patience = connections, shown, patience
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    def ask(self, question: Question) -> Any:
        """What was answered; otherwise the exception that says why not."""
        body = None if question.body is None else json.dumps(question.body, allow_nan=False).encode()
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        until, pause, maybe = self._patience.clock() + self._patience.seconds, _FIRST, False
        while True:
            asked = 0.0
            try:
                reply = self._connections.ask(
                    question.method, question.path, body, headers, fresh=not question.repeatable
                )
            except NotSent as problem:
                why = str(problem)
            except Broken as problem:
                why, maybe = str(problem), True
            else:
                if 200 <= reply.status < 300:
                    return body_of(reply)  # an object; every route answers with one
                if reply.status not in (*_NOT_NOW, *_IN_BETWEEN):
                    raise problem_of(reply)
                why, asked = str(problem_of(reply)), _retry_after(reply)
                maybe = maybe or reply.status in _IN_BETWEEN
            wait = max(pause * (0.5 + self._patience.draw() / 2), asked)
            if (maybe and not question.repeatable) or self._patience.clock() + wait > until:
                raise self._gave_up(why, maybe)
            self._patience.sleep(wait)
            pause = min(2 * pause, _LONGEST)

    def lines(self, path: str) -> Iterator[bytes]:
        """A long answer, line by line; one that is cut off is an error."""
        try:
            with self._connections.lines(path, self._headers) as (response, lines):
                if response.status != 200:
                    headers = {name.lower(): text for name, text in response.getheaders()}
                    raise problem_of(Reply(response.status, headers, b"\n".join(lines)))
                yield from lines
        except (NotSent, Broken) as problem:
            raise self._gave_up(str(problem), False) from None

    def sleep(self, seconds: float) -> None:
        self._patience.sleep(seconds)

    def close(self) -> None:
        self._connections.close()

    def _gave_up(self, why: str, maybe: bool) -> LedgerError:
        if maybe:
            return LostReply(f"db = {self._shown!r}: {why}; it is not known whether it took effect.")
        return NoAnswer(f"db = {self._shown!r}: does not answer ({why}).")


def _retry_after(reply: Reply) -> float:
    """Seconds, or a date, as the service asks; 0 if it does not say."""
    text = reply.headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(date.timestamp() - time.time(), 0.0)
