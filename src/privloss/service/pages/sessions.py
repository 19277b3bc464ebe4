"""Sessions of the pages: begun with a token, known by a random cookie, kept as a hash in the ledger's database.

The database, because several hosts may serve one ledger. A session ends after half an hour without a request, after
eight hours in any case, and with its token: the token's row is read at every request. A login always draws a new id, so
that nobody can prepare one for somebody else.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from privloss.ledger.stores.base import Store
from privloss.service.tokens import Token, Tokens

COOKIE = "__Host-privloss"
_KEEP = f"{COOKIE}={{}}; Path=/; Secure; HttpOnly; SameSite=Strict"
IDLE, LONGEST = 30 * 60.0, 8 * 3600.0  # seconds
_SEEN_EVERY = 60.0  # seconds: how exactly the last request is known
_SIZE = 43  # characters of 256 bits
_FIND = "SELECT token, form, created, seen FROM session WHERE hash = ?"


@dataclass(frozen=True)
class Session:
    """Who is logged in, and what each form must bring along."""

    token: Token
    form: str

    def wrote(self, text: str) -> bool:
        """Whether a form was drawn for this session."""
        return hmac.compare_digest(self.form.encode(), text.encode("utf-8", "surrogatepass"))


class Sessions:
    """The sessions of a ledger's pages."""

    def __init__(self, store: Store, tokens: Tokens, clock: Callable[[], float]) -> None:
        self._store, self._tokens, self._clock = store, tokens, clock

    def begin(self, token: Token) -> str:
        """A new session; its id, which only the browser keeps."""
        drawn, form, now = secrets.token_urlsafe(32), secrets.token_urlsafe(32), self._clock()
        with self._store.transaction() as cursor:
            old = [now - LONGEST, now - IDLE]
            self._store.execute(cursor, "DELETE FROM session WHERE created <= ? OR seen <= ?", old)
            values = [_hash(drawn), token.id, form, now, now]
            query = "INSERT INTO session (hash, token, form, created, seen) VALUES (?, ?, ?, ?, ?)"
            self._store.execute(cursor, query, values)
        return drawn

    def find(self, drawn: str) -> Session | None:
        """The session of a cookie, if it has not ended."""
        rows = self._store.look(_FIND, [_hash(drawn)]) if len(drawn) == _SIZE else []
        if not rows:
            return None
        token_id, form, created, seen = rows[0]
        token, now = self._tokens.get(token_id), self._clock()
        if token is None or not token.active(now) or now >= created + LONGEST or now >= seen + IDLE:
            return None
        if now >= seen + _SEEN_EVERY:
            with self._store.transaction() as cursor:
                self._store.execute(cursor, "UPDATE session SET seen = ? WHERE hash = ?", [now, _hash(drawn)])
        return Session(token, form)

    def end(self, drawn: str) -> None:
        with self._store.transaction() as cursor:
            self._store.execute(cursor, "DELETE FROM session WHERE hash = ?", [_hash(drawn)])


def kept(drawn: str) -> str:
    """The header that makes a browser keep a session, for as long as it is open."""
    return _KEEP.format(drawn)


def dropped() -> str:
    return f"{_KEEP.format('')}; Max-Age=0"


def _hash(drawn: str) -> str:
    return hashlib.sha256(drawn.encode("utf-8", "surrogatepass")).hexdigest()
