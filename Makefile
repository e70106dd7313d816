# What a newcomer and CI run. Needs Python >= 3.11 and make; each target makes what it needs.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PAGE := src/redmeter/dashboard/static/index.html
# Test workers. Tests wait for servers and processes half of the time: two for each core. A worker
# that has run out of tests takes half of those that another one has left.
WORKERS ?= 4
# Inputs that `make fuzz` tries with each test.
EXAMPLES ?= 2000
# How long `make soak` takes, all stages together.
SOAK_SECONDS ?= 3600
# Which stages of it, comma-separated; and words of the names of mutants. All of them by default.
STAGES ?=
# The seed of its plan: a new one by default, which it prints.
SOAK_SEED ?=
MUTANTS ?=
# The release that `make release` prepares, e.g. 0.2.0, and the targets that have to pass before.
VERSION ?=
CHECKS ?= test nightly
# Tests start hundreds of Python processes; each would compile what is not cached.
unexport PYTHONDONTWRITEBYTECODE
PYTEST = tools/tests -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help up stop test nightly clocks quick check format bench matrix mutants fuzz soak faults build release docs docs-serve pictures clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: set PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# The page: made by the install above, and anew where its sources are newer.
$(PAGE): $(READY) $(shell find frontend -name node_modules -prune -o -type f -print)
	@tools/npm --version >/dev/null  # brings a node along where there is none
	$(BIN)/python hatch_build.py
	@touch $@

up: $(READY) $(PAGE) ## start the embedded server and the cleaner in the background
	@$(BIN)/redmeter up --detach --sample-log tests/data/access.log
	@echo "the command: $(BIN)/redmeter"

stop: $(READY) ## end what `make up` started
	@$(BIN)/redmeter stop

test: $(READY) $(PAGE) ## all checks and tests but the nightly ones
	@$(MAKE) --no-print-directory -j 2 .types .style .page
	$(PYTEST) -m "not nightly"

nightly: $(READY) $(PAGE) fuzz ## what takes too long for `make test`: a short soak, long runs, tests of the tests
	$(BIN)/python tests/support/chromium.py
	$(PYTEST) -m nightly
	$(PYTEST) -m "hypothesis and not nightly" --hypothesis-profile=thorough --ignore=tests/fuzz
	export REDMETER_TEST_SERVERS=redis-6.2,redis-8.2,valkey-8.1; \
		$(PYTEST) -m "not nightly" -k 'redis-6.2 or redis-8.2 or valkey-8.1'

clocks: $(READY) ## unit and contract tests with the clocks shifted to midnight, a month's end, 29 February, DST
	tools/clocks

quick: check $(PAGE) ## checks, unit and contract tests: one server, few examples, no clusters, nothing slow
	export REDMETER_TEST_SERVERS=valkey-9.1; $(PYTEST) -q -m "not (slow or nightly or realdata)" \
		--hypothesis-profile=quick \
		--ignore=tests/faults --ignore=tests/integrations --ignore=tests/demo --ignore=tests/browser \
		--ignore=tests/dashboard --ignore=tests/docs --ignore=tests/cli --ignore=tests/fuzz \
		--ignore=tests/soak --ignore=tests/packaging --ignore=tests/migrating \
		--ignore-glob='*/test_support_*' --ignore-glob='*cluster*' --ignore-glob='*/test_scatter*' \
		--ignore-glob='*/test_replicas*' --ignore-glob='*/test_sentinel*'

check: $(READY) ## formatting, lint, types, docs
	@$(MAKE) --no-print-directory -j 2 .types .style

# The two halves of `make check`, and what `make test` runs beside the longer one.
.PHONY: .types .style .page
.types:
	$(BIN)/mypy

.style:
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/python tools/docs.py --check
	$(BIN)/python tools/openapi.py --check
	$(BIN)/python tools/words.py --check
	$(BIN)/python tools/mutants --check
	tools/npm run --silent check

.page:
	tools/npm run --silent test
	$(BIN)/python tests/support/chromium.py

format: $(READY) ## format the code, write the generated docs
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/python tools/docs.py
	$(BIN)/python tools/openapi.py
	$(BIN)/python tools/structure.py
	tools/npm run --silent types
	tools/npm run --silent format

bench: $(READY) ## measure against the listings of the book, and exporters; SMOKE=1: each row at a tiny size
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(if $(SMOKE),REDMETER_BENCH_SMOKE=1 )$(BIN)/python benchmarks/run.py

matrix: ## tests on each Python; contract and fault tests on each server
	tools/matrix

# Random draws: the same in each run by day, new ones in these two. See tools/tests.
nightly fuzz: export REDMETER_TEST_SEED ?= new
fuzz: WORKERS = 2
fuzz: $(READY) ## try EXAMPLES inputs (2000) on each parser, for some minutes
	export REDMETER_FUZZ_EXAMPLES=$(EXAMPLES); $(PYTEST) --timeout=0 tests/fuzz

soak: $(READY) ## everything at once for SOAK_SECONDS (an hour); the result goes into docs/soak.md
	$(BIN)/python tools/soak --seconds $(SOAK_SECONDS) $(if $(STAGES),--stages $(STAGES)) $(if $(SOAK_SEED),--seed $(SOAK_SEED)) --write docs/soak.md

faults: $(READY) ## break real servers in each way of a table, five minutes; it goes into docs/fault-table.md
	$(BIN)/python tools/faults --write docs/fault-table.md

mutants: $(READY) ## break the code in known ways; a test has to go red each time
	$(BIN)/python tools/mutants $(MUTANTS)

build: $(READY) $(PAGE) ## sdist and wheel into dist/, checked
	$(BIN)/python -m hatchling build
	$(BIN)/python tools/release.py check

release: $(READY) $(PAGE) ## check everything, write and tag the release VERSION; publishes nothing
	$(BIN)/python tools/release.py refuse "$(VERSION)"
	@$(MAKE) --no-print-directory $(CHECKS)
	$(BIN)/python tools/release.py tag "$(VERSION)"

docs: $(READY) ## build the site of the docs into site/, and check its links
	$(BIN)/python tools/site.py build

docs-serve: $(READY) ## serve the site at http://127.0.0.1:8001/, and build it again after changes
	$(BIN)/python tools/site.py serve

pictures: $(READY) $(PAGE) ## make the pictures of the docs again: the page, terminals, a benchmark's chart; minutes
	$(BIN)/python tools/pictures.py

clean: ## remove what the targets made
	rm -rf $(VENV) __pycache__ dist site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		src/redmeter/dashboard/static frontend/node_modules
	find src tests tools benchmarks -name __pycache__ -prune -exec rm -rf {} +
