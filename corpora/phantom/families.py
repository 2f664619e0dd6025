"""Family trees, all grown at once: one person of each family, then parents and children.

Growth follows Hohenecker & Lukasiewicz 2020, "Ontology Reasoning with Deep Neural Networks":
again and again a random member gets parents or a child, until the tree is as large as asked.
Ages follow PhantomWiki (Gong et al. 2025): a parent is 18 to 45 years older than a child (most
often about 27), spouses are at most 10 years apart, siblings at least 300 days unless twins.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Families", "grow_families"]

_YEAR = 365.2425
_ADULT, _LAST_CHILD = round(18 * _YEAR), round(45 * _YEAR)
_GENERATION, _GENERATION_SPREAD = 27 * _YEAR, 3 * _YEAR
_SPOUSE_SPREAD, _SPOUSE_LIMIT = 2 * _YEAR, round(10 * _YEAR)
_SIBLING_GAP = 300  # days
_TWINS = 0.05
_FOUNDER_DAY = 547_500  # about the year 1500, so that every date has a year of four digits
_FOUNDER_SPREAD = 40 * _YEAR

_AT_ONCE = 1_000  # families grown together: few enough for the arrays to stay in the cache

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Families:
    """Every person of every family, one family after the other.

    Arrays have one entry a person; people are named by their position. ``-1`` means none.

    Attributes:
        father: Position of the father.
        mother: Position of the mother.
        is_female: The gender.
        birth: Day of birth, as a proleptic Gregorian ordinal.
        lineage: Position of the first person known with this surname.
        starts: Position of the first person of each family, and the number of people.
    """

    father: NDArray[np.int32]
    mother: NDArray[np.int32]
    is_female: NDArray[np.bool_]
    birth: NDArray[np.int32]
    lineage: NDArray[np.int32]
    starts: NDArray[np.int64]


def grow_families(
    rng: np.random.Generator, people: int, *, size: int, depth: int, branching: int
) -> Families:
    """Grow families of at most ``size`` people until there are ``people`` of them.

    Args:
        rng: Where every draw comes from.
        people: How many people, exactly.
        size: The most people a family may have.
        depth: The most generations a family may span.
        branching: The most children a couple may have.
    """
    grown: list[Families] = []
    missing = people
    while missing:  # a family can be stuck below its size; the rest founds more families
        sizes = np.full(min(-(-missing // size), _AT_ONCE), size, np.int64)
        sizes[-1] = min(size, missing - size * (len(sizes) - 1))
        growth = _Growth(rng, sizes, depth, branching)
        growth.run()
        grown.append(growth.compact())
        missing -= len(grown[-1].birth)
    return _join(grown)


class _Growth:
    """The state of many growing trees: arrays of shape (families, size)."""

    def __init__(self, rng: np.random.Generator, sizes: Rows, depth: int, branching: int) -> None:
        self.rng, self.sizes, self.depth, self.branching = rng, sizes, depth, branching
        shape = (len(sizes), int(sizes.max()))
        self.father, self.mother, self.spouse = (np.full(shape, -1, np.int16) for _ in range(3))
        self.lineage, self.generation, self.children = (np.zeros(shape, np.int16) for _ in range(3))
        self.is_female = np.zeros(shape, np.bool_)
        self.birth, self.eldest, self.youngest = (np.zeros(shape, np.int32) for _ in range(3))
        self.count = np.ones(len(sizes), np.int64)
        self.top, self.bottom = (np.zeros(len(sizes), np.int16) for _ in range(2))
        self.is_female[:, 0] = rng.random(len(sizes)) < 0.5
        self.birth[:, 0] = _FOUNDER_DAY + rng.normal(0, _FOUNDER_SPREAD, len(sizes)).clip(
            -3 * _FOUNDER_SPREAD, 3 * _FOUNDER_SPREAD
        )
        # Even the most children fit the years in which both parents can have them.
        self.widest_gap = int((_LAST_CHILD - _ADULT - _SPOUSE_LIMIT) / (branching + 2))

    def run(self) -> None:
        """Grow until every family has its size or can grow no more."""
        rows = np.flatnonzero(self.count < self.sizes)
        while len(rows):
            up, down = self._growable(rows)
            wants_up = self.rng.random(len(rows)) < 0.5
            goes_up = up.any(1) & (wants_up | ~down.any(1))
            grows = goes_up | down.any(1)
            keys = self.rng.random(up.shape, dtype=np.float32)
            member = np.where(np.where(goes_up[:, None], up, down), keys, -1).argmax(1)
            self._add_parents(rows[goes_up], member[goes_up])
            self._add_child(rows[grows & ~goes_up], member[grows & ~goes_up])
            rows = rows[grows]
            rows = rows[self.count[rows] < self.sizes[rows]]

    def _growable(self, rows: Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell which members can be given parents, and which a child."""
        there = np.arange(self.birth.shape[1]) < self.count[rows, None]
        has_two = (self.sizes[rows] - self.count[rows] >= 2)[:, None]
        generation = self.generation[rows]
        up = there & has_two & (self.father[rows] < 0)
        up &= self.bottom[rows, None] - generation + 1 < self.depth
        down = there & (has_two | (self.spouse[rows] >= 0))
        down &= self.children[rows] < self.branching
        down &= generation + 1 - self.top[rows, None] < self.depth
        return up, down

    def _add_parents(self, rows: Rows, child: Rows) -> None:
        father, mother = self.count[rows], self.count[rows] + 1
        self.count[rows] += 2
        birth = self.birth[rows, child]
        gap = self.rng.normal(_GENERATION, _GENERATION_SPREAD, len(rows))
        spread = self.rng.normal(0, _SPOUSE_SPREAD, len(rows)).clip(-_SPOUSE_LIMIT, _SPOUSE_LIMIT)
        mother_gap = gap.clip(_ADULT, _LAST_CHILD).astype(np.int32)
        father_gap = (gap + spread).clip(_ADULT, _LAST_CHILD).astype(np.int32)
        for parent, other, years in ((father, mother, father_gap), (mother, father, mother_gap)):
            self.birth[rows, parent] = birth - years
            self.spouse[rows, parent] = other
            self.children[rows, parent] = 1
            self.eldest[rows, parent] = self.youngest[rows, parent] = birth
            self.generation[rows, parent] = self.generation[rows, child] - 1
        self.is_female[rows, mother] = True
        self.lineage[rows, father] = self.lineage[rows, child]
        self.lineage[rows, mother] = mother
        self.father[rows, child], self.mother[rows, child] = father, mother
        self.top[rows] = np.minimum(self.top[rows], self.generation[rows, father])

    def _add_child(self, rows: Rows, parent: Rows) -> None:
        single = self.spouse[rows, parent] < 0
        self._add_spouse(rows[single], parent[single])
        spouse = self.spouse[rows, parent].astype(np.int64)
        child = self.count[rows]
        self.count[rows] += 1
        is_mother = self.is_female[rows, parent]
        father, mother = np.where(is_mother, (spouse, parent), (parent, spouse))
        birth = self._draw_birth(rows, father, mother)
        first = self.children[rows, parent] == 0
        for who in (father, mother):
            eldest, youngest = self.eldest[rows, who], self.youngest[rows, who]
            self.eldest[rows, who] = np.where(first, birth, np.minimum(eldest, birth))
            self.youngest[rows, who] = np.where(first, birth, np.maximum(youngest, birth))
            self.children[rows, who] += 1
        self.birth[rows, child] = birth
        self.father[rows, child], self.mother[rows, child] = father, mother
        self.is_female[rows, child] = self.rng.random(len(rows)) < 0.5
        self.lineage[rows, child] = self.lineage[rows, father]
        self.generation[rows, child] = self.generation[rows, parent] + 1
        self.bottom[rows] = np.maximum(self.bottom[rows], self.generation[rows, child])

    def _add_spouse(self, rows: Rows, member: Rows) -> None:
        spouse = self.count[rows]
        self.count[rows] += 1
        spread = self.rng.normal(0, _SPOUSE_SPREAD, len(rows)).clip(-_SPOUSE_LIMIT, _SPOUSE_LIMIT)
        self.birth[rows, spouse] = self.birth[rows, member] + spread.astype(np.int32)
        self.is_female[rows, spouse] = ~self.is_female[rows, member]
        self.generation[rows, spouse] = self.generation[rows, member]
        self.lineage[rows, spouse] = spouse
        self.spouse[rows, spouse], self.spouse[rows, member] = member, spouse

    def _draw_birth(self, rows: Rows, father: Rows, mother: Rows) -> NDArray[np.int32]:
        """Draw days that suit both parents and the children they have."""
        days = self.birth[rows, father], self.birth[rows, mother]
        earliest, latest = np.maximum(*days) + _ADULT, np.minimum(*days) + _LAST_CHILD
        gap = self.rng.normal(_GENERATION, _GENERATION_SPREAD, len(rows))
        first = (days[1] + gap).astype(np.int32).clip(earliest, latest)
        step = self.rng.integers(_SIBLING_GAP, self.widest_gap + 1, len(rows))
        step[self.rng.random(len(rows)) < _TWINS] = 0
        after = self.youngest[rows, mother] + step
        before = self.eldest[rows, mother] - step
        goes_after = (self.rng.random(len(rows)) < 0.7) & (after <= latest) | (before < earliest)
        next_one = np.where(goes_after, after, before)
        return np.where(self.children[rows, mother] == 0, first, next_one).astype(np.int32)

    def compact(self) -> Families:
        """Return the people that exist, with positions in place of places in the family."""
        there = np.arange(self.birth.shape[1]) < self.count[:, None]
        starts = np.concatenate(([0], np.cumsum(self.count)))
        offset = np.repeat(starts[:-1], self.count)

        def globally(places: NDArray[Any]) -> NDArray[np.int32]:
            chosen = places[there].astype(np.int64)
            return np.where(chosen < 0, -1, chosen + offset).astype(np.int32)

        return Families(
            father=globally(self.father),
            mother=globally(self.mother),
            is_female=self.is_female[there],
            birth=self.birth[there],
            lineage=globally(self.lineage),
            starts=starts,
        )


def _join(parts: list[Families]) -> Families:
    offsets = np.cumsum([0] + [len(part.birth) for part in parts])

    def shifted(arrays: list[NDArray[np.int32]]) -> NDArray[np.int32]:
        moved = [np.where(a < 0, -1, a + o) for a, o in zip(arrays, offsets, strict=False)]
        return np.concatenate(moved).astype(np.int32)

    starts = [part.starts[:-1] + offset for part, offset in zip(parts, offsets, strict=False)]
    return Families(
        father=shifted([part.father for part in parts]),
        mother=shifted([part.mother for part in parts]),
        is_female=np.concatenate([part.is_female for part in parts]),
        birth=np.concatenate([part.birth for part in parts]),
        lineage=shifted([part.lineage for part in parts]),
        starts=np.concatenate([*starts, offsets[-1:]]),
    )
