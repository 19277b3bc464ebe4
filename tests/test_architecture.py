"""The house stands: rooms import from rooms above, facts are declared, the public surface is what we promised."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import privloss
from privloss.mechanisms.kinds import KINDS, SCHEMES

SOURCE = Path(privloss.__file__).parent
ROOMS = [
    "errors", "adjacency", "numerics", "losses", "mechanisms", "answers", "theorems", "papers", "certificates",
    "planning", "audit", "ledger", "client", "interop", "service", "cli",
]  # fmt: skip
DELEGATING = SOURCE / "mechanisms" / "questions.py"  # binds plan.epsilon(...) and friends: the one exception
FILES = sorted(SOURCE.rglob("*.py"))


def _modules() -> dict[str, Path]:
    return {_module(p): p for p in FILES}


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path) -> set[str]:
    """Every module a file imports, also inside functions and for type checkers only."""
    known, found = _modules(), set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{a.name}" for a in node.names}
            found |= {name if name in known else node.module for name in whole}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
    return found


# -- rooms -------------------------------------------------------------------------------------------------------------


def _room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "privloss" else None


def _violations(path: Path, room: str) -> list[str]:
    others = [(module, _room(module)) for module in sorted(_imports(path))]
    return [
        f"{path.name} imports {module}"
        for module, other in others
        if other in ROOMS and ROOMS.index(other) > ROOMS.index(room)
    ]


def test_rooms_import_only_from_rooms_above() -> None:
    files = [p for p in FILES if p.parent != SOURCE and p != DELEGATING]
    assert len(files) > 100
    assert [v for p in files for v in _violations(p, p.relative_to(SOURCE).parts[0])] == []


def test_the_check_itself_can_fail() -> None:
    assert _violations(DELEGATING, "mechanisms") != []


def _cycles(graph: dict[str, set[str]]) -> list[str]:
    """Modules that can reach themselves."""
    found = []
    for start in graph:
        seen: set[str] = set()
        open_ends = list(graph[start])
        while open_ends:
            module = open_ends.pop()
            if module not in seen:
                seen.add(module)
                open_ends.extend(graph.get(module, ()))
        if start in seen:
            found.append(start)
    return found


def _graph() -> dict[str, set[str]]:
    return {
        m: _imports(p) & set(_modules()) - {m} for m, p in _modules().items() if p != DELEGATING and m != "privloss"
    }


def test_no_import_cycles_call_time_imports_included() -> None:
    assert _cycles(_graph()) == []


def test_cycles_would_be_found() -> None:
    assert _cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]
    broken = _graph()
    broken["privloss.errors"] = {"privloss.cli.main"}
    assert "privloss.errors" in _cycles(broken)


def test_losses_know_no_mechanism_and_numerics_no_privacy() -> None:
    for path in (SOURCE / "losses").rglob("*.py"):
        assert not any(m.startswith("privloss.mechanisms") for m in _imports(path)), path
    for path in (SOURCE / "answers").rglob("*.py"):
        assert not any(m.startswith("privloss.certificates") for m in _imports(path)), path


# -- declared facts ----------------------------------------------------------------------------------------------------

CLASSES = {record.description.__name__ for record in (*KINDS.values(), *SCHEMES.values())}
NAMES = {*KINDS, *SCHEMES}
SECOND_IMPLEMENTATION = SOURCE / "certificates" / "pairs"  # the checker reads plan files itself, on purpose


def _named(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
    }


def _is_type_call(node: ast.AST) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"
    return called or (isinstance(node, ast.Attribute) and node.attr == "__class__")


def _words(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def asks_for_a_class(tree: ast.AST, classes: set[str] = CLASSES, names: set[str] = NAMES) -> Iterator[str]:
    """Every place that asks which mechanism or sampler something is, however it is written."""
    for node in ast.walk(tree):
        where = f"line {getattr(node, 'lineno', 0)}"
        asked = isinstance(node, ast.Call) and bool(_named(node.func) & {"isinstance", "issubclass"})
        if asked and isinstance(node, ast.Call) and _named(node.args[1]) & classes:
            yield f"{where}: isinstance"
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(_is_type_call(s) for s in sides) and any(_named(s) & classes for s in sides):
                yield f"{where}: type"
            if any(_named(s) & {"kind", "scheme", "method"} for s in sides) and any(_words(s) & names for s in sides):
                yield f"{where}: by name"
        if isinstance(node, ast.MatchClass) and _named(node.cls) & classes:
            yield f"{where}: match"
        if isinstance(node, ast.MatchValue) and _words(node.value) & names:
            yield f"{where}: match by name"
        if isinstance(node, ast.Subscript) and _is_type_call(node.slice):
            yield f"{where}: a table of classes"
        if isinstance(node, ast.Dict) and any(k is not None and _named(k) & classes for k in node.keys):
            yield f"{where}: a table of classes"


def test_nobody_asks_for_a_mechanisms_class() -> None:
    # only what the package registers itself: another test in this process may have registered a mechanism of its own
    kinds = [r for r in (*KINDS.values(), *SCHEMES.values()) if r.description.__module__.startswith("privloss.")]
    own = {Path(str(sys.modules[r.description.__module__].__file__)) for r in kinds}
    files = [p for p in FILES if p not in own and not p.is_relative_to(SECOND_IMPLEMENTATION)]
    found = [f"{p.relative_to(SOURCE)} {place}" for p in files for place in asks_for_a_class(ast.parse(p.read_text()))]
    assert found == []
    for path in own:  # in its own file a mechanism may look at itself, not at others
        text = path.read_text()
        mine = {r.description.__name__ for r in kinds if f"class {r.description.__name__}(" in text}
        assert list(asks_for_a_class(ast.parse(text), CLASSES - mine, set())) == [], path


@pytest.mark.parametrize(
    "planted",
    [
        "isinstance(m, Gaussian)",
        "isinstance(m, (int, pl.Laplace))",
        "issubclass(t, PoissonSampled)",
        "type(m) is Custom",
        "m.__class__ == Custom",
        "TABLE[type(m)]",
        "{Gaussian: 1, Laplace: 2}",
        "m.kind == 'gaussian'",
        "kind in ('custom', 'tabulated')",
        "match m:\n    case Gaussian(): pass",
        "match m.kind:\n    case 'zcdp': pass",
    ],
)
def test_every_way_of_asking_is_noticed(planted: str) -> None:
    assert list(asks_for_a_class(ast.parse(planted)))


# -- sizes -------------------------------------------------------------------------------------------------------------

_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.With, ast.Assert, ast.comprehension)


def complexity(function: ast.AST) -> int:
    """McCabe's number: decisions plus one; nested functions count for themselves."""
    total, inside = 1, list(ast.iter_child_nodes(function))
    while inside:
        node = inside.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        total += isinstance(node, _BRANCHES) and not isinstance(node, (ast.With, ast.Assert))
        total += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        total += isinstance(node, ast.match_case)
        inside.extend(ast.iter_child_nodes(node))
    return total


