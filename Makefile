# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: browser coq coverage docs demo proofs test test-thorough test-scripts test-systems test-random test-slow test-lowest kernels smoke golden mutants mutants-privacy lint bench flower clean

demo: $(VENV)/.ready
	$(BIN)/discreet demo

# Two processes share the tests, in an order that is new each time (the seed is printed; --randomly-seed repeats it).
# Tests of a file stay together, so that fits are made once. Each process has one thread of the linear-algebra library:
# more of them than processors wait for each other in busy loops, for two thirds of the time.
# Compiled modules are kept whatever the environment says: tests start hundreds of processes.
coverage test test-thorough test-scripts test-systems test-random: export OPENBLAS_NUM_THREADS := 1
coverage test test-thorough test-scripts test-systems test-random: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.ready-test
	$(BIN)/pytest -n 2 --dist worksteal

# The default suite once more, with a table of the lines that it doesn't run; compiled loops are not counted.
coverage: $(VENV)/.ready-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pytest-cov>=6'
	$(BIN)/pytest -n 2 --dist worksteal --cov=discreet --cov-report=
	mkdir -p build && $(BIN)/coverage report --format=markdown --skip-covered > build/coverage.md
	@tail -1 build/coverage.md

# Searches, sweeps, long statistics, and all cases of contracts of which `make test` tries a few. CI runs this, too.
test-thorough: $(VENV)/.ready-test
	$(BIN)/pytest -n 2 --dist worksteal -m 'thorough and not slow and not systems and not scripts'

# Every script of benchmarks, docs, examples and papers runs at toy size. CI runs this after `make test`.
test-scripts: $(VENV)/.ready-test
	$(BIN)/pytest -n 2 --dist worksteal -m 'scripts and not slow'

# What starts other systems: a browser, PostgreSQL, nginx (all from `make browser`) and Flower (`make flower`). What is not
# installed is skipped. CI installs all of them and runs this, too.
test-systems: $(VENV)/.ready-systems
	$(BIN)/pytest -n 2 --dist worksteal -m 'systems and not slow and not scripts'

# The default run repeats its noise and its examples. Here both are fresh: Hypothesis tries many examples, and what it
# finds becomes an `@example` of its test; all other tests must pass whatever noise they draw.
test-random: $(VENV)/.ready-test
	$(BIN)/pytest -n 2 --dist worksteal -m hypothesis --hypothesis-profile=random --fresh-noise
	$(BIN)/pytest -n 2 --dist worksteal -m 'not slow and not systems and not scripts and not hypothesis' --fresh-noise

test-slow: $(VENV)/.ready-test
	$(BIN)/pytest -m slow

# Add the arrays of new models to those that tests compare with; look at what it prints before you commit.
golden: $(VENV)/.ready-test
	PYTHONPATH=tests $(BIN)/python -m golden.make --missing

# Wrong changes of random lines, one at a time in a private copy: which of them do tests not notice? Takes about an hour.
mutants: $(VENV)/.ready-test
	PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 nice -n 19 $(BIN)/python -m mutation.run --out tests/mutation/results.json

# The same for the code that decides about privacy, with tests chosen by function. Takes about half an hour of processor time.
mutants-privacy: $(VENV)/.ready-test
	PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 nice -n 19 $(BIN)/python -m mutation.privacy --out tests/mutation/privacy_results.json

lint: $(VENV)/.ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Programs the tests of the service use where they are found: a browser, PostgreSQL, nginx and node. For root on Debian.
# pgvector is packaged from Debian 13 on; before that `make test-systems` brings one.
browser:
	apt-get update --quiet=2
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends \
	    chromium postgresql nginx-light fonts-dejavu-core
	apt-get install --quiet=2 --yes --no-install-recommends 'postgresql-[0-9]+-pgvector' || echo "Debian 13 and later have pgvector."
	command -v node >/dev/null || apt-get install --quiet=2 --yes --no-install-recommends nodejs

# Coq with Interval and Coquelicot, for `make proofs`. For root on Debian.
coq:
	apt-get update --quiet=2
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends coq libcoq-interval libcoq-coquelicot

# Coq checks the lemmas that the proof notes link to, in the order of their dependencies. proofs/coq/README.md lists them.
proofs:
	mkdir -p build/coq && rm -f build/coq/* && cp proofs/coq/*.v build/coq/
	cd build/coq && for file in $$(coqdep -sort -Q . Discreet *.v); do echo "$$file"; coqc -q -Q . Discreet "$$file" || exit 1; done
	@echo "$$(cat proofs/coq/*.v | grep -c '^ *\(Lemma\|Theorem\)') lemmas closed."

docs: $(VENV)/.ready-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in build/site/index.html. Its search needs a server: $(BIN)/python -m http.server -d build/site"

# Machine code of the kernels that a first day needs, for wheels built from these sources. Takes three minutes.
kernels: $(VENV)/.ready-test
	$(BIN)/python .ci/kernels.py

# The wheel in clean environments of every Python found: a first list in an empty folder.
smoke: kernels
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python .ci/smoke.py

# Every library at the lowest version that pyproject.toml allows, in an environment of its own. What is tested is
# where old versions differ: reading, storing, solving, drawing noise, and the command line. Old libraries use what newer
# ones call deprecated.
LOWEST := tests/data tests/formats tests/models/test_hostile_files.py tests/solvers/test_few_rows.py tests/test_exports.py \
          tests/test_randomness.py tests/cli/test_fit.py tests/cli/test_recommend.py tests/cli/test_titles.py
test-lowest: .venv-lowest/.ready
	PYTHONPATH=src:tests .venv-lowest/bin/python -m pytest -W ignore::DeprecationWarning \
	    -m 'not slow and not systems and not scripts' $(LOWEST)

.venv-lowest/.ready: pyproject.toml .ci/lowest.py
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python .ci/lowest.py test report > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-lowest/constraints.txt \
	    . pytest hypothesis pandas pyarrow
	.venv-lowest/bin/python -m pip check
	touch $@

bench: $(VENV)/.ready-test
	for script in $$(grep -l __main__ benchmarks/*.py); do echo "$$script"; $(BIN)/python "$$script" --json || exit 1; done

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

# PostgreSQL with pgvector in a package, for machines whose PostgreSQL has no pgvector; not every Python has it.
$(VENV)/.ready-systems: $(VENV)/.ready-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pgserver>=0.1.4' || echo "Tests of pgvector need its package."
	touch $@

clean:
	rm -rf $(VENV) .venv-flower .venv-lowest .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
