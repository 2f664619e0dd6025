"""From a question to a task: its answers, and the articles that prove them, in order.

A proof has one step a document: what to search for, and the facts that the document states. A
description is followed from the inside out. Each of its clues is read in the article of whatever
is known already, if that states it; else in the article of the entity that is described.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..tasks import ProofStep, Task
from .articles import KnowledgeCorpus
from .graph import Graph, document_id
from .schema import Attribute, Relation
from .terms import Question, Term

__all__ = ["UNKNOWN", "Difficulty", "Fact", "Proof", "prove", "question_answers"]

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How hard a task is.

    Attributes:
        hops: Facts that must be joined; an enumeration counts as one.
        constraints: Clues beyond the first of each description.
        fan_out: The most entities that one clue, or an enumeration, fits.
        obfuscation: Mentions that were replaced by descriptions.
        searches: Searches of the proof, which the oracle plays.
    """

    hops: int
    constraints: int
    fan_out: int
    obfuscation: int
    searches: int


class Fact(NamedTuple):
    """An edge (subject, relation, object).

    With object -1, what only the subject's own article tells: an attribute's value, or that it
    has no such relation.
    """

    subject: int
    predicate: str
    object: int


@dataclass(frozen=True, slots=True)
class Proof:
    """A task with all that it rests on.

    Attributes:
        question: Before it was put into words.
        task: The task.
        difficulty: How hard it is.
        facts: Every fact that is used.
    """

    question: Question
    task: Task
    difficulty: Difficulty
    facts: tuple[Fact, ...]


def prove(corpus: KnowledgeCorpus, question: Question, task_id: str) -> Proof:
    """Return the task of a question, with its shortest evidence."""
    graph, steps = corpus.graph, _Steps(corpus)
    for term in question.terms:
        for part in term.parts():
            steps.describe(part)
    steps.conclude(question)
    proof = steps.to_proof()
    difficulty = Difficulty(
        hops=steps.hops,
        constraints=sum(
            max(0, len(part.clues) - 1) for term in question.terms for part in term.parts()
        ),
        fan_out=_fan_out(graph, question),
        obfuscation=question.hidden,
        searches=len(proof),
    )
    task = Task(
        id=task_id,
        question=question.words(graph),
        answers=tuple(question_answers(graph, question)),
        evidence=tuple(step.document for step in proof),
        hops=difficulty.hops,
        kind=question.kind,
        proof=proof,
        level=str(difficulty.searches),
        is_answer_set=question.is_answer_set,
    )
    return Proof(question, task, difficulty, tuple(dict.fromkeys(steps.facts)))


def question_answers(graph: Graph, question: Question) -> list[str]:
    """Return the answers of a question whose terms denote what they say, sorted."""
    ends, names = [term.entity for term in question.terms], question.attributes
    if question.kind == "date":
        days = [graph.number(end, name) for end, name in zip(ends, names, strict=True)]
        return [str(abs(days[0] - days[1]))]
    if question.kind in ("simple", "chain", "conjunction", "parallel"):
        if names:
            return [graph.value(ends[0], _attribute(graph, ends[0], names[0]))]
        return sorted(map(graph.name, ends))
    found: Sequence[int] = ends
    if question.kind != "comparison":
        found = graph.others(ends[0], question.relation, is_inverse=question.is_inverse)
    if question.kind == "count":
        return [str(len(found))]
    if question.kind in ("comparison", "superlative"):
        choose = min if question.is_least else max
        return [graph.name(choose(found, key=lambda end: graph.number(end, names[0])))]
    return sorted(map(graph.name, found)) or [UNKNOWN]


