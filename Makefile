# make demo and make test set everything up by themselves; a second call does no set-up again.
# With uv on the path it is used; without, it is installed into .venv, which needs only Python and pip.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
UV := $(shell command -v uv 2>/dev/null)

.PHONY: setup demo test check format bench docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml uv.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "expost needs Python 3.11 or newer; set PYTHON=/path/to/it" >&2; exit 2; }
ifeq ($(UV),)
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@UV_PROJECT_ENVIRONMENT=.venv $(BIN)/uv sync --quiet --locked --all-extras --inexact
else
	@test -x $(BIN)/python || $(UV) venv --quiet --python $$(command -v $(PYTHON)) .venv
	@UV_PROJECT_ENVIRONMENT=.venv $(UV) sync --quiet --locked --all-extras --inexact
endif
	@touch $@

demo: setup
	@$(BIN)/expost demo

test: setup
	@$(BIN)/pytest -q -n auto

check: setup
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: setup
	@$(BIN)/python -m benchmarks

docs: setup
	@$(BIN)/sphinx-build -q -W -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf .venv build dist docs/_build .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
