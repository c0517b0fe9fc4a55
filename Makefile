# The main commands are `make study` and `make test`. Each installs what it needs, and is quick afterwards.
# `make study` installs torch only if no container engine can be used: the images already hold it.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
  $$p -c 'import sys; $(WITH_TORCH) sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
WITH_TORCH = $(if $(filter installed,$(TORCH)),from importlib.metadata import version; version("torch");)
VENV := .venv/bin/python
CORES ?= 1

.DEFAULT_GOAL := study
.PHONY: study published report blog-figures images images-archive there host env dev test test-all test-gpu example \
  lint test-units test-rest format schema docs lock audit clean help

study: host  ## Run the selected studies, and print the answer and the report's address
	$(call start,$(ARGS))

published: host  ## Run the studies of the blog, the labs and the reports, reduced to two CPU cores; ARGS="size=full" runs them in full
	$(call start,--config $(PUBLISHED) size=reduced $(ARGS))

# Snakemake with the given arguments; torch first, where they let the runs execute on the host. TORCH=installed takes that
# of PYTHON, which then is a Python that has one.
define start
	@$(VENV) -m study start $(addprefix --torch=,$(TORCH)) -- --cores $(CORES) $(1)
endef

report: there  ## Render the report of the runs that are there, at any time; ARGS="STUDY ..." for some of the studies
	@$(VENV) -m study report $(ARGS)

blog-figures: there  ## Draw the blog's figures of finished results under its own names; RESULTS=... OUTPUT=...
	@$(VENV) -m replications.gpu_blog.figures $(or $(RESULTS),results) $(or $(OUTPUT),results/blog)

PUBLISHED := 'studies=[batch-size,speedup,cifar10-cnn,lab-device,lab-batch-size,lab-model-size,lab-workers,lab-precision,mnist-strategies,inference,larger-models]'

images: host  ## Build, load or pull the images of both devices, and test each once
	@$(VENV) -m study start -- $(IMAGES) --cores $(CORES) $(ARGS)

# The plan is written anew, and each image is looked at, whatever is there.
IMAGES := results/images/cpu.json results/images/cuda.json --forcerun plan image

images-archive: images  ## Save the images as results/images/{cpu,cuda}.tar for a site without a registry
	for file in results/images/cpu results/images/cuda; do \
	  told() { sed -n "s/^ *\"$$1\": \"\(.*\)\",$$/\1/p" $$file.json; }; \
	  $$(told engine) save --output $$file.tar "$$(told reference)" || exit 1; \
	done

# What draws installs nothing where the environment serves, also in a checkout that is newer.
there:
	@$(VENV) -c 'import pydantic, seaborn, snakemake' 2>/dev/null || $(MAKE) --no-print-directory host

host: .venv/.host  ## Create .venv for the host side only, without torch

env: .venv/.installed  ## Create .venv with everything in requirements.lock

dev: .venv/.dev  ## Create .venv with the tools and the host side, without torch

.venv/.host: requirements-host.lock
	@$(call install,.venv $<)
	@touch $@

.venv/.installed: requirements.lock
	@$(call install,.venv $< $(addprefix --torch=,$(TORCH)))
	@touch $@ .venv/.host

.venv/.dev: requirements-dev.lock requirements-slurm.lock
	@$(call install,.venv $<)
	@$(call install,.venv requirements-slurm.lock --target .venv/slurm)
	@touch $@ .venv/.host

define install
test -n "$(PYTHON)" || { echo "error: no Python 3.11, 3.12 or 3.13$(if $(WITH_TORCH), with torch) found; name one: make PYTHON=/path/to/python" >&2; exit 1; }; \
  $(PYTHON) -m study.base.environment $(1)
endef

# Two workers, each of one thread: more would only wait for each other on two cores.
WORKERS ?= 2
PYTEST = OMP_NUM_THREADS=1 $(VENV) -m pytest --timeout=300 -n $(WORKERS) --dist loadgroup $(TIER) $(ARGS)
HOST_TESTS := $(addprefix tests/unit/,base config artifacts host analysis)

test: dev env  ## The gate: style, types, unit tests, a dozen pipelines, each kind of step in a container, the page in a browser
	@MAKE='$(MAKE)' .ci/gate $@ '-m "gate or not thorough"'

