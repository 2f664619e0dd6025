"""Tasks: a question, its right answers, the evidence, and a proof that can be played."""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Self, overload

from .documents import Corpus, Record, read_jsonl
from .errors import ConfigurationError, CorpusError, raise_unknown

__all__ = ["ProofStep", "Split", "Task", "TaskSet"]

Split = Literal["all", "train", "test"]
_TEST_SHARE = 0.2
_CRITERIA = ("kind", "hops", "level")


@dataclass(frozen=True, slots=True)
class ProofStep:
    """One step of a proof: this query brings this document, which states this fact.

    Attributes:
        query: What to search for; empty where the document is known and only read.
        document: The id of the document that states the fact.
        fact: The fact, in words.
    """

    query: str
    document: str
    fact: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A question that can be answered from a corpus.

    Attributes:
        id: Unique in its set.
        question: What the agent is asked.
        answers: The gold answers; any one of them is right, unless every one is asked for.
        evidence: Ids of the documents that together state the answer.
        hops: How many facts must be joined.
        kind: The type of question, for breakdowns.
        proof: The steps that lead to the answer through the tools; may be empty for real data.
        level: How hard the source says it is, where it says so.
        is_answer_set: Every answer is asked for, and they are scored as a set.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    evidence: tuple[str, ...] = ()
    hops: int = 1
    kind: str = "question"
    proof: tuple[ProofStep, ...] = ()
    level: str | None = None
    is_answer_set: bool = False


class TaskSet(Sequence[Task]):
    """An immutable sequence of tasks, reachable by position and by id.

    Args:
        tasks: At least one, ids unique.
        name: What the set is called in messages and reports.

    Raises:
        CorpusError: There is no task, or an id appears twice.
    """

    def __init__(self, tasks: Iterable[Task], *, name: str = "tasks") -> None:
        self.name = name
        self._tasks = tuple(tasks)
        self._by_id = {task.id: task for task in self._tasks}
        self._parts: dict[object, TaskSet] = {}
        if not self._tasks:
            raise CorpusError(f"task set {name!r} is empty; it needs at least one task")
        if len(self._by_id) != len(self._tasks):
            raise CorpusError(f"task set {name!r}: an id appears twice; ids must be unique")
        for task in self._tasks:
            if not isinstance(task.answers, tuple) or not any(
                isinstance(answer, str) and answer.strip() for answer in task.answers
            ):
                raise CorpusError(
                    f"task set {name!r}, task {task.id!r}: answers must be a tuple of texts, at "
                    f"least one of them not blank, got {task.answers!r:.60}"
                )

    @classmethod
    def from_jsonl(cls, path: str | os.PathLike[str], *, corpus: Corpus | None = None) -> Self:
        """Read one JSON object a line, plain or .gz.

        Fields: ``id, question, answers``; optionally ``evidence`` (document ids), ``hops``
        (default: the number of evidence documents), ``kind`` or ``type``, ``level``,
        ``is_answer_set``, and ``proof`` (a list of ``{"query", "document", "fact"}``).

        Args:
            path: The file.
            corpus: If given, evidence and proofs must name documents of it.

        Raises:
            CorpusError: With file, line and field.
        """
        seen: dict[str, int] = {}
        tasks = []
        for record in read_jsonl(path):
            task = _task_from(record)
            if task.id in seen:
                record.fail("id", f"{task.id!r} was already used in line {seen[task.id]}")
            if corpus is not None:
                _check_documents(record, task, corpus)
            seen[task.id] = record.line
            tasks.append(task)
        if not tasks:
            raise CorpusError(f"{path}: no tasks; it needs one JSON object a line")
        return cls(tasks, name=Path(path).name)

    @overload
    def __getitem__(self, key: int | str) -> Task: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Task]: ...
    def __getitem__(self, key: int | str | slice) -> Task | Sequence[Task]:
        """Return the task at a position or with an id, or the tasks of a slice."""
        return self._by_id[key] if isinstance(key, str) else self._tasks[key]

    def __len__(self) -> int:
        """Return the number of tasks."""
        return len(self._tasks)

    def __contains__(self, item: object) -> bool:
        """Tell whether an id, or a task's id, is here."""
        return (item.id if isinstance(item, Task) else item) in self._by_id

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the same set: it is immutable, so copies of environments share it."""
        return self

    def __repr__(self) -> str:
        """Name the set and its size."""
        return f"<TaskSet {self.name!r}: {len(self)} tasks>"

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 of every task, the same on every machine."""
        text = json.dumps([asdict(task) for task in self._tasks], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def split(self, name: Split) -> "TaskSet":
        """Return the train or the test share (80 to 20), or all.

        Tasks that share an evidence document stay together, so no test question can be
        answered from a document that training asked about. The draw is by a hash of ids.

        Raises:
            ConfigurationError: The name is unknown, or the set is too small to have that share.
        """
        if name == "all":
            return self
        if name not in ("train", "test"):
            raise_unknown("split", name, ("all", "train", "test"))
        if name not in self._parts:
            self._parts[name] = self._split(name)
        return self._parts[name]

    def select(self, **criteria: object) -> "TaskSet":
        """Return the tasks whose ``kind``, ``hops`` or ``level`` is the one asked for.

        Raises:
            ConfigurationError: A criterion is unknown, or no task fits.
        """
        for field in criteria:
            if field not in _CRITERIA:
                raise_unknown("option", field, ("task", "split", *_CRITERIA))
            if not isinstance(criteria[field], (str, int)):
                raise ConfigurationError(
                    f"option {field!r} must be a text or a number, got {criteria[field]!r:.60}"
                )
        key = tuple(sorted(criteria.items()))
        if key not in self._parts:
            self._parts[key] = self._select(criteria)
        return self._parts[key]

    def with_evidence(self) -> "TaskSet":
        """Return the tasks that name evidence: the set itself, if all do.

        Raises:
            ConfigurationError: No task does.
        """
        kept = [task for task in self._tasks if task.evidence]
        if not kept:
            raise ConfigurationError(f"no task of {self.name!r} names evidence")
        return self if len(kept) == len(self) else TaskSet(kept, name=self.name)

    def _select(self, criteria: dict[str, object]) -> "TaskSet":
        chosen = [
            task
            for task in self._tasks
            if all(getattr(task, field) == wanted for field, wanted in criteria.items())
        ]
        if not chosen:
            known = {
                field: sorted({getattr(task, field) for task in self._tasks}, key=str)
                for field in criteria
            }
            raise ConfigurationError(f"no task of {self.name!r} has {criteria}; there are {known}")
        return TaskSet(chosen, name=f"{self.name}:{criteria}")

    def _split(self, name: Split) -> "TaskSet":
        test_ids = self._test_ids()
        chosen = [task for task in self._tasks if (task.id in test_ids) == (name == "test")]
        if not chosen:
            raise ConfigurationError(
                f"split={name!r} of {self.name!r} is empty: its {len(self)} tasks hang together by "
                "their evidence; use split='all'"
            )
        return TaskSet(chosen, name=f"{self.name}:{name}")

    def _test_ids(self) -> set[str]:
        groups = sorted(_linked_groups(self._tasks), key=_group_hash)
        ids: set[str] = set()
        for group in groups:
            if len(ids) + len(group) <= max(1, round(_TEST_SHARE * len(self))):
                ids.update(group)
        return ids


def _linked_groups(tasks: Iterable[Task]) -> list[list[str]]:
    """Group the ids of tasks that share evidence, directly or through others."""
    group_of: dict[str, list[str]] = {}
    by_document: dict[str, list[str]] = {}
    for task in tasks:
        group = [task.id]
        group_of[task.id] = group
        for document in task.evidence:
            other = by_document.get(document)
            if other is None or other is group:
                by_document[document] = group
                continue
            other.extend(group)
            for task_id in group:
                group_of[task_id] = other
            for name, held in by_document.items():
                if held is group:
                    by_document[name] = other
            group = other
    unique = {id(group): group for group in group_of.values()}
    return list(unique.values())


def _group_hash(group: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(group)).encode()).hexdigest()


