"""The accountant in Flower's server-side strategy."""

from __future__ import annotations

from typing import Any

import pytest

accounting = pytest.importorskip("flwr.supercore.privacy_accounting")

from flwr.serverapp.exception import PrivacyBudgetExhausted  # noqa: E402
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg  # noqa: E402

import privloss as pl  # noqa: E402
from privloss.interop.flower import PrivlossAccountant  # noqa: E402
from tests.interop.training_signatures import described, recorded  # noqa: E402

EVENT = accounting.GaussianPrivacyEvent(1.0, 10, 1000)
ADD, PLAIN = accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, accounting.SamplingMethod.NO_AMPLIFICATION


def strategy(limit: float) -> Any:
    config = accounting.PrivacyConfig(1e-5, 1000, ADD, PLAIN, max_epsilon=limit)
    return DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 1.0, 10, accountant=PrivlossAccountant(config))


def test_signatures_and_the_protocol() -> None:
    for place, parameters in recorded("flwr").items():
        assert described(place) == parameters, place
        if "PrivacyAccountant." in place:
            ours = "privloss.interop.flower:PrivlossAccountant." + place.rpartition(".")[2]
            assert described(ours) == parameters


def test_rounds_are_composed_and_reported() -> None:
    made = strategy(100.0)
    for number in range(3):
        made._prepare_accounting(number, [None] * 10)
        made._compose_release(made._pop_pending_event(number))
    spent = made.privacy_spent()
    assert spent.epsilon == (pl.Gaussian(1.0) * 3).under("zero-out").epsilon(1e-5).upper
    assert spent.num_releases == 3
    made.summary()


def test_the_budget_stops_a_round_before_it_begins() -> None:
    made = strategy(5.0)
    made.accountant.compose(EVENT)
    with pytest.raises(PrivacyBudgetExhausted):
        made._prepare_accounting(1, [None] * 10)


def test_state_goes_through_their_configuration() -> None:
    one, two = strategy(5.0).accountant, strategy(5.0).accountant
    one.compose(EVENT, 4)
    two.load_state_dict(one.state_dict())
    assert two.get_privacy_spent() == one.get_privacy_spent()
    with pytest.raises(pl.InvalidInput, match="another configuration"):
        strategy(6.0).accountant.load_state_dict(one.state_dict())
