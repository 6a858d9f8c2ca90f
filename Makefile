# Each target calls a tool of the environment in .venv, which is made on first use.
PYTHON ?= python3
ARGS ?=

VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin/
PARITY := PYTHONPATH=tests TF_CPP_MIN_LOG_LEVEL=3 $(BIN)python -m parity
PIP := $(BIN)python -m pip --disable-pip-version-check --quiet

# What the extension is made of: where any of it is newer than the environment, it is rebuilt.
SOURCES := pyproject.toml setup.py $(wildcard fastops/*.p[xy][xd] fastops/*/*.pxd fastops/_cpp/*.h fastops/_cpp/*/*.h)

.DEFAULT_GOAL := help
.PHONY: help demo test parity fuzz bench bench-peers bench-plot gen lint clean

help:  ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(VENV)/.built  ## train a small network on handwritten digits, by three libraries
	$(BIN)python examples/digits_online.py --peers $(PEERS)/bin/python $(ARGS)

test: $(VENV)/.built  ## run the tests
	$(BIN)python -m pytest --numprocesses=auto --maxprocesses=16 --dist=worksteal $(ARGS)

parity: $(VENV)/.built  ## compare every op with TensorFlow's, hunt for crashes, write docs/coverage.md
	$(PARITY) $(ARGS)

fuzz: $(VENV)/.built  ## draw calls at random and compare them, until interrupted
	$(PARITY) --forever $(ARGS)

bench: $(VENV)/.built  ## measure, and hold the figures against what was promised
	$(BIN)python bench/run.py $(ARGS)

bench-plot: $(VENV)/.built  ## draw docs/install.svg from the figures of `make bench`
	$(BIN)python bench/plot.py $(ARGS)

bench-peers: $(PEERS)/.built  ## measure PyTorch, JAX and ONNX Runtime; the next `make bench` shows them too
	$(PEERS)/bin/python bench/run.py --peers-only $(ARGS)

gen: $(VENV)/.built  ## write the wrappers in fastops/gen and docs/install.md anew
	$(BIN)python tools/gen.py $(ARGS)
	$(BIN)python tools/replaced.py

lint: $(VENV)/.built  ## check style, types and spelling
	$(BIN)ruff check
	$(BIN)ruff format --check
	PATH="$(BIN):$$PATH" cython-lint fastops
	$(BIN)clang-format --dry-run -Werror fastops/_cpp/*.h fastops/_cpp/*/*.h
	$(BIN)codespell
	$(BIN)mypy

clean:  ## remove the environments and everything that was built
	rm -rf $(VENV) $(PEERS) build dist *.egg-info bench/results
	rm -f fastops/*.so fastops/*.cpp fastops/*.html fastops/_build_info.py
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(VENV)/.requirements: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install --group build
	touch $@

$(VENV)/.built: $(VENV)/.requirements $(SOURCES)
	$(PIP) install --no-build-isolation --editable '.[cpu,dev]'
	touch $@

# PyTorch's own package index has smaller wheels, for the CPU alone: pip's usual settings
# (PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS) choose them.
$(PEERS)/.built: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip --quiet install --upgrade 'pip>=25.1'
	$(PEERS)/bin/python -m pip --quiet install --group peers
	touch $@
