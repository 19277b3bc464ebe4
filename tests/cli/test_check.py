"""``privloss check``: claims of other tools are proven, refuted with a certificate, or left undecided."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.cli.main import main
from privloss.interop.claims import Claim, judge

SGD = {"noise_multiplier": 1.1, "sample_rate": 0.01, "steps": 10_000}
TRUTH = 5.8069350265655  # to 13 digits, from the certificate


def _run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    held = capsys.readouterr()
    return int(ended.value.code or 0), held.out, held.err


def _file(folder: Path, data: Any, name: str = "file.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("epsilon", "code", "verdict"), [(5.807, 0, "proven"), (5.8069, 1, "refuted"), (TRUTH, 4, "undecided")]
)
def test_three_verdicts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, epsilon: float, code: int, verdict: str
) -> None:
    claims = {
        "claim": {**SGD, "epsilon": epsilon, "delta": 1e-6},
        "opacus": [[1.1, 0.01, 6_000], [1.1, 0.01, 4_000]],
        "dp-accounting": {
            "class_name": "SelfComposedDpEvent",
            "count": 10_000,
            "event": {
                "module_name": "dp_accounting.dp_event",
                "class_name": "PoissonSampledDpEvent",
                "sampling_probability": 0.01,
                "event": {"class_name": "GaussianDpEvent", "noise_multiplier": 1.1},
            },
        },
    }
    for tool, data in claims.items():
        flags = [] if tool == "claim" else ["--epsilon", epsilon, "--delta", "1e-6"]
        out = tmp_path / f"{tool}.proof"
        done, text, _ = _run(capsys, "check", "--tool", tool, _file(tmp_path, data), *flags, "--json", "--out", out)
        found = json.loads(text)
        assert (done, found["verdict"]) == (code, verdict)
        assert found["epsilon"]["lower"] <= TRUTH <= found["epsilon"]["upper"]
        assert out.exists() == (verdict == "refuted")
        if verdict == "refuted":
            assert pl.verify(out).holds
            assert pl.Certificate.load(out).bound.lower > epsilon


def test_in_words(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    state = {"privacy_accountant_state_dict": {"history": [[1.1, 0.01, 10_000]], "mechanism": "rdp"}}
    path, out = _file(tmp_path, state), tmp_path / "proof.json"
    code, text, _ = _run(capsys, "check", "--tool", "opacus", path, "--epsilon", 1.0, "--delta", 1e-6, "--out", out)
    assert code == 1
    assert "REFUTED: the truth is at least 5.80693" in text
    assert f"privloss verify {out} --against 1.0" in text
    assert _run(capsys, "verify", out, "--against", 1.0)[0] == 0


def test_a_claim_about_a_plan_under_its_own_adjacency(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = pl.Gaussian(1.1).as_plan()
    for adjacency, code in (("add-remove", 0), ("replace-one", 1)):
        data = {"plan": plan.to_dict(), "epsilon": 4.7, "delta": 1e-6, "adjacency": adjacency}
        assert _run(capsys, "check", "--tool", "claim", _file(tmp_path, data))[0] == code


def test_no_certificate_is_said(tmp_path: Path) -> None:
    """Without noise there is nothing to certify, and the claim is refuted all the same."""
    found = judge(Claim.of_plan(pl.Gaussian(0.0), epsilon=5.0, delta=1e-6))
    assert (found.verdict, found.certificate) == ("refuted", None)
    assert "without a certificate" in found.reason


def test_a_rounded_event_is_never_refuted_by_its_rounding(tmp_path: Path) -> None:
    """Both ends of what the event may mean: the plan rounded to less privacy is not what refutes."""
    less, more = (pl.DiscreteLaplace(scale, 2) * 3 for scale in (3.0, 4.0))
    truth = (pl.DiscreteLaplace(3.5, 2) * 3).epsilon(1e-6).upper
    assert judge(Claim(less, more, truth, 1e-6)).verdict == "undecided"
    assert judge(Claim(less, more, less.epsilon(1e-6).upper, 1e-6)).verdict == "proven"
    refuted = judge(Claim(less, more, more.epsilon(1e-6).lower * 0.999, 1e-6))
    assert refuted.verdict == "refuted"
    assert refuted.certificate is not None
    assert pl.Plan.from_dict(refuted.certificate.data["plan"]) == more


def test_checkpoints(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"PK\x03\x04weights")
    asked = ("check", "--tool", "opacus", path, "--epsilon", 6.0, "--delta", 1e-6)
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = _run(capsys, *asked)
    assert (code, "pip install torch" in err) == (2, True)  # 1 would say: refuted
    seen: dict[str, Any] = {}

    def load(file: Path, **options: Any) -> Any:
        seen.update(options, file=file)
        return {"privacy_accountant_state_dict": {"history": [(1.1, 0.01, 10_000)]}}

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(load=load))
    assert _run(capsys, *asked)[0] == 0
    assert seen["weights_only"] is True  # a checkpoint of someone else runs no code

    def broken(file: Path, **options: Any) -> Any:
        raise RuntimeError("not a zip file")

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(load=broken))
    assert _run(capsys, *asked)[0] == 2


SHUFFLED = {
    "history": [[1.0, 1 / 64, 64]],
    "mechanism": "privloss",
    "loaders": {
        "ran": [[1.0, 1 / 64, ["shuffled", [["shuffle", [["steps", 64]], 64]], True, True, ["zero-out"]], 64]],
        "refused": {},
    },
}


def test_a_state_dict_that_says_which_loader_ran(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Recorded as Poisson samples epsilon is 0.97; of the shuffled epoch that ran much more is proven."""
    truth = pl.Gaussian(1.0).shuffle(64).as_plan().under("zero-out").epsilon(1e-5)
    recorded = (pl.Gaussian(1.0).poisson(1 / 64) * 64).epsilon(1e-5).upper
    assert recorded < truth.lower
    asked = ("check", "--tool", "opacus", "--delta", 1e-5)
    path = _file(tmp_path, SHUFFLED)
    for epsilon, code in ((recorded, 1), (truth.lower * 0.99, 1), (truth.lower * 1.0001, 4), (truth.upper, 0)):
        done, text, _ = _run(capsys, *asked, path, "--epsilon", epsilon)
        assert (done, "zero-out" in text) == (code, True)
    assert _run(capsys, *asked, path, "--epsilon", 9, "--adjacency", "add-remove")[0] == 2
    unknown = {**SHUFFLED, "loaders": {"ran": [], "refused": {"sampler W has no proven bound": 3}}}
    code, _, err = _run(capsys, *asked, _file(tmp_path, unknown), "--epsilon", 9)
    assert (code, "in 3 of them sampler W" in err) == (2, True)


