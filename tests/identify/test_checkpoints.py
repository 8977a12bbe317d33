"""A training that was killed resumes to the bit-identical result."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest

from schurfire.errors import InvalidInputError
from schurfire.identify import EarlyStopping, TrainingOptions, runs, sizes, train
from tests.identify.models import LinearScan, recordings, same_result, two_layers

TRAINING, VALIDATION = recordings(seed=0), recordings(2, 30, seed=1)


def run(folder=None, **changes):
    stopping = EarlyStopping(6)
    options = TrainingOptions(**{"stopping": stopping, "seed": 1, "batch_size": 2, "checkpoint": folder, **changes})
    fast = keras.optimizers.SGD(0.1, momentum=0.9)
    return train(two_layers(), TRAINING, VALIDATION, epochs=60, replicas=6, optimizer=fast, options=options)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(sizes.Work, "block_length", lambda *_: 4)
    monkeypatch.setattr(sizes, "_WORTH", -1.0)


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.usefixtures("small_blocks")
def test_resumed_after_ctrl_c(tmp_path, monkeypatch, blocks):
    """After the second block some replicas have stopped, and the others go on in a smaller program."""
    whole, advanced, done = run(), runs.Trainer._advanced, []

    def interrupted(*args):
        if len(done) == blocks:
            raise KeyboardInterrupt
        done.append(None)
        return advanced(*args)

    with monkeypatch.context() as patch:
        patch.setattr(runs.Trainer, "_advanced", interrupted)
        assert set(run(tmp_path).status) == ({"interrupted"} if blocks == 1 else {"interrupted", "stopped"})
    same_result(run(tmp_path), whole)
    with monkeypatch.context() as patch:  # a training that is done is only read
        patch.setattr(runs.Trainer, "_advanced", None)
        same_result(run(tmp_path), whole)
    assert [path.name for path in tmp_path.iterdir()] == ["training.npz"]


_ROOT = Path(__file__).parents[2]
_SCRIPT = """
import sys
from schurfire.identify import runs, sizes
import tests.identify.test_checkpoints as here
runs._CHECKPOINT_SECONDS = 0.0
sizes._BLOCK = 1e-3
here.long_run(sys.argv[1])
"""


def long_run(folder=None):
    """Without a seed in the model, as most are: the checkpoint has the weights."""
    start = [[np.full(s, 0.1, "float32") for s in ((2, 2), (2, 2), (1, 2))]] * 2
    options = TrainingOptions(checkpoint=folder, start=start)
    return train(LinearScan(), TRAINING, VALIDATION, epochs=20_000, options=options)


def test_killed(tmp_path, monkeypatch):
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    process = subprocess.Popen([sys.executable, "-c", _SCRIPT, str(tmp_path)], env=environment, cwd=_ROOT)
    file = tmp_path / "training.npz"
    deadline = time.monotonic() + 60
    while not file.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    with np.load(file) as arrays:
        assert 0 < arrays["losses"].shape[-1] < 20_000
    monkeypatch.setattr(sizes, "_BLOCK", 1e-3)
    same_result(long_run(tmp_path), long_run())


CHANGES = {
    "seed": {"seed": 2},
    "stopping": {"stopping": EarlyStopping(4)},
    "batch_size": {"batch_size": 1},
    "loss": {"loss": "mae"},
}


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    run(tmp_path)
    before = (tmp_path / "training.npz").read_bytes()
    for name, change in CHANGES.items():
        with pytest.raises(InvalidInputError, match=f"with another {name}"):
            run(tmp_path, **change)
    options = TrainingOptions(checkpoint=tmp_path)
    with pytest.raises(InvalidInputError, match=r"epochs.*model.*optimizer.*training data"):
        train(LinearScan(), VALIDATION, TRAINING, epochs=10, options=options)
    assert (tmp_path / "training.npz").read_bytes() == before


def test_names_that_keras_counts_do_not_matter(tmp_path):
    first = run(tmp_path)
    two_layers()
    same_result(run(tmp_path), first)


def test_damaged_files(tmp_path):
    (tmp_path / "training.npz").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(InvalidInputError, match="written by train"):
        run(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match="a folder"):
        run(tmp_path / "file")
