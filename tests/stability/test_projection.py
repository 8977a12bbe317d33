"""The eager truncated projection: the pair is nearest and strictly stable; what is proven stable stays as it is."""

import jax.numpy as jnp
import numpy as np
import pytest

from schurfire import (
    Disc,
    HalfPlane,
    InvalidInputError,
    NotConvergedError,
    SchurForm,
    certify,
    project_stable,
    real_schur,
)
from tests.references import blocks_of, distance, nearest, pair_is_stable
from tests.zoo import BLOCKS, TAGS, tagged, zoo

DTYPES = ("float32", "float64")


@pytest.mark.parametrize("region", [Disc(), Disc(0.5, 0.25), HalfPlane(), HalfPlane(-1.0)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_strictly_stable_for_the_whole_zoo(n, dtype, region):
    for name, A in zoo(n, dtype).items():
        form = project_stable(A, region)
        assert form.region == region
        assert form.T.dtype == form.Z.dtype == form.matrix.dtype == dtype
        assert pair_is_stable(form.T, region), name
        assert form.certify().is_stable, name
        proven = certify(A, region).is_stable
        assert (form.source is not None) == proven, name
        if proven:
            np.testing.assert_array_equal(form.matrix, A)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_orthogonal_factor_is_kept_and_every_block_is_nearest(dtype):
    matrices = zoo(5, dtype)
    for name in ("ginibre", "branches rotated", "grcar", "cyclic", "companion", "huge"):
        A = matrices[name]
        schur, form = real_schur(A), project_stable(A)
        np.testing.assert_array_equal(form.Z, schur.Z)
        np.testing.assert_array_equal(np.triu(form.T, 2), np.triu(schur.T, 2))
        total = 0.0
        for old, new in zip(blocks_of(schur.T), split_like(blocks_of(schur.T), form.T), strict=True):
            best, room = nearest_distance(old), 300 * np.finfo(dtype).eps * (1 + np.abs(old).max())
            assert best * (1 - 1e-12) <= distance(old, new) <= best * (1 + 1e-9) + room, name
            total = np.hypot(total, best)
        size = np.abs(A).max()
        found = np.linalg.norm(np.float64(form.matrix) / size - np.float64(A) / size)
        assert found == pytest.approx(total / size, abs=200 * float(np.finfo(dtype).eps))


def nearest_distance(block):
    return nearest(block, Disc())[0] if len(block) == 2 else max(0.0, abs(float(block[0, 0])) - 1)


def split_like(blocks, T):
    i = 0
    for block in blocks:
        yield T[i : i + len(block), i : i + len(block)]
        i += len(block)


def test_figures_of_the_literature():
    """Relative squared distances: all twos, and Grcar's matrix."""
    for n in (10, 20, 50):
        A = np.full((n, n), 2.0)
        assert np.linalg.norm(project_stable(A).matrix - A) == pytest.approx(2 * n - 1, rel=1e-12)
    expected = {10: 0.152, 20: 0.161, 50: 0.168}
    for n, value in expected.items():
        A = zoo(n)["grcar"]
        nsfe = np.sum((project_stable(A).matrix - A) ** 2) / np.sum(A**2)
        assert nsfe == pytest.approx(value, abs=1e-3)  # it depends on the order of the eigenvalues


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_proven_stays_bit_identical(dtype):
    matrices = zoo(8, dtype)
    for name in tagged("stable"):
        form = project_stable(matrices[name])
        np.testing.assert_array_equal(form.matrix, matrices[name], err_msg=name)
        np.testing.assert_array_equal(form.T, real_schur(matrices[name]).T)
    A = matrices["small ginibre"]
    form = project_stable(A)
    A[0, 0] = 7.0  # the form does not look at the user's array any more
    assert form.matrix[0, 0] != 7.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_mixed_stacks(dtype):
    matrices = zoo(6, dtype)
    names = ["small ginibre", "ginibre", "zero", "all two", "jordan", "graded entries"]
    A = np.stack([matrices[name] for name in names]).reshape(2, 3, 6, 6)
    forms = project_stable(A)
    assert forms.T.shape == forms.matrix.shape == A.shape
    for index, name in zip(np.ndindex(2, 3), names, strict=True):
        single = project_stable(A[index])
        np.testing.assert_array_equal(forms[index].T, single.T)
        np.testing.assert_array_equal(forms[index].Z, single.Z)
        if "stable" in TAGS[name]:
            np.testing.assert_array_equal(forms.matrix[index], A[index])
            np.testing.assert_array_equal(forms[index].matrix, A[index])
        size = np.abs(A[index]).max() or 1.0
        np.testing.assert_allclose(
            forms.matrix[index] / size, single.matrix / size, atol=1e-5 if dtype == "float32" else 1e-14
        )
        assert forms[index].certify().is_stable


def test_stacks_without_a_proven_matrix_have_no_source():
    assert project_stable(np.stack([np.eye(3) * 2] * 2)).source is None


def test_pairs_are_projected_as_they_are():
    T = np.array([[2.0, 5.0, 0.0], [0.0, 0.5, 3.0], [0.0, -4.0, 0.5]])
    Z = np.linalg.qr(zoo(3)["ginibre"])[0]
    by_tuple, by_form = project_stable((T, Z)), project_stable(SchurForm(T, Z))
    np.testing.assert_array_equal(by_tuple.T, by_form.T)
    for form in (by_tuple, by_form):
        np.testing.assert_array_equal(form.Z, Z)
        assert form.T[0, 1] == 5.0
        assert form.region == Disc()
        assert form.certify().is_stable
    again = project_stable(by_form)
    np.testing.assert_array_equal(again.T, by_form.T)


def test_the_region_of_a_pair_is_the_default():
    form = SchurForm(np.diag([3.0, 0.5]), np.eye(2), Disc(2.0))
    assert project_stable(form).T[0, 0] == np.nextafter(2.0, 0)
    assert project_stable(form, HalfPlane(-1)).region == HalfPlane(-1)
    assert project_stable(form, HalfPlane(-1)).T.diagonal().tolist() == [np.nextafter(-1, -2)] * 2
    assert project_stable((np.diag([3.0, 0.5]), np.eye(2)), Disc(2.0)).region == Disc(2.0)


@pytest.mark.parametrize("branch", BLOCKS)
def test_stacks_of_pairs(branch):
    T = np.stack([np.array(BLOCKS[branch]), np.diag([4.0, 0.5])])
    forms = project_stable((T, np.stack([np.eye(2)] * 2)))
    assert [form.certify().is_stable for form in forms] == [True, True]
    for form, old in zip(forms, T, strict=True):
        best = np.linalg.norm([nearest_distance(block) for block in blocks_of(old)])
        np.testing.assert_allclose(np.linalg.norm(form.T - old), best, atol=1e-12)


def test_tensors_and_lists():
    form = project_stable(jnp.full((2, 2), 2.0))
    assert type(form.T) is np.ndarray
    assert form.T.dtype == "float32"
    assert project_stable([[3.0]]).T[0, 0] < 1


def test_trivial_orders():
    assert project_stable(np.zeros((0, 0))).matrix.shape == (0, 0)
    assert project_stable(np.zeros((2, 0, 0))).matrix.shape == (2, 0, 0)
    assert project_stable(np.array([[[2.0]], [[0.5]]])).matrix.ravel().tolist() == [np.nextafter(1, 0), 0.5]


def test_larger_regions_are_no_further():
    A = zoo(8)["ginibre"]
    distances = [np.linalg.norm(project_stable(A, Disc(r)).matrix - A) for r in (0.25, 0.5, 1, 2, 3)]
    assert distances == sorted(distances, reverse=True)


@pytest.mark.parametrize(
    "A", [np.ones((2, 3)), np.ones(3), np.eye(2, dtype=int), np.eye(2) * 1j, np.zeros((0, 2, 2)), None]
)
def test_bad_matrices(A):
    with pytest.raises(InvalidInputError, match="Expected A to be"):
        project_stable(A)


def test_other_bad_input():
    with pytest.raises(InvalidInputError, match="Expected A to be finite"):
        project_stable([[np.inf]])
    for A in (np.eye(2), SchurForm(np.eye(2), np.eye(2)), (np.eye(2), np.eye(2))):
        with pytest.raises(InvalidInputError, match=r"Expected region to be a schurfire.Disc"):
            project_stable(A, 1.0)
    with pytest.raises(InvalidInputError, match="Expected Z to be orthogonal"):
        project_stable((np.eye(2), 2 * np.eye(2)))
    with pytest.raises(InvalidInputError, match="A to be a tuple"):
        project_stable((np.eye(2), np.eye(2), np.eye(2)))
    with pytest.raises(NotConvergedError):
        project_stable(np.full((3, 3), 1.7e308))
    with pytest.raises(InvalidInputError, match="wide enough to hold a float32 number"):
        project_stable(np.eye(2, dtype="float32"), Disc(1e-9, 0.1))
