"""Audits: evidence against a claim, judged by exact tests.

>>> import privloss as pl
>>> found = pl.audit.counts(tp=95, positives=100, fp=3, negatives=100, delta=0.0, trials="independent", claim=1.0)
>>> found.verdict, round(found.epsilon, 2)
('refuted', 2.53)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privloss.audit.betting import stream as stream
    from privloss.audit.black_box import mechanism as mechanism
    from privloss.audit.canaries import one_run as one_run
    from privloss.audit.canary_scores import one_run_scores as one_run_scores
    from privloss.audit.ceilings import ceiling as ceiling
    from privloss.audit.recorder import Diverged as Diverged
    from privloss.audit.recorder import Recorder as Recorder
    from privloss.audit.result import Audit as Audit
    from privloss.audit.trial_scores import scores as scores
    from privloss.audit.trials import counts as counts

_HOMES = {
    "Audit": "result",
    "Diverged": "recorder",
    "Recorder": "recorder",
    "ceiling": "ceilings",
    "counts": "trials",
    "mechanism": "black_box",
    "one_run": "canaries",
    "one_run_scores": "canary_scores",
    "scores": "trial_scores",
    "stream": "betting",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'privloss.audit' has no attribute {name!r}")
    return getattr(import_module(f"privloss.audit.{_HOMES[name]}"), name)
