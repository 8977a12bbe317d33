# `make demo` and `make test` are all a newcomer needs; both set up what is missing in .venv first.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
BACKEND_TESTS := tests/layers/test_state_space.py tests/native/test_torch_autograd.py
NATIVE := CMakeLists.txt $(wildcard src/schurfire/native/*.cpp src/schurfire/native/*.hpp)

.PHONY: demo test test-slow test-torch test-tensorflow sanitize lint types contract check bench experiments smoke clean

demo: $(READY)
	$(BIN)/schurfire demo --out demo

test smoke: export OPENBLAS_NUM_THREADS = 1

test: $(READY)
	$(BIN)/python -m pytest -q -n 2

test-slow: $(READY)
	$(BIN)/python -m pytest -q -m "slow"

# The kernels and layers on Keras' other backends; the CPU build of PyTorch is enough.
test-torch: $(READY)
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/pip install --quiet torch==2.13.0
	KERAS_BACKEND=torch $(BIN)/python -m pytest -q tests/test_tensor_backends.py $(BACKEND_TESTS)

test-tensorflow: $(READY)
	$(BIN)/python -c "import tensorflow" 2>/dev/null || $(BIN)/pip install --quiet tensorflow-cpu==2.21.0
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest -q tests/test_tensor_backends.py $(BACKEND_TESTS)

# The native recurrence under the address and undefined-behaviour sanitizers, with every instruction set there is.
sanitize:
	cmake -S . -B build/sanitize -DSCHURFIRE_SANITIZE=ON
	cmake --build build/sanitize -j 2
	for i in avx512 avx2 baseline; do SCHURFIRE_INSTRUCTIONS=$$i build/sanitize/driver 300 || exit 1; done

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/pyright

contract: $(READY)
	$(BIN)/lint-imports --no-cache

check: lint types contract test

bench: $(READY)
	$(BIN)/python -m benchmarks

# Every table and figure of the paper's matrix experiments; a few minutes each.
experiments: $(READY)
	for name in projection orthogonal schur; do $(BIN)/python -m experiments $$name || exit 1; done

smoke: $(READY)
	for name in projection orthogonal schur synthetic; do $(BIN)/python -m experiments $$name --smoke --out build/smoke || exit 1; done

$(READY): pyproject.toml constraints.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	rm -rf .venv build demo