def test_files_and_functions_can_be_read_alone() -> None:
    for path in FILES:
        text = path.read_text()
        assert text.count("\n") <= 400, f"{path} is too long"
        tree = ast.parse(text)
        assert ast.get_docstring(tree) or not text.strip(), f"{path} has no docstring"
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                assert lines <= 60, f"{path}: {node.name} has {lines} lines"
                assert complexity(node) <= 15, f"{path}: {node.name} is too complex ({complexity(node)})"


def test_few_types_are_ignored() -> None:
    assert sum(p.read_text().count("# type: ignore") for p in FILES) <= 23


# -- the front door ----------------------------------------------------------------------------------------------------


def test_public_surface() -> None:
    assert sorted(privloss.__all__) == sorted(
        [
            "AboveThreshold", "Accountant", "Allocated", "AlreadySpentError", "ApproxDP", "Bound", "Bounds",
            "Certificate", "Custom", "DensityPair", "DiscreteGaussian", "DiscreteLaplace", "DiscretePair",
            "DistanceTest", "Exponential", "FixedSize", "GDP", "GNMax", "Gaussian", "GaussianMixture", "GaussianPair",
            "Geometric", "InvalidInput", "InvalidPlan", "Kind", "Laplace", "Ledger", "MatrixMechanism", "Mechanism",
            "MissingExtra", "NoisyMax", "NoisyThreshold", "PermuteAndFlip", "Plan", "PoissonSampled",
            "PrivacyProfile", "PrivlossError", "PureDP", "Quantile", "RDP", "RandomizedResponse", "RefusedError",
            "Sampled", "SelectBest", "Shuffled", "SmoothSensitivity", "StabilityHistogram", "Step", "Tabulated",
            "Together", "TopK", "TradeOff", "TreeAggregation", "TruncatedCDP", "TruncatedGaussian",
            "TruncatedLaplace", "TruncatedPoisson", "UnaryEncoding", "Unreachable", "Unsupported", "WithReplacement",
            "ZCDP", "__version__", "adaptive_clipping", "allocate", "audit", "calibrate", "central_limit", "certify",
            "compare", "composition", "confident_gnmax", "conversion", "dp_ftrl", "dp_sgd", "estimate", "figures",
            "gaussian_dp", "group", "inequalities", "limits", "odometers", "optimal_conversion", "parallel",
            "parameters", "pipelines", "propose_test_release", "register", "remarks", "saddle_point", "select_best",
            "selfcheck", "shuffling", "subsampling", "sweep", "tabulate", "tabulate_densities", "together", "tracing",
            "tradeoff", "verify",
        ]
    )  # fmt: skip
    assert all(hasattr(privloss, name) for name in privloss.__all__)
    questions = {
        "epsilon", "delta", "rdp", "kl", "zcdp", "total_variation", "tradeoff", "explain", "compare", "supported",
    }  # fmt: skip
    assert questions <= {n for n in dir(privloss.Plan) if not n.startswith("_")}


def test_dir_lists_every_public_name_before_anything_was_used() -> None:
    probe = "import privloss as pl, sys; print(set(pl.__all__) <= set(dir(pl)), 'numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["True", "False"]


def test_type_checkers_see_what_is_loaded() -> None:
    """The imports for type checkers name every public name, from the module it is loaded from."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    block = next(n for n in tree.body if isinstance(n, ast.If))
    seen = {a.asname: f"{n.module}" for n in ast.walk(block) if isinstance(n, ast.ImportFrom) for a in n.names}
    assert set(seen) == set(privloss.__all__) - {"__version__"}
    for name, module in seen.items():
        assert getattr(__import__(str(module), fromlist=[str(name)]), str(name)) is getattr(privloss, str(name))


def test_a_type_checker_sees_real_types(tmp_path: Path) -> None:
    script = tmp_path / "reveal.py"
    script.write_text("import privloss as pl\n" + "".join(f"reveal_type(pl.{n})\n" for n in privloss.__all__))
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", str(script)]
    out = subprocess.run(command, capture_output=True, text=True, cwd=SOURCE.parents[1]).stdout
    revealed = [line for line in out.splitlines() if "Revealed type" in line]
    assert len(revealed) == len(privloss.__all__), out
    assert [line for line in revealed if line.rstrip('"').endswith('is "Any')] == []
