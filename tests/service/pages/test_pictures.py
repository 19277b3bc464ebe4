"""Charts: what is drawn is what is proven, can be read aloud, and brings no style or script along."""

from __future__ import annotations

import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest

import privloss as pl
from privloss.service.pages import jobs, pictures
from privloss.service.pages.charts import Axis, Chart, Curve, bar, rows

PLANS = {
    "sgd": (pl.Gaussian(1.1).poisson(0.01) * 10_000, 1e-6),
    "pure": (pl.RandomizedResponse(0.5) * 3, 0.0),
    "weak": (pl.Laplace(noise_multiplier=0.02) * 2, 1e-9),
    "strong": (pl.Gaussian(noise_multiplier=400.0).as_plan(), 1e-5),
    "revealing": (pl.ApproxDP(0.3, 0.01) * 2, 1e-6),
}


@pytest.mark.parametrize("name", PLANS)
def test_the_trade_off_that_is_drawn_is_below_the_true_one_and_near(name: str) -> None:
    plan, delta = PLANS[name]
    plan = plan.as_plan()
    found = jobs.curves(plan.to_dict(), delta)
    drawn = dict(zip(found["alarms"], found["misses"], strict=True))
    for rate in (0.0, 0.001, 0.01, 0.1, 0.5, 1.0):
        true = plan.tradeoff(rate)
        assert drawn[rate] <= true.upper
        assert drawn[rate] >= true.lower - 0.02
    for epsilon, low, high in list(zip(found["epsilon"], found["lower"], found["upper"], strict=True))[::12]:
        true = plan.delta(epsilon)
        assert low <= true.upper
        assert true.lower <= high
    assert all(first >= second for first, second in pairwise(found["misses"]))


@pytest.mark.parametrize("name", PLANS)
def test_pictures_are_well_formed_named_and_plain(name: str) -> None:
    plan, delta = PLANS[name]
    body = plan.as_plan().to_dict()
    found, upper = jobs.curves(body, delta), plan.epsilon(delta).upper
    for drawn in (pictures.profile(found, upper, delta), pictures.attacks(found, 0.01)):
        tree = ElementTree.fromstring(drawn.svg)
        named = {each.get("id"): each.text for each in tree if each.get("id")}
        assert tree.get("role") == "img"
        assert set(str(tree.get("aria-labelledby")).split()) == set(named)
        assert all(len(text or "") > 10 for text in named.values())
        for element in tree.iter():
            assert not {"style", "onload", "href"} & set(element.attrib)
            numbers = [v for k, v in element.attrib.items() if k in ("x", "y", "x1", "y1", "cx", "cy")]
            assert all(-1 <= float(v) <= 361 for v in numbers)
        assert len(drawn.table) >= 8
        assert all(len(row) == len(drawn.columns) for row in drawn.table)
        assert "nan" not in drawn.svg
        assert "inf" not in str(drawn.table).replace("infinite", "")


def test_names_in_pictures_are_escaped() -> None:
    axis = Axis("<script>", 0, 1)
    drawn = Chart('a"b', "<img onerror=1>", "&", axis, Axis("y", 1e-9, 1, log=True), (Curve(((0, 1), (1, 1e-9))),))
    assert "<img" not in drawn.svg()
    assert "<script>" not in drawn.svg()
    ElementTree.fromstring(drawn.svg())


def test_axes() -> None:
    assert [text for _, text in Axis("x", 0, 7.5).ticks()] == ["0", "2", "4", "6"]
    assert [text for _, text in Axis("d", 1e-10, 1, log=True).ticks()] == ["1", "10⁻²", "10⁻⁴", "10⁻⁶", "10⁻⁸", "10⁻¹⁰"]
    axis = Axis("d", 1e-10, 1, log=True)
    assert (axis.share(1), axis.share(1e-5), axis.share(0.0)) == (1.0, 0.5, 0.0)


@pytest.mark.parametrize(("committed", "held"), [(0, 0), (1, 0), (0, 1), (0.3, 0.2), (1, 0.5), (0.001, 0.0001)])
def test_a_bar_never_leaves_its_frame_and_shows_what_is_held(committed: float, held: float) -> None:
    tree = ElementTree.fromstring(bar(1.0, committed, held))
    ends = [float(v) for each in tree for k, v in each.attrib.items() if k in ("x1", "x2")]
    assert all(0 <= end <= 200 for end in ends)
    solid = next(each for each in tree if each.get("class") == "spent")
    assert math.isclose(float(solid.get("width", "0")), 199 * committed, abs_tol=0.06)
    assert bool(ends) == (held > 0 and committed < 1)
    ElementTree.fromstring(bar(0.0, 0.0, 0.0))


def test_a_table_shows_both_ends() -> None:
    assert rows(3) == [0, 1, 2]
    assert rows(61)[0] == 0
    assert rows(61)[-1] == 60
    assert len(rows(61)) == 13
