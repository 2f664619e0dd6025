"""From a question to a task: its answer, and the articles that prove it, in order.

A proof has one step a document: what to search for (the name of the person whose article it is,
or the words of the constraints that describe them) and the facts that the article states. A
relation that no article states is taken apart into stated ones along one shortest path.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..tasks import ProofStep, Task
from .articles import document_id
from .facts import Facts
from .grammar import Chain, Question
from .kinship import RELATIONS, relation_steps
from .people import People

__all__ = ["UNKNOWN", "answer_people", "answer_set", "definite_task", "set_task"]

UNKNOWN = "unknown"


def definite_task(facts: Facts, question: Question, task_id: str, most: int) -> Task | None:
    """Return the task of a question with one answer; None if its proof takes too many articles.

    None too if a person is passed twice: fewer facts than the question's hops would then do.
    """
    world, proof = facts.world, _Proof(facts)
    for chain in _played(question):
        proof.follow(chain)
        proof.conclude(question, chain.end)
    proof.compare(question)
    if not proof.is_shortest or len(proof.told) > most:
        return None
    return _task(world, question, task_id, [_answer(world, question)], proof.steps())


def set_task(facts: Facts, question: Question, task_id: str, most: int) -> Task | None:
    """Return the task of a question whose every answer is asked for; None if it has none.

    Its evidence is the articles of all who are passed; None too where they are more than most.
    """
    world, proof, chain = facts.world, _Proof(facts), question.chains[0]
    reached = _start_set(world, chain).tolist()
    if chain.constraints:
        for person in reached:
            told = [facts.attribute(person, name) for name in chain.constraints]
            proof.state(person, *told, query=facts.words(person, chain.constraints))
    names = (*chain.relations, question.asked) if question.kind == "count" else chain.relations
    for step in [step for name in names for step in relation_steps(name)]:
        onward: set[int] = set()
        for person in reached:
            others, told = facts.relations(person, step)
            if others:
                proof.state(person, *told)
            onward.update(others)
            if len(proof.told) > most:
                return None
        reached = sorted(onward)
    if question.kind == "attribute":
        for person in answer_people(world, chain).tolist():
            proof.state(person, facts.attribute(person, question.asked))
    answers = answer_set(world, question) if len(proof.told) <= most else []
    if not answers:
        return None
    return _task(world, question, task_id, answers, proof.steps())


def answer_people(world: People, chain: Chain) -> NDArray[np.int32]:
    """Return all whom a description fits, as PhantomWiki understands it, sorted."""
    return world.kinship.follow(_start_set(world, chain).tolist(), chain.relations)


def answer_set(world: People, question: Question) -> list[str]:
    """Return every answer of a chain, an attribute question or a count, sorted."""
    people = answer_people(world, question.chains[0])
    if question.kind == "count":
        return sorted(map(str, set(world.kinship.counts(question.asked, people).tolist())))
    if question.kind == "attribute":
        return sorted({world.value(person, question.asked) for person in people.tolist()})
    return sorted(map(world.name, people.tolist()))


def _played(question: Question) -> list[Chain]:
    """Return the chains in the order of the proof: the longer is the last."""
    if len(question.chains) == 1:
        return [question.chains[0]]
    return sorted(question.chains, key=lambda chain: chain.hops)


class _Proof:
    """The documents to read, in order, each with the query that finds it and its facts."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.world = facts, facts.world
        self.queries: dict[int, str] = {}
        self.told: dict[int, list[str]] = {}
        self.passed: set[int] = set()
        self.is_shortest = True

    def follow(self, chain: Chain) -> None:
        """Add the documents that lead from a chain's start to its end."""
        start = chain.people[0]
        self._pass([start])
        if chain.constraints:
            told = [self.facts.attribute(start, name) for name in chain.constraints]
            self.state(start, *told, query=self.facts.words(start, chain.constraints))
        for place, (relation, chosen_by) in enumerate(
            zip(chain.relations, chain.filters, strict=True)
        ):
            source, target = chain.people[place : place + 2]
            steps = relation_steps(relation)
            path = self.facts.path(source, steps, target)
            self._pass(path[1:])
            for person, other, step in zip(path, path[1:], steps, strict=False):
                self.state(person, self.facts.relation(person, step, self.world.is_female(other)))
            if chosen_by:
                self.state(target, self.facts.attribute(target, chosen_by))

    def conclude(self, question: Question, end: int) -> None:
        """Add what the article of a described person states toward the answer."""
        if question.kind in ("attribute", "yes_no"):
            self.state(end, self.facts.attribute(end, question.asked))
        elif question.kind == "comparison":
            self.state(end, self.facts.attribute(end, "birth"))
        elif question.kind in ("superlative", "count"):
            step = relation_steps(question.asked)[0]
            self.state(
                end, self.facts.relation(end, step, self.world.is_female(question.choices[0]))
            )
        elif question.kind == "unanswerable":
            label = RELATIONS[question.asked].label
            self.state(end, f"The article of {self.world.name(end)} names no {label}.")

    def compare(self, question: Question) -> None:
        """Add the ages that a superlative chooses by."""
        if question.kind == "superlative":
            self._pass(question.choices)
            for person in question.choices:
                self.state(person, self.facts.attribute(person, "birth"))

    def state(self, person: int, *facts: str, query: str | None = None) -> None:
        """Add facts that a person's article states."""
        self.queries.setdefault(person, self.world.name(person) if query is None else query)
        self.told.setdefault(person, []).extend(facts)

    def steps(self) -> tuple[ProofStep, ...]:
        """Return one step a document."""
        return tuple(
            [
                ProofStep(self.queries[person], document_id(person), " ".join(facts))
                for person, facts in self.told.items()
            ]
        )

    def _pass(self, people: Sequence[int]) -> None:
        self.is_shortest &= self.passed.isdisjoint(people)
        self.passed.update(people)


def _answer(world: People, question: Question) -> str:
    end = question.chains[0].end
    match question.kind:
        case "chain":
            return world.name(end)
        case "attribute":
            return world.value(end, question.asked)
        case "comparison":
            ends = [chain.end for chain in question.chains]
            return world.name(min(ends, key=lambda person: world.key(person, "birth")))
        case "superlative":
            choose = min if question.value == "oldest" else max
            return world.name(choose(question.choices, key=lambda p: world.key(p, "birth")))
        case "count":
            return str(len(question.choices))
        case "yes_no":
            return "yes" if world.value(end, question.asked) == question.value else "no"
        case "unanswerable":
            return UNKNOWN


def _start_set(world: People, chain: Chain) -> NDArray[np.int32]:
    start = chain.people[0]
    if not chain.constraints:
        return np.array([start], np.int32)
    return world.alike(start, chain.constraints)


def _task(
    world: People,
    question: Question,
    task_id: str,
    answers: list[str],
    proof: tuple[ProofStep, ...],
) -> Task:
    return Task(
        id=task_id,
        question=question.words(world),
        answers=tuple(answers),
        evidence=tuple([step.document for step in proof]),
        hops=question.hops,
        kind=question.kind,
        proof=proof,
        level=str(question.difficulty),
        is_answer_set=question.is_set,
    )
