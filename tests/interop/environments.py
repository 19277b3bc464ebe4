"""Real packages: one environment for each, under .interop/, in which tests/interop/real/test_<test>.py runs.

`make test-interop` runs all of them, `python -m tests.interop.environments opendp` one. `make test` needs none: it runs
the adapters against stand-ins (standins.py), whose signatures are recorded from the real classes in
tests/data/signatures.json.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".interop"
SWITCH = "PRIVLOSS_INTEROP"  # which real package is there; without it the real tests are not collected
PASSED, FAILED, ABSENT = "passed", "FAILED", "FAILED: pip did not install it"


@dataclass(frozen=True)
class Environment:
    """A package, what pip needs to be told, and the tests if several versions share them."""

    name: str
    requirements: tuple[str, ...]
    test: str = ""

    @property
    def tests(self) -> Path:
        return ROOT / "tests" / "interop" / "real" / f"test_{self.test or self.name}.py"


ENVIRONMENTS = (
    Environment("opendp", ("opendp==0.16.0",)),
    Environment("diffprivlib", ("diffprivlib==0.6.6", "scikit-learn<1.8")),  # 0.6.6 cannot be imported with 1.8
    Environment("pipelinedp", ("pipeline-dp==0.3.1",)),
    Environment("tumult", ("tmlt.analytics==0.21.0",)),  # needs Java, 17 will do
)
TRAINING = (  # their signatures are in tests/data/training_signatures.json
    Environment("opacus", ("torch==2.13.0", "opacus==1.6.0")),
    Environment("jax_privacy", ("jax-privacy==2.0.0",)),
    Environment("tf_privacy", ("tensorflow-privacy==0.9.0", "tensorflow==2.15.1")),  # 0.9.0 needs an old one
    Environment("flower", ("flwr==1.41.0",)),
)
VERSIONS = tuple(  # `make test` has 0.6.0; 0.4.0 and 0.4.1 need a SciPy that Python 3.11 cannot have
    Environment(f"dp_accounting-{version}", (f"dp-accounting=={version}",), test="dp_accounting")
    for version in ("0.4.2", "0.4.4", "0.5.0", "0.5.1", "0.6.0")
)
REFUSED = (  # before there was a registry of accountants: refused by name
    Environment("opacus-1.5.4", ("torch==2.13.0", "opacus==1.5.4"), test="opacus_refused"),
)
EVERY = (*ENVIRONMENTS, *TRAINING, *VERSIONS, *REFUSED)


def run(environment: Environment) -> str:
    """Make the environment if it is not there, and run its tests."""
    home = HOME / environment.name
    python, stamp = home / "bin" / "python", home / ".installed"
    wanted = "\n".join(environment.requirements)
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(home, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for wishes in (("--editable", str(ROOT), "pytest>=8", "hypothesis>=6.100"), environment.requirements):
            if subprocess.run([*pip, *wishes]).returncode:
                return ABSENT
        stamp.write_text(wanted)
    command = [str(python), "-m", "pytest", "-o", "filterwarnings=default", str(environment.tests)]
    given = {**os.environ, SWITCH: environment.name, "PYSPARK_PYTHON": str(python)}  # else Spark's workers use another
    return PASSED if subprocess.run(command, cwd=ROOT, env=given).returncode == 0 else FAILED


def main(names: list[str]) -> int:
    """Every environment whose name begins with one of the names; one that fails does not stop the others."""
    chosen = [e for e in EVERY if not names or e.name.startswith(tuple(names))]
    results = {e.name: run(e) for e in chosen}
    for name, result in results.items():
        print(f"{name}: {result}")
    return int(not chosen or any(result != PASSED for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
