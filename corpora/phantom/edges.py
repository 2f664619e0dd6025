"""Every relation between the people of a pool, laid out for walking in both directions."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .kinship import Adjacency, relation_steps
from .people import People

__all__ = ["REDUNDANT", "STEP_KINDS", "Edges", "draw_pool"]

STEP_KINDS = ("parent", "child", "sibling", "married", "friend")
# Two stated relations that come to one: a parent's child is a sibling, a sibling's mother one's own
# mother. A chain that joined them would promise more hops than its shortest proof has.
_JOINED = {
    "parent": ("child", "married"),
    "child": ("parent", "sibling"),
    "sibling": ("sibling", "parent"),
    "married": ("married", "child"),
}
REDUNDANT = np.array(
    [[second in _JOINED.get(first, ()) for second in STEP_KINDS] for first in STEP_KINDS]
)
_MOST_CHOICES = 12  # a filter picks one of at most so many
_WHOLE = 15_000  # a world up to here is its own pool
_POOL_FAMILIES = 150
_POOL_ROUNDS = 4


@dataclass(frozen=True)
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
        found = people.kinship.every_pair(pool)
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
    def hops(self) -> NDArray[np.int16]:
        """How many stated relations each relation joins, shape (relations,)."""
        return np.array([len(relation_steps(name)) for name in self.relations], np.int16)

    @cached_property
    def first_kind(self) -> NDArray[np.int8]:
        """The first stated relation of each, as a place in ``STEP_KINDS``."""
        return np.array([_kind(relation_steps(name)[0]) for name in self.relations], np.int8)

    @cached_property
    def last_kind(self) -> NDArray[np.int8]:
        """The last stated relation of each, as a place in ``STEP_KINDS``."""
        return np.array([_kind(relation_steps(name)[-1]) for name in self.relations], np.int8)

    @cached_property
    def by_row(self) -> dict[str, Adjacency]:
        """Edges that leave and that enter each row: one, several or any number of targets."""
        is_one = self.size == 1
        groups = {"one": is_one, "several": ~is_one & (self.size <= _MOST_CHOICES)}
        groups["any"] = np.ones_like(is_one)
        views = {}
        for name, chosen in groups.items():
            edges = np.flatnonzero(chosen)
            views[f"{name} from"] = self._grouped(edges, self.source[edges])
            inside = edges[self.target_row[edges] >= 0]
            views[f"{name} to"] = self._grouped(inside, self.target_row[inside])
        return views

    @cached_property
    def groups(self) -> Adjacency:
        """The edges of one source and relation: row ``source * relations + relation``."""
        keys = self.source.astype(np.int64) * len(self.relations) + self.relation
        return _grouped(np.arange(len(keys)), keys, len(self.pool) * len(self.relations))

    def group_of(self, edges: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the row of ``groups`` that holds each edge."""
        return (
            self.source[edges].astype(np.int64) * len(self.relations) + self.relation[edges]
        ).astype(np.int32)

    def _grouped(self, edges: NDArray[np.int64], rows: NDArray[np.int32]) -> Adjacency:
        return _grouped(edges, rows, len(self.pool))


def _kind(step: str) -> int:
    return STEP_KINDS.index(step)


def _grouped(
    edges: NDArray[np.int64], rows: NDArray[np.int32] | NDArray[np.int64], size: int
) -> Adjacency:
    order = np.argsort(rows, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=size))))
    return Adjacency(offsets.astype(np.int32), edges[order].astype(np.int32))


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
    return (np.repeat(starts[families], counts) + within).astype(np.int32)
