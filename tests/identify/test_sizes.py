"""Lengths of blocks and widths of programs."""

import pytest

from schurfire.identify.sizes import Work


def test_blocks():
    work = Work(samples=600, weights=60)
    lengths = [work.block_length(replicas, 10**6) for replicas in (1, 8, 16, 50, 400, 10**7)]
    assert lengths == sorted(lengths, reverse=True)
    assert all(length & (length - 1) == 0 for length in lengths)
    assert lengths[-1] == 1
    assert work.block_length(1, 100) == 100


@pytest.mark.parametrize("active", [1, 3, 30, 47, 48, 65, 150, 300])
def test_buckets(active):
    work = Work(samples=10_000, weights=60)
    size = work.bucket(active, 400, 10**5)
    assert active <= size < 2 * active + 64
    assert work.bucket(active, size, 10**5) == size
    assert work.bucket(active, 400, 1) == 400


def test_nearly_full_programs_stay():
    assert Work(10_000, 60).bucket(49, 64, 10**6) == 64
    assert Work(10_000, 60).bucket(48, 64, 10**6) == 48
