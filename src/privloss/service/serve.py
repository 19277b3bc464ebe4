"""Running a service: what it may listen on, and how it ends."""

from __future__ import annotations

import gc
import signal
import socket
from contextlib import closing
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from privloss.errors import InvalidInput
from privloss.ledger.ledger import Ledger
from privloss.ledger.stores.address import open_store
from privloss.service.app import make
from privloss.service.counted import on_port
from privloss.service.deadline import within
from privloss.service.guard import not_http
from privloss.service.log import to_stderr
from privloss.service.services import Services
from privloss.service.settings import Settings
from privloss.service.tokens import Tokens

_BACKLOG = 2048


def check_exposed(settings: Settings, tokens: Tokens) -> None:
    """What other machines can reach must know its callers, and must not be read on the way."""
    if settings.loopback:
        return
    place = f"host = {settings.host!r}: can be reached from other machines"
    if not settings.tls and not settings.behind_proxy:
        raise InvalidInput(f"{place}; give --tls-cert and --tls-key, or --behind-proxy with the proxy's address.")
    if not tokens.active():
        raise InvalidInput(f"{place}, and nobody has a token; make one with: privloss token create")


def config(settings: Settings, app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=within(settings, not_http(settings)),
        loop="asyncio",  # uvloop, if it happened to be installed, would change handshakes and gain nothing
        ws="none",
        timeout_keep_alive=int(settings.keep_alive_seconds),
        timeout_graceful_shutdown=int(settings.grace_seconds),
        proxy_headers=bool(settings.behind_proxy),
        forwarded_allow_ips=list(settings.behind_proxy) or None,
        server_header=False,
        access_log=False,
        log_config=None,
        lifespan="on",
    )


class Server(uvicorn.Server):
    """One that says it is not ready as soon as it is told to end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        services: Services = self.config.app.state.services  # type: ignore[union-attr]
        services.end()
        super().handle_exit(sig, frame)


def run(place: str | None, settings: Settings, create: bool = False) -> None:
    """Serve until told to end; then nothing new is taken, what runs is finished, and the ledger is closed last."""
    with closing(Ledger(store=open_store(place, create, group=True))) as ledger:
        check_exposed(settings, Tokens(ledger.store))
        to_stderr()
        app = make(ledger, settings)
        made = config(settings, app)
        for each in (signal.SIGTERM, signal.SIGINT):  # the server raises them once more when it has ended
            signal.signal(each, lambda number, frame: None)
        with closing(made.bind_socket()) as listening, on_port(app.state.services.metrics, settings.metrics_port):
            listening.listen(_BACKLOG)  # from now on callers wait, and are not refused
            print(f"privloss: serving at {address(settings, listening)}", flush=True)
            gc.collect()
            gc.freeze()  # what is there stays: it need not be looked through again and again
            Server(made).run(sockets=[listening])


def address(settings: Settings, listening: socket.socket) -> str:
    """Where it can be reached; the port may have been chosen by the system."""
    host = settings.host if ":" not in settings.host else f"[{settings.host.strip('[]')}]"
    return f"http{'s' if settings.tls else ''}://{host}:{listening.getsockname()[1]}"
