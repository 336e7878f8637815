SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
STAMP := $(VENV)/.synced
CORPUS ?= peps
FLAGS ?=
export PATH := $(CURDIR)/$(BIN):$(PATH)
export AFFIDAVIT_CORPORA ?= $(CURDIR)/../shared/corpora
export AFFIDAVIT_VECTORS ?= $(CURDIR)/../shared/vectors

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml protos/pyproject.toml uv.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(UV) || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(UV) sync --quiet --frozen --extra embedded --extra distributed
	touch $@

.PHONY: setup
setup: $(STAMP) ## Install everything into .venv

.PHONY: demo
demo: $(STAMP) ## Run the main job: ingest the demo, ask three questions, verify a receipt
	bash deploy/demo/run.sh

.PHONY: test
test: $(STAMP) ## Run all tests, with coverage
	coverage erase
	coverage run -m pytest
	coverage combine --quiet
	coverage report --fail-under=$(COVERAGE)

COVERAGE := 95

.PHONY: lint
lint: $(STAMP) ## Lint and check the format
	ruff check
	ruff format --check

.PHONY: types
types: $(STAMP) ## Check types
	mypy

.PHONY: arch
arch: $(STAMP) ## Check the import contracts
	lint-imports --no-cache

.PHONY: proto
proto: $(STAMP) ## Generate the contracts' code
	cd protos && buf format -w && $(CURDIR)/$(BIN)/python generate.py

.PHONY: proto-check
proto-check: $(STAMP) ## Lint the contracts, refuse breaking changes and stale generated code
	cd protos && buf lint && buf format --diff --exit-code && buf breaking --against baseline.binpb
	git diff --exit-code --stat -- protos/gen
	$(MAKE) proto
	git diff --exit-code --stat -- protos

.PHONY: docs
docs: $(STAMP) ## Generate the reference pages
	python -m docs.generate

.PHONY: docs-check
docs-check: docs ## Fail when the reference pages are stale
	git diff --exit-code --stat -- docs/reference

.PHONY: check
check: lint types arch proto-check docs-check test ## Everything that CI runs

.PHONY: audit
audit: $(STAMP) ## Measure states, answers and modes: make audit CORPUS=peps FLAGS="--only states", or CORPUS=all
	python -m tests.audit --corpus $(CORPUS) $(FLAGS)

.PHONY: bench
bench: $(STAMP) ## Measure speed and memory
	python -m tests.bench

.PHONY: storm
storm: $(STAMP) ## Kill processes 200 times while documents come in, and compare
	python -m tests.storm

.PHONY: clean
clean: ## Remove what was built and what the demo made
	rm -rf $(VENV) .demo .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage*
