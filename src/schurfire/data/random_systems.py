"""Random stable systems, to test methods of identification on."""

from typing import Any

import numpy as np

from schurfire.data.checks import Seed, float_dtype, generator, positive_count, probability
from schurfire.kernels.projection import project_factor
from schurfire.regions import Disc
from schurfire.systems import LinearSystem


def random_stable_system(
    state_size: int,
    input_size: int,
    output_size: int,
    *,
    radius: float = 1.0,
    complex_share: float = 0.5,
    seed: Seed,
    dtype: str | np.dtype = "float64",
) -> LinearSystem:
    """A system with ``A = V L V^-1`` in Schur coordinates, with random eigenvalues L and eigenvectors V.

    With ``V = Q R``, the system is given in the coordinates Q: its A is ``R L R^-1``, exactly quasi-triangular with the
    2x2 blocks at even rows, and strictly stable in exact arithmetic. The entries of V, B, C and D are independent and
    standard normal, so that every mode is controllable and observable with probability 1. Eigenvalues are independent:

    * a complex pair has a modulus uniform in (0, radius) and an angle uniform in (0, pi);
    * a real eigenvalue is uniform in (-radius, radius).

    Args:
        state_size: n_x.
        input_size: n_u.
        output_size: n_y.
        radius: of the disc around 0 that holds the eigenvalues; the system's region.
        complex_share: the probability of each of the floor(n_x / 2) pairs of eigenvalues to be complex. Where n_x is
            odd, one more eigenvalue is real.
        seed: an integer, or a generator, which goes on.
        dtype: float32 or float64.

    Raises:
        InvalidInputError: sizes below 1, a radius or share out of range.

    Cost: O(n_x^3).

    >>> system = random_stable_system(4, 2, 1, radius=0.9, seed=0)
    >>> system.certify().is_stable, system.region
    (True, Disc(radius=0.9, centre=0.0))
    """
    sizes = {"state_size": state_size, "input_size": input_size, "output_size": output_size}
    n, n_u, n_y = (positive_count(size, name) for name, size in sizes.items())
    region = Disc(radius)
    share = probability(complex_share, "complex_share")
    dtype = float_dtype(dtype)
    rng = generator(seed)
    L = _random_blocks(n, region.radius, share, rng)
    _, R = np.linalg.qr(rng.standard_normal((n, n)))
    A = np.linalg.solve(R.T, (R @ L).T).T
    A[np.tril(np.ones((n, n), bool), -1) & (L == 0)] = 0.0
    B, C, D = (rng.standard_normal(shape).astype(dtype) for shape in ((n, n_u), (n_y, n), (n_y, n_u)))
    return LinearSystem(project_factor(A.astype(dtype), region), B, C, D, region=region)


def random_stable_systems(
    count: int, state_size: int, input_size: int, output_size: int, *, seed: Seed, **options: Any
) -> list[LinearSystem]:
    """``count`` independent systems; the first k are the same for every count.

    Args:
        count: how many.
        state_size: n_x.
        input_size: n_u.
        output_size: n_y.
        seed: an integer, or a generator, of which each system gets a child.
        options: radius, complex_share and dtype of ``random_stable_system``.

    Raises:
        InvalidInputError: a count below 1, or as ``random_stable_system``.

    >>> [system.state_size for system in random_stable_systems(2, 3, 1, 1, seed=0, radius=0.9)]
    [3, 3]
    """
    children = generator(seed).spawn(positive_count(count, "count"))
    return [random_stable_system(state_size, input_size, output_size, seed=child, **options) for child in children]


def _random_blocks(n: int, radius: float, share: float, rng: np.random.Generator) -> np.ndarray:
    """Block-diagonal: ``r [[cos w, sin w], [-sin w, cos w]]`` or two real eigenvalues in each pair of rows."""
    L = np.diag(rng.uniform(-radius, radius, n))
    pairs = n // 2
    is_complex = rng.random(pairs) < share
    eigenvalues = rng.uniform(0.0, radius, pairs) * np.exp(1j * rng.uniform(0.0, np.pi, pairs))
    for i, z in zip(2 * np.flatnonzero(is_complex), eigenvalues[is_complex], strict=True):
        L[i : i + 2, i : i + 2] = [[z.real, z.imag], [-z.imag, z.real]]
    return L
