"""The calculator without a script: what is asked, what is answered, and what is said of mistakes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import privloss as pl
from privloss.service.pages import jobs
from privloss.service.pages.asked import Asked, linked
from privloss.service.pages.fields import Wrong, choices, number, shown
from tests.conformance.examples import MECHANISMS, SAMPLED
from tests.service.inside import Service
from tests.service.pages.person import GAUSSIAN, OWN, SGD, Person


def part(person: Person, name: str, fields: dict[str, Any]) -> str:
    found = person.post("/ui/calculator", {**fields, "part": name})
    assert found.status_code == 200, found.text
    assert "<html" not in found.text
    return found.text


def test_the_first_page_answers_at_once(visitor: Person) -> None:
    text = visitor.get("/ui/calculator").text
    for words in (
        "5.806936", "[5.806935026, 5.806935027]", "at most 333 times as likely as without, plus one in a million",
        "finds at most 11.7", "Renyi DP, best order", "× 1.05", "as it is", "ideal real-valued noise",
        "pl.Gaussian(noise_multiplier=1.1).poisson(rate=0.01) * 10000",
    ):  # fmt: skip
        assert words in text, words
    assert text.count("<svg") == 2
    assert text.count("<h1") == 1
    assert "style=" not in text
    assert "onclick" not in text
    assert len(re.findall("<script", text)) == 1


def test_a_plain_form_gets_the_whole_page(visitor: Person) -> None:
    found = visitor.post("/ui/calculator", {**SGD, "s0.m.noise_multiplier": "2", "unit": "household", "do": "show"})
    assert found.status_code == 200
    bound = (pl.Gaussian(2.0).poisson(0.01) * 10_000).epsilon(1e-6)
    assert f"{bound.upper:.4f}"[:5] in found.text
    assert "household" in found.text
    assert 'name="s0.m.noise_multiplier" value="2"' in found.text


def test_a_script_gets_the_parts_one_by_one(visitor: Person) -> None:
    assert "5.806936" in part(visitor, "answer", SGD)
    assert part(visitor, "curves", SGD).count("<svg") == 2
    assert "optimal conversion" in part(visitor, "theorems", SGD)
    assert "import privloss" in part(visitor, "python", SGD)
    assert part(visitor, "certificate", SGD).strip() == ""
    assert "Certified" in part(visitor, "certificate", {**SGD, "certify": "yes"})
    assert visitor.post("/ui/calculator", {**SGD, "part": "ledger"}).status_code == 400


def test_steps_are_added_copied_and_removed(visitor: Person) -> None:
    two = part(visitor, "steps", {**SGD, "do": "add"})
    assert "Step 2" in two
    assert '<option value="none">' in two
    assert "Step 3" not in two
    copied = part(visitor, "steps", {**SGD, "do": "copy-0"})
    assert copied.count('value="10000"') == 2
    assert copied.count('name="s1.q.rate" value="0.01"') == 1
    fields = {**SGD, "s1.mechanism": "laplace:0", "s1.m.scale": "7", "s1.count": "2"}
    left = part(visitor, "steps", {**fields, "do": "remove-0"})
    assert 'name="s0.m.scale" value="7"' in left
    assert "Step 2" not in left
    assert part(visitor, "steps", {**SGD, "do": "remove-0"}).count("<legend>") == 1  # the last one stays
    other = part(visitor, "steps", {**SGD, "s0.mechanism": "gaussian:1"})
    assert "s0.m.sigma" in other
    assert "s0.m.noise_multiplier" not in other
    many = {f"s{i}.mechanism": "gaussian:0" for i in range(41)}
    assert visitor.post("/ui/calculator", many).status_code == 400


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("s0.m.noise_multiplier", "", "noise / clip norm: must be given"),
        ("s0.m.noise_multiplier", "1,1", "noise / clip norm: must be a number"),
        ("s0.m.noise_multiplier", "nan", "must be a finite number"),
        ("s0.m.noise_multiplier", "1e999", "must be a finite number"),
        ("s0.m.noise_multiplier", "-1", "noise_multiplier = -1.0"),
        ("s0.m.noise_multiplier", "9" * 50, "at most 40 characters"),
        ("s0.count", "1.5", "times: must be a whole number"),
        ("s0.count", "0", "count"),
        ("s0.q.rate", "2", "rate"),
        ("delta", "1", "delta: must be at least 0 and below 1"),
        ("delta", "", "delta: must be a number"),
        ("s0.mechanism", "sorcery", "none of those offered"),
        ("s0.sampler", "sorcery", "none of those offered"),
        ("adjacency", "sorcery", "none of those offered"),
    ],
)
def test_a_mistake_is_said_in_one_sentence_and_all_that_was_typed_stays(
    visitor: Person, field: str, text: str, said: str
) -> None:
    found = visitor.post("/ui/calculator", {**SGD, field: text})
    assert found.status_code in (400, 422)
    alert = re.search(r'role="alert"[^>]*>([^<]*)', found.text)
    assert alert is not None
    assert said.lower() in alert[1].lower()
    if "sorcery" not in text:
        assert f'name="{field}" value="{text}"' in found.text
        assert 'name="s0.q.rate"' in found.text


def test_numbers_as_people_write_them() -> None:
    assert [number("x", text) for text in ("0.01", " 1e-6 ", "10 000", "10\N{NARROW NO-BREAK SPACE}000", "+3")] == [
        0.01, 1e-6, 10_000.0, 10_000.0, 3.0,
    ]  # fmt: skip
    for wrong in ("", "1_000", "0x10", "1e", "one", "1/3"):
        with pytest.raises(Wrong):
            number("x", wrong)


KNOWN = [each for each in (*MECHANISMS, *SAMPLED) if type(each).__module__.startswith("privloss.")]


@pytest.mark.parametrize("mechanism", KNOWN, ids=repr)
def test_every_mechanism_and_sampler_can_be_asked_about(mechanism: Any) -> None:
    """A plan becomes a form, and the form the same plan; the program means the same plan, too."""
    body = (mechanism * 3).as_plan().to_dict()
    asked = Asked.with_plan(Asked.first(), body)
    assert pl.Plan.from_dict(asked.plan()) == pl.Plan.from_dict(body)
    assert linked(asked.link()) == (asked.plan(), "1e-6", "person") or len(json.dumps(body)) > 5000
    names: dict[str, Any] = {}
    program = jobs.python(body, 1e-6)
    exec(program[: program.index("bound = ")], names)
    assert names["plan"].as_plan() == pl.Plan.from_dict(body)


def test_forms_offer_what_plan_files_can_say() -> None:
    mechanisms, samplers = choices()
    for choice in (*mechanisms.values(), *samplers.values()):
        assert choice.label[:1].isupper()
        assert len({field.name for field in choice.fields}) == len(choice.fields)
    assert {each.kind for each in mechanisms.values()} >= {"gaussian", "laplace", "matrix-mechanism", "together"}
    assert shown(True) == "yes"
    assert shown(1.0) == "1"
    assert shown([0.5, 2.0]) == "0.5, 2"
    assert shown("a") == "a"


def test_a_program_runs_and_prints_the_same(visitor: Person) -> None:
    text = part(visitor, "python", {**SGD, "s1.mechanism": "laplace:2", "s1.m.epsilon": "0.1"})
    program = re.search(r"<code>(.*)</code>", text, re.DOTALL)
    assert program is not None
    plain = program[1].replace("&lt;", "<").replace("&#34;", '"').replace("&#39;", "'").replace("&gt;", ">")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(plain, {})
    bound = (pl.Gaussian(1.1).poisson(0.01) * 10_000 + pl.Laplace(epsilon=0.1)).epsilon(1e-6)
    assert f"epsilon <= {bound.upper}" in said.getvalue()


def test_a_plan_file_is_opened_and_given_back(visitor: Person) -> None:
    plan = (pl.Gaussian(sigma=3.0, sensitivity=2.0) * 7 + pl.NoisyMax(0.1)).under("replace-one").as_plan()
    text = json.dumps(plan.to_dict())
    pasted = visitor.post("/ui/calculator", {**SGD, "do": "open", "text": text})
    assert pasted.status_code == 200
    assert 'name="s0.m.sigma" value="3"' in pasted.text
    assert "Step 2" in pasted.text
    opened = visitor.post("/ui/calculator", {**SGD, "do": "open"}, files={"file": ("plan.json", text.encode())})
    assert 'name="s0.m.sigma" value="3"' in opened.text
    asked = {
        "s0.mechanism": "gaussian:1", "s0.m.sigma": "3", "s0.m.sensitivity": "2", "s0.count": "7",
        "s1.mechanism": "noisy-max:0", "s1.m.epsilon": "0.1", "adjacency": "replace-one",
    }  # fmt: skip
    file = visitor.post("/ui/plan.json", asked)
    assert pl.Plan.from_dict(file.json()) == plan
    assert file.headers["content-disposition"] == 'attachment; filename="plan.json"'


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "{", '{"steps": []}', '{"steps": [{"mechanism": "sorcery"}]}', "[" * 1000, '"\\ud800"']
)
def test_what_is_no_plan_is_refused(visitor: Person, text: str) -> None:
    found = visitor.post("/ui/calculator", {**SGD, "do": "open", "text": text})
    assert found.status_code in (400, 422)
    assert 'role="alert"' in found.text
    assert 'name="s0.q.rate" value="0.01"' in found.text
    assert visitor.post("/ui/calculator", {**SGD, "do": "open", "part": "steps"}).status_code == 400


def test_links(visitor: Person) -> None:
    text = part(visitor, "answer", {**SGD, "delta": "1e-7", "unit": "school class"})
    link = re.search(r"#plan=([A-Za-z0-9_-]+)\"", text)
    assert link is not None
    opened = part(visitor, "steps", {**GAUSSIAN, "link": link[1]})
    assert 'value="10000"' in opened
    assert 'data-delta="1e-7"' in opened
    assert 'data-unit="school class"' in opened
    broken = base64.urlsafe_b64encode(b'{"plan": 3}').decode()
    for wrong in ("x", link[1][:-9], broken, "A" * 20_000):
        assert visitor.post("/ui/calculator", {**SGD, "link": wrong, "part": "steps"}).status_code == 400


def test_a_certificate_to_take_away_holds(visitor: Person) -> None:
    found = visitor.post("/ui/certificate.json", GAUSSIAN)
    assert pl.verify(found.json())
    assert found.headers["content-disposition"] == 'attachment; filename="certificate.json"'
    assert visitor.post("/ui/certificate.json", {**GAUSSIAN, "delta": "x"}).status_code == 422


@pytest.mark.parametrize("what", ["noise", "noise-2", "count-1"])
def test_another_promise_is_kept_by_what_is_found(visitor: Person, what: str) -> None:
    fields = {
        **SGD, "s1.mechanism": "gaussian:0", "s1.m.noise_multiplier": "3", "target": "4", "what": what,
        "do": "calibrate",
    }  # fmt: skip
    if what == "noise-2":
        fields["target"] = "5.9"
    text = part(visitor, "calibrated", fields)
    taken = re.search(r'name="taken" value="([^"]*)"', text)
    assert taken is not None
    plan = pl.Plan.from_dict(json.loads(taken[1].replace("&#34;", '"')))
    assert 0.999 * float(fields["target"]) < plan.epsilon(1e-6).upper <= float(fields["target"])
    used = part(visitor, "steps", {**fields, "do": "take", "taken": json.dumps(plan.to_dict())})
    assert "Step 2" in used


@pytest.mark.parametrize(("what", "target"), [("noise-9", "3"), ("count", "3"), ("noise", "x"), ("sorcery", "3")])
def test_what_cannot_be_found_is_said(visitor: Person, what: str, target: str) -> None:
    found = visitor.post("/ui/calculator", {**GAUSSIAN, "what": what, "target": target, "do": "calibrate"})
    assert found.status_code == 200  # the plan itself has its answer
    assert re.search(r'<p class="alert">[^<]*(what = |epsilon to reach)', found.text)
    found = visitor.post(
        "/ui/calculator", {**GAUSSIAN, "what": what, "target": target, "do": "calibrate", "part": "calibrated"}
    )
    assert found.status_code in (400, 422)


def test_a_part_that_fails_leaves_the_others(visitor: Person) -> None:
    """No exact engine can compare this one's bounds at delta 0, but it has an answer."""
    found = visitor.post("/ui/calculator", {"s0.mechanism": "custom:0", "s0.m.p": "0.5 0.5", "s0.m.q": "0.6, 0.4"})
    assert found.status_code == 200
    none = visitor.post("/ui/calculator", {**GAUSSIAN, "delta": "0"})
    assert "No finite epsilon holds" in none.text
    assert none.status_code == 200


