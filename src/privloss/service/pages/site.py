"""The pages as one ASGI application: which there are, and the way of a request through them.

Like the API, a request is one hop: the event loop reads the form, a thread finds the session, decides and draws; what
only a worker may compute is waited for in the loop, and the thread begins again with what it has found. When a browser
has gone away meanwhile (a newer question overtakes an older one), its worker is given back at once.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from privloss.service import shown
from privloss.service.access import ANYBODY, NOBODY, Caller, demand
from privloss.service.callers import address, note
from privloss.service.calls import Needs
from privloss.service.pages import books, calculator, doors, reserving, stewarding
from privloss.service.pages.rendering import FILES, STATIC, page
from privloss.service.pages.sessions import Session, Sessions
from privloss.service.pages.visits import Visit, check_origin, cookie, form, query
from privloss.service.problems import Problem, problem_of
from privloss.service.services import Services
from privloss.service.workers import Done
from privloss.service.working import worked

PREFIX = "/ui"
_MOST_ROUNDS = 60  # of workers for one page
_ANYBODY = ""  # the action of a page for everybody


@dataclass(frozen=True)
class Page:
    """One method on one path; its action stands in the table of `access`."""

    method: str
    path: str
    action: str
    handler: Callable[[Visit], Response]
    query: tuple[str, ...] = ()


_HISTORY = ("name", "kind", "analyst", "key", "from", "to", "page", "before", "done")
PAGES: tuple[Page, ...] = (
    Page("GET", "/", _ANYBODY, doors.home),
    Page("GET", "/login", _ANYBODY, doors.show_login, ("next",)),
    Page("POST", "/login", _ANYBODY, doors.login),
    Page("POST", "/logout", _ANYBODY, doors.logout),
    Page("GET", "/calculator", "calculate", calculator.show),
    Page("POST", "/calculator", "calculate", calculator.ask),
    Page("POST", "/plan.json", "calculate", calculator.plan_file),
    Page("POST", "/certificate.json", "calculate", calculator.certificate_file),
    Page("POST", "/reserve", "reserve", reserving.reserve),
    Page("POST", "/void", "void", reserving.give_back),
    Page("GET", "/ledger", "status", books.ledger),
    Page("GET", "/dataset", "status", books.dataset, _HISTORY),
    Page("GET", "/history.csv", "history", books.history_csv, _HISTORY),
    Page("GET", "/freeze", "freeze", stewarding.show_freeze, ("name",)),
    Page("POST", "/freeze", "freeze", stewarding.freeze),
    Page("POST", "/verify", "verify", stewarding.verify),
)
_BY_PATH = {(each.method, PREFIX + each.path): each for each in PAGES}


class Site:
    """Serves everything below /ui."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sessions = Sessions(services.ledger.store, services.tokens, services.clock)
        self._running = 0  # in threads, or waiting for one

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["raw_path"].split(b"?")[0].decode("latin-1")
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method == "GET" and path in FILES:
            note(scope, route=STATIC)
            await FILES[path].response()(scope, receive, send)
            return
        exchange = _Exchange(self._services, self._sessions, scope)
        try:
            exchange.page = _found(method, path)
            note(scope, route=path)
            if method == "POST":
                check_origin(scope)
                exchange.form = await form(scope, receive)
            response = await self._answered(exchange, receive)
        except Exception as error:
            response = await asyncio.get_running_loop().run_in_executor(
                self._services.looks, exchange.failed, problem_of(error), error
            )
        await response(scope, receive, send)

    async def _answered(self, exchange: _Exchange, receive: Receive) -> Response:
        for _ in range(_MOST_ROUNDS):
            found = await self._in_thread(exchange)
            if isinstance(found, Response):
                return found
            done = await _while_there(self._services, exchange, found, receive)
            exchange.visit.found[self._services.workers.name_of(found.job, found.arguments)] = done
        raise Problem(503, "busy", "the settings of the datasets go on changing; ask again", {"Retry-After": "1"})

    async def _in_thread(self, exchange: _Exchange) -> Response | Needs:
        settings, loop = self._services.settings, asyncio.get_running_loop()
        if self._running >= settings.threads + settings.waiting:
            raise Problem(503, "busy", "too many requests are waiting; ask again", {"Retry-After": "1"})
        self._running += 1  # only the event loop counts
        try:
            return await loop.run_in_executor(self._services.threads, exchange.handle)
        finally:
            self._running -= 1


