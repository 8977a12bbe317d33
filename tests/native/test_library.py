"""The compiled library: found, switched off, or not there; and the instruction set that it chooses."""

import os
import subprocess
import sys

import numpy as np
import pytest

from schurfire import InvalidInputError
from schurfire.kernels.recurrence import state_space_response
from schurfire.native import library

needs_library = pytest.mark.skipif(library.library_path() is None, reason="installed without a C++ compiler")
MATRICES = np.array([[0.5]]), np.array([[2.0]]), np.array([[1.0]]), None
OUTPUTS = [[0.0], [2.0], [3.0]]


@pytest.fixture
def without_library(monkeypatch):
    monkeypatch.setattr(library, "library_path", lambda: None)
    library.library.cache_clear()
    yield
    library.library.cache_clear()


def run(code: str, **environment: str) -> str:
    """What a new process prints, in which the library is loaded anew."""
    lines = f"import numpy as np\nfrom schurfire.native import library\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", lines], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@needs_library
def test_found():
    assert library.is_available()
    assert library.require_library() is library.library()
    assert library.instruction_set() in ("avx512", "avx2", "baseline")
    assert state_space_response(*MATRICES, np.ones((3, 1)), method="native").y.tolist() == OUTPUTS


@pytest.mark.usefixtures("without_library")
def test_not_there():
    assert not library.is_available()
    assert library.instruction_set() is None
    assert state_space_response(*MATRICES, np.ones((3, 1))).y.tolist() == OUTPUTS
    with pytest.raises(InvalidInputError, match=r"native recurrence to be installed.*Install a C\+\+ compiler"):
        library.require_library()
    with pytest.raises(InvalidInputError, match="Expected method to be one that is available here, received 'native'"):
        state_space_response(*MATRICES, np.ones((3, 1)), method="native")


@pytest.mark.parametrize(("switch", "is_on"), [("0", False), ("1", True), ("", True)])
@needs_library
def test_switch(monkeypatch, switch, is_on):
    monkeypatch.setenv("SCHURFIRE_NATIVE", switch)
    library.library.cache_clear()
    try:
        assert library.is_available() is is_on
        assert state_space_response(*MATRICES, np.ones((3, 1))).y.tolist() == OUTPUTS
    finally:
        library.library.cache_clear()


def test_switched_off_in_a_process():
    code = "from schurfire.kernels.recurrence import state_space_response as f\n"
    code += "A, B, C = np.array([[0.5]]), np.array([[2.0]]), np.array([[1.0]])\n"
    code += "print(library.is_available(), f(A, B, C, None, np.ones((3, 1))).y.tolist())"
    assert run(code, SCHURFIRE_NATIVE="0") == f"False {OUTPUTS}"


@needs_library
@pytest.mark.parametrize(("most", "allowed"), [("baseline", ("baseline",)), ("avx2", ("avx2", "baseline"))])
def test_instruction_set_can_be_bounded(most, allowed):
    assert run("print(library.instruction_set())", SCHURFIRE_INSTRUCTIONS=most) in allowed
