"""Walks over relations, grown backward and forward from an anchor.

Bidirectional anchors are those of PhantomEnvironments (arXiv:2609.40221): a walk that only went
forward would end again and again at the few people whom many descriptions lead to.
"""

import numpy as np

from .edges import Edges
from .grammar import Chain
from .people import People
from .vocabulary import ATTRIBUTES

__all__ = ["FILTERS", "draw_walk"]

FILTERS = tuple(name for name in ATTRIBUTES if name != "birth")
_TRIES = 8  # edges looked at before a walk counts as stuck


def draw_walk(
    people: People,
    edges: Edges,
    rng: np.random.Generator,
    *,
    hops: int,
    filters: int = 0,
    is_definite: bool = True,
) -> Chain | None:
    """Draw a chain of exactly so many hops and filters; None if the walk gets stuck.

    Args:
        people: Everyone.
        edges: What can be walked.
        rng: Where every draw comes from.
        hops: How many stated relations to join.
        filters: How many steps go to one of several by an attribute.
        is_definite: Every step leads to one person, by a filter if need be.
    """
    row = int(rng.random() * len(edges.pool))
    if not hops:
        return Chain((edges.pool_view[row],))
    walk = _Walk(people, edges, rng, filters, is_definite)
    walk.people.append(edges.pool_view[row])
    before = int(rng.random() * (hops + 1))
    if walk.go_back(row, before, hops) and walk.go_on(row, hops - before) and not walk.filters_left:
        return Chain(tuple(walk.people), tuple(walk.relations), tuple(walk.filters))
    return None


class _Walk:
    def __init__(
        self,
        people: People,
        edges: Edges,
        rng: np.random.Generator,
        filters: int,
        is_definite: bool,
    ) -> None:
        self.world, self.edges, self.rng, self.is_definite = people, edges, rng, is_definite
        self.people: list[int] = []
        self.relations: list[str] = []
        self.filters: list[str] = []
        self.filters_left = filters

    def go_back(self, row: int, budget: int, hops: int) -> bool:
        """Add steps that lead to the anchor; False if there is none that fits."""
        edges, following = self.edges, None
        while budget:
            step = self._choose(row, budget, hops, "to", following)
            if step is None:
                return False
            edge, chosen_by = step
            code = edges.relation_view[edge]
            row = edges.source_view[edge]
            self.people.insert(0, edges.pool_view[row])
            self.relations.insert(0, edges.relations[code])
            self.filters.insert(0, chosen_by)
            following = code
            budget -= edges.hops[code]
            hops -= edges.hops[code]
        return True

    def go_on(self, row: int, budget: int) -> bool:
        """Add steps that lead on from the anchor; False if there is none that fits."""
        edges = self.edges
        previous = edges.relations.index(self.relations[-1]) if self.relations else None
        while budget:
            step = None if row < 0 else self._choose(row, budget, budget, "from", previous)
            if step is None:
                return False
            edge, chosen_by = step
            previous = edges.relation_view[edge]
            row = edges.target_row_view[edge]
            self.people.append(edges.target_view[edge])
            self.relations.append(edges.relations[previous])
            self.filters.append(chosen_by)
            budget -= edges.hops[previous]
        return True

    def _choose(
        self, row: int, budget: int, hops: int, direction: str, beside: int | None
    ) -> tuple[int, str] | None:
        """Choose an edge, and the attribute that picks its target where one is needed."""
        edges, random = self.edges, self.rng.random
        is_filtered = self.filters_left > 0 and random() * hops < self.filters_left
        targets = "several" if is_filtered else "one" if self.is_definite else "any"
        offsets, listed = edges.views[targets, direction]
        first = offsets[row]
        count = offsets[row + 1] - first
        for _ in range(_TRIES if count else 0):
            edge = listed[first + int(random() * count)]
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
        code = edges.relation_view[edge]
        if edges.hops[code] > budget:
            return False
        if direction == "from":
            is_joined = beside is not None and (beside, code) in edges.redundant
            reached = edges.target_view[edge]
        else:
            is_joined = beside is not None and (code, beside) in edges.redundant
            reached = edges.pool_view[edges.source_view[edge]]
        return not is_joined and reached not in self.people

    def _pick_filter(self, edge: int) -> str | None:
        """Draw an attribute; None if somebody else in the relation has the target's value."""
        name = FILTERS[int(self.rng.random() * len(FILTERS))]
        rivals = self.edges.rivals(edge)
        value = self.world.key(self.edges.target_view[edge], name)
        is_picked = sum(self.world.key(rival, name) == value for rival in rivals) == 1
        return name if is_picked else None