async def _while_there(services: Services, exchange: _Exchange, needs: Needs, receive: Receive) -> Done:
    """What a worker finds, unless the browser goes away before; what was used until then is owed all the same."""
    began = time.monotonic()
    work = asyncio.ensure_future(worked(services, exchange.scope, needs.job, needs.arguments, exchange.caller))
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return _told(work)
    finally:
        gone.cancel()
        work.cancel()
    services.pricing.owe(exchange.caller.token_id or f"at {address(exchange.scope)}", time.monotonic() - began)
    raise Problem(400, "gone", "the browser went away before the answer")


def _told(work: asyncio.Future[Done]) -> Done:
    """What was found. Where there is no time for it now, that is said where it would have stood: the rest of the page
    has what it needs."""
    error = work.exception()
    if isinstance(error, Problem) and error.status in (429, 503):
        return Done(problem=error)
    return work.result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _found(method: str, path: str) -> Page:
    found = _BY_PATH.get((method, path))
    if found is not None:
        return found
    other = "POST" if method == "GET" else "GET"
    if (other, path) in _BY_PATH:
        raise Problem(405, "method", "this page is asked for in another way", {"Allow": other})
    raise Problem(404, "unknown-path", "there is no such page")


class _Exchange:
    """One request, and what is known of it so far."""

    def __init__(self, services: Services, sessions: Sessions, scope: Scope) -> None:
        self.services, self._sessions, self.scope = services, sessions, scope
        self.page: Page | None = None
        self.form: dict[str, list[str]] = {}
        self.caller: Caller = ANYBODY
        self.session: Session | None = None
        self.visit = Visit(services, ANYBODY, {}, {}, None)
        self._begun = False

    def handle(self) -> Response | Needs:
        """In a thread."""
        assert self.page is not None
        if not self._begun:
            self._begin(self.page)
            self._begun = True
        try:
            return self.page.handler(self.visit)
        except Needs as needs:
            return needs

    def _begin(self, page: Page) -> None:
        drawn = cookie(self.scope)
        self.session = self._sessions.find(drawn) if drawn else None
        if self.session is not None:
            self.caller = self.session.token.caller
            note(self.scope, token=self.session.token.id)
        self.visit = Visit(
            self.services, self.caller, {}, query(self.scope["query_string"], page.query), None, form=self.form,
            session=self.session, drawn=drawn, scope=self.scope, wants=(self.form.get("part") or [""])[-1],
        )  # fmt: skip
        wait = self.services.rates.take(self.caller.token_id or f"at {address(self.scope)}")
        if wait > 0:
            again = {"Retry-After": str(math.ceil(wait))}
            raise Problem(429, "rate", f"too many requests; ask again in {math.ceil(wait)} s", again)
        if page.action:
            demand(self.caller, page.action)
            if self.caller.role == NOBODY and not self.services.settings.public_calculator:
                raise Problem(401, "token", "log in to use the calculator")
        if page.method == "POST" and self.session is not None and not self.session.wrote(self.visit.one("form_token")):
            raise Problem(403, "form", "this form belongs to another session; open the page again")

    def failed(self, problem: Problem, error: Exception) -> Response:
        """A page, or a part of one, that says so. Who is not logged in is asked to."""
        note(self.scope, reason=problem.reason)
        if problem.status == 500:
            note(self.scope, error=error)
        if problem.status == 401 and self.scope["method"] in ("GET", "HEAD"):
            asked = self.scope["raw_path"].decode("latin-1").split("?")[0]
            raw = self.scope["query_string"].decode("latin-1")
            return RedirectResponse(f"{doors.LOGIN}?next={quote(asked + ('?' + raw if raw else ''), safe='')}", 303)
        shown.problem(problem, self.caller)
        text = problem.text
        if self.caller.is_analyst:
            text = text.replace(f"'{self.caller.analyst}/", "'")
        if problem.status == 401:
            text = "Your session has ended. Log in again to go on."
        template = "parts/problem.html" if self.visit.wants else "problem.html"
        return page(self.visit, template, problem.status, problem.headers, problem=problem, text=text)
