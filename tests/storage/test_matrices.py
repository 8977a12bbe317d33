import json
import os

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import schurfire as sf
from schurfire.files import check_output, whole_file
from schurfire.storage.matrices import read_matrix, read_pair, write_matrix, write_pair


def awkward(dtype: str) -> np.ndarray:
    """Numbers whose decimal digits are easily lost."""
    info = np.finfo(dtype)
    numbers = [0.1, -0.0, 1 / 3, info.max, info.tiny, info.smallest_subnormal, 1 + info.eps, -1e-5, 123456789.0]
    return np.array(numbers, dtype).reshape(3, 3)


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("suffix", [".npy", ".mat", ".NPY"])
def test_binary_round_trip_keeps_every_bit(tmp_path, suffix, dtype):
    A = awkward(dtype)
    write_matrix(tmp_path / f"A{suffix}", A)
    assert same_bits(read_matrix(tmp_path / f"A{suffix}"), A)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_text_round_trip_keeps_every_number(tmp_path, dtype):
    A = awkward(dtype)
    write_matrix(tmp_path / "A.csv", A)
    assert same_bits(read_matrix(tmp_path / "A.csv"), A.astype("float64"))


@pytest.mark.parametrize("suffix", [".npy", ".mat"])
@pytest.mark.parametrize("n", [0, 1])
def test_small_orders(tmp_path, suffix, n):
    write_matrix(tmp_path / f"A{suffix}", np.eye(n))
    assert same_bits(read_matrix(tmp_path / f"A{suffix}"), np.eye(n))


def test_text_has_no_matrix_of_order_0(tmp_path):
    with pytest.raises(sf.InvalidInputError, match="order 1 or more"):
        write_matrix(tmp_path / "A.csv", np.empty((0, 0)))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,-4e-1\n",
        "1;2\n3;-.4",
        "1 2\n3 -0.4",
        " 1.\t 2 \r\n\r\n+3   -4E-01\r\n\r\n",
        "\ufeff1, 2,\n3, -0.4,".replace(",\n", "\n").removesuffix(","),
    ],
)
def test_text_separators(tmp_path, text):
    (tmp_path / "A.csv").write_text(text, newline="")
    np.testing.assert_array_equal(read_matrix(tmp_path / "A.csv"), [[1.0, 2.0], [3.0, -0.4]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,x\n", r"line 2, column 2 of .*A.csv to be a finite number, received 'x'\."),
        ("a,b\n1,2\n3,4\n", r"line 1, column 1 .* received 'a'\. Delete the line if it is a header\."),
        ("1,b\n1,2\n", r"line 1, column 2 .* received 'b'\.$"),
        ("1,2\n\n3\n", r"line 3 of .* as long as the first row, 2 numbers, received 1 numbers"),
        ("1,2,\n3,4,\n", r"line 1, column 3 .* received an empty field"),
        ("1,5;2\n3;4\n", r"line 1, column 1 .* received '1,5'\. Write decimal fractions with a point\."),
        ("1,nan\n3,4\n", r"line 1, column 2 .* a finite number, received 'nan'"),
        ("1 2\n3 inf\n", r"line 2, column 2 .* a finite number, received 'inf'"),
        ("1 2\n3 1e999\n", r"finite, received 1 NaN or infinite value\(s\), the first at index \(1, 1\)"),
        ("1,2\n3,1+2j\n", r"line 2, column 2 .* received '1\+2j'"),
        ("1_0,2\n3,4\n", r"line 1, column 1 .* received '1_0'"),
        ("\n \n", "only blank lines"),
        ("", "an empty file"),
        ("1,2,3\n4,5,6\n", r"square, .* received shape \(2, 3\)"),
    ],
)
def test_text_that_is_no_matrix(tmp_path, text, message):
    (tmp_path / "A.csv").write_text(text)
    with pytest.raises(sf.InvalidInputError, match=message):
        read_matrix(tmp_path / "A.csv")


def test_text_in_other_bytes(tmp_path):
    (tmp_path / "A.csv").write_bytes("1,2".encode("utf-16"))
    with pytest.raises(sf.InvalidInputError, match="text in UTF-8"):
        read_matrix(tmp_path / "A.csv")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.eye(2, dtype=int), "dtype int64"),
        (np.eye(2, dtype=complex), "dtype complex128"),
        (np.eye(2, dtype="float16"), "dtype float16"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), r"1 NaN .* index \(0, 1\)"),
        (np.ones((2, 3)), r"shape \(2, 3\)"),
        (np.ones(4), r"shape \(4,\)"),
        (np.ones((2, 2, 2)), "one matrix"),
        (np.array([[1, "a"], [2, "b"]]), "dtype str"),
    ],
)
def test_numpy_arrays_that_are_no_matrix(tmp_path, array, message):
    np.save(tmp_path / "A.npy", array)
    with pytest.raises(sf.InvalidInputError, match=message):
        read_matrix(tmp_path / "A.npy")


