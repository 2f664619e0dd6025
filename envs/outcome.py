"""What one turn of an episode did."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..corpora.tasks import Task
from .scoring import Scores

__all__ = ["Outcome"]


class Outcome(NamedTuple):
    """What one turn did. Reward terms see this and nothing else.

    Attributes:
        task: The episode's task, gold answers and evidence included.
        turn: Which turn it was, from 1.
        tool: The tool that was called; None if the action was no known call.
        arguments: Its arguments.
        error: The code of what was wrong, or None.
        documents: Ids of the documents shown in this turn.
        new_documents: Those of them not shown before in the episode.
        is_repeated_query: A search for the same words was made before.
        is_well_formed: No call of the episode so far was invalid or out of form.
        is_terminated: The turn ended the task.
        is_truncated: The turn was the last of the budget.
        answer: The answer given in this turn, or None.
        scores: The answer's scores; None if no answer was given in this turn.
        seen: Ids of the documents shown so far in the episode.
        citations: Ids of the documents that the answer names as its sources.
        supported: Those of them that were shown and state what the answer rests on.
    """

    task: Task
    turn: int
    tool: str | None
    arguments: Mapping[str, Any]
    error: str | None
    documents: tuple[str, ...]
    new_documents: tuple[str, ...]
    is_repeated_query: bool
    is_well_formed: bool
    is_terminated: bool
    is_truncated: bool
    answer: str | None
    scores: Scores | None
    seen: tuple[str, ...] = ()
    citations: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()
