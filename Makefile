# Everything that a contributor or a first-time user needs: `make demo`, `make test`, `make check`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all check format docs web bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    set up, make a synthetic city, anonymize it, verify it"
	@echo "make test    set up and run the tests, but for those that take long"
	@echo "make test-all  all tests: jobs on a server under load and with killed workers, reports in a browser, Spark"
	@echo "make check   formatting, lint, types, import rules, generated pages"
	@echo "make format  put the code into its format"
	@echo "make docs    write the generated pages anew"
	@echo "make web     build the scripts and styles of the report and of the service's page anew (needs node)"
	@echo "make bench   run every benchmark"

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP)
	$(BIN)/crowdveil demo -o demo-out --overwrite

# Fuzzed tests are seeded by hypothesis itself; two workers fit the smallest machine that we guarantee.
test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# Spark is large, so it comes only with all tests; its own tests skip without Java.
test-all: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[spark]'
	CROWDVEIL_ALL_EXAMPLES=1 $(BIN)/python -m pytest -n 2 --dist worksteal

check: $(STAMP)
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m crowdveil.docs --check
	$(BIN)/python -m crowdveil.server.page_types --check
	web/check.sh

format: $(STAMP)
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

docs: $(STAMP)
	$(BIN)/python -m crowdveil.docs

web: $(STAMP)
	$(BIN)/python -m crowdveil.server.page_types
	cd web && npm ci --no-audit --no-fund --silent && npm run --silent build

bench: $(STAMP)
	@for b in benchmarks/[a-z]*.py; do echo "== $$b"; $(BIN)/python $$b || exit 1; done

clean:
	rm -rf $(VENV) demo-out .bench build dist web/node_modules