def _task_from(record: Record) -> Task:
    evidence = record.texts("evidence")
    proof = _proof_from(record)
    hops = record.values.get("hops")
    hops = max(1, len(evidence)) if hops is None else hops
    if isinstance(hops, bool) or not isinstance(hops, int) or hops < 1:
        record.fail("hops", f"must be a whole number of at least 1, got {hops!r:.60}")
    is_set = record.values.get("is_answer_set")
    is_set = False if is_set is None else is_set
    if not isinstance(is_set, bool):
        record.fail("is_answer_set", f"must be true or false, got {is_set!r:.60}")
    answers = record.texts("answers", required=True)
    if not any(answer.strip() for answer in answers):
        record.fail("answers", "holds no usable answer; each is blank")
    return Task(
        id=record.text("id"),
        question=record.text("question"),
        answers=answers,
        evidence=evidence,
        hops=hops,
        kind=record.text("kind", record.text("type", "question")),
        proof=proof,
        level=record.text("level", "") or None,
        is_answer_set=is_set,
    )


def _proof_from(record: Record) -> tuple[ProofStep, ...]:
    steps = record.values.get("proof")
    steps = [] if steps is None else steps
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        record.fail("proof", "must be a list of objects with query, document and fact")
    records = [Record(record.path, record.line, step) for step in steps]
    return tuple(
        ProofStep(step.text("query", ""), step.text("document"), step.text("fact", ""))
        for step in records
    )


def _check_documents(record: Record, task: Task, corpus: Corpus) -> None:
    named: dict[str, tuple[object, ...]] = {
        "evidence": task.evidence,
        "proof": tuple(step.document for step in task.proof),
    }
    for field, ids in named.items():
        for document_id in ids:
            if document_id not in corpus:
                record.fail(field, f"names document {document_id!r}, which the corpus has not")
