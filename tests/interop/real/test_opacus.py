"""The accountant in Opacus itself: engine, calibration, checkpoints, loaders; and it changes nothing in training."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from opacus.accountants.utils import get_noise_multiplier  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler  # noqa: E402

import privloss as pl  # noqa: E402
import privloss.interop.opacus as po  # noqa: E402
from opacus import PrivacyEngine  # noqa: E402
from privloss.cli.main import main  # noqa: E402
from tests.interop.pages import run as run_page  # noqa: E402
from tests.interop.training_signatures import described, recorded  # noqa: E402

DELTA = 1e-5
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")


def data(records: int = 640) -> Any:
    torch.manual_seed(1)
    x = torch.randn(records, 5)
    return TensorDataset(x, (x[:, 0] > 0).long())


class Run:
    """A small training, with seeds for the model, the batches and the noise."""

    def __init__(
        self, accountant: str = "privloss", loader: Any = None, noise_multiplier: float | None = 1.0, **how: Any
    ) -> None:
        torch.manual_seed(0)
        self.engine = PrivacyEngine(accountant=accountant)
        model = torch.nn.Linear(5, 2)
        given: dict[str, Any] = {
            "module": model,
            "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
            "data_loader": loader or DataLoader(data(), batch_size=10, shuffle=True),
            "max_grad_norm": 1.0,
            "noise_generator": torch.Generator().manual_seed(2),
            **how,
        }
        if noise_multiplier is None:
            made = self.engine.make_private_with_epsilon(**given)
        else:
            made = self.engine.make_private(noise_multiplier=noise_multiplier, **given)
        self.model, self.optimizer, self.loader = made

    def epoch(self, loader: Any = None) -> Run:
        for x, y in loader or self.loader:
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
        return self


def test_signatures() -> None:
    for place, parameters in recorded("opacus").items():
        assert described(place) == parameters, place


def test_an_epoch_on_poisson_samples() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", po.SamplerWarning)
        run = Run().epoch()
        found = run.engine.get_epsilon(DELTA)
    assert run.engine.accountant.history == [(1.0, 1 / 64, 64)]
    assert found == (pl.Gaussian(1.0).poisson(1 / 64) * 64).epsilon(DELTA).upper
    assert po.explain_loader(run.loader).is_poisson(1 / 64)


def test_trained_with_and_without_the_weights_are_the_same() -> None:
    weights = [
        [p.detach().clone() for p in Run(name).epoch().epoch().model.parameters()] for name in ("privloss", "prv")
    ]
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(*weights, strict=True))


def test_calibration_keeps_the_promise_and_is_below_the_others() -> None:
    run = Run(noise_multiplier=None, target_epsilon=3.0, target_delta=DELTA, epochs=2).epoch().epoch()
    assert 2.9 < run.engine.get_epsilon(DELTA) <= 3.0
    found = {
        name: get_noise_multiplier(
            target_epsilon=3, target_delta=DELTA, sample_rate=256 / 60_000, steps=14_100, accountant=name
        )
        for name in ("privloss", "prv", "rdp")
    }
    assert found["privloss"] <= found["prv"] <= found["rdp"]
    assert (pl.Gaussian(found["privloss"]).poisson(256 / 60_000) * 14_100).epsilon(DELTA).upper <= 3


@pytest.mark.parametrize("written_by", ["privloss", "rdp", "prv", "gdp"])
def test_checkpoints(written_by: str, tmp_path: Path) -> None:
    before = Run(written_by).epoch()
    before.engine.save_checkpoint(path=tmp_path / "state", module=before.model, optimizer=before.optimizer)
    after = Run()
    after.engine.load_checkpoint(path=tmp_path / "state", module=after.model, optimizer=after.optimizer)
    assert after.engine.accountant.history == before.engine.accountant.history
    after.epoch()
    assert len(after.engine.accountant) == 128


@pytest.mark.parametrize("written_by", ["privloss", "rdp", "prv"])
def test_privloss_check_reads_checkpoints(written_by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of torch.save as they are, with the weights of a model beside the history."""
    run, path, out = Run(written_by).epoch(), tmp_path / "state", tmp_path / "proof.json"
    run.engine.save_checkpoint(path=path, module=run.model, optimizer=run.optimizer)
    truth = (pl.Gaussian(1.0).poisson(1 / 64) * 64).epsilon(DELTA)
    for epsilon, code in ((truth.upper * 1.001, 0), (truth.lower * 0.999, 1)):
        assert judged(path, epsilon, out) == code
        assert out.exists() == (code == 1)
    assert pl.verify(out).holds
    assert f"REFUTED: the truth is at least {str(truth.lower)[:7]}" in capsys.readouterr().out
    torch.save({"run": Path}, path)  # a file that would run code when it is read
    assert judged(path, 1.0, out) == 2


