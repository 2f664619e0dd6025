"""The trace of a team's episode: one event for each thing that happened, one line of JSON each.

An event's line is an object with these fields:

=========== ====================================================================================
``schema``  ``"seekgym-team-trace/1"``
``episode`` the number of the episode in the file, from 0
``id``      the number of the event in its episode, from 0
``kind``    ``spawn, assign, call, report, aggregate, hand_over, answer, fault`` or ``stop``
``agent``   who did it, or whom it happened to
``round``   the round: 0 before the first assignment
``tick``    the tick: 0 before the first action; agents that act in the same tick do not see
            what the others do in it
``parents`` the ids of the events that it came from
``name``    the tool that was called, or None
``text``    what was sent: query, report, answer, or what went wrong; of an ``assign`` one
            sub-question a line
``to``      who was sent it; of an ``assign`` one for each line
``documents`` ids of the documents that it showed
``error``   the code of what was wrong, or None
``detail``  what else there is to say: the task of a ``spawn`` of the leader, the ``conflicts``
            and ``missing`` reports of an ``aggregate``, the outcome of a ``stop``
=========== ====================================================================================
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from ...corpora.documents import Record, read_jsonl, with_tuples
from ...corpora.text import replace_surrogates

__all__ = [
    "ACTS",
    "SCHEMA",
    "Event",
    "TeamMetrics",
    "find_conflicts",
    "is_trace",
    "measure",
    "read_traces",
    "write_traces",
]

SCHEMA = "seekgym-team-trace/1"
Kind = Literal[
    "spawn", "assign", "call", "report", "aggregate", "hand_over", "answer", "fault", "stop"
]
ACTS = ("assign", "call", "report", "hand_over", "answer", "fault")  # what takes a turn
_KINDS = (*ACTS, "spawn", "aggregate", "stop")
_TYPES: dict[str, tuple[type, Any]] = {
    "id": (int, None),
    "round": (int, None),
    "tick": (int, None),
    "agent": (str, None),
    "text": (str, ""),
    "parents": (list, []),
    "to": (list, []),
    "documents": (list, []),
    "detail": (dict, {}),
}
_CLAIM = re.compile(r"(?:^|(?<=[.!?]) )([^.!?]+?) (?:is|was|are|were) ([^!?]+?)(?=[.!?](?: |$)|$)")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; the module says what the fields mean."""

    id: int
    kind: Kind
    agent: str
    round: int
    tick: int
    parents: tuple[int, ...] = ()
    name: str | None = None
    text: str = ""
    to: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    error: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


class TeamMetrics(NamedTuple):
    """What a trace says of how a team worked.

    Attributes:
        ticks: How many ticks the episode took.
        critical_path_ticks: The most turns that came one after the other, each from the last.
        critical_path_calls: The most searches and reads that did.
        turns: The turns of all agents together.
        calls: The searches and reads of all agents together.
        speed_up: ``turns / critical_path_ticks``.
        parallel_efficiency: The share of searchers' turns that were used, in the ticks in which
            a searcher was at work, of the searchers that were assigned anything.
        messages: Sub-questions, reports and hand-overs sent.
        words: The words of those.
        conflicts: Pairs of reports that contradict each other.
        faults: Turns that came to nothing.
    """

    ticks: int
    critical_path_ticks: int
    critical_path_calls: int
    turns: int
    calls: int
    speed_up: float
    parallel_efficiency: float
    messages: int
    words: int
    conflicts: int
    faults: int


