"""Keras layers, constraints and regularisers; importing this room loads Keras, with an installed backend."""

from schurfire.namespaces import keras_namespace

keras_namespace()  # before the first import of Keras: chooses an installed backend, unless the user has chosen one

from schurfire.layers import constraints, regularizers  # noqa: E402
from schurfire.layers.state_space import StateSpace  # noqa: E402

__all__ = ["StateSpace", "constraints", "regularizers"]
