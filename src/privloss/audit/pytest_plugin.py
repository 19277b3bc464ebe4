"""A pytest plug-in: audits as tests, with one false alarm rate for the whole suite.

::

    @pytest.mark.dp_audit(claim=1.0, runs=5000)
    def test_my_noise(dp_audit):
        dp_audit(my_mechanism, 0.0, 1.0)      # fails if "my_mechanism is 1-DP" is refuted

If every claim is true, the chance that any audit of the suite fails is at most alpha (`--dp-audit-alpha`, or
`dp_audit_alpha` in the configuration; 0.01 unless given): alpha is divided by the number of audits collected, whether
or not all of them run. A test that makes several audits says so: ``@pytest.mark.dp_audit(audits=3)``. Seeds are fixed
(`seed=`, 0 unless given), so that a result can be repeated; running the suite under many seeds until one fails is not
an audit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from privloss.audit.result import Audit

_COUNT = pytest.StashKey[int]()
_DEFAULTS = {"claim": None, "runs": 5000, "delta": 0.0, "seed": 0, "audits": 1}
_NAME = "dp_audit"


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "false alarm rate of all dp_audit tests together"
    parser.getgroup("privloss").addoption("--dp-audit-alpha", type=float, default=None, help=text)
    parser.addini("dp_audit_alpha", text, default="0.01")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "dp_audit(claim, runs=5000, delta=0, seed=0, audits=1): what the fixture dp_audit tests by default"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before anything is deselected: the share of an audit must not depend on what else runs today."""
    config.stash[_COUNT] = sum(_settings(i)["audits"] for i in items if _NAME in getattr(i, "fixturenames", ()))


def pytest_report_collectionfinish(config: pytest.Config) -> str | None:
    count = config.stash.get(_COUNT, 0)
    return f"dp_audit: {count} audits, false alarm rate {_alpha(config):g} over the suite" if count else None


def _settings(item: pytest.Item) -> dict[str, Any]:
    mark = item.get_closest_marker(_NAME)
    given = {} if mark is None else dict(mark.kwargs)
    unknown = sorted(set(given) - set(_DEFAULTS))
    if mark is not None and mark.args:
        unknown.append("positional arguments")
    if unknown:
        raise pytest.UsageError(f"{item.nodeid}: dp_audit takes {', '.join(_DEFAULTS)}; not {', '.join(unknown)}.")
    settings = {**_DEFAULTS, **given}
    if not isinstance(settings["audits"], int) or settings["audits"] < 1:
        raise pytest.UsageError(f"{item.nodeid}: audits = {settings['audits']!r}: must be a whole number from 1.")
    return settings


def _alpha(config: pytest.Config) -> float:
    given = config.getoption("--dp-audit-alpha")
    alpha = float(config.getini("dp_audit_alpha") if given is None else given)
    if not 0 < alpha < 0.5:
        raise pytest.UsageError(f"dp_audit_alpha = {alpha!r}: must be a number above 0 and below 0.5.")
    return alpha


@dataclass
class DpAudit:
    """Call it with a mechanism and two neighbouring inputs."""

    settings: dict[str, Any]
    alpha: float  # of one audit
    done: list[Audit] = field(default_factory=list)

    def __call__(self, f: Callable[..., Any], x: Any, y: Any, **given: Any) -> Audit:
        """Fails the test if the claim is refuted; returns the audit."""
        from privloss.audit.black_box import mechanism

        if len(self.done) >= self.settings["audits"]:
            pytest.fail(f"more than audits={self.settings['audits']} audits in one test: the marker must say how many")
        chosen = {**{k: v for k, v in self.settings.items() if k != "audits"}, **given}
        if chosen["claim"] is None:
            pytest.fail("dp_audit: a claim is missing; give claim= to the marker or to the call")
        found = mechanism(f, x, y, alpha=self.alpha, **chosen)
        self.done.append(found)
        if found.verdict == "refuted":
            pytest.fail(f"{found} Event: {found.event}.")
        return found


@pytest.fixture
def dp_audit(request: pytest.FixtureRequest) -> DpAudit:
    """An audit of a mechanism that fails the test if its claim is refuted."""
    if _NAME not in getattr(request.node, "fixturenames", ()):
        pytest.fail("dp_audit: ask for it as an argument; one that is asked for at run time was not counted")
    share = _alpha(request.config) / max(request.config.stash.get(_COUNT, 1), 1)
    return DpAudit(_settings(request.node), share)
