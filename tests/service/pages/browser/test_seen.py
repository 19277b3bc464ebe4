"""Every page as people see it: no violation that axe finds, in light and dark, on a phone and on paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.service.pages.browser.conftest import Seen, Site
from tests.service.pages.test_hostile import HOSTILE, LINK

Open = Callable[..., Seen]
_SMALL = """() => [...document.querySelectorAll('a, button, input, select, textarea, summary')]
  .filter(e => e.checkVisibility() && e.type !== 'hidden' && !e.matches('p a, li a, td a, .skip'))
  .map(e => [e.outerHTML.slice(0, 80), (e.closest('label.check') ?? e).getBoundingClientRect()])
  .filter(([, r]) => r.width < 24 || r.height < 24).map(([t]) => t)"""
_STRUCTURE = """() => ['main', 'header', 'footer', 'nav[aria-label]', 'h1', 'a.skip']
  .map(s => [s, document.querySelectorAll(s).length])"""


def pages(seen: Seen, site: Site) -> Iterator[Page]:
    """Every page, as a visitor, a steward and an analyst; closed parts opened."""
    for path in ("/ui/calculator", "/ui/login", "/ui/nothing"):
        yield seen.go(path)
    seen.login(site.tokens["steward"])
    for path in (
        "/ui/ledger",
        "/ui/dataset?name=taxes",
        "/ui/dataset?name=taxes&kind=refused",
        "/ui/freeze?name=taxes",
    ):
        yield seen.go(path)
    page = seen.page
    page.click("text=Log out")
    page.wait_for_url("**/ui/login")
    page.fill("#token", "wrong")
    page.click("main button")
    page.wait_for_selector("#wrong")
    yield page
    seen.login(site.tokens["alice"])
    page = seen.go("/ui/calculator")
    page.check("input[name=dataset][value=taxes]")
    expect(page.locator("#fit li")).to_have_count(1)
    page.click("button[value=calibrate]")
    expect(page.locator("#calibrated strong")).to_have_count(1)
    page.click("#add")
    expect(page.locator("#steps fieldset")).to_have_count(2)
    yield page


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 320)])
def test_nothing_stands_in_anybodys_way(at: Open, site: Site, scheme: str, width: int) -> None:
    seen, axe = at(width=width, scheme=scheme, reduced_motion="reduce"), Axe()
    for page in pages(seen, site):
        page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
        found = axe.run(page)
        assert found.violations_count == 0, f"{page.url} {scheme}\n{found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, page.url
        assert page.evaluate(_SMALL) == [], page.url
        assert dict(page.evaluate(_STRUCTURE)) == dict.fromkeys(
            ("main", "header", "footer", "nav[aria-label]", "h1", "a.skip"), 1
        )
        assert page.title().endswith(" - privloss")


def test_axe_itself_would_find_something(at: Open) -> None:
    page = at().go("/ui/login")
    page.evaluate("document.querySelector('label').remove()")
    assert Axe().run(page).violations_count > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_reader(at: Open, scheme: str) -> None:
    page = at(scheme=scheme).go("/ui/login")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(18, 21, 26)") == (scheme == "dark")


def test_on_paper_there_is_the_answer_and_no_button(at: Open) -> None:
    page = at().go("/ui/calculator")
    page.emulate_media(media="print")
    assert page.evaluate("[...document.querySelectorAll('button, nav')].filter(e => e.checkVisibility()).length") == 0
    assert page.locator("#answer .number").is_visible()


def test_hostile_text_is_only_text(at: Open, site: Site) -> None:
    """Attack 14: on every page, no dialog and no broken policy (the fixture looks)."""
    seen = at()
    for token in ("steward", "hostile"):
        seen.context.clear_cookies()
        seen.login(site.tokens[token])
        for name in (HOSTILE, LINK):
            for path in ("/ui/dataset?name=", "/ui/freeze?name=", "/ui/dataset?kind=reserved&name="):
                page = seen.go(path + quote(name, safe=""))
                assert page.locator("img").count() == 1  # the mark
        page = seen.go("/ui/ledger")
        assert page.locator("script:not([src])").count() == 0
        page = seen.go("/ui/calculator")
        page.fill("#unit", HOSTILE)
        page.fill('[id="s0.m.noise_multiplier"]', "2")
        expect(page.locator("#answer")).to_contain_text("onerror=alert(2)")
        page.fill("#delta", HOSTILE)
        expect(page.locator("#answer [role=alert]")).to_contain_text("delta: must be a number")
        assert page.locator("main img").count() == 0
    assert seen.said == []
