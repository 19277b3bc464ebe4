"""``privloss serve``: the ledger over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from privloss.cli.ledger_shared import Db
from privloss.errors import InvalidInput, MissingExtra
from privloss.ledger.stores.address import VARIABLE


def serve(
    db: Db = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0: a free one, which is printed.")] = 8080,
    host_name: Annotated[
        list[str] | None, typer.Option("--host-name", help="A name by which it is reached; may be given several times.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help="The certificate, as PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Its key.")] = None,
    behind_proxy: Annotated[
        list[str] | None, typer.Option("--behind-proxy", help="The address of a proxy that ends TLS and is believed.")
    ] = None,
    price_seconds: Annotated[float, typer.Option("--price-seconds", help="For one plan.")] = 10.0,
    price_workers: Annotated[int, typer.Option("--price-workers", help="Processes that price plans.")] = 2,
    rate: Annotated[float, typer.Option("--rate", help="Requests a second of one token.")] = 20.0,
    public_calculator: Annotated[
        bool, typer.Option("--public-calculator", help="The calculator needs no token, also from other machines.")
    ] = False,
    no_calculator: Annotated[bool, typer.Option("--no-calculator", help="It needs one, also on this machine.")] = False,
    metrics_port: Annotated[
        int | None, typer.Option("--metrics-port", help="Counters without a token, on this machine only.")
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Make the ledger if there is none (without --db this is done anyhow).")
    ] = False,
) -> None:
    """Serve the ledger over HTTP, until it is told to end."""
    if public_calculator and no_calculator:
        raise InvalidInput("--public-calculator: contradicts --no-calculator.")
    try:
        from privloss.service.serve import run
        from privloss.service.settings import Settings
    except ImportError as problem:
        raise MissingExtra(f"a service needs {problem.name}: pip install 'privloss[serve]'") from None
    settings = Settings(
        host=host, port=port, host_names=tuple(host_name or ()), tls_cert=tls_cert, tls_key=tls_key,
        behind_proxy=tuple(behind_proxy or ()), price_seconds=price_seconds, price_workers=price_workers, rate=rate,
        calculator="public" if public_calculator else "off" if no_calculator else "loopback",
        metrics_port=metrics_port,
    )  # fmt: skip
    run(db, settings, init or (db is None and VARIABLE not in os.environ))
