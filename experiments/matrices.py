"""The test matrices of the paper's appendix B, which are those of Gillis and of Noferini and Poloni."""

import numpy as np

CASES = {
    1: "all entries 2",
    2: "Grcar: -1 on the first subdiagonal, 1 on the diagonal and three superdiagonals",
    3: "independent standard normal entries",
    4: "independent entries, uniform on [0, 1]",
}


def case_matrix(case: int, n: int, seed: int) -> np.ndarray:
    """The matrix of order n of one of the ``CASES``, in float64.

    Case 2 as the paper prints it (-1 on the first subdiagonal's mirror image and on four diagonals) is triangular with
    all eigenvalues -1 and needs no projection; the sources that it cites use Grcar's matrix.
    """
    if case == 1:
        return np.full((n, n), 2.0)
    if case == 2:
        return np.triu(np.tril(np.ones((n, n)), 3)) - np.eye(n, k=-1)
    rng = np.random.default_rng([seed, case, n])
    return rng.standard_normal((n, n)) if case == 3 else rng.uniform(0.0, 1.0, (n, n))
