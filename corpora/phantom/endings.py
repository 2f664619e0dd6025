"""Turns walks into questions: describes the start, and asks something about the end."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .articles import stated_relatives
from .edges import Edges
from .grammar import Chain, Question, QuestionKind
from .kinship import relation_steps
from .people import People
from .vocabulary import ATTRIBUTES
from .walks import FILTERS, draw_walks

__all__ = ["draw_questions"]

_MOST_CHOICES = 8
_ABSENT = ("mother", "father", "sister", "brother", "daughter", "son", "friend")


def draw_questions(
    people: People,
    edges: Edges,
    rng: np.random.Generator,
    *,
    cell: tuple[QuestionKind, int, int],
    is_set: bool,
) -> list[Question]:
    """Draw a batch of questions of one kind, number of hops and number of constraints."""
    return _Batch(people, edges, rng, is_set).draw(*cell)


class _Batch:
    def __init__(
        self, people: People, edges: Edges, rng: np.random.Generator, is_set: bool
    ) -> None:
        self.people, self.edges, self.rng, self.is_set = people, edges, rng, is_set

    def draw(self, kind: QuestionKind, hops: int, constraints: int) -> list[Question]:
        """Draw questions of a cell."""
        if kind == "chain":
            chains = self._chains(hops, constraints)
            return [Question(kind, (chain,), is_set=self.is_set) for chain in chains]
        if kind == "comparison":
            return list(self._comparisons(hops - 2, constraints))
        if kind == "superlative":
            return list(self._superlatives(hops, constraints))
        if kind == "count" and self.is_set:
            return list(self._set_counts(hops, constraints))
        ask = {
            "attribute": self._ask_attribute,
            "yes_no": self._ask_yes_no,
            "count": self._ask_count,
            "unanswerable": self._ask_absent,
        }[kind]
        asked = [ask(chain) for chain in self._chains(hops - 1, constraints)]
        return [question for question in asked if question is not None]

    def _chains(self, hops: int, constraints: int) -> list[Chain]:
        """Draw walks, some constraints at the start and the others along the way."""
        most_filters = 0 if self.is_set else hops
        at_start = int(self.rng.integers(max(0, constraints - most_filters), constraints + 1))
        walks = draw_walks(
            self.people,
            self.edges,
            self.rng,
            hops=hops,
            filters=constraints - at_start,
            is_definite=not self.is_set,
        )
        if not at_start:
            return walks
        described = [self._describe_start(chain, at_start) for chain in walks]
        return [chain for chain in described if chain is not None]

    def _describe_start(self, chain: Chain, constraints: int) -> Chain | None:
        """Put attributes in place of the start's name, if they fit nobody else."""
        order = self.rng.permutation(len(ATTRIBUTES))[:constraints]
        chosen = tuple(name for place, name in enumerate(ATTRIBUTES) if place in order)
        if not self.is_set and len(self.people.alike(chain.people[0], chosen)) > 1:
            return None
        return replace(chain, constraints=chosen)

    def _ask_attribute(self, chain: Chain) -> Question | None:
        asked = self._pick(tuple(ATTRIBUTES))
        if _is_told(chain, asked):
            return None
        return Question("attribute", (chain,), asked=asked, is_set=self.is_set)

    def _ask_yes_no(self, chain: Chain) -> Question | None:
        """Suppose the right value, or as often the value of somebody else."""
        asked = self._pick(FILTERS)
        other = chain.end
        if self.rng.random() < 0.5:
            other = int(self.rng.integers(len(self.people)))
            if self.people.key(other, asked) == self.people.key(chain.end, asked):
                return None
        if _is_told(chain, asked):
            return None
        value = self.people.value(other, asked)
        return Question("yes_no", (chain,), asked=asked, value=value)

    def _ask_count(self, chain: Chain) -> Question | None:
        stated = stated_relatives(self.people, chain.end)
        if not stated:
            return None
        asked, others = stated[self.rng.integers(len(stated))]
        return Question("count", (chain,), asked=asked, choices=tuple(others))

    def _ask_absent(self, chain: Chain) -> Question | None:
        spouse = "husband" if self.people.is_female(chain.end) else "wife"
        stated = {relation for relation, _ in stated_relatives(self.people, chain.end)}
        absent = tuple(name for name in (*_ABSENT, spouse) if name not in stated)
        if not absent:
            return None
        return Question("unanswerable", (chain,), asked=self._pick(absent))

    def _set_counts(self, hops: int, constraints: int) -> Iterator[Question]:
        """Ask how many there are in any relation to all who are described."""
        fits = tuple(r for r in self.edges.relations if len(relation_steps(r)) <= hops)
        if fits:
            asked = self._pick(fits)
            for chain in self._chains(hops - len(relation_steps(asked)), constraints):
                yield Question("count", (chain,), asked=asked, is_set=True)

    def _comparisons(self, hops: int, constraints: int) -> Iterator[Question]:
        """Pair walks whose ends were not born on the same day."""
        first_hops = int(self.rng.integers(hops + 1))
        first_constraints = int(self.rng.integers(constraints + 1))
        firsts = self._chains(first_hops, first_constraints)
        seconds = self._chains(hops - first_hops, constraints - first_constraints)
        birth = self.people.birth
        for first, second in zip(firsts, seconds, strict=False):
            is_told = _is_told(first, "birth") or _is_told(second, "birth")
            if birth[first.end] != birth[second.end] and not is_told:
                yield Question("comparison", (first, second))

    def _superlatives(self, hops: int, constraints: int) -> Iterator[Question]:
        """Ask for the oldest or youngest of several who stand in one stated relation."""
        size = int(self.rng.integers(2, min(_MOST_CHOICES, hops - 1) + 1))
        birth = self.people.birth
        for chain in self._chains(hops - 1 - size, constraints):
            groups = stated_relatives(self.people, chain.end)
            fits = [(name, others) for name, others in groups if len(others) == size]
            if not fits or _is_told(chain, "birth"):
                continue
            asked, others = fits[self.rng.integers(len(fits))]
            value = ("oldest", "youngest")[self.rng.integers(2)]
            if len(set(birth[others].tolist())) == size:
                yield Question(
                    "superlative", (chain,), asked=asked, value=value, choices=tuple(others)
                )

    def _pick(self, names: tuple[str, ...]) -> str:
        return names[self.rng.integers(len(names))]


def _is_told(chain: Chain, attribute: str) -> bool:
    """Tell whether a description already gives this attribute of the person described."""
    told = chain.filters[-1:] if chain.relations else chain.constraints
    return attribute in told
