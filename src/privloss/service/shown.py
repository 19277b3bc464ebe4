"""How answers are shown: exact texts, and beside them what they are about, as doubles for display."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from privloss.ledger.amounts import show
from privloss.ledger.answers import Reservation
from privloss.ledger.state import Charges
from privloss.ledger.views import order, signed
from privloss.service.access import Caller
from privloss.service.problems import Problem

_QUOTED = json.encoder.encode_basestring_ascii
_AMOUNTS = ("cap", "committed", "reserved", "remaining", "spent", "analysts")
_PERIOD = ("cap", "spent")
# refusals that a group may be the reason of, whose name is not everybody's to know
_ABOVE = ("frozen", "adjacency", "group", "blocks", "analyst", "no-budget", "currency", "parent-exceeded")
_SAYS = {"frozen": "is frozen", "parent-exceeded": "would be exceeded", "no-budget": "has no budget"}
_BY_ACCOUNT = ("charges", "on")
_MOST_KNOWN = 1000


def approx(value: Any) -> Any:
    """Amounts as doubles; for display only."""
    if isinstance(value, Mapping):
        return {name: approx(each) for name, each in value.items()}
    return _double(value)


@functools.lru_cache(maxsize=4096)
def _double(text: str) -> float:
    return float(Fraction(text))


def _seen(parts: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    return {name: each for name, each in parts.items() if caller.sees(name)}


def reservation(held: Reservation, caller: Caller) -> dict[str, Any]:
    """A key as its owner knows it, on the accounts that the caller may see: a group above them may be another's."""
    shown = {"charged": _seen(held.charged, caller), "remaining": _seen(held.remaining, caller)}
    return {"key": caller.own_key(held.key), "state": held.state, **shown, "approx": approx(shown)}


def reservation_text(held: Reservation, caller: Caller) -> str:
    """The same as JSON, for the answer that is given most often."""
    charged, about_charged = _charged(held.outcome.charges, caller)
    left, about_left = _texts(held.outcome.remaining, caller, signed)
    return (
        f'{{"key":{_QUOTED(caller.own_key(held.key))},"state":{_QUOTED(held.state)},"charged":{charged},'
        f'"remaining":{left},"approx":{{"charged":{about_charged},"remaining":{about_left}}}}}'
    )


_known: dict[int, tuple[Charges, frozenset[str] | None, tuple[str, str]]] = {}  # by identity


def _charged(charges: Charges, caller: Caller) -> tuple[str, str]:
    """Of requests that repeat each other they are one object, and nobody changes it."""
    found = _known.get(id(charges))
    if found is None or found[0] is not charges or found[1] is not caller.datasets:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        found = _known[id(charges)] = charges, caller.datasets, _texts(charges, caller, show)
    return found[2]


def _texts(
    amounts: Mapping[str, Mapping[str, Fraction]], caller: Caller, exactly: Callable[[Fraction], str]
) -> tuple[str, str]:
    """Amounts exactly, and about."""
    exact, about = [], []
    for name, parts in amounts.items():
        if caller.sees(name):
            ordered = sorted(parts, key=order) if len(parts) > 1 and exactly is signed else parts
            row = [(_QUOTED(part), parts[part]) for part in ordered]
            exact.append(f"{_QUOTED(name)}:{{{','.join([f'{part}:{_QUOTED(exactly(x))}' for part, x in row])}}}")
            doubles = ",".join([f"{part}:{x.numerator / x.denominator!r}" for part, x in row])
            about.append(f"{_QUOTED(name)}:{{{doubles}}}")
    return f"{{{','.join(exact)}}}", f"{{{','.join(about)}}}"


def status(found: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """A dataset's status; to an analyst without what others have and have spent."""
    shown = dict(found)
    if caller.is_analyst:
        own = {who: row for who, row in shown.pop("analysts", {}).items() if who == caller.analyst}
        shown |= {"analysts": own} if own else {}
        if "parent" in shown and not caller.sees(shown["parent"]):
            del shown["parent"]
    doubles = {part: approx(shown[part]) for part in _AMOUNTS if part in shown}
    if "period" in shown:
        doubles["period"] = {part: approx(shown["period"][part]) for part in _PERIOD}
    return {**shown, "approx": doubles}


def quoted(row: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """One dataset's part of a quote."""
    shown = {**row, "approx": approx({part: row[part] for part in ("charged", "remaining")})}
    return {**shown, "text": unnamed(row["refused"], row["text"], caller)} if "text" in row else shown


def event(found: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """An event of a history, on the accounts that the caller may see."""
    shown = dict(found)
    if "key" in shown:
        shown["key"] = caller.own_key(shown["key"])
    hidden = [name for name in shown.get("accounts", ()) if not caller.sees(name)]
    if hidden:
        shown |= {part: _seen(shown[part], caller) for part in _BY_ACCOUNT if part in shown}
        shown |= {
            part: [n for n in shown[part] if caller.sees(n)] for part in ("accounts", "datasets") if part in shown
        }
        if shown.get("why") in _ABOVE:
            shown.pop("short", None)
    return {**shown, "approx": {"charges": approx(shown["charges"])}} if "charges" in shown else shown


def problem(found: Problem, caller: Caller) -> None:
    """Leave of a refusal what concerns accounts that the caller may see, and add doubles."""
    more = found.more
    more |= {part: _seen(more[part], caller) for part in ("charged", "remaining") if part in more}
    text = unnamed(found.reason, found.text, caller)
    if text != found.text:
        found.text = text
        more.pop("shortfall", None)
    doubles = {part: approx(more[part]) for part in ("charged", "remaining", "shortfall") if part in more}
    more |= {"approx": doubles} if doubles else {}


def unnamed(reason: str, text: str, caller: Caller) -> str:
    """The text of a refusal, without the name of a group that the caller may not see."""
    seen = caller.datasets
    if seen is None or reason not in _ABOVE or any(repr(name) in text for name in seen):
        return text
    return f"a group above the dataset {_SAYS.get(reason, 'does not let it in')}"
