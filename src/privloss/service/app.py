"""The application: routes for programs below /v1, health, the document of the routes, and what every request passes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import privloss
from privloss.ledger.ledger import Ledger
from privloss.service import routes
from privloss.service.api import Api
from privloss.service.guard import Guard
from privloss.service.problems import Problem, problem_of
from privloss.service.services import Services
from privloss.service.settings import Settings


def make(ledger: Ledger, settings: Settings, *, clock: Callable[[], float] = time.time) -> FastAPI:
    """The application for a ledger that is open. What it opens itself (workers, threads) it closes when it ends; the
    ledger is its caller's to close, after that."""
    services = Services(ledger, settings, clock)

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        services.open()
        try:
            yield
        finally:
            services.close()

    app = FastAPI(
        title="privloss", version=privloss.__version__, lifespan=living,
        docs_url=None, redoc_url=None, openapi_url=None,  # the framework's pages load scripts from elsewhere
        exception_handlers={Exception: _failed, 404: _failed, 405: _failed, Problem: _failed},
    )  # fmt: skip
    app.state.services = services
    app.add_middleware(Guard, services=services)
    app.add_route("/health/live", _live)
    app.add_route("/health/ready", _ready)
    app.mount(routes.PREFIX, Api(services))
    return app


async def _live(request: Request) -> Response:
    return JSONResponse({"live": True})


async def _ready(request: Request) -> Response:
    """Whether it can answer: not starting, not ending, and the store answers."""
    services: Services = request.app.state.services
    ready = services.ready
    return JSONResponse({"ready": ready}, 200 if ready else 503)


async def _failed(request: Request, error: Exception) -> Response:
    """The framework's own handlers repeat the input; these do not."""
    status = getattr(error, "status_code", 0)
    if status in (404, 405):
        error = Problem(status, "unknown-path" if status == 404 else "method", "there is nothing at this path")
    return problem_of(error).response()
