"""Walks over relations, grown backward and forward from an anchor.

Bidirectional anchors are those of PhantomEnvironments (arXiv:2609.40221): a walk that only went
forward would end again and again at the few people whom many descriptions lead to.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import chain

import numpy as np

from .edges import Edges
from .grammar import Chain
from .people import People
from .vocabulary import ATTRIBUTES

__all__ = ["FILTERS", "Chance", "chances", "draw_walk"]

FILTERS = tuple(name for name in ATTRIBUTES if name != "birth")


Chance = Callable[[], float]


def chances(rng: np.random.Generator) -> Chance:
    """Return a function that gives the generator's numbers in [0, 1), drawn by the thousand."""

    def stream() -> Iterator[float]:
        while True:
            yield from rng.random(1_000).tolist()

    return stream().__next__


def draw_walk(
    people: People,
    edges: Edges,
    chance: Chance,
    *,
    hops: int,
    filters: int = 0,
    is_definite: bool = True,
) -> Chain | None:
    """Draw a chain of exactly so many hops and filters; None if the walk gets stuck.

    Args:
        people: Everyone.
        edges: What can be walked.
        chance: Gives the numbers that decide, each at least 0 and below 1.
        hops: How many stated relations to join.
        filters: How many steps go to one of several by an attribute.
        is_definite: Every step leads to one person, by a filter if need be.
    """
    walk = _Walk(people, edges, chance, is_definite)
    walk.hops_left, walk.filters_left = hops, filters
    walk.go_back(int(chance() * (hops + 1)))
    walk.go_on()
    walk.go_back(walk.hops_left)
    if walk.hops_left or walk.filters_left:
        return None
    return Chain(tuple(walk.people), tuple(walk.relations), tuple(walk.filters))


class _Walk:
    """A walk that grows at both ends from a random anchor."""

    def __init__(self, people: People, edges: Edges, chance: Chance, is_definite: bool) -> None:
        self.world, self.edges, self.chance, self.is_definite = people, edges, chance, is_definite
        self.first_row = self.last_row = int(chance() * len(edges.pool))
        self.people = [edges.pool_list[self.first_row]]
        self.relations: list[str] = []
        self.filters: list[str] = []
        self.hops_left = self.filters_left = 0

    def go_back(self, budget: int) -> None:
        """Add steps before the first while some fit."""
        edges = self.edges
        while budget:
            banned = edges.banned_before[self.relations[0]] if self.relations else ()
            step = self._choose(self.first_row, budget, "to", banned)
            if step is None:
                return
            edge, chosen_by = step
            code = edges.relation_list[edge]
            self.first_row = edges.source_list[edge]
            self.people.insert(0, edges.origin_list[edge])
            self.relations.insert(0, edges.relations[code])
            self.filters.insert(0, chosen_by)
            budget -= edges.hops[code]
            self.hops_left -= edges.hops[code]

    def go_on(self) -> None:
        """Add steps after the last while some fit."""
        edges = self.edges
        while self.hops_left and self.last_row >= 0:
            banned = edges.banned_after[self.relations[-1]] if self.relations else ()
            step = self._choose(self.last_row, self.hops_left, "from", banned)
            if step is None:
                return
            edge, chosen_by = step
            code = edges.relation_list[edge]
            self.last_row = edges.target_row_list[edge]
            self.people.append(edges.target_list[edge])
            self.relations.append(edges.relations[code])
            self.filters.append(chosen_by)
            self.hops_left -= edges.hops[code]

    def _choose(
        self, row: int, budget: int, direction: str, banned: Collection[int]
    ) -> tuple[int, str] | None:
        """Choose an edge that is short enough, leads to somebody new and is not banned.

        Returns:
            The edge, and the attribute that picks its target where one is needed.
        """
        edges, chance = self.edges, self.chance
        is_filtered = self.filters_left > 0 and chance() * self.hops_left < self.filters_left
        targets = "several" if is_filtered else "one" if self.is_definite else "any"
        offsets, listed = edges.views[targets, direction]
        reached = edges.target_list if direction == "from" else edges.origin_list
        row_edges = listed[offsets[row] : offsets[row + 1]]
        start = int(chance() * len(row_edges))
        for edge in chain(row_edges[start:], row_edges[:start]):
            code = edges.relation_list[edge]
            if edges.hops[code] > budget or code in banned or reached[edge] in self.people:
                continue
            chosen_by = self._pick_filter(edge) if is_filtered else ""
            if chosen_by is not None:
                self.filters_left -= is_filtered
                return edge, chosen_by
        return None

    def _pick_filter(self, edge: int) -> str | None:
        """Draw an attribute; None if somebody else in the relation has the target's value."""
        name = FILTERS[int(self.chance() * len(FILTERS))]
        rivals = self.edges.rivals(edge)
        value = self.world.key(self.edges.target_list[edge], name)
        is_picked = sum(self.world.key(rival, name) == value for rival in rivals) == 1
        return name if is_picked else None
