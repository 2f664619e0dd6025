"""The facts of articles in plain words, and the paths along them, each worked out once."""

from collections.abc import Sequence
from functools import lru_cache

from .people import People
from .vocabulary import ATTRIBUTES

__all__ = ["Facts"]

_GENDERED = {
    "parent": ("father", "mother"),
    "child": ("son", "daughter"),
    "sibling": ("brother", "sister"),
    "married": ("husband", "wife"),
}
_KEPT = 20_000


class Facts:
    """Puts what articles state into words, and finds the way from fact to fact.

    Args:
        world: Whom the articles are about.
    """

    def __init__(self, world: People) -> None:
        self.world = world
        self.attribute = lru_cache(_KEPT)(self._attribute)
        self.relation = lru_cache(_KEPT)(self._relation)
        self.relations = lru_cache(_KEPT)(self._relations)
        self.path = lru_cache(_KEPT)(self._path)

    def words(self, person: int, attributes: Sequence[str]) -> str:
        """Return what to search for, for someone known by attributes alone."""
        value = self.world.value
        return ", ".join(f"{ATTRIBUTES[name].name} {value(person, name)}" for name in attributes)

    def _attribute(self, person: int, name: str) -> str:
        """Put an attribute into words."""
        value = self.world.value(person, name)
        return f"The {ATTRIBUTES[name].name} of {self.world.name(person)} is {value}."

    def _relation(self, person: int, step: str, is_female: bool) -> str:
        """Put a stated relation to all of one gender into words, as the article has it."""
        name = self.world.name
        others = self.world.kinship.stated(step, person)
        label = "friend"
        if step in _GENDERED:
            label = _GENDERED[step][is_female]
            others = [other for other in others if self.world.is_female(other) == is_female]
        if len(others) == 1:
            return f"The {label} of {name(person)} is {name(others[0])}."
        return f"The {label}s of {name(person)} are {', '.join(map(name, others))}."

    def _relations(self, person: int, step: str) -> tuple[list[int], list[str]]:
        """Return all who stand in a stated relation to a person, and that in words."""
        others = self.world.kinship.stated(step, person)
        genders = sorted({self.world.is_female(other) for other in others}, reverse=True)
        told = dict.fromkeys(self.relation(person, step, gender) for gender in genders)
        return others, list(told)

    def _path(self, source: int, steps: tuple[str, ...], target: int) -> list[int]:
        """Return the people passed along stated relations, source and target included."""
        return [source, target] if len(steps) == 1 else self._search(source, steps, target)

    def _search(self, source: int, steps: tuple[str, ...], target: int) -> list[int]:
        """Return the path whose people have the lowest numbers; empty if there is none."""
        if len(steps) == 1:
            there = self.world.kinship.stated(steps[0], source)
            return [source, target] if target in there else []
        for middle in self.world.kinship.stated(steps[0], source):
            rest = [] if middle == target else self._search(middle, steps[1:], target)
            if rest and source not in rest:
                return [source, *rest]
        return []
