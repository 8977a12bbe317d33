"""Property tests that try the same examples in every run."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None, max_examples=100)
settings.load_profile("repeatable")
