"""Epochs of SIMBa's own ``fit``, in its stable form; runs where simbapy is installed."""

import functools
from typing import Any

import numpy as np
from simba.model import Simba
from simba.parameters import base_parameters

from benchmarks.peers import serve

_EPOCHS = 4  # in one run


def model(state_size: int, channels: int, sequences: int) -> Any:
    """SIMBa's model with the linear matrix inequality, without what the engine's epoch does not do either."""
    options = {
        "input_output": True,
        "id_D": True,
        "learn_x0": False,
        "init_from_matlab_or_ls": False,
        "batch_size": sequences,
        "dropout": 0.0,
        "max_epochs": _EPOCHS,
        "return_best": False,
        "verbose": 0,
        "device": "cpu",
    }
    return Simba(state_size, channels, channels, parameters={**base_parameters, **options})


@functools.cache
def _prepared(state_size: int, channels: int, samples: int, sequences: int) -> tuple[Any, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    shape = (sequences, samples, channels)
    data = {name: rng.standard_normal(shape) for name in ("U", "Y", "U_val", "Y_val")}
    start = np.zeros((sequences, 1, state_size))
    return model(state_size, channels, sequences), {**data, "x0": start, "x0_val": start}


def answer(**sizes: int) -> float:
    """The least time of one epoch, training and validation, among a few, in seconds, by the package's own clock."""
    simba, data = _prepared(**sizes)
    simba.times = []
    simba.fit(**data)
    return float(np.diff(simba.times).min())


if __name__ == "__main__":
    serve(answer)
