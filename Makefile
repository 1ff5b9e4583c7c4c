# Every target sets up .venv by itself; the second run skips that. PYTHON=... picks an interpreter (3.11 or newer).
# ARGS=... is passed on, e.g. make test ARGS="tests/core -k usage"; PAGE=cli narrows make spec.

SHELL := /bin/sh
VENV ?= .venv
PY := $(VENV)/bin/python
RUN := $(VENV)/.ready-run
DEV := $(VENV)/.ready-dev
DOCS := $(VENV)/.ready-docs
RESULTS := .lousho-test
WORKERS ?= auto
XDIST := -n $(WORKERS) --maxprocesses 4 --dist worksteal
export VENV PYTHON

.DEFAULT_GOAL := help
.PHONY: help demo test test-peers lint types imports spec spec-bite docs bench soak ci format clean wheel-smoke

help:  ## what each target does
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(RUN)  ## scaffold an agent, ask it a question, chat with it; needs no API key
	@$(PY) tools/demo.py

test: $(DEV)  ## the test suite, under five minutes
	@$(call pytest,test,,$(XDIST))

test-peers: $(DEV)  ## tests against outside software, which is installed into .peers
	@VENV=$(VENV) sh tests/peers/install.sh
	@$(call pytest,peers,-m peers,$(XDIST))

soak: $(DEV)  ## the heavy tests at their long size
	@LOUSHO_TEST_SIZE=soak $(call pytest,soak,-m "not peers" --timeout 1800,$(XDIST))

lint: $(DEV)  ## ruff, formatting, and the project's own rules
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) tools/lint_rules.py

types: $(DEV)  ## basedpyright, strict
	@$(PY) -m basedpyright

imports: $(DEV)  ## rooms import downward only
	@$(VENV)/bin/lint-imports

spec: $(DEV)  ## which rows of the specification are proved; PAGE=cli lists a page
	@$(PY) tools/spec.py $(PAGE) $(ARGS)

spec-bite: $(DEV)  ## break sampled lines and see the tests of a row fail
	@$(PY) tools/spec_bite.py $(ARGS)

wheel-smoke: $(DEV)  ## build the wheel and use it outside the checkout
	@$(PY) tools/wheel_smoke.py

docs: $(DEV) $(DOCS)  ## build the documentation site into site/, the API reference into site/api/
	@$(VENV)/bin/zensical build --clean --strict
	@$(PY) tools/api_reference.py site/api
	@$(PY) tools/check_site.py site

bench: $(DEV)  ## measure speed against the usual alternatives
	@$(PY) benchmarks/run.py $(ARGS)

ci:  ## all that must hold before a change is merged
	@bash .ci/run

format: $(DEV)  ## format the code and apply safe fixes
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

clean:  ## remove what the targets wrote, except .venv and .peers
	rm -rf build dist wheels site $(RESULTS) .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv/*' -not -path './.peers/*' -prune -exec rm -rf {} +

$(RUN): pyproject.toml tools/setup_env.sh
	@sh tools/setup_env.sh run
	@touch $@

$(DEV): $(RUN) pyproject.toml
	@sh tools/setup_env.sh dev
	@touch $@

$(DOCS): $(RUN) pyproject.toml
	@sh tools/setup_env.sh docs
	@touch $@

# A run that ARGS narrows writes no results: `make spec` reads those of whole suites only.
define pytest
$(if $(ARGS),,LOUSHO_TEST_SUITE=$(1) LOUSHO_TEST_RESULTS=$(RESULTS)/results-$(1).json) \
	$(PY) -m pytest $(2) $(if $(ARGS),$(ARGS),$(3) --junitxml=$(RESULTS)/junit-$(1).xml)
endef
