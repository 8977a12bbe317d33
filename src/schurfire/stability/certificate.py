"""Certificates: a verdict on the stability of a matrix, with the evidence to check it again."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from scipy.sparse.csgraph import connected_components

from schurfire.arrays import square_matrix
from schurfire.errors import invalid
from schurfire.exact import block_inside, nearest_float, slacks
from schurfire.kernels.bounds import bound_by_squaring
from schurfire.regions import UNIT_DISC, Disc, HalfPlane, Region, check_region
from schurfire.stability.gramian import GramianFactor, factors
from schurfire.stability.lyapunov import LyapunovMatrix, candidates
from schurfire.stability.schur_form import SchurForm, diagonal_blocks
from schurfire.threads import suited_to

Method = Literal["blocks", "power-bound", "lyapunov", "gramian", "none"]
_SQUARINGS = 12  # proves well-conditioned matrices up to a radius of about 1 - 1e-3; the rest is left to Lyapunov
_MARGIN_SHARES = (0.999, 0.5, 0.0)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Whether all eigenvalues of a matrix lie strictly inside a region, and why.

    Attributes:
        is_stable: True is a proof about the very numbers of the matrix. False means proven unstable for the method
            ``"blocks"`` (an eigenvalue lies on the boundary or outside), and undecided for ``"none"``.
        method: ``"blocks"``: exact, by two rational inequalities per diagonal block. ``"power-bound"``: a rigorous
            bound of the spectral radius by repeated squaring. ``"lyapunov"``: a Lyapunov matrix, verified.
            ``"gramian"``: a factor of a Gramian, verified.
        margin: the proof holds for the region shrunk by this much: no eigenvalue is nearer to the boundary. 0.0 if
            only strictness is proven, or nothing.
        region: the region.
        n: order of the matrix.
        dtype: its data type.
        blocks: the diagonal blocks, for the method ``"blocks"``.
        evidence: the Lyapunov matrix or the factor of the Gramian, for the methods that are called after them.
    """

    is_stable: bool
    method: Method
    margin: float
    region: Region
    n: int
    dtype: str
    blocks: tuple[np.ndarray, ...] = ()
    evidence: LyapunovMatrix | GramianFactor | None = None

    def verify(self, x: Any) -> bool:
        """Whether this certificate is a valid proof that ``x`` is stable with this margin.

        Nothing is searched: the evidence alone is checked again, at the cost of a few matrix products.

        Args:
            x: the matrix or the ``SchurForm`` that the certificate is about.
        """
        region = self.region.shrink(self.margin)
        if not self.is_stable or region is None:
            return False
        if self.method == "blocks":
            blocks = _exact_blocks(x)
            return blocks is not None and _same(blocks, self.blocks) and all(block_inside(b, region) for b in blocks)
        A = square_matrix(x, "x")
        if self.method == "power-bound":
            return isinstance(region, Disc) and _power_bound(A, region) < region.radius
        return self.evidence is not None and self.evidence.proves(A, region)

    def __str__(self) -> str:
        where = f"in {_describe(self.region)}"
        if self.is_stable:
            how = {
                "blocks": f"exactly by {_count(len(self.blocks), 'diagonal block')}",
                "power-bound": "by a bound of its powers",
                "lyapunov": "by a Lyapunov matrix",
                "gramian": "by a factor of a Gramian",
            }[self.method]
            inside = f", at least {_rounded_down(self.margin)} inside" if self.margin else ""
            return f"stable: {_all_eigenvalues(self.n)} {where}{inside}; proven {how}"
        if self.method == "blocks":
            index, block = next((i, b) for i, b in enumerate(self.blocks) if not block_inside(b, self.region))
            first, second = (nearest_float(s) for s in slacks(block, self.region))
            return (
                f"not stable: block {index + 1} of {len(self.blocks)}, {block.tolist()}, has an eigenvalue that is not "
                f"{where}: not both of {first:.3g} and {second:.3g} are positive"
            )
        return f"not proven: no bound of its powers, Lyapunov matrix or Gramian shows all eigenvalues {where}"


def certify(x: Any, region: Region | None = None) -> Certificate:
    """Decides, rigorously, whether all eigenvalues lie strictly inside the region.

    * A ``SchurForm``, and an array that is quasi-triangular exactly (or would be after a permutation of its rows and
      columns), is decided by rational arithmetic on its diagonal blocks: yes or no, no margin needed.
    * Any other array is judged as the numbers it holds: first by a bound of its powers, then by a Lyapunov matrix
      verified in double precision. Yes is a proof; no means that none was found.

    Args:
        x: one square matrix (float32 or float64), a single ``SchurForm``, or its factors as a tuple (T, Z).
        region: default: the form's own region, and the open unit disc for an array.

    Raises:
        InvalidInputError: x is no finite real square matrix.

    Cost: O(n) for a pair, a dozen matrix products where the power bound suffices, else about 100 n^3.

    >>> import numpy as np
    >>> print(certify(np.array([[0.9, 5.0], [0.0, -0.8]])))
    stable: both eigenvalues in |z| < 1, at least 0.0998 inside; proven exactly by 2 diagonal blocks
    >>> certify(np.array([[0.6, 0.8], [-0.8, 0.6]])).is_stable
    False
    """
    if isinstance(x, tuple) and len(x) == 2:
        x = SchurForm(*x)
    if region is None:
        region = x.region if isinstance(x, SchurForm) else UNIT_DISC
    check_region(region)
    blocks = _exact_blocks(x)
    if blocks is not None:
        n = sum(len(block) for block in blocks)
        dtype = x.T.dtype.name if isinstance(x, SchurForm) else square_matrix(x, "x").dtype.name
        is_stable = all(block_inside(block, region) for block in blocks)
        margin = _proven_margin(blocks, region) if is_stable else 0.0
        return Certificate(is_stable, "blocks", margin, region, n, dtype, blocks=blocks)
    A = square_matrix(x, "x")
    undecided = Certificate(False, "none", 0.0, region, len(A), A.dtype.name)
    return _by_powers(A, region) or _by_inequality(A, region) or undecided


