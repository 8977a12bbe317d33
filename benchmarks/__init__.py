"""Every promise of the project as a command that prints the figure beside its target."""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")  # some modules here import Keras before schurfire can choose its backend
