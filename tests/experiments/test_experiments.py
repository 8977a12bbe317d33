"""Every experiment in small: its command, its rows, its table beside the paper's, and a second rendering."""

import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from experiments.__main__ import EXPERIMENTS, main
from experiments.matrices import CASES, case_matrix
from experiments.paper_values import PROJECTION
from experiments.projection import METHODS
from experiments.render.markdown import number
from experiments.timing import average_time

PROVENANCE = {"revision", "started", "python", "versions", "device", "threads", "dtype", "seed", "wall_s"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a small experiment once, and returns its folder, rows and table."""
    done = {}

    def run_once(name):
        if name not in done:
            out = tmp_path_factory.mktemp("results")
            main(name, smoke=True, out=out)
            folder = out / name
            table = (folder / "table.md").read_text()
            done[name] = SimpleNamespace(folder=folder, rows=pl.read_parquet(folder / "rows.parquet"), table=table)
        return done[name]

    return run_once


def table_rows(text):
    """The cells of all table rows that hold numbers."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| :")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_row_says_where_it_comes_from(name, run):
    rows = run(name).rows
    assert set(rows.columns) >= PROVENANCE
    assert rows.select(PROVENANCE).null_count().sum_horizontal().item() == 0
    assert re.fullmatch(r"[0-9a-f]{12}\+?|unknown", rows["revision"][0])
    assert rows["wall_s"].min() > 0


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("projection", {"eigenvalues", "eigenvalues_recomposed"}),
        ("orthogonal", {"time", "distance", "orthogonality"}),
        ("schur", {"time", "reconstruction", "orthogonality", "spectral"}),
    ],
)
def test_a_folder_holds_rows_table_and_figures_and_nothing_else(name, figures, run):
    files = {path.name for path in run(name).folder.iterdir()}
    assert files == {"rows.parquet", "table.md", *(f"{figure}.png" for figure in figures)}
    assert all((run(name).folder / f"{figure}.png").read_bytes().startswith(b"\x89PNG") for figure in figures)
    assert "nan" not in run(name).table


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_rendering_again_computes_nothing_and_changes_nothing(name, run, monkeypatch):
    result = run(name)
    before = {path.name: path.read_bytes() for path in result.folder.iterdir()}
    refused = EXPERIMENTS[name]._replace(compute=lambda *_: pytest.fail("rendering computes"))
    monkeypatch.setitem(EXPERIMENTS, name, refused)
    main(name, out=result.folder.parent, render_only=True)
    assert {path.name: path.read_bytes() for path in result.folder.iterdir()} == before


def test_projection_has_a_row_for_every_case_size_method_and_reading(run):
    rows = run("projection").rows
    sizes = EXPERIMENTS["projection"].smoke.sizes
    readings = {"reference": 1, "truncated": 3, "optimal": 3, "provable": 1}
    assert set(readings) == set(METHODS)
    assert len(rows) == len(CASES) * len(sizes) * sum(readings.values())
    for method, count in readings.items():
        assert len(rows.filter(method=method)) == len(CASES) * len(sizes) * count
    shown = [row for row in table_rows(run("projection").table) if row[1] in METHODS]
    assert len(shown) == len(CASES) * len(sizes) * 3


def test_projection_tells_the_pair_from_the_array(run):
    rows = run("projection").rows
    pairs = rows.filter(reading="pair")
    assert pairs["proven"].all()
    assert pairs["msvr"].max() < 1e-30
    arrays = rows.filter(reading="dense")
    assert arrays["proven"].all()
    for key in ("truncated", "optimal"):
        assert rows.filter(method=key, reading="recomposed")["nsfe"].to_list() == pytest.approx(
            pairs.filter(method=key)["nsfe"].to_list()
        )


def test_the_optimum_is_never_worse_than_the_truncated_projection(run):
    by_method = run("projection").rows.filter(reading="pair").sort("case", "n")
    optimal, truncated = (by_method.filter(method=m)["nsfe"] for m in ("optimal", "truncated"))
    assert (optimal <= truncated).all()


def test_sweeps_have_a_row_for_every_size_sample_and_method(run):
    for name, methods in (("orthogonal", 11), ("schur", 2)):
        plan = EXPERIMENTS[name].smoke
        rows = run(name).rows
        assert len(rows) == len(plan.sizes) * plan.samples * methods
        assert len(rows.unique(["n", "sample", "method"])) == len(rows)
        assert (rows["seconds"] > 0).all()


def test_methods_for_the_orthogonal_factor_agree(run):
    rows = run("orthogonal").rows.filter(kind="nearly orthogonal")
    for (_n, _sample), group in rows.group_by("n", "sample"):
        distances = group["distance"].to_numpy()
        np.testing.assert_allclose(distances, distances[0], rtol=1e-2)
        assert group["orthogonality"].max() < 1e-11  # the square of float32's rounding errors


def test_both_schur_decompositions_are_right(run):
    rows = run("schur").rows
    assert rows.select("reconstruction", "orthogonality", "spectral").max().row(0) < (1e-11, 1e-11, 1e-10)


def test_the_cases_are_those_of_the_literature():
    grcar = case_matrix(2, 6, seed=0)
    expected = sum((np.eye(6, k=k) for k in range(4)), -np.eye(6, k=-1))
    assert np.array_equal(grcar, expected)
    assert np.array_equal(case_matrix(1, 3, seed=0), [[2.0] * 3] * 3)
    assert np.array_equal(case_matrix(3, 9, seed=5), case_matrix(3, 9, seed=5))
    assert not np.array_equal(case_matrix(3, 9, seed=5), case_matrix(3, 9, seed=6))
    assert case_matrix(4, 50, seed=0).min() >= 0
    assert case_matrix(4, 50, seed=0).max() <= 1


def test_the_paper_s_table_is_complete():
    assert set(PROJECTION) == {(c, n, m) for c in CASES for n in (10, 20, 50, 100) for m in ("optimal", "truncated")}
    for n in (10, 20, 50, 100):  # case 1, truncated: one eigenvalue 2 n becomes 1
        assert PROJECTION[1, n, "truncated"].nsfe == pytest.approx((1 - 1 / (2 * n)) ** 2, abs=6e-4)


@pytest.mark.parametrize(
    ("x", "text"), [(0.475, "4.75e-1"), (2.22, "2.22e0"), (67500.0, "6.75e4"), (0.0, "0"), (None, "-"), (np.nan, "-")]
)
def test_numbers_look_as_in_the_paper(x, text):
    assert number(x) == text


def test_a_time_is_an_average_of_runs_after_the_first():
    calls = []
    timed = average_time(lambda: calls.append(1) or len(calls), runs=5, budget=10.0)
    assert len(calls) == 7
    assert timed.runs == 5
    assert timed.result == 7
    calls.clear()
    assert average_time(lambda: calls.append(1), runs=5, budget=0.0).runs == 1
    assert len(calls) == 2
