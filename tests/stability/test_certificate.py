"""Certificates: right where the truth is known exactly, never fooled, checked again from their evidence alone."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schurfire import Certificate, Disc, HalfPlane, InvalidInputError, SchurForm, certify, project_stable, real_schur
from schurfire.stability.lyapunov import LyapunovMatrix
from tests.references import blocks_of, eigenvalues, pair_is_stable, radius, similar, strictly_inside, verdict
from tests.zoo import BLOCKS, tagged, zoo

DTYPES = ("float32", "float64")


# --- decided exactly --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("A", "region", "is_stable"),
    [
        ([[0.5]], Disc(), True),
        ([[1.0]], Disc(), False),
        ([[-1.0]], Disc(), False),
        ([[np.nextafter(1.0, 0)]], Disc(), True),
        ([[1.5]], Disc(1.0, 1.0), True),
        ([[0.0]], Disc(1.0, 1.0), False),
        ([[0.0]], HalfPlane(), False),
        ([[-5e-324]], HalfPlane(), True),
        ([[0.9, 5.0], [0.0, -0.8]], Disc(), True),
        ([[0.6, 0.8], [-0.8, 0.6]], Disc(), False),
        ([[0.6, 0.75], [-0.8, 0.6]], Disc(), True),
        ([[0.0, 1.0], [-1.0, 0.0]], Disc(), False),
        ([[-1.0, 9.0], [-9.0, -1.0]], HalfPlane(), True),
        ([[-1.0, 9.0], [9.0, -1.0]], HalfPlane(), False),
        ([[0.5, 1e300], [0.0, 0.5]], Disc(), True),
        ([[0.0, 0.0], [1e300, 0.0]], Disc(1e-300), True),
        ([[1.0, 1e-320], [-1e-320, 1.0]], Disc(), False),
    ],
)
def test_blocks_by_hand(A, region, is_stable):
    certificate = verdict(np.array(A), region)
    assert certificate.is_stable == is_stable
    assert certificate.method == "blocks"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", [Disc(), Disc(0.75, -0.25), HalfPlane(), HalfPlane(0.25)])
def test_permuted_quasi_triangular_matrices_are_decided_like_their_blocks(dtype, region):
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(60):
        T = np.triu(rng.integers(-3, 4, (7, 7)) / 4.0, 1) + np.diag(rng.integers(-5, 3, 7) / 6.0)
        T[1, 0], T[4, 3] = rng.integers(-2, 3, 2) / 4.0
        T = T.astype(dtype)
        p = rng.permutation(7)
        expected = pair_is_stable(T, region)
        certificate = verdict(T[np.ix_(p, p)], region)
        assert certificate.method == "blocks"
        assert certificate.is_stable == expected
        assert verdict(SchurForm(T, np.eye(7, dtype=dtype), region)).is_stable == expected
        assert verdict(T.T.copy(), region).is_stable == expected
        outcomes.add(expected)
    assert outcomes == {True, False}


def test_signed_zeros_are_zeros():
    A = np.array([[0.5, -0.0, 1.0], [0.0, 0.5, 0.0], [-0.0, 0.0, 0.25]])
    assert verdict(A).method == "blocks"
    assert len(verdict(A).blocks) == 3


@given(st.tuples(*4 * [st.sampled_from([0.0, 1.0, -1.0, 0.5, 1.5, 1 - 2.0**-53, 2.0**-30]) | st.floats(-2, 2)]))
def test_any_block_is_decided_exactly(entries):
    A = np.reshape(entries, (2, 2))
    for region in (Disc(), HalfPlane()):
        certificate = verdict(A, region)
        expected = strictly_inside(A, region) if A[0, 1] and A[1, 0] else pair_is_stable(np.diag(A.diagonal()), region)
        assert certificate.is_stable == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_pairs_one_ulp_outside_are_refused(dtype):
    """A projected pair is accepted; with one entry of one block moved out by the least amount it is not."""
    rng, count = np.random.default_rng(1), 0
    for _ in range(60):
        form = project_stable((rng.standard_normal((6, 6)) * rng.uniform(0.5, 3)).astype(dtype))
        assert verdict(form).is_stable
        T, i = form.T.copy(), 0
        for block in blocks_of(form.T):
            if len(block) == 1:
                T[i, i] = np.copysign(1, T[i, i]) if abs(T[i, i]) > 0.99 else T[i, i]
            elif np.abs(np.linalg.eigvals(np.float64(block))).max() > 0.999:
                while strictly_inside(T[i : i + 2, i : i + 2], Disc()):
                    worst = np.copysign(np.inf, T[i, i])
                    T[i, i], T[i + 1, i + 1] = np.nextafter(T[i, i], worst), np.nextafter(T[i + 1, i + 1], worst)
                    T[i + 1, i] = np.nextafter(T[i + 1, i], np.copysign(np.inf, T[i + 1, i]))
            if not np.array_equal(T, form.T):
                certificate = verdict(SchurForm(T, form.Z))
                assert not certificate.is_stable
                assert certificate.method == "blocks"
                assert not form.certify().verify(SchurForm(T, form.Z))
                count += 1
                break
            i += len(block)
    assert count > 30


# --- useful -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_stable_part_of_the_zoo_is_proven(dtype):
    for n in (1, 2, 3, 8):
        matrices = zoo(n, dtype)
        for name in tagged("stable"):
            assert verdict(matrices[name]).is_stable, name
            assert verdict(matrices[name] - np.eye(n, dtype=dtype) * 4, HalfPlane()).is_stable, name


@pytest.mark.parametrize(
    ("n", "dtype", "gap"), [(2, "float64", 1e-6), (5, "float64", 1e-6), (28, "float64", 1e-6), (10, "float32", 1e-3)]
)
def test_random_matrices_near_the_boundary_are_proven(n, dtype, gap):
    rng, proven = np.random.default_rng(4), 0
    for _ in range(25):
        A = rng.standard_normal((n, n))
        A = (A / np.abs(np.linalg.eigvals(A)).max() * (1 - gap)).astype(dtype)
        proven += verdict(A).is_stable
        proven += verdict(A * np.array(3, dtype) - np.eye(n, dtype=dtype), Disc(3.0, -1.0)).is_stable
        right = A - np.array(np.linalg.eigvals(A).real.max() + gap, dtype) * np.eye(n, dtype=dtype)
        proven += verdict(right, HalfPlane()).is_stable
    assert proven >= 74  # of 75


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-300, 2.0**300, 2.0**1000])
def test_scaling_by_powers_of_two_changes_no_verdict(scale):
    rng = np.random.default_rng(5)
    for n in (1, 2, 6):
        A = rng.standard_normal((n, n))
        A = A / np.abs(np.linalg.eigvals(A)).max() * 0.9
        assert verdict(A * scale, Disc(scale)).is_stable
        assert not verdict(A * scale * 1.25, Disc(scale)).is_stable
        assert not verdict((A + np.eye(n)) * scale, HalfPlane()).is_stable
        if 1e-150 < scale < 1e150:  # beyond, underflow in the Lyapunov inequality is accounted for at full size
            assert verdict((A - np.eye(n)) * scale, HalfPlane()).is_stable


def test_methods_in_turn():
    rng = np.random.default_rng(6)
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    assert verdict(Q * 0.5).method == "power-bound"
    assert verdict(Q * 0.5).evidence is None
    near = verdict(Q * (1 - 1e-8))
    assert near.method == "lyapunov"
    assert near.evidence.scaled.shape == (5, 5)
    assert verdict(Q * 0.5, HalfPlane(1.0)).method == "lyapunov"
    assert verdict(Q).method == "none"
    assert verdict(np.triu(Q)).method == "blocks"


# --- margins ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("region", [Disc(), Disc(2.0, 0.5), HalfPlane(), HalfPlane(1.5)])
def test_no_eigenvalue_is_within_the_margin(region, dtype):
    rng, useful = np.random.default_rng(7), 0
    for n in (1, 2, 3, 4):
        for gap in (1e-1, 1e-3, 1e-6):
            A = rng.standard_normal((n, n))
            if isinstance(region, Disc):
                A = A / np.abs(np.linalg.eigvals(A)).max() * region.radius * (1 - gap) + region.centre * np.eye(n)
            else:
                A = A - (np.linalg.eigvals(A).real.max() - region.bound + gap) * np.eye(n)
            A = A.astype(dtype)
            certificate = verdict(A, region)
            if isinstance(region, Disc):
                room = region.radius - radius(A, region.centre)
            else:
                room = region.bound - max(z.real for z in eigenvalues(A))
            assert not certificate.is_stable or certificate.margin < room
            useful += certificate.is_stable and certificate.margin > 0.3 * room
            printed = str(certificate).partition("at least ")[2].partition(" inside")[0]
            assert not printed or float(printed) <= certificate.margin
    assert useful >= 8  # of 12


@pytest.mark.parametrize("distance", [1e-3, 1e-10, 2.0**-53])
def test_margins_of_blocks_are_nearly_all_there_is(distance):
    for block in ([[1 - distance]], [[0.0, 1.0], [-((1 - distance) ** 2), 0.0]], [[-1 + distance, 3.0], [0.0, 0.5]]):
        certificate = verdict(np.array(block))
        if certificate.is_stable:
            room = 1 - np.abs(np.linalg.eigvals(block)).max()
            assert certificate.margin <= room * (1 + 1e-15) + 1e-16
            assert certificate.margin >= 0.4 * distance or distance < 1e-15


# --- evidence ---------------------------------------------------------------------------------------------------------


def certified():
    """One certificate for each method, with its matrix."""
    rng = np.random.default_rng(8)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    form = project_stable(rng.standard_normal((4, 4)) * 3)
    for x, region in (
        (form, Disc()),
        (form.T, Disc()),
        (Q / 2, Disc()),
        (Q * (1 - 1e-7), Disc()),
        (Q - 2 * np.eye(4), HalfPlane()),
    ):
        certificate = certify(x, region)
        assert certificate.is_stable
        yield certificate, x


def test_methods_are_all_among_them():
    assert {certificate.method for certificate, _ in certified()} == {"blocks", "power-bound", "lyapunov"}


def test_verify_accepts_only_the_matrix_that_it_is_about():
    for certificate, x in certified():
        assert certificate.verify(x)
        if isinstance(x, SchurForm):
            assert certificate.verify(SchurForm(x.T.copy(), x.Z))
            assert not certificate.verify(SchurForm(x.T * 1.5, x.Z))
        else:
            assert certificate.verify(x.copy())
            assert not certificate.verify(x * -2.5)
            assert not certificate.verify(-x + 3 * np.eye(4))
        for other in (np.zeros((3, 3)), np.zeros((5, 5)), np.full((4, 4), 3.0), np.zeros((0, 0))):
            if certificate.method != "power-bound" or len(other) == 4:
                assert not certificate.verify(other)
        with pytest.raises(InvalidInputError):
            certificate.verify(np.full((4, 4), np.nan))


def test_verify_depends_on_region_and_margin():
    for certificate, x in certified():
        inner = certificate.region.shrink(0.999) if isinstance(certificate.region, Disc) else HalfPlane(-100.0)
        assert not replace(certificate, region=inner, margin=0.0).verify(x)
        assert replace(certificate, margin=0.0).verify(x)
        assert not replace(certificate, is_stable=False).verify(x)
        for margin in (0.9999, 1.0, 2.0, np.inf, np.nan):
            if isinstance(certificate.region, Disc):
                assert not replace(certificate, margin=margin).verify(x), margin
        assert not replace(certificate, margin=1e6).verify(x)


@pytest.mark.parametrize("margin", [-1.0, -1e-300, -np.inf])
def test_a_negative_margin_proves_nothing(margin):
    A = np.array([[1.5]])
    assert not Certificate(True, "blocks", margin, Disc(), 1, "float64", blocks=(A,)).verify(A)
    assert not Certificate(True, "blocks", margin, HalfPlane(1.0), 1, "float64", blocks=(A,)).verify(A)


def test_forged_certificates_are_refused():
    unstable = similar(np.eye(3) + np.eye(3, k=1), np.random.default_rng(9))
    small = (np.array([[0.5]]),) * 3
    for forged in (
        Certificate(True, "blocks", 0.0, Disc(), 3, "float64", blocks=small),
        Certificate(True, "blocks", 0.0, Disc(), 3, "float64"),
        Certificate(True, "power-bound", 0.0, Disc(), 3, "float64"),
        Certificate(True, "power-bound", 0.0, HalfPlane(9.0), 3, "float64"),
        Certificate(True, "lyapunov", 0.0, Disc(), 3, "float64"),
        Certificate(
            True, "lyapunov", 0.0, Disc(), 3, "float64", evidence=LyapunovMatrix(np.eye(3), np.zeros(3, dtype=int))
        ),
        Certificate(
            True, "lyapunov", 0.0, Disc(), 3, "float64", evidence=LyapunovMatrix(np.eye(2), np.zeros(2, dtype=int))
        ),
        Certificate(True, "none", 0.0, Disc(), 3, "float64"),
    ):
        assert not forged.verify(unstable)
    diagonal = np.diag([2.0, 0.5, 0.5])
    assert not Certificate(True, "blocks", 0.0, Disc(), 3, "float64", blocks=small).verify(diagonal)


def test_blocks_are_not_the_users_array():
    A = np.diag([0.5, 0.25])
    certificate = certify(A)
    A[0, 0] = 2.0
    assert certificate.blocks[0].tolist() == [[0.5]]
    assert not certificate.verify(A)


# --- stories and shapes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("A", "region", "text"),
    [
        (
            [[0.5]],
            Disc(),
            "stable: the eigenvalue in |z| < 1, at least 0.499 inside; proven exactly by 1 diagonal block",
        ),
        (
            [[0.5, 0], [0, -0.75]],
            Disc(2.0, 0.5),
            "stable: both eigenvalues in |z - 0.5| < 2, at least 0.749 inside; proven ex",
        ),
        (
            np.diag([-1.0, -2.0, -3.0]),
            HalfPlane(-0.5),
            "stable: all 3 eigenvalues in Re z < -0.5, at least 0.499 inside; pro",
        ),
        (
            [[1.5]],
            Disc(),
            "not stable: block 1 of 1, [[1.5]], has an eigenvalue that is not in |z| < 1: not both of -0.5",
        ),
        (
            [[0, 1], [-4, 0]],
            Disc(),
            "not stable: block 1 of 1, [[0.0, 1.0], [-4.0, 0.0]], has an eigenvalue that is not in",
        ),
        (
            np.full((3, 3), 0.5),
            Disc(),
            "not proven: no bound of its powers, Lyapunov matrix or Gramian shows all eigenvalues",
        ),
        (np.full((3, 3), 0.25), Disc(), "proven by a bound of its powers"),
        (np.full((3, 3), 0.25) - np.eye(3), HalfPlane(), "proven by a Lyapunov matrix"),
    ],
)
def test_one_readable_line(A, region, text):
    assert text in str(certify(np.array(A, float), region))


@pytest.mark.parametrize(
    ("A", "region"),
    [
        ([[0.0, 1e200], [1e200, 0.0]], Disc()),
        ([[0.0, 1e200], [-1e200, 0.0]], Disc()),
        ([[0.0, 1e200], [-1e200, 0.0]], Disc(1e300)),
        ([[-1e200, 1e200], [-1e200, -1e200]], HalfPlane()),
        ([[1e200, 1e200], [1e200, 1e200]], HalfPlane()),
        ([[1.7e308, 1.7e308], [1.7e308, 1.7e308]], Disc(1e-300)),
        ([[1e308]], Disc(1e308, -1e308)),
        ([[-1e308]], HalfPlane(1e308)),
    ],
)
def test_enormous_numbers_overflow_nothing(A, region):
    A = np.array(A)
    assert verdict(A, region).is_stable == strictly_inside(A, region)


@pytest.mark.parametrize("dtype", DTYPES)
def test_order_zero(dtype):
    for region in (Disc(), HalfPlane()):
        certificate = verdict(np.zeros((0, 0), dtype), region)
        assert certificate.is_stable
        assert certificate.n == 0
        assert certificate.dtype == dtype


def test_attributes():
    rng = np.random.default_rng(10)
    for n, dtype in itertools.product((1, 2, 3, 6), DTYPES):
        for A in (rng.standard_normal((n, n)).astype(dtype), np.eye(n, dtype=dtype) / 2):
            certificate = verdict(A)
            assert (certificate.n, certificate.dtype, certificate.region) == (n, dtype, Disc())
            assert type(certificate.is_stable) is bool
            assert type(certificate.margin) is float
            assert (certificate.blocks != ()) == (certificate.method == "blocks")


@pytest.mark.parametrize("block", BLOCKS)
def test_pairs_of_every_branch(block):
    schur = real_schur(np.array(BLOCKS[block]))
    assert verdict(SchurForm(schur.T, schur.Z)).is_stable == (block == "itself")
    assert verdict(project_stable((schur.T, schur.Z))).is_stable


def test_tensors_are_read():
    assert verdict(jnp.eye(3) / 2).dtype == "float32"
    assert verdict([[0.5]]).dtype == "float64"


# --- refused ----------------------------------------------------------------------------------------------------------


def test_stacks():
    forms = project_stable(np.random.default_rng(11).standard_normal((2, 3, 3)))
    message = r"Expected x to be one SchurForm, received a stack of shape \(2,\). Use \[certify\(form\) for form in x\]"
    with pytest.raises(InvalidInputError, match=message):
        certify(forms)
    with pytest.raises(InvalidInputError, match=message):
        certify(forms[0]).verify(forms)
    assert all(certify(form).is_stable for form in forms)
    with pytest.raises(InvalidInputError, match=r"x to be one matrix of shape \(n, n\), received shape \(2, 3, 3\)"):
        certify(np.zeros((2, 3, 3)))


@pytest.mark.parametrize(
    "x", [np.ones((2, 3)), np.ones(3), np.eye(2, dtype=int), np.eye(2) * 1j, np.zeros((0, 2, 2)), None, "A"]
)
def test_bad_matrices(x):
    with pytest.raises(InvalidInputError, match="Expected x to be"):
        certify(x)


def test_other_bad_input():
    for value in (np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="Expected x to be finite"):
            certify(np.full((2, 2), value))
    with pytest.raises(InvalidInputError, match=r"Expected region to be a schurfire.Disc or schurfire.HalfPlane"):
        certify(np.eye(2), 1.0)

    @jax.jit
    def traced(x):
        with pytest.raises(InvalidInputError, match="x to be an array with values, received a traced array"):
            certify(x)
        return x

    traced(jnp.eye(2))
