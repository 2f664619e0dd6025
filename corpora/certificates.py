"""Checks of tasks with the retriever that will serve them: can they be proved, do they leak?"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from .retrieval import Retriever
from .tasks import Task

__all__ = ["certify", "find_leaks", "leak_table"]


def certify(tasks: Sequence[Task], retriever: Retriever, top_k: int) -> list[bool]:
    """Tell for each task whether every query of its proof brings its document into the top k."""
    queries = {step.query: None for task in tasks for step in task.proof if step.query}
    found = _search(queries, retriever, top_k)
    return [
        all(step.document in found[step.query] for step in task.proof if step.query)
        for task in tasks
    ]


def find_leaks(tasks: Sequence[Task], retriever: Retriever, top_k: int) -> list[bool]:
    """Tell for each task whether its question, searched word for word, brings the final evidence.

    The final evidence is the last document of the proof. PhantomEnvironments (arXiv:2609.40221)
    found that training on questions with this shortcut hurts transfer. A task of one hop cannot
    but have it: its one document is the one that the question describes.
    """
    found = _search((task.question for task in tasks), retriever, top_k)
    return [task.proof[-1].document in found[task.question] for task in tasks]


def leak_table(
    tasks: Sequence[Task], retriever: Retriever, top_k: int
) -> dict[tuple[str, int, int], tuple[int, int]]:
    """Return how many tasks leak, and how many there are, for each (kind, hops, constraints)."""
    table: dict[tuple[str, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for task, is_leak in zip(tasks, find_leaks(tasks, retriever, top_k), strict=True):
        entry = table[task.kind, task.hops, task.question.count("whose ")]
        entry[0] += is_leak
        entry[1] += 1
    return {cell: (leaks, number) for cell, (leaks, number) in sorted(table.items())}


def _search(queries: Iterable[str], retriever: Retriever, top_k: int) -> dict[str, set[str]]:
    asked = list(queries)
    rankings = retriever.search(asked, top_k)
    return {
        query: {hit.document_id for hit in ranking}
        for query, ranking in zip(asked, rankings, strict=True)
    }
