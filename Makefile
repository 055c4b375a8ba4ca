# Ten targets at most. .ci/run calls the same ones.
PYTHON ?= python3
BIN := .venv/bin
OTHER_KUBERNETES := 1.36.3

.PHONY: setup test check format render bench versions clean

setup: .venv/dev-is-installed

.venv/dev-is-installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev,go]'
	touch $@

# the binaries first: a test's timeout must not count a build
test: setup
	$(BIN)/gpuwl local fetch
	$(BIN)/pytest

check: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

render: setup
	$(BIN)/gpuwl check --print-script > scripts/check-config.sh
	chmod 755 scripts/check-config.sh

# the lab on both Kubernetes versions that can be built, with the scheduler's message of each
versions: setup
	$(BIN)/gpuwl local fetch --kubernetes-version $(OTHER_KUBERNETES)
	$(BIN)/python bench/versions.py

# an installed package has its byte code; an editable one gets it here
bench: setup
	$(BIN)/python -m compileall -q src
	$(BIN)/python bench/start.py
	$(BIN)/python bench/lab.py
	$(BIN)/python bench/checker.py
	$(BIN)/python bench/cold.py
	$(BIN)/python bench/load.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
