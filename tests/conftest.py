"""Property tests that try the same examples in every run, and a backend for tests that import Keras first."""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None, max_examples=100)
os.environ.setdefault("KERAS_BACKEND", "jax")
settings.load_profile("repeatable")
