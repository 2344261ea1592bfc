# Every target creates .venv where it is missing.
PYTHON ?= python3
BIN := .venv/bin
PEERS := .venv-peers
# Tests and benches start hundreds of processes: each would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test thorough lint bench bench-peers bench-sparse fuzz chaos pictures clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/paceline demo

# Where there are any; tests/conftest.py refuses others.
ALONE := tests/faults tests/parallel tests/truth

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not alone and not thorough'
	$(BIN)/python -m pytest -m 'alone and not thorough' $(ALONE)

# What `test` leaves out to stay short, and twenty times as many drawn cases.
thorough: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m thorough
	$(BIN)/python -m pytest -n 2 --dist worksteal --hypothesis-profile thorough tests/unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m bench.exchange

bench-peers: setup $(PEERS)/tensorflow/ready $(PEERS)/ray/ready
	$(BIN)/python -m bench.peers

# Broken off midway, they lack ready: pip then goes on, and a venv without a working pip is redone.
$(PEERS)/%/ready: bench/environments/%.txt | .venv/ready
	$(PEERS)/$*/bin/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m venv --clear $(PEERS)/$*
	$(PEERS)/$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Film reviews are left out without a file of them: make bench-sparse REVIEWS=imdb_50k.json.gz
bench-sparse: setup $(PEERS)/sparse/ready
	$(BIN)/python -m bench.sparse $(if $(REVIEWS),--reviews $(REVIEWS))

fuzz: setup
	$(BIN)/python -m tools.fuzz

# More to say: make chaos CHAOS='--minutes 10 --seed 7'
chaos: setup
	$(BIN)/python -m tools.chaos $(CHAOS)

pictures: setup
	$(BIN)/python tools/pictures.py
	$(BIN)/python -m tools.page_pictures

clean:
	rm -rf .venv $(PEERS) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
