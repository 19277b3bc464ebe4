"""Every formula of the chapter against 50-digit arithmetic, to the digits that its row claims, rounded the safe way."""

from __future__ import annotations

import pytest

from tests.chapter.values import HOME, VALUES

LABELS = tuple(dict.fromkeys(v.label for v in VALUES))


@pytest.mark.parametrize("label", LABELS)
def test_values(label: str) -> None:
    for value in (v for v in VALUES if v.label == label):
        ours, truth, digits = value.compare()
        assert digits >= value.digits, f"{value.what}: {ours!r}, truth {truth}"
        if value.side:
            assert (ours >= truth) if value.side == "up" else (ours <= truth), f"{value.what}: {ours!r}, truth {truth}"


def test_the_page_lists_them_all() -> None:
    text = HOME.read_text()
    assert len(VALUES) >= 60
    assert all(f"| `{v.label}` | " + v.what.replace("|", "\\|") in text for v in VALUES)