class _Steps:
    """The documents to read, in order, each with the words that find it and its facts."""

    def __init__(self, corpus: KnowledgeCorpus) -> None:
        self.graph = corpus.graph
        self.facts: list[Fact] = []
        self.hops = 0
        self._queries: dict[int, str] = {}
        self._told: dict[int, list[str]] = {}

    def describe(self, term: Term) -> None:
        """Read what leads from the targets of a description to what it denotes."""
        relations = self.graph.schema.relation
        found_by = [
            f"{self.graph.name(clue.target.entity)} "
            f"{_sentence_words(relations[clue.relation], is_inverse=clue.is_object)}"
            for clue in term.clues
        ]
        for clue in term.clues:
            known, entity = clue.target.entity, term.entity
            ends = (known, entity) if clue.is_object else (entity, known)
            in_entity = self._is_stated(entity, ends, clue.relation)
            in_known = self._is_stated(known, ends, clue.relation)
            place = known if in_known and (len(term.clues) == 1 or not in_entity) else entity
            if place == known:
                label = relations[clue.relation].label(is_inverse=not clue.is_object)
                self._read(known, f"{self.graph.name(known)} {label}")
            else:
                self._read(entity, f"{term.type} {' '.join(found_by)}")
            self._tell_edge(place, relations[clue.relation], ends)
            self.hops += 1

    def conclude(self, question: Question) -> None:
        """Read what the question asks of its terms."""
        ends: Sequence[int] = [term.entity for term in question.terms]
        if question.relation:
            ends = self._enumerate(question, ends[0])
            self.hops += 1
        if question.kind in ("count", "list", "unanswerable"):
            return
        for place, end in enumerate(ends):
            if question.attributes:
                names = question.attributes
                self._value(end, names[place if question.kind == "date" else 0])
        if question.attributes:
            self.hops += 1 if question.kind == "superlative" else len(ends)

    def to_proof(self) -> tuple[ProofStep, ...]:
        """Return the steps."""
        return tuple(
            ProofStep(query, document_id(entity), " ".join(self._told[entity]))
            for entity, query in self._queries.items()
        )

    def _enumerate(self, question: Question, end: int) -> Sequence[int]:
        """Read everything that a relation leads to: in one article if that states it all."""
        graph, relation = self.graph, self.graph.schema.relation[question.relation]
        others = graph.others(end, relation.name, is_inverse=question.is_inverse)
        edges = [(other, end) if question.is_inverse else (end, other) for other in others]
        label = relation.label(is_inverse=question.is_inverse)
        query = f"{graph.name(end)} {label}"
        if all(self._is_stated(end, edge, relation.name) for edge in edges):
            self._read(end, query)
            if not others:
                self.facts.append(Fact(end, relation.name, -1))
                self._told[end].append(f"No {label} of {graph.name(end)} is stated.")
            for edge in edges:
                self._tell_edge(end, relation, edge)
            return others
        says = _sentence_words(relation, is_inverse=not question.is_inverse)
        for other, edge in zip(others, edges, strict=True):
            place = end if self._is_stated(end, edge, relation.name) else other
            self._read(place, query if place == end else f"{graph.name(end)} {says}")
            self._tell_edge(place, relation, edge)
        return others

    def _value(self, entity: int, name: str) -> None:
        attribute = _attribute(self.graph, entity, name)
        who = self.graph.name(entity)
        self._read(entity, f"{who} {attribute.noun}")
        value = self.graph.value(entity, attribute)
        self._told[entity].append(f"The {attribute.noun} of {who} is {value}.")
        self.facts.append(Fact(entity, name, -1))

    def _read(self, entity: int, query: str) -> None:
        self._queries.setdefault(entity, query)
        self._told.setdefault(entity, [])

    def _tell_edge(self, place: int, relation: Relation, ends: tuple[int, int]) -> None:
        subject, end = map(self.graph.name, ends)
        self._told[place].append(f"The {relation.noun} of {subject} is {end}.")
        self.facts.append(Fact(ends[0], relation.name, ends[1]))

    def _is_stated(self, place: int, ends: tuple[int, int], relation: str) -> bool:
        edges = self.graph.edges[relation]
        edge = edges.edge(*ends)
        assert edge is not None
        return bool((edges.in_subject if place == ends[0] else edges.in_object)[edge])


def _sentence_words(relation: Relation, *, is_inverse: bool) -> str:
    """Return the words of the sentences that may state a relation, without their slots."""
    forms = relation.inverse_says if is_inverse else relation.says
    text = " ".join(forms).replace("{s}", "").replace("{o}", "").replace(".", "")
    return " ".join(dict.fromkeys(text.split()))


def _attribute(graph: Graph, entity: int, name: str) -> Attribute:
    entries = graph.schema.attributes_of(graph.type_of(entity).name)
    return next(entry for entry in entries if entry.name == name)


def _fan_out(graph: Graph, question: Question) -> int:
    sizes = [
        len(graph.others(clue.target.entity, clue.relation, is_inverse=not clue.is_object))
        for clue in question.clues
    ]
    if question.relation:
        end = question.terms[0].entity
        sizes.append(len(graph.others(end, question.relation, is_inverse=question.is_inverse)))
    return max([1, *sizes])