def _exact_blocks(x: Any) -> tuple[np.ndarray, ...] | None:
    """The diagonal blocks whose eigenvalues are those of x together, if all are of order 1 or 2; else None.

    The strongly connected components of the graph of non-zero entries are the diagonal blocks of the finest
    block-triangular form that a permutation can reach.
    """
    if isinstance(x, SchurForm):
        if x.T.ndim != 2:
            fix = "Use [certify(form) for form in x]."
            raise invalid("x", "one SchurForm", f"a stack of shape {x.T.shape[:-2]}", fix)
        return diagonal_blocks(x.T)
    A = square_matrix(x, "x")
    if len(A) == 0:
        return ()
    count, labels = connected_components(A != 0, directed=True, connection="strong")
    if np.bincount(labels).max() > 2:
        return None
    members = [np.flatnonzero(labels == label) for label in range(count)]
    return tuple(A[np.ix_(m, m)] for m in sorted(members, key=lambda m: m[0]))


def _same(blocks: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    return len(blocks) == len(others) and all(map(np.array_equal, blocks, others))


def _by_powers(A: np.ndarray, region: Region) -> Certificate | None:
    if isinstance(region, HalfPlane):
        return None
    bound = _power_bound(A, region)
    if not bound < region.radius:
        return None
    margin = max(0.0, float(np.nextafter(np.nextafter(region.radius - bound, 0.0) * (1 - 1e-12), 0.0)))
    shrunk = region.shrink(margin)
    if shrunk is None or not bound < shrunk.radius:
        margin = 0.0
    return Certificate(True, "power-bound", margin, region, len(A), A.dtype.name)


def _power_bound(A: np.ndarray, region: Disc) -> float:
    """A bound of the spectral radius of ``A - centre I``, in double precision."""
    B = A.astype(np.float64)
    B[np.diag_indices(len(B))] -= region.centre  # one rounding, relative to an entry and so to the norm
    with suited_to(len(B)):
        return float(bound_by_squaring(B, _SQUARINGS, np.finfo(np.float64).eps if region.centre else 0.0))


def _by_inequality(A: np.ndarray, region: Region) -> Certificate | None:
    with suited_to(len(A)):
        for evidence, margin in itertools.chain(candidates(A, region), factors(A, region)):
            for proven in (margin, 0.0):
                shrunk = region.shrink(proven)
                if shrunk is not None and evidence.proves(A, shrunk):
                    method = "lyapunov" if isinstance(evidence, LyapunovMatrix) else "gramian"
                    return Certificate(True, method, float(proven), region, len(A), A.dtype.name, evidence=evidence)
    return None


def _proven_margin(blocks: Sequence[np.ndarray], region: Region) -> float:
    """A margin near the largest for which the shrunk region still holds all blocks, checked exactly."""
    estimate = min((_distance_to_boundary(block, region) for block in blocks), default=0.0)
    for share in _MARGIN_SHARES:
        margin = max(0.0, share * estimate) if math.isfinite(estimate) else 0.0
        if margin == 0.0 or _fits(blocks, region, margin):
            return margin
    return 0.0


def _fits(blocks: Sequence[np.ndarray], region: Region, margin: float) -> bool:
    shrunk = region.shrink(margin)
    return shrunk is not None and all(block_inside(block, shrunk) for block in blocks)


def _distance_to_boundary(block: np.ndarray, region: Region) -> float:
    """Floating-point estimate of how far inside the eigenvalues of a block are."""
    origin = region.origin
    if len(block) == 1:
        x = float(block[0, 0]) - origin
        return region.radius - abs(x) if isinstance(region, Disc) else -x
    (a, b), (c, d) = [[Fraction(float(entry)) for entry in row] for row in block]
    half_trace = nearest_float((a + d) / 2 - Fraction(origin))
    discriminant = nearest_float(((a - d) / 2) ** 2 + b * c)
    root = abs(discriminant) ** 0.5
    if isinstance(region, HalfPlane):
        return -half_trace if discriminant < 0 else -half_trace - root
    size = math.hypot(half_trace, root) if discriminant < 0 else abs(half_trace) + root
    return region.radius - size


def _describe(region: Region) -> str:
    if isinstance(region, HalfPlane):
        return f"Re z < {region.bound:g}"
    shift = f" {'-' if region.centre > 0 else '+'} {abs(region.centre):g}" if region.centre else ""
    return f"|z{shift}| < {region.radius:g}"


def _rounded_down(x: float) -> str:
    """Three digits that do not promise more than x holds."""
    return f"{float(Context(prec=3, rounding=ROUND_DOWN).create_decimal(x)):g}"


def _all_eigenvalues(n: int) -> str:
    few = {0: "no eigenvalue to place", 1: "the eigenvalue", 2: "both eigenvalues"}
    return few.get(n, f"all {n} eigenvalues")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