test-all: dev env docs  ## All tests but those of a GPU: many seeds, kills, clusters, packages; it skips what this machine lacks
	@MAKE='$(MAKE)' .ci/gate $@ --thorough 'tests extras'

# Neither the host side nor the analysis imports torch, and so no test of theirs may.
test-units: dev
	$(PYTEST) --without-torch $(HOST_TESTS)

test-rest: dev
	$(PYTEST) $(addprefix --ignore=,$(HOST_TESTS)) $(TESTS)

test-gpu:  ## Run the tests that need a GPU, one process per file; GPU_PYTHON names another interpreter
	@for file in tests/gpu/test_*.py; do STUDY_TEST_GPU=1 $(or $(GPU_PYTHON),$(VENV)) -m pytest $$file || exit 1; done

example: there  ## Make the pages, tables and pictures that follow from the committed bundles
	@$(VENV) -m study report --results docs/example/results.zip --output docs/example/report.html
	@$(VENV) -m tests.unit.test_readme
	@$(VENV) -m replications.scoreboard docs/example/results.zip docs/claims/*.zip --page docs/scoreboard.html > docs/scoreboard.md
	-@$(VENV) -m tests.browser.shots docs/example/report.html docs/first-screen.png
	-@page=$$(mktemp --suffix .html) && $(VENV) -m study report --results docs/example/host.zip --output $$page && \
	  $(VENV) -m tests.browser.shots $$page docs/first-answer.png arrows; rm -f $$page

CODE := snakemake_logger_plugin_study study extras replications tests benchmarks

SCHEMA := .venv/bin/check-jsonschema --quiet --builtin-schema vendor

lint: dev env  ## Check the style, the import contracts, the workflow, hosted CI and all types
	$(VENV) -m ruff check $(CODE)
	$(VENV) -m ruff format --check $(CODE)
	$(VENV) -m snakefmt --check workflow
	PYTHONPATH=$$(echo extras/* | tr ' ' :) .venv/bin/lint-imports --no-logo
	$(VENV) -m snakemake --lint
	$(VENV) -m mypy
	.venv/bin/zizmor --offline --quiet --min-severity medium .github
	$(SCHEMA).github-workflows .github/workflows/*.yml
	$(SCHEMA).github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*))
	$(SCHEMA).citation-file-format CITATION.cff

format: dev  ## Format the code in the project's style
	$(VENV) -m ruff check --fix $(CODE)
	$(VENV) -m ruff format $(CODE)
	$(VENV) -m snakefmt workflow

schema: host  ## Write the schemas for editors and config/README.md from the models
	$(VENV) -m tests.unit.test_generated

docs: .docs/.installed  ## Build the documentation site, .docs/html/index.html; a warning is an error
	.docs/bin/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet -d .docs/doctrees docs .docs/html
	@echo "The site: .docs/html/index.html"

# An environment of its own: what builds the site, or asks about weaknesses, is no part of any other.
.docs/.installed: requirements-docs.lock
	@$(call install,.docs $<)
	@touch $@

LOCK := .uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
  --no-annotate --custom-compile-command "make lock"

lock: host  ## Pin every dependency again in the lock files
	$(LOCK) pyproject.toml --extra train --extra onnx -o requirements.lock
	$(LOCK) pyproject.toml -o requirements-host.lock -c requirements.lock
	$(LOCK) pyproject.toml --extra dev $(addprefix --no-emit-package ,playwright pyee) -o requirements-dev.lock -c requirements.lock
	$(LOCK) --group slurm --no-deps -o requirements-slurm.lock -c requirements.lock
	$(LOCK) --group docs -o requirements-docs.lock -c requirements.lock
	$(LOCK) --group installer -o requirements-uv.lock

audit: .docs/.installed  ## Ask a public service about known weaknesses of the locked packages
	for lock in requirements*.lock; do .docs/bin/pip-audit --disable-pip --require-hashes -r $$lock || exit 1; done

clean:  ## Remove the environment and caches, but not results
	rm -rf .venv .uv .docs .snakemake .mypy_cache .ruff_cache

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'
