# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: browser docs demo test test-slow lint bench flower clean

demo: $(VENV)/.ready
	$(BIN)/discreet demo

# Two processes share the tests; neighbors in a file stay together where they can, so that fits are made once.
test: $(VENV)/.ready-test
	$(BIN)/pytest -n 2 --dist worksteal

test-slow: $(VENV)/.ready-test
	$(BIN)/pytest -m slow

lint: $(VENV)/.ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Programs the tests of the service use where they are found: a browser, PostgreSQL and node. For root on Debian.
browser:
	apt-get update --quiet=2
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends \
	    chromium postgresql fonts-dejavu-core
	command -v node >/dev/null || apt-get install --quiet=2 --yes --no-install-recommends nodejs

docs: $(VENV)/.ready-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.ready-test
	for script in benchmarks/*.py; do echo "$$script"; $(BIN)/python "$$script" --json || exit 1; done

# Flower, for federations, in an environment of its own: it pins what discreet leaves free.
flower: .venv-flower/.ready

.venv-flower/.ready: pyproject.toml
	test -x .venv-flower/bin/python || $(PYTHON) -m venv .venv-flower
	.venv-flower/bin/python -m pip install --quiet --disable-pip-version-check 'flwr>=1.41,<1.42'
	.venv-flower/bin/python -m pip check
	touch $@

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer.")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.ready-test: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint,report]'
	touch $@

clean:
	rm -rf $(VENV) .venv-flower .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
