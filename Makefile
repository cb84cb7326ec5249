# Two commands are enough: `make demo` and `make test`. Each makes its own .venv and says what it installs.

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
PARALLEL ?= -n auto

export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help demo test lint fakeredis cluster redis suite soak mutants bench clean

help:
	@echo "make demo    a real server, two workers and the API; a real import, watched, ends by itself (ARGS=--stay keeps it up)"
	@echo "make test    lint, types, and all tests on every kind of server; single legs: lint fakeredis cluster redis suite"
	@echo "make soak    the tests that draw samples, with many: an hour on two cores (ARGS='tests/test_cron_brute.py' only those)"
	@echo "make mutants what the tests notice: each small mistake in the Lua scripts, one by one (ARGS='--sample 60' tries 60)"
	@echo "make bench   figures of this machine: the scripts, one worker, pages of jobs, the cron engine, the scheduler"
	@echo "make clean   remove what these made"

demo: .venv/demo.ready
	@$(BIN)/tenure demo $(ARGS)

# The whole suite comes last, so that its summary is what you see.
test: lint fakeredis cluster redis suite

lint: .venv/test.ready
	@echo "== lint and types"
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/pyright

fakeredis: .venv/test.ready
	@echo "== the ledger and the schedules on fakeredis, an imitation of the server"
	@$(PYTEST) -q --tenure-server=fakeredis -m store tests/test_ledger*.py tests/test_schedules.py

cluster: .venv/test.ready
	@echo "== what uses the store, on a server in cluster mode: a script that touches two slots fails"
	@$(PYTEST) -q $(PARALLEL) --tenure-server=cluster -m store

redis: .venv/test.ready
	@.ci/need-redis
	@if command -v redis-server >/dev/null; then \
		echo "== what uses the store, on this system's redis-server"; \
		$(PYTEST) -q $(PARALLEL) --tenure-server=redis -m store; \
	fi

suite: .venv/test.ready
	@.ci/need-postgresql
	@.ci/need-browser $(BIN)/python
	@echo "== the whole suite on the embedded server"
	@$(PYTEST) $(PARALLEL)

# The normal suite takes few samples of what is drawn by a seed; here are many. TENURE_SOAK=0.1 takes a tenth.
TENURE_SOAK ?= 1
soak: .venv/test.ready
	@TENURE_SOAK=$(TENURE_SOAK) $(PYTEST) $(PARALLEL) $(or $(ARGS),tests/test_cron_brute.py tests/test_simulation.py tests/soak)

# Half an hour on two cores. Not part of the tests: it judges them.
mutants: .venv/test.ready
	@$(BIN)/python -m tests.mutants $(ARGS)

# What this machine makes of Tenure: figures to compare with each other, not with another day's.
bench: .venv/test.ready
	@$(BIN)/python -m bench.store
	@$(BIN)/python -m bench.worker
	@$(BIN)/python -m bench.watchers
	@$(BIN)/python -m bench.queries 100000 10000 1000
	@$(BIN)/python -m bench.cron
	@$(BIN)/python -m bench.schedules --stored 10000 --due 1000 --seconds 10
	@$(BIN)/python -m bench.memory
	@$(BIN)/python -m bench.flat --quick
	@$(BIN)/python -m bench.lean

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info

.venv/%.ready: pyproject.toml
	@test -x $(BIN)/python || { echo "== making .venv with $(PYTHON)"; $(PYTHON) -m venv .venv; } || \
		{ rm -rf .venv; echo "no .venv could be made: Python needs its venv module (apt-get install python3-venv)"; exit 1; }
	@echo "== installing Tenure and what it needs for '$*' into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(if $(filter test,$*),dev,demo)]'
	@touch $@
