"""Invented names that look right for their type, and which of them belong to which split.

An invented word is a row of open syllables closed by one consonant, so that two codes never give
the same word. **The rule of the splits**: every invented word of a training world begins with one
of ``b c d g k l p s``, every one of a test world with one of ``f h j m n r t v w z``. So the splits
share no invented word and no name, whatever their seeds and sizes. Only the words of the schema's
forms ("University of", "Prize") are common to both.
"""

from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Literal

import numpy as np

__all__ = ["INITIALS", "MAX_WORDS", "Names", "WorldSplit"]

WorldSplit = Literal["train", "test"]

INITIALS = {"train": "bcdgklps", "test": "fhjmnrtvwz"}
_FIRST = {
    "train": "b bl br c cr d dr g gl gr k kl l p pr s sk st".split(),
    "test": "f fl fr h j m n r t th tr v w z fj mj nj tj".split(),
}
_ONSETS = "b br d dr f fl g gr h j k l m n p r s st t th tr v w z".split()
_VOWELS = "aeiou"
_CODAS = "nrlm"
_INNER = [onset + vowel for onset in _ONSETS for vowel in _VOWELS]
_STARTS = len(_FIRST["train"]) * len(_VOWELS)
_GIVEN = _STARTS * len(_INNER)
MAX_WORDS = _STARTS * len(_INNER) ** 2 * len(_CODAS)


@dataclass(frozen=True, slots=True)
class Names:
    """Gives each number its own invented word, and a given name that others may share.

    Numbers go through a permutation ``(multiplier * number + shift) mod size``, so no word
    comes twice.

    Attributes:
        split: Which initials are used.
        word_code: Multiplier and shift of the words.
        given_code: Multiplier and shift of the given names.
    """

    split: WorldSplit
    word_code: tuple[int, int]
    given_code: tuple[int, int]

    @classmethod
    def draw(cls, split: WorldSplit, rng: np.random.Generator) -> "Names":
        """Draw the two permutations."""
        return cls(split, _draw_permutation(MAX_WORDS, rng), _draw_permutation(_GIVEN, rng))

    def name(self, form: str, number: int) -> str:
        """Return the name of this form that only this number has."""
        word = self._word(number)
        if "{g}" in form:
            form = form.replace("{g}", self._given(number))
        return form.replace("{w}", word)

    def _word(self, number: int) -> str:
        multiplier, shift = self.word_code
        code, coda = divmod((multiplier * number + shift) % MAX_WORDS, len(_CODAS))
        code, last = divmod(code, len(_INNER))
        start, middle = divmod(code, len(_INNER))
        return _starts(self.split)[start] + _INNER[middle] + _INNER[last] + _CODAS[coda]

    def _given(self, number: int) -> str:
        multiplier, shift = self.given_code
        start, last = divmod((multiplier * number + shift) % _GIVEN, len(_INNER))
        return _starts(self.split)[start] + _INNER[last]


@cache
def _starts(split: WorldSplit) -> list[str]:
    return [(onset + vowel).capitalize() for onset in _FIRST[split] for vowel in _VOWELS]


def _draw_permutation(size: int, rng: np.random.Generator) -> tuple[int, int]:
    multiplier = int(rng.integers(size // 4, size))
    while gcd(multiplier, size) != 1:
        multiplier += 1
    return multiplier % size, int(rng.integers(size))
