"""Inputs of ``privloss audit``: rows of scores or guesses (CSV, JSON), or the keyword arguments of the Python call."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from privloss.cli.arguments import json_of, text_of
from privloss.errors import InvalidInput

Flags = Mapping[str, tuple[str | None, Callable[[str, str], Any]]]  # what was typed, and how it is read


def whole(flag: str, text: str) -> int:
    """A whole number that was typed."""
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{flag} = {text!r}: must be a whole number.") from None


def word(flag: str, text: str) -> str:
    """As it was typed."""
    return text


def told(file: Path | None, flags: Flags, needed: tuple[str, ...], known: tuple[str, ...] = ()) -> dict[str, Any]:
    """Keyword arguments: each from its flag or from the object in a file, not from both. `known` have no flag."""
    content = {} if file is None else json_of(file)
    if not isinstance(content, dict):
        raise InvalidInput(f"{file}: must hold an object of arguments, such as {needed[0]}.")
    found = {
        name: tuple(value) if name == "claim" and isinstance(value, list) else value for name, value in content.items()
    }
    if unknown := sorted(set(found) - set(flags) - set(known) - {"claim"}):
        raise InvalidInput(f"{file}: has {unknown[0]!r}; the arguments here are {', '.join((*known, *flags))}, claim.")
    for name, (text, read) in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if text is not None and name in found:
            raise InvalidInput(f"{flag} = {text!r}: is in {file} too; say it once.")
        if text is not None:
            found[name] = read(flag, text)
    for name in needed:
        if name not in found:
            raise InvalidInput(f"--{name.replace('_', '-')}: is missing.")
    return found


def holds_arguments(file: Path, names: tuple[str, ...]) -> bool:
    """Whether a file is JSON with one of these arguments, rather than rows."""
    if file.suffix.lower() != ".json":
        return False
    content = json_of(file)
    return isinstance(content, dict) and any(name in content for name in names)


def bit(name: str, value: Any) -> bool:
    if value not in (0, 1, "0", "1"):
        raise InvalidInput(f"{name} = {value!r}: must be 0 or 1.")
    return str(int(value)) == "1"


def rows_of(file: Path, columns: tuple[str, str]) -> list[dict[str, Any]]:
    """The rows of a CSV file or of a JSON list of objects, or an object of two lists; numbers in the first column."""
    text = text_of(file)
    if file.suffix.lower() == ".json":
        content = json_of(file, text)
        rows = _from_json(content, columns, file)
    else:
        rows = list(csv.DictReader(text.splitlines()))
    if not rows or any(not isinstance(r, dict) or not set(columns) <= set(r) for r in rows):
        raise InvalidInput(f"{file}: must have rows with {columns[0]} and {columns[1]}.")
    if columns[0] != "guess":
        for row in rows:
            try:
                row[columns[0]] = float(row[columns[0]])
            except (TypeError, ValueError, OverflowError):
                raise InvalidInput(f"{file}: {columns[0]} = {row[columns[0]]!r} is no number.") from None
    return rows


def _from_json(content: Any, columns: tuple[str, str], file: Path) -> list[dict[str, Any]]:
    if isinstance(content, dict) and set(columns) <= set(content):
        first, second = content[columns[0]], content[columns[1]]
        if not isinstance(first, list) or not isinstance(second, list) or len(first) != len(second):
            raise InvalidInput(f"{file}: {columns[0]} and {columns[1]} must be lists of equal length.")
        return [dict(zip(columns, pair, strict=True)) for pair in zip(first, second, strict=True)]
    return content if isinstance(content, list) else []


def scored(file: Path | None, flags: Flags, guesses_fixed: bool | None) -> dict[str, Any]:
    """Arguments where canaries have scores."""
    if file is None or guesses_fixed is False:
        raise InvalidInput("--budgets: are fixed numbers of guesses from scores in a file.")
    if holds_arguments(file, ("scores",)):
        found = told(file, flags, ("scores", "included", "budgets", "delta"), ("scores", "included"))
    else:
        found = told(None, flags, ("delta",))
        rows = rows_of(file, ("score", "included"))
        found["scores"] = [row["score"] for row in rows]
        found["included"] = [bit("included", row["included"]) for row in rows]
    return {"inclusion": None, **found}


def guessed(
    file: Path | None, flags: Flags, guesses_fixed: bool | None, no_plan: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Arguments where guesses were counted, or are to be; and what is to be noted of them."""
    from privloss.audit.canary_scores import UNFAIR, unfair

    sizes = ("canaries", "guesses", "correct")
    note: tuple[str, ...] = ()
    if file is None or holds_arguments(file, sizes):
        found = told(file, flags, (*sizes, "delta"), ("guesses_fixed",))
        if guesses_fixed is not None and "guesses_fixed" in found:
            raise InvalidInput(f"--guesses-fixed or --guesses-decided-by-data: is in {file} too; say it once.")
    else:
        found = told(None, flags, ("delta",))
        if typed := [name for name in sizes if name in found]:
            raise InvalidInput(f"--{typed[0]}: is counted in {file}; give one of them.")
        *counts, included = _counted(file)
        found.update(zip(sizes, counts, strict=True))
        note = (UNFAIR,) if unfair(counts[0], included) else ()
    m, r = found["canaries"], found["guesses"]
    if "guesses_fixed" not in found:
        found["guesses_fixed"] = _fixed(guesses_fixed, r == m or (no_plan and found["delta"] == 0), f"{r} of {m}")
    return {"inclusion": None, **found}, note


def _fixed(said: bool | None, same: bool, guessed: str) -> bool:
    """Whether the number of guesses was fixed in advance: it must be said unless it is all the same."""
    if said is None and not same:
        raise InvalidInput(
            f"--guesses-fixed or --guesses-decided-by-data: is missing; {guessed} canaries were guessed."
        )
    return said is not False


def _counted(file: Path) -> tuple[int, int, int, int]:
    """Canaries, guesses and right ones, and canaries that are in: a guess is in, out or empty."""
    rows = rows_of(file, ("guess", "included"))
    right = made = included = 0
    for row in rows:
        guess, coin = str(row["guess"] or "").strip().lower(), bit("included", row["included"])
        if guess not in ("in", "out", ""):
            raise InvalidInput(f"{file}: guess = {row['guess']!r}: must be in, out or empty.")
        included += coin
        made += guess != ""
        right += guess != "" and (guess == "in") == coin
    return len(rows), made, right, included


def budgets_of(flag: str, text: str) -> Any:
    """Pairs of numbers of guesses, or the order by confidence."""
    if text == "confidence":
        return text
    try:
        return [tuple(int(part) for part in pair.split(":")) for pair in text.split(",")]
    except ValueError:
        raise InvalidInput(f'{flag} = {text!r}: must be pairs like "50:50,100:0", or confidence.') from None
