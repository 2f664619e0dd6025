"""Find what gave tasks away in episodes that were played."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..agents.rollouts import Trajectory, Turn
from ..corpora.live import Leak, LeakFinder, LeakRules, TaskSecrets

__all__ = ["LeakedDocument", "audit"]


class LeakedDocument(NamedTuple):
    """One document or page that an agent was shown, and that gave its task away.

    Attributes:
        environment: The environment's id.
        agent: Who was shown it.
        task_id: The task.
        turn: In which turn, from 1.
        document: Its id or address; empty if the observation names none.
        rule: The rule that it broke.
        found: What was found.
    """

    environment: str
    agent: str
    task_id: str
    turn: int
    document: str
    rule: str
    found: str


def audit(
    trajectories: Iterable[Trajectory],
    rules: LeakRules | None = None,
    *,
    forbidden: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[LeakedDocument]:
    """Give each document that leaked, episode by episode, each once an episode.

    Looked at is what the agent was shown: the ids of documents, as addresses, and the text of
    each in the observation. An observation that names no document counts as one.

    Args:
        trajectories: Episodes that have ended: only they tell their gold answers.
        rules: What holds for every task.
        forbidden: Further forbidden texts, by task id.
    """
    texts = forbidden or {}
    for trajectory in trajectories:
        secrets = TaskSecrets(
            trajectory.task_id,
            trajectory.question,
            tuple(trajectory.outcome.get("gold_answers") or ()),
            tuple(texts.get(trajectory.task_id, ())),
        )
        finder = LeakFinder(rules or LeakRules(), [secrets])
        seen: set[tuple[str, str]] = set()
        for number, turn in enumerate(trajectory.turns, start=1):
            for document, leak in _leaks(turn, finder):
                if (document, leak.rule) in seen:
                    continue
                seen.add((document, leak.rule))
                yield LeakedDocument(
                    trajectory.environment,
                    trajectory.agent,
                    trajectory.task_id,
                    number,
                    document,
                    leak.rule,
                    leak.found,
                )


def _leaks(turn: Turn, finder: LeakFinder) -> Iterator[tuple[str, Leak]]:
    for document in turn.documents:
        if leak := finder.in_address(document):
            yield document, leak
    if turn.error is None:
        for document, text in _shown(turn):
            if leak := finder.in_text(text):
                yield document, leak


def _shown(turn: Turn) -> Iterator[tuple[str, str]]:
    """Give each document of a turn with its text, from where it is named to the next."""
    text = turn.observation
    places = sorted((text.find(_named(d, text)), d) for d in turn.documents)
    places = [(place, document) for place, document in places if place >= 0]
    if len(places) < max(1, len(turn.documents)):  # not each is named: the whole is one text
        yield ", ".join(turn.documents), text
        return
    ends = [place for place, _ in places[1:]] + [len(text)]
    starts = [0 if number == 0 else place for number, (place, _) in enumerate(places)]
    for start, end, (_, document) in zip(starts, ends, places, strict=True):
        yield document, text[start:end]


def _named(document: str, text: str) -> str:
    bracketed = f"[{document}]"
    return bracketed if bracketed in text else document
