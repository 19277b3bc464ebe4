"""The accountant for Opacus, on stand-ins."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

import privloss as pl
from tests.interop import training_standins as standins
from tests.interop.training_signatures import described, recorded
from tests.interop.training_standins import OPACUS, SequentialSampler, batches, installed, loader

DELTA = 1e-5


@pytest.fixture
def po(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(standins, "ACCOUNTANTS", {})
    return installed(monkeypatch, "opacus", OPACUS)


def trained(po: Any, data_loader: Any, steps: int, poisson: bool = False, accumulated: int = 1) -> Any:
    """An engine after some steps."""
    engine = standins.PrivacyEngine(accountant="privloss")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", po.SamplerWarning)
        _, optimizer, _ = engine.make_private(
            module=None, optimizer=None, data_loader=data_loader, noise_multiplier=1.0, max_grad_norm=1.0,
            poisson_sampling=poisson,
        )  # fmt: skip
    for _ in range(steps):
        optimizer.step(SimpleNamespace(noise_multiplier=1.0, accumulated_iterations=accumulated))
    return engine


def test_the_stand_ins_have_the_signatures_of_the_real_classes(po: Any) -> None:
    absent = {"opacus.accountants.utils:get_noise_multiplier", "opacus:PrivacyEngine.make_private_with_epsilon"}
    for place, parameters in recorded("opacus").items():
        assert place in absent or described(place) == parameters, place


def test_it_is_registered_on_import_under_its_name(po: Any) -> None:
    made = standins.create_accountant("privloss")
    assert (type(made), made.mechanism(), len(made), made.history) == (po.PrivlossAccountant, "privloss", 0, [])
    assert made.get_epsilon(DELTA) == 0.0


def test_steps_are_added_up_and_answered_from_above(po: Any) -> None:
    made = po.PrivlossAccountant()
    for _ in range(3):
        made.step(noise_multiplier=1.1, sample_rate=0.01)
    made.step(noise_multiplier=1, sample_rate=0.02)
    assert made.history == [(1.1, 0.01, 3), (1.0, 0.02, 1)]
    assert len(made) == 4
    plan = pl.Gaussian(1.1).poisson(0.01) * 3 + pl.Gaussian(1.0).poisson(0.02)
    assert made.recorded() == plan
    assert made.epsilon(DELTA) == plan.epsilon(DELTA)
    assert made.get_epsilon(DELTA, alphas=[2], eps_error=0.1) == plan.epsilon(DELTA).upper


def test_the_history_may_be_replaced_as_calibration_does(po: Any) -> None:
    made = po.PrivlossAccountant()
    made.history = [(20, 256 / 60_000, 14_100)]
    assert made.get_epsilon(DELTA) == (pl.Gaussian(20.0).poisson(256 / 60_000) * 14_100).epsilon(DELTA).upper
    for wrong in ([(-1, 0.1, 1)], [(1, 2.0, 1)], [(1, 0.1, 0)]):
        with pytest.raises(pl.InvalidInput):
            made.history = wrong


def test_poisson_loaders_are_answered_without_a_word(po: Any) -> None:
    engine = trained(po, batches(640, 10), 64, poisson=True)
    assert engine.get_epsilon(DELTA) == (pl.Gaussian(1.0).poisson(1 / 64) * 64).epsilon(DELTA).upper


def test_a_shuffled_loader_is_answered_as_such_and_told(po: Any) -> None:
    engine = standins.PrivacyEngine(accountant="privloss")
    run: dict[str, Any] = {"module": None, "optimizer": None, "noise_multiplier": 1.0, "max_grad_norm": 1.0}
    with pytest.warns(po.SamplerWarning, match="shuffled epochs of 100 batches"):
        engine.make_private(data_loader=batches(1000, 10), poisson_sampling=False, **run)
    engine = trained(po, batches(1000, 10), 200)
    accounted = (pl.Gaussian(1.0).poisson(0.01) * 200).epsilon(DELTA).upper
    with pytest.warns(po.SamplerWarning, match=f"epsilon {accounted:.4f} was accounted .* what ran was shuffled"):
        found = engine.get_epsilon(DELTA)
    assert found == (pl.Gaussian(1.0).shuffle(100) * 2).under("zero-out").epsilon(DELTA).upper
    assert found > 5 * accounted
    assert engine.get_epsilon(DELTA) == found  # told once


def test_a_rate_that_was_rounded_is_told_and_the_real_one_answered(po: Any) -> None:
    engine = trained(po, batches(930, 10), 92, poisson=True)
    assert engine.accountant.history == [(1.0, 1 / 92, 92)]
    with pytest.warns(po.SamplerWarning, match="Poisson samples of rate 0.0107527, 92 per epoch"):
        assert engine.get_epsilon(DELTA) == (pl.Gaussian(1.0).poisson(1 / 93) * 92).epsilon(DELTA).upper


class Strange:
    def __len__(self) -> int:
        return 10


def test_an_unknown_sampler_is_refused_with_what_was_accounted(po: Any) -> None:
    engine = trained(po, loader(Strange()), 20)
    accounted = (pl.Gaussian(1.0).poisson(0.1) * 20).epsilon(DELTA).upper
    with pytest.raises(pl.Unsupported, match=rf"{accounted:.4f} was accounted .* 20 steps .* in 20 of them .*Strange"):
        engine.get_epsilon(DELTA)


def test_batches_behind_one_update(po: Any) -> None:
    engine = trained(po, batches(1000, 10), 50, accumulated=2)
    with pytest.warns(po.SamplerWarning, match="2 of them behind one update"):
        found = engine.get_epsilon(DELTA)
    assert found == (pl.Gaussian(1.0).shuffle(50) * 1).under("zero-out").epsilon(DELTA).upper
    with pytest.raises(pl.Unsupported, match="several clipping norms"):
        trained(po, batches(640, 10), 5, poisson=True, accumulated=2).get_epsilon(DELTA)


def test_a_hook_without_a_loader_is_taken_at_its_word(po: Any) -> None:
    made = po.PrivlossAccountant()
    made.get_optimizer_hook_fn(0.25)(SimpleNamespace(noise_multiplier=2.0, accumulated_iterations=1))
    assert made.epsilon(DELTA) == pl.Gaussian(2.0).poisson(0.25).epsilon(DELTA)


@pytest.mark.parametrize("written_by", ["rdp", "prv", "gdp", "privloss"])
def test_checkpoints_of_every_accountant_are_read(po: Any, written_by: str) -> None:
    state = {"history": [(1.1, 0.01, 100)], "mechanism": written_by}
    made = po.PrivlossAccountant()
    made.load_state_dict(state)
    made.step(noise_multiplier=1.1, sample_rate=0.01)
    assert made.history == [(1.1, 0.01, 101)]
    assert state["history"] == [(1.1, 0.01, 100)]  # the checkpoint is not the accountant's list


def test_a_checkpoint_remembers_what_ran(po: Any) -> None:
    engine = trained(po, batches(1000, 10, order=SequentialSampler), 150)
    state = json.loads(json.dumps(engine.accountant.state_dict()))
    again = po.PrivlossAccountant()
    again.load_state_dict(state)
    with pytest.warns(po.SamplerWarning):
        assert again.epsilon(DELTA) == engine.accountant.epsilon(DELTA)
    refused = trained(po, loader(Strange()), 2).accountant.state_dict()
    again.load_state_dict(refused)
    with pytest.raises(pl.Unsupported, match="Strange"):
        again.get_epsilon(DELTA)
    assert set(po.PrivlossAccountant().state_dict()) == {"history", "mechanism"}


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"history": []},
        {"history": [], "mechanism": "other"},
        {"history": [(1.0, 2.0, 3)], "mechanism": "rdp"},
        {
            "history": [],
            "mechanism": "privloss",
            "loaders": {"ran": [[1.0, 0.1, ["x", [], True, True, []], 1]], "refused": {}},
        },
    ],
)
def test_broken_checkpoints_change_nothing(po: Any, state: Any) -> None:
    made = po.PrivlossAccountant()
    made.step(noise_multiplier=1.0, sample_rate=0.5)
    with pytest.raises(pl.InvalidInput):
        made.load_state_dict(state)
    assert made.history == [(1.0, 0.5, 1)]


def test_a_shorter_history_than_ran_is_refused(po: Any) -> None:
    engine = trained(po, batches(1000, 10), 3)
    engine.accountant.history.clear()
    engine.accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    with pytest.raises(pl.InvalidInput, match="fewer steps than ran"):
        engine.get_epsilon(DELTA)


def test_an_opacus_without_a_registry_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"opacus": {"__version__": "1.5.4"}, "opacus.accountants": {"IAccountant": standins.IAccountant}}
    with pytest.raises(pl.Unsupported, match=r"Opacus 1\.5\.4: .*1\.6"):
        installed(monkeypatch, "opacus", old)


def test_without_opacus_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pl.MissingExtra, match="pip install"):
        installed(monkeypatch, "opacus", {"opacus": {}})
