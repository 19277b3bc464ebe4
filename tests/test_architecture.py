"""The house stands: rooms import only from rooms above, and the public surface is what we promised."""

from __future__ import annotations

import ast
from pathlib import Path

import privloss

SOURCE = Path(privloss.__file__).parent
ROOMS = ["errors", "numerics", "mechanisms", "losses", "guarantees", "planning", "budget", "doors"]
DELEGATING = SOURCE / "mechanisms" / "questions.py"  # binds plan.epsilon(...) and friends: the one exception


def _room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "privloss" else None


def _imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
    return found


def _violations(path: Path, room: str) -> list[str]:
    here = ROOMS.index(room)
    found = []
    for module in _imports(path):
        other = _room(module)
        if other in ROOMS and ROOMS.index(other) > here:
            found.append(f"{path.name} imports {module}")
    return found


def test_rooms_import_only_from_rooms_above() -> None:
    files = [p for p in SOURCE.rglob("*.py") if p.parent != SOURCE and p != DELEGATING]
    assert len(files) > 25
    assert [v for p in files for v in _violations(p, p.parent.relative_to(SOURCE).parts[0])] == []


def test_the_check_itself_can_fail() -> None:
    assert _violations(DELEGATING, "mechanisms") != []


def test_numerics_know_no_privacy_and_descriptions_no_numerics() -> None:
    for path in (SOURCE / "mechanisms").glob("*.py"):
        assert not any(m.split(".")[0] in ("numpy", "scipy") for m in _imports(path)), path


def test_public_surface() -> None:
    assert sorted(privloss.__all__) == sorted(
        [
            "Accountant", "Allocated", "ApproxDP", "Bound", "Bounds", "Certificate", "Custom", "DensityPair",
            "DiscreteGaussian", "DiscreteLaplace", "DiscretePair", "Exponential", "FixedSize", "GDP", "Gaussian",
            "GaussianPair", "InvalidInput", "InvalidPlan", "Laplace", "Ledger", "MissingExtra", "NoisyMax", "Plan",
            "PoissonSampled", "PrivacyProfile", "PrivlossError", "PureDP", "RDP", "RandomizedResponse", "Shuffled",
            "Tabulated", "TradeOff", "TruncatedGaussian", "TruncatedLaplace", "TruncatedPoisson", "UnaryEncoding",
            "Unreachable", "Unsupported", "WithReplacement", "ZCDP", "__version__", "allocate", "calibrate",
            "certify", "composition", "conversion", "dp_sgd", "estimate", "group", "limits", "parallel", "pipelines",
            "register", "selfcheck", "shuffling", "subsampling", "sweep", "tabulate", "tabulate_densities", "tracing",
            "verify",
        ]
    )  # fmt: skip
    assert all(hasattr(privloss, name) for name in privloss.__all__)
    questions = {"epsilon", "delta", "rdp", "kl", "zcdp", "total_variation", "tradeoff", "explain", "compare"}
    assert questions <= {n for n in dir(privloss.Plan) if not n.startswith("_")}


def test_files_can_be_read_alone() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert text.count("\n") <= 400, f"{path} is too long"
        assert ast.get_docstring(ast.parse(text)) or not text.strip(), f"{path} has no docstring"
