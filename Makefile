# `make demo` and `make test` do everything on a fresh machine: Python 3.11, a C++ compiler, the package registry.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NATIVE := $(wildcard src/caplens/native/*.cpp src/caplens/native/*.h) CMakeLists.txt

.PHONY: demo test lint perf clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -U pip

# The package alone, as a user installs it.
$(VENV)/.core: $(BIN)/python pyproject.toml $(NATIVE)
	$(BIN)/pip install -q -c constraints.txt -e .
	@touch $@

# Everything optional, the test tools and the peers.
$(VENV)/.dev: $(VENV)/.core constraints.txt
	$(BIN)/pip install -q -c constraints.txt -e ".[all,dev]"
	@touch $@

demo: $(VENV)/.core
	$(BIN)/caplens score examples/captions.jsonl --html out/demo.html

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Each script runs a peer and caplens side by side and prints the ratio.
perf: $(VENV)/.dev
	for script in perf/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) build out