def test_numpy_objects_are_not_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    np.save(tmp_path / "A.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "A.npz", allow_pickle=True, T=np.array([[Trap()]], dtype=object), Z=np.eye(1), region="{}")
    for read in (lambda: read_matrix(tmp_path / "A.npy"), lambda: read_pair(tmp_path / "A.npz")):
        with pytest.raises(sf.InvalidInputError, match="plain numbers"):
            read()
    assert not (tmp_path / "sprung").exists()


def test_damaged_numpy_files(tmp_path):
    write_matrix(tmp_path / "A.npy", np.eye(9))
    whole = (tmp_path / "A.npy").read_bytes()
    for end in (3, 20, len(whole) - 1):
        (tmp_path / "A.npy").write_bytes(whole[:end])
        with pytest.raises(sf.InvalidInputError, match="intact NumPy file"):
            read_matrix(tmp_path / "A.npy")


def test_suffix_and_contents_must_agree(tmp_path):
    np.savez(tmp_path / "A.npz", np.eye(2))
    np.save(tmp_path / "B.npy", np.eye(2))
    os.rename(tmp_path / "A.npz", tmp_path / "A.npy")
    os.rename(tmp_path / "B.npy", tmp_path / "B.npz")
    with pytest.raises(sf.InvalidInputError, match="a file of one array, received several arrays"):
        read_matrix(tmp_path / "A.npy")
    with pytest.raises(sf.InvalidInputError, match="a file of several arrays, received one array"):
        read_pair(tmp_path / "B.npz")


def test_foreign_byte_order(tmp_path):
    A = awkward("float64")
    np.save(tmp_path / "A.npy", A.astype(">f8"))
    read = read_matrix(tmp_path / "A.npy")
    assert read.dtype.isnative
    assert same_bits(read, A)


def test_matlab_file_with_other_things_in_it(tmp_path):
    contents = {"A": np.eye(2), "name": "plant", "cell": np.array([[1, "x"]], dtype=object), "cube": np.ones((2, 2, 2))}
    scipy.io.savemat(tmp_path / "A.mat", contents)
    np.testing.assert_array_equal(read_matrix(tmp_path / "A.mat"), np.eye(2))


def test_matlab_file_with_several_matrices(tmp_path):
    scipy.io.savemat(tmp_path / "A.mat", {"A": np.eye(2), "B": np.ones((2, 1))})
    with pytest.raises(sf.InvalidInputError, match=r"received A \(2x2\), B \(2x1\)\. Choose one with --variable NAME"):
        read_matrix(tmp_path / "A.mat")
    np.testing.assert_array_equal(read_matrix(tmp_path / "A.mat", "A"), np.eye(2))
    with pytest.raises(sf.InvalidInputError, match=r"square, .* received shape \(2, 1\)"):
        read_matrix(tmp_path / "A.mat", "B")
    with pytest.raises(sf.InvalidInputError, match=r"variable 'C' .* one of these: A \(2x2\), B \(2x1\)"):
        read_matrix(tmp_path / "A.mat", "C")


def test_matlab_file_without_a_matrix(tmp_path):
    scipy.io.savemat(tmp_path / "A.mat", {"name": "plant"})
    with pytest.raises(sf.InvalidInputError, match="exactly one 2-D numeric variable, received none"):
        read_matrix(tmp_path / "A.mat")


def test_matlab_numbers(tmp_path):
    for A in (np.array([[1, 2], [3, -4]]), np.array([[1, 2], [3, 4]], "uint8"), scipy.sparse.csc_array(np.eye(2))):
        scipy.io.savemat(tmp_path / "A.mat", {"A": A})
        dense = A if isinstance(A, np.ndarray) else A.toarray()
        assert same_bits(read_matrix(tmp_path / "A.mat"), dense.astype("float64"))
    scipy.io.savemat(tmp_path / "A.mat", {"A": np.array([[2**53 + 1]])})
    with pytest.raises(sf.InvalidInputError, match="exactly"):
        read_matrix(tmp_path / "A.mat")
    scipy.io.savemat(tmp_path / "A.mat", {"A": np.array([[1 + 2j]])})
    with pytest.raises(sf.InvalidInputError, match="complex"):
        read_matrix(tmp_path / "A.mat")


def test_matlab_files_of_other_kinds(tmp_path):
    (tmp_path / "A.mat").write_bytes(b"something else altogether" * 20)
    with pytest.raises(sf.InvalidInputError, match="an intact MATLAB file"):
        read_matrix(tmp_path / "A.mat")
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    (tmp_path / "A.mat").write_bytes(header + b"\x89HDF\r\n\x1a\n" + bytes(500))
    with pytest.raises(sf.InvalidInputError, match="Save it with -v7"):
        read_matrix(tmp_path / "A.mat")


def test_what_is_no_file(tmp_path):
    for name, message in (("A.txt", "a file of type .npy, .csv or .mat"), ("A.npy", "a file that exists")):
        with pytest.raises(sf.InvalidInputError, match=message):
            read_matrix(tmp_path / name)
    (tmp_path / "A.npy").mkdir()
    with pytest.raises(sf.InvalidInputError, match="a file, received the folder"):
        read_matrix(tmp_path / "A.npy")
    with pytest.raises(sf.InvalidInputError, match=r"a \.mat file only"):
        read_matrix(tmp_path / "A.csv", "A")


# --- pairs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("region", [sf.Disc(), sf.Disc(0.1, 1 / 3), sf.HalfPlane(-1e-300)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pair_round_trip_keeps_every_bit(tmp_path, region, dtype):
    if dtype == "float32" and region == sf.HalfPlane(-1e-300):
        region = sf.HalfPlane(-0.1)
    A = np.random.default_rng(0).standard_normal((4, 4)).astype(dtype)
    form = sf.project_stable(A, region)
    write_pair(tmp_path / "A.npz", form)
    read = read_pair(tmp_path / "A.npz")
    assert same_bits(read.T, form.T)
    assert same_bits(read.Z, form.Z)
    assert read.region == region
    assert read.source is None
    assert str(read.certify()) == str(form.certify())


def test_pair_keeps_the_array_it_came_from(tmp_path):
    A = np.array([[0.1, 0.2], [0.3, 0.4]])
    write_pair(tmp_path / "A.npz", sf.project_stable(A))
    assert same_bits(read_pair(tmp_path / "A.npz").matrix, A)


def test_files_that_hold_no_pair(tmp_path):
    region = np.array(json.dumps({"kind": "disc", "radius": 1.0, "centre": 0.0}))
    good = {"T": np.eye(2) / 2, "Z": np.eye(2), "region": region}
    wrong = [
        ({"region": np.array("no JSON")}, "region"),
        ({"region": np.array('{"kind": "square"}')}, "region"),
        ({"region": np.array('{"kind": "disc", "radius": -1.0, "centre": 0.0}')}, "region"),
        ({"T": np.ones((3, 3))}, "one shape|quasi-triangular"),
        ({"Z": 2 * np.eye(2)}, "orthogonal"),
        ({"T": np.eye(2, dtype=int)}, "dtype int64"),
        ({"T": np.ones((2, 2, 2))}, "one matrix"),
    ]
    np.savez(tmp_path / "A.npz", **good)
    assert read_pair(tmp_path / "A.npz").certify().is_stable
    for change, message in wrong:
        np.savez(tmp_path / "A.npz", **(good | change))
        with pytest.raises(sf.InvalidInputError, match=message):
            read_pair(tmp_path / "A.npz")
    np.savez(tmp_path / "A.npz", weights=np.eye(2))
    with pytest.raises(sf.InvalidInputError, match="T, Z and region, received weights"):
        read_pair(tmp_path / "A.npz")


def test_a_stack_is_no_pair(tmp_path):
    form = sf.project_stable(np.ones((2, 3, 3)))
    with pytest.raises(sf.InvalidInputError, match="one matrix"):
        write_pair(tmp_path / "A.npz", form)
    assert not os.listdir(tmp_path)


# --- whole files ------------------------------------------------------------------------------------------------------


def write_and_fail(path, failure):
    with whole_file(path) as file:
        file.write(b"ne")
        raise failure


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError, ValueError])
def test_a_file_is_whole_or_as_it_was(tmp_path, failure):
    path = tmp_path / "A.bin"
    for before in (None, b"old"):
        if before is not None:
            path.write_bytes(before)
        with pytest.raises(failure):
            write_and_fail(path, failure)
        assert os.listdir(tmp_path) == ([] if before is None else ["A.bin"])
    assert path.read_bytes() == b"old"
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["A.bin"]


