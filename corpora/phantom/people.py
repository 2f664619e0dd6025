"""The people of a world: families, friends, attributes and names as NumPy arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError, raise_unknown
from .families import grow_families
from .kinship import Adjacency, Kinship, sorted_unique
from .names import Names, WorldSplit
from .vocabulary import ATTRIBUTES

__all__ = ["MAX_PEOPLE", "People", "WorldSettings"]

MAX_PEOPLE = 10_000_000
_NAMES_KEPT = 10_000  # a family's articles name the same people again and again


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """All that decides who lives in a world.

    Attributes:
        people: How many, 1 to ``MAX_PEOPLE``.
        world_seed: Where every draw comes from, 0 or more.
        split: ``"train"`` or ``"test"``; worlds of the two share no name.
        friends: How many friends a person has on average, 0 to people - 1.
        family_size: The most people in a family, 1 to 100.
        family_depth: The most generations in a family, 2 to 10.
        branching: The most children of a couple, 1 to 10.

    Raises:
        ConfigurationError: A value is outside its range.
    """

    people: int
    world_seed: int = 0
    split: WorldSplit = "train"
    friends: float = 3.0
    family_size: int = 25
    family_depth: int = 5
    branching: int = 5

    def __post_init__(self) -> None:
        """Check every value."""
        _check_whole("people", self.people, 1, MAX_PEOPLE)
        _check_whole("world_seed", self.world_seed, 0, 2**63 - 1)
        _check_whole("family_size", self.family_size, 1, 100)
        _check_whole("family_depth", self.family_depth, 2, 10)
        _check_whole("branching", self.branching, 1, 10)
        if self.split not in ("train", "test"):
            raise_unknown("split", self.split, ("train", "test"))
        if isinstance(self.friends, bool) or not 0 <= self.friends <= min(self.people - 1, 1_000):
            raise ConfigurationError(
                "friends must be between 0 and people - 1 (at most 1000), "
                f"got {self.friends!r} for {self.people} people"
            )


def _check_whole(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigurationError(
            f"{name} must be a whole number from {low} to {high}, got {value!r}"
        )


@dataclass(frozen=True, eq=False)
class People:
    """Everyone in a world, named by position; some 70 bytes a person.

    Attributes:
        settings: What they were drawn from.
        kinship: Parents, friends and gender, and every relation from them.
        birth: Day of birth, as a proleptic Gregorian ordinal, shape (people,).
        lineage: The number behind the surname, shape (people,).
        family_starts: Position of the first person of each family, and the number of people.
        codes: For each attribute with a vocabulary, the place of the person's value in it.
        names: Gives the full names.
    """

    settings: WorldSettings
    kinship: Kinship
    birth: NDArray[np.int32]
    lineage: NDArray[np.int32]
    family_starts: NDArray[np.int64]
    codes: dict[str, NDArray[np.int16]]
    names: Names
    _by_value: dict[str, Adjacency] = field(default_factory=dict, repr=False)

    @classmethod
    def draw(cls, settings: WorldSettings) -> "People":
        """Draw a world's people. Each part has its own stream of the world's seed."""
        seed = np.random.SeedSequence([settings.world_seed, settings.split == "test"])
        family, friend, attribute, name = (np.random.default_rng(s) for s in seed.spawn(4))
        families = grow_families(
            family,
            settings.people,
            size=settings.family_size,
            depth=settings.family_depth,
            branching=settings.branching,
        )
        codes = {
            key: attribute.integers(len(entry.values), size=settings.people, dtype=np.int16)
            for key, entry in ATTRIBUTES.items()
            if entry.values
        }
        parents = np.concatenate([families.father, families.mother])
        children = np.tile(np.arange(settings.people), 2)[parents >= 0]
        return cls(
            settings=settings,
            kinship=Kinship(
                Adjacency.from_pairs(children, parents[parents >= 0], settings.people),
                _draw_friends(friend, settings.people, settings.friends),
                families.is_female,
            ),
            birth=families.birth,
            lineage=families.lineage,
            family_starts=families.starts,
            codes=codes,
            names=Names.draw(settings.split, name),
        )

    def __len__(self) -> int:
        """Return the number of people."""
        return len(self.birth)

    def value(self, person: int, attribute: str) -> str:
        """Return the text of one of a person's attributes; a date is ISO 8601."""
        if attribute == "birth":
            return date.fromordinal(self._birth_view[person]).isoformat()
        return ATTRIBUTES[attribute].values[self._code_views[attribute][person]]

    def key(self, person: int, attribute: str) -> int:
        """Return a number that is the same for two people whose attribute is the same."""
        return (
            self._birth_view[person]
            if attribute == "birth"
            else self._code_views[attribute][person]
        )

    def keys(self, attribute: str) -> NDArray[np.int16] | NDArray[np.int32]:
        """Return everyone's ``key``, shape (people,)."""
        return self.birth if attribute == "birth" else self.codes[attribute]

    def with_value(self, attribute: str, key: int) -> NDArray[np.int32]:
        """Return everyone whose attribute has this key, sorted."""
        if attribute not in self._by_value:
            keys = self.keys(attribute)
            order = np.argsort(keys, kind="stable").astype(np.int32)
            low = int(keys.min())
            counts = np.bincount(keys.astype(np.int64) - low)
            offsets = np.concatenate((np.zeros(low, np.int32), [0], np.cumsum(counts)))
            self._by_value[attribute] = Adjacency(offsets.astype(np.int32), order)
        index = self._by_value[attribute]
        return index.row(key) if key < len(index.offsets) - 1 else index.targets[:0]

    def alike(self, person: int, attributes: Sequence[str]) -> NDArray[np.int32]:
        """Return everyone, sorted, who has a person's values of all these attributes."""
        groups = [self.with_value(name, self.key(person, name)) for name in attributes]
        smallest = min(groups, key=len)
        keep = np.ones(len(smallest), np.bool_)
        for name in attributes:
            keep &= self.keys(name)[smallest] == self.key(person, name)
        return smallest[keep]

    @property
    def nbytes(self) -> int:
        """The size of all arrays, in bytes."""
        sizes = [self.birth.nbytes, self.lineage.nbytes, self.family_starts.nbytes]
        sizes += [codes.nbytes for codes in self.codes.values()]
        sizes += [a.offsets.nbytes + a.targets.nbytes for a in self.kinship.base.values()]
        return sum(sizes) + self.kinship.is_female.nbytes

    def __reduce__(self) -> tuple[Callable[[WorldSettings], "People"], tuple[WorldSettings]]:
        """Pickle the settings alone: they give the same people everywhere."""
        return People.draw, (self.settings,)

    @cached_property
    def name(self) -> Callable[[int], str]:
        """Give a person's full name."""
        full, lineage = self.names.full, self.lineage.data
        return lru_cache(_NAMES_KEPT)(lambda person: full(person, lineage[person]))

    @cached_property
    def is_female(self) -> Callable[[int], bool]:
        """Tell a person's gender."""
        return cast(Callable[[int], bool], self.kinship.is_female.data.__getitem__)

    # A memoryview gives one item as a Python number, several times faster than an array does.

    @cached_property
    def _birth_view(self) -> memoryview:
        return self.birth.data

    @cached_property
    def _code_views(self) -> dict[str, memoryview]:
        return {key: codes.data for key, codes in self.codes.items()}


