"""The calculator: a plan in, what it promises out, in parts that a script may ask for one by one and a plain form gets
together. All that is computed is computed by workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import Response

from privloss.adjacency import ADJACENCIES
from privloss.errors import InvalidInput
from privloss.service import api_spend, shapes
from privloss.service import jobs as shared
from privloss.service.access import allowed
from privloss.service.calls import Needs
from privloss.service.pages import jobs, pictures, reserving, words
from privloss.service.pages.asked import MOST_STEPS, NONE, UNITS, Asked, file_of, linked
from privloss.service.pages.fields import Wrong, choices
from privloss.service.pages.pictures import amount
from privloss.service.pages.rendering import page
from privloss.service.pages.visits import Visit
from privloss.service.problems import Problem, bad, problem_of

_ALARMS = 0.01  # the rate of false alarms that is quoted
_ATTACHED = {"content-disposition": 'attachment; filename="{}"'}
Context = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """The form, read."""

    asked: Asked
    plan: dict[str, Any]
    delta: float

    @classmethod
    def of(cls, asked: Asked) -> Question:
        try:
            found = cls(asked, asked.plan(), asked.delta_value())
        except Wrong as problem:
            raise Problem(422, "form", str(problem)) from None
        if not 0 <= found.delta < 1:
            raise Problem(422, "form", "delta: must be at least 0 and below 1")
        return found


# -- parts -------------------------------------------------------------------------------------------------------------


def _epsilon(visit: Visit, question: Question) -> tuple[Mapping[str, Any], float, float]:
    found = visit.worked(shared.answer, question.plan, question.delta, None, None)
    return found, float(found["epsilon"]["lower"]), float(found["epsilon"]["upper"])


def answer(visit: Visit, asked: Asked) -> Context:
    question = Question.of(asked)
    found, lower, upper = _epsilon(visit, question)
    return {
        "found": found, "upper": words.up(upper, 7), "delta": words.up(question.delta, 6),
        "interval": words.interval(lower, upper), "lower_only": upper == float("inf"),
        "promise": words.promise(upper, question.delta, asked.unit, asked.adjacency), "link": asked.link(),
    }  # fmt: skip


def curves(visit: Visit, asked: Asked) -> Context:
    question = Question.of(asked)
    _, _, upper = _epsilon(visit, question)
    found = visit.worked(jobs.curves, question.plan, question.delta)
    misses = found["misses"][found["alarms"].index(_ALARMS)]
    return {
        "attack": words.attack(_ALARMS, misses, asked.adjacency),
        "charts": [pictures.profile(found, upper, question.delta), pictures.attacks(found, _ALARMS)],
    }  # fmt: skip


def theorems(visit: Visit, asked: Asked) -> Context:
    question = Question.of(asked)
    found = visit.worked(jobs.compared, question.plan, question.delta)
    rows = sorted(found["bounds"], key=lambda row: -float(row["epsilon"]))
    return {"bounds": [_bound(row) for row in rows], "priced": found["priced"]}


def _bound(row: Mapping[str, Any]) -> dict[str, str]:
    noise = row.get("noise")
    price = "not found" if noise is None else "as it is" if float(noise) == 1 else f"× {words.up(noise, 3)}"
    return {"name": row["bound"], "theorem": row["theorem"], "epsilon": words.up(row["epsilon"], 5), "price": price}


def python(visit: Visit, asked: Asked) -> Context:
    question = Question.of(asked)
    return {"program": visit.worked(jobs.python, question.plan, question.delta)}


def certificate(visit: Visit, asked: Asked) -> Context:
    if not asked.certify:
        return {"checked": None}
    question = Question.of(asked)
    found = visit.worked(jobs.certified, question.plan, question.delta)
    return {"checked": found, "interval": words.interval(found["lower"], found["upper"])}


def calibrated(visit: Visit, asked: Asked) -> Context:
    if visit.one("do") != "calibrate":
        return {"reached": None}
    question = Question.of(asked)
    try:
        target = asked.target_value()
    except Wrong as problem:
        raise Problem(422, "form", str(problem)) from None
    found = visit.worked(jobs.calibrated, question.plan, asked.what, target, question.delta)
    less = asked.what.startswith("noise")
    value = words.up(found["value"], 6) if less else words.grouped(found["value"])
    return {
        "reached": found, "value": value, "what": asked.what, "target": words.up(target, 6),
        "achieved": words.up(found["epsilon"]["upper"], 8), "taken": json.dumps(found["plan"]),
    }  # fmt: skip


def fit(visit: Visit, asked: Asked) -> Context:
    """What datasets would be charged and would have left, by the rules that a reservation would meet."""
    chosen = visit.all("dataset")
    if not chosen or not allowed(visit.caller, "quote"):
        return {"quotes": None}
    body = reserving.shaped(shapes.Quote, datasets=chosen, plan=Question.of(asked).plan)
    found = api_spend.quote(replace(visit, body=body)).body
    return {"quotes": {name: _quote(row) for name, row in found.items()}}


def _quote(row: Mapping[str, Any]) -> Context:
    """A quote by its tightest limit: the one of which least is left for each unit that is charged."""
    charged, rest = row["charged"], row["remaining"]
    known = [part for part in rest if amount(charged[part]) > 0]
    part = min(known, key=lambda each: amount(rest[each]) / amount(charged[each]), default=None)
    shown: Context = {"fits": row["fits"], "text": row.get("text", ""), "limits": len(rest), "part": part}
    if part is None:
        return {**shown, "charged": words.spent(charged) if charged else "nothing", "left": ""}
    short = rest[part].startswith("-")
    left = words.spent(rest[part][1:]) if short else words.left(rest[part])
    return {**shown, "charged": words.spent(charged[part]), "left": left, "short": short}


PARTS: dict[str, Callable[[Visit, Asked], Context]] = {
    "answer": answer, "curves": curves, "theorems": theorems, "python": python, "certificate": certificate,
    "calibrated": calibrated, "fit": fit,
}  # fmt: skip


def _attempted(part: str, visit: Visit, asked: Asked) -> Context:
    """A part, or why there is none: one that fails leaves the others as they are."""
    try:
        return {"problem": None, **PARTS[part](visit, asked)}
    except Needs:
        raise
    except Exception as error:
        problem = problem_of(error)
        if problem.status == 500:
            raise
        return {"problem": problem}


# -- pages -------------------------------------------------------------------------------------------------------------


def show(visit: Visit) -> Response:
    return _whole(visit, Asked.first())


def ask(visit: Visit) -> Response:
    """All of it, or the part that a script wants."""
    try:
        asked = _changed(visit)
    except (Problem, InvalidInput) as error:
        if visit.wants:
            raise
        return _whole(visit, Asked.of(visit), problem_of(error))
    if visit.wants == "steps":
        return page(visit, "parts/steps.html", **_form(asked))
    if visit.wants:
        if visit.wants not in PARTS:
            raise bad("part: is none of the page's")
        found = _attempted(visit.wants, visit, asked)
        return _part(visit, asked, found)
    return _whole(visit, asked)


def _part(visit: Visit, asked: Asked, found: Context) -> Response:
    problem: Problem | None = found["problem"]
    status, headers = (200, {}) if problem is None else (problem.status, problem.headers)
    return page(visit, f"parts/{visit.wants}.html", status, headers, asked=asked, **{visit.wants: found})


def _changed(visit: Visit) -> Asked:
    """The form, after what a button of it does."""
    do, link = visit.one("do"), visit.one("link")
    asked = Asked.of(visit)
    if link:
        plan, delta, unit = linked(link)
        return replace(_opened(visit, asked, plan), delta=delta, unit=" ".join(unit.split())[:60] or asked.unit)
    if do == "open":
        return _opened(visit, asked, file_of(visit.one("file") or visit.one("text")))
    if do == "take":
        return _opened(visit, asked, file_of(visit.one("taken")))
    return asked.changed(do)


def _opened(visit: Visit, asked: Asked, plan: dict[str, Any]) -> Asked:
    return Asked.with_plan(asked, visit.worked(shared.describe, plan)["body"])


def _form(asked: Asked) -> Context:
    mechanisms, samplers = choices()
    return {
        "asked": asked, "mechanisms": mechanisms.values(), "samplers": samplers.values(), "unsampled": NONE,
        "most": MOST_STEPS,
    }  # fmt: skip


def _whole(visit: Visit, asked: Asked, problem: Problem | None = None) -> Response:
    found = {part: _attempted(part, visit, asked) for part in PARTS}
    told = problem or found["answer"]["problem"]
    return page(
        visit, "calculator.html", 200 if told is None else told.status, problem=problem,
        units=UNITS, adjacencies=ADJACENCIES, datasets=reserving.datasets(visit), chosen=visit.all("dataset"),
        key=visit.one("key") or reserving.fresh_key(visit), reason=visit.one("reason"), hours=visit.one("hours", "1"),
        **_form(asked), **found,
    )  # fmt: skip


# -- to take away ------------------------------------------------------------------------------------------------------


def _file(name: str, text: str, media: str) -> Response:
    headers = {each: value.format(name) for each, value in _ATTACHED.items()}
    return Response(text, headers=headers, media_type=media)


def plan_file(visit: Visit) -> Response:
    body = visit.worked(shared.describe, Question.of(Asked.of(visit)).plan)["body"]
    return _file("plan.json", json.dumps(body, indent=2) + "\n", "application/json")


def certificate_file(visit: Visit) -> Response:
    question = Question.of(Asked.of(visit))
    made = visit.worked(shared.certify, question.plan, question.delta, None, None)
    return _file("certificate.json", json.dumps(made, indent=1) + "\n", "application/json")
