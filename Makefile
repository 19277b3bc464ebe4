# Two commands set everything up: `make run` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell cksum pyproject.toml | cut -d' ' -f1)
BENCH_STAMP := $(VENV)/.bench-$(shell cksum pyproject.toml | cut -d' ' -f1)

.PHONY: run demo test test-interop lint types tests browser bench sweep train clean

run: $(STAMP)
	$(BIN)/privloss epsilon --noise-multiplier 1.1 --sample-rate 0.01 --steps 10000 --delta 1e-6
	@echo
	$(BIN)/privloss explain examples/release.json --delta 1e-6

# a service with a year of made-up history; Ctrl-C ends it
demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: lint types tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# whatever the environment says, bytecode is kept: hundreds of tests start a process, which else compiles all it imports;
# neighbours in a file run in one process, so that what a module or the library has computed for them is computed once
tests: $(STAMP) browser
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

# the pages are tested in Chromium: Debian's, where this may install it; elsewhere: playwright install chromium
browser:
	@command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } \
		>/dev/null 2>&1 || echo "Chromium could not be installed."

# every other package in an environment of its own, under .interop/
test-interop: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.interop.environments

bench: $(BENCH_STAMP)
	$(BIN)/python -m bench.compare

sweep: $(STAMP)
	$(BIN)/python -m bench.sweep

train: $(STAMP)
	$(BIN)/python examples/train_private.py

$(STAMP):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group test
	touch $@

$(BENCH_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	touch $@

clean:
	rm -rf $(VENV) .interop .mypy_cache .ruff_cache .pytest_cache .hypothesis
