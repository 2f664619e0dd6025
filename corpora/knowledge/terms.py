"""Questions before they are put into words: terms that denote entities, and what is asked of them.

A term is an entity by its name, or a description: a type and clues, each of which joins it by one
relation to another term. Words, proofs and the solver's form all come from the same term.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from .graph import Graph, document_id

__all__ = ["KINDS", "Clue", "Kind", "Question", "Term"]

Kind = Literal[
    "simple",
    "chain",
    "conjunction",
    "parallel",
    "comparison",
    "count",
    "superlative",
    "date",
    "list",
    "unanswerable",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Clue:
    """One thing that a description says.

    Attributes:
        relation: The relation's name.
        is_object: Whoever is described is the object of the relation, and the target the subject.
        target: What the relation leads to.
    """

    relation: str
    is_object: bool
    target: "Term"


@dataclass(frozen=True, slots=True)
class Term:
    """An entity, by its name or by a description that fits nothing else.

    Attributes:
        entity: Which entity it denotes.
        type: The name of its type.
        clues: What describes it; empty where it is named.
    """

    entity: int
    type: str
    clues: tuple[Clue, ...] = ()

    def parts(self) -> Iterator["Term"]:
        """Give the term and every term inside it, the innermost first."""
        for clue in self.clues:
            yield from clue.target.parts()
        yield self

    def words(self, graph: Graph, *, is_inner: bool = False) -> str:
        """Put the term into words; inside another description clues stand in brackets."""
        if not self.clues:
            return graph.name(self.entity)
        if len(self.clues) == 1:
            clue = self.clues[0]
            phrase = graph.schema.relation[clue.relation].phrase(is_inverse=not clue.is_object)
            return f"the {phrase} {clue.target.words(graph, is_inner=True)}"
        told = [f"whose {_told(graph, clue)}" for clue in self.clues]
        clues = " and ".join(told)
        return f"the {self.type} ({clues})" if is_inner else f"the {self.type} {clues}"

    def to_dict(self) -> dict[str, Any]:
        """Return the term as plain data: what is said, and not what a description denotes."""
        if not self.clues:
            return {"entity": document_id(self.entity)}
        clues = [
            {
                "relation": clue.relation,
                "is_object": clue.is_object,
                "target": clue.target.to_dict(),
            }
            for clue in self.clues
        ]
        return {"type": self.type, "clues": clues}


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and all that decides its answer.

    Attributes:
        kind: One of ``KINDS``.
        terms: What is asked about: two or three for parallel, comparison and date, else one.
        attributes: What is asked for or compared: for date one a term, else one at most.
        relation: For count, list, superlative and unanswerable, what is enumerated.
        is_inverse: The term is the object of that relation.
        is_least: The least is asked for, by comparison and superlative.
        hidden: How many mentions were replaced by descriptions.
    """

    kind: Kind
    terms: tuple[Term, ...]
    attributes: tuple[str, ...] = ()
    relation: str = ""
    is_inverse: bool = False
    is_least: bool = False
    hidden: int = 0

    @property
    def is_answer_set(self) -> bool:
        """Tell whether every answer is asked for."""
        return self.kind in ("list", "parallel")

    @property
    def clues(self) -> list[Clue]:
        """Every clue of every term."""
        return [clue for term in self.terms for part in term.parts() for clue in part.clues]

    @property
    def named(self) -> list[int]:
        """The entities that the question names."""
        return [part.entity for t in self.terms for part in t.parts() if not part.clues]

    def words(self, graph: Graph) -> str:
        """Put the question into words."""
        is_inner = bool(self.relation) or len(self.terms) > 1 or bool(self.attributes)
        told = [term.words(graph, is_inner=is_inner) for term in self.terms]
        if self.kind in ("simple", "chain", "conjunction"):
            if self.attributes:
                return f"What is {self._noun(graph, 0)} of {told[0]}?"
            return f"{_asks(self.terms[0].type)} is {told[0]}?"
        if self.kind == "parallel":
            return f"Name each of the following: {'; '.join(told)}."
        if self.kind == "comparison":
            return f"Which has the {self._degree(graph, 'er')}: {told[0]}, or {told[1]}?"
        if self.kind == "date":
            ends = [f"{self._noun(graph, place)} of {text}" for place, text in enumerate(told)]
            return f"How many days lie between {ends[0]} and {ends[1]}?"
        relation = graph.schema.relation[self.relation]
        phrase = relation.phrase(is_inverse=self.is_inverse)
        plural = relation.label(is_inverse=self.is_inverse, is_plural=True)
        if self.kind == "count":
            return f"How many {plural} does {told[0]} have?"
        if self.kind == "superlative":
            return f"Of the {plural} of {told[0]}, which has the {self._degree(graph, 'est')}?"
        if self.kind == "list":
            return f"List every {phrase} {told[0]}."
        return f"{_asks(self.asked_type(graph, 0))} is the {phrase} {told[0]}?"

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain data, without its answer, for ``solve``."""
        return {
            "kind": self.kind,
            "terms": [term.to_dict() for term in self.terms],
            "attributes": list(self.attributes),
            "relation": self.relation,
            "is_inverse": self.is_inverse,
            "is_least": self.is_least,
        }

    def asked_type(self, graph: Graph, place: int) -> str:
        """Return the type of what is asked for, or whose attribute at a place is."""
        if not self.relation:
            return self.terms[place].type
        relation = graph.schema.relation[self.relation]
        return relation.domain if self.is_inverse else relation.range

    def _noun(self, graph: Graph, place: int) -> str:
        kind = self.asked_type(graph, place)
        entries = graph.schema.attributes_of(kind)
        noun = next(entry.noun for entry in entries if entry.name == self.attributes[place])
        return f"the {noun}"

    def _degree(self, graph: Graph, ending: str) -> str:
        noun = self._noun(graph, 0).removeprefix("the ")
        entries = graph.schema.attributes_of(self.asked_type(graph, 0))
        is_date = any(e.kind == "date" for e in entries if e.name == self.attributes[0])
        low, high = ("earli", "lat") if is_date else ("low", "high")
        return f"{low if self.is_least else high}{ending} {noun}"


def _asks(type_name: str) -> str:
    return "Who" if type_name == "person" else "What"


def _told(graph: Graph, clue: Clue) -> str:
    relation = graph.schema.relation[clue.relation]
    is_one = relation.has_one_subject if clue.is_object else relation.has_one_object
    label = relation.label(is_inverse=clue.is_object, is_plural=not is_one)
    return f"{label} {'is' if is_one else 'include'} {clue.target.words(graph, is_inner=True)}"
