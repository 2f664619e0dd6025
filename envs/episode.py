"""The state of one episode, and how a turn changes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self

from ..corpora.tasks import Task
from .actions import ProtocolError
from .outcome import Outcome
from .rules import Rules
from .scoring import Scores, score_answer
from .tools import Tool, ToolResult

__all__ = ["Call", "Episode", "Message", "Pending", "Snapshot", "Source"]

Source = Literal["agent", "environment"]


class Message(NamedTuple):
    """One message of a transcript, with who wrote it."""

    source: Source
    text: str


class Call(NamedTuple):
    """A tool call of a transcript, put into words only when a transcript is asked for."""

    name: str
    arguments: Mapping[str, Any]


class Pending(NamedTuple):
    """A turn that has begun.

    Attributes:
        tool: The tool to run; None if the action was no known call.
        arguments: Its arguments, cleaned.
        error: What was wrong with the action, or None.
        queries: What the retriever is asked.
        is_well_formed: Whether the action kept to its protocol's form.
        note: What is to be told to the agent beside the result.
    """

    tool: Tool | None
    arguments: Mapping[str, Any]
    error: ProtocolError | None = None
    queries: Sequence[str] = ()
    is_well_formed: bool = True
    note: str = ""


@dataclass(slots=True)
class Episode:
    """What changes from turn to turn."""

    task: Task
    turn: int = 0
    is_over: bool = False
    is_well_formed: bool = True
    valid_calls: int = 0
    invalid_calls: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    documents: dict[str, None] = field(default_factory=dict)  # an ordered set
    queries: dict[str, None] = field(default_factory=dict)  # an ordered set, normalised
    messages: list[Message | Call] = field(default_factory=list)
    memory: Any = None  # what tools keep from turn to turn; an immutable, small value

    def copy(self) -> Self:
        """Return an episode that goes its own way from here."""
        return replace(
            self,
            calls=self.calls.copy(),
            documents=self.documents.copy(),
            queries=self.queries.copy(),
            messages=self.messages.copy(),
        )

    @property
    def evidence_recall(self) -> float | None:
        """The share of the task's evidence that was shown; None for a task without any."""
        evidence = set(self.task.evidence)
        if not evidence:
            return None
        return len(evidence & self.documents.keys()) / len(evidence)

    def advance(self, pending: Pending, result: ToolResult, rules: Rules) -> Outcome:
        """Take the result of a turn into the episode, and say what the turn did."""
        self.turn += 1
        new = tuple(d for d in dict.fromkeys(result.documents) if d not in self.documents)
        self.documents.update(dict.fromkeys(new))
        query = " ".join(pending.queries[0].lower().split()) if pending.queries else None
        is_repeated = query is not None and query in self.queries
        if query is not None:
            self.queries[query] = None
        is_valid = result.error is None
        self.valid_calls += is_valid
        self.invalid_calls += not is_valid
        self.is_well_formed &= is_valid and pending.is_well_formed
        name = None if pending.tool is None else pending.tool.signature.name
        if name is not None:
            self.calls[name] = self.calls.get(name, 0) + 1
        is_answered = result.answer is not None
        is_ended = is_answered or (not is_valid and rules.on_invalid == "end")
        self.is_over = is_ended or self.turn >= rules.max_turns
        return Outcome(
            task=self.task,
            turn=self.turn,
            tool=name,
            arguments=pending.arguments,
            error=result.error,
            documents=result.documents,
            new_documents=new,
            is_repeated_query=is_repeated,
            is_well_formed=self.is_well_formed,
            is_terminated=is_ended,
            is_truncated=self.is_over and not is_ended,
            answer=result.answer,
            scores=_scores(result.answer, self.task, rules),
            seen=tuple(self.documents),
            citations=result.citations,
            supported=result.supported,
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A point in an episode to come back to: small, picklable, independent of the corpus."""

    env_hash: str
    episode: Episode = field(repr=False)  # it holds the gold answers
    generator_state: Mapping[str, Any] = field(repr=False)


def _scores(answer: str | None, task: Task, rules: Rules) -> Scores | None:
    if answer is None:
        return None
    return score_answer(
        answer, task.answers, is_answer_set=task.is_answer_set, convention=rules.convention
    )
