"""A small part of the sweep over all regimes, with another seed than the long run."""

from __future__ import annotations

import pytest
from bench import sweep

SETTINGS = 512


@pytest.mark.parametrize("part", range(16))
def test_chains(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fortieth of the work that is usually allowed: what is extreme is wider then, and must be as sound."""

    def answer(asked: sweep.Setting) -> sweep.pl.Bound:
        return (sweep.pl.Gaussian(asked.sigma).poisson(asked.rate) * asked.steps).epsilon(asked.delta, work=5e7)

    monkeypatch.setattr(sweep.Setting, "answer", answer)
    chains = SETTINGS // sweep.CHAIN // 16
    outcomes = [sweep.run_chain(7_000_000 + part * chains + i) for i in range(chains)]
    assert [problem for o in outcomes for problem in o.problems] == []
    assert sum(len(o.answers) for o in outcomes) == chains * sweep.CHAIN


def test_a_contradiction_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([sweep.pl.Bound(2.0, 3.0), sweep.pl.Bound(0.5, 1.0)] + [sweep.pl.Bound(0.5, 1.0)] * 8)
    monkeypatch.setattr(sweep.Setting, "answer", lambda self: next(answers))
    assert len(sweep.run_chain(1).problems) == 1
