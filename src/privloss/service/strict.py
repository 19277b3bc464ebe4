"""JSON of strangers, read strictly: whatever two programs might read differently is refused."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from privloss.service.problems import Problem, bad

_DEEPEST = 32
_DIGITS = 40  # of one number
# a string, closed or not: so every character is looked at once, however the quotes stand
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def loads(body: bytes) -> Any:
    """UTF-8, no name twice in one object, no NaN, no number that overflows or is endless, no lone surrogate, no NUL,
    at most 32 levels."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise bad("the body is not UTF-8") from None
    if _depth(text) > _DEEPEST:
        raise Problem(400, "too-deep", f"the body is nested more than {_DEEPEST} levels deep")
    try:
        found = _DECODER.decode(text)
    except json.JSONDecodeError as problem:
        raise bad(f"the body is not JSON ({problem.msg}, at character {problem.pos})") from None
    _check(found)
    return found


def _depth(text: str) -> int:
    """How deep brackets are nested, strings left out. Counted before parsing, because the parser itself recurses."""
    if text.count("[") + text.count("{") <= _DEEPEST:
        return 0
    depth = 0
    for found in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if found[0] in "[{" else -1
        if depth > _DEEPEST:
            return depth
    return depth


def _constant(name: str) -> Any:
    raise bad(f"{name} is not a JSON number")


def _float(text: str) -> float:
    found = float(text)
    if len(text) > _DIGITS or not math.isfinite(found):
        raise bad(f"a number has more than {_DIGITS} characters, or is too large")
    return found


def _int(text: str) -> int:
    if len(text) > _DIGITS:
        raise bad(f"a number has more than {_DIGITS} characters, or is too large")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise bad("a name stands twice in one object")
    for name in found:
        _text(name)
    return found


def _check(value: Any) -> None:
    """Every text in it."""
    open_ends = [value]
    while open_ends:
        each = open_ends.pop()
        if isinstance(each, str):
            _text(each)
        elif isinstance(each, list):
            open_ends.extend(each)
        elif isinstance(each, dict):
            open_ends.extend(each.values())


def _text(text: str) -> None:
    if "\x00" in text:
        raise bad("a text holds NUL")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise bad("a text holds half of a character (a lone surrogate)")


_DECODER = json.JSONDecoder(
    parse_constant=_constant, parse_float=_float, parse_int=_int, object_pairs_hook=_object
)  # fmt: skip
