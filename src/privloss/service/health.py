"""Whether a service lives, whether it can answer, and its counters."""

from __future__ import annotations

import asyncio
import json

from starlette.requests import Request
from starlette.responses import Response

from privloss.service import metrics as counted
from privloss.service.access import demand
from privloss.service.callers import caller_of, note
from privloss.service.problems import problem_of
from privloss.service.services import Services


def _answer(status: int, **body: bool) -> Response:
    return Response(json.dumps(body), status, media_type="application/json")


async def live(request: Request) -> Response:
    note(request.scope, route="/health/live")
    return _answer(200, live=True)


async def ready(request: Request) -> Response:
    """Whether it can answer: not starting, not ending, workers warm, and the store answers."""
    note(request.scope, route="/health/ready")
    services: Services = request.app.state.services
    found = services.ready and await asyncio.get_running_loop().run_in_executor(services.looks, services.answers)
    return _answer(200 if found else 503, ready=found)


async def metrics(request: Request) -> Response:
    """With an auditor's token; on a port of its own without (`serve`)."""
    note(request.scope, route="/metrics")
    services: Services = request.app.state.services

    def found() -> Response:
        try:
            demand(caller_of(services, request.scope, "metrics"), "metrics")
        except Exception as error:
            return problem_of(error).response()
        return Response(services.metrics.text(), headers={"content-type": counted.MEDIA})

    return await asyncio.get_running_loop().run_in_executor(services.looks, found)
