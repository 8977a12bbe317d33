"""The zoo holds what it claims to hold."""

import numpy as np
import pytest

from schurfire import Disc
from tests.references import nearest
from tests.zoo import BLOCKS, REASONS, TAGS, tagged, zoo

FAMILIES = {
    "ginibre", "normal", "orthogonal", "jordan", "grcar", "frank", "companion", "clustered", "one ulp below",
    "one ulp above", "branches", "graded down", "graded up", "rank one", "zero",
}  # fmt: skip


def test_every_family_and_every_reason_is_there():
    assert set(TAGS) >= FAMILIES
    assert set().union(*TAGS.values()) == set(REASONS)
    assert all(TAGS.values())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_specimens_are_finite_and_repeatable(n, dtype):
    matrices, again = zoo(n, dtype), zoo(n, dtype)
    assert list(matrices) == list(TAGS)
    for name, A in matrices.items():
        assert (A.shape, A.dtype) == ((n, n), np.dtype(dtype)), name
        assert np.isfinite(A).all(), name
        np.testing.assert_array_equal(A, again[name])
    assert not np.array_equal(zoo(n, dtype, seed=1)["ginibre"], matrices["ginibre"])


def test_tags_are_true():
    n, matrices = 8, zoo(8)
    scaled = {name: A / (np.abs(A).max() or 1.0) for name, A in matrices.items()}
    for name in tagged("normal"):
        A = scaled[name]
        np.testing.assert_allclose(A @ A.T, A.T @ A, atol=1e-13)
    for name in tagged("symmetric"):
        np.testing.assert_array_equal(matrices[name], matrices[name].T)
    for name in tagged("integer"):
        np.testing.assert_array_equal(matrices[name], np.round(matrices[name]))
    for name in tagged("triangular"):
        assert not (np.triu(matrices[name], 1).any() and np.tril(matrices[name], -1).any())
    for name in tagged("singular"):
        assert np.linalg.svd(scaled[name])[1][-1] < 1e-14
    for name in tagged("graded"):
        entries = np.abs(matrices[name][matrices[name] != 0])
        assert entries.max() > 10 * entries.min()
    for name in ("graded down", "graded up"):
        assert np.log10(np.abs(matrices[name].diagonal())).max() > 148
        assert np.log10(np.abs(matrices[name].diagonal())).min() < -148
    with np.errstate(over="ignore", under="ignore"):
        assert all(np.isinf(matrices[name] ** 2).any() for name in tagged("overflow"))
        assert all((matrices[name] ** 2 == 0).any() for name in tagged("underflow"))
    radius_one = [name for name in tagged("boundary") if "defective" not in TAGS[name]]
    for name in radius_one:
        assert abs(np.linalg.norm(matrices[name], 2) - 1) < 1e-14
    assert all(not np.tril(matrices[name], -2).any() or n < 3 for name in ("jordan", "branches", "upper"))


@pytest.mark.parametrize("branch", BLOCKS)
def test_every_branch_of_the_case_list_is_taken(branch):
    assert nearest(BLOCKS[branch], Disc())[2] == branch
