"""Walks over relations, grown backward and forward from an anchor.

Bidirectional anchors are those of PhantomEnvironments (arXiv:2609.40221): a walk that only went
forward would end again and again at the few people whom many descriptions lead to.
"""

import numpy as np
from numpy.typing import NDArray

from .edges import REDUNDANT, Edges
from .grammar import Chain
from .people import People
from .vocabulary import ATTRIBUTES

__all__ = ["FILTERS", "draw_walks"]

FILTERS = tuple(name for name in ATTRIBUTES if name != "birth")
_NOBODY = -1


def draw_walks(
    people: People,
    edges: Edges,
    rng: np.random.Generator,
    *,
    hops: int,
    filters: int = 0,
    is_definite: bool = True,
    walkers: int = 128,
) -> list[Chain]:
    """Draw chains of exactly so many hops and filters; those that get stuck are left out.

    Args:
        people: Everyone.
        edges: What can be walked.
        rng: Where every draw comes from.
        hops: How many stated relations to join.
        filters: How many steps go to one of several by an attribute.
        is_definite: Every step leads to one person, by a filter if need be.
        walkers: How many walks to try.
    """
    walk = _Walk(people, edges, rng, hops, filters, walkers, is_definite)
    if hops:
        backward = rng.integers(hops + 1, size=walkers)
        walk.grow(backward, forward=False)
        walk.grow(hops - backward, forward=True)
    return walk.chains()


