# Each target installs what it needs into its own .venv and stands alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint bench clean

demo: $(VENV)/.installed
	$(BIN)/smoothcde demo

# A process per core, each on one thread, is faster than one process on all.
test: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade "pip>=25.1"

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -c constraints.txt -e .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) -c constraints.txt --group test
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed-test
	$(PIP) -c constraints.txt --group lint
	touch $@

$(VENV)/.installed-bench: $(VENV)/.installed
	$(PIP) -c constraints.txt -e ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) demo-output .pytest_cache .ruff_cache
