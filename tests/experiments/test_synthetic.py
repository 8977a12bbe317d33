"""The synthetic benchmark in small: rows, table and figures, resuming, and what is computed besides training."""

import inspect
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import schurfire as sf
from experiments import synthetic, synthetic_training
from experiments.__main__ import run_synthetic
from experiments.paper_values import SYNTHETIC
from experiments.render import synthetic as render_synthetic
from experiments.results import load_rows, save_rows
from experiments.synthetic import FULL, SMOKE, Table, compute, core_shares
from experiments.synthetic_setups import SETUPS, draw
from experiments.synthetic_training import METHODS, Watch, attainable_nmse, history, train_cell
from schurfire.identify import sizes

FIGURES = {"history_smaller.png", "outputs_smaller.png"}
CELL = SMOKE[0]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One method of the small version by its command: folder, rows and table."""
    out = tmp_path_factory.mktemp("results")
    run_synthetic(setup=("smaller",), method=(CELL.method,), smoke=True, out=out)
    folder = out / "synthetic"
    return SimpleNamespace(folder=folder, rows=load_rows(folder), table=(folder / "table.md").read_text())


def test_cells_are_all_setups_and_methods():
    assert {(cell.setup, cell.method) for cell in FULL} == {(s, m) for s in SETUPS.values() for m in METHODS}
    assert len(FULL) == 30
    paper = [cell for cell in FULL if (cell.setup.name, cell.method) in SYNTHETIC]
    assert sum(cell.setup.systems for cell in paper) == 1480
    assert {cell.method for cell in SMOKE} == set(METHODS)
    assert {cell.setup.systems for cell in SMOKE} == {3}


def test_the_command_offers_all_of_them():
    offered = {name: parameter.default for name, parameter in inspect.signature(run_synthetic).parameters.items()}
    assert offered["setup"] == tuple(SETUPS)
    assert offered["method"] == METHODS
    with pytest.raises(SystemExit, match="no such"):
        run_synthetic(setup=("small",), smoke=True)


def test_a_folder_holds_rows_table_and_figures_and_nothing_else(done):
    assert {path.name for path in done.folder.iterdir()} == {"rows.parquet", "table.md", *FIGURES}
    assert all((done.folder / name).read_bytes().startswith(b"\x89PNG") for name in FIGURES)
    assert "nan" not in done.table
    for figure in FIGURES:
        assert f"({figure})" in done.table


def test_rows_say_where_they_come_from_and_what_was_found(done):
    rows = done.rows
    provenance = {"revision", "started", "python", "versions", "device", "threads", "dtype", "seed", "jobs", "settings"}
    assert rows.select(provenance).null_count().sum_horizontal().item() == 0
    assert rows["system"].to_list() == [0, 1, 2]
    assert rows["epochs"].to_list() == [60, 60, 60]
    assert rows["proven"].all()
    assert rows["checks"].min() >= 1
    assert rows["unproven_checks"].sum() == 0
    assert (rows["epoch_seconds"] > 0).all()
    assert (rows["nmse"].is_between(0.1, 1.5)).all()  # 60 epochs are a start
    assert sorted(rows["shown"].drop_nulls()) == ["best", "worst"]


def test_outputs_are_those_of_the_best_and_the_worst(done):
    order = done.rows.sort("nmse")["system"].to_list()
    for which, system in (("best", order[0]), ("worst", order[-1])):
        row = done.rows.filter(shown=which).row(0, named=True)
        assert row["system"] == system
        y = draw(CELL.setup, system)[3].stacked().y[0]
        np.testing.assert_array_equal(np.float32(row["y"]), y[:, row["channel"]])
        worst_channel = sf.metrics.nmse(np.array(row["y"]), np.array(row["y_hat"]))
        assert worst_channel >= row["nmse"]


def test_rendering_again_computes_nothing_and_changes_nothing(done, monkeypatch):
    before = {path.name: path.read_bytes() for path in done.folder.iterdir()}
    monkeypatch.setattr(synthetic, "compute", lambda *_: pytest.fail("rendering computes"))
    run_synthetic(out=done.folder.parent, render_only=True)
    assert {path.name: path.read_bytes() for path in done.folder.iterdir()} == before


def test_an_interrupted_training_goes_on_where_it_was(done, tmp_path, monkeypatch):
    monkeypatch.setattr(sizes.Work, "block_length", lambda *_: 20)
    seen = []

    def interrupt(epoch, going):
        seen.append((epoch, going))
        if epoch == 40 and len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_cell(CELL, tmp_path / "cell", interrupt)
    rows = train_cell(CELL, tmp_path / "cell", interrupt)
    assert seen[:2] == [(20, 3), (40, 3)]
    assert seen[-1][0] == 60
    same = ("nmse", "nssr", "best_epoch", "history")
    for row, expected in zip(rows, done.rows.iter_rows(named=True), strict=True):
        assert {name: row[name] for name in same} == {name: expected[name] for name in same}
        assert row["checks"] == 3


# --- the table in the folder -----------------------------------------------------------------------------------------


@pytest.fixture
def trained(monkeypatch):
    """Replaces the training of a cell by a row that says which it is; the list of the cells that were trained."""
    cells = []

    def pretend(cell, folder, report):
        cells.append(cell)
        folder.mkdir(parents=True, exist_ok=True)
        report(cell.setup.epochs, 0)
        return [{"setup": cell.setup.name, "method": cell.method, "settings": repr(cell), "run": len(cells)}]

    monkeypatch.setattr(synthetic, "train_cell", pretend)
    return cells


def test_what_is_up_to_date_is_not_trained_again(tmp_path, trained):
    console = Console(quiet=True)
    compute(SMOKE[:2], tmp_path, 1, console)
    compute(SMOKE[:3], tmp_path, 1, console)
    assert [cell.method for cell in trained] == list(METHODS[:3])
    longer = replace(SMOKE[1], setup=replace(SMOKE[1].setup, epochs=61))
    compute([longer], tmp_path, 1, console)
    assert trained[3:] == [longer]
    rows = load_rows(tmp_path)
    assert dict(zip(rows["method"], rows["run"], strict=True)) == {METHODS[0]: 1, METHODS[2]: 3, METHODS[1]: 4}
    save_rows([row | {"revision": "another"} for row in rows.to_dicts()], tmp_path)
    compute(SMOKE[:1], tmp_path, 1, console)
    assert trained[4:] == [SMOKE[0]]
    assert len(load_rows(tmp_path)) == 3


def test_finished_cells_survive_an_interruption(tmp_path, trained, monkeypatch):
    whole = synthetic.train_cell

    def interrupted(cell, folder, report):
        if len(trained) == 2:
            folder.mkdir(parents=True)
            raise KeyboardInterrupt
        return whole(cell, folder, report)

    with monkeypatch.context() as patch:
        patch.setattr(synthetic, "train_cell", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compute(SMOKE[:4], tmp_path, 1, Console(quiet=True))
    assert len(load_rows(tmp_path)) == 2
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1
    compute(SMOKE[:4], tmp_path, 1, Console(quiet=True))
    assert sorted(cell.method for cell in trained) == sorted(METHODS[:4])
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_cells_of_most_work_come_first(tmp_path):
    missing = Table(tmp_path, "here").missing(FULL)
    assert [cell.setup.name for cell in missing[::6]] == ["large", "extended", "original", "small", "smaller"]


def test_cores_are_dealt_out(monkeypatch):
    monkeypatch.setattr(synthetic.os, "sched_getaffinity", lambda _: {3, 1, 2, 0}, raising=False)
    assert core_shares(2) == [(0, 2), (1, 3)]
    assert core_shares(1) == [(0, 1, 2, 3)]
    assert core_shares(5) == [(0,), (1,), (2,), (3,), (0, 1, 2, 3)]


@pytest.mark.slow
def test_side_by_side_trains_the_same(done, tmp_path):
    compute(SMOKE[:2], tmp_path, 2, Console(quiet=True))
    rows = load_rows(tmp_path).filter(method=CELL.method)
    assert rows["jobs"].unique().to_list() == [2]
    np.testing.assert_allclose(rows["nmse"], done.rows["nmse"], rtol=1e-4)


# --- what is computed ------------------------------------------------------------------------------------------------


def test_checks_count_once(tmp_path, monkeypatch):
    """1.5 I is not stable; looks are due after epochs 20, 40 and 60."""
    monkeypatch.setattr(synthetic_training, "_matrix_in_use", lambda _, weights: weights[0])
    stable, unstable = ([np.eye(5, dtype="float32") * scale] for scale in (0.5, 1.5))

    def snapshot(epoch, weights):
        return SimpleNamespace(epoch=epoch, replicas=np.arange(len(weights)), weights=weights)

    seen = []
    watch = Watch(CELL, tmp_path, lambda *state: seen.append(state))
    watch(snapshot(10, [unstable, unstable]))
    watch(snapshot(20, [stable, unstable]))
    watch(snapshot(30, [unstable, unstable]))
    watch(snapshot(50, [stable, stable]))
    again = Watch(CELL, tmp_path, lambda *_: None)
    again(snapshot(50, [stable, stable]))
    again(snapshot(60, [unstable]))
    assert again.counts(0) == {"checks": 3, "unproven_checks": 1}
    assert again.counts(1) == {"checks": 2, "unproven_checks": 1}
    assert again.counts(2) == {"checks": 0, "unproven_checks": 0}
    assert seen == [(10, 2), (20, 2), (30, 2), (50, 2)]


def test_a_history_is_the_least_loss_so_far():
    loss = np.array([4.0, 8.0, 2.0, np.nan, 2.5, 0.04, 1.0, np.nan, np.nan], "float32")
    epochs, values = history(loss)
    assert epochs == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(values, np.log10([1, 1, 0.5, 0.5, 0.5, 0.01, 0.01]), atol=5e-4)
    epochs, values = history(np.linspace(1, 0.1, 5000))
    assert (len(epochs), epochs[0], epochs[-1]) == (100, 1, 5000)
    assert values[-1] == -1


def test_attainable_error_of_least_squares():
    """Without states the model is y = D u, whose least-squares estimate is efficient."""
    setup = replace(SETUPS["smaller"], state_size=0, noise=0.3, samples=200)
    rng = np.random.default_rng(0)
    u, test = rng.choice([-1.0, 1.0], (2, 200, 3))
    D = rng.standard_normal((3, 3))
    y = test @ D
    errors = [
        np.mean(
            sf.metrics.nmse(y, test @ np.linalg.lstsq(u, u @ D + 0.3 * rng.standard_normal((200, 3)), rcond=None)[0])
        )
        for _ in range(1000)
    ]
    assert attainable_nmse(setup, y[None]) == pytest.approx(np.mean(errors), rel=0.1)


# --- the table -------------------------------------------------------------------------------------------------------


def rows_of(method, nmse, **changes):
    same = {
        "setup": "smaller", "method": method, "nssr": 0.5, "attainable": 1e-6, "epochs": 20_000, "best_epoch": 10_000,
        "status": "stopped", "proven": True, "checks": 4, "unproven_checks": 0, "epoch_seconds": 2e-6, "train_s": 30.0,
        "shown": None, "revision": "abc", "started": "now", "python": "3", "versions": "1", "device": "one",
        "threads": "1", "jobs": 1, "dtype": "float32", "seed": 0,
        **changes,
    }  # fmt: skip
    return [same | {"system": i, "nmse": x} for i, x in enumerate(nmse)]


def test_the_table_has_medians_beside_the_paper_s():
    rows = rows_of("schur-projected", [1e-4, 4e-4, 2e-4]) + rows_of("schur-factored", [9e-4, 8e-4, 9e-4])
    rows += rows_of("modal", [1e-4, 1e-4, np.inf], unproven_checks=1, status="diverged")
    text = render_synthetic._document(pl.DataFrame(rows))
    lines = [line for line in text.splitlines() if "| NMSE |" in line and "smaller" in line]
    assert lines == [
        "| smaller | NMSE | 2.00e-4 ± 7.50e-5 / 5.91e-4 ± 5.31e-4 | 9.00e-4 ± 2.50e-5 / 7.14e-4 ± 8.32e-4 "
        "| **1.00e-4 ± inf** |"
    ]
    assert "1 of 2 cells have a median NMSE at or below the paper's" in text
    verdicts = {
        line.split("|")[2].strip(): line for line in text.splitlines() if re.match(r"\| smaller \| schur", line)
    }
    assert verdicts["schur-projected"].endswith("| 0 of 3 | at or below |")
    assert verdicts["schur-factored"].endswith("| 0 of 3 | above |")
    assert "| modal | 3 | 0 | 12 | 3 | 3 |" in text
    hours = 3 * 1.84e4 * 4.61e-3 / 3600
    assert f"| schur-projected | 3 | 30 | {hours:.1f} |" in text
    assert "| all | 9 | 90 |" in text


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"best_epoch": 49_000, "status": "finished"}, "above, still falling"),
        ({"best_epoch": 500}, "above, its best epoch is earlier than the paper's"),
        ({"attainable": 0.01}, "above, the paper's is below what is attainable here"),
    ],
)
def test_a_cell_above_the_paper_s_says_why(changes, verdict):
    text = render_synthetic._document(pl.DataFrame(rows_of("lmi", [0.1, 0.2, 0.3], **changes)))
    assert f"| {verdict} |" in text
