"""The five setups of the paper's synthetic benchmark, and their random systems and data.

Systems follow the generator of SIMBa's benchmark, ``A = V L V^-1`` with standard normal V, B, C and D, and have complex
pairs among their eigenvalues, as the paper's do. How many the paper does not say: here every pair is complex at even
odds. Inputs are binary, -1 or 1; every sequence starts at the state 0.
"""

from dataclasses import dataclass

import numpy as np

import schurfire as sf

SWITCHING_PROBABILITY = 0.1


@dataclass(frozen=True)
class Setup:
    """One column of the paper's table of setups.

    Attributes:
        name: of the setup.
        number: its place in the table, which enters the seeds.
        state_size: n_x.
        input_size: n_u.
        output_size: n_y.
        systems: how many random systems.
        sequences: in each of the three partitions.
        samples: of each sequence.
        noise: standard deviation of what is added to the outputs for training.
        radius: upper bound of the moduli of the systems' eigenvalues.
        epochs: at most.
        patience: epochs without a better validation loss before training stops; None for no early stopping.
        learning_rate: of AdamW at the start.
    """

    name: str
    number: int
    state_size: int
    input_size: int
    output_size: int
    systems: int
    sequences: int
    samples: int
    noise: float
    radius: float
    epochs: int
    patience: int | None
    learning_rate: float


SETUPS = {
    setup.name: setup
    for setup in (
        Setup("smaller", 0, 5, 3, 3, 100, 1, 64, 0.01, 0.99, 50_000, 10_000, 1e-3),
        Setup("small", 1, 5, 3, 3, 100, 1, 128, 0.01, 0.99, 50_000, 10_000, 1e-3),
        Setup("original", 2, 5, 3, 3, 50, 1, 300, 0.25, 0.99, 50_000, None, 1e-3),
        Setup("extended", 3, 5, 3, 3, 100, 1, 1024, 0.01, 0.95, 50_000, 10_000, 1e-3),
        Setup("large", 4, 10, 6, 6, 20, 8, 512, 0.01, 0.90, 100_000, 10_000, 1e-4),
    )
}


def draw(setup: Setup, index: int) -> tuple[sf.LinearSystem, sf.data.Sequences, sf.data.Sequences, sf.data.Sequences]:
    """The system with this index, and its data for training, validation and test.

    The same setup and index give the same numbers, whatever else is drawn. The system is in double precision, its
    responses are computed in double precision and rounded to float32; noise is on the outputs for training alone.
    """
    rng = np.random.default_rng([2026, setup.number, index])
    system = sf.data.random_stable_system(
        setup.state_size, setup.input_size, setup.output_size, radius=setup.radius, seed=rng
    )
    u = [
        sf.data.gbn(setup.samples, setup.input_size, SWITCHING_PROBABILITY, sequences=setup.sequences, seed=rng)
        for _ in range(3)
    ]
    y = [system.simulate(inputs) for inputs in u]
    y[0] = sf.data.add_noise(y[0], setup.noise, seed=rng)
    train, validation, test = (sf.data.Sequences(*pair).astype("float32") for pair in zip(u, y, strict=True))
    return system, train, validation, test
