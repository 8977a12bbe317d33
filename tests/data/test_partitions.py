"""Training, validation and test data: nothing lost, nothing twice, nothing empty."""

import numpy as np
import pytest

from schurfire.data import Partitions, Sequences
from schurfire.errors import InvalidInputError


def counting(*lengths, dtype="float64"):
    """Recordings whose values are all different."""
    u = [(1000.0 * i + np.arange(n))[:, None].astype(dtype) for i, n in enumerate(lengths)]
    return Sequences(u, [-x for x in u], dt=0.1, input_names=("a",), output_names=("b",))


def values(part):
    return [x.ravel().tolist() for x in part.u]


def test_cut_in_time():
    data = counting(10, 5)
    parts = data.split(0.6, 0.2, 0.2)
    assert parts.touching
    for i in range(2):
        rejoined = [x for part in (parts.train, parts.validation, parts.test) for x in values(part)[i]]
        assert rejoined == values(data)[i]
    assert [part.lengths for part in (parts.train, parts.validation, parts.test)] == [(6, 3), (2, 1), (2, 1)]
    for part in (parts.train, parts.validation, parts.test):
        assert (part.dt, part.input_names, part.output_names) == (0.1, ("a",), ("b",))
        assert all(np.array_equal(y, -u) for u, y in zip(part.u, part.y, strict=True))


def test_the_default_is_six_two_two():
    parts = counting(100).split()
    assert (parts.train.samples, parts.validation.samples, parts.test.samples) == (60, 20, 20)


@pytest.mark.parametrize("test", [None, 0, 0.0])
def test_without_a_test_partition(test):
    parts = counting(7, 9).split(0.5, 0.5, test)
    assert parts.test is None
    assert parts.touching
    assert (parts.train.samples + parts.validation.samples) == 16
    assert counting(7, 9).split(1, 1, test, by="sequence").test is None


def test_cut_at_sample_counts():
    parts = counting(10, 8).split(4, 3, 1)
    assert [part.lengths for part in (parts.train, parts.validation, parts.test)] == [(4, 4), (3, 3), (1, 1)]
    assert values(parts.test) == [[7.0], [1007.0]]
    assert parts.touching


def test_whole_sequences():
    data = counting(3, 4, 5, 6, 7)
    parts = data.split(0.6, 0.2, 0.2, by="sequence")
    assert not parts.touching
    assert [part.lengths for part in (parts.train, parts.validation, parts.test)] == [(3, 4, 5), (6,), (7,)]
    parts = data.split(1, np.int64(2), 1, by="sequence")
    assert [part.lengths for part in (parts.train, parts.validation, parts.test)] == [(3,), (4, 5), (6,)]


def test_every_length_is_cut_without_loss():
    for n in range(3, 60):
        parts = counting(n).split(0.4, 0.3, 0.3)
        lengths = [part.samples for part in (parts.train, parts.validation, parts.test)]
        assert sum(lengths) == n
        assert np.abs(np.array(lengths) - n * np.array([0.4, 0.3, 0.3])).max() <= 1


@pytest.mark.parametrize(
    ("amounts", "by", "message"),
    [
        ((0.6, 0.2, 0.3), "time", "the shares to be summing to 1, received train=0.6 and validation=0.2 and test=0.3"),
        ((0.6, 0.2, None), "time", "the shares to be summing to 1"),
        ((6, 0.2, 0.2), "time", "all shares .* or all counts"),
        ((6, 2, 0.2), "time", "all shares .* or all counts"),
        ((True, 2, 1), "time", "all shares .* or all counts"),
        ((np.nan, 0.5, 0.5), "time", "all shares .* or all counts"),
        (("a", 0.5, 0.5), "time", "all shares .* or all counts"),
        ((0, 4, 4), "time", "train to be positive, received 0"),
        ((1.2, -0.2, None), "time", "validation to be positive, received -0.2"),
        ((6, 3, 2), "time", "at most 10 samples of sequence 0 in all, received 11"),
        ((4, 1, 1), "time", "at most 5 samples of sequence 1 in all, received 6"),
        ((0.75, 0.125, 0.125), "time", "validation to be at least one of the 5 samples of sequence 1"),
        ((0.5, 0.4, 0.1), "sequence", "test to be at least one of the 2 sequences, received an empty partition"),
        ((1, 1, 1), "sequence", "at most 2 sequences in all, received 3"),
        ((0.6, 0.2, 0.2), "samples", 'by to be "time" or "sequence"'),
    ],
)
def test_bad_splits(amounts, by, message):
    with pytest.raises(InvalidInputError, match=message):
        counting(10, 5).split(*amounts, by=by)


def test_partitions_of_ones_own():
    a, b = counting(10), counting(4, 4)
    parts = Partitions(a, b)
    assert (parts.train, parts.validation, parts.test, parts.touching) == (a, b, None, False)
    with pytest.raises(InvalidInputError, match="as many sequences, received 1 in train, 2 in validation"):
        Partitions(a, b, touching=True)
    with pytest.raises(InvalidInputError, match="test to be of the same dtype as train"):
        Partitions(a, b, counting(3, dtype="float32"))
    with pytest.raises(InvalidInputError, match="validation to be of the same input_names"):
        Partitions(a, Sequences(np.ones((3, 1)), np.ones((3, 1)), 0.1))
    with pytest.raises(InvalidInputError, match="validation to be a Sequences, received NoneType"):
        Partitions(a, None)
