"""Models from data: compiled training of many replicas at once. Importing this room loads Keras and JAX."""

from schurfire.namespaces import keras_namespace

keras_namespace()  # before the first import of Keras: chooses an installed backend, unless the user has chosen one

from schurfire.identify.options import EarlyStopping, TrainingOptions  # noqa: E402
from schurfire.identify.results import Snapshot, TrainingResult  # noqa: E402
from schurfire.identify.training import train  # noqa: E402

__all__ = ["EarlyStopping", "Snapshot", "TrainingOptions", "TrainingResult", "train"]
