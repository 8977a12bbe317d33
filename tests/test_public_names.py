"""The public names: all there, loaded on first use, documented to the last argument."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import schurfire as sf

FUNCTIONS = sorted(name for name in sf.__all__ if inspect.isfunction(getattr(sf, name)))
CLASSES = sorted(name for name in sf.__all__ if inspect.isclass(getattr(sf, name)))


def test_importing_costs_nothing():
    code = "import sys; before = set(sys.modules); import schurfire; print(sorted(set(sys.modules) - before))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = {name.split(".")[0] for name in ast.literal_eval(out)}
    assert not loaded & {"jax", "keras", "numpy", "scipy"}
    assert "schurfire" in loaded


def test_every_name_is_importable_and_listed():
    assert sf.__all__ == sorted(sf.__all__, key=lambda name: (not name[0].isupper(), name))
    assert len(set(sf.__all__)) == len(sf.__all__)
    assert {*sf.__all__, "__version__"} == set(dir(sf))
    for name in sf.__all__:
        assert getattr(sf, name) is not None


def test_what_type_checkers_see_is_what_there_is():
    tree = ast.parse(Path(sf.__file__).read_text())
    imports = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module.startswith("schurfire")
    ]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert set(seen) == set(sf.__all__)
    for name, home in seen.items():
        expected = getattr(importlib.import_module(home), name, None)
        assert getattr(sf, name) is (expected or importlib.import_module(f"{home}.{name}"))


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'schurfire' has no attribute 'nearest'"):
        sf.nearest  # noqa: B018


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_documented(name):
    function = getattr(sf, name)
    text = inspect.getdoc(function)
    assert ">>> " in text
    assert "Raises:" in text
    for argument, parameter in inspect.signature(function).parameters.items():
        assert f"{argument}:" in text or f"{argument}, " in text
        assert parameter.annotation is not parameter.empty
    assert inspect.signature(function).return_annotation is not inspect.Signature.empty


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_documented(name):
    cls = getattr(sf, name)
    text = inspect.getdoc(cls)
    assert text
    for attribute in getattr(cls, "__dataclass_fields__", getattr(cls, "_fields", ())):
        if name not in ("Disc", "HalfPlane"):
            assert f"{attribute}:" in text or f"{attribute}, " in text
