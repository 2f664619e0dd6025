"""Filters: which trajectories are worth learning from.

Each is a stage that gives trajectories as they came, or drops them; none changes one.
"""

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .calls import calls_of
from .grounding import ungrounded, words
from .pipeline import Stage, groups_of
from .trajectory import Trajectory, encodable

__all__ = [
    "CausallyGrounded",
    "Correct",
    "Deduplicated",
    "Filter",
    "Finished",
    "GroupVariance",
    "MinReward",
    "NoLeak",
    "Valid",
    "WellFormed",
    "WholeGroups",
    "has_variance",
]

_TOLERANCE = 1e-9


class Filter(Stage):
    """A stage that judges each trajectory by itself: a new filter needs ``keeps`` alone."""

    @abstractmethod
    def keeps(self, trajectory: Trajectory) -> bool:
        """Tell whether the trajectory is kept."""

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give those that are kept."""
        return filter(self.keeps, trajectories)


@dataclass(frozen=True)
class WholeGroups(Stage):
    """Lets a filter judge groups: a group is kept whole or dropped whole.

    Attributes:
        filter: Judges the members.
        least: How many members it must keep for the group to be kept; None for all of them.
    """

    filter: Filter
    least: int | None = None

    @property
    def name(self) -> str:
        """What a report calls it."""
        return f"{self.filter.name} (group)"

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give the groups that are kept."""
        for group in groups_of(trajectories):
            kept = sum(map(self.filter.keeps, group))
            if kept >= (len(group) if self.least is None else self.least):
                yield from group


class Valid(Filter):
    """Drops episodes that a backend or the policy itself lost: they are nobody's score."""

    def keeps(self, trajectory: Trajectory) -> bool:
        """Tell whether nothing failed."""
        return trajectory.outcome.get("valid") is not False and not trajectory.outcome.get(
            "failure"
        )


class Finished(Filter):
    """Drops suspended trajectories; ``Resume`` would play them on instead."""

    def keeps(self, trajectory: Trajectory) -> bool:
        """Tell whether the episode came to its end."""
        return not trajectory.is_suspended


@dataclass(frozen=True)
class MinReward(Filter):
    """Keeps trajectories whose summed reward is at least ``least``."""

    least: float

    def keeps(self, trajectory: Trajectory) -> bool:
        """Tell whether the reward is high enough."""
        return trajectory.total_reward >= self.least - _TOLERANCE


@dataclass(frozen=True)
class Correct(Filter):
    """Keeps trajectories whose answer is right, by a score that is in [0, 1].

    Attributes:
        metric: Which score; an episode without one is not right.
        least: From where on it is right.
    """

    metric: Literal["exact_match", "f1", "cover_exact_match"] = "exact_match"
    least: float = 1.0

    def keeps(self, trajectory: Trajectory) -> bool:
        """Tell whether the answer is right."""
        score = trajectory.outcome.get(self.metric)
        return score is not None and score >= self.least - _TOLERANCE


class WellFormed(Filter):
    """Drops trajectories with a wrong call, a cut-off reply, or text out of its protocol's form.

    The form is that of ``seekgym.envs.protocols``: an action that could be read although the
    text around it was not in order, or that was followed by text, is out of form.
    """

    def keeps(self, trajectory: Trajectory) -> bool:
        """Tell whether each turn is in order."""
        return all(
            turn.error is None and turn.finish != "length" and (call is None or call.is_well_formed)
            for turn, call in zip(trajectory.turns, calls_of(trajectory), strict=True)
        )


