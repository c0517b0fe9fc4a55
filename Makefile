# Two commands: make study, make test. Each sets up what it needs, and is quick the second time.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
  $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
VENV := .venv/bin/python
CORES ?= 1

.DEFAULT_GOAL := study
.PHONY: study env test lint format schema lock clean help

study: env  ## Run the selected studies and say where the report is
	$(VENV) -m snakemake --cores $(CORES) $(ARGS)
	@echo "The report: results/report.html"

env: .venv/.installed  ## Create .venv from requirements.lock

.venv/.installed: requirements.lock
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11, 3.12 or 3.13 found; name one: make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv .venv || { echo "error: $(PYTHON) cannot make an environment; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@touch $@

test: env lint  ## Check style and types, run the tests
	$(VENV) -m pytest $(ARGS)

lint: env  ## ruff, mypy, snakefmt, snakemake --lint
	$(VENV) -m ruff check study tests
	$(VENV) -m ruff format --check study tests
	$(VENV) -m mypy
	$(VENV) -m snakefmt --check Snakefile workflow
	$(VENV) -m snakemake --lint

format: env  ## Write the code in the project's style
	$(VENV) -m ruff check --fix study tests
	$(VENV) -m ruff format study tests
	$(VENV) -m snakefmt Snakefile workflow

schema: env  ## Write workflow/schemas and config/README.md from the models
	$(VENV) -m study schema

LOCK := .lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
  --no-annotate --custom-compile-command "make lock" pyproject.toml

lock:  ## Pin every dependency anew in both lock files
	$(PYTHON) -m venv .lock && .lock/bin/python -m pip install --quiet uv
	$(LOCK) --extra train --extra dev -o requirements.lock
	$(LOCK) -o requirements-host.lock -c requirements.lock
	rm -rf .lock

clean:  ## Remove the environment and caches; results stay
	rm -rf .venv .lock .snakemake .mypy_cache .ruff_cache

help:  ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'
