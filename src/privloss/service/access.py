"""Who may do what: one declared table."""

from __future__ import annotations

from dataclasses import dataclass

from privloss.service.problems import Problem

ANALYST, STEWARD, AUDITOR, NOBODY = "analyst", "steward", "auditor", "nobody"
ROLES = (ANALYST, STEWARD, AUDITOR)
_ALL = frozenset(ROLES)

# action -> roles; NOBODY is a caller without a token, whom the settings let use the calculator
MAY: dict[str, frozenset[str]] = {
    "calculate": _ALL | {NOBODY},
    "status": _ALL,
    "quote": _ALL,
    "reserve": frozenset({ANALYST}),
    "start": frozenset({ANALYST}),
    "commit": frozenset({ANALYST}),
    "void": frozenset({ANALYST, STEWARD}),
    "reservation": _ALL,
    "history": _ALL,
    "attach": frozenset({STEWARD, AUDITOR}),
    "set up": frozenset({STEWARD}),
    "freeze": frozenset({STEWARD}),
    "verify": frozenset({STEWARD, AUDITOR}),
    "export": frozenset({STEWARD, AUDITOR}),
    "metrics": frozenset({AUDITOR}),
}


@dataclass(frozen=True)
class Caller:
    """Who asks. An analyst sees the datasets of the token (None: all) and what was done in this analyst's name."""

    role: str
    analyst: str = ""
    datasets: frozenset[str] | None = None
    token_id: str = ""

    @property
    def actor(self) -> str:
        """Who acts, as events say it."""
        return f"token:{self.token_id}"

    @property
    def is_analyst(self) -> bool:
        return self.role == ANALYST

    def sees(self, dataset: str) -> bool:
        return self.datasets is None or dataset in self.datasets

    def stored_key(self, key: str, analyst: str | None = None) -> str:
        """An analyst's keys stand under the analyst's name, so that they collide with nobody's and nobody can probe
        others'. A steward or auditor says whose key is meant, or gives it as it stands in the ledger."""
        owner = self.analyst if self.is_analyst else analyst
        return f"{owner}/{key}" if owner else key

    def own_key(self, key: str) -> str:
        """A stored key as its analyst knows it."""
        return key.removeprefix(f"{self.analyst}/") if self.is_analyst else key


ANYBODY = Caller(NOBODY, datasets=frozenset())


def allowed(caller: Caller, action: str) -> bool:
    return caller.role in MAY[action]


def demand(caller: Caller, action: str) -> None:
    if allowed(caller, action):
        return
    if caller.role == NOBODY:
        raise Problem(401, "token", "a token is needed: Authorization: Bearer pl_...", {"WWW-Authenticate": "Bearer"})
    raise Problem(403, "role", f"a token of role {caller.role} may not {action}")
