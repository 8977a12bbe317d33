"""The linear state-space layer that cannot become unstable."""

import random
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from schurfire.errors import InvalidInputError, invalid
from schurfire.kernels.small_products import product
from schurfire.layers import checks
from schurfire.layers.initial_systems import Sizes, given_start, matrices_of, random_start
from schurfire.layers.known_entries import KnownEntries
from schurfire.layers.packing import Packing, Retraction, in_use
from schurfire.layers.responses import Matrices, respond
from schurfire.namespaces import Array, keras_namespace
from schurfire.parametrisations import parametrisation
from schurfire.parametrisations.base import Parametrisation
from schurfire.regions import UNIT_DISC, Disc
from schurfire.stability.certificate import Certificate, certify
from schurfire.systems import LinearSystem


@keras.saving.register_keras_serializable("schurfire")
class StateSpace(keras.layers.Layer):
    """``x[k+1] = A x[k] + B u[k]``, ``y[k] = C x[k] + D u[k]`` with A stable whatever the weights hold.

    The matrix that the recurrence runs on is strictly stable as the numbers it holds, in the precision of the layer:
    at build, after every update, after ``set_weights`` with anything (NaN and infinity too), after averaging weights,
    after loading. ``certify`` proves it. Only ``"spectral-penalty"`` and ``"none"`` promise nothing.

    | stability | weights of A | the matrix in use |
    |---|---|---|
    | ``"schur-projected"`` | A: n^2 | A where a bound of its powers proves it, else its truncated projection |
    | ``"schur-factored"`` | T, Z: 2 n^2 | T, quasi-triangular; ``A = Z T Z^T`` with Z orthogonal |
    | ``"schur-triangular"`` | n (n + 1) / 2 + floor(n / 2) | quasi-triangular: every stable system has such a form |
    | ``"modal"`` | 2 n (2 n - 1 if n is odd) | 2x2 blocks on the diagonal, O(n) a step |
    | ``"lmi"`` | 5 n^2 | dense, from a linear matrix inequality without constraints |
    | ``"spectral-penalty"`` | A: n^2 | A, unproven; a penalty is added to the loss |
    | ``"none"`` | A: n^2 | A, unproven |

    It behaves as Keras' recurrent layers do: masked steps keep the state and repeat the output (0 before the first
    step that is not masked), ``initial_state`` is a tensor or a list of one, ``return_state`` appends the final state,
    and a ``stateful`` layer starts where the last batch ended, until ``reset_state()``.

    Weights: A, then B (n_x, n_u), C (n_y, n_x), D (n_y, n_u), x0 (n_x). Where a method has several weights for A they
    are one vector, because they are retracted together after an update; ``state_weights`` takes it apart. They start
    random, with outputs of about unit variance for white inputs of unit variance and D = 0, or from
    ``system``.

    Args:
        state_size: n_x.
        output_size: n_y; None for the transparent layer, ``y = x`` without C and D.
        stability: the method, see above.
        region: the open disc for the eigenvalues.
        radius: how far from the centre eigenvalues may start; default 0.9 of the region's radius.
        seed: of the random start, a whole number; None takes one from Python's generator, which
            ``keras.utils.set_random_seed`` sets.
        system: a ``LinearSystem``, or (A, B), (A, B, C), (A, B, C, D), to start from; rounded to the layer's dtype.
            Methods with coordinates of their own (``"schur-triangular"``, ``"modal"``) keep its input-output map, the
            others its states too.
        known: for some of ``"A", "B", "C", "D"`` an array or a number that broadcasts to its shape, NaN (or None)
            where an entry is free. The others hold exactly, at all times, and have gradient 0; they take precedence
            over ``system``. Of A only where the method can keep both them and the stability.
        feedthrough: whether there is a D; otherwise ``y = C x``.
        learn_initial_state: whether ``x[0]``, the same for all sequences, is a weight; otherwise it is 0.
        return_sequences: whether the output has every step or the last alone.
        return_state: whether to return ``[y, x[N]]``.
        stateful: whether the final state is the next call's initial state; needs a fixed batch size.
        method: how to compute the recurrence, see ``schurfire.state_space_response``.
        stability_options: of the method, such as ``{"strength": 1.0, "epsilon": 1e-3}`` of ``"spectral-penalty"``.
        **kwargs: ``name``, ``dtype`` (float32 or float64), ``trainable``.

    Raises:
        InvalidInputError: an argument, or at build the shape of the inputs, is not as described; ``system`` is not
            stable; or the dtype is float64 where JAX computes in float32.

    >>> layer = StateSpace(4, 2, "modal", radius=0.8, seed=0)
    >>> layer(np.zeros((3, 50, 1), "float32")).shape
    (3, 50, 2)
    >>> layer.certify().is_stable
    True
    """

    def __init__(  # noqa: PLR0913 - Keras layers are configured by keywords
        self,
        state_size: int,
        output_size: int | None = None,
        stability: str = "schur-projected",
        region: Disc = UNIT_DISC,
        *,
        radius: float | None = None,
        seed: int | None = None,
        system: Any = None,
        known: Any = None,
        feedthrough: bool = True,
        learn_initial_state: bool = False,
        return_sequences: bool = True,
        return_state: bool = False,
        stateful: bool = False,
        method: str = "auto",
        stability_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        checks.require_precision(self)
        self.state_size = checks.size(state_size, "state_size")
        self.output_size = None if output_size is None else checks.size(output_size, "output_size")
        self.stability = stability
        self.region = checks.disc(region)
        self.radius = radius
        self.seed = seed
        self.feedthrough = feedthrough
        self.learn_initial_state = learn_initial_state
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.stateful = stateful
        self.method = method
        self.stability_options = dict(stability_options or {})
        self.supports_masking = True
        # On TensorFlow XLA takes 112 s to compile a training step of 'schur-projected', which then takes 64 ms, against
        # 11 s and 42 ms without it (n_x = 5, 4 sequences of 50 steps).
        self.supports_jit = keras.backend.backend() != "tensorflow"
        self._parametrisation: Parametrisation = parametrisation(
            stability, self.state_size, self.region, **self.stability_options
        )
        self._packing = Packing(self._parametrisation)
        self._known = KnownEntries.of(known)
        self._system = _Given(matrices_of(system))
        self.state: keras.Variable | None = None
        self._check_options()

    # --- building -----------------------------------------------------------------------------------------------------

    def build(self, sequences_shape: tuple, initial_state_shape: tuple | None = None) -> None:  # noqa: ARG002
        """Creates the weights for inputs of shape (batch, steps, n_u); batch and steps may be None."""
        shape = tuple(sequences_shape)
        if len(shape) != 3 or not shape[-1]:
            raise invalid("sequences", "of shape (batch, steps, inputs) with inputs known", f"shape {shape}")
        checks.require_float64_if_asked(self)
        self._inputs = shape[-1]
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: shape[-1]})
        start = self._start(shape[-1], self._system.matrices)
        self.A = self._add_weight("A", start["A"], Retraction(self._packing))
        self.B = self._add_weight("B", start["B"])
        self.C = self._add_weight("C", start["C"]) if "C" in start else None
        self.D = self._add_weight("D", start["D"]) if "D" in start else None
        self.x0 = self._add_weight("x0", np.zeros(self.state_size)) if self.learn_initial_state else None
        if self.stateful:
            self.state = self._add_state(shape[0])

    def set_system(self, system: Any) -> None:
        """Sets A, B, C, D of a built layer, with the same meaning as the argument ``system``."""
        self._require_built()
        matrices = matrices_of(system)
        if matrices is None:
            raise invalid("system", "a LinearSystem or matrices", "None")
        for name, value in self._start(self._inputs, matrices).items():
            getattr(self, name).assign(value)

    def reset_state(self) -> None:
        """A stateful layer starts from zero again."""
        if self.state is not None:
            self.state.assign(keras.ops.zeros_like(_tensor(self.state)))

    # --- computing ----------------------------------------------------------------------------------------------------

    def call(self, sequences: Array, initial_state: Any = None, mask: Array | None = None) -> Any:
        """The outputs; with ``return_state`` a list of them and the final state."""
        if not self.return_sequences and sequences.shape[1] == 0:
            raise invalid("sequences", "at least one step long", f"shape {tuple(sequences.shape)}")
        if not self._parametrisation.is_proven:
            self.add_loss(self.penalty())
        x0 = self._state_before(initial_state, sequences)
        y, x_end = respond(self._matrices(), sequences, x0, mask, self.method, self._parametrisation.form)
        if self.state is not None:
            self.state.assign(x_end)
        y = y if self.return_sequences else y[:, -1]
        return [y, x_end] if self.return_state else y

    def compute_output_shape(self, sequences_shape: tuple, initial_state_shape: tuple | None = None) -> Any:  # noqa: ARG002
        """Shape of what ``call`` returns."""
        batch, steps = sequences_shape[:2]
        size = self.state_size if self.output_size is None else self.output_size
        y = (batch, steps, size) if self.return_sequences else (batch, size)
        return [y, (batch, self.state_size)] if self.return_state else y

    def compute_mask(self, sequences: Array, previous_mask: Any = None) -> Any:  # noqa: ARG002
        """The mask of the inputs for outputs at every step, else none."""
        mask = previous_mask if self.return_sequences else None
        return [mask, None] if self.return_state else mask

    def penalty(self) -> Array:
        """What the method adds to the loss: 0, except for ``"spectral-penalty"``."""
        return self._parametrisation.penalty(self._state_weights())

    # --- the system ---------------------------------------------------------------------------------------------------

    def state_weights(self) -> dict[str, np.ndarray]:
        """The weights of A by the names of the method, such as T and Z for ``"schur-factored"``."""
        self._require_built()
        return {name: _numpy(w) for name, w in self._state_weights().items()}

    def state_matrix(self) -> np.ndarray:
        """The matrix that the recurrence runs on, (n_x, n_x); T for ``"schur-factored"``."""
        self._require_built()
        return _numpy(self._matrices().A)

    def certify(self) -> Certificate:
        """The verdict on ``state_matrix()``, with its evidence."""
        return certify(self.state_matrix(), self.region)

    def to_system(self, dt: float = 1.0) -> LinearSystem:
        """The exactly quasi-triangular system with the layer's input-output map and an exact proof.

        With the real Schur decomposition ``A = Z T Z^T`` of the matrix in use it is ``(T, Z^T B, C Z, D)``, C = I for a
        transparent layer; see ``LinearSystem.in_schur_coordinates`` for what rounding adds. Its state is ``Z^T x``.

        Args:
            dt: sampling time in seconds.

        Raises:
            InvalidInputError: the matrix is not stable, which only ``"spectral-penalty"`` and ``"none"`` allow.
        """
        self._require_built()
        A, B, C, D, _ = (None if M is None else _numpy(M) for M in self._matrices())
        if C is None:
            C = np.eye(self.state_size, dtype=self.variable_dtype)
        if D is None:
            D = np.zeros((len(C), self._inputs), self.variable_dtype)
        system = LinearSystem(A, B, C, D, dt, self.region)  # pyright: ignore[reportArgumentType]
        try:
            return system.in_schur_coordinates()
        except InvalidInputError as error:
            if self._parametrisation.is_proven:
                raise
            fix = (
                f"stability={self.stability!r} promises nothing. (a) Train with 'schur-projected' or another method "
                "that does; (b) project: schurfire.project_stable(layer.state_matrix(), layer.region), and set_system; "
                "(c) spectral-penalty: a larger strength or epsilon."
            )
            raise invalid("the state matrix", "proven stable", f"one that is {self.certify()}", fix) from error

    # --- saving -------------------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The arguments, as plain numbers and lists."""
        same = ("state_size", "output_size", "stability", "radius", "seed", "feedthrough", "learn_initial_state")
        same += ("return_sequences", "return_state", "stateful", "method")
        system = self._system.matrices
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in same},
            "region": checks.disc_config(self.region),
            "system": None if system is None else {name: M.tolist() for name, M in system.items()},
            "known": self._known.config(),
            "stability_options": dict(self.stability_options),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "StateSpace":
        """The layer that ``get_config`` describes."""
        return cls(**{**config, "region": Disc(**config["region"])})

    # --- details ------------------------------------------------------------------------------------------------------

    def _matrices(self) -> Matrices:
        """What the recurrence runs on: for a factored A ``T, Z^T B, C Z, D``, with C = I if there is none."""
        xp = keras_namespace()
        A, Z = in_use(self._parametrisation, self.A.trainable)(self._state_weights())
        B = self._known.hold("B", _tensor(self.B))
        C = None if self.C is None else self._known.hold("C", _tensor(self.C))
        D = None if self.D is None else self._known.hold("D", _tensor(self.D))
        if Z is not None:
            B, C = product(xp.swapaxes(Z, -1, -2), B), Z if C is None else product(C, Z)
        return Matrices(self._known.hold("A", A), B, C, D, Z)

    def _state_weights(self) -> dict[str, Array]:
        weights = self._packing.unpack(_tensor(self.A))
        return {name: self._known.hold(name, w) for name, w in weights.items()}

    def _state_before(self, initial_state: Any, u: Array) -> Array | None:
        if isinstance(initial_state, (list, tuple)):
            if len(initial_state) != 1:
                raise invalid("initial_state", "a tensor or a list of one", f"{len(initial_state)} of them")
            (initial_state,) = initial_state
        if initial_state is None and self.state is not None:
            initial_state = _tensor(self.state)
        if initial_state is not None:
            return keras.ops.convert_to_tensor(initial_state, dtype=self.compute_dtype)
        if self.x0 is None:
            return None
        xp = keras_namespace()
        return xp.broadcast_to(_tensor(self.x0), (xp.shape(u)[0], self.state_size))

    def _start(self, inputs: int, system: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:
        """Values for the variables A, B, C, D, as far as the layer has them."""
        sizes = Sizes(inputs, self.output_size, self.feedthrough)
        if system is None:
            radius = 0.9 * self.region.radius if self.radius is None else self.radius
            seed = random.randint(1, 10**9) if self.seed is None else self.seed  # as Keras' initialisers do
            weights, others = random_start(self._parametrisation, sizes, radius, seed, self.variable_dtype)
        else:
            weights, others = given_start(self._parametrisation, sizes, system, self.variable_dtype)
        weights = {name: self._known.fill(name, w) for name, w in weights.items()}
        return {"A": self._packing.pack(weights), **{name: self._known.fill(name, M) for name, M in others.items()}}

    def _add_weight(self, name: str, value: np.ndarray, constraint: Callable | None = None) -> keras.Variable:
        return self.add_weight(
            name=name,
            shape=value.shape,
            initializer=lambda _, dtype=None: keras.ops.convert_to_tensor(value, dtype=dtype),
            constraint=constraint,
        )

    def _add_state(self, batch: int | None) -> keras.Variable:
        if batch is None:
            fix = "Give the model a fixed batch: keras.Input(batch_shape=(batch, steps, inputs))."
            raise invalid("the batch size of a stateful layer", "known when it is built", "None", fix)
        return self.add_weight(name="state", shape=(batch, self.state_size), initializer="zeros", trainable=False)

    def _check_options(self) -> None:
        if self.stateful and self.learn_initial_state:
            raise invalid("learn_initial_state", "False for a stateful layer", "True")
        if self.output_size is None and {"C", "D"} & set(self._known.entries):
            raise invalid("known", "about A and B alone for a layer without output_size", sorted(self._known.entries))
        if not self.feedthrough and "D" in self._known.entries:
            raise invalid("known", "without 'D' for a layer with feedthrough=False", sorted(self._known.entries))
        A = self._known.matrix("A", (self.state_size, self.state_size))
        if "A" in self._known.entries and not self._parametrisation.honours(A):
            fix = "Use stability='none' or 'spectral-penalty', which keep any entry and prove nothing."
            raise invalid("known['A']", f"entries that {self.stability!r} can keep", A.tolist(), fix)

    def _require_built(self) -> None:
        if not self.built:
            fix = "Call it on data, or build it: layer.build((None, None, inputs))."
            raise invalid("the layer", "built", "one without weights", fix)


class _Given:
    """Matrices that Keras shall not track as if they were weights."""

    def __init__(self, matrices: dict[str, np.ndarray] | None) -> None:
        self.matrices = matrices


def _tensor(variable: keras.Variable) -> Array:
    return keras_namespace().convert_to_tensor(variable)


def _numpy(tensor: Array) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(tensor))
