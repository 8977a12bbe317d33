"""Data: recordings and their partitions, scaling, test signals, random stable systems."""

from schurfire.data.partitions import Partitions
from schurfire.data.random_systems import random_stable_system, random_stable_systems
from schurfire.data.scaling import Scaling
from schurfire.data.sequences import Sequences, Stacked
from schurfire.data.signals import add_noise, crest_factor, gbn, multisine, schroeder_multisine

__all__ = [
    "Partitions",
    "Scaling",
    "Sequences",
    "Stacked",
    "add_noise",
    "crest_factor",
    "gbn",
    "multisine",
    "random_stable_system",
    "random_stable_systems",
    "schroeder_multisine",
]
