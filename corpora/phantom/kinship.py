"""Kinship by array composition: each relation is a function from people to sets of people.

The rules are those of PhantomWiki (Gong et al. 2025, arXiv:2502.20377), as one table. Its only
base facts are who is whose parent, who is whose friend, and gender. So a sibling shares *a*
parent, who is married shares a child, an aunt is a sister of a parent and never an uncle's wife,
and a cousin once removed is a cousin's child, never a parent's cousin.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import raise_unknown

__all__ = [
    "EASY_RELATIONS",
    "RELATIONS",
    "Adjacency",
    "Kinship",
    "Relation",
    "relation_steps",
    "sorted_unique",
]

People = NDArray[np.int32]
Positions = NDArray[np.int64]
Numbers = NDArray[np.integer[Any]]
T = TypeVar("T", bound=np.integer[Any])


@dataclass(frozen=True, slots=True)
class Relation:
    """One rule: follow the parts in order, then keep those of the gender.

    Attributes:
        name: As in PhantomWiki, with underscores.
        label: As in a question.
        plural: As in a question about how many.
        weight: What the relation adds to a question's difficulty; 0 where none asks for it.
        parts: Relations to follow in order; empty for the base relations.
        is_female: The gender to keep, or None for both.
        is_irreflexive: The person who is asked about is left out.
    """

    name: str
    label: str
    plural: str
    weight: int
    parts: tuple[str, ...] = ()
    is_female: bool | None = None
    is_irreflexive: bool = False


def _table() -> dict[str, Relation]:
    """Lay out the rules: name, weight, parts, gender (f, m or both) and irreflexive (!)."""
    rows = """
        parent 1
        child 1
        friend 1
        sibling 1 parent child !
        married 0 child parent !
        mother 1 parent f
        father 1 parent m
        daughter 1 child f
        son 1 child m
        sister 1 sibling f
        brother 1 sibling m
        wife 1 married f
        husband 1 married m
        aunt 2 parent sister
        uncle 2 parent brother
        niece 2 sibling daughter
        nephew 2 sibling son
        grandparent 2 parent parent
        grandmother 2 grandparent f
        grandfather 2 grandparent m
        grandchild 2 child child
        granddaughter 2 grandchild f
        grandson 2 grandchild m
        mother_in_law 2 married mother
        father_in_law 2 married father
        sister_in_law 2 married sister
        brother_in_law 2 married brother
        daughter_in_law 2 child wife
        son_in_law 2 child husband
        great_aunt 3 grandparent sister
        great_uncle 3 grandparent brother
        great_grandparent 3 grandparent parent
        great_grandmother 3 great_grandparent f
        great_grandfather 3 great_grandparent m
        great_grandchild 3 child grandchild
        great_granddaughter 3 great_grandchild f
        great_grandson 3 great_grandchild m
        cousin 3 parent sibling child !
        female_cousin 3 cousin f
        male_cousin 3 cousin m
        female_first_cousin_once_removed 4 cousin daughter !
        male_first_cousin_once_removed 4 cousin son !
        second_aunt 4 great_grandparent sister
        second_uncle 4 great_grandparent brother
        female_second_cousin 5 parent cousin child f !
        male_second_cousin 5 parent cousin child m !
    """
    table = {}
    for row in rows.strip().splitlines():
        name, weight, *rest = row.split()
        gender = True if "f" in rest else False if "m" in rest else None
        parts = tuple(part for part in rest if part not in ("f", "m", "!"))
        label, plural = _labels(name)
        table[name] = Relation(name, label, plural, int(weight), parts, gender, "!" in rest)
    return table


def _labels(name: str) -> tuple[str, str]:
    """Return how a question names one such person, and several."""
    head, law, _ = name.partition("_in_law")
    head, removed, _ = head.partition("_once_removed")
    head = head.replace("great_", "great-").replace("_", " ")
    plural = {"child": "children", "wife": "wives"}.get(head, f"{head}s")
    if head.endswith("child") and head != "child":
        plural = head.removesuffix("child") + "children"
    ending = (law or removed).replace("_", "-" if law else " ")
    return head + ending, plural + ending


RELATIONS = _table()
EASY_RELATIONS = tuple(name for name, relation in RELATIONS.items() if relation.weight == 1)


@cache
def relation_steps(name: str) -> tuple[str, ...]:
    """Return the facts to join, each a relation that articles state.

    Example:
        >>> relation_steps("cousin")
        ('parent', 'sibling', 'child')
    """
    if name not in RELATIONS:
        raise_unknown("relation", name, RELATIONS)
    parts = RELATIONS[name].parts
    if not parts or name in ("sibling", "married"):
        return (name,)
    return tuple(step for part in parts for step in relation_steps(part))


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Who stands in one base relation to whom: a row of sorted people for each person.

    Attributes:
        offsets: Where each person's row starts, shape (people + 1,).
        targets: All rows one after the other.
    """

    offsets: NDArray[np.int32]
    targets: People

    @classmethod
    def from_pairs(cls, sources: Numbers, targets: Numbers, people: int) -> "Adjacency":
        """Build from pairs in any order, repeats allowed."""
        keys = sorted_unique(sources.astype(np.int64) * people + targets)
        counts = np.bincount(keys // people, minlength=people)
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        return cls(offsets, (keys % people).astype(np.int32))

    def expand(self, people: People) -> tuple[Positions, People]:
        """Return pairs (position in ``people``, person), in order."""
        first = self.offsets[people]
        counts = self.offsets[people + 1] - first
        sources = np.repeat(np.arange(len(people)), counts)
        within = np.arange(len(sources)) - np.repeat(np.cumsum(counts) - counts, counts)
        return sources, self.targets[within + first[sources]]

    def row(self, person: int) -> People:
        """Return one person's row."""
        return self.targets[self.offsets[person] : self.offsets[person + 1]]

    def listed(self, person: int) -> list[int]:
        """Return one person's row as Python numbers, several times faster."""
        offsets, targets = self._views
        return targets[offsets[person] : offsets[person + 1]].tolist()

    @cached_property
    def _views(self) -> tuple[memoryview, memoryview]:
        return self.offsets.data, self.targets.data


def sorted_unique(values: NDArray[T]) -> NDArray[T]:
    """Return each value once, in order: ``np.unique`` without its detour through a hash table."""
    ordered = np.sort(values)
    keep = np.ones(len(ordered), np.bool_)
    keep[1:] = ordered[1:] != ordered[:-1]
    return ordered[keep]


class Kinship:
    """Answers every relation of ``RELATIONS`` for sets of people.

    Args:
        parents: Each person's parents.
        friends: Each person's friends; both directions are in it.
        is_female: Each person's gender, shape (people,).
    """

    def __init__(
        self, parents: Adjacency, friends: Adjacency, is_female: NDArray[np.bool_]
    ) -> None:
        self.is_female = is_female
        self.base = {"parent": parents, "friend": friends, "child": _inverse(parents)}

    @classmethod
    def from_pairs(
        cls,
        parents: Sequence[tuple[int, int]],
        friends: Sequence[tuple[int, int]],
        is_female: Sequence[bool],
    ) -> "Kinship":
        """Build from facts: pairs (child, parent), pairs of friends in one or both directions."""
        people = len(is_female)
        parent_pairs = np.array(parents, np.int64).reshape(-1, 2)
        friend_pairs = np.array(friends, np.int64).reshape(-1, 2)
        friend_pairs = np.concatenate([friend_pairs, friend_pairs[:, ::-1]])
        return cls(
            Adjacency.from_pairs(parent_pairs[:, 0], parent_pairs[:, 1], people),
            Adjacency.from_pairs(friend_pairs[:, 0], friend_pairs[:, 1], people),
            np.array(is_female, np.bool_),
        )

    def __len__(self) -> int:
        """Return the number of people."""
        return len(self.is_female)

    def pairs(self, relation: str, people: People) -> tuple[Positions, People]:
        """Return each pair (position in ``people``, person in the relation to them) once, in order.

        Raises:
            ConfigurationError: The relation is unknown.
        """
        if relation not in RELATIONS:
            raise_unknown("relation", relation, RELATIONS)
        return self._pairs(relation, people, {})

    def every_pair(
        self, people: People, relations: Iterable[str]
    ) -> dict[str, tuple[Positions, People]]:
        """Return the pairs of many relations, each rule followed once."""
        known: dict[str, tuple[Positions, People]] = {}
        return {name: self._pairs(name, people, known) for name in relations}

    def related(self, relation: str, people: Iterable[int]) -> People:
        """Return the set of all who stand in the relation to any of the people, sorted."""
        chosen = np.array(sorted(people), np.int32)
        return sorted_unique(self.pairs(relation, chosen)[1])

    def follow(self, people: Iterable[int], relations: Iterable[str]) -> People:
        """Return the set that a chain of relations leads to, the first one followed first."""
        reached = sorted_unique(np.array(list(people), np.int32))
        for relation in relations:
            reached = sorted_unique(self.pairs(relation, reached)[1])
        return reached

    def counts(self, relation: str, people: People) -> Positions:
        """Return for each of the people how many stand in the relation to them."""
        return np.bincount(self.pairs(relation, people)[0], minlength=len(people))

    def stated(self, step: str, person: int) -> list[int]:
        """Return whom a person's article names as parent, child, sibling, married or friend."""
        if step in self.base:
            return self.base[step].listed(person)
        there, back = RELATIONS[step].parts
        listed = self.base[back].listed
        reached = {other for one in self.base[there].listed(person) for other in listed(one)}
        reached.discard(person)
        return sorted(reached)

    def _pairs(
        self, name: str, people: People, known: dict[str, tuple[Positions, People]]
    ) -> tuple[Positions, People]:
        if name not in known:
            known[name] = self._follow_rule(RELATIONS[name], people, known)
        return known[name]

    def _follow_rule(
        self, rule: Relation, people: People, known: dict[str, tuple[Positions, People]]
    ) -> tuple[Positions, People]:
        if not rule.parts:
            return self.base[rule.name].expand(people)
        sources, reached = self._pairs(rule.parts[0], people, known)
        for part in rule.parts[1:]:
            found, reached = self._pairs(part, reached, {})
            sources = sources[found]
        if rule.is_female is not None:
            keep = self.is_female[reached] == rule.is_female
            sources, reached = sources[keep], reached[keep]
        if rule.is_irreflexive:
            keep = reached != people[sources]
            sources, reached = sources[keep], reached[keep]
        if len(rule.parts) == 1:
            return sources, reached
        keys = sorted_unique(sources * len(self) + reached)
        return keys // len(self), (keys % len(self)).astype(np.int32)


def _inverse(adjacency: Adjacency) -> Adjacency:
    people = len(adjacency.offsets) - 1
    sources = np.repeat(np.arange(people), np.diff(adjacency.offsets))
    return Adjacency.from_pairs(adjacency.targets, sources, people)
