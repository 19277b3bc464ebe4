"""The docs show the registry as it is."""

from __future__ import annotations

from tests.mechanisms.table import PAGE, page_with_table


def test_the_table_in_the_docs_is_that_of_the_registry() -> None:
    assert PAGE.read_text() == page_with_table(PAGE.read_text())