def _draw_friends(rng: np.random.Generator, people: int, mean_degree: float) -> Adjacency:
    """Draw an Erdős-Rényi graph G(n, p) with p = mean degree / (n - 1).

    The number of edges is binomial; given it, every set of that many pairs is equally likely
    (Gilbert 1959, "Random Graphs").
    """
    pairs = people * (people - 1) // 2
    edges = int(rng.binomial(pairs, mean_degree / (people - 1))) if pairs else 0
    if edges * 4 > pairs:
        chosen = rng.permutation(pairs)[:edges]
    else:
        chosen = np.zeros(0, np.int64)
        while len(chosen) < edges:  # draw with repeats until enough distinct ones are there
            more = rng.integers(pairs, size=edges - len(chosen) + edges // 8 + 8)
            chosen = sorted_unique(np.concatenate([chosen, more]))
        chosen = rng.choice(chosen, edges, replace=False, shuffle=False)
    low, high = _unrank(chosen)
    return Adjacency.from_pairs(np.concatenate([low, high]), np.concatenate([high, low]), people)


def _unrank(ranks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs (low, high) with these ranks in the order 01, 02, 12, 03, 13, 23, ..."""
    high = ((1 + np.sqrt(1 + 8 * ranks.astype(np.float64))) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > ranks
    high += high * (high + 1) // 2 <= ranks
    return ranks - high * (high - 1) // 2, high
