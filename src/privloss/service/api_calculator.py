"""Routes that answer about plans and spend nothing; all the work is done by workers."""

from __future__ import annotations

from typing import Any

from privloss.ledger.filters import Filter
from privloss.service import jobs, shapes, shown
from privloss.service.calls import Answer, Call
from privloss.service.problems import bad


def price(call: Call) -> Answer:
    asked = call.given(shapes.Price)
    budget = Filter.of(asked.currency, asked.cap, asked.delta, asked.filter)
    charged = call.worked(jobs.price, asked.plan, budget.to_dict(), asked.cost_delta)
    return Answer({"charged": charged, "approx": shown.approx(charged)})


def _one(asked: shapes.Question) -> tuple[Any, ...]:
    if (asked.delta is None) == (asked.epsilon is None):
        raise bad("give exactly one of delta and epsilon")
    return asked.plan, asked.delta, asked.epsilon, asked.adjacency


def answer(call: Call) -> Answer:
    return Answer(call.worked(jobs.answer, *_one(call.given(shapes.Question))))


def certify(call: Call) -> Answer:
    return Answer(call.worked(jobs.certify, *_one(call.given(shapes.Question))))


def compare(call: Call) -> Answer:
    asked = call.given(shapes.Compare)
    return Answer(call.worked(jobs.compare, asked.plan, asked.delta, asked.adjacency, asked.noise))


def calibrate(call: Call) -> Answer:
    asked = call.given(shapes.Calibrate)
    return Answer(call.worked(jobs.calibrate, asked.plan, asked.epsilon, asked.delta, asked.adjacency))
