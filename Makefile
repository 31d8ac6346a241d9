# make demo   set up, train on the embedded digits in under five minutes, transcribe, look inside
# make test   set up, then lint, type check and test
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: setup demo test test-slow format clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: Python 3.11 or newer is needed; try make PYTHON=python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)

demo: setup
	$(BIN)/python recipes/digits/demo.py

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not slow" -n auto --maxprocesses 4

test-slow: setup
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest -q -m slow

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo
