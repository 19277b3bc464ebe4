"""TF Privacy's own statement with our type of accountant."""

from __future__ import annotations

import re
from typing import Any

import pytest

lib = pytest.importorskip("tensorflow_privacy.privacy.analysis.compute_dp_sgd_privacy_lib")

from privloss.interop.tf_privacy import PRIVLOSS  # noqa: E402
from privloss.planning.statement import statement  # noqa: E402
from tests.interop.training_signatures import described, recorded  # noqa: E402


def said(kind: Any, **more: Any) -> list[float]:
    text = lib.compute_dp_sgd_privacy_statement(
        60_000, 256, 10, 1.1, 1e-5, used_microbatching=False, accountant_type=kind, **more
    )
    assert kind.value in text
    return [float(x) for x in re.findall(r"^    Epsilon.*?(\d+\.\d+)$", text, re.MULTILINE)]


def test_signatures() -> None:
    for place, parameters in recorded("tensorflow-privacy").items():
        assert described(place) == parameters, place


def test_example_level() -> None:
    ours, pld, rdp = (said(kind) for kind in (PRIVLOSS, lib.AccountantType.PLD, lib.AccountantType.RDP))
    assert ours == pytest.approx(pld, abs=2e-3)
    assert all(a < b for a, b in zip(ours, rdp, strict=True))


def test_user_level_is_their_renyi_accountants_whatever_type_is_given() -> None:
    assert said(PRIVLOSS, max_examples_per_user=3)[2:] == said(lib.AccountantType.RDP, max_examples_per_user=3)[2:]


def test_our_statement_is_never_above_theirs_at_user_level() -> None:
    theirs = said(lib.AccountantType.RDP, max_examples_per_user=3)
    rows = statement(dataset_size=60_000, batch_size=256, noise_multiplier=1.1, epochs=10, delta=1e-5, people=3).rows
    found = [*(row.example.upper for row in rows), *(row.user.upper for row in rows if row.user is not None)]
    assert all(ours < other for ours, other in zip(found, theirs, strict=True))
