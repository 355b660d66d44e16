# Every command does its own set-up in .venv; CI calls the same ones.
PYTHON ?= python3
BIN := .venv/bin
EXPERIMENTS := pronoun hidden_key patching bank parts one_head norms alignment importance beam
BENCHMARKS := training decoding engines quality precision growth startup pareto
# The build of PyTorch: where the package index has several, PIP_EXTRA_INDEX_URL chooses (the CPU build is enough).
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test quick check book experiments wheel format clean $(BENCHMARKS:%=bench-%) bench-peers bench-page bench

demo: .venv/installed ## train the English–French demo (about 4 minutes) and show what it can do
	$(BIN)/glassformer demo

test: .venv/developer .venv/browser ## all tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not book"

quick: .venv/developer ## the quick tests, in about four minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not browser and not book"

check: .venv/developer ## style, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

book: .venv/developer .venv/browser runs/demo/explorer.html ## execute the chapters, build the site, look at it in a browser
	$(BIN)/python book/site/build.py
	$(BIN)/python -m pytest -m book tests/book
	@echo "the book: $(BIN)/glassformer learn, or src/glassformer/site/index.html in a browser"

runs/demo/explorer.html:
	$(MAKE) demo

experiments: .venv/developer ## measure everything that the book's experiments say, anew (some hours)
	for experiment in $(EXPERIMENTS); do $(BIN)/python book/experiments/measure/$$experiment.py || exit; done

# Nothing else should run meanwhile. DATA=DIR names Multi30k's files, PEERS=DIR where the peers are (.peers unless given),
# ANNOTATED=FILE the_annotated_transformer.py, RUN=DIR a trained run, LIST what bench-pareto compares, ARGUMENTS further ones.
bench-peers: .venv/installed ## give each peer of the benchmarks an environment of its own (about 6 GB)
	$(BIN)/python -m benchmarks.peers.install

bench-training: .venv/installed ## speed, memory and share of the machine's ceiling in training, beside the peers
	$(BIN)/python -m benchmarks.training $(DATA:%=--data %) $(ANNOTATED:%=--annotated %) $(ARGUMENTS)

bench-decoding bench-engines bench-quality bench-precision: bench-%: .venv/installed ## sentences/s, also by CTranslate2; minutes to a BLEU; bf16 beside fp32
	@test -n "$(DATA)" || { echo "make $@ DATA=DIR: the folder of Multi30k's files"; exit 1; }
	$(BIN)/python -m benchmarks.$* --data $(DATA) $(ARGUMENTS)

bench-pareto: .venv/installed ## train and distil models (an hour), and compare quality and speed; LIST=cmudict: of words
	@test -n "$(DATA)" || { echo "make $@ DATA=DIR: the folder of the corpus's files"; exit 1; }
	$(BIN)/python -m benchmarks.pareto $(or $(LIST),multi30k) --data $(DATA) $(ARGUMENTS)

bench-growth: .venv/installed ## time and memory against length, batch, vocabulary, width, corpus
	$(BIN)/python -m benchmarks.growth $(ARGUMENTS)

bench-startup: .venv/installed ## how soon each command and a model are there
	$(BIN)/python -m benchmarks.startup $(RUN:%=--run %) $(ARGUMENTS)

bench-page: .venv/installed ## write docs/benchmarks.md from what was measured
	$(BIN)/python -m benchmarks.page

bench: bench-peers ## all of them, one after another (some hours), and the page
	for benchmark in $(BENCHMARKS); do $(MAKE) bench-$$benchmark || exit; done
	$(MAKE) bench-page

wheel: book ## the package with the book in it, into dist/
	$(BIN)/python -m hatchling build -t wheel

format: .venv/developer ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environment and all caches (runs/ stays)
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "glassformer needs Python 3.11 or newer; make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

# PyTorch comes first and by its exact version: a wide requirement could draw gigabytes of CUDA packages.
.venv/installed: .venv/python pyproject.toml constraints.txt
	$(PIP) install $$(grep '^torch==' constraints.txt)
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

.venv/developer: .venv/installed
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

# The tests of the explorer drive a real browser; where there is none, they are passed over (or fail, when CI is set).
.venv/browser: | .venv/python
	@if command -v chromium || command -v chromium-browser || command -v google-chrome; then touch $@; \
	elif [ -e /etc/debian_version ] && [ "$$(id -u)" = 0 ] && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; then touch $@; \
	else echo "no Chromium on the PATH, so the tests of the explorer's page are passed over: install it" \
		"(Debian: apt install chromium; Fedora: dnf install chromium; macOS: brew install --cask chromium)"; fi
