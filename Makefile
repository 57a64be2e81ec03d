# kafkalog: every command a person needs. `make` alone says what there is.

PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
READY       := $(VENV)/.ready
AIRFLOW     := build/airflow/.ready
BUILDER     := build/builder/.ready
SITE        := build/site/.ready
LOG_DIRS    ?= examples/log-dirs/*
OUTPUT      ?= build/tables
FORMAT      ?= delta
JOB         ?= validate-checksums
ARGS        ?=
RULE        ?=

# Jars are fetched once, by `make setup`; a session then starts without asking for them.
JARS         = $(shell ls $(CURDIR)/$(VENV)/ivy/jars/*.jar 2>/dev/null | paste -sd, -)
# Byte code is kept: the tests start hundreds of processes, and each would compile 190 modules.
export PYTHONDONTWRITEBYTECODE :=
export PYSPARK_PYTHON      := $(CURDIR)/$(BIN)/python
export PYSPARK_SUBMIT_ARGS  = $(if $(JARS),--jars $(JARS)) pyspark-shell
# A worker for each core. tests/conftest.py says which tests run in the same worker.
WORKERS      = --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# Tests that read sources and documents only.
RULES        = tests/unit/test_house.py tests/docs/test_vocabulary.py tests/docs/test_where_is.py \
               tests/docs/test_rules_are_cited.py tests/docs/test_reference_pages.py \
               tests/docs/test_plain_english.py

.DEFAULT_GOAL := help
.PHONY: help setup java run job test test-broker test-all docs reference rule notebooks airflow-test versions browser chromium cluster-test dist package lint check format bench bench-jobs bench-spark bench-tests clean

help: ## Show this
	@echo "kafkalog: Kafka's log files as Spark DataFrames, without a broker"; echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo; echo "  make run LOG_DIRS=/var/lib/kafka/data      check your own log directories"
	@echo "  make job JOB=$(JOB) ARGS=\"--help\"   what a job can do"

setup: $(READY) ## Make .venv with everything in it, and compile the kernels

$(READY): pyproject.toml | java
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 setup"; exit 1; }
	@echo "installing kafkalog and its tools into $(VENV) (several minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "python3-venv is missing: sudo apt-get install -y python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@echo "compiling the kernels"
	@$(BIN)/python -m kafkalog.inspection.compile_kernels
	@KAFKALOG_KERNELS=stored $(BIN)/python -m kafkalog.inspection.compile_kernels
	@echo "fetching the jars of Delta and Avro"
	@$(BIN)/python -m kafkalog.spark.fetch_jars $(CURDIR)/$(VENV)/ivy >$(VENV)/jars.log 2>&1 || \
	  { tail -n 20 $(VENV)/jars.log; exit 1; }
	@echo "archiving the classes of Spark's JVM, from which jobs and tests start faster"
	@$(BIN)/python -m kafkalog.spark.archive_classes >>$(VENV)/jars.log 2>&1 || \
	  echo "no archive: see $(VENV)/jars.log"
	@touch $(READY)

java:
	@command -v java >/dev/null 2>&1 || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    echo "installing Java 17"; \
	    apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless >/dev/null; \
	  else \
	    echo "Java 17 is missing: sudo apt-get install -y openjdk-17-jre-headless"; exit 1; \
	  fi; }

run: $(READY) ## Check the bundled log directories, or those in LOG_DIRS, for damage
	@$(BIN)/python jobs/validate_checksums.py $(LOG_DIRS) --output-dir $(OUTPUT) --format $(FORMAT) $(ARGS)
	$(if $(filter file,$(origin LOG_DIRS)),@echo "examples/log-dirs/damaged is damaged on purpose")
	@echo
	@echo "try next:"
	@echo "  make run LOG_DIRS=/var/lib/kafka/data OUTPUT=/tmp/checked"
	@echo "  $(BIN)/python jobs/validate_checksums.py --help"
	@echo "  $(BIN)/python examples/first_look.py $(firstword $(wildcard $(LOG_DIRS)))"
	@echo "  $(BIN)/kafkalog groups examples/shop-week --lagging"

job: $(READY) ## Run any job: make job JOB=validate-checksums ARGS="PATH --output-dir DIR"
	@$(BIN)/python jobs/$(subst -,_,$(JOB)).py $(ARGS)

test: $(READY) ## Run the tests, a short pass with a real broker included
	$(BIN)/python -m pytest $(WORKERS) -m "not deep"

test-broker: $(READY) ## Run the tests with a real broker
	$(BIN)/python -m pytest -m broker

test-all: $(READY) $(AIRFLOW) $(SITE) chromium ## Run all tests, the long ones too
	HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest $(WORKERS)

airflow-test: $(READY) $(AIRFLOW) ## Run the DAGs of examples/airflow in a real Airflow, on loopback
	$(BIN)/python -m pytest -m airflow

$(AIRFLOW): examples/airflow/requirements.txt examples/airflow/constraints.txt
	@echo "installing Airflow into build/airflow (some minutes the first time)"
	@rm -rf build/airflow && $(PYTHON) -m venv build/airflow
	@build/airflow/bin/pip install --quiet --disable-pip-version-check -r examples/airflow/requirements.txt
	@touch $(AIRFLOW)

reference: $(READY) ## Write docs/reference anew: tables, options, help of jobs and commands
	@$(BIN)/python -m docs.write_reference

rule: ## Show a rule and where it is cited: make rule RULE=F68
	@$(PYTHON) -m docs.find_rule $(RULE)

docs: $(SITE) ## Serve the documentation on http://127.0.0.1:8000, with full-text search
	@build/site/bin/mkdocs serve --config-file docs/site/mkdocs.yml --dev-addr 127.0.0.1:8000

$(SITE): docs/site/requirements.txt
	@echo "installing what the documentation needs into build/site"
	@$(PYTHON) -m venv build/site
	@build/site/bin/pip install --quiet --disable-pip-version-check -r docs/site/requirements.txt
	@touch $(SITE)

notebooks: $(READY) ## Open the notebooks in JupyterLab, which it installs
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,notebooks]'
	@$(BIN)/jupyter lab --ip=127.0.0.1 $(ARGS) notebooks

browser: $(READY) chromium ## Run the tests of the report in a headless chromium
	$(BIN)/python -m pytest -m browser

chromium: ## Install chromium where that is possible; without it browser tests are left out
	@command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    echo "installing chromium"; \
	    apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	  else \
	    echo "chromium is missing: sudo apt-get install -y chromium"; \
	  fi; }

cluster-test: $(READY) ## Run the tests on Spark's own cluster and its Connect server, on loopback
	$(BIN)/python -m pytest -m cluster

versions: dist ## Try the wheel with Spark 4.0 to 4.3, each in an environment in build/versions
	@$(PYTHON) -m tests.versions dist/kafkalog-*.whl $(SPARKS)

dist: $(BUILDER) ## Build dist/kafkalog-VERSION.tar.gz and, from that, the wheel to pip install
	@rm -f dist/kafkalog-*.whl dist/kafkalog-*.tar.gz
	@build/builder/bin/python -m build --outdir dist .

$(BUILDER):
	@$(PYTHON) -m venv build/builder
	@build/builder/bin/pip install --quiet --disable-pip-version-check 'build>=1.3,<2'
	@touch $(BUILDER)

package: $(READY) ## Make what a cluster needs: dist/environment.tar.gz and dist/kafkalog.zip
	@$(BIN)/python -m kafkalog.spark.packing dist

lint: $(READY) ## Run the quick checks: format, lint, types, import contracts, names, reference, English
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q $(RULES)

check: lint ## Run every check: those of make lint, then the tests
	$(MAKE) --no-print-directory test

format: $(READY) ## Format the code and mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## Measure the fast reader against its floor and its peers
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	$(BIN)/python -m benchmarks.decode $(ARGS)

bench-jobs: $(READY) ## Measure every job beside kafkalog check over the same files (an hour)
	$(BIN)/python -m benchmarks.jobs $(ARGS)

bench-tests: $(READY) ## Measure make test in starts of a Spark session
	@$(BIN)/python -m benchmarks.suite

bench-spark: $(READY) ## Measure kafkalog's source beside Spark's Kafka source (needs Maven; some minutes)
	$(BIN)/python -m benchmarks.spark_source $(ARGS)

clean: ## Remove what make has made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
