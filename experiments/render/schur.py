"""The table and the four figures of the real Schur decomposition."""

from experiments.paper_values import SCHUR
from experiments.render.style import BLUE, ORANGE
from experiments.render.sweeps import Line, Quantity, Sweep

SWEEP = Sweep(
    title="Real Schur decomposition",
    notes="""\
- Compiled functions of JAX on CPU, float32, as in the paper: *built-in* is LAPACK through JAX, *portable* the Hessenberg
  reduction and Francis iteration in array operations. Errors are computed in float64 from the float32 factors.
- Medians of 5 samples and half their interquartile range; bands of the figures are the quartiles. A time is the average of
  up to 20 consecutive runs, fewer where they would take more than a second.
- Matrices have independent standard normal entries, as in the paper.
- The paper shows figures without numbers; the table below holds what its text says about them.""",
    lines=(Line("built-in", BLUE), Line("portable", ORANGE, marker="s")),
    quantities=(
        Quantity("seconds", "time", "time of one decomposition [s]"),
        Quantity("reconstruction", "reconstruction", "squared reconstruction error, relative (NSFE)"),
        Quantity("orthogonality", "orthogonality", "squared orthogonality error, relative (NSFE)"),
        Quantity("spectral", "spectral", "squared distance of the eigenvalues, relative (NSSR)"),
    ),
    statements=SCHUR,
)
