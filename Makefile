# Ten targets at most. .ci/run calls the same ones.
PYTHON ?= python3
BIN := .venv/bin
OTHER_KUBERNETES := 1.36.3

.PHONY: setup test check format render picture bench versions clean

setup: .venv/dev-is-installed

.venv/dev-is-installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev,go]'
	touch $@

# the binaries first: a test's timeout must not count a build
test: setup
	$(BIN)/gpuwl local fetch
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --durations 20

check: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# what is written from the sources: the checker's script and the manual pages
render: setup
	$(BIN)/gpuwl check --print-script > scripts/check-config.sh
	chmod 755 scripts/check-config.sh
	$(BIN)/python -m gpuwl.cli.manpages docs/man

# the README's picture, from a real run
picture: setup
	$(BIN)/python scripts/picture.py docs/run.svg

# the lab on both Kubernetes versions that can be built, with the scheduler's message of each
versions: setup
	$(BIN)/gpuwl local fetch --kubernetes-version $(OTHER_KUBERNETES)
	$(BIN)/python bench/versions.py

# an installed package has its byte code; an editable one gets it here
bench: setup
	$(BIN)/python -m compileall -q src
	for file in start lab checker cold load place review inventory; do \
		$(BIN)/python bench/$$file.py || exit 1; done

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
