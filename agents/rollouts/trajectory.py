"""A played episode as one line of JSON, that can be played again."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ...corpora.documents import Record, read_jsonl
from ...corpora.errors import CorpusError
from ...corpora.text import replace_surrogates

__all__ = ["Trajectory", "Turn", "encodable", "read_trajectories", "write_trajectories"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn.

    Attributes:
        action: What the agent sent: a tool call, or a text.
        observation: What came back.
        reward: What it was paid.
        reward_terms: The parts of the reward, by name.
        error: The code of what was wrong with the action, or None.
        documents: Ids of the documents shown.
    """

    action: Any
    observation: str
    reward: float
    reward_terms: Mapping[str, float]
    error: str | None = None
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A whole episode.

    Attributes:
        environment: The environment's id.
        arguments: What ``gym.make`` was given beside the id, as far as JSON can hold it.
        env_hash: The hash of the environment, its arguments and its data.
        wrappers: The wrappers around the environment, outermost last, as name, entry point and
            keyword arguments.
        seed: The seed of the reset, or None.
        task_id: The task.
        agent: Who played.
        question: The first observation.
        turns: The turns, in order.
        outcome: What ``info`` said at the end: scores, answer, counts.
    """

    environment: str
    arguments: Mapping[str, Any]
    env_hash: str
    seed: int | None
    task_id: str
    agent: str
    question: str
    turns: tuple[Turn, ...]
    outcome: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[Mapping[str, Any], ...] = ()

    @property
    def total_reward(self) -> float:
        """The sum of the turns' rewards."""
        return sum(turn.reward for turn in self.turns)

    def to_json(self) -> str:
        """Return one line of JSON, without NaN or lone surrogates."""
        return json.dumps(encodable(asdict(self)), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Read a trajectory from a line of a file.

        Raises:
            CorpusError: A field is missing or of the wrong type; names file, line and field.
        """
        values = dict(record.values)
        turns = values.pop("turns", None)
        if not isinstance(turns, list) or not all(map(_is_turn, turns)):
            record.fail("turns", "must be a list of turns: action, observation, reward, ...")
        for name in ("environment", "env_hash", "task_id", "agent", "question"):
            record.text(name)
        for name in ("arguments", "outcome"):
            if not isinstance(values.get(name), dict):
                record.fail(name, f"must be an object, got {values.get(name)!r:.60}")
        golds = values["outcome"].get("gold_answers", [])
        if not isinstance(golds, list) or not all(isinstance(gold, str) for gold in golds):
            record.fail("outcome", f"gold_answers must be a list of texts, got {golds!r:.60}")
        values["wrappers"] = tuple(values.get("wrappers", ()))
        try:
            read = tuple(
                Turn(**{**turn, "documents": tuple(turn.get("documents", ()))}) for turn in turns
            )
            return cls(turns=read, **values)
        except TypeError as error:
            raise CorpusError(
                f"{record.path}, line {record.line}: not a trajectory ({error})"
            ) from None


def read_trajectories(path: str | os.PathLike[str]) -> Iterator[Trajectory]:
    """Give each trajectory of a file.

    Raises:
        CorpusError: With file, line and field.
    """
    return map(Trajectory.from_record, read_jsonl(path))


def write_trajectories(trajectories: Iterable[Trajectory], path: str | os.PathLike[str]) -> None:
    """Write trajectories, one a line."""
    with open(path, "w", encoding="utf-8") as file:
        for trajectory in trajectories:
            file.write(trajectory.to_json() + "\n")


def _is_turn(turn: Any) -> bool:
    return (
        isinstance(turn, dict)
        and isinstance(turn.get("observation"), str)
        and type(turn.get("reward")) in (int, float)
        and isinstance(turn.get("reward_terms"), dict)
    )


def encodable(value: Any) -> Any:
    """Return the value as JSON can hold it: anything unknown becomes its text."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, Mapping):
        return {replace_surrogates(str(key)): encodable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encodable(item) for item in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return replace_surrogates(repr(value))
