import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.image import imread

import schurfire as sf
from schurfire.report.eigenvalues import check_picture, eigenvalue_figure, save_figure

GENERATOR = np.random.default_rng(5)
A = GENERATOR.standard_normal((6, 6))


def drawn(figure) -> dict[str, np.ndarray]:
    """The points of every labelled curve."""
    return {line.get_label(): line.get_xydata() @ [1, 1j] for line in figure.axes[0].get_lines()}


def test_shows_the_eigenvalues_and_says_what_is_proven():
    form = sf.project_stable(A)
    curves = drawn(eigenvalue_figure(A, form, 0.1 * A))
    np.testing.assert_allclose(curves["given matrix: not proven stable"], np.linalg.eigvals(A))
    exact = sf.metrics.spectrum_of_blocks(form.T)
    np.testing.assert_array_equal(curves["Schur pair (T, Z): stable, proven exactly, by its blocks"], exact)
    assert "plain array: stable, proven by a bound of its powers" in curves
    np.testing.assert_allclose(np.abs(curves["boundary of the region"]), 1.0)


def test_an_unstable_matrix_is_never_called_stable():
    triangular = np.array([[2.0, 1.0], [0.0, 0.1]])
    assert "given matrix: not stable" in drawn(eigenvalue_figure(triangular))
    assert "plain array: not proven stable" in drawn(eigenvalue_figure(0.1 * A, dense=9 * A))


@pytest.mark.parametrize("region", [sf.Disc(), sf.Disc(1e-6, 3.0), sf.Disc(1e6), sf.Disc(0.5, -2.0)])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_every_eigenvalue_is_inside_the_frame(region, scale):
    axes = eigenvalue_figure(scale * A, sf.project_stable(scale * A, region)).axes[0]
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert right - left == pytest.approx(top - bottom)
    for label, points in drawn(axes.figure).items():
        if label != "boundary of the region":
            assert left < points.real.min() <= points.real.max() < right
            assert bottom < points.imag.min() <= points.imag.max() < top


def test_a_wide_spread_is_drawn_on_logarithmic_axes():
    assert eigenvalue_figure(A).axes[0].get_xscale() == "linear"
    axes = eigenvalue_figure(1e4 * A, region=sf.Disc(1.0, 7.0)).axes[0]
    assert axes.get_xscale() == axes.get_yscale() == "symlog"
    assert axes.get_xlabel() == "real part - 7"
    np.testing.assert_allclose(np.abs(drawn(axes.figure)["boundary of the region"]), 1.0)
    assert len(axes.get_xticks()) <= 11


def test_half_plane():
    region = sf.HalfPlane(-0.5)
    figure = eigenvalue_figure(A, sf.project_stable(A, region))
    np.testing.assert_array_equal(drawn(figure)["boundary of the region"].real, [-0.5, -0.5])
    wide = np.diag([-1e6, -1.0, -2.0, 3.0, 1e5])
    assert eigenvalue_figure(wide, region=region).axes[0].get_xscale() == "symlog"


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("region", [sf.Disc(), sf.HalfPlane()])
def test_small_orders(tmp_path, n, region):
    zero = np.zeros((n, n))
    save_figure(eigenvalue_figure(zero, sf.project_stable(zero, region)), tmp_path / "a.png")


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_saves_by_suffix(tmp_path, suffix, start):
    path = tmp_path / f"a{suffix}"
    save_figure(eigenvalue_figure(A), path)
    assert path.read_bytes().startswith(start)
    assert os.listdir(tmp_path) == [path.name]


def test_nothing_is_cut_off(tmp_path):
    save_figure(eigenvalue_figure(A, sf.project_stable(A), title="Eigenvalues"), tmp_path / "a.png")
    picture = imread(tmp_path / "a.png")[..., :3]
    for edge in (picture[:4], picture[-4:], picture[:, :4], picture[:, -4:]):
        np.testing.assert_array_equal(edge, 1.0)


def test_a_failing_drawing_leaves_no_file(tmp_path, monkeypatch):
    figure = eigenvalue_figure(A)

    def interrupted(file, **_):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(figure, "savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_figure(figure, tmp_path / "a.png")
    assert not os.listdir(tmp_path)


def test_bad_input(tmp_path, monkeypatch):
    with pytest.raises(sf.InvalidInputError, match="square"):
        eigenvalue_figure(A[:2])
    with pytest.raises(sf.InvalidInputError, match=r"\.png, \.svg or \.pdf"):
        check_picture(tmp_path / "a.jpg")
    with pytest.raises(sf.InvalidInputError, match=r"\.png, \.svg or \.pdf"):
        save_figure(eigenvalue_figure(A), tmp_path / "a.jpg")
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with pytest.raises(sf.InvalidInputError, match=r"pip install 'schurfire\[plot\]'"):
        check_picture(tmp_path / "a.png")
    with pytest.raises(sf.InvalidInputError, match="Matplotlib"):
        eigenvalue_figure(A)


def test_matplotlib_is_imported_on_first_use_and_pyplot_never():
    code = """
import sys, numpy as np
import schurfire.report.eigenvalues as report
assert "matplotlib" not in sys.modules
report.eigenvalue_figure(np.eye(2))
assert "matplotlib" in sys.modules and "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