def test_would_it_fit(sqlite: Service, alice: Person, steward: Person) -> None:
    for person in (alice, steward):
        fits = part(person, "fit", {**GAUSSIAN, "dataset": "taxes"})
        assert "taxes: it fits" in fits
        assert "0.00125001 in rho" in fits
        assert "0.498749 would be left" in fits
        much = part(person, "fit", {**SGD, "dataset": "taxes"})
        assert "it does not fit" in much
        assert "more than is left" in much
        refused = person.post("/ui/calculator", {**GAUSSIAN, "dataset": "census", "part": "fit"})
        assert refused.status_code in (400, 422)  # Gaussian noise has no pure epsilon
        assert part(person, "fit", GAUSSIAN).strip() == ""
    sqlite.ledger.set_budget("taxes", currency="zcdp", cap="0.001", analyst="alice")
    assert "it does not fit" in part(alice, "fit", {**GAUSSIAN, "dataset": "taxes"})


def test_reserving(sqlite: Service, alice: Person) -> None:
    fields = {**GAUSSIAN, "dataset": "taxes", "key": "mean-2026", "hours": "2", "reason": "the yearly mean"}
    found = alice.post("/ui/reserve", fields)
    assert found.status_code == 200
    assert "mean-2026" in found.text
    assert "0.00125001" in found.text
    assert "The data may be read only after it was started" in found.text
    held = sqlite.ledger.history("taxes", kind="reserved")
    assert [(each["key"], each["analyst"], each["reason"]) for each in held] == [
        ("alice/mean-2026", "alice", "the yearly mean")
    ]
    assert held[0]["lease"] == sqlite.clock.now + 7200
    assert alice.post("/ui/reserve", fields).status_code == 200  # the same again: nothing more is charged
    assert len(sqlite.ledger.history("taxes", kind="reserved")) == 1
    other = alice.post("/ui/reserve", {**fields, "s0.m.noise_multiplier": "30"})
    assert other.status_code == 409
    assert "mean-2026" in other.text
    assert "alice/" not in other.text
    for name, wrong in (
        ("key", "a/b"),
        ("key", ""),
        ("hours", "0"),
        ("hours", "x"),
        ("hours", "1e99"),
        ("dataset", ""),
    ):
        assert alice.post("/ui/reserve", {**fields, "key": "another", name: wrong}).status_code in (400, 404, 422), name
    much = alice.post("/ui/reserve", {**SGD, "dataset": "taxes", "key": "much", "hours": "1"})
    assert much.status_code == 409
    assert "Nothing was changed" in much.text


