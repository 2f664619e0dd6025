"""Ways to answer a question without the search it asks for, and which tasks have them.

The four shortcuts are those of FORT-Searcher (arXiv:2606.12087):

===================  ===============================================================================
``co-coverage``      One document states everything that the answer rests on.
``single clue``      Of several clues that should be joined, one alone selects what is described.
``exposed constant`` A name in the question leads straight to the answer: the two are neighbours.
``prior``            The answer is what one would guess: it takes more than a tenth of all places
                     at the end of the last relation.
===================  ===============================================================================

A simple question has one fact, so it cannot but have the first and the third; only its prior is
tested. A count, a comparison and "unknown" have few possible answers: the drawing balances the
first two, and reports state the floor of the last.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from ..retrieval import Retriever
from ..tasks import Task
from .articles import KnowledgeCorpus
from .proofs import Fact, Proof
from .terms import Clue, Question, Term

__all__ = ["SHORTCUTS", "ShortcutFinder", "one_query_table"]

SHORTCUTS = ("co-coverage", "single clue", "exposed constant", "prior")
_MOST_PRIOR = 0.1
_NEIGHBOURS_KEPT = 50_000


class ShortcutFinder:
    """Tells which shortcuts a task has.

    Args:
        corpus: The articles, which also say where each edge is stated.
    """

    def __init__(self, corpus: KnowledgeCorpus) -> None:
        self._corpus = corpus
        self._graph = corpus.graph
        self._neighbours = lru_cache(_NEIGHBOURS_KEPT)(self._find_neighbours)

    def find(self, proof: Proof) -> list[str]:
        """Return the names of the shortcuts that a task has, in the order of ``SHORTCUTS``."""
        question = proof.question
        is_simple = question.kind == "simple"
        found = (
            not is_simple and self._has_co_coverage(proof.facts),
            any(self._has_selective_clue(part) for t in question.terms for part in t.parts()),
            not is_simple and self._has_exposed_constant(question),
            self._is_guessable(question),
        )
        return [name for name, is_found in zip(SHORTCUTS, found, strict=True) if is_found]

    def _has_co_coverage(self, facts: Sequence[Fact]) -> bool:
        ends = sorted({end for fact in facts for end in (fact.subject, fact.object) if end >= 0})
        return any(all(self._states(end, fact) for fact in facts) for end in ends)

    def _states(self, entity: int, fact: Fact) -> bool:
        """Tell whether an entity's article states a fact, about itself or as a distractor."""
        if fact.object < 0:
            return entity == fact.subject
        if entity in (fact.subject, fact.object):
            edges = self._graph.edges[fact.predicate]
            edge = edges.edge(fact.subject, fact.object)
            assert edge is not None
            return bool(
                (edges.in_subject[edge] and entity == fact.subject)
                or (edges.in_object[edge] and entity == fact.object)
            )
        return any(
            stated.relation is not None
            and (stated.entity, stated.relation.name, stated.others[0]) == fact
            for stated in self._corpus.distractors(entity)
        )

    def _has_selective_clue(self, term: Term) -> bool:
        return len(term.clues) > 1 and any(len(self._fitting(clue)) == 1 for clue in term.clues)

    def _fitting(self, clue: Clue) -> Sequence[int]:
        return self._graph.others(clue.target.entity, clue.relation, is_inverse=not clue.is_object)

    def _has_exposed_constant(self, question: Question) -> bool:
        ends = {term.entity for term in question.terms}
        named = set(question.named)
        if named & ends:
            return True
        if question.kind in ("count", "date", "unanswerable"):
            return False
        if question.attributes and question.kind not in ("comparison", "superlative"):
            return False
        if question.relation:
            ends = set(
                self._graph.others(
                    question.terms[0].entity, question.relation, is_inverse=question.is_inverse
                )
            )
        return any(ends & self._neighbours(entity) for entity in named) or bool(ends & named)

    def _find_neighbours(self, entity: int) -> frozenset[int]:
        graph, kind = self._graph, self._graph.type_of(entity).name
        found: set[int] = set()
        for name in graph.relations_from(kind):
            found.update(graph.others(entity, name, is_inverse=False))
        for name in graph.relations_to(kind):
            found.update(graph.others(entity, name, is_inverse=True))
        return frozenset(found)

    def _is_guessable(self, question: Question) -> bool:
        if question.attributes or question.relation or question.kind == "date":
            return False
        return any(self._prior(term) > _MOST_PRIOR for term in question.terms)

    def _prior(self, term: Term) -> float:
        """Return how often the entity stands where it stands in the last relation of its term."""
        if not term.clues:
            return 0.0
        clue = term.clues[0]
        places = len(self._graph.others(term.entity, clue.relation, is_inverse=clue.is_object))
        return places / len(self._graph.edges[clue.relation])


def one_query_table(
    tasks: Sequence[Task], retriever: Retriever, top_k: int = 5
) -> dict[tuple[str, int], tuple[int, int]]:
    """Return for each (kind, hops) how many tasks one query gives away, and how many there are.

    The query is the question, word for word; it gives a task away if it brings every document of
    the evidence into the top k.
    """
    rankings = retriever.search([task.question for task in tasks], top_k)
    table: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for task, ranking in zip(tasks, rankings, strict=True):
        entry = table[task.kind, task.hops]
        entry[0] += set(task.evidence) <= {hit.document_id for hit in ranking}
        entry[1] += 1
    return {cell: (found, number) for cell, (found, number) in sorted(table.items())}