class _Walk:
    """Many walks at once: arrays of shape (walkers, 2 * hops + 1), the anchor in the middle."""

    def __init__(
        self,
        people: People,
        edges: Edges,
        rng: np.random.Generator,
        hops: int,
        filters: int,
        walkers: int,
        is_definite: bool,
    ) -> None:
        self.people, self.edges, self.rng, self.hops = people, edges, rng, hops
        self.views = ("one", "several") if is_definite else ("any", "any")
        row = rng.integers(len(edges.pool), size=walkers)
        shape = (walkers, 2 * hops + 1)
        self.person = np.full(shape, _NOBODY, np.int32)
        self.relation = np.full(shape, -1, np.int16)  # of the step into the place
        self.filter = np.full(shape, -1, np.int8)
        self.person[:, hops] = edges.pool[row]
        self.filters_left = np.full(walkers, filters)
        self.hops_left = np.full(walkers, hops)
        self.is_alive = np.ones(walkers, np.bool_)
        self.left, self.right = (np.full(walkers, hops) for _ in range(2))
        self.left_row, self.right_row = row.copy(), row.copy()
        self.first_kind, self.last_kind = (np.full(walkers, -1) for _ in range(2))

    def grow(self, budget: NDArray[np.int64], *, forward: bool) -> None:
        """Add steps at one end until each walk has used its budget of hops, or is stuck."""
        budget = budget.copy()
        while True:
            walkers = np.flatnonzero(self.is_alive & (budget > 0))
            if not len(walkers):
                return
            chance = self.filters_left[walkers] / self.hops_left[walkers]
            is_filtered = self.rng.random(len(walkers)) < chance
            for filtered in (False, True):
                group = walkers[is_filtered == filtered]
                if len(group):
                    chosen, edge = self._choose(group, budget, filtered, forward)
                    self._move(chosen, edge, forward)
                    used = self.edges.hops[self.edges.relation[edge]]
                    budget[chosen] -= used
                    self.hops_left[chosen] -= used

    def _choose(
        self, walkers: NDArray[np.int64], budget: NDArray[np.int64], filtered: bool, forward: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Choose an edge for each walker; those without one die."""
        edges = self.edges
        row = (self.right_row if forward else self.left_row)[walkers]
        outside = row < 0
        view = edges.by_row[f"{self.views[filtered]} {'from' if forward else 'to'}"]
        which, edge = view.expand(np.where(outside, 0, row).astype(np.int32))
        walker = walkers[which]
        relation = edges.relation[edge]
        next_person = edges.target[edge] if forward else edges.pool[edges.source[edge]]
        is_open = (edges.hops[relation] <= budget[walker]) & ~outside[which]
        is_open &= (self.person[walker] != next_person[:, None]).all(1)
        if forward:
            known, other = self.last_kind[walker], edges.first_kind[relation]
            is_open &= (known < 0) | ~REDUNDANT[known, other]
        else:
            known, other = self.first_kind[walker], edges.last_kind[relation]
            is_open &= (known < 0) | ~REDUNDANT[other, known]
        which, edge = which[is_open], edge[is_open]
        order = np.lexsort((self.rng.random(len(which)), which))
        which, edge = which[order], edge[order]
        is_first = np.ones(len(which), np.bool_)
        is_first[1:] = which[1:] != which[:-1]
        chosen, edge = walkers[which[is_first]], edge[is_first].astype(np.int64)
        self.is_alive[np.setdiff1d(walkers, chosen, assume_unique=True)] = False
        if not filtered:
            return chosen, edge
        return self._filter(chosen, edge, forward)

    def _filter(
        self, walkers: NDArray[np.int64], edge: NDArray[np.int64], forward: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw an attribute that picks the target from all in the relation; without one, die."""
        attribute = self.rng.integers(len(FILTERS), size=len(edge))
        which, rivals = self.edges.groups.expand(self.edges.group_of(edge))
        rival, target = self.edges.target[rivals], self.edges.target[edge][which]
        same = np.zeros(len(which), np.bool_)
        for place, name in enumerate(FILTERS):
            mine = attribute[which] == place
            values = self.people.codes[name]
            same[mine] = values[rival[mine]] == values[target[mine]]
        is_picked = np.bincount(which, weights=same, minlength=len(edge)) == 1
        self.is_alive[walkers[~is_picked]] = False
        walkers, edge, attribute = walkers[is_picked], edge[is_picked], attribute[is_picked]
        place = self.right[walkers] + 1 if forward else self.left[walkers]
        self.filter[walkers, place] = attribute
        self.filters_left[walkers] -= 1
        return walkers, edge

    def _move(self, walkers: NDArray[np.int64], edge: NDArray[np.int64], forward: bool) -> None:
        edges = self.edges
        relation = edges.relation[edge]
        if forward:
            self.right[walkers] += 1
            place = self.right[walkers]
            self.person[walkers, place] = edges.target[edge]
            self.relation[walkers, place] = relation
            self.right_row[walkers] = edges.target_row[edge]
        else:
            self.relation[walkers, self.left[walkers]] = relation
            self.left[walkers] -= 1
            self.person[walkers, self.left[walkers]] = edges.pool[edges.source[edge]]
            self.left_row[walkers] = edges.source[edge]
        is_first = self.first_kind[walkers] < 0
        for_start = walkers[is_first] if forward else walkers
        self.first_kind[for_start] = edges.first_kind[relation[is_first] if forward else relation]
        for_end = walkers if forward else walkers[is_first]
        self.last_kind[for_end] = edges.last_kind[relation if forward else relation[is_first]]

    def chains(self) -> list[Chain]:
        """Return the walks that used all their hops and filters, in order."""
        done = np.flatnonzero(self.is_alive & (self.hops_left == 0) & (self.filters_left == 0))
        names = self.edges.relations
        chains = []
        for walker, left, right in zip(
            done.tolist(), self.left[done].tolist(), self.right[done].tolist(), strict=True
        ):
            steps = slice(left + 1, right + 1)
            chains.append(
                Chain(
                    people=tuple(self.person[walker, left : right + 1].tolist()),
                    relations=tuple(names[code] for code in self.relation[walker, steps].tolist()),
                    filters=tuple(
                        FILTERS[code] if code >= 0 else ""
                        for code in self.filter[walker, steps].tolist()
                    ),
                )
            )
        return chains
