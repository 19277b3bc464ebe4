"""One browser for all tests of this folder, one service with a little history, and pages that notice what they must not
do: ask another host, open a dialog, break the content policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from privloss.ledger.ledger import Ledger
from privloss.service.tokens import Tokens
from tests.service.outside import Process, prepared
from tests.service.pages.browser.found import FLAGS, chromium
from tests.service.pages.test_hostile import HOSTILE, LINK

_PATIENCE = 30_000  # ms until a page that hangs is given up; no test waits for it
_POLICY = "document.addEventListener('securitypolicyviolation', e => console.error('policy', e.violatedDirective))"


@pytest.fixture(scope="package")  # while it is open a loop runs in this thread, where others' tests may need their own
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS])
        yield running
        running.close()


@dataclass
class Site:
    """A service in a process of its own, and a token for each person."""

    process: Process
    tokens: dict[str, str]
    ledger: Ledger

    @property
    def address(self) -> str:
        return self.process.place


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("site")
    place = str(home / "privloss.db")
    tokens = prepared(place)
    ledger = Ledger(place, actor="a steward")
    for number in range(4):
        key = f"alice/k{number}"
        ledger.reserve("taxes", cost="0.05", key=key, analyst="alice")
        ledger.start(key)
        ledger.commit(key)
    ledger.reserve("taxes", cost="0.1", key="alice/held", analyst="alice")
    for name in (HOSTILE, LINK):
        ledger.add_dataset(name, adjacency="add-remove", unit=HOSTILE, reason=HOSTILE)
        ledger.set_budget(name, currency="pure", cap="1", reason=LINK)
        ledger.reserve(name, cost="0.1", key=name, analyst=HOSTILE, reason=LINK, label=HOSTILE)
    ledger.freeze(LINK, True, reason=HOSTILE)
    hostile = {"role": "analyst", "analyst": HOSTILE.replace("/", "|")[:60], "datasets": None}
    tokens["hostile"] = Tokens(ledger.store).create(**hostile)[1]
    running = Process(place, home / "log")
    running.await_ready()
    yield Site(running, tokens, ledger)
    running.kill()
    ledger.close()


@dataclass
class Seen:
    """What the pages of one test did."""

    context: BrowserContext
    address: str
    page: Page
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        self.page.goto(self.address + path)
        return self.page

    def login(self, token: str) -> Page:
        self.go("/ui/login")
        self.page.fill("#token", token)
        self.page.click("main button")
        self.page.wait_for_url("**/ui/ledger")
        return self.page


@pytest.fixture
def at(browser: Browser, site: Site) -> Iterator[Callable[..., Seen]]:
    """Open a page: `at(width=360, scheme="dark")`. In the end nothing was asked of another host, and nothing said that
    a policy was broken."""
    made: list[Seen] = []

    def open_page(width: int = 1280, scheme: str = "light", strict: bool = True, **more: Any) -> Seen:
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, **more)  # type: ignore[arg-type]
        context.set_default_timeout(_PATIENCE)
        context.add_init_script(_POLICY)
        seen = Seen(context, site.address, context.new_page())
        context.on("request", lambda request: seen.asked.append(request.url))
        context.on("dialog", lambda dialog: (seen.said.append(f"dialog {dialog.message}"), dialog.dismiss()))
        context.on("weberror", lambda error: seen.said.append(str(error.error)))
        context.on("console", lambda told: _noted(seen, told.type, told.text))
        if strict:
            made.append(seen)
        return seen

    yield open_page
    for seen in made:
        assert [url for url in seen.asked if not url.startswith((seen.address + "/", "data:"))] == []
        assert seen.said == []
        seen.context.close()


def _noted(seen: Seen, kind: str, text: str) -> None:
    """Errors, but for answers that say no: those are looked at where they are meant."""
    if kind == "error" and not text.startswith("Failed to load resource: the server responded with"):
        seen.said.append(text)
