"""A request of a browser on its way: what it brings, who sends it, and whether this site's own page made it do so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.types import Receive, Scope

from privloss.service.calls import Call
from privloss.service.pages.sessions import COOKIE, Session, Sessions
from privloss.service.problems import Problem, bad

Form = Mapping[str, list[str]]
_MOST_FIELDS, _LARGEST_PART = 2000, 2**20
_FORM = "application/x-www-form-urlencoded"
_PARTS = "multipart/form-data"


@dataclass
class Visit(Call):
    """A `Call` made by a person: what the form says, and the session."""

    form: Form = field(default_factory=dict)
    session: Session | None = None
    drawn: str = ""  # the cookie's session id
    scope: Scope = field(default_factory=dict)
    wants: str = ""  # the part of a page that is asked for; empty: all of it

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.services.ledger.store, self.services.tokens, self.services.clock)

    def one(self, name: str, default: str = "") -> str:
        """The last value of a field."""
        return (self.form.get(name) or [default])[-1]

    def all(self, name: str) -> list[str]:
        return [*self.form.get(name, ())]


def cookie(scope: Scope) -> str:
    """The session id that a browser sends; none if it sends two."""
    sent = [value for name, value in scope["headers"] if name == b"cookie"]
    pairs = [part.strip().partition("=") for each in sent for part in each.decode("latin-1").split(";")]
    found = [value for name, _, value in pairs if name == COOKIE]
    return found[0] if len(found) == 1 else ""


def query(raw: bytes, known: tuple[str, ...]) -> dict[str, str]:
    """The query; names that a page does not know are left out (people add some)."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=30)
    except ValueError:
        raise bad("the query cannot be read") from None
    found = {name: value for name, value in pairs if name in known}
    if not all(value.isprintable() and len(value) <= 200 for value in found.values()):
        raise bad("the query holds a value that is too long, or cannot be printed")
    return found


async def form(scope: Scope, receive: Receive) -> dict[str, list[str]]:
    """The fields of a form, files as their text."""
    kind = Headers(scope=scope).get("content-type", "").split(";")[0].strip().lower()
    if kind == _FORM:
        return _fields(await Request(scope, receive).body())
    if kind != _PARTS:
        raise Problem(415, "not-a-form", "the body must be a form")
    asked = Request(scope, receive)
    parser = MultiPartParser(
        asked.headers, asked.stream(), max_files=2, max_fields=_MOST_FIELDS, max_part_size=_LARGEST_PART
    )
    try:
        read = await parser.parse()
    except (MultiPartException, KeyError):  # the latter: it does not say what is between the parts
        raise bad("the form cannot be read") from None
    found: dict[str, list[str]] = {}
    try:
        for name, value in read.multi_items():
            found.setdefault(_text(name), []).append(_text(await _said(value)))
    finally:
        await read.close()
    return found


def _fields(body: bytes) -> dict[str, list[str]]:
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )  # a browser sends everything else percent-encoded
    except ValueError:
        raise bad("the form cannot be read") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(_text(name), []).append(_text(value))
    return found


async def _said(value: Any) -> str:
    if not isinstance(value, UploadFile):
        return str(value)
    try:
        return (await value.read()).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise bad("the file is not UTF-8 text") from None


def _text(value: str) -> str:
    if "\x00" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise bad("a field holds a character that no text has")
    return value


def check_origin(scope: Scope) -> None:
    """A form that changes anything comes from a page of this service: the browser says so itself (Sec-Fetch-Site), or,
    if it is too old for that, names the page's origin."""
    headers = Headers(scope=scope)
    site = headers.get("sec-fetch-site")
    if site is None:
        said = urlsplit(headers.get("origin", ""))
        own = said.scheme in ("http", "https") and said.netloc.lower() == headers.get("host", "").lower()
    else:
        own = site == "same-origin"
    if not own:
        raise Problem(403, "origin", "this form was not sent by a page of this service")
