# `make demo` and `make test` do everything on a fresh machine: Python 3.11, a C++ compiler, the package registry.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
NATIVE := $(wildcard src/caplens/native/*.cpp src/caplens/native/*.h CMakeLists.txt)

.PHONY: demo test lint perf sanitize clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -U pip

# The torch pin comes first so that no later requirement pulls another build.
$(STAMP): $(BIN)/python pyproject.toml constraints.txt $(NATIVE)
	$(BIN)/pip install -q -c constraints.txt -e ".[all,dev]"
	@touch $@

demo: $(STAMP)
	$(BIN)/caplens score examples/captions.jsonl --html out/demo.html

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadgroup

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build out
