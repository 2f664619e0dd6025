"""Draws questions, cell by cell: so many of each kind, number of hops and of constraints.

Every cell has its own random stream, named by seed and cell. So the first
questions of a cell are the same whatever other cells are asked for, and however many of them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from ..errors import ConfigurationError
from ..tasks import Task
from .edges import Edges, draw_pool
from .endings import QuestionSource
from .facts import Facts
from .grammar import KINDS, Question, QuestionKind, QuestionSettings
from .people import People
from .proofs import definite_task, set_task
from .walks import chances

__all__ = ["draw_questions"]

Accept = Callable[[Sequence[Task]], Sequence[bool]]
Drawn = tuple[Question, Task]
Cell = tuple[QuestionKind, int, int]

_A_POOL = 64  # questions of a cell drawn from one pool
_MOST_POOLS = 10_000
_DRY = 3_000  # a cell that gives nothing new in so many draws in a row holds no more
_AT_ONCE = 32  # tasks checked by a retriever together


def draw_questions(
    people: People,
    settings: QuestionSettings,
    *,
    count: int,
    seed: int,
    accept: Accept | None = None,
) -> list[Drawn]:
    """Draw so many questions and their tasks, the cells as even as the world allows, interleaved.

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
    facts = Facts(people)
    sources = [_CellTasks(facts, settings, cell, pools, seed, accept) for cell in settings.cells]
    still_open = sources
    missing = count
    while missing > 0 and still_open:
        share = -(-missing // len(still_open))
        for source in still_open:
            source.fill(len(source.drawn) + share)
        still_open = [source for source in still_open if not source.is_dry]
        missing = count - sum(len(source.drawn) for source in sources)
    if missing > 0:
        raise ConfigurationError(
            f"count must be at most {count - missing}, got {count}: this world of "
            f"{len(people)} people holds no more such questions; ask for fewer, for a wider "
            "range of hops or kinds, or for a larger world"
        )
    return _interleaved([source.drawn for source in sources])[:count]


def _interleaved(groups: list[list[Drawn]]) -> list[Drawn]:
    longest = max(map(len, groups))
    return [group[place] for place in range(longest) for group in groups if place < len(group)]


class _Pools:
    """The edges that questions are walked along: of everyone, or of one pool after another."""

    def __init__(self, people: People, relations: tuple[str, ...], seed: int) -> None:
        self.people, self.relations, self.seed = people, relations, seed
        self._edges: dict[int, Edges] = {}
        self.is_one = False

    def __getitem__(self, number: int) -> Edges:
        """Return the edges of a pool, followed once."""
        if self.is_one:
            number = 0
        if number not in self._edges:
            pool = draw_pool(self.people, np.random.default_rng([self.seed, 1, number]))
            self.is_one = len(pool) == len(self.people)
            self._edges[number] = Edges.between(self.people, pool, self.relations)
        return self._edges[number]


class _CellTasks:
    """The tasks of one cell, drawn as they are asked for."""

    def __init__(
        self,
        facts: Facts,
        settings: QuestionSettings,
        cell: Cell,
        pools: _Pools,
        seed: int,
        accept: Accept | None,
    ) -> None:
        self.kind, self.hops, self.constraints = cell
        self.drawn: list[Drawn] = []
        self.is_dry = False
        self._facts, self._is_set = facts, settings.semantics == "set"
        self._most_documents = settings.documents
        self._accept, self._pools, self._seed = accept, pools, seed
        self._prove = set_task if self._is_set else definite_task
        mark = "set-" if self._is_set else ""
        self._prefix = f"{mark}{self.kind}-{self.hops}h-{self.constraints}c-{seed}"
        self._seen: set[Question] = set()
        self._candidates = self._draw()
        self._answers: Counter[tuple[str, ...]] = Counter()
        self._rejected = 0
        self._number = 0  # of the candidate: a question has the same id whatever is accepted

    def fill(self, wanted: int) -> None:
        """Draw until there are so many tasks, or the cell is dry."""
        while len(self.drawn) < wanted and not self.is_dry:
            some = min(_AT_ONCE, wanted - len(self.drawn))
            questions = list(islice(self._candidates, some))
            before = len(self.drawn)
            self._keep(questions)
            self._rejected = 0 if len(self.drawn) > before else self._rejected + len(questions)
            self.is_dry = len(questions) < some or self._rejected >= _DRY

    def _keep(self, questions: list[Question]) -> None:
        proved = []
        for question in questions:
            task_id = f"{self._prefix}-{self._number}"
            self._number += 1
            task = self._prove(self._facts, question, task_id, self._most_documents)
            if task is not None:
                proved.append((question, task))
        accepted = [True] * len(proved)
        if self._accept is not None:
            accepted = list(self._accept([task for _, task in proved]))
        for (question, task), is_accepted in zip(proved, accepted, strict=True):
            if is_accepted and self._is_balanced(task):
                self.drawn.append((question, task))
                self._answers[task.answers] += 1

    def _is_balanced(self, task: Task) -> bool:
        """Tell whether a yes keeps up with the noes, and a no with the yeses."""
        if self.kind != "yes_no":
            return True
        return 2 * self._answers[task.answers] <= len(self.drawn)

    def _draw(self) -> Iterator[Question]:
        """Give questions never given before, from one pool after the other, until it is dry."""
        cell = (self.kind, self.hops, self.constraints)
        stream = (self._seed, 2, KINDS.index(self.kind), self.hops, self.constraints)
        for number in range(_MOST_POOLS):
            rng = np.random.default_rng([*stream, number])
            source = QuestionSource(
                self._facts.world, self._pools[number], chances(rng), is_set=self._is_set
            )
            given = failed = 0
            while failed < _DRY and (given < _A_POOL or self._pools.is_one):
                question = source.draw(*cell)
                if question is None or question in self._seen:
                    failed += 1
                    continue
                failed = 0
                given += 1
                self._seen.add(question)
                yield question
            if self._pools.is_one or not given:
                return