@dataclass(frozen=True)
class NoLeak(Filter):
    """Drops trajectories that could be right for the wrong reason.

    That is so where (a) a gold answer stands in the question, word for word, which it may do
    rightly where the question offers a choice: then switch it off; (b) the answer is right by
    exact match although no evidence was shown before: ``evidence_recall`` is 0 or, where the
    task names no evidence, no turn before showed a document; (c) something that was shown holds
    13 words of the question in a row, or all of it if it is shorter: a copy of the data set
    (the guard of CaRR, arXiv:2601.06021).

    Attributes:
        question: Whether (a) is tested.
        closed_book: Whether (b) is tested.
        overlap: How many words in a row (c) takes; None not to test it.
    """

    question: bool = True
    closed_book: bool = True
    overlap: int | None = 13

    def keeps(self, trajectory: Trajectory) -> bool:
        """Tell whether no leak is seen."""
        return not (
            (self.question and _answer_in_question(trajectory))
            or (self.closed_book and _is_closed_book(trajectory))
            or (self.overlap is not None and _shows_question(trajectory, self.overlap))
        )


@dataclass(frozen=True)
class CausallyGrounded(Filter):
    """Drops trajectories that name what they had not seen: luck, or knowledge by heart.

    Seen is what stands in the question and in the observations of earlier turns; an observation
    that says what was wrong with a call shows nothing, and a thought is no call. Words are
    compared without case. In the arguments of each call:

    - a word with a capital letter or a digit, a name or a number, must have been seen, unless
      it is the option of a command (it follows a hyphen) or a number of one or two digits
      (``5``, or sed's ``5p``);
    - an id or an address (no spaces, and a capital letter or a digit in it) must have been seen
      as it stands;
    - of an answer each word must have been seen, but for yes, no and unknown, and for numbers
      where the question asks how many or how much.

    Attributes:
        vocabulary: Further words that may be used without being seen, in lower case.
    """

    vocabulary: frozenset[str] = frozenset()

    def keeps(self, trajectory: Trajectory) -> bool:
        """Tell whether each call uses only what was seen before it."""
        return not ungrounded(trajectory, self.vocabulary)


class GroupVariance(Stage):
    """Drops groups whose members were all paid the same: they teach nothing.

    This is the dynamic sampling of DAPO (Yu et al. 2025, arXiv:2503.14476) for any reward. Only
    members that count, finished and valid, are compared; a group is kept whole.
    """

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give the groups that are kept."""
        for group in groups_of(trajectories):
            if has_variance(group):
                yield from group


@dataclass(frozen=True)
class Deduplicated(Stage):
    """Drops a trajectory whose actions, in the same task, were seen before.

    A text counts without its case and spacing.
    """

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give the first of each."""
        seen = set()
        for trajectory in trajectories:
            actions = [_plain(encodable(turn.action)) for turn in trajectory.turns]
            key = json.dumps([trajectory.env_hash, trajectory.task_id, actions], sort_keys=True)
            if key not in seen:
                seen.add(key)
                yield trajectory


def has_variance(group: Sequence[Trajectory]) -> bool:
    """Tell whether the members of a group that count were paid differently."""
    rewards = [each.total_reward for each in group if Valid().keeps(each) and not each.is_suspended]
    return bool(rewards) and max(rewards) - min(rewards) > _TOLERANCE


def _plain(value: Any) -> Any:
    """Return what JSON can hold with its texts in lower case and evenly spaced."""
    if isinstance(value, str):
        return " ".join(value.casefold().split())
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _answer_in_question(trajectory: Trajectory) -> bool:
    asked = f" {' '.join(words(trajectory.question))} "
    golds = trajectory.outcome.get("gold_answers") or ()
    return any(f" {' '.join(words(gold))} " in asked for gold in golds if words(gold))


def _is_closed_book(trajectory: Trajectory) -> bool:
    if trajectory.outcome.get("exact_match") != 1.0:
        return False
    recall = trajectory.outcome.get("evidence_recall")
    if recall is None:
        return not any(turn.documents for turn in trajectory.turns)
    return bool(recall == 0)


def _shows_question(trajectory: Trajectory, overlap: int) -> bool:
    asked = words(trajectory.question)
    length = min(overlap, len(asked))
    pieces = [
        f" {' '.join(asked[start : start + length])} " for start in range(len(asked) - length + 1)
    ]
    shown = [f" {' '.join(words(turn.observation))} " for turn in trajectory.turns]
    return bool(length) and any(piece in text for piece in pieces for text in shown)
