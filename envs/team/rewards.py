"""Local reward terms: what a single agent of a team is paid for, beside the team's outcome.

Each is a small class like the terms of ``envs.rewards``; it sees one turn of one agent, a
``TeamAct``, and nothing else.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...corpora.errors import ConfigurationError, raise_unknown
from ..outcome import Outcome
from ..rewards import RewardTerm
from .roles import Role, role_of

__all__ = [
    "LOCAL_TERMS",
    "Duplication",
    "LocalTerm",
    "NewEvidence",
    "ReportFaithfulness",
    "SpeedUp",
    "SplitCorrectness",
    "TeamAct",
    "WordsSent",
    "reported_facts",
    "resolve_local",
]

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NAME = re.compile(r"\d[\w.,-]*\w|\d|[^\W\d_a-zß-ÿ][\w'’-]*")
_WORD = re.compile(r"\w+")
_NO_NAMES = frozenset("The A An It He She They Yes No This That In On At Its His Her".split())


class TeamAct(NamedTuple):
    """What one turn of one agent did. Local terms see this and nothing else.

    Attributes:
        agent: Who acted.
        outcome: What the turn did; ``new_documents`` are new to the whole team, and
            ``is_repeated_query`` counts what anybody of the team searched before.
        shown_to_others: Those of the turn's documents that another searcher was shown before.
        sub_questions: What a leader's turn assigned.
        report: What a searcher's turn reported, as it was sent on, or None.
        seen: All that this searcher was shown in the episode.
        words: How many words the turn sent to others.
        turns: The turns of all agents together, this one included.
        ticks: The ticks so far, this one included.
    """

    agent: str
    outcome: Outcome
    shown_to_others: tuple[str, ...]
    sub_questions: tuple[str, ...]
    report: str | None
    seen: tuple[str, ...]
    words: int
    turns: int
    ticks: int


@dataclass(frozen=True)
class LocalTerm(RewardTerm, ABC):
    """One named part of an agent's own reward.

    Attributes:
        role: Whose turns it looks at.
        is_for_leader: The leader is paid for it, whoever's turn it was.
    """

    role: ClassVar[Role | None] = None
    is_for_leader: ClassVar[bool] = False

    def payee(self, act: TeamAct) -> str:
        """Return who is paid for a turn."""
        return "leader_0" if self.is_for_leader else act.agent

    def pays(self, agent: str) -> bool:
        """Tell whether an agent can be paid by this term."""
        if self.is_for_leader:
            return agent == "leader_0"
        return self.role is None or role_of(agent) == self.role

    def value(self, outcome: Outcome) -> float:
        """Return 0: a local term looks at more than an outcome."""
        return 0.0

    @abstractmethod
    def local_value(self, act: TeamAct) -> float:
        """Return the term's value for one turn, before the weight."""


@dataclass(frozen=True)
class NewEvidence(LocalTerm):
    """The share of the task's evidence that this searcher was the first of the team to see."""

    role = "searcher"

    def local_value(self, act: TeamAct) -> float:
        """Return the share of the evidence that is new with this turn."""
        evidence = set(act.outcome.task.evidence)
        return len(evidence & set(act.outcome.new_documents)) / len(evidence) if evidence else 0.0


@dataclass(frozen=True)
class ReportFaithfulness(LocalTerm):
    """The share of the facts of a report that this searcher's own observations state.

    A fact is a sentence with a name or a number; an observation states it if all its names and
    numbers stand in that one observation.
    """

    role = "searcher"

    def local_value(self, act: TeamAct) -> float:
        """Return the share of a report's facts; 0 for a report without any."""
        facts = reported_facts(act.report or "")
        seen = [set(_WORD.findall(text.lower())) for text in act.seen] if facts else []
        stated = sum(any(fact <= words for words in seen) for fact in facts)
        return stated / len(facts) if facts else 0.0


@dataclass(frozen=True)
class Duplication(LocalTerm):
    """A cost for documents that another searcher was shown before."""

    role = "searcher"
    low, high, best = -1.0, 0.0, 0.0

    def local_value(self, act: TeamAct) -> float:
        """Return minus the share of the turn's documents that another was shown."""
        shown = len(set(act.outcome.documents))
        return -len(act.shown_to_others) / shown if shown else 0.0


@dataclass(frozen=True)
class WordsSent(LocalTerm):
    """A cost for every hundred words sent to others."""

    low, high, best = -float("inf"), 0.0, 0.0

    def local_value(self, act: TeamAct) -> float:
        """Return minus the words of the turn, in hundreds."""
        return -act.words / 100


@dataclass(frozen=True)
class SplitCorrectness(LocalTerm):
    """The share of the assigned sub-questions that hold a step of the proof, each step once."""

    role = "leader"

    def local_value(self, act: TeamAct) -> float:
        """Return the share; 0 for a task without a proof."""
        left = [_words(step.query) for step in act.outcome.task.proof if step.query]
        found = 0
        for sub_question in act.sub_questions:
            words = _words(sub_question)
            held = [query for query in left if query <= words]
            found += bool(held)
            left = [query for query in left if query not in held]
        return found / len(act.sub_questions) if act.sub_questions else 0.0


@dataclass(frozen=True)
class SpeedUp(LocalTerm):
    """What working at the same time saved: the share of the turns, once the answer is right."""

    is_for_leader = True

    def local_value(self, act: TeamAct) -> float:
        """Return ``1 - ticks / turns`` for a right answer."""
        scores = act.outcome.scores
        return 1 - act.ticks / act.turns if scores is not None and scores.exact_match else 0.0


LOCAL_TERMS: dict[str, type[LocalTerm]] = {
    term().name: term
    for term in (
        NewEvidence,
        ReportFaithfulness,
        Duplication,
        WordsSent,
        SplitCorrectness,
        SpeedUp,
    )
}


def reported_facts(report: str) -> list[frozenset[str]]:
    """Return the names and numbers of each sentence that has any, in lower case.

    Example:
        >>> [sorted(fact) for fact in reported_facts("The job of Ann is cook. Yes it is.")]
        [['ann']]
    """
    facts = (_names(sentence) for sentence in _SENTENCE.split(report))
    return [fact for fact in facts if fact]


def _names(sentence: str) -> frozenset[str]:
    words = (match[0] for match in _NAME.finditer(sentence) if match[0] not in _NO_NAMES)
    return frozenset(part for word in words for part in _WORD.findall(word.lower()))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def resolve_local(terms: Sequence[str | LocalTerm] | str) -> tuple[LocalTerm, ...]:
    """Return local terms, given as names or as objects.

    Raises:
        ConfigurationError: A name is unknown, something is no local term, or two share a name.
    """
    given = (terms,) if isinstance(terms, (str, LocalTerm)) else terms
    if not isinstance(given, Iterable):
        raise ConfigurationError(f"local must be a list of local terms, got {given!r:.60}")
    found: list[LocalTerm] = []
    for term in given:
        if isinstance(term, str):
            if term not in LOCAL_TERMS:
                raise_unknown("local term", term, LOCAL_TERMS)
            term = LOCAL_TERMS[term]()
        if not isinstance(term, LocalTerm):
            raise ConfigurationError(f"local must hold LocalTerm objects or names, got {term!r}")
        found.append(term)
    names = [term.name for term in found]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"two local terms share a name: {', '.join(names)}")
    return tuple(found)
