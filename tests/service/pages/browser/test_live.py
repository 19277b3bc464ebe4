"""The calculator in a browser: it answers while one types, by keyboard alone, and without a script."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, Request, Route, expect

import privloss as pl
from tests.service.pages.browser.conftest import Seen, Site

Open = Callable[..., Seen]
NOISE = '[id="s0.m.noise_multiplier"]'


def shown(plan: pl.Plan, delta: float = 1e-6) -> str:
    """The epsilon that the page should show."""
    return f"{plan.epsilon(delta).upper:.3f}"[:-1]


def test_all_parts_follow_what_is_typed_without_a_new_page(at: Open) -> None:
    page = at().go("/ui/calculator")
    expect(page.locator("#answer .number")).to_contain_text("5.806936")
    page.evaluate("window.same = true")
    before = page.locator("#curves path.curve").first.get_attribute("d")
    page.fill(NOISE, "")
    expect(page.locator("#answer [role=alert]")).to_contain_text("must be given")
    expect(page.locator("#curves")).to_have_class("outdated")
    for letter in "1.25":
        page.keyboard.type(letter)
    plan = pl.Gaussian(1.25).poisson(0.01) * 10_000
    expect(page.locator("#answer .number")).to_contain_text(shown(plan))
    expect(page.locator("#python")).to_contain_text("noise_multiplier=1.25")
    expect(page.locator("#curves path.curve").first).not_to_have_attribute("d", str(before))
    expect(page.locator("#theorems .best")).to_contain_text(shown(plan)[:4])
    expect(page.locator("#curves")).not_to_have_class("outdated")
    assert page.evaluate("window.same && document.activeElement.id") == "s0.m.noise_multiplier"
    page.check("input[name=certify]")
    expect(page.locator("#certificate")).to_contain_text("Certified")


def test_an_answer_to_an_earlier_key_never_replaces_a_later_one(at: Open) -> None:
    """The first question is never answered; the second one is."""
    page = at().go("/ui/calculator")
    held: list[Route] = []

    def first_is_held(route: Route) -> None:
        if not held and _asks(route.request):
            held.append(route)
        else:
            route.continue_()

    page.route("**/ui/calculator", first_is_held)
    with page.expect_request(_asks):
        page.fill(NOISE, "3")
    page.fill(NOISE, "2")
    plan = pl.Gaussian(2.0).poisson(0.01) * 10_000
    expect(page.locator("#answer .number")).to_contain_text(shown(plan))
    expect(page.locator("#theorems .best")).to_contain_text(shown(plan)[:4])
    assert len(held) == 1


def _asks(request: Request) -> bool:
    return "part=answer" in (request.post_data or "")


def test_steps_and_links(at: Open) -> None:
    seen = at(permissions=["clipboard-read", "clipboard-write"])
    page = seen.go("/ui/calculator")
    page.select_option('[id="s0.mechanism"]', "laplace:0")
    page.fill('[id="s0.m.scale"]', "5")
    page.click("#add")
    expect(page.locator("#steps fieldset")).to_have_count(2)
    assert page.evaluate("document.activeElement.id") == "s1.mechanism"
    page.fill('[id="s1.m.noise_multiplier"]', "4")
    page.fill("#delta", "1e-5")
    plan = pl.Laplace(5.0).poisson(0.01) * 10_000 + pl.Gaussian(4.0)
    expect(page.locator("#answer .number")).to_contain_text(shown(plan, 1e-5))
    page.click("#copy")
    expect(page.locator("#copied")).to_have_text("Copied.")
    link = page.evaluate("navigator.clipboard.readText()")
    seen.page = seen.context.new_page()
    seen.page.goto(link)
    expect(seen.page.locator("#answer .number")).to_contain_text(shown(plan, 1e-5))
    expect(seen.page.locator("#delta")).to_have_value("1e-5")
    assert not [url for url in seen.asked if "plan=" in url.partition("#")[0]]  # it reaches no log of the server


def test_with_the_keyboard_alone(at: Open, site: Site) -> None:
    seen = at()
    page = seen.go("/ui/calculator")

    def to(selector: str, most: int = 60) -> None:
        for _ in range(most):
            page.keyboard.press("Tab")
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", selector  # one sees where one is
                return
        raise AssertionError(f"the keyboard does not reach {selector}")

    to("a.skip", 1)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    to(NOISE)
    page.keyboard.press("Control+a")
    page.keyboard.type("2")
    expect(page.locator("#answer .number")).to_contain_text(shown(pl.Gaussian(2.0).poisson(0.01) * 10_000))
    to("#add")
    page.keyboard.press("Enter")
    expect(page.locator("#steps fieldset")).to_have_count(2)
    assert page.evaluate("document.activeElement.id") == "s1.mechanism"
    to('[id="s1.m.noise_multiplier"]')
    page.keyboard.type("3")
    expect(page.locator("#answer .number")).to_be_visible()
    to("#target")
    to("button[value=calibrate]")
    for each in ("#answer summary", ".scroll"):
        page.evaluate("document.getElementById('main').focus()")
        to(each)
    to_login(page, to)
    page.keyboard.type(site.tokens["steward"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/ledger")
    to("a[href='/ui/dataset?name=census']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/dataset?name=census")
    to("a[href^='/ui/freeze']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/freeze*")
    to("textarea")
    page.keyboard.type("by keyboard")
    to("main button")
    page.keyboard.press("Space")
    page.wait_for_url("**done=frozen")
    assert site.ledger.status("census")["frozen"]
    site.ledger.freeze("census", False, reason="on with it")


def to_login(page: Page, to: Callable[[str], None]) -> None:
    page.evaluate("document.querySelector('a.skip').focus()")
    to(".who a")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/login*")
    to("#token")


def test_without_a_script(at: Open, site: Site) -> None:
    seen = at(java_script_enabled=False)
    page = seen.go("/ui/calculator")
    page.select_option('[id="s0.mechanism"]', "gaussian:1")
    page.click("text=Show its fields")
    page.fill('[id="s0.m.sigma"]', "5")
    page.click("text=Add a step")
    page.click("text=Remove step 2")
    page.click(".answer .primary")
    assert shown(pl.Gaussian(sigma=5.0).poisson(0.01) * 10_000) in page.inner_text("#answer .number")
    assert page.locator("#curves svg").count() == 2
    page.click("button[value=calibrate]")
    assert "as much noise at every step" in page.inner_text("#calibrated")
    page.click("button[value=take]")
    assert page.locator("#steps fieldset").count() == 1
    with page.expect_download() as taken:
        page.click("button[formaction='/ui/plan.json']")
    assert taken.value.suggested_filename == "plan.json"
    seen.login(site.tokens["alice"])
    seen.go("/ui/calculator")
    page.fill(NOISE, "40")
    page.select_option('[id="s0.sampler"]', "none")
    page.fill('[id="s0.count"]', "1")
    page.check("input[name=dataset][value=taxes]")
    page.click("button[value=fit]")
    assert "it fits" in page.inner_text("#fit")
    page.fill("#key", "without-a-script")
    page.click("button[formaction='/ui/reserve']")
    assert "without-a-script" in page.inner_text("main")
    page.click("text=Log out")
    page.wait_for_url("**/ui/login")
