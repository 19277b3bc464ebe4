"""Tokens: made on the command line, shown once, kept as a hash.

A token is `pl_<id>_<secret>` with 256 random bits, so a plain SHA-256 keeps it: guessing is hopeless whatever the hash,
and a slow one would let strangers burn the processor. Every request reads the row, so a revocation holds from the next
request on, on every host.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import re
import secrets
import string
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from privloss.errors import InvalidInput
from privloss.ledger import names
from privloss.ledger.commands import Note
from privloss.ledger.commands import Token as Command
from privloss.ledger.stores.base import Store
from privloss.ledger.stores.rows import marks
from privloss.numerics import check
from privloss.service.access import ANALYST, ROLES, Caller

DAY = 86400.0
_SHAPE = re.compile(r"pl_([a-z0-9]{8})_([A-Za-z0-9_-]{43})", re.ASCII)
_LETTERS = string.ascii_lowercase + string.digits
_COLUMNS = "id, hash, role, analyst, datasets, note, created, expires, revoked, used"
_FIND = f"SELECT {_COLUMNS} FROM token WHERE id = ?"
_DUMMY = hashlib.sha256(b"no token").hexdigest()  # compared with where there is no such token: the same work
_LONGEST_ANALYST = 60


@dataclass(frozen=True)
class Token:
    """A token without its secret."""

    id: str
    role: str
    analyst: str
    datasets: tuple[str, ...] | None  # None: all
    note: str
    created: float
    expires: float
    revoked: float | None
    used: str  # the last day

    def active(self, now: float) -> bool:
        return self.revoked is None and now < self.expires

    @functools.cached_property
    def caller(self) -> Caller:
        seen = None if self.datasets is None else frozenset(self.datasets)
        return Caller(self.role, self.analyst, seen, self.id)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id, "role": self.role, "analyst": self.analyst or None,
            "datasets": None if self.datasets is None else list(self.datasets), "note": self.note,
            "created": _moment(self.created), "expires": _moment(self.expires),
            "revoked": None if self.revoked is None else _moment(self.revoked), "used": self.used or None,
        }  # fmt: skip


class Tokens:
    """The tokens of a ledger."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time, actor: str | None = None) -> None:
        self._store, self._clock = store, clock
        self._note = Note(names.name("actor", actor if actor is not None else names.whoever()))

    def create(
        self,
        role: str,
        *,
        analyst: str | None = None,
        datasets: Sequence[str] | None = (),
        days: float = 90,
        note: str = "",
    ) -> tuple[Token, str]:
        """A new token, and the text that its holder needs, which cannot be shown again. An analyst sees the
        `datasets` that are named, or all of them if it is None."""
        check.choice("role", role, ROLES)
        if (role == ANALYST) != (analyst is not None):
            raise InvalidInput(f"analyst = {analyst!r}: a token of role {ANALYST} has one, others have none.")
        if datasets and role != ANALYST:
            raise InvalidInput(f"datasets = {list(datasets)!r}: a token of role {role} sees all.")
        if role == ANALYST and datasets is not None and not datasets:
            raise InvalidInput("datasets: name those that the analyst may see, or say that it is all of them.")
        who = "" if analyst is None else names.person("analyst", analyst)
        if len(who) > _LONGEST_ANALYST or "/" in who:
            raise InvalidInput(f"analyst = {analyst!r}: must have at most {_LONGEST_ANALYST} characters, and no '/'.")
        seen = tuple(sorted({names.name("dataset", each) for each in datasets or ()})) or None
        lives = check.number("days", days, low=0, high=3660, above=True)
        said = names.note("note", note)
        made, secret = "".join(secrets.choice(_LETTERS) for _ in range(8)), secrets.token_urlsafe(32)
        now = self._clock()
        token = Token(made, role, who, seen, said, now, now + lives * DAY, None, "")
        text = f"pl_{made}_{secret}"
        self._tell(token, revoked=False)
        values = (made, digest(text), role, who, json.dumps(seen), said, now, token.expires, None, "")
        with self._store.transaction() as cursor:
            marks = ", ".join("?" * len(values))
            self._store.execute(cursor, f"INSERT INTO token ({_COLUMNS}) VALUES ({marks})", values)
        return token, text

    def all(self) -> list[Token]:
        return [_token(row) for row in self._store.look(f"SELECT {_COLUMNS} FROM token ORDER BY created, id")]

    def get(self, token_id: str) -> Token | None:
        rows = self._store.look(_FIND, [token_id])
        return _token(rows[0]) if rows else None

    def revoke(self, token_id: str) -> Token:
        """From the next request on, sessions of pages included."""
        known = self.get(token_id)
        if known is None:
            raise InvalidInput(f"id = {token_id!r}: there is no such token; privloss token list shows them.")
        if known.revoked is not None:
            return known
        with self._store.transaction() as cursor:
            now, query = self._clock(), "UPDATE token SET revoked = ? WHERE id = ? AND revoked IS NULL"
            self._store.execute(cursor, query, [now, token_id])
            self._store.execute(cursor, "DELETE FROM session WHERE token = ?", [token_id])
        found = replace(known, revoked=now)
        self._tell(found, revoked=True)
        return found

    def _tell(self, token: Token, revoked: bool) -> None:
        """Who may act is history, so it stands in the events, chained like these. An event without a token may be left
        by a crash, never a token without its event."""
        facts = {"id": token.id, "role": token.role, "analyst": token.analyst, "datasets": token.datasets}
        if token.role == ANALYST and token.datasets is None:
            facts["datasets"] = "all"
        said = {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items() if value}
        self._store.run(Command(revoked, said, self._note), self._clock)

    def active(self) -> bool:
        """Whether anybody could come in."""
        return any(token.active(self._clock()) for token in self.all())

    def authenticate(self, text: str) -> Token | None:
        """The token that a text is, if it is one, is not revoked and has not expired."""
        shape = _SHAPE.fullmatch(text)
        rows = self._store.look(_FIND, [shape[1] if shape else "-"])
        token, now = _holds(text, rows[0] if rows else None), self._clock()
        if token is None or not token.active(now):
            return None
        if token.used != _day(now):
            with self._store.transaction() as cursor:
                self._store.execute(cursor, "UPDATE token SET used = ? WHERE id = ?", [_day(now), token.id])
        return token

    def plain(self, texts: Sequence[str]) -> list[Token | None]:
        """The same for many, by one question; None also for a token that is used for the first time today."""
        shapes = {text: _SHAPE.fullmatch(text) for text in texts}
        asked = sorted({shape[1] for shape in shapes.values() if shape}) or ["-"]
        rows, now = {row[0]: row for row in self._store.look(_find_all(len(asked)), asked)}, self._clock()
        today, found = _day(now), dict[str, Token | None]()
        for text, shape in shapes.items():
            token = _holds(text, rows.get(shape[1]) if shape else None)
            found[text] = token if token is not None and token.active(now) and token.used == today else None
        return [found[text] for text in texts]


@functools.lru_cache(maxsize=256)
def _find_all(count: int) -> str:
    return f"SELECT {_COLUMNS} FROM token WHERE id IN ({marks(range(count))})"


def _holds(text: str, row: Any) -> Token | None:
    """The token of a row, if the text is its secret. Without a row the work is the same."""
    same = hmac.compare_digest(digest(text), row[1] if row else _DUMMY)
    return _token(row) if row and same else None


def _day(now: float) -> str:
    return _date(int(now // DAY))


@functools.lru_cache(maxsize=2)
def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY, UTC).date().isoformat()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: Any) -> Token:
    return _read(tuple(row))


@functools.lru_cache(maxsize=1024)  # of what was read just now: whether it has changed is seen by reading
def _read(row: tuple[Any, ...]) -> Token:
    seen = json.loads(row[4])
    return Token(row[0], row[2], row[3], None if seen is None else tuple(seen), row[5], row[6], row[7], row[8], row[9])


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
