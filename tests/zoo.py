"""The zoo: matrices that are hard, each tagged by what makes it so.

``zoo(n, dtype)`` returns the specimens of one order by name; ``TAGS[name]`` says why a specimen is there. ``BLOCKS``
holds one 2x2 block for every branch of the case list.
"""

import numpy as np

REASONS = {
    "random": "no structure to exploit",
    "normal": "perfectly conditioned eigenvalues: bounds must be tight",
    "defective": "fewer eigenvectors than eigenvalues, which rounding moves by eps^(1/n)",
    "non-normal": "eigenvalues far more sensitive than the norm tells",
    "clustered": "eigenvalues that agree to nine digits",
    "boundary": "spectral radius 1 up to rounding",
    "branches": "every branch of the 2x2 case list on the diagonal",
    "graded": "entries over 300 decades in float64, 30 in float32",
    "overflow": "products of entries overflow",
    "underflow": "products of entries are flushed to zero",
    "singular": "zero is an eigenvalue",
    "cyclic": "QR steps with ordinary shifts stagnate",
    "integer": "ties and zero discriminants without any rounding",
    "triangular": "decided exactly, or nearly decomposed from the start",
    "symmetric": "blocks with a real double eigenvalue must split",
    "stable": "strictly inside the unit disc: must be left alone",
}

# Where the nearest point of the closed unit disc is found, see ``references.nearest``.
BLOCKS = {
    "itself": [[0.5, 0.25], [-0.5, 0.375]],
    "determinant": [[0.5, 2.0], [-1.5, 0.25]],
    "plus": [[1.5, 0.125], [0.25, 0.0]],
    "minus": [[-1.5, 0.125], [0.25, 0.0]],
    "double plus": [[1.25, 4.0], [0.0, 1.25]],
    "double minus": [[-1.25, 0.0], [4.0, -1.25]],
    "ridge": [[0.125, 3.0], [2.0, -0.25]],
}


def zoo(n: int, dtype: str = "float64", seed: int = 0) -> dict[str, np.ndarray]:
    """All specimens of order n, by name."""
    return {name: np.asarray(matrix, dtype) for name, (_, matrix) in _specimens(n, dtype, seed).items()}


def tagged(tag: str) -> list[str]:
    """The names of the specimens with this tag."""
    return [name for name, tags in TAGS.items() if tag in tags]


def _specimens(n: int, dtype: str, seed: int) -> dict[str, tuple[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((n, n))
    Q = np.linalg.qr(G)[0]
    eps = np.finfo(dtype).eps
    decades, extreme = (150, 1e290) if dtype == "float64" else (15, 1e30)
    grades = 10.0 ** np.linspace(-decades, decades, n)
    J = np.kron(np.eye(n // 2 + 1), [[0, 1], [-1, 0]])[:n, :n]
    eye, up, down = np.eye(n), np.eye(n, k=1), np.eye(n, k=-1)
    rows, columns = np.indices((n, n))
    frequencies = np.repeat(rng.standard_normal(n // 2 + 1), 2)[:n]
    return {
        "ginibre": ("random", G),
        "uniform": ("random", rng.random((n, n))),
        "small ginibre": ("random stable", G / (4 * np.sqrt(n) + 4)),
        "normal": ("normal", Q @ (J * frequencies + eye) @ Q.T),
        "symmetric": ("normal symmetric", G + G.T),
        "skew": ("normal singular" if n % 2 else "normal", G - G.T),
        "orthogonal": ("normal boundary", Q),
        "cyclic": ("normal boundary cyclic integer", np.roll(eye, 1, axis=0)),
        "permutation": ("normal boundary cyclic integer", eye[rng.permutation(n)]),
        "identity": ("normal boundary symmetric integer triangular", eye),
        "minus identity": ("normal boundary symmetric integer triangular", -eye),
        "one ulp below": ("normal stable boundary triangular", (1 - eps) * eye),
        "one ulp above": ("normal boundary triangular", (1 + eps) * eye),
        "reflection": ("normal symmetric boundary", _symmetric(Q @ np.diag((-1.0) ** np.arange(n)) @ Q.T)),
        "jordan": ("defective non-normal triangular stable", 0.875 * eye + up),
        "jordan rotated": ("defective non-normal", Q @ (0.875 * eye + up) @ Q.T),
        "jordan at 1": ("defective non-normal triangular boundary integer", eye + up),
        "nilpotent": ("defective singular triangular integer stable", down),
        "nilpotent rotated": ("defective singular", Q @ up @ Q.T),
        "defective pairs": ("defective boundary integer", J + np.eye(n, k=2)),
        "defective pairs rotated": ("defective boundary", Q @ (J + np.eye(n, k=2)) @ Q.T),
        "clustered": (
            "clustered non-normal",
            Q @ (np.diag(1 + 1e-9 * rng.standard_normal(n)) + np.triu(G, 1) / 10) @ Q.T,
        ),
        "grcar": ("non-normal integer", np.triu(np.tril(np.ones((n, n)), 3)) - down),
        "frank": ("non-normal integer", np.triu(n - np.maximum(rows, columns), -1)),
        "companion": ("non-normal", np.vstack([rng.standard_normal(n), eye[:-1]])),
        "toeplitz": ("non-normal", 2 * up + down),
        "hilbert": ("symmetric graded", 1 / (rows + columns + 1.0)),
        "branches": ("branches", _branches(n, G)),
        "branches rotated": ("branches", Q @ _branches(n, G) @ Q.T),
        "graded down": ("graded", G * np.sqrt(np.outer(grades, grades))),
        "graded up": ("graded", (G * np.sqrt(np.outer(grades, grades)))[::-1, ::-1]),
        "graded entries": ("graded non-normal", G * 10.0 ** rng.uniform(-decades, decades, (n, n))),
        "graded columns": ("graded non-normal", G * 10.0 ** np.linspace(-10, 0, n)),
        "graded similar": ("graded non-normal", Q * np.divide.outer(grades[::-1], grades[::-1]) ** (1 / 2)),
        "rank one": ("singular", np.outer(G[0], G[-1])),
        "all two": ("singular symmetric integer", np.full((n, n), 2.0)),
        "zero": ("singular triangular integer stable", np.zeros((n, n))),
        "integer": ("integer", rng.integers(-1, 2, (n, n))),
        "upper": ("triangular", np.triu(G)),
        "lower": ("triangular", np.tril(G)),
        "huge": ("overflow", G * extreme),
        "tiny": ("underflow stable", G / extreme),
        "tiny corner": ("underflow", np.triu(G) + down / extreme),
    }


def _symmetric(A: np.ndarray) -> np.ndarray:
    return (A + A.T) / 2


def _branches(n: int, G: np.ndarray) -> np.ndarray:
    """Block triangular, with the blocks of ``BLOCKS`` over and over."""
    pairs = (n + 1) // 2
    blocks = np.zeros((2 * pairs, 2 * pairs))
    for i, block in zip(range(pairs), list(BLOCKS.values()) * pairs, strict=False):
        blocks[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return blocks[:n, :n] + np.triu(G, 2)


TAGS = {name: frozenset(tags.split()) for name, (tags, _) in _specimens(8, "float64", 0).items()}
