"""Running a service: what it may listen on, and how it ends."""

from __future__ import annotations

import socket
from contextlib import closing

import uvicorn

from privloss.errors import InvalidInput
from privloss.ledger.ledger import Ledger
from privloss.service.app import make
from privloss.service.deadline import within
from privloss.service.settings import Settings
from privloss.service.tokens import Tokens


def check_exposed(settings: Settings, tokens: Tokens) -> None:
    """What other machines can reach must know its callers, and must not be read on the way."""
    if settings.loopback:
        return
    place = f"host = {settings.host!r}: can be reached from other machines"
    if not settings.tls and not settings.behind_proxy:
        raise InvalidInput(f"{place}; give --tls-cert and --tls-key, or --behind-proxy with the proxy's address.")
    if not tokens.active():
        raise InvalidInput(f"{place}, and nobody has a token; make one with: privloss token create")


def config(settings: Settings, ledger: Ledger) -> uvicorn.Config:
    return uvicorn.Config(
        make(ledger, settings),
        host=settings.host,
        port=settings.port,
        http=within(settings.receive_seconds),
        ws="none",
        h11_max_incomplete_event_size=settings.longest_headers,
        timeout_keep_alive=int(settings.keep_alive_seconds),
        timeout_graceful_shutdown=int(settings.grace_seconds),
        limit_concurrency=settings.connections,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        proxy_headers=bool(settings.behind_proxy),
        forwarded_allow_ips=list(settings.behind_proxy) or None,
        server_header=False,
        access_log=False,
        log_config=None,
        lifespan="on",
    )


def run(place: str | None, settings: Settings, create: bool = False) -> None:
    """Serve until told to end; then nothing new is taken, what runs is finished, and the ledger is closed last."""
    opened = Ledger.create(place, group=True) if create else Ledger(place, group=True)
    with closing(opened) as ledger:
        check_exposed(settings, Tokens(ledger.store))
        made = config(settings, ledger)
        with closing(made.bind_socket()) as listening:
            print(f"privloss: serving at {address(settings, listening)}", flush=True)
            uvicorn.Server(made).run(sockets=[listening])


def address(settings: Settings, listening: socket.socket) -> str:
    """Where it can be reached; the port may have been chosen by the system."""
    host = settings.host if ":" not in settings.host else f"[{settings.host.strip('[]')}]"
    return f"http{'s' if settings.tls else ''}://{host}:{listening.getsockname()[1]}"
