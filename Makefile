# Everything that a contributor or a first-time user needs: `make demo`, `make test`, `make check`.
PYTHON ?= python3
VENV := .venv
# Tests start hundreds of processes, each of which would compile the package again where bytecode is not written.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ALONE := $(VENV)/.installed-alone

.PHONY: help demo test test-fast test-all test-oldest coverage constraints check format docs web bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo         set up, make a synthetic city, anonymize it, verify it"
	@echo "make test         set up and run the tests, except those that take long"
	@echo "make test-fast    unit tests without compiled kernels, services and whole runs"
	@echo "make test-all     all tests: a service under load and with killed workers, reports in a browser, Spark, each extra alone"
	@echo "make test-oldest  tests with the lowest declared versions of all dependencies"
	@echo "make coverage     share of lines that the tests reach, kernels as plain Python"
	@echo "make check        formatting, lint, types, import rules, the site of the docs with its links"
	@echo "make format       format the code"
	@echo "make docs         build the docs as a site with search: build/site/index.html"
	@echo "make web          build the scripts and styles of the report and of the service's page (needs node)"
	@echo "make bench        run every benchmark"
	@echo "make constraints  write the installed versions to constraints.txt, after the tests passed with them"

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(ALONE) $@

# The package without tools of developers, for a first look.
$(ALONE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

demo: $(ALONE)
	$(BIN)/crowdveil demo -o demo-out --overwrite

# Tests of plain Python and numpy: most need no kernel, and none starts a service or a whole run.
FAST := tests/compat tests/verbs/test_run_file.py tests/engine tests/model tests/test_errors.py tests/test_params_rows.py tests/test_method.py \
	tests/io/test_atomic.py tests/io/test_columns.py tests/io/test_formulas.py tests/io/test_times.py \
	tests/io/test_values.py tests/guarantees/test_checkers.py tests/guarantees/test_combinations.py tests/guarantees/test_sectors.py

test-fast: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(FAST)

# Hypothesis seeds its own tests. One worker for each core.
test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

# Spark is large, so it comes only with all tests; its own tests skip without Java.
test-all: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[spark]'
	CROWDVEIL_ALL_EXAMPLES=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# Development tools may be newer: what is declared in dependencies and extras is held to its lowest version. Old packages call what
# newer ones that they depend on have deprecated. Kernels are kept apart: another numba would replace those of other tests.
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) tools/versions.py lowest > .venv-oldest/lowest.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-oldest/lowest.txt \
		-e '.[analysis,omx,pandas,postgres,server,test]'
	NUMBA_CACHE_DIR=$(CURDIR)/.venv-oldest/kernels .venv-oldest/bin/python -m pytest -n 2 --dist worksteal -m "not slow" \
		-W ignore::DeprecationWarning

# Compiled kernels cannot be traced: their own tests run again as plain Python, except that of compiling. Hashes overflow
# by design, of which numpy warns there.
coverage: $(STAMP)
	rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run -p -m pytest -n 0 -m "not slow"
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -p -m pytest -n 0 -m "not slow" -W "ignore:overflow encountered:RuntimeWarning" tests/kernels \
		--ignore=tests/kernels/test_jit.py
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --skip-covered --sort=cover

constraints: $(STAMP)
	(echo "# The versions that the tests last passed with, written by make constraints: pip install -c constraints.txt crowdveil"; \
		$(BIN)/python tools/versions.py tested) > constraints.txt

check: $(STAMP)
	$(BIN)/ruff format --check src tests benchmarks tools docs/_ext
	$(BIN)/ruff check src tests benchmarks tools docs/_ext
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini
	$(BIN)/lint-imports
	$(BIN)/python tools/page_types.py --check
	$(MAKE) --no-print-directory docs
	web/check.sh

format: $(STAMP)
	$(BIN)/ruff format src tests benchmarks tools docs/_ext
	$(BIN)/ruff check --fix src tests benchmarks tools docs/_ext

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site

web: $(STAMP)
	$(BIN)/python tools/page_types.py
	cd web && npm ci --no-audit --no-fund --silent && npm run --silent build

bench: $(STAMP)
	@for b in benchmarks/[a-z]*.py; do echo "== $$b"; $(BIN)/python $$b || exit 1; done

clean:
	rm -rf $(VENV) .venv-oldest demo-out .bench build dist web/node_modules
