"""Asking the workers on behalf of a caller, within the time of a processor that the caller has."""

from __future__ import annotations

import math
import time
from typing import Any

from starlette.types import Scope

from privloss.service.access import Caller
from privloss.service.callers import address
from privloss.service.problems import Problem
from privloss.service.services import Services
from privloss.service.workers import Done, Job


async def worked(services: Services, scope: Scope, job: Job, arguments: tuple[Any, ...], caller: Caller) -> Done:
    """What a worker finds; `Done.value` gives it, or raises what it is told as. A caller without a token counts by its
    address. What a job uses is known only afterwards, so it is owed: the next has to wait until it is paid."""
    who = caller.token_id or f"at {address(scope)}"
    wait = services.pricing.wait(who)
    if wait > 0 and not services.workers.knows(job, arguments):
        text = f"too much pricing in the last minute; ask again in {math.ceil(wait)} s"
        raise Problem(429, "rate", text, {"Retry-After": str(math.ceil(wait))})
    began = time.perf_counter()
    with services.metrics.pricing.track_inprogress():
        done = await services.workers.done(job, arguments, who)
    services.metrics.priced.observe(time.perf_counter() - began)
    services.metrics.killed.inc(done.killed)
    services.pricing.owe(who, done.seconds)
    return done