@pytest.mark.parametrize(
    ("tool", "data", "flags"),
    [
        ("opacus", {**SHUFFLED, "loaders": {"ran": [[1.0]], "refused": {}}}, ["--epsilon", "1", "--delta", "1e-6"]),
        ("opacus", {**SHUFFLED, "loaders": 3}, ["--epsilon", "1", "--delta", "1e-6"]),
        ("opacus", {**SHUFFLED, "history": [[1.0, 1 / 64, 9]]}, ["--epsilon", "1", "--delta", "1e-6"]),
        ("claim", {"epsilon": 1.0}, []),
        ("claim", {"epsilon": 1.0, "delta": 1e-6}, []),
        ("claim", {"epsilon": 1.0, "delta": 1e-6, "steps": 3}, []),
        ("claim", {**SGD, "plan": {}, "epsilon": 1.0, "delta": 1e-6}, []),
        ("claim", {**SGD, "epsilon": -1.0, "delta": 1e-6}, []),
        ("claim", {**SGD, "epsilon": 1.0, "delta": 2.0}, []),
        ("claim", {**SGD, "epsilon": 1.0, "delta": 1e-6, "adjacency": "near"}, []),
        ("claim", {**SGD, "epsilon": 1.0, "delta": 1e-6, "clip": 1}, []),
        ("claim", {**SGD, "epsilon": 1.0, "delta": 1e-6}, ["--epsilon", "2"]),
        ("claim", [], []),
        ("opacus", [[1.1, 0.01, 10]], []),
        ("opacus", [], ["--epsilon", "1", "--delta", "1e-6"]),
        ("opacus", [[1.1, 0.01]], ["--epsilon", "1", "--delta", "1e-6"]),
        ("opacus", [["1.1", 0.01, 3]], ["--epsilon", "1", "--delta", "1e-6"]),
        ("opacus", {"history": None}, ["--epsilon", "1", "--delta", "1e-6"]),
        ("dp-accounting", {"class_name": "UnsupportedDpEvent"}, ["--epsilon", "1", "--delta", "1e-6"]),
        ("dp-accounting", {"class_name": "GaussianDpEvent"}, ["--epsilon", "1", "--delta", "1e-6"]),
        ("tensorflow", {}, ["--epsilon", "1", "--delta", "1e-6"]),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path, tool: str, data: Any, flags: list[str]) -> None:
    code, out, err = _run(capsys, "check", "--tool", tool, _file(tmp_path, data), *flags)
    assert (code, out) == (2, "")
    assert err.startswith("privloss: ")
    assert err.count("\n") == 1


def test_files_that_are_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert _run(capsys, "check", "--tool", "claim", tmp_path / "no.json")[0] == 2
    claim = _file(tmp_path, {**SGD, "epsilon": 1.0, "delta": 1e-6})
    assert _run(capsys, "check", "--tool", "claim", claim, "--out", tmp_path / "no" / "proof.json")[0] == 2
    deep = tmp_path / "deep.json"
    deep.write_text('{"class_name": "ComposedDpEvent", "events": [' * 400 + "]}" * 400)
    flags = ("--epsilon", 1, "--delta", 1e-6)
    assert _run(capsys, "check", "--tool", "dp-accounting", deep, *flags)[0] == 2
