"""Draws tasks, cell by cell, and keeps those that can be proved and have no shortcut.

Every cell has its own random stream, named by seed and cell, so its first tasks are the same
whatever else is asked for.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import ConfigurationError
from ..retrieval import Retriever
from ..tasks import Task, TaskSet
from .articles import KnowledgeCorpus
from .proofs import Difficulty, Proof, prove
from .questions import Cell, QuestionDrawer, QuestionSettings
from .shortcuts import SHORTCUTS, ShortcutFinder
from .terms import KINDS, Question

__all__ = ["DrawReport", "KnowledgeTasks", "draw_tasks"]

_DRY = 2_000  # a cell that gives nothing new in so many draws in a row holds no more
_AT_ONCE = 32  # tasks checked by a retriever together
_MOST_OF_AN_ANSWER = 0.34  # of the counts of a cell


@dataclass(slots=True)
class DrawReport:
    """What was drawn and what was turned away.

    Attributes:
        proved: Candidates with one answer, before shortcuts and retrieval were looked at.
        shortcuts: How many of them had each shortcut; all were rejected.
        checked: Candidates without shortcuts that a retriever was asked about.
        unretrievable: How many of these it could not play.
        steps: Steps of those proofs: a query, and a document that states facts.
        retrieved: Steps whose document came into the top k.
        by_kind: For each kind, the candidates, those with a shortcut and those not retrievable.
    """

    proved: int = 0
    shortcuts: Counter[str] = field(default_factory=Counter)
    checked: int = 0
    unretrievable: int = 0
    steps: int = 0
    retrieved: int = 0
    by_kind: dict[str, list[int]] = field(default_factory=dict)

    @property
    def shortcut_shares(self) -> dict[str, float]:
        """The share of the candidates that had each shortcut, and were rejected for it."""
        return {name: self.shortcuts[name] / max(1, self.proved) for name in SHORTCUTS}

    @property
    def retrieved_share(self) -> float:
        """The share of proof steps whose document the retriever finds; 1 without a retriever."""
        return self.retrieved / self.steps if self.steps else 1.0


class KnowledgeTasks(TaskSet):
    """Tasks with what they were made from.

    Attributes:
        proofs: For each task's id its question before it was put into words, its difficulty and
            the facts it rests on.
        report: What was turned away.
    """

    def __init__(self, proofs: Sequence[Proof], report: DrawReport, *, name: str) -> None:
        super().__init__((proof.task for proof in proofs), name=name)
        self.proofs = {proof.task.id: proof for proof in proofs}
        self.report = report

    def difficulty(self, task: Task | str) -> Difficulty:
        """Return how hard a task is."""
        return self.proofs[task if isinstance(task, str) else task.id].difficulty

    def question(self, task: Task | str) -> Question:
        """Return a task's question before it was put into words."""
        return self.proofs[task if isinstance(task, str) else task.id].question


