# One command for each thing. Everything runs in .venv, which the first command makes.
# Needs python3 (3.11 or newer) and nothing else; uv is used when it is there, because it is faster.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
UV := $(shell command -v uv 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help setup peers test newest trees worlds weather kills pins foreign foreign-environment check fix bench demo picture site lock

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */\1\t/' | expand -t 12

setup: $(READY)  ## make .venv with wakeful and its development tools

$(READY): pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "wakeful needs Python 3.11 or newer; name one with PYTHON=..., as in: make setup PYTHON=python3.12"; exit 1; }
ifneq ($(UV),)
	@test -x $(BIN)/python || $(UV) venv --quiet --python $(PYTHON) .venv
	$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python -c requirements/dev.txt -e . --group dev
else
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet -c requirements/dev.txt -e . --group dev
endif
	@$(BIN)/python -m compileall -q src tests/kit
	@touch $(READY)

peers: .peers/.ready  ## install the servers that tests/peers talks to (needs npm)

.peers/.ready: tests/peers/install.sh
	tests/peers/install.sh
	@touch $@

test: $(READY)  ## run all tests
	$(BIN)/python -m pytest -n auto

SHARE ?= 1

newest:  ## unit, contract and hostile tests on the newest Python that is installed (in .venv-newest); SHARE=4 for a quarter of them, NEWEST_TESTS=... for others
	@SHARE=$(SHARE) ./.ci/newest $(NEWEST_TESTS)

TREES ?= 10000

trees: $(READY)  ## random trees under random budgets: 10,000, or as many as TREES= says
	WAKEFUL_SIMULATED_TREES=$(TREES) $(BIN)/python -m pytest -q -n 2 --timeout=0 tests/unit/decisions/test_trees.py

WORLDS ?= 10000

FIRST ?= 0

worlds: $(READY)  ## random lives of agents on a virtual clock: 10,000, or as many as WORLDS= says, from seed FIRST= on
	WAKEFUL_SIMULATED_WORLDS=$(WORLDS) WAKEFUL_FIRST_WORLD=$(FIRST) $(BIN)/python -m pytest -q -n 2 --timeout=0 tests/unit/runtime/test_simulation.py

WEATHER_TESTS ?= tests/journeys

weather: $(READY)  ## the journeys once more, at list price with a 429, a cut stream and an outage each; SHARE=8 for an eighth of them
	WAKEFUL_TEST_WEATHER=1 WAKEFUL_TEST_SHARE=$$(($$(date -u +%s) / 86400 % $(SHARE)))/$(SHARE) \
		$(BIN)/python -m pytest -q -n auto $(WEATHER_TESTS)

kills: $(READY)  ## kill every scenario at every point, and a daemon under load 60 times; `make test` takes some points, by the day's seed
	WAKEFUL_KILL_POINTS=0 WAKEFUL_DAEMON_KILLS=60 $(BIN)/python -m pytest -q -n 2 --timeout=0 tests/crash

pins: $(READY)  ## record the goldens of tests/pins anew, and see that they come out the same again
	WAKEFUL_RECORD_PINS=1 $(BIN)/python -m pytest -q -n 2 tests/pins
	$(BIN)/python -m pytest -q -n 2 tests/pins
	@git status --short tests/pins/goldens

foreign: foreign-environment  ## tools of other frameworks, with the real packages (installs them into .venv-foreign)
	.venv-foreign/bin/python -m pytest tests/foreign

foreign-environment:
	@test -x .venv-foreign/bin/python || $(PYTHON) -m venv .venv-foreign
	.venv-foreign/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-foreign/bin/python -m pip install --quiet -e . --group foreign

check: $(READY)  ## formatting, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(READY)  ## format, mend what can be mended, write the generated reference again
	$(BIN)/ruff check --fix --exit-zero --quiet .
	$(BIN)/ruff format .
	$(BIN)/python docs/reference/generate.py
	$(BIN)/python scripts/write_store_handle.py

bench: $(READY)  ## compare with the peers in one run (installs them into .venv-bench)
	@test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-bench/bin/python -m pip install --quiet -e . --group bench
	.venv-bench/bin/python -m benchmarks

demo: $(READY)  ## kill a run in the middle of a payment and watch it finish; offline
	$(BIN)/wakeful demo crash

picture: $(READY)  ## draw the pictures of the docs again, from a real run of the crash demo and a real terminal (needs tmux)
	$(BIN)/python docs/pictures/crash_demo.py
	$(BIN)/python docs/pictures/terminal_ui.py

site:  ## build the site of the documentation into site/; a broken link fails it
	@test -x .venv-site/bin/python || $(PYTHON) -m venv .venv-site
	@.venv-site/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	@.venv-site/bin/python -m pip install --quiet --group site
	@.venv-site/bin/zensical build --strict

lock:  ## pin the development tools again (needs uv)
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 \
		--no-header --no-annotate --no-emit-index-url --quiet -o requirements/dev.txt
