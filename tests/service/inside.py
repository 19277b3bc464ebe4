"""A service in this process: its routes asked without a network, its clock in the test's hands."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from typing import Any

import httpx
from httpx import Response
from starlette.applications import Starlette

from privloss.ledger.ledger import Ledger
from privloss.service.app import make
from privloss.service.settings import Settings
from privloss.service.tokens import Tokens
from privloss.service.workers import Workers

START = 1_800_000_000.0
DAY = 86400.0
GAUSSIAN = {"steps": [{"mechanism": "gaussian", "noise_multiplier": 10.0}]}


class Time:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


class Loop:
    """The event loop of an application, in a thread; any thread may ask."""

    def __init__(self, app: Starlette) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="service", daemon=True)
        self._thread.start()
        self._open = AsyncExitStack()
        self._does(self._begin(app))

    async def _begin(self, app: Starlette) -> None:
        await self._open.enter_async_context(app.router.lifespan_context(app))
        inner = httpx.ASGITransport(app, raise_app_exceptions=False, client=("127.0.0.1", 50000))
        self._client = await self._open.enter_async_context(
            httpx.AsyncClient(transport=inner, base_url="http://localhost", timeout=None)
        )

    def _does(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def request(self, method: str, path: str, **more: Any) -> Response:
        found: Response = self._does(self._client.request(method, path, **more))
        return found

    def close(self) -> None:
        self._does(self._open.aclose())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Client:
    """Asks in the name of one token."""

    def __init__(self, client: Loop, token: str | None) -> None:
        self.token = token
        self._client = client
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Response:
        """`body` as JSON; `content=` for other bytes, `headers=` for others beside the token's."""
        headers = {**self._headers, **more.pop("headers", {})}
        given = {} if body is None else {"json": body}
        return self._client.request(method, path, headers=headers, **given, **more)

    def get(self, path: str, **more: Any) -> Response:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Response:
        return self.ask("POST", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> Response:
        return self.ask("PUT", path, body, **more)

    # -- what tests do often --

    def reserve(self, key: str, cost: str = "1/11", datasets: tuple[str, ...] = ("census",), **more: Any) -> Response:
        return self.put(f"/v1/reservations/{key}", {"datasets": list(datasets), "cost": cost, **more})

    def start(self, key: str, run: str = "r" * 16, **more: Any) -> Response:
        return self.post(f"/v1/reservations/{key}/start", {"run": run, **more})

    def move(self, key: str, to: str) -> Response:
        return self.post(f"/v1/reservations/{key}/{to}")


class Service:
    """A running service with two datasets (census: pure 1, taxes: zCDP 1/2) and one token for each role.

    `alice` sees census and taxes, `bob` census only; `nobody` has no token.
    """

    def __init__(
        self, ledger: Ledger, settings: Settings, clock: Time, workers: Workers | None, bare: bool = False
    ) -> None:
        """`bare`: without the datasets."""
        self.ledger, self.clock = ledger, clock
        if not bare and not ledger.datasets():
            for name, currency, cap in (("census", "pure", "1"), ("taxes", "zcdp", "0.5")):
                ledger.add_dataset(name, adjacency="add-remove", unit="person")
                ledger.set_budget(name, currency=currency, cap=cap)
        self.app = make(ledger, settings, clock=clock, ticks=clock, workers=workers)
        self.services = self.app.state.services
        self.tokens = Tokens(ledger.store, clock)
        self.http = Loop(self.app)
        self.nobody = Client(self.http, None)
        self.alice = self.analyst("alice", "census", "taxes")
        self.bob = self.analyst("bob", "census")
        self.steward, self.auditor = self.token("steward"), self.token("auditor")

    def client(self, token: str | None) -> Client:
        return Client(self.http, token)

    def token(self, role: str, **more: Any) -> Client:
        return self.client(self.tokens.create(role, **more)[1])

    def analyst(self, name: str, *datasets: str, **more: Any) -> Client:
        return self.token("analyst", analyst=name, datasets=datasets or None, **more)

    def events(self) -> list[str]:
        """Everything in the history, as it is exported."""
        return list(self.ledger.export())

    def close(self) -> None:
        self.http.close()
        self.ledger.close()
