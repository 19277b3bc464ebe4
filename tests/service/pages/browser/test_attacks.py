"""Other sites that try to use a browser that is logged in here (attacks 19, 21, 22)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Request

from tests.service.pages.browser.conftest import Seen, Site

Open = Callable[..., Seen]


@pytest.fixture
def evil() -> Iterator[Callable[[str], str]]:
    """Another site, on another host: `evil(html)` is the address of a page."""
    held = [""]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = held[0].encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    def page(html: str) -> str:
        held[0] = html
        return f"http://localhost:{server.server_port}/"  # the service is at 127.0.0.1

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield page
        server.shutdown()
        thread.join()


def test_what_a_browser_keeps(at: Open, site: Site) -> None:
    seen = at()
    page = seen.login(site.tokens["steward"])
    kept = seen.context.cookies()
    assert [(c["name"], c["secure"], c["httpOnly"], c["sameSite"], c["path"]) for c in kept] == [  # type: ignore[typeddict-item]
        ("__Host-privloss", True, True, "Strict", "/")
    ]
    assert page.evaluate("document.cookie") == ""
    before = kept[0]["value"]  # type: ignore[typeddict-item]
    page.click("text=Log out")
    page.wait_for_url("**/ui/login")
    assert seen.context.cookies() == []
    seen.login(site.tokens["steward"])
    assert seen.context.cookies()[0]["value"] != before  # type: ignore[typeddict-item]


def test_a_form_of_another_site_has_no_effect(at: Open, site: Site, evil: Callable[[str], str]) -> None:
    """Attack 19: a form that posts itself, and requests by a script, with everything a browser would add."""
    seen = at(strict=False)
    seen.login(site.tokens["steward"])
    sent: list[Request] = []
    seen.context.on("request", lambda request: sent.append(request) if request.url.startswith(site.address) else None)
    form = (
        f'<form method="post" action="{site.address}/ui/freeze"><input name="name" value="taxes">'
        '<input name="frozen" value="yes"><input name="reason" value="evil"></form>'
        "<script>document.forms[0].submit()</script>"
    )
    with seen.page.expect_response("**/ui/freeze") as answer:
        seen.page.goto(evil(form))
    assert answer.value.status == 403
    posted = [request for request in sent if request.method == "POST"]
    assert len(posted) == 1
    assert "cookie" not in posted[0].all_headers()
    assert not site.ledger.status("taxes")["frozen"]


@pytest.mark.parametrize("mode", ["cors", "no-cors"])
def test_a_script_of_another_site_reads_and_changes_nothing(
    at: Open, site: Site, evil: Callable[[str], str], mode: str
) -> None:
    seen = at(strict=False)
    seen.login(site.tokens["steward"])
    seen.page.goto(evil("<p>evil"))
    events = list(site.ledger.export())
    for path in ("/ui/ledger", "/ui/freeze", "/ui/verify", "/v1/datasets", "/v1/verify"):
        asked = """async ([url, method, mode]) => {
          try {
            const answer = await fetch(url, {method, mode, credentials: 'include', body: method === 'POST' ?
              new URLSearchParams({name: 'taxes', frozen: 'yes', reason: 'evil'}) : undefined});
            return [answer.type, answer.status, (await answer.text()).length];
          } catch (error) { return ['blocked', 0, 0]; } }"""
        for method in ("GET", "POST"):
            found = seen.page.evaluate(asked, [site.address + path, method, mode])
            assert found in (["blocked", 0, 0], ["opaque", 0, 0]), path
    assert list(site.ledger.export()) == events
    seen.context.close()


def test_no_page_can_be_framed(at: Open, site: Site, evil: Callable[[str], str]) -> None:
    """Attack 21."""
    seen = at(strict=False)
    seen.login(site.tokens["steward"])
    for path in ("/ui/ledger", "/ui/freeze?name=taxes", "/ui/calculator", "/ui/login"):
        with seen.page.expect_console_message(lambda told: "frame-ancestors" in told.text):
            seen.page.goto(evil(f'<iframe src="{site.address}{path}"></iframe>'))
        frame = seen.page.frames[1]
        assert "privloss" not in frame.content()
    seen.context.close()


def test_a_window_of_another_site_has_no_hold_on_ours(at: Open, site: Site, evil: Callable[[str], str]) -> None:
    seen = at(strict=False)
    seen.page.goto(evil(f'<a href="{site.address}/ui/login" target="_blank" rel="opener">x</a>'))
    with seen.context.expect_page() as opened:
        seen.page.click("a")
    opened.value.wait_for_load_state()
    assert opened.value.evaluate("window.opener") is None
    seen.context.close()
