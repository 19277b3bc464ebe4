"""Real packages: one environment for each, under .interop/, in which tests/interop/real/test_<name>.py runs.

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


@dataclass(frozen=True)
class Environment:
    """A package and what pip needs to be told."""

    name: str
    requirements: tuple[str, ...]


ENVIRONMENTS = (
    Environment("opendp", ("opendp==0.16.0",)),
    Environment("diffprivlib", ("diffprivlib==0.6.6", "scikit-learn<1.8")),  # 0.6.6 cannot be imported with 1.8
)
TRAINING = (  # their signatures are in tests/data/training_signatures.json
    Environment("opacus", ("torch==2.13.0", "opacus==1.6.0")),
    Environment("jax_privacy", ("jax-privacy==2.0.0",)),
    Environment("tf_privacy", ("tensorflow-privacy==0.9.0", "tensorflow==2.15.1")),  # 0.9.0 needs an old one
    Environment("flower", ("flwr==1.42.0",)),
)


def run(environment: Environment) -> int:
    """Make the environment if it is not there, and run its tests."""
    home = HOME / environment.name
    python, stamp = home / "bin" / "python", home / ".installed"
    wanted = "\n".join(environment.requirements)
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(home, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--editable", str(ROOT), "pytest>=8", "hypothesis>=6.100"], check=True)
        subprocess.run([*pip, *environment.requirements], check=True)
        stamp.write_text(wanted)
    tests = ROOT / "tests" / "interop" / "real" / f"test_{environment.name}.py"
    command = [str(python), "-m", "pytest", "-o", "filterwarnings=default", str(tests)]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, SWITCH: environment.name}).returncode


def main(names: list[str]) -> int:
    chosen = [e for e in (*ENVIRONMENTS, *TRAINING) if not names or e.name in names]
    codes = {e.name: run(e) for e in chosen}
    for name, code in codes.items():
        print(f"{name}: {'passed' if code == 0 else 'FAILED'}")
    return int(any(codes.values()) or not chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
