"""The synthetic benchmark's setups, data and printed values."""

import dataclasses

import numpy as np
import pytest
from scipy.signal import dlsim

from experiments.paper_values import SYNTHETIC
from experiments.synthetic_setups import SETUPS, draw

METHODS = ("schur-projected", "schur-factored", "lmi", "spectral-penalty")


def test_the_setups_are_those_of_the_paper():
    rows = zip(*(dataclasses.astuple(setup)[2:] for setup in SETUPS.values()), strict=True)
    assert list(SETUPS) == ["smaller", "small", "original", "extended", "large"]
    assert list(rows) == [
        (5, 5, 5, 5, 10),
        (3, 3, 3, 3, 6),
        (3, 3, 3, 3, 6),
        (100, 100, 50, 100, 20),
        (1, 1, 1, 1, 8),
        (64, 128, 300, 1024, 512),
        (0.01, 0.01, 0.25, 0.01, 0.01),
        (0.99, 0.99, 0.99, 0.95, 0.90),
        (50_000, 50_000, 50_000, 50_000, 100_000),
        (10_000, 10_000, None, 10_000, 10_000),
        (1e-3, 1e-3, 1e-3, 1e-3, 1e-4),
    ]
    assert len({setup.number for setup in SETUPS.values()}) == 5
    assert 4 * sum(setup.systems for setup in SETUPS.values()) == 1480  # trainings of the paper's four methods


@pytest.mark.parametrize("setup", SETUPS.values(), ids=list(SETUPS))
def test_data_are_responses_of_the_system(setup):
    system, *partitions = draw(setup, 3)
    assert (system.state_size, system.input_size, system.output_size) == (
        setup.state_size, setup.input_size, setup.output_size,
    )  # fmt: skip
    assert system.certify().is_stable
    assert system.region.radius == setup.radius
    assert system.A.dtype == np.float64
    noise = []
    for data in partitions:
        assert data.lengths == (setup.samples,) * setup.sequences
        assert data.dtype == np.float32
        assert set(np.unique(data.stacked().u)) == {-1.0, 1.0}
        expected = [dlsim((system.A, system.B, system.C, system.D, 1), u)[1] for u in data.u]
        size = max(np.abs(y).max() for y in expected)
        noise.append(np.concatenate([y - e for y, e in zip(data.y, expected, strict=True)]))
        assert size > 1
    for error in noise[1:]:  # rounding to float32 and of the simulation: no noise on validation and test
        assert np.abs(error).max() < 1e-6 * size
    count = noise[0].size
    assert abs(noise[0].std() / setup.noise - 1) < 5 / np.sqrt(2 * count)
    assert abs(noise[0].mean()) < 5 * setup.noise / np.sqrt(count)


def test_partitions_have_inputs_of_their_own():
    setup = SETUPS["large"]
    _, *partitions = draw(setup, 0)
    u = np.concatenate([data.stacked().u for data in partitions])
    assert len(np.unique(u.swapaxes(1, 2).reshape(-1, setup.samples), axis=0)) == 3 * 8 * 6
    switches = np.mean(u[:, 1:] != u[:, :-1])
    draws = u[:, 1:].size
    assert abs(switches - 0.1) < 5 * np.sqrt(0.1 * 0.9 / draws)


def test_setup_and_index_decide_everything():
    first, again, other, elsewhere = (
        draw(SETUPS[name], index) for name, index in (("small", 4), ("small", 4), ("small", 5), ("smaller", 4))
    )
    assert np.array_equal(first[0].A, again[0].A)
    for a, b in zip(first[1:], again[1:], strict=True):
        assert np.array_equal(a.u[0], b.u[0])
        assert np.array_equal(a.y[0], b.y[0])
    assert not np.array_equal(first[0].A, other[0].A)
    assert not np.array_equal(first[0].A, elsewhere[0].A)


def test_systems_have_complex_pairs():
    spectra = [np.linalg.eigvals(draw(SETUPS["smaller"], i)[0].A) for i in range(100)]
    share = np.mean([np.count_nonzero(z.imag) / 4 for z in spectra])
    assert abs(share - 0.5) < 5 * np.sqrt(0.25 / 200)


def test_the_paper_s_synthetic_table_is_complete():
    assert set(SYNTHETIC) == {(setup, method) for setup in SETUPS for method in METHODS}
    for setup, best in {
        "smaller": 3.78e-4,
        "small": 5.00e-4,
        "original": 3.43e-5,
        "extended": 5.02e-4,
        "large": 4.09e-4,
    }.items():
        assert min(SYNTHETIC[setup, method].nmse.median for method in METHODS) == best
    for (setup, _), cell in SYNTHETIC.items():
        assert all(median > 0 <= half for median, half in cell)
        assert cell.epochs.median <= SETUPS[setup].epochs
        assert 4e-3 < cell.epoch_seconds.median < 3e-2
        assert (cell.epochs.half_iqr == 0) == (setup == "original")


def test_the_paper_s_training_takes_the_time_it_says():
    hours = sum(
        SETUPS[setup].systems * cell.epochs.median * cell.epoch_seconds.median / 3600
        for (setup, _), cell in SYNTHETIC.items()
    )
    assert hours == pytest.approx(66, abs=1)  # medians instead of means
