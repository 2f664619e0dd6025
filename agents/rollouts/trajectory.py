"""A played episode as one line of JSON, that can be played again."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from ...corpora.documents import Record, read_jsonl
from ...corpora.errors import CorpusError
from ...corpora.text import replace_surrogates

__all__ = [
    "Segment",
    "Trajectory",
    "Turn",
    "encodable",
    "read_trajectories",
    "write_trajectories",
]


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens that a language model read and wrote in one go: what its trainer needs.

    The ids are those that the model really saw, in order; nothing was decoded and encoded again.
    An episode has one segment, and one more each time that its context was compacted.

    Attributes:
        ids: Token ids.
        mask: For each id, 1 if the policy sampled it, 0 if it was given.
        log_probs: For each id, the natural logarithm of its probability when it was sampled, at
            the sampling temperature and before any constraint; 0.0 where the mask is 0.
    """

    ids: tuple[int, ...]
    mask: tuple[int, ...]
    log_probs: tuple[float, ...]


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
        finish: Why the policy stopped writing: ``stop``, ``length`` if its reply was cut off, or
            empty where no language model played.
        span: Where the reply stands in the tokens: segment, first token, token after the last.
    """

    action: Any
    observation: str
    reward: float
    reward_terms: Mapping[str, float]
    error: str | None = None
    documents: tuple[str, ...] = ()
    finish: str = ""
    span: tuple[int, int, int] | None = None


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
        id: Tells it from the other trajectories of its rollout; empty for one played alone.
        group: What trajectories that began alike share: the same task, the same first state.
        parent: The id of the trajectory that it branched off from; empty if it began at a reset.
        shared_turns: How many first turns it took over from its parent.
        segments: The tokens, where a language model played.
        usage: What it cost: counts of tokens and calls, and money where a price is known.
        is_suspended: Whether it was put aside before its end, to be resumed.
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
    id: str = ""
    group: str = ""
    parent: str = ""
    shared_turns: int = 0
    segments: tuple[Segment, ...] = ()
    usage: Mapping[str, float] = field(default_factory=dict)
    is_suspended: bool = False

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
        golds = values["outcome"].get("gold_answers") or []  # none before the end
        if not isinstance(golds, list) or not all(isinstance(gold, str) for gold in golds):
            record.fail("outcome", f"gold_answers must be a list of texts, got {golds!r:.60}")
        values["wrappers"] = tuple(values.get("wrappers", ()))
        segments = values.pop("segments", [])
        if not isinstance(segments, list) or not all(map(_is_segment, segments)):
            record.fail("segments", "must be a list of ids, mask and log_probs of equal lengths")
        try:
            return cls(
                turns=tuple(_read_turn(turn) for turn in turns),
                segments=tuple(
                    Segment(**{name: tuple(values) for name, values in segment.items()})
                    for segment in segments
                ),
                **values,
            )
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


def _is_segment(segment: Any) -> bool:
    return (
        isinstance(segment, dict)
        and segment.keys() == {"ids", "mask", "log_probs"}
        and all(isinstance(values, list) for values in segment.values())
        and len({len(values) for values in segment.values()}) == 1
        and all(type(value) is int for value in segment["ids"])
        and all(value in (0, 1) for value in segment["mask"])
        and all(type(value) in (int, float) for value in segment["log_probs"])
    )


def _read_turn(turn: Mapping[str, Any]) -> Turn:
    span = turn.get("span")
    return Turn(
        **{
            **turn,
            "documents": tuple(turn.get("documents", ())),
            "span": None if span is None else tuple(span),
        }
    )


def encodable(value: Any) -> Any:
    """Return the value as JSON can hold it: anything unknown becomes its text."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, Mapping):
        return {replace_surrogates(str(key)): encodable(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        return encodable(value.item())
    if isinstance(value, (list, tuple)):
        return [encodable(item) for item in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return replace_surrogates(repr(value))
