# make train   set up .venv from the lock and train CONFIG (CartPole-v1:ppo)
# make test    set up .venv with the test tools, check style, types, the import arrow, and run the tests
# make test-full  the tests that take long and rarely break, in addition: before a capability is called done
# make install only set up .venv
PYTHON ?= python3
CONFIG ?= CartPole-v1:ppo
ARGS ?=
TEST_WORKERS ?= 2
BIN := .venv/bin

.PHONY: train test test-full install install-dev lint types imports unit unit-full clean

train: .venv/.installed
	$(BIN)/gymnast train $(CONFIG) $(ARGS)

install: .venv/.installed

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "gymnast needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

# torch first and by its exact version: a range could pull a newer build with gigabytes of GPU packages.
.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep '^torch==' constraints.txt)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/.installed-dev: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

install-dev: .venv/.installed-dev

test: lint types imports unit

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed-dev
	$(BIN)/mypy

imports: .venv/.installed-dev
	$(BIN)/lint-imports

unit: .venv/.installed-dev
	OMP_NUM_THREADS=1 SDL_VIDEODRIVER=dummy $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

test-full: test unit-full

unit-full: .venv/.installed-dev
	OMP_NUM_THREADS=1 SDL_VIDEODRIVER=dummy $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder -m full

clean:
	rm -rf .venv build dist src/*.egg-info
