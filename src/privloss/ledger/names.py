"""Names in a ledger: of datasets, keys, analysts, actors; and how two names of one person are seen to be the same.

Analysts are compared after one normalisation: compatibility characters are unified (NFKC), letters lose their case,
spaces at the ends go, and spaces inside become one. So a quota cannot be passed by writing a name differently.

>>> person("analyst", "  Ann   LEE ")
'ann lee'
"""

from __future__ import annotations

import getpass
import os
import unicodedata
from collections.abc import Mapping
from typing import Any

from privloss.errors import InvalidInput

ACTOR = "PRIVLOSS_ACTOR"  # the environment variable that says who acts
_MARKS = "@#"  # first characters of periods and blocks among the owners of a balance
_MOST_LABELS = 20


def name(what: str, value: Any) -> str:
    """1 to 200 printable characters, as they are."""
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
        raise InvalidInput(f"{what} = {value!r}: must be a name of 1 to 200 printable characters.")
    return value


def normal(text: str) -> str:
    """Once more is the same: what losing its case has taken apart is put together again (a sharp s with an accent)."""
    found = text
    while True:
        before, found = found, " ".join(unicodedata.normalize("NFKC", found).casefold().split())
        if found == before:
            return found


def person(what: str, value: Any) -> str:
    """An analyst's name as it is compared."""
    found = normal(name(what, value))
    if not found or found[0] in _MARKS:
        raise InvalidInput(f"{what} = {value!r}: must not begin with one of {' '.join(_MARKS)}.")
    return found


def note(what: str, value: Any) -> str:
    """A sentence of at most 500 characters."""
    if not isinstance(value, str) or len(value) > 500 or not value.replace("\n", " ").isprintable():
        raise InvalidInput(f"{what} = {value!r}: must be a text of at most 500 characters.")
    return value


def labels(value: Mapping[str, Any] | None) -> dict[str, str]:
    """Free labels: names with short texts."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > _MOST_LABELS:
        raise InvalidInput(f"labels = {value!r}: must be at most {_MOST_LABELS} names with a text each.")
    return {name("label", key): note(f"label {key}", text) for key, text in value.items()}


def whoever() -> str:
    """Who acts, where nobody was named."""
    try:
        return os.environ.get(ACTOR) or getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return f"user {os.getuid()}"


def token(value: Any) -> str:
    """The secret of one run, as its caller chose it."""
    if not isinstance(value, str) or not 16 <= len(value) <= 200 or not value.isprintable():
        raise InvalidInput(f"token = {value!r}: must be 16 to 200 printable characters, drawn at random for one start.")
    return value
