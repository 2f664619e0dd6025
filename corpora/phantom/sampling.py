"""Draws questions, cell by cell: so many of each kind, number of hops and of constraints.

Every batch of candidates has its own random stream, named by seed, cell and number. So the first
questions of a cell are the same whatever other cells are asked for, and however many of them.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..errors import ConfigurationError
from ..tasks import Task
from .edges import Edges, draw_pool
from .endings import draw_questions
from .grammar import KINDS, Question, QuestionKind, QuestionSettings
from .people import People
from .proofs import definite_task, set_task

__all__ = ["draw_tasks"]

Accept = Callable[[Sequence[Task]], Sequence[bool]]
Cell = tuple[QuestionKind, int, int]

_BATCHES_A_POOL = 8
_DRY_BATCHES = 40  # a cell that gives nothing new in so many batches in a row holds no more
_AT_ONCE = 32  # tasks checked by a retriever together


def draw_tasks(
    people: People,
    settings: QuestionSettings,
    *,
    count: int,
    seed: int,
    accept: Accept | None = None,
) -> list[Task]:
    """Draw so many tasks, the cells as even as the world allows, interleaved.

    Args:
        people: Who is asked about.
        settings: Which questions are wanted.
        count: How many.
        seed: Where every draw comes from.
        accept: Tells which tasks to keep.

    Raises:
        ConfigurationError: The world holds fewer questions; the message says how many.
    """
    pools = _Pools(people, settings.relation_names, seed)
    sources = [_CellTasks(people, settings, cell, pools, seed, accept) for cell in settings.cells]
    still_open = sources
    missing = count
    while missing > 0 and still_open:
        share = -(-missing // len(still_open))
        for source in still_open:
            source.fill(len(source.tasks) + share)
        still_open = [source for source in still_open if not source.is_dry]
        missing = count - sum(len(source.tasks) for source in sources)
    if missing > 0:
        raise ConfigurationError(
            f"count must be at most {count - missing}, got {count}: this world of "
            f"{len(people)} people holds no more such questions; ask for fewer, for a wider "
            "range of hops or kinds, or for a larger world"
        )
    return _interleaved([source.tasks for source in sources])[:count]


def _interleaved(groups: list[list[Task]]) -> list[Task]:
    longest = max(map(len, groups))
    return [group[place] for place in range(longest) for group in groups if place < len(group)]


class _Pools:
    """The edges that questions are walked along: those of everyone, or of one pool after another."""

    def __init__(self, people: People, relations: tuple[str, ...], seed: int) -> None:
        self.people, self.relations, self.seed = people, relations, seed
        self._edges: dict[int, Edges] = {}

    def __getitem__(self, number: int) -> Edges:
        if number not in self._edges:
            pool = draw_pool(self.people, np.random.default_rng([self.seed, 1, number]))
            if len(pool) == len(self.people) and self._edges:
                self._edges[number] = self._edges[0]
            else:
                self._edges[number] = Edges.between(self.people, pool, self.relations)
        return self._edges[number]


class _CellTasks:
    """The tasks of one cell, drawn as they are asked for."""

    def __init__(
        self,
        people: People,
        settings: QuestionSettings,
        cell: Cell,
        pools: _Pools,
        seed: int,
        accept: Accept | None,
    ) -> None:
        self.kind, self.hops, self.constraints = cell
        self.tasks: list[Task] = []
        self.is_dry = False
        self._people, self._is_set = people, settings.semantics == "set"
        self._accept, self._pools, self._seed = accept, pools, seed
        self._prove = set_task if self._is_set else definite_task
        self._seen: set[Question] = set()
        self._waiting: deque[Question] = deque()
        self._batch = 0
        self._dry_batches = 0

    def fill(self, wanted: int) -> None:
        """Draw until there are so many tasks, or the cell is dry."""
        while len(self.tasks) < wanted and not self.is_dry:
            if not self._waiting:
                self._draw_batch()
                continue
            some = min(_AT_ONCE, len(self._waiting), wanted - len(self.tasks))
            self._keep([self._waiting.popleft() for _ in range(some)])

    def _keep(self, questions: list[Question]) -> None:
        proved = [self._prove(self._people, question, "") for question in questions]
        tasks = [task for task in proved if task is not None]
        if self._accept is not None:
            kept = self._accept(tasks)
            tasks = [task for task, keep in zip(tasks, kept, strict=True) if keep]
        for task in tasks:
            name = f"{self.kind}-{self.hops}h{self.constraints}c-{len(self.tasks)}"
            self.tasks.append(replace(task, id=name))

    def _draw_batch(self) -> None:
        stream = [self._seed, 2, KINDS.index(self.kind), self.hops, self.constraints, self._batch]
        rng = np.random.default_rng(stream)
        edges = self._pools[self._batch // _BATCHES_A_POOL]
        self._batch += 1
        before = len(self._seen)
        drawn = draw_questions(
            self._people,
            edges,
            rng,
            cell=(self.kind, self.hops, self.constraints),
            is_set=self._is_set,
        )
        for question in drawn:
            if question not in self._seen:
                self._seen.add(question)
                self._waiting.append(question)
        self._dry_batches = 0 if len(self._seen) > before else self._dry_batches + 1
        self.is_dry = self._dry_batches >= _DRY_BATCHES
