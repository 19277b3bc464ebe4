"""A short hammering of a service on both stores; the long one is `python -m tests.service.hammer`."""

from __future__ import annotations

from pathlib import Path

from tests.service.hammer import Size, hammer


def test_a_killed_service_loses_nothing(place: str, tmp_path: Path) -> None:
    """Nor doubles, nor lets anybody in twice: what clients were told is in the ledger."""
    found = hammer(place, tmp_path, Size(kills=2, clients=4, most=60, seed=2))
    assert found["problems"] == []
    assert found["commits"] > 0
    assert found["unknown"] > 0
