import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
import scipy.io

import schurfire as sf
from schurfire.cli import app as app_module
from schurfire.cli import nearest as nearest_module
from schurfire.cli.app import run
from schurfire.cli.certify import _digits
from schurfire.storage.matrices import read_matrix, read_pair, write_matrix, write_pair

COMMAND = (sys.executable, "-m", "schurfire")
UNSTABLE = np.array([[0.5, 2.0, 0.0], [1.0, 0.5, 0.3], [0.2, -1.0, 0.8]])
STABLE = 0.1 * UNSTABLE


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with some matrices, where the commands run."""
    monkeypatch.chdir(tmp_path)
    write_matrix("A.npy", UNSTABLE)
    write_matrix("S.npy", STABLE)
    return tmp_path


@pytest.fixture
def cli(capsys):
    """Runs a command line and returns its exit status, standard output and standard error output."""

    def call(*arguments: str):
        capsys.readouterr()
        status = run(arguments)
        return status, *capsys.readouterr()

    return call


def assert_refused(result, message: str, status: int = 2):
    """Exactly one line, on the standard error output."""
    got, out, err = result
    assert (got, out) == (status, "")
    assert re.fullmatch(r"Error: [^\n]+\n", err), err
    assert re.search(message, err), err


# --- certify ----------------------------------------------------------------------------------------------------------


def test_certify_says_what_the_certificate_says(cli):
    assert cli("certify", "S.npy") == (0, f"{sf.certify(STABLE)}\n", "")
    assert cli("certify", "A.npy") == (1, f"{sf.certify(UNSTABLE)}\n", "")


@pytest.mark.parametrize(
    ("options", "region"),
    [
        (["--radius", "0.2"], sf.Disc(0.2)),
        (["--radius=5", "--centre=-0.5"], sf.Disc(5.0, -0.5)),
        (["--center", "0.25"], sf.Disc(1.0, 0.25)),
        (["--half-plane", "0"], sf.HalfPlane()),
        (["--half-plane", "-1e-3"], sf.HalfPlane(-1e-3)),
    ],
)
def test_regions(cli, options, region):
    certificate = sf.certify(STABLE, region)
    status, out, _ = cli("certify", "S.npy", *options, "--json")
    found = json.loads(out)
    assert status == (0 if certificate.is_stable else 1)
    assert found["certificate"]["text"] == str(certificate)
    assert found["certificate"]["margin"] == certificate.margin
    assert found["region"].pop("kind") == ("disc" if isinstance(region, sf.Disc) else "half-plane")
    assert type(region)(**found["region"]) == region


def test_certify_reads_pairs_and_their_region(cli):
    form = sf.project_stable(UNSTABLE, sf.Disc(0.5))
    write_pair("P.npz", form)
    assert cli("certify", "P.npz") == (0, f"{form.certify()}\n", "")
    assert cli("certify", "P.npz", "--radius", "0.1")[0] == 1


@pytest.mark.parametrize("region", [sf.Disc(0.75, 0.1), sf.HalfPlane(-0.3)])
def test_blocks_can_be_checked_by_hand(cli, region):
    write_pair("P.npz", sf.project_stable(np.random.default_rng(1).standard_normal((5, 5)), region))
    status, out, _ = cli("certify", "P.npz", "--blocks")
    origin = Fraction(region.centre if isinstance(region, sf.Disc) else region.bound)
    assert status == 0
    assert f"minus {float(origin)!r} times the identity" in out
    shown = out.split("block ")[1:]
    certificate = read_pair("P.npz").certify()
    sections = [section for section in shown if re.match(r"\d", section)]
    assert len(sections) == len(certificate.blocks)
    for section, block in zip(sections, certificate.blocks, strict=True):
        rows = [json.loads(row) for row in re.findall(r"\[[^]]*\]", section)]
        np.testing.assert_array_equal(rows, block)
        values = [float(value) for value in re.findall(r"= (\S+) > 0", section)]
        exact = sf_slacks(block, region)
        if len(block) == 1 and isinstance(region, sf.HalfPlane):
            exact = exact[:1]
        np.testing.assert_allclose(values, [float(x) for x in exact], rtol=1e-5)


def sf_slacks(block, region):
    """The inequalities, once more in rational arithmetic from the numbers shown."""
    X = [[Fraction(float(x)) for x in row] for row in block]
    origin = Fraction(region.centre if isinstance(region, sf.Disc) else region.bound)
    for i in range(len(X)):
        X[i][i] -= origin
    trace = sum(X[i][i] for i in range(len(X)))
    if isinstance(region, sf.HalfPlane):
        return (-trace, X[0][0] * X[1][1] - X[0][1] * X[1][0]) if len(X) == 2 else (-trace, -trace)
    r = Fraction(region.radius)
    if len(X) == 1:
        return r - trace, r + trace
    determinant = X[0][0] * X[1][1] - X[0][1] * X[1][0]
    return r * r - determinant, r * r + determinant - r * abs(trace)


def test_blocks_of_an_unstable_triangle(cli):
    write_matrix("T.csv", np.array([[0.5, 9.0], [0.0, -1.5]]))
    status, out, _ = cli("certify", "T.csv", "--blocks")
    assert status == 1
    assert "r + x = 1.0 + (-1.5) = -0.5 not > 0" in out
    found = json.loads(cli("certify", "T.csv", "--blocks", "--json")[1])
    assert [[x["positive"] for x in block["inequalities"]] for block in found["blocks"]] == [
        [True, True],
        [True, False],
    ]


def test_blocks_of_a_dense_matrix(cli):
    status, out, _ = cli("certify", "S.npy", "--blocks")
    assert status == 0
    assert "no block decides alone" in out


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(10) ** 500, -Fraction(1, 7**600)])
def test_digits_of_any_size(x):
    assert abs(Fraction(_digits(x)) - x) <= abs(x) / 10**15


# --- nearest ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".mat"])
def test_nearest_writes_a_proven_array(cli, suffix):
    status, out, err = cli("nearest", "A.npy", "-o", f"X{suffix}")
    X = read_matrix(f"X{suffix}")
    assert (status, err) == (0, "")
    assert out.startswith(f"{sf.certify(X)}\n")
    assert sf.certify(X).is_stable
    assert f"distance    {np.linalg.norm(UNSTABLE - X):.6g} (NSFE {sf.metrics.nsfe(UNSTABLE, X):.4g})" in out
    assert "optimum " in out
    assert re.search(rf"written +X{suffix}\n", out)


def test_nearest_keeps_float32(cli):
    write_matrix("B.npy", UNSTABLE.astype("float32"))
    assert cli("nearest", "B.npy", "--truncated", "-o", "X.npy")[0] == 0
    assert read_matrix("X.npy").dtype == np.float32
    assert sf.certify(read_matrix("X.npy")).is_stable


@pytest.mark.parametrize("options", [(), ("--truncated",), ("--starts", "2", "--seed", "3")])
def test_nearest_writes_the_pair(cli, options):
    status, out, _ = cli("nearest", "A.npy", "--form", "schur", "-o", "P.npz", "--json", *options)
    form, found = read_pair("P.npz"), json.loads(out)
    assert status == 0
    assert found["certificate"]["method"] == "blocks"
    assert form.certify().is_stable
    assert found["distance"] == found["pair_distance"] == pytest.approx(np.linalg.norm(UNSTABLE - form.matrix))
    assert found["nsfe"] == pytest.approx(sf.metrics.nsfe(UNSTABLE, form.matrix))
    assert found["output"] == "P.npz"
    if "--truncated" in options:
        np.testing.assert_array_equal(form.T, sf.project_stable(UNSTABLE).T)
        assert (found["truncated"], found["iterations"]) == (True, 0)


def test_nearest_in_another_region(cli):
    options = ("--half-plane", "-0.5")
    assert cli("nearest", "A.npy", *options, "-o", "X.npy")[0] == 0
    assert sf.certify(read_matrix("X.npy"), sf.HalfPlane(-0.5)).is_stable
    assert cli("certify", "X.npy", *options)[0] == 0
    assert cli("certify", "A.npy", *options)[0] == 1


def test_a_stable_matrix_comes_back_as_it_is(cli):
    found = json.loads(cli("nearest", "S.npy", "-o", "X.npy", "--json")[1])
    assert found["distance"] == found["pair_distance"] == 0.0
    np.testing.assert_array_equal(read_matrix("X.npy"), STABLE)


def test_the_zero_matrix_has_no_relative_distance(cli):
    write_matrix("Z.npy", np.zeros((2, 2)))
    status, out, _ = cli("nearest", "Z.npy", "--radius", "1", "--centre", "3", "--form", "schur", "--json")
    assert status == 0
    assert json.loads(out)["nsfe"] is None
    assert "NSFE" not in cli("nearest", "Z.npy", "--form", "schur")[1]


def test_without_an_output_nothing_is_written(cli, folder):
    before = sorted(os.listdir(folder))
    status, out, _ = cli("nearest", "A.npy", "--truncated")
    assert status == 0
    assert "nothing; name a file: -o X.npy" in out
    assert sorted(os.listdir(folder)) == before


def test_an_existing_output_is_replaced(cli):
    write_matrix("X.npy", np.eye(7))
    assert cli("nearest", "A.npy", "--truncated", "-o", "X.npy")[0] == 0
    assert read_matrix("X.npy").shape == (3, 3)


def test_matlab_variables(cli):
    scipy.io.savemat("A.mat", {"A": UNSTABLE, "B": np.ones((3, 1))})
    assert_refused(cli("nearest", "A.mat", "-o", "X.mat"), r"A \(3x3\), B \(3x1\)\. Choose one with --variable NAME")
    assert cli("nearest", "A.mat", "--variable", "A", "--truncated", "-o", "X.mat")[0] == 0
    assert cli("certify", "X.mat", "--variable", "A")[0] == 0


@pytest.mark.parametrize("form", ["dense", "schur"])
def test_nearest_draws(cli, form):
    status, out, _ = cli("nearest", "A.npy", "--truncated", "--form", form, "--plot", "a.svg")
    assert status == 0
    assert re.search(r"picture +a\.svg", out)
    with open("a.svg", encoding="utf-8") as file:
        assert file.read().count("proven") >= (0 if form == "schur" else 1)


def test_paths_with_brackets_are_shown_as_they_are(cli):
    write_matrix("[red]A.npy", UNSTABLE)
    assert "from [red]A.npy\n" in cli("nearest", "[red]A.npy", "--truncated")[1]
    assert_refused(cli("certify", "[red]B.npy"), r"received \[red\]B\.npy")


# --- bad input --------------------------------------------------------------------------------------------------------


def make_bad_files(folder):
    write_matrix("pair.csv", STABLE)
    (folder / "empty.npy").touch()
    (folder / "folder.npy").mkdir()
    (folder / "text.npy").write_text("1,2\n3,4\n")
    (folder / "header.csv").write_text("a,b\n1,2\n3,4\n")
    np.save("wide.npy", np.ones((2, 3)))
    np.save("nan.npy", np.array([[np.nan]]))
    np.save("integer.npy", np.eye(2, dtype=int))
    scipy.io.savemat("complex.mat", {"A": np.array([[1j]])})
    np.savez("weights.npz", W=np.eye(2))


@pytest.mark.parametrize("command", ["certify", "nearest"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.npy", "a file that exists, received missing.npy"),
        ("folder.npy", "a file, received the folder folder.npy"),
        ("empty.npy", "received an empty file"),
        ("text.npy", "an intact NumPy file"),
        ("wide.npy", r"square, .* received shape \(2, 3\)"),
        ("nan.npy", "1 NaN"),
        ("integer.npy", "dtype int64"),
        ("complex.mat", "dtype complex128"),
        ("header.csv", "line 1, column 1 .* header"),
        ("A.txt", r"\.npy, \.csv or \.mat"),
        ("A", r"\.npy, \.csv or \.mat"),
    ],
)
def test_bad_matrices(cli, folder, command, name, message):
    make_bad_files(folder)
    assert_refused(cli(command, name), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("certify weights.npz", "T, Z and region, received W"),
        ("nearest weights.npz", r"\.npy, \.csv or \.mat"),
        ("certify A.npy --variable B", r"a \.mat file only"),
        ("certify A.npy --radius -1", "radius to be positive, received -1.0"),
        ("certify A.npy --radius 0", "radius to be positive"),
        ("certify A.npy --radius nan", "radius to be finite"),
        ("certify A.npy --centre inf", "centre to be finite"),
        ("certify A.npy --radius two", '--radius: unable to convert "two" into float'),
        ("certify A.npy --half-plane 0 --radius 1", "a disc or a half-plane"),
        ("certify A.npy --half-plane", "requires an argument"),
        ("certify A.npy --radios 1", "Unknown option: --radios"),
        ("certify", "requires an argument"),
        ("certify A.npy S.npy", "Unused Tokens"),
        ("verify A.npy", 'Unknown command "verify"'),
        ("nearest A.npy --starts 0", "n_starts"),
        ("nearest A.npy --starts 1.5", '--starts: unable to convert "1.5" into a whole number'),
        ("nearest A.npy --seed 1.0", "--seed: unable to convert"),
        ("nearest A.npy --form round", '"dense", "schur"'),
        ("nearest A.npy -o X.txt", r"the output to be a file of type \.npy, \.csv or \.mat"),
        ("nearest A.npy -o X.npz", r"the output to be a file of type \.npy, \.csv or \.mat"),
        ("nearest A.npy --form schur -o X.npy", r"the output to be a file of type \.npz"),
        ("nearest A.npy -o missing/X.npy", "Create missing first"),
        ("nearest A.npy -o folder.npy", "received the folder"),
        ("nearest A.npy -o A.npy", "another file than the matrix"),
        ("nearest A.npy -o ./A.npy", "another file than the matrix"),
        ("nearest A.npy --plot a.jpg", r"\.png, \.svg or \.pdf"),
        ("nearest A.npy --plot missing/a.png", "Create missing first"),
        ("demo --out A.npy", "to be a folder"),
    ],
)
def test_bad_arguments(cli, folder, monkeypatch, arguments, message):
    make_bad_files(folder)
    if arguments != "nearest A.npy --starts 0":  # all else is found before any work
        monkeypatch.setattr(nearest_module, "_find", None)
    before = sorted(os.listdir(folder))
    assert_refused(cli(*arguments.split()), message)
    assert sorted(os.listdir(folder)) == before


def test_a_picture_needs_matplotlib(cli, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    assert_refused(cli("nearest", "A.npy", "--plot", "a.png"), r"pip install 'schurfire\[plot\]'")


@pytest.mark.parametrize(
    ("failure", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (OSError(28, "No space left on device", "X.npy"), 2, "No space left on device: X.npy"),
        (sf.NotConvergedError("Found no\nmatrix."), 1, r"Found no matrix\."),
    ],
)
def test_failures_leave_the_output_as_it_was(cli, folder, monkeypatch, failure, status, message):
    write_matrix("X.npy", np.eye(7))
    before = sorted(os.listdir(folder))

    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(np, "save", fail)
    monkeypatch.setattr(nearest_module, "_truncated", fail if isinstance(failure, RuntimeError) else _truncated)
    assert_refused(cli("nearest", "A.npy", "--truncated", "-o", "X.npy"), message, status)
    assert sorted(os.listdir(folder)) == before
    np.testing.assert_array_equal(read_matrix("X.npy"), np.eye(7))


_truncated = nearest_module._truncated


def test_an_unexpected_error_is_not_hidden(cli, monkeypatch):
    monkeypatch.setattr(nearest_module, "_find", None)
    with pytest.raises(TypeError):
        cli("nearest", "A.npy")


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_demo_without_matplotlib(cli, monkeypatch):
    monkeypatch.setattr(app_module.demo, "_ORDER", 2)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    status, out, _ = cli("demo", "--out", "deep/folder")
    assert status == 0
    assert re.search(r"picture +none\. .* pip install", out)
    assert sorted(os.listdir("deep/folder")) == ["nearest.npy", "nearest.npz", "unstable.npy"]


def test_info(cli, monkeypatch):
    status, out, _ = cli("info")
    assert status == 0
    assert f"numpy       {np.__version__}" in out
    assert "backend" not in out
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    out = cli("info", "--system")[1]
    assert "recurrence  native, " in out or "recurrence  pure" in out
    assert "backend     jax, because KERAS_BACKEND is set" in out
    assert re.search(r"blas +\S+", out)
    assert re.search(r"threads +\d+ logical processors", out)


@pytest.mark.parametrize(
    "arguments", [(), ("-h",), ("--help",), ("nearest", "-h"), ("certify", "--help"), ("demo", "-h")]
)
def test_help_has_examples(cli, arguments):
    status, out, err = cli(*arguments)
    assert (status, err) == (0, "")
    assert "Examples:" in out
    assert "schurfire " in out


def test_version(cli):
    assert cli("--version") == (0, f"{sf.__version__}\n", "")


# --- as processes -----------------------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy():
    code = """
