"""Compiled blocks of the tests go to a directory of their own."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _cache_home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