def test_a_failing_rename_leaves_nothing_behind(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no"):
        write_matrix(tmp_path / "A.csv", np.eye(2))
    assert not os.listdir(tmp_path)


def test_a_link_is_followed_and_permissions_are_ordinary(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "A.npy").symlink_to(tmp_path / "there" / "A.npy")
    write_matrix(tmp_path / "A.npy", np.eye(2))
    assert (tmp_path / "A.npy").is_symlink()
    (tmp_path / "plain").touch()
    assert (tmp_path / "there" / "A.npy").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_outputs_that_cannot_be_written(tmp_path):
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "file").touch()
    for path, message in (
        ("A.txt", r"a file of type \.npy or \.csv, received .*A\.txt"),
        ("folder.npy", "a file, received the folder"),
        ("missing/A.npy", "Create .*missing first"),
        ("file/A.npy", "in a folder that exists"),
    ):
        with pytest.raises(sf.InvalidInputError, match=message):
            check_output(tmp_path / path, (".npy", ".csv"))
    assert check_output(tmp_path / "A.NPY", (".npy", ".csv")) == tmp_path / "A.NPY"


def test_read_only_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere, whatever the permissions say
    with pytest.raises(sf.InvalidInputError, match="can be written"):
        check_output(tmp_path / "A.npy", (".npy",))
