"""Charts: what is drawn is what is proven, can be read aloud, and brings no style or script along."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import pairwise
from xml.etree import ElementTree

import pytest

import privloss as pl
from privloss.service.pages import jobs, pictures, words
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


def _number(text: str) -> Fraction:
    """What a text of `words` says."""
    digits, _, power = text.removesuffix("%").replace("\N{NARROW NO-BREAK SPACE}", "").partition("×")
    raised = power.strip() or ("" if "10" not in digits or digits.strip("10⁻⁰¹²³⁴⁵⁶⁷⁸⁹") else digits)
    if not raised.strip("10"):
        return Fraction(digits.strip())
    exponent = int(raised[2:].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    return (Fraction(digits.strip()) if power else 1) * Fraction(10) ** exponent


@pytest.mark.parametrize("name", PLANS)
def test_what_is_written_beside_a_curve_is_on_its_safe_side(name: str) -> None:
    """Also in the words that are read aloud: a bound for some rate of false alarms holds for lower rates, never for
    higher ones; misses are bounded from below; a delta belongs to the epsilon that is written, not to one near it."""
    plan, delta = PLANS[name]
    found = jobs.curves(plan.as_plan().to_dict(), delta)
    points = [(Fraction(a), Fraction(m)) for a, m in zip(found["alarms"], found["misses"], strict=True)]

    def least(rate: Fraction) -> Fraction:
        return next(misses for at, misses in points if at >= rate)

    drawn = pictures.attacks(found, 0.01)
    for rate, misses, finds in drawn.table:
        assert _number(misses) / 100 <= least(_number(rate) / 100)
        assert _number(finds) / 100 >= 1 - least(_number(rate) / 100)
    assert {1, 10, 50} <= {_number(row[0]) for row in drawn.table}
    bound = least(Fraction(1, 100))
    told = drawn.svg[drawn.svg.index("can go below") : drawn.svg.index("false alarms, to none")]
    first, through, alarms = [_number(each) for each in re.findall(r"(\S+)\s%", told)]
    assert (first / 100 <= points[0][1], through / 100 <= bound, alarms) == (True, True, 1)
    for text in (words.attack(0.01, float(bound), each) for each in ("add-remove", "replace-one")):
        alarms, finds_most = [_number(each) for each in re.findall(r"(\S+)\s%", text)]
        assert (alarms, finds_most / 100 >= 1 - bound) == (1, True)
    known = {
        float(e): (low, high) for e, low, high in zip(found["epsilon"], found["lower"], found["upper"], strict=True)
    }
    for row in pictures.profile(found, 1.0, delta).table:
        epsilon, low, high = map(_number, row)
        assert float(epsilon) in known  # it is asked there, and nowhere near
        off = abs(epsilon - Fraction(float(epsilon)))
        assert low <= max(Fraction(known[float(epsilon)][0]) - off, 0)
        assert high >= min(Fraction(known[float(epsilon)][1]) + off, 1)


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
