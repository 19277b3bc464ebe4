"""Coming in and going out."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from privloss.service.callers import failed
from privloss.service.pages.rendering import page
from privloss.service.pages.sessions import dropped, kept
from privloss.service.pages.visits import Visit

LOGIN, HOME = "/ui/login", "/ui/ledger"
_FORGET = {"clear-site-data": '"cookies", "storage"'}


def next_of(text: str) -> str:
    """Where to go after a login: a page of this service, or home."""
    inside = text.startswith("/ui/") and "\\" not in text and text.isprintable() and len(text) <= 300
    return text if inside and not text.startswith(LOGIN) else HOME


def show_login(visit: Visit) -> Response:
    if visit.session is not None:
        return RedirectResponse(next_of(visit.query.get("next", "")), 303)
    return page(visit, "login.html", problem="", next=next_of(visit.query.get("next", "")))


def login(visit: Visit) -> Response:
    """A new session, whatever session was there before."""
    token = visit.services.tokens.authenticate(visit.one("token").strip())
    if token is None:
        failed(visit.services, visit.scope)
        text = "This token is not known, was revoked or has expired."
        return page(visit, "login.html", 401, problem=text, next=next_of(visit.one("next")))
    if visit.drawn:
        visit.sessions.end(visit.drawn)
    drawn = visit.sessions.begin(token)
    return RedirectResponse(next_of(visit.one("next")), 303, {"set-cookie": kept(drawn)})


def logout(visit: Visit) -> Response:
    if visit.drawn:
        visit.sessions.end(visit.drawn)
    return RedirectResponse(LOGIN, 303, {"set-cookie": dropped(), **_FORGET})


def home(visit: Visit) -> Response:
    """The ledger for those who are known; the calculator for others, where they may use it."""
    calculates = visit.services.settings.public_calculator
    known = visit.session is not None
    return RedirectResponse(HOME if known else "/ui/calculator" if calculates else LOGIN, 303)
