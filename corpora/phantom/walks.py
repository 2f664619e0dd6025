"""Walks over relations, grown backward and forward from an anchor.

Bidirectional anchors are those of PhantomEnvironments (arXiv:2609.40221): a walk that only went
forward would end again and again at the few people whom many descriptions lead to.
"""

from collections.abc import Callable, Iterator

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
    row = int(chance() * len(edges.pool))
    if not hops:
        return Chain((edges.pool_list[row],))
    walk = _Walk(people, edges, chance, filters, is_definite)
    walk.people.append(edges.pool_list[row])
    left = walk.go_back(row, int(chance() * (hops + 1)), hops)
    if walk.go_on(row, left) or walk.filters_left:
        return None
    return Chain(tuple(walk.people), tuple(walk.relations), tuple(walk.filters))


class _Walk:
    def __init__(
        self,
        people: People,
        edges: Edges,
        chance: Chance,
        filters: int,
        is_definite: bool,
    ) -> None:
        self.world, self.edges, self.chance, self.is_definite = people, edges, chance, is_definite
        self.people: list[int] = []
        self.relations: list[str] = []
        self.filters: list[str] = []
        self.filters_left = filters

    def go_back(self, row: int, budget: int, hops: int) -> int:
        """Add steps that lead to the anchor while some fit; return how many hops are left."""
        edges, following = self.edges, None
        while budget and (step := self._choose(row, budget, hops, "to", following)):
            edge, chosen_by = step
            following = edges.relation_list[edge]
            row = edges.source_list[edge]
            self.people.insert(0, edges.pool_list[row])
            self.relations.insert(0, edges.relations[following])
            self.filters.insert(0, chosen_by)
            budget -= edges.hops[following]
            hops -= edges.hops[following]
        return hops

    def go_on(self, row: int, hops: int) -> int:
        """Add steps that lead on from the anchor while some fit; return how many hops are left."""
        edges = self.edges
        previous = edges.relations.index(self.relations[-1]) if self.relations else None
        while hops and row >= 0 and (step := self._choose(row, hops, hops, "from", previous)):
            edge, chosen_by = step
            previous = edges.relation_list[edge]
            row = edges.target_row_list[edge]
            self.people.append(edges.target_list[edge])
            self.relations.append(edges.relations[previous])
            self.filters.append(chosen_by)
            hops -= edges.hops[previous]
        return hops

    def _choose(
        self, row: int, budget: int, hops: int, direction: str, beside: int | None
    ) -> tuple[int, str] | None:
        """Choose an edge, and the attribute that picks its target where one is needed."""
        edges, chance = self.edges, self.chance
        is_filtered = self.filters_left > 0 and chance() * hops < self.filters_left
        targets = "several" if is_filtered else "one" if self.is_definite else "any"
        offsets, listed = edges.views[targets, direction]
        first = offsets[row]
        count = offsets[row + 1] - first
        start = int(chance() * count)
        for place in range(start, start + count):
            edge = listed[first + place % count]
            if not self._fits(edge, budget, direction, beside):
                continue
            chosen_by = self._pick_filter(edge) if is_filtered else ""
            if chosen_by is not None:
                self.filters_left -= is_filtered
                return edge, chosen_by
        return None

    def _fits(self, edge: int, budget: int, direction: str, beside: int | None) -> bool:
        """Tell whether a step is short enough, new, and not one with the step beside it."""
        edges = self.edges
        code = edges.relation_list[edge]
        if edges.hops[code] > budget:
            return False
        if direction == "from":
            is_joined = beside is not None and (beside, code) in edges.redundant
            reached = edges.target_list[edge]
        else:
            is_joined = beside is not None and (code, beside) in edges.redundant
            reached = edges.pool_list[edges.source_list[edge]]
        return not is_joined and reached not in self.people

    def _pick_filter(self, edge: int) -> str | None:
        """Draw an attribute; None if somebody else in the relation has the target's value."""
        name = FILTERS[int(self.chance() * len(FILTERS))]
        rivals = self.edges.rivals(edge)
        value = self.world.key(self.edges.target_list[edge], name)
        is_picked = sum(self.world.key(rival, name) == value for rival in rivals) == 1
        return name if is_picked else None
