"""The application: routes for programs below /v1, pages for people below /ui, health, metrics, and what every request
passes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, ExceptionHandler, Receive, Scope, Send

from privloss.ledger.ledger import Ledger
from privloss.service import health, routes
from privloss.service.api import Api
from privloss.service.callers import note
from privloss.service.entrance import Entrance
from privloss.service.openapi import openapi
from privloss.service.pages.site import PREFIX as PAGES
from privloss.service.pages.site import Site
from privloss.service.problems import Problem, problem_of
from privloss.service.services import Services
from privloss.service.settings import Settings
from privloss.service.workers import Workers


def make(
    ledger: Ledger,
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    ticks: Callable[[], float] = time.monotonic,
    workers: Workers | None = None,
) -> Starlette:
    """The application for a ledger that is open. What it opens itself (workers, threads) it closes when it ends; the
    ledger, and workers that were given to it, are its caller's to close, after that."""
    services = Services(ledger, settings, clock, ticks, workers)

    @asynccontextmanager
    async def living(_: Starlette) -> AsyncIterator[None]:
        services.open()
        try:
            yield
        finally:
            services.close()

    handlers: dict[int | type[Exception], ExceptionHandler] = dict.fromkeys((Exception, 404, 405, Problem), _failed)
    app = App(services, routes=_routes(services), lifespan=living, exception_handlers=handlers)
    app.router.redirect_slashes = False
    app.state.services = services
    return app


class App(Starlette):
    """The framework's application, behind what every request passes."""

    def __init__(self, services: Services, **options: Any) -> None:
        super().__init__(**options)
        self._services, self.api = services, Api(services)

    def build_middleware_stack(self) -> ASGIApp:
        inner = Programs(super().build_middleware_stack(), self.api)
        return Entrance(inner, self._services)


class Programs:
    """Hands what is below /v1 to the table of routes, before the framework has looked through its own."""

    def __init__(self, app: ASGIApp, api: Api) -> None:
        self._app, self._api = app, api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] == "http" and scope["path"].startswith(f"{routes.PREFIX}/")
        await (self._api if ours else self._app)(scope, receive, send)


def _routes(services: Services) -> list[BaseRoute]:
    return [
        Mount(PAGES, Site(services)),
        Route("/", _front),
        Route("/health/live", health.live),
        Route("/health/ready", health.ready),
        Route("/metrics", health.metrics),
        Route("/openapi.json", openapi),
    ]


async def _front(request: Request) -> Response:
    note(request.scope, route="/")
    return RedirectResponse(f"{PAGES}/", 303)


async def _failed(request: Request, error: Exception) -> Response:
    """The framework's own handlers repeat the input; these do not."""
    status = getattr(error, "status_code", 0)
    if status in (404, 405):
        error = Problem(status, "unknown-path" if status == 404 else "method", "there is nothing at this path")
    return problem_of(error).response()
