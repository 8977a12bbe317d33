"""``schurfire demo``: the main job, on a matrix made on the spot."""

from pathlib import Path
from typing import TYPE_CHECKING

from schurfire.cli.nearest import describe_distance
from schurfire.cli.terminal import search, show, show_row
from schurfire.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np

    from schurfire.stability.schur_form import SchurForm

EXAMPLES = """Examples:

    schurfire demo
    schurfire demo --out first-steps
"""

_ORDER, _SEED, _RADIUS = 8, 7, 0.9


def command(*, out: Path = Path("demo")) -> int:
    """Make a small unstable matrix, find its nearest stable one with proof, and draw the eigenvalues.

    Args:
        out: The folder to write to; it is made if it is missing.
    """
    import numpy as np

    import schurfire as sf
    from schurfire.storage.matrices import write_matrix, write_pair

    _make_folder(out)
    A = np.random.default_rng(_SEED).standard_normal((_ORDER, _ORDER))
    write_matrix(out / "unstable.npy", A)
    show((f"A random {_ORDER} x {_ORDER} matrix A", "bold"))
    show(f"Repeated as x <- A x, it makes a state of length 1 grow to {_length_after(100, A):.0e} in 100 steps.")
    show()

    region = sf.Disc(_RADIUS)
    pair = search("searching for the nearest stable matrix", lambda: sf.nearest_stable(A, region, n_starts=4))
    array = search("searching for the nearest provable array", lambda: sf.nearest_provable(A, region, optimum=pair))
    write_matrix(out / "nearest.npy", array.matrix)
    write_pair(out / "nearest.npz", pair.form)

    show((f"The nearest matrix X found with all eigenvalues in |z| < {_RADIUS}", "bold"))
    show_row("proof", (str(array.certificate), "green"))
    show_row("distance", f"{describe_distance(array.distance, A)} from A")
    length = _length_after(1000, array.matrix)
    show(f"Repeated as x <- X x, it takes the same state to length {length:.0e} in 1000 steps.")
    show("The proof is about the numbers in the file, with all rounding errors accounted for.")
    show()

    show(("The nearest Schur pair (T, Z) found", "bold"))
    show_row("proof", (str(pair.form.certify()), "green"))
    show_row("distance", f"{describe_distance(float(pair.distance), A)} from A")
    show("Proven in exact arithmetic, without any margin against rounding: use it where two factors will do.")
    show()

    show_row("written", f"{out / 'unstable.npy'}, {out / 'nearest.npy'}, {out / 'nearest.npz'}")
    show_row("picture", _draw(A, pair.form, array.matrix, out / "eigenvalues.png"))
    show_row("next", f"schurfire certify {out / 'nearest.npz'} --blocks")
    return 0


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InvalidInputError(f"Expected the output to be a folder, received the file {out}.") from None


def _length_after(steps: int, A: "np.ndarray") -> float:
    """How long a state of length 1 is after some steps; the steps are a picture, not the proof."""
    import numpy as np

    x = np.ones(len(A)) / np.sqrt(len(A))
    for _ in range(steps):
        x = A @ x
    return float(np.linalg.norm(x))


def _draw(A: "np.ndarray", form: "SchurForm", X: "np.ndarray", path: Path) -> str:
    """Draws the picture if that is possible, and says where it is."""
    from schurfire.report.eigenvalues import eigenvalue_figure, require_matplotlib, save_figure

    try:
        require_matplotlib()
    except InvalidInputError as missing:
        return f"none. {missing}"
    title = f"A random matrix of order {len(A)} and the nearest stable ones found"
    save_figure(eigenvalue_figure(A, form, X, title=title), path)
    return str(path)
