"""How many epochs one compiled block has, and when fewer replicas deserve a program of their own.

Both follow from sizes, never from clocks, so that a training that is repeated or resumed runs the same programs.
"""

from dataclasses import dataclass

_OVERHEAD = 15e-6  # s per epoch, whatever the sizes: about 40 operations
_PER_PRODUCT = 1.2e-9  # s per sample, weight and replica; with the native recurrence an eighth of it
_LANES = 8  # replicas that cost as much as one, in SIMD registers
_BLOCK = 1.0  # s that a block should take by this estimate: Ctrl-C and checkpoints wait for its end
_LONGEST = 4096  # epochs of a block
_WORTH = 20.0  # s that a smaller program has to save by this estimate; to compile it takes 1 to 3 s
_BUCKETS = (1, 2, 4, 8, 16, 32, 48, 64)  # above: multiples of 64


@dataclass(frozen=True)
class Work:
    """What one epoch of one replica works on.

    Args:
        samples: of all sequences, training and validation.
        weights: of one replica.
    """

    samples: int
    weights: int

    def seconds(self, replicas: int) -> float:
        """A rough estimate of an epoch's time."""
        return _OVERHEAD + _PER_PRODUCT * self.samples * self.weights * max(replicas, _LANES)

    def block_length(self, replicas: int, epochs: int) -> int:
        """Epochs in one block: a power of 2, but not more than ``epochs``.

        >>> Work(samples=300, weights=64).block_length(replicas=50, epochs=50_000)
        512
        """
        fitting = max(1, min(_LONGEST, int(_BLOCK / self.seconds(replicas))))
        return min(1 << (fitting.bit_length() - 1), epochs)

    def bucket(self, active: int, replicas: int, epochs: int) -> int:
        """How many replicas to go on with when ``active`` of them still run, for at most ``epochs`` epochs.

        >>> Work(samples=300, weights=64).bucket(active=5, replicas=50, epochs=50_000)
        8
        >>> Work(samples=300, weights=64).bucket(active=5, replicas=50, epochs=500)
        50
        """
        smaller = next((b for b in _BUCKETS if b >= active), -(-active // 64) * 64)
        if 4 * smaller > 3 * replicas:
            return replicas
        saved = epochs * (self.seconds(replicas) - self.seconds(smaller))
        return smaller if saved > _WORTH else replicas
