"""Turns walks into questions: describes the start, and asks something about the end."""

from dataclasses import replace

from .articles import stated_relatives
from .edges import Edges
from .grammar import Chain, Question, QuestionKind
from .kinship import relation_steps
from .people import People
from .vocabulary import ATTRIBUTES
from .walks import FILTERS, Chance, draw_walk

__all__ = ["QuestionSource"]

_MOST_CHOICES = 8
_ABSENT = ("mother", "father", "sister", "brother", "daughter", "son", "friend")


class QuestionSource:
    """Draws questions one at a time.

    Args:
        people: Who is asked about.
        edges: What can be walked.
        chance: Gives the numbers that decide, each at least 0 and below 1.
        is_set: A description denotes all who fit it, and every answer is asked for.
    """

    def __init__(self, people: People, edges: Edges, chance: Chance, *, is_set: bool) -> None:
        self.people, self.edges, self.chance, self.is_set = people, edges, chance, is_set

    def draw(self, kind: QuestionKind, hops: int, constraints: int) -> Question | None:
        """Draw a question of a cell; None where the walk led to none."""
        match kind:
            case "comparison":
                return self._comparison(hops - 2, constraints)
            case "superlative":
                size = 2 + self._below(min(_MOST_CHOICES, hops - 1) - 1)
                return self._superlative(self._chain(hops - 1 - size, constraints), size)
            case "count" if self.is_set:
                return self._set_count(hops, constraints)
            case "chain":
                chain = self._chain(hops, constraints)
                return None if chain is None else Question(kind, (chain,), is_set=self.is_set)
        described = self._chain(hops - 1, constraints)
        if described is None:
            return None
        match kind:
            case "attribute":
                return self._attribute(described)
            case "yes_no":
                return self._yes_no(described)
            case "count":
                return self._count(described)
            case "unanswerable":
                return self._absent(described)

    def _chain(self, hops: int, constraints: int) -> Chain | None:
        """Draw a walk, some constraints at its start and the others along the way."""
        fewest = constraints if self.is_set else max(0, constraints - hops)
        at_start = fewest + self._below(constraints - fewest + 1)
        walk = draw_walk(
            self.people,
            self.edges,
            self.chance,
            hops=hops,
            filters=constraints - at_start,
            is_definite=not self.is_set,
        )
        if walk and at_start:
            walk = self._describe_start(walk, at_start)
        if walk and self.is_set:  # whom it was walked along does not matter
            walk = replace(walk, people=walk.people[:1])
        return walk

    def _describe_start(self, chain: Chain, constraints: int) -> Chain | None:
        """Put attributes in place of the start's name, if they fit nobody else."""
        names = list(ATTRIBUTES)
        while len(names) > constraints:
            del names[self._below(len(names))]
        chosen = tuple(names)
        alike = self.people.alike(chain.people[0], chosen)
        if self.is_set:
            return replace(chain, people=(int(alike[0]),), constraints=chosen)
        return replace(chain, constraints=chosen) if len(alike) == 1 else None

    def _attribute(self, chain: Chain) -> Question | None:
        asked = self._pick(tuple(ATTRIBUTES))
        if _is_told(chain, asked):
            return None
        return Question("attribute", (chain,), asked=asked, is_set=self.is_set)

    def _yes_no(self, chain: Chain) -> Question | None:
        """Suppose the right value, or as often the value of somebody else."""
        asked = self._pick(FILTERS)
        other = chain.end
        if self.chance() < 0.5:
            other = self._below(len(self.people))
            if self.people.key(other, asked) == self.people.key(chain.end, asked):
                return None
        if _is_told(chain, asked):
            return None
        return Question("yes_no", (chain,), asked=asked, value=self.people.value(other, asked))

    def _count(self, chain: Chain) -> Question | None:
        stated = stated_relatives(self.people, chain.end)
        if not stated:
            return None
        asked, others = stated[self._below(len(stated))]
        return Question("count", (chain,), asked=asked, choices=tuple(others))

    def _absent(self, chain: Chain) -> Question | None:
        spouse = "husband" if self.people.is_female(chain.end) else "wife"
        stated = {relation for relation, _ in stated_relatives(self.people, chain.end)}
        absent = tuple(name for name in (*_ABSENT, spouse) if name not in stated)
        if not absent:
            return None
        return Question("unanswerable", (chain,), asked=self._pick(absent))

    def _set_count(self, hops: int, constraints: int) -> Question | None:
        """Ask how many stand in any relation to each of those described."""
        fits = tuple(r for r in self.edges.relations if len(relation_steps(r)) <= hops)
        asked = self._pick(fits)
        chain = self._chain(hops - len(relation_steps(asked)), constraints)
        return None if chain is None else Question("count", (chain,), asked=asked, is_set=True)

    def _comparison(self, hops: int, constraints: int) -> Question | None:
        """Join two walks whose ends were not born on the same day."""
        first_hops, first_constraints = self._below(hops + 1), self._below(constraints + 1)
        first = self._chain(first_hops, first_constraints)
        second = self._chain(hops - first_hops, constraints - first_constraints)
        if first is None or second is None:
            return None
        is_told = _is_told(first, "birth") or _is_told(second, "birth")
        if is_told or self.people.key(first.end, "birth") == self.people.key(second.end, "birth"):
            return None
        return Question("comparison", (first, second))

    def _superlative(self, chain: Chain | None, size: int) -> Question | None:
        """Ask for the oldest or youngest of several who stand in one stated relation."""
        if chain is None or _is_told(chain, "birth"):
            return None
        stated = stated_relatives(self.people, chain.end)
        groups = [(name, others) for name, others in stated if len(others) == size]
        if not groups:
            return None
        asked, others = groups[self._below(len(groups))]
        if len({self.people.key(other, "birth") for other in others}) < size:
            return None
        value = self._pick(("oldest", "youngest"))
        return Question("superlative", (chain,), asked=asked, value=value, choices=tuple(others))

    def _below(self, bound: int) -> int:
        return int(self.chance() * bound)

    def _pick(self, names: tuple[str, ...]) -> str:
        return names[self._below(len(names))]


def _is_told(chain: Chain, attribute: str) -> bool:
    """Tell whether a description already gives this attribute of the person described."""
    told = chain.filters[-1:] if chain.relations else chain.constraints
    return attribute in told
