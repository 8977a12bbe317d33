"""What is special about single parametrisations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schurfire import Disc, InvalidInputError, certify
from schurfire.parametrisations import parametrisation
from schurfire.parametrisations.even_blocks import stable_blocks
from schurfire.parametrisations.starts import even_schur, has_even_blocks

# --- schur-triangular and schur-factored ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
def test_the_folded_triangle(n):
    """Every entry of the matrix is one weight, at the place that the docstring says."""
    p = parametrisation("schur-triangular", n)
    T = 1e-3 * np.triu(1.0 + np.arange(n * n).reshape(n, n), -1)
    T[np.arange(2, n, 2), np.arange(1, n - 1, 2)] = 0.0
    T = T / (n * n)
    weights, V = p.start_from(T)
    np.testing.assert_array_equal(p.matrix(weights), T)
    np.testing.assert_array_equal(V, np.eye(n))
    h, o = (n + 1) // 2, 1 - n % 2
    R = weights["upper"].reshape(h, n + o)
    for i in range(n):
        for j in range(i, n):
            assert T[i, j] == (R[i, j + o] if i < h else R[n - o - i, n - 1 - j])
    if n > 1:
        np.testing.assert_array_equal(weights["lower"], T.diagonal(-1)[::2])


@pytest.mark.parametrize("n", [2, 3, 6, 9, 20])
def test_blocks_are_put_in_even_rows(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        A = rng.standard_normal((n, n)) / np.sqrt(n)
        T, Z = even_schur(A)
        assert has_even_blocks(T)
        np.testing.assert_allclose(Z @ T @ Z.T, A, atol=30 * n * np.finfo(float).eps)
        np.testing.assert_allclose(Z.T @ Z, np.eye(n), atol=30 * n * np.finfo(float).eps)


def test_a_pair_behind_a_real_eigenvalue_is_moved_to_the_front():
    A = np.array([[0.5, 1.0, 2.0], [0.0, 0.3, 0.6], [0.0, -0.6, 0.3]])
    assert not has_even_blocks(A)
    T, _ = even_schur(A)
    assert T[1, 0] != 0
    assert T[2, 1] == 0
    assert T[2, 2] == pytest.approx(0.5)


def test_only_the_block_that_is_outside_changes():
    T = np.triu(np.full((5, 5), 7.0), 1)
    T[[0, 1], [0, 1]], T[0, 1], T[1, 0] = 0.5, 0.25, -0.5
    T[2:4, 2:4] = [[1.5, 1.0], [0.1, 0.2]]
    T[4, 4] = -2.0
    X = stable_blocks(T, Disc())
    changed = X != T
    assert changed[2:4, 2:4].any()
    assert changed[4, 4]
    changed[2:4, 2:4] = changed[4, 4] = False
    assert not changed.any()
    assert X[4, 4] == -np.nextafter(1.0, 0.0)
    assert certify(X).is_stable


def test_the_basis_is_the_nearest_orthogonal_matrix_and_so_is_its_derivative():
    p, rng = parametrisation("schur-factored", 4), np.random.default_rng(0)
    weights = p.start(rng, 0.9, "float64")
    Q = weights["Z"]
    np.testing.assert_array_equal(p.basis(weights), Q)
    E, G, step = rng.standard_normal((4, 4)), rng.standard_normal((4, 4)), 1e-6

    def polar(Z):
        U, _, Vt = np.linalg.svd(Z)
        return U @ Vt

    np.testing.assert_allclose(p.basis(weights | {"Z": Q + 0.02 * E}), polar(Q + 0.02 * E), atol=1e-14)
    np.testing.assert_allclose(p.basis(weights | {"Z": 3 * Q}), Q, atol=1e-14)
    np.testing.assert_array_equal(p.basis(weights | {"Z": np.zeros((4, 4))}), np.eye(4))
    with jax.enable_x64(True):
        slope = jax.grad(lambda Z: jnp.sum(p.basis({"Z": Z}) * G))(jnp.asarray(Q))
    expected = np.sum((polar(Q + step * E) - polar(Q - step * E)) * G) / (2 * step)
    assert np.sum(np.asarray(slope) * E) == pytest.approx(expected, rel=1e-7)


# --- modal ------------------------------------------------------------------------------------------------------------


def test_modal_keeps_block_diagonal_matrices_and_holds_pairs_of_real_eigenvalues():
    A = np.diag([0.5, -0.5, 0.25, 0.75, 0.1])
    A[2, 3] = 1.0
    weights, V = parametrisation("modal", 5).start_from(A)
    np.testing.assert_array_equal(parametrisation("modal", 5).matrix(weights), A)
    np.testing.assert_array_equal(V, np.eye(5))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_modal_refuses_what_has_no_eigenvectors(dtype):
    A = (0.5 * np.eye(4) + np.eye(4, k=1)).astype(dtype)
    with pytest.raises(InvalidInputError, match=r"condition .*schur-triangular"):
        parametrisation("modal", 4).start_from(A)
    weights, _ = parametrisation("schur-triangular", 4).start_from(A)
    np.testing.assert_array_equal(parametrisation("schur-triangular", 4).matrix(weights), A)


# --- lmi --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("region", [Disc(), Disc(0.5, 0.25)])
def test_the_inequality_holds_for_any_weights(region):
    """P = S11 is a Lyapunov matrix of the transpose of the scaled matrix."""
    p, rng = parametrisation("lmi", 4, region), np.random.default_rng(1)
    for _ in range(20):
        W, V = rng.standard_normal((8, 8)), rng.standard_normal((4, 4))
        F = (p.matrix({"W": W, "V": V}) - region.centre * np.eye(4)) / region.radius
        P = (W @ W.T)[:4, :4]
        assert np.linalg.eigvalsh(P - F @ P @ F.T).min() > 0


def test_lmi_says_when_rounding_takes_too_much():
    A = np.array([[0.9999, 500.0], [0.0, 0.9998]], "float32")
    with pytest.raises(InvalidInputError, match="Expected A to be"):
        parametrisation("lmi", 2).start_from(A)


# --- spectral-penalty -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("region", [Disc(), Disc(0.5, 0.25)])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_penalty_and_its_derivative(n, region):
    p = parametrisation("spectral-penalty", n, region, strength=3.0, epsilon=0.125)
    rng, step = np.random.default_rng(2), 1e-6
    A, E = 2 * rng.standard_normal((6, n, n)), rng.standard_normal((6, n, n))
    A[5] *= 1e-3

    def expected(A):
        sigma = np.linalg.norm((A - region.centre * np.eye(n)) / region.radius, 2, axis=(-2, -1))
        return 3.0 * np.maximum(sigma**2 - 1 + 0.125, 0) ** 2

    np.testing.assert_allclose(p.penalty({"A": A}), expected(A), rtol=1e-12)
    with jax.enable_x64(True):
        value, slope = jax.vmap(jax.value_and_grad(lambda A: p.penalty({"A": A})))(jnp.asarray(A))
    np.testing.assert_allclose(value, expected(A), rtol=1e-12)
    difference = (expected(A + step * E) - expected(A - step * E)) / (2 * step)
    np.testing.assert_allclose(np.sum(np.asarray(slope) * E, axis=(1, 2)), difference, rtol=1e-6, atol=1e-6)


def test_equal_singular_values_and_bad_numbers_do_no_harm():
    p = parametrisation("spectral-penalty", 3)
    slope = jax.grad(lambda A: p.penalty({"A": A}))(2 * jnp.eye(3))
    assert np.isfinite(np.asarray(slope)).all()
    assert p.penalty({"A": np.zeros((3, 3))}) == 0.0
    assert np.isnan(p.penalty({"A": np.full((3, 3), np.nan)}))
    assert p.penalty({"A": np.diag([1e70, 1.0, 1.0])}) == pytest.approx(1e280)
