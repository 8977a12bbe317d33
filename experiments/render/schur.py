"""The table and the four figures of the real Schur decomposition."""

from experiments.paper_values import SCHUR
from experiments.render.style import BLUE, ORANGE
from experiments.render.sweeps import Line, Quantity, Sweep

SWEEP = Sweep(
    title="Real Schur decomposition",
    notes="""\
- *built-in* is LAPACK through JAX, *portable* the Hessenberg reduction and Francis iteration in array operations.
- Matrices have independent standard normal entries, as in the paper.""",
    lines=(Line("built-in", BLUE), Line("portable", ORANGE, marker="s")),
    quantities=(
        Quantity("seconds", "time", "time of one decomposition [s]"),
        Quantity("reconstruction", "reconstruction", "squared reconstruction error, relative (NSFE)"),
        Quantity("orthogonality", "orthogonality", "squared orthogonality error, relative (NSFE)"),
        Quantity("spectral", "spectral", "squared distance of the eigenvalues, relative (NSSR)"),
    ),
    statements=SCHUR,
)
