"""Every relation between the people of a pool, laid out for walking in both directions."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from .kinship import relation_steps
from .people import People

__all__ = ["Edges", "draw_pool"]

# Two stated relations that come to one: a parent's child is a sibling, a sibling's mother one's own
# mother. A chain that joined them would promise more hops than its shortest proof has.
_JOINED = {
    "parent": ("child", "married"),
    "child": ("parent", "sibling"),
    "sibling": ("sibling", "parent"),
    "married": ("married", "child"),
}
_MOST_CHOICES = 12  # a filter picks one of at most so many
_WHOLE = 15_000  # a world up to here is its own pool
_POOL_FAMILIES = 150
_POOL_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Edges:
    """Who can be reached from whom by which relation; arrays have one entry an edge.

    Attributes:
        pool: The people that edges lead from, sorted.
        relations: The names behind the codes in ``relation``.
        source: Row in the pool of the person asked about.
        relation: Code of the relation.
        target: The person in that relation.
        target_row: Row of the target in the pool, or -1.
        size: How many people stand in that relation to the source.
    """

    pool: NDArray[np.int32]
    relations: tuple[str, ...]
    source: NDArray[np.int32]
    relation: NDArray[np.int16]
    target: NDArray[np.int32]
    target_row: NDArray[np.int32]
    size: NDArray[np.int32]

    @classmethod
    def between(
        cls, people: People, pool: NDArray[np.int32], relations: tuple[str, ...]
    ) -> "Edges":
        """Follow every relation from everyone in the pool."""
        found = people.kinship.every_pair(pool, relations)
        sources = [found[name][0] for name in relations]
        source = np.concatenate(sources).astype(np.int32)
        target = np.concatenate([found[name][1] for name in relations])
        relation = np.repeat(np.arange(len(relations)), [len(s) for s in sources])
        sizes = [np.bincount(s, minlength=len(pool))[s] for s in sources]
        place = np.searchsorted(pool, target).clip(max=len(pool) - 1)
        return cls(
            pool=pool,
            relations=relations,
            source=source,
            relation=relation.astype(np.int16),
            target=target,
            target_row=np.where(pool[place] == target, place, -1).astype(np.int32),
            size=np.concatenate(sizes).astype(np.int32),
        )

    @cached_property
    def hops(self) -> list[int]:
        """How many stated relations each relation joins."""
        return [len(relation_steps(name)) for name in self.relations]

    @cached_property
    def banned_after(self) -> dict[str, set[int]]:
        """For each relation the codes of those that must not follow it."""
        codes = range(len(self.relations))
        return {
            one: {code for code in codes if _is_joined(one, self.relations[code])}
            for one in self.relations
        }

    @cached_property
    def banned_before(self) -> dict[str, set[int]]:
        """For each relation the codes of those that must not come before it."""
        codes = range(len(self.relations))
        return {
            one: {code for code in codes if _is_joined(self.relations[code], one)}
            for one in self.relations
        }

    @cached_property
    def views(self) -> dict[tuple[str, str], tuple[list[int], list[int]]]:
        """Offsets and edges that leave ("from") and enter ("to") each row.

        Apart for relations to "one" person, to "several", and to "any" number.
        """
        is_one = self.size == 1
        is_several = ~is_one & (self.size <= _MOST_CHOICES)
        views = {}
        for name, chosen in (("one", is_one), ("several", is_several), ("any", self.size > 0)):
            edges = np.flatnonzero(chosen)
            views[name, "from"] = _grouped(edges, self.source[edges], len(self.pool))
            inside = edges[self.target_row[edges] >= 0]
            views[name, "to"] = _grouped(inside, self.target_row[inside], len(self.pool))
        return views

    def rivals(self, edge: int) -> list[int]:
        """Return all who stand in an edge's relation to its source."""
        row = self.source_list[edge] * len(self.relations) + self.relation_list[edge]
        offsets, edges = self._groups
        return [self.target_list[other] for other in edges[offsets[row] : offsets[row + 1]]]

    @cached_property
    def _groups(self) -> tuple[list[int], list[int]]:
        keys = self.source.astype(np.int64) * len(self.relations) + self.relation
        return _grouped(np.arange(len(keys)), keys, len(self.pool) * len(self.relations))

    # A list gives one item several times faster than an array does.

    @cached_property
    def pool_list(self) -> list[int]:
        """The people that edges lead from."""
        return _listed(self.pool)

    @cached_property
    def source_list(self) -> list[int]:
        """The row in the pool that each edge leaves."""
        return _listed(self.source)

    @cached_property
    def origin_list(self) -> list[int]:
        """The person that each edge leaves."""
        return _listed(self.pool[self.source])

    @cached_property
    def relation_list(self) -> list[int]:
        """The code of each edge's relation."""
        return _listed(self.relation)

    @cached_property
    def target_list(self) -> list[int]:
        """The person that each edge leads to."""
        return _listed(self.target)

    @cached_property
    def target_row_list(self) -> list[int]:
        """The row in the pool that each edge leads to, or -1."""
        return _listed(self.target_row)


@cache
def _is_joined(first: str, second: str) -> bool:
    """Tell whether the end of one relation and the start of the next come to one step."""
    return relation_steps(second)[0] in _JOINED.get(relation_steps(first)[-1], ())


def _listed(array: NDArray[np.int16] | NDArray[np.int32]) -> list[int]:
    numbers: list[int] = array.tolist()
    return numbers


def _grouped(
    edges: NDArray[np.int64], rows: NDArray[np.int32] | NDArray[np.int64], size: int
) -> tuple[list[int], list[int]]:
    """Return offsets and edges, sorted by row."""
    order = np.argsort(rows, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=size))))
    return offsets.tolist(), edges[order].tolist()


def draw_pool(people: People, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw the people that some questions are about: whole families and their friends' families.

    A question about a million people touches a few of them, so relations are followed for a
    pool only. Whether a description fits one person alone is still asked of the whole world.
    """
    if len(people) <= _WHOLE:
        return np.arange(len(people), dtype=np.int32)
    starts = people.family_starts
    newest = rng.integers(len(starts) - 1, size=_POOL_FAMILIES)
    families = newest
    for _ in range(_POOL_ROUNDS):
        members = _members(starts, np.unique(newest))
        friends = people.kinship.base["friend"].expand(members)[1]
        friends = friends[rng.integers(len(friends), size=_POOL_FAMILIES)]
        newest = np.searchsorted(starts, friends, side="right") - 1
        families = np.concatenate([families, newest])
    return _members(starts, np.unique(families))


def _members(starts: NDArray[np.int64], families: NDArray[np.int64]) -> NDArray[np.int32]:
    counts = np.diff(starts)[families]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    members: NDArray[np.int64] = np.repeat(starts[families], counts) + within
    return members.astype(np.int32)