def measure(events: Sequence[Event]) -> TeamMetrics:
    """Return the metrics of one episode's events."""
    acts = [event for event in events if event.kind in ACTS]
    at_work = [event for event in acts if event.agent.startswith("searcher")]
    seats = {event.agent for event in at_work}
    room = len(seats) * len({event.tick for event in at_work})
    path = _longest(events, ACTS)
    return TeamMetrics(
        ticks=max((event.tick for event in events), default=0),
        critical_path_ticks=path,
        critical_path_calls=_longest(events, ("call",)),
        turns=len(acts),
        calls=sum(event.kind == "call" for event in acts),
        speed_up=len(acts) / path if path else 0.0,
        parallel_efficiency=len(at_work) / room if room else 0.0,
        messages=sum(len(event.to) for event in events),
        words=sum(len(event.text.split()) for event in events if event.to),
        conflicts=len({pair for event in events for pair in event.detail.get("conflicts", ())}),
        faults=sum(event.kind == "fault" for event in acts),
    )


def _longest(events: Sequence[Event], counted: Sequence[str]) -> int:
    """Return the most counted events on a path from a parent to its child and on."""
    lengths: dict[int, int] = {}
    for event in events:  # parents come first
        before = max((lengths[parent] for parent in event.parents), default=0)
        lengths[event.id] = before + (event.kind in counted)
    return max(lengths.values(), default=0)


def find_conflicts(reports: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
    """Return the pairs of reports that say different things of the same subject.

    A sentence "A is B" is a claim of A; reports conflict if one says of A what the other says
    otherwise. Case and spaces do not matter.

    Example:
        >>> find_conflicts([(4, "The job of Ann is baker."), (7, "The job of Ann is cook.")])
        [(4, 7)]
    """
    claims = [(number, _claims(text)) for number, text in reports]
    return [
        (first, second)
        for place, (first, said) in enumerate(claims)
        for second, told in claims[place + 1 :]
        if any(said[subject].isdisjoint(told[subject]) for subject in said.keys() & told.keys())
    ]


@lru_cache(maxsize=1_024)
def _claims(text: str) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for match in _CLAIM.finditer(" ".join(text.lower().split())):
        found.setdefault(match[1].strip(), set()).add(match[2].strip())
    return found


def write_traces(episodes: Iterable[Sequence[Event]], path: str | os.PathLike[str]) -> None:
    """Write the events of some episodes, one a line."""
    with open(path, "w", encoding="utf-8") as file:
        for number, events in enumerate(episodes):
            for event in events:
                line = {"schema": SCHEMA, "episode": number, **asdict(event)}
                text = json.dumps(line, ensure_ascii=False, allow_nan=False)
                file.write(replace_surrogates(text) + "\n")


def read_traces(path: str | os.PathLike[str]) -> list[list[Event]]:
    """Return the events of each episode of a file.

    Raises:
        CorpusError: With file, line and field.
    """
    episodes: dict[int, list[Event]] = {}
    for record in read_jsonl(path):
        episode = record.values.get("episode")
        if type(episode) is not int:
            record.fail("episode", f"must be a whole number, got {episode!r:.60}")
        events = episodes.setdefault(episode, [])
        events.append(_event_from(record, {event.id for event in events}))
    return list(episodes.values())


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file's first line is an event of a trace."""
    first = next(iter(read_jsonl(path)), None)
    return first is not None and "schema" in first.values


def _event_from(record: Record, known: set[int]) -> Event:
    values = dict(record.values)
    if values.pop("schema", None) != SCHEMA:
        record.fail("schema", f"must be {SCHEMA!r}")
    del values["episode"]
    if values.get("kind") not in _KINDS:
        record.fail("kind", f"must be one of {', '.join(_KINDS)}, got {values.get('kind')!r:.40}")
    for name, (kind, default) in _TYPES.items():
        if type(values.setdefault(name, default)) is not kind:
            wanted = kind.__name__
            record.fail(name, f"must be of type {wanted}, got {values[name]!r:.40}")
        values[name] = with_tuples(values[name])
    if not known.issuperset(values["parents"]):
        record.fail("parents", "must name events that come before")
    extra = sorted(values.keys() - Event.__dataclass_fields__.keys())
    if extra:
        record.fail(extra[0], "is not known")
    return Event(**values)