import sys
from schurfire.cli import main
for arguments in (["--help"], ["nearest", "-h"], ["--version"], ["nearest", "A.npy", "--bad"]):
    main(arguments)
heavy = {"numpy", "scipy", "jax", "keras", "matplotlib"} & sys.modules.keys()
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_exit_statuses_of_the_process():
    def call(*arguments):
        return subprocess.run([*COMMAND, *arguments], check=False, capture_output=True, text=True)

    stable, unproven, bad = call("certify", "S.npy"), call("certify", "A.npy"), call("certify", "B.npy")
    assert (stable.returncode, unproven.returncode, bad.returncode) == (0, 1, 2)
    assert stable.stdout == f"{sf.certify(STABLE)}\n"
    assert stable.stderr == unproven.stderr == bad.stdout == ""
    assert bad.stderr == "Error: Expected the matrix to be a file that exists, received B.npy.\n"


def test_demo(folder):
    process = subprocess.run([*COMMAND, "demo"], check=True, capture_output=True, text=True)
    made = folder / "demo"
    assert process.stderr == ""
    assert sorted(os.listdir(made)) == ["eigenvalues.png", "nearest.npy", "nearest.npz", "unstable.npy"]
    array, pair = sf.certify(read_matrix(made / "nearest.npy"), sf.Disc(0.9)), read_pair(made / "nearest.npz").certify()
    assert (array.is_stable, pair.is_stable) == (True, True)
    assert not sf.certify(read_matrix(made / "unstable.npy")).is_stable
    assert str(array) in process.stdout
    assert str(pair) in process.stdout


def test_an_interrupted_search_ends_at_once_and_leaves_nothing(folder):
    """The compiled search for a matrix of order 60 takes minutes and does not look for signals."""
    write_matrix("B.npy", np.random.default_rng(0).standard_normal((60, 60)))
    before = sorted(os.listdir(folder))
    environment = os.environ | {"TTY_COMPATIBLE": "1", "TTY_INTERACTIVE": "1"}  # the spinner tells that it has begun
    command = [*COMMAND, "nearest", "B.npy", "-o", "X.npy"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        seen = b""
        while b"searching" not in seen:
            seen += process.stderr.read(1)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert out == b""
    assert b"Interrupted." in err
    assert b"Traceback" not in err
    assert sorted(os.listdir(folder)) == before


def test_a_reader_that_leaves_is_no_error():
    write_pair("P.npz", sf.project_stable(UNSTABLE))
    command = [*COMMAND, "certify", "P.npz", "--blocks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