def draw_tasks(
    corpus: KnowledgeCorpus,
    settings: QuestionSettings,
    *,
    count: int,
    seed: int,
    retriever: Retriever | None = None,
    top_k: int = 5,
) -> KnowledgeTasks:
    """Draw so many tasks, the cells as even as the world allows, interleaved.

    Raises:
        ConfigurationError: The world holds fewer; the message says how many.
    """
    report = DrawReport()
    finder = ShortcutFinder(corpus)
    sources = [
        _CellTasks(corpus, settings, cell, seed, (retriever, top_k), finder, report)
        for cell in settings.cells
    ]
    still_open, missing = sources, count
    while missing > 0 and still_open:
        share = -(-missing // len(still_open))
        for source in still_open:
            source.fill(len(source.drawn) + share)
        still_open = [source for source in still_open if not source.is_dry]
        missing = count - sum(len(source.drawn) for source in sources)
    if missing > 0:
        raise ConfigurationError(
            f"count must be at most {count - missing}, got {count}: this world of "
            f"{len(corpus.graph)} entities holds no more such questions; ask for fewer, for more "
            "kinds or a wider range of hops, or for a larger world"
        )
    longest = max(len(source.drawn) for source in sources)
    drawn = [s.drawn[place] for place in range(longest) for s in sources if place < len(s.drawn)]
    return KnowledgeTasks(drawn[:count], report, name=f"{corpus.name}-tasks")


class _CellTasks:
    """The tasks of one cell, drawn as they are asked for."""

    def __init__(
        self,
        corpus: KnowledgeCorpus,
        settings: QuestionSettings,
        cell: Cell,
        seed: int,
        retrieval: tuple[Retriever | None, int],
        finder: ShortcutFinder,
        report: DrawReport,
    ) -> None:
        self.drawn: list[Proof] = []
        self.is_dry = False
        self._corpus, self._cell, self._finder, self._report = corpus, cell, finder, report
        self._retriever, self._top_k = retrieval
        rng = np.random.default_rng([seed, KINDS.index(cell[0]), cell[1]])
        self._drawer = QuestionDrawer(corpus.graph, settings.obfuscation, rng)
        self._prefix = f"{cell[0]}-{cell[1]}-{seed}"
        self._seen: set[str] = set()
        self._answers: Counter[tuple[str, ...]] = Counter()
        self._number = 0  # of the candidate: a task has the same id whatever is accepted
        self._failed = 0
        self._tally = report.by_kind.setdefault(cell[0], [0, 0, 0])

    def fill(self, wanted: int) -> None:
        """Draw until there are so many tasks, or the cell is dry."""
        while len(self.drawn) < wanted and not self.is_dry:
            batch: list[Proof] = []
            while len(batch) < min(_AT_ONCE, wanted - len(self.drawn)) and self._failed < _DRY:
                proof = self._candidate()
                self._failed += 1
                if proof is not None:
                    batch.append(proof)
            for proof in self._playable(batch):
                if self._is_balanced(proof):
                    self._failed = 0
                    self.drawn.append(proof)
                    self._answers[proof.task.answers] += 1
            self.is_dry = self._failed >= _DRY

    def _candidate(self) -> Proof | None:
        """Return something new that can be proved and has no shortcut."""
        question = self._drawer.draw(self._cell)
        if question is None:
            return None
        proof = prove(self._corpus, question, f"{self._prefix}-{self._number}")
        task = proof.task
        if task.question in self._seen:
            return None
        self._seen.add(task.question)
        self._number += 1
        asked = task.question.lower()
        if any(answer.lower() in asked for answer in task.answers):
            return None
        shortcuts = self._finder.find(proof)
        self._report.proved += 1
        self._report.shortcuts.update(shortcuts)
        self._tally[0] += 1
        self._tally[1] += bool(shortcuts)
        return None if shortcuts else proof

    def _playable(self, proofs: list[Proof]) -> list[Proof]:
        """Return those whose every query brings its document into the top k."""
        if self._retriever is None or not proofs:
            return proofs
        steps = [(place, step) for place, p in enumerate(proofs) for step in p.task.proof]
        rankings = self._retriever.search([step.query for _, step in steps], self._top_k)
        lost = {
            place
            for (place, step), ranking in zip(steps, rankings, strict=True)
            if not self._is_found(step.document in {hit.document_id for hit in ranking})
        }
        self._report.checked += len(proofs)
        self._report.unretrievable += len(lost)
        self._tally[2] += len(lost)
        return [proof for place, proof in enumerate(proofs) if place not in lost]

    def _is_found(self, is_found: bool) -> bool:
        self._report.steps += 1
        self._report.retrieved += is_found
        return is_found

    def _is_balanced(self, proof: Proof) -> bool:
        """Tell whether a count is not yet given too often to be guessed."""
        if self._cell[0] != "count":
            return True
        return self._answers[proof.task.answers] <= _MOST_OF_AN_ANSWER * len(self.drawn)
