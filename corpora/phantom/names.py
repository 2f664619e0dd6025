"""Full names from a grammar of syllables: every person has one, and no two the same.

A word is a row of open syllables (an onset and one vowel) closed by one consonant, so it can be
cut in only one way and two codes never give the same word. Given names have two syllables,
surnames three. The closing consonant tells the split: every given name and every surname of a
training world ends in one of ``nkvx``, every one of a test world in one of ``mtzg``. So the two
splits share no given name, no surname and no full name, whatever their seeds.
"""

from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Literal

import numpy as np

__all__ = ["GIVEN_NAMES", "SURNAMES", "Names", "WorldSplit"]

WorldSplit = Literal["train", "test"]

_ONSETS = "b bl br d dr f fl g gl gr h j k kl l m n p pl r s sk st t th tr v w y z"
_SYLLABLES = [onset + vowel for onset in _ONSETS.split(" ") for vowel in "aeiou"]
_CODAS = {"train": "nkvx", "test": "mtzg"}
_PAIRS = len(_SYLLABLES) ** 2
_ENDINGS = len(_SYLLABLES) * 4

GIVEN_NAMES = _PAIRS * 4
SURNAMES = _PAIRS * _ENDINGS


@dataclass(frozen=True)
class Names:
    """Gives the name of a person from two numbers: the person's own and the lineage's.

    Both numbers go through a permutation ``(multiplier * number + shift) mod size``. People of
    one lineage have numbers closer than ``GIVEN_NAMES``, so their given names differ; people of
    different lineages differ in their surname.

    Attributes:
        split: Which closing consonants are used.
        given: Multiplier and shift of the given names.
        surname: Multiplier and shift of the surnames.
    """

    split: WorldSplit
    given: tuple[int, int]
    surname: tuple[int, int]

    @classmethod
    def draw(cls, split: WorldSplit, rng: np.random.Generator) -> "Names":
        """Draw the two permutations."""
        return cls(split, _draw_permutation(GIVEN_NAMES, rng), _draw_permutation(SURNAMES, rng))

    def full(self, person: int, lineage: int) -> str:
        """Return given name and surname."""
        pair, ending = divmod((self.surname[0] * lineage + self.surname[1]) % SURNAMES, _ENDINGS)
        first, coda = divmod((self.given[0] * person + self.given[1]) % GIVEN_NAMES, 4)
        beginnings = _beginnings()
        surname = beginnings[pair] + _endings(self.split)[ending]
        return f"{beginnings[first]}{_CODAS[self.split][coda]} {surname}"


@cache
def _beginnings() -> list[str]:
    return [first.capitalize() + second for first in _SYLLABLES for second in _SYLLABLES]


@cache
def _endings(split: WorldSplit) -> list[str]:
    return [syllable + coda for syllable in _SYLLABLES for coda in _CODAS[split]]


def _draw_permutation(size: int, rng: np.random.Generator) -> tuple[int, int]:
    multiplier = int(rng.integers(size // 4, size))
    while gcd(multiplier, size) != 1:
        multiplier += 1
    return multiplier % size, int(rng.integers(size))
