# Every target creates .venv where it is missing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test lint bench fuzz pictures clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/paceline demo

test: setup
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m bench.exchange

fuzz: setup
	$(BIN)/python -m tools.fuzz

pictures: setup
	$(BIN)/python tools/pictures.py

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
