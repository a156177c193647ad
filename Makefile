# make demo and make test set everything up by themselves; a second call does no set-up again.
# uv installs the locked versions. Where it is missing, it is put into .venv with pip first, in the
# version that is written here: what installs all else is locked as well.

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && { echo $$python; break; }; done)
UV ?= $(shell command -v uv 2>/dev/null)
UV_VERSION := 0.13.7
BIN := .venv/bin
SYNC := sync --quiet --locked --all-extras --inexact --compile-bytecode

.PHONY: setup demo test quick slow-tests test-browser test-wheel test-spark test-r hunt torture collector check format bench coverage docs clean

setup: .venv/.installed .venv/.compiled

.venv/.installed: pyproject.toml uv.lock
	@$(or $(PYTHON),false) -c '$(NEW_ENOUGH)' \
		|| { echo "expost needs Python 3.11 or newer; name one with make PYTHON=..." >&2; exit 2; }
	@echo "Setting up .venv, once ..."
ifeq ($(UV),)
	@test -x $(BIN)/uv || { $(PYTHON) -m venv .venv \
		&& $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); }
	@$(BIN)/uv $(SYNC)
else
	@test -x $(BIN)/python || $(UV) venv --quiet --python "$$(command -v $(PYTHON))" .venv
	@$(UV) $(SYNC)
endif
	@touch $@

.venv/.compiled: .venv/.installed $(wildcard src/expost/solver/kernels/*.py)
	@echo "Compiling the optimizer, once ..."
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m expost.solver.warm_up
	@touch $@

demo: setup
	@mkdir -p build
	@$(BIN)/expost demo --out build/odometer.png
	@echo
	@echo "The paper, reproduced in about a minute:"
	@$(BIN)/expost reproduce --quick --out build/reproduced

test: setup
	@$(BIN)/pytest -q -n auto

quick: setup
	@$(BIN)/pytest -q -n auto -m "not slow" --durations=5 --durations-min=1

slow-tests: setup
	@$(BIN)/python tests/slow_tests.py

# In an environment of its own: only these tests need a browser and what drives it.
BROWSER := build/browser/venv
test-browser: setup
	@UV_PROJECT_ENVIRONMENT=$(BROWSER) $(or $(UV),$(BIN)/uv) sync --quiet --locked \
		--no-default-groups --group browser --extra frames
	@$(BROWSER)/bin/pytest -q tests/browser

test-wheel: setup
	@UV="$(or $(UV),$(abspath $(BIN))/uv)" $(BIN)/python tests/installations.py $(PYTHONS)

test-spark: setup
	@UV="$(or $(UV),$(abspath $(BIN))/uv)" $(BIN)/python tests/on_spark.py

# With R from the system: apt-get install r-base-core r-cran-ggplot2 r-cran-jsonlite
test-r: setup
	@EXPOST_R=1 $(BIN)/pytest -q tests/documentation/test_docs.py -k how-to/r.md

hunt: setup
	@$(BIN)/python tests/hunt.py $(if $(MODE),--mode $(MODE)) $(SEED)

torture: setup
	@$(BIN)/python tests/torture.py $(if $(SEEDS),--seeds $(SEEDS)) $(if $(SEED),--first $(SEED))

# A study over HTTP with 2,000 devices and three kills of the server, 100,000 bad bodies, a soak, and
# schemathesis, which has an environment of its own.
SCHEMATHESIS := build/schemathesis
collector: setup
	@$(or $(UV),$(BIN)/uv) venv --quiet --allow-existing $(SCHEMATHESIS)
	@$(or $(UV),$(BIN)/uv) pip install --quiet --python $(SCHEMATHESIS) schemathesis==4.32.5
	@$(BIN)/python tests/torture_collector.py schema --schemathesis $(SCHEMATHESIS)/bin/schemathesis
	@$(BIN)/python tests/large_network_study.py
	@$(BIN)/python tests/torture_collector.py fuzz
	@$(BIN)/python tests/torture_collector.py soak

check: setup
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff check --quiet --preview --select unspecified-encoding
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tests/lint_names.py
	@$(BIN)/python tests/lint_prose.py

format: setup
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: setup
	@$(BIN)/python -m benchmarks

coverage: setup
	@$(BIN)/python -m benchmarks.coverage
	@$(BIN)/python -m benchmarks.coverage_by_likelihood
	@$(BIN)/python -m benchmarks.coverage_of_groups

docs: setup
	@$(BIN)/sphinx-build -q -W -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html."

clean:
	rm -rf .venv .venv-spark build dist docs/_build .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