def test_privloss_check_of_a_shuffled_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, path = Run(loader=DataLoader(data(), batch_size=10, shuffle=True), poisson_sampling=False).epoch(), "state.pt"
    run.engine.save_checkpoint(path=tmp_path / path, module=run.model, optimizer=run.optimizer)
    truth = pl.Gaussian(1.0).shuffle(64).as_plan().under("zero-out").epsilon(DELTA)
    accounted = (pl.Gaussian(1.0).poisson(1 / 64) * 64).epsilon(DELTA).upper
    assert judged(tmp_path / path, accounted, tmp_path / "proof.json") == 1
    assert judged(tmp_path / path, truth.upper, tmp_path / "proof.json") == 0
    assert "zero-out" in capsys.readouterr().out


def judged(path: Path, epsilon: float, out: Path) -> int:
    asked = ["check", "--tool", "opacus", path, "--epsilon", epsilon, "--delta", DELTA, "--out", out]
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in asked])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("shuffle", [True, False])
def test_without_poisson_sampling_what_ran_is_answered(shuffle: bool) -> None:
    loader = DataLoader(data(), batch_size=10, shuffle=shuffle)
    with pytest.warns(po.SamplerWarning, match="Opacus records Poisson samples"):
        run = Run(loader=loader, poisson_sampling=False)
    run.epoch().epoch()
    accounted = (pl.Gaussian(1.0).poisson(1 / 64) * 128).epsilon(DELTA).upper
    with pytest.warns(po.SamplerWarning, match=f"{accounted:.4f} was accounted"):
        found = run.engine.accountant.epsilon(DELTA)
    step = pl.Gaussian(1.0).shuffle(64) if shuffle else pl.Gaussian(1.0)
    assert found == (step * 2).under("zero-out").epsilon(DELTA)
    assert found.lower > accounted


def test_what_opacus_says_of_a_shuffled_run() -> None:
    """14 100 steps: accounted as Poisson samples below 3, and at least 18 is proven."""
    accountant = po.PrivlossAccountant()
    accountant.history = [(0.9692, 256 / 60_000, 14_100)]
    assert accountant.get_epsilon(DELTA) < 3
    loader = DataLoader(TensorDataset(torch.zeros(60_000, 1)), batch_size=256, shuffle=True)
    assert po.explain_loader(loader).epsilon(DELTA, noise_multiplier=0.9692, epochs=60).lower >= 18.0


def test_93_batches_become_92() -> None:
    with pytest.warns(po.SamplerWarning, match=r"int\(1/rate\) was rounded down"):
        run = Run(loader=DataLoader(data(930), batch_size=10))
    run.epoch()
    assert run.engine.accountant.history == [(1.0, 1 / 92, 92)]
    with pytest.warns(po.SamplerWarning, match="Poisson samples of rate"):
        found = run.engine.get_epsilon(DELTA)
    assert found == (pl.Gaussian(1.0).poisson(1 / 93) * 92).epsilon(DELTA).upper


def test_batches_split_for_memory_are_one_step() -> None:
    run = Run()
    with BatchMemoryManager(data_loader=run.loader, max_physical_batch_size=4, optimizer=run.optimizer) as small:
        assert po.explain_loader(small).is_poisson(1 / 64)
        run.epoch(small)
    assert run.engine.accountant.history == [(1.0, 1 / 64, 64)]


def test_loaders_of_pytorch() -> None:
    drawn = DataLoader(data(), batch_size=10, sampler=RandomSampler(data(), replacement=True))
    assert (
        po.explain_loader(drawn).plan(noise_multiplier=1.0, epochs=1) == pl.Gaussian(1.0).with_replacement(640, 10) * 64
    )
    dropped = po.explain_loader(DataLoader(data(), batch_size=100, shuffle=True, drop_last=True))
    assert (dropped.batches, dropped.attained) == (6, False)
    with pytest.raises(pl.Unsupported, match="WeightedRandomSampler"):
        po.explain_loader(DataLoader(data(), batch_size=10, sampler=WeightedRandomSampler([1.0] * 640, 640)))
    with pytest.raises(pl.Unsupported, match="batch sampler"):
        po.explain_loader(DataLoader(data(), batch_size=None))


def test_an_unknown_sampler_is_refused_after_training_too() -> None:
    weighted = DataLoader(data(), batch_size=10, sampler=WeightedRandomSampler([1.0] * 640, 640))
    run = Run(loader=weighted, poisson_sampling=False).epoch()
    with pytest.raises(pl.Unsupported, match=r"was accounted .*WeightedRandomSampler"):
        run.engine.get_epsilon(DELTA)


def test_the_code_in_the_docs_runs() -> None:
    space = run_page("training", "Opacus")
    engine: Any = space["engine"]
    assert 2.9 < engine.get_epsilon(DELTA) <= 3.0
    assert str(po.explain_loader(space["batches"])) == "Poisson samples of rate 0.02, 50 per epoch"