def test_only_the_form_is_read(sqlite: Service) -> None:
    found = sqlite.http.request(
        "POST", "/ui/calculator?part=answer&delta=0.5", data={**SGD, "part": "answer"}, headers=OWN
    )
    assert "5.806936" in found.text


SLOW = {**SGD, "s0.mechanism": "laplace:0", "s0.m.scale": "5"}  # its bounds' prices in noise take ten seconds


def test_prices_that_take_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_PRICES", 0.05)
    body = (pl.Laplace(5.0).poisson(0.01) * 50).as_plan().to_dict()
    found = jobs.compared(body, 1e-6)
    assert not found["priced"]
    assert found["bounds"][-1]["bound"] == "exact"


def test_when_there_is_no_time_left_the_page_says_so_and_stands(
    serving: Callable[..., Service], tmp_path: Path
) -> None:
    service = serving(f"{tmp_path}/own.db", price_cpu=1e-6)
    visitor = Person(service)
    spent = {
        **SGD,
        "s0.m.noise_multiplier": "1.37",
        "part": "theorems",
    }  # tenths of a second: clocks may be coarse
    assert visitor.post("/ui/calculator", spent).status_code == 200
    found = visitor.post("/ui/calculator", {**GAUSSIAN, "s0.m.noise_multiplier": "22"})
    assert found.status_code == 429
    assert "too much pricing" in found.text
    assert 'name="s0.m.noise_multiplier" value="22"' in found.text
    again = visitor.post("/ui/calculator", {**GAUSSIAN, "s0.m.noise_multiplier": "22", "part": "answer"})
    assert (again.status_code, int(again.headers["retry-after"]) > 0) == (429, True)


def test_a_browser_that_goes_away_gives_its_worker_back(sqlite: Service) -> None:
    """It is not answered, and what was used is owed."""
    app, asked = sqlite.app, urlencode({**SLOW, "part": "theorems"}).encode()
    messages = [{"type": "http.request", "body": asked}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [
        (b"host", b"localhost"), (b"sec-fetch-site", b"same-origin"),
        (b"content-type", b"application/x-www-form-urlencoded"), (b"content-length", str(len(asked)).encode()),
    ]  # fmt: skip
    path = "/ui/calculator"
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": headers, "client": ("127.0.0.9", 1), "root_path": "", "scheme": "http",
    }  # fmt: skip
    asyncio.run_coroutine_threadsafe(app(scope, receive, send), sqlite.http.loop).result()
    assert sent[0]["status"] == 400
    assert not sqlite.services.workers._running
    assert sqlite.services.pricing.wait("at 127.0.0.9") == 0
    assert sqlite.services.pricing._left["at 127.0.0.9"][0] < 20.0
