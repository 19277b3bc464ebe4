"""Why a ledger says no."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Refusal(IntEnum):
    """Why a command is refused, in order of precedence."""

    STALE = 0  # the caller priced it for settings that have changed since; it asks again by itself
    UNKNOWN_DATASET = 1
    DATASET_EXISTS = 2
    UNKNOWN_KEY = 3
    KEY_REUSED = 4
    FROZEN = 5
    ADJACENCY = 6
    GROUP = 7
    BLOCKS = 8
    ANALYST = 9
    NO_BUDGET = 10
    CURRENCY = 11
    BUDGET_FIXED = 12
    QUOTA_ABOVE_CAP = 13
    ALREADY_STARTED = 14
    WRONG_STATE = 15
    LEASE_EXPIRED = 16
    BUDGET_EXCEEDED = 17
    PERIOD_EXCEEDED = 18
    PARENT_EXCEEDED = 19
    QUOTA_EXCEEDED = 20

    @property
    def code(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Refused:
    """A refusal, with one sentence, and by how much the tightest component falls short."""

    reason: Refusal
    text: str
    charged: dict[str, dict[str, str]] | None = None
    shortfall: dict[str, str] | None = None
