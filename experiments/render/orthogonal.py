"""The table and the three figures of the nearest orthogonal matrix."""

from experiments.paper_values import ORTHOGONAL
from experiments.render.style import BLUE, GREEN, GREY, LIGHT_GREY, ORANGE, PURPLE
from experiments.render.sweeps import Line, Quantity, Sweep

_COLOURS = {"svd": BLUE, "eigh": ORANGE, "sherif": PURPLE, "newton-schulz": GREEN}

SWEEP = Sweep(
    title="Nearest orthogonal matrix",
    notes="""\
- Matrices have independent standard normal entries, as in the paper; *nearly orthogonal* ones are orthogonal plus a
  random matrix of spectral norm 1e-3, about what one update of an optimizer does.
- Sherif's iteration stops where it has converged; the paper runs it n times.""",
    lines=(
        *(Line(name, colour) for name, colour in _COLOURS.items()),
        *(Line(f"{name}, nearly orthogonal", colour, "--", "s") for name, colour in _COLOURS.items()),
        Line("Schur decomposition", GREY, ":", "^"),
        Line("block projection", GREY, "-.", "v"),
        Line("spectral norm", LIGHT_GREY, "-", "D"),
    ),
    quantities=(
        Quantity("seconds", "time", "time of one projection [s]"),
        Quantity("distance", "distance", "squared distance, relative (NSFE)"),
        Quantity("orthogonality", "orthogonality", "squared orthogonality error, relative (NSFE)"),
    ),
    statements=ORTHOGONAL,
)
