"""Which questions are wanted, and how one is drawn: from its answer backwards to the names.

A description is built from the end: first the entity it denotes, then a clue that fits nothing
else, then the clue's own target, as hyperlinks are walked in reverse. Obfuscation goes on from
the names that are left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ConfigurationError, raise_unknown
from .edges import MOST_LISTED
from .graph import Graph
from .schema import Relation
from .terms import KINDS, Clue, Kind, Question, Term

__all__ = ["Cell", "QuestionDrawer", "QuestionSettings"]

Cell = tuple[Kind, int]
Link = tuple[str, bool, int]  # relation, is_object, target: see Clue
_DEEPEST = 2  # descriptions put into descriptions by obfuscation
_TRIES = 12
_ATTRIBUTE_SHARE = 0.3  # of chains that end in a value
_SINGLE_CLUE_SHARE = 0.6  # of obfuscations that first try one clue
_LONGEST_LIST = MOST_LISTED


@dataclass(frozen=True, slots=True)
class QuestionSettings:
    """Which questions are wanted.

    Attributes:
        kinds: Some of ``KINDS``.
        hops: Fewest and most facts of a chain before obfuscation, 2 to 6. Where both ends' articles
            state an edge, nearly every chain of two facts stands whole in the article between them
            and is turned away; obfuscation, or another coverage, makes them plentiful.
        constraints: Fewest and most clues of a conjunction, 2 to 4.
        obfuscation: The chance that a mention is replaced by a description, 0 to 1.

    Raises:
        ConfigurationError: A value is outside its range.
    """

    kinds: tuple[Kind, ...] = KINDS
    hops: tuple[int, int] = (2, 4)
    constraints: tuple[int, int] = (2, 3)
    obfuscation: float = 0.0

    def __post_init__(self) -> None:
        """Check every value."""
        if not self.kinds or isinstance(self.kinds, str):
            raise ConfigurationError(f"kinds must be some of {KINDS}, got {self.kinds!r}")
        for kind in self.kinds:
            if kind not in KINDS:
                raise_unknown("kind", kind, KINDS)
        _check_range("hops", self.hops, 2, 6)
        _check_range("constraints", self.constraints, 2, 4)
        is_number = isinstance(self.obfuscation, int | float)
        if not is_number or isinstance(self.obfuscation, bool) or not 0 <= self.obfuscation <= 1:
            raise ConfigurationError(
                f"obfuscation must be between 0 and 1, got {self.obfuscation!r}"
            )

    @property
    def cells(self) -> list[Cell]:
        """The cells to balance: a kind, and its hops or constraints where it has several."""
        ranges = {"chain": self.hops, "conjunction": self.constraints}
        return [
            (kind, size)
            for kind in sorted(set(self.kinds), key=KINDS.index)
            for size in range(ranges.get(kind, (1, 1))[0], ranges.get(kind, (1, 1))[1] + 1)
        ]


def _check_range(name: str, value: tuple[int, int], low: int, high: int) -> None:
    if not isinstance(value, tuple) or [type(end) for end in value] != [int, int]:
        raise ConfigurationError(f"{name} must be a pair of whole numbers, got {value!r}")
    if not low <= value[0] <= value[1] <= high:
        raise ConfigurationError(
            f"{name} must be (fewest, most) with {low} <= fewest <= most <= {high}, got {value!r}"
        )


class QuestionDrawer:
    """Draws questions of one cell.

    Args:
        graph: What is asked about.
        obfuscation: The chance that a mention is replaced by a description.
        rng: Where every draw comes from.
    """

    def __init__(self, graph: Graph, obfuscation: float, rng: np.random.Generator) -> None:
        self._graph = graph
        self._obfuscation = obfuscation
        self._rng = rng
        self._used: set[int] = set()
        self._hidden = 0

    def draw(self, cell: Cell) -> Question | None:
        """Return a question, or None where the draw came to a dead end."""
        kind, size = cell
        self._used, self._hidden = set(), 0
        draws = {
            "simple": self._draw_simple,
            "parallel": self._draw_parallel,
            "comparison": self._draw_comparison,
            "date": self._draw_date,
            "unanswerable": self._draw_unanswerable,
        }
        if kind == "chain":
            question = self._draw_chain(size)
        elif kind == "conjunction":
            question = self._draw_conjunction(size)
        elif kind in draws:
            question = draws[kind]()
        else:
            question = self._draw_enumeration(kind)
        if question is None or kind == "simple":
            return question
        terms = tuple(self._hide(term, _DEEPEST) for term in question.terms)
        return replace(question, terms=terms, hidden=self._hidden)

    def _draw_simple(self) -> Question | None:
        entity = self._entity()
        attribute = self._attribute(entity)
        if attribute and self._rng.random() < 0.5:
            return Question("simple", (self._named(entity),), (attribute,))
        term = self._describe(entity, 1)
        return Question("simple", (term,)) if term else None

    def _draw_chain(self, hops: int) -> Question | None:
        entity = self._entity()
        attribute = self._attribute(entity)
        ends_in_value = attribute and self._rng.random() < _ATTRIBUTE_SHARE
        term = self._describe(entity, hops - 1 if ends_in_value else hops)
        asked = (attribute,) if ends_in_value else ()
        return Question("chain", (term,), asked) if term else None

    def _draw_conjunction(self, constraints: int) -> Question | None:
        entity = self._entity()
        self._used.add(entity)
        links = [(self._fitting(link), link) for link in self._links(entity)]
        links = [(fitting, link) for fitting, link in links if len(fitting) > 1]
        if len(links) < constraints:
            return None
        for _ in range(_TRIES):
            places = self._rng.permutation(len(links))[:constraints].tolist()
            chosen = sorted((links[place] for place in places), key=lambda row: -len(row[0]))
            if _narrows([fitting for fitting, _ in chosen]):
                return self._join(entity, [link for _, link in chosen])
        return None

    def _join(self, entity: int, links: list[Link]) -> Question | None:
        """Return the conjunction of these clues, every target described in turn."""
        clues = []
        for relation, is_object, target in links:
            described = self._describe(target, 1)
            if described is None:
                return None
            clues.append(Clue(relation, is_object, described))
        return Question("conjunction", (self._named(entity, tuple(clues)),))

    def _draw_parallel(self) -> Question | None:
        first, second = (self._describe(self._entity(), 2) for _ in range(2))
        if first is None or second is None:
            return None
        return Question("parallel", (first, second))

    def _draw_comparison(self) -> Question | None:
        entity = self._entity()
        attribute = self._attribute(entity)
        block = self._graph.blocks[self._graph.type_of(entity).name]
        other = block[int(self._rng.integers(len(block)))]
        if not attribute or other == entity:
            return None
        if self._graph.number(entity, attribute) == self._graph.number(other, attribute):
            return None
        first, second = self._describe(entity, 2), self._describe(other, 2)
        if first is None or second is None:
            return None
        is_least = bool(self._rng.random() < 0.5)
        return Question("comparison", (first, second), (attribute,), is_least=is_least)

    def _draw_date(self) -> Question | None:
        terms, names = [], []
        for _ in range(2):
            entity = self._entity()
            kind = self._graph.type_of(entity).name
            date, term = self._graph.schema.first_date(kind), self._describe(entity, 1)
            if date is None or term is None:
                return None
            terms.append(term)
            names.append(date.name)
        return Question("date", tuple(terms), tuple(names))

    def _draw_enumeration(self, kind: Kind) -> Question | None:
        """Draw a count, a list or a superlative over what a relation leads to."""
        drawn = self._enumerable()
        if drawn is None:
            return None
        entity, relation, is_inverse, others = drawn
        self._used.update(others)
        term = self._describe(entity, 1 if kind == "superlative" else 2)
        if term is None:
            return None
        question = Question(kind, (term,), (), relation.name, is_inverse)
        if kind != "superlative":
            return question
        attribute = self._attribute(others[0])
        if not attribute:
            return None
        values = [self._graph.number(other, attribute) for other in others]
        if len(set(values)) < len(values):
            return None
        is_least = bool(self._rng.random() < 0.5)
        return replace(question, attributes=(attribute,), is_least=is_least)

    def _draw_unanswerable(self) -> Question | None:
        entity = self._entity()
        kind = self._graph.type_of(entity).name
        names = [(name, False) for name in self._graph.relations_from(kind)]
        names += [(name, True) for name in self._graph.relations_to(kind)]
        for name, is_inverse in self._shuffled(names):
            relation = self._graph.schema.relation[name]
            is_one = relation.has_one_subject if is_inverse else relation.has_one_object
            if is_one and not self._graph.others(entity, name, is_inverse=is_inverse):
                term = self._describe(entity, 2)
                return Question("unanswerable", (term,), (), name, is_inverse) if term else None
        return None

    def _enumerable(self) -> tuple[int, Relation, bool, Sequence[int]] | None:
        """Return an entity that a relation joins to a few others, the number drawn evenly."""
        wanted = int(self._rng.integers(2, _LONGEST_LIST + 1))
        many = [(r, False) for r in self._graph.schema.relations if not r.has_one_object]
        many += [(r, True) for r in self._graph.schema.relations if not r.has_one_subject]
        if not many:
            return None
        relation, is_inverse = many[int(self._rng.integers(len(many)))]
        block = self._graph.blocks[relation.range if is_inverse else relation.domain]
        for _ in range(_TRIES):
            entity = block[int(self._rng.integers(len(block)))]
            others = self._graph.others(entity, relation.name, is_inverse=is_inverse)
            if len(others) == wanted:
                return entity, relation, is_inverse, others
        return None

    def _describe(self, entity: int, length: int) -> Term | None:
        """Return a description of so many clues, each inside the other, that ends in a name."""
        if entity in self._used:
            return None
        self._used.add(entity)
        if length == 0:
            return self._named(entity)
        for relation, is_object, target in self._links(entity):
            if len(self._graph.others(target, relation, is_inverse=not is_object)) == 1:
                inner = self._describe(target, length - 1)
                if inner is not None:
                    return self._named(entity, (Clue(relation, is_object, inner),))
                if length > 1:
                    break
        self._used.discard(entity)
        return None

    def _hide(self, term: Term, depth: int) -> Term:
        """Replace names in a term by descriptions, each with the same chance."""
        if term.clues:
            clues = [replace(clue, target=self._hide(clue.target, depth)) for clue in term.clues]
            return replace(term, clues=tuple(clues))
        if depth == 0 or self._rng.random() >= self._obfuscation:
            return term
        self._used.discard(term.entity)
        described = None
        if self._rng.random() < _SINGLE_CLUE_SHARE:
            described = self._describe(term.entity, 1)
        described = described or self._describe_by_two(term.entity)
        self._used.add(term.entity)
        if described is None:
            return term
        self._hidden += 1
        return self._hide(described, depth - 1)

    def _describe_by_two(self, entity: int) -> Term | None:
        """Return a description of two clues, of which neither alone would do."""
        links: list[tuple[Clue, frozenset[int]]] = []
        for relation, is_object, target in self._links(entity):
            others = self._fitting((relation, is_object, target))
            if len(others) < 2 or target in self._used:
                continue
            for clue, fitting in links:
                if clue.target.entity != target and others & fitting == {entity}:
                    self._used.update((clue.target.entity, target))
                    second = Clue(relation, is_object, self._named(target))
                    return self._named(entity, (clue, second))
            links.append((Clue(relation, is_object, self._named(target)), others))
        return None

    def _fitting(self, link: Link) -> frozenset[int]:
        relation, is_object, target = link
        return frozenset(self._graph.others(target, relation, is_inverse=not is_object))

    def _links(self, entity: int) -> Iterator[Link]:
        """Give one neighbour a relation, in random order, that the question does not use yet."""
        kind = self._graph.type_of(entity).name
        names = [(name, False) for name in self._graph.relations_from(kind)]
        names += [(name, True) for name in self._graph.relations_to(kind)]
        for name, is_object in self._shuffled(names):
            targets = self._graph.others(entity, name, is_inverse=is_object)
            if targets:
                target = targets[int(self._rng.random() * len(targets))]
                if target not in self._used:
                    yield name, is_object, target

    def _shuffled(self, names: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
        keys = self._rng.random(len(names)).tolist()
        return [name for _, name in sorted(zip(keys, names, strict=True))]

    def _entity(self) -> int:
        return int(self._rng.random() * len(self._graph))

    def _attribute(self, entity: int) -> str:
        entries = self._graph.schema.attributes_of(self._graph.type_of(entity).name)
        return entries[int(self._rng.random() * len(entries))].name if entries else ""

    def _named(self, entity: int, clues: tuple[Clue, ...] = ()) -> Term:
        return Term(entity, self._graph.type_of(entity).name, clues)


def _narrows(fittings: list[frozenset[int]]) -> bool:
    """Tell whether each set leaves fewer than those before it, and all of them one."""
    left = fittings[0]
    for fitting in fittings[1:]:
        narrower = left & fitting
        if len(narrower) == len(left):
            return False
        left = narrower
    return len(left) == 1
