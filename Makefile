# Each target calls a tool of the environment in .venv, which is made on first use.
PYTHON ?= python3
ARGS ?=

VENV := .venv
PEERS := .venv-peers
MATRIX := .venv-matrix
BIN := $(VENV)/bin/
PARITY := PYTHONPATH=tests TF_CPP_MIN_LOG_LEVEL=3 $(BIN)python -m parity
PYTEST := $(BIN)python -m pytest --numprocesses=auto --maxprocesses=16 --dist=worksteal
QUIETLY := NO_MKDOCS_2_WARNING=1 TF_CPP_MIN_LOG_LEVEL=3
INSTALL := python -m pip --disable-pip-version-check --quiet install

# The sources of the extensions. If one of them is newer than the extensions, these are built again.
HEADERS := $(shell find fastops -name '*.h')
SOURCES := pyproject.toml setup.py $(wildcard tools/pep517/*/*.py) $(HEADERS) \
	$(shell find fastops -name '*.pyx' -o -name '*.pxd')

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all matrix canary parity fuzz fuzz-tapes fuzz-guards bench bench-peers \
	figures gen lint docs docs-serve debug asan annotate wheels aarch64 gpu clean

help:  ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(VENV)/.demo $(VENV)/.built  ## learn handwritten digits: a Keras program, plain and by fastops, and a loop of ops
	$(BIN)python examples/digits_online.py --peers $(PEERS)/torch/bin/python $(ARGS)

test: $(VENV)/.test $(VENV)/.built  ## run the tests, without the slow ones
	$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(VENV)/.test $(VENV)/.built  ## run the slow tests, which `make test` leaves out
	$(PYTEST) -m slow $(ARGS)

test-all: $(VENV)/.test $(VENV)/.built  ## run all tests
	$(PYTEST) $(ARGS)

parity: $(VENV)/.test $(VENV)/.built  ## compare every op with TensorFlow's, search for crashes, write docs/coverage.md
	$(PARITY) $(ARGS)

matrix: $(VENV)/.test  ## run the tests with every supported Python and TensorFlow, write docs/matrix.md
	$(BIN)python tools/matrix.py $(ARGS)

aarch64: $(VENV)/.test  ## compile for Linux on aarch64, and run the quick tests there, emulated; write docs/matrix.md
	$(BIN)python -m tools.aarch64 $(ARGS)

canary: $(VENV)/.test $(VENV)/.built  ## test nightly builds of TensorFlow and Keras, and report what a release would cost
	$(BIN)python tools/canary.py $(ARGS)

fuzz-guards: $(VENV)/.test $(VENV)/.built  ## change parts of recorded objects, one at a time, until interrupted
	PYTHONPATH=tests TF_CPP_MIN_LOG_LEVEL=3 $(BIN)python -m guards $(ARGS)

fuzz-tapes: $(VENV)/.test $(VENV)/.built  ## draw programs with nested tapes and compare their gradients, until interrupted
	PYTHONPATH=tests TF_CPP_MIN_LOG_LEVEL=3 $(BIN)python -m tapes $(ARGS)

fuzz: $(VENV)/.test $(VENV)/.built  ## draw calls at random and compare them, until interrupted
	$(PARITY) --forever $(ARGS)

bench: $(VENV)/.bench $(VENV)/.built  ## measure, and compare the figures with the targets
	$(BIN)python -m fastops bench $(ARGS)

bench-peers: $(VENV)/.bench $(VENV)/.built  ## make the environments of PyTorch, JAX and ONNX Runtime, which `--peers` measures
	$(BIN)python -m fastops_bench.peers $(ARGS) $(PEERS)

figures: $(VENV)/.bench $(VENV)/.built  ## measure everything, in one run, and write the tables of README.md and docs
	$(BIN)python -m fastops bench --peers --all --html build/bench.html --json build/bench.json $(ARGS)
	$(BIN)python tools/figures.py build/bench.json

gen: $(VENV)/.test $(VENV)/.built  ## write all generated files: fastops/gen, docs/install.md, the stub of fastops.backend, tables, versions
	$(BIN)python tools/gen.py $(ARGS)
	$(BIN)python tools/replaced.py
	$(BIN)python tools/backend.py
	$(BIN)python tools/reasons.py
	$(BIN)python tools/supported.py

lint: $(VENV)/.dev $(VENV)/.built  ## check style, layers, types and spelling
	$(BIN)ruff check
	$(BIN)ruff format --check
	PATH="$(BIN):$$PATH" cython-lint fastops
	$(BIN)clang-format --dry-run -Werror $(HEADERS)
	$(BIN)lint-imports --no-cache
	$(BIN)codespell
	$(BIN)mypy

docs: $(VENV)/.docs $(VENV)/.built  ## build the documentation in build/site; a warning is an error
	$(QUIETLY) $(BIN)python -m mkdocs build --quiet $(ARGS)
	$(QUIETLY) $(BIN)python -m tools.website.links build/site

docs-serve: $(VENV)/.docs $(VENV)/.built  ## show the documentation on http://127.0.0.1:8000 while you write it
	$(QUIETLY) $(BIN)python -m mkdocs serve --no-strict $(ARGS)

debug: $(VENV)/.test $(VENV)/.built  ## run ARGS in a build with assertions and bounds checks
	$(BIN)python tools/variant.py debug $(ARGS)

asan: $(VENV)/.test $(VENV)/.built  ## run tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(BIN)python tools/variant.py asan $(ARGS)

annotate: $(VENV)/.built  ## write the Cython modules as HTML, with calls of Python marked, in build/annotated
	PYTHONPATH=tools/pep517 $(BIN)python -m fastops_build.annotate $(ARGS)

wheels:  ## make the wheels of all Pythons in dist, and test them; ARGS=--help lists the options
	$(PYTHON) -m tools.wheels $(ARGS)

gpu:  ## pack everything for a machine with an NVIDIA GPU and no network: tools/gpu/README.md
	$(PYTHON) -m tools.gpu pack $(ARGS)

clean:  ## remove the environments and everything that was built
	rm -rf $(VENV) $(PEERS) $(MATRIX) build dist *.egg-info
	find fastops -name '*.so' -delete -o -name _build_info.py -delete
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache

# Each of these files says that a step is complete, and is written after it. An incomplete
# environment is made again.
$(VENV)/.made:
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)$(INSTALL) --upgrade 'pip>=25.1'
	touch $@

$(VENV)/.requirements: pyproject.toml | $(VENV)/.made
	$(BIN)$(INSTALL) --group build
	touch $@

$(VENV)/.built: $(VENV)/.requirements $(SOURCES)
	$(BIN)python setup.py --quiet build_ext --inplace
	touch $@

# The package, editable, with the requirements of an extra: .demo, .test, .bench, .dev or .docs.
$(VENV)/.%: pyproject.toml | $(VENV)/.built
	$(BIN)$(INSTALL) --no-build-isolation --editable '.[cpu,$*]'
	$(BIN)$(INSTALL) --no-deps --group reference
	touch $@
