"""Weights to start from: a random stable system of unit gain, or a given one."""

from typing import Any, NamedTuple

import numpy as np

from schurfire.arrays import concrete, real_array
from schurfire.errors import invalid
from schurfire.parametrisations.base import Parametrisation, Weights
from schurfire.systems import LinearSystem

_DOUBLINGS = 10


class Sizes(NamedTuple):
    """Inputs and outputs of a layer; no outputs: its outputs are its states."""

    inputs: int
    outputs: int | None
    has_feedthrough: bool


def random_start(
    parametrisation: Parametrisation, sizes: Sizes, radius: float, seed: int, dtype: str
) -> tuple[Weights, dict[str, np.ndarray]]:
    """A random stable A, D = 0, and B, C normal so that white inputs of unit variance give outputs of about that.

    B is scaled so that the mean variance of the states after 1024 samples of white noise, ``trace(P) / n_x`` with
    ``P = sum A^k B B^T A^kT``, is 1; for a region that reaches beyond the unit circle, with A divided by how far it
    does. The entries of C have variance ``1 / n_x``.

    Returns:
        The weights of A, and B, C, D as far as the layer has them.
    """
    rng = np.random.default_rng(seed)
    weights = parametrisation.start(rng, radius, dtype)
    n, region = parametrisation.state_size, parametrisation.region
    B, Z = rng.standard_normal((n, sizes.inputs)), parametrisation.basis(weights)
    A = parametrisation.matrix(weights).astype(np.float64) / max(1.0, abs(region.centre) + region.radius)
    B = B / np.sqrt(_state_variance(A, B if Z is None else Z.T @ B))
    C = rng.standard_normal((sizes.outputs or 0, n)) / np.sqrt(n)
    return weights, _rounded(sizes, dtype, B, C, np.zeros((len(C), sizes.inputs)))


def given_start(
    parametrisation: Parametrisation, sizes: Sizes, system: dict[str, np.ndarray], dtype: str
) -> tuple[Weights, dict[str, np.ndarray]]:
    """Weights with the input-output map of the system, rounded to ``dtype``, in the coordinates the method asks for."""
    _check_shapes(parametrisation.state_size, sizes, system)
    A, B, C, D = (system[name].astype(np.float64) for name in "ABCD")
    weights, V = parametrisation.start_from(A)
    weights = {name: w.astype(dtype) for name, w in weights.items()}
    _require_reached(parametrisation, A, weights, V)
    Z = parametrisation.basis(weights)
    W = V if Z is None else V @ Z.T.astype(np.float64)  # V^-1 B = Z^T (W^-1 B) and C V = (C W) Z are in use
    identity = np.eye(len(A))
    if np.abs(W - identity).max() > 100 * len(A) * np.finfo(dtype).eps:  # else it is I up to the rounding of Z Z^T
        if sizes.outputs is None:
            fix = "Its outputs are its states. Use 'schur-projected', 'schur-factored' or 'lmi', or give output_size."
            raise invalid("stability", "a method that keeps the states of a system", repr(parametrisation.name), fix)
        B, C = np.linalg.solve(W, B), C @ W
    return weights, _rounded(sizes, dtype, B, C, D)


def matrices_of(system: Any) -> dict[str, np.ndarray] | None:
    """A, B, C, D of what a user gave: a ``LinearSystem``, or matrices (A, B), (A, B, C) or (A, B, C, D).

    Without C it is the identity, without D it is zero.
    """
    if system is None:
        return None
    if isinstance(system, LinearSystem):
        system = (system.A, system.B, system.C, system.D)
    if isinstance(system, dict):
        system = tuple(system[name] for name in "ABCD")
    if not isinstance(system, (tuple, list)) or not 2 <= len(system) <= 4:
        what = "a LinearSystem, or matrices (A, B), (A, B, C) or (A, B, C, D)"
        raise invalid("system", what, f"an object of type {type(system).__name__}")
    matrices = {name: concrete(real_array(M, name), name) for name, M in zip("ABCD", system, strict=False)}
    for name, M in matrices.items():
        if M.ndim != 2:
            raise invalid(name, "a matrix", f"shape {M.shape}")
    matrices.setdefault("C", np.eye(len(matrices["A"])))
    matrices.setdefault("D", np.zeros((len(matrices["C"]), matrices["B"].shape[1])))
    return matrices


def _check_shapes(n: int, sizes: Sizes, system: dict[str, np.ndarray]) -> None:
    n_y = n if sizes.outputs is None else sizes.outputs
    shapes = {"A": (n, n), "B": (n, sizes.inputs), "C": (n_y, n), "D": (n_y, sizes.inputs)}
    for name, shape in shapes.items():
        if system[name].shape != shape:
            fix = f"The layer has {n} states, {sizes.inputs} inputs and {n_y} outputs."
            raise invalid(f"{name} of the system", f"of shape {shape}", f"shape {system[name].shape}", fix)
    if sizes.outputs is None and not np.array_equal(system["C"], np.eye(n)):
        raise invalid("C of the system", "the identity", "another matrix", "Give output_size to learn C and D.")
    if (sizes.outputs is None or not sizes.has_feedthrough) and system["D"].any():
        raise invalid("D of the system", "zero", "non-zero entries", "Give output_size and feedthrough=True.")


def _rounded(sizes: Sizes, dtype: str, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> dict[str, np.ndarray]:
    matrices = {"B": B}
    if sizes.outputs is not None:
        matrices |= {"C": C, "D": D} if sizes.has_feedthrough else {"C": C}
    return {name: M.astype(dtype) for name, M in matrices.items()}


def _require_reached(parametrisation: Parametrisation, A: np.ndarray, weights: Weights, V: np.ndarray) -> None:
    X = parametrisation.matrix(weights)
    size = np.linalg.norm(V) * max(np.linalg.norm(A), parametrisation.region.radius)
    error = np.linalg.norm(A @ V - V @ X) / size
    if not error <= np.sqrt(np.finfo(X.dtype).eps):
        what = f"a matrix that {parametrisation.name!r} can hold in {X.dtype}"
        fix = "Its stability is too sensitive to rounding: use float64 or 'schur-triangular'."
        raise invalid("A of the system", what, f"one that it changes by {error:.1e} of its norm", fix)


def _state_variance(A: np.ndarray, B: np.ndarray) -> float:
    P, power = B @ B.T, A
    for _ in range(_DOUBLINGS):  # P over 2 N samples is P + A^N P A^NT
        P, power = P + power @ P @ power.T, power @ power
    return float(np.trace(P)) / len(A)
