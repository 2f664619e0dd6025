"""A wrapper that turns a menu into numbers, for learners that read no text."""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs

from ...corpora.errors import ConfigurationError
from ..leads import BUCKETS, Lead
from .menu import Menu, MenuChoice

__all__ = ["CHOICE_FEATURES", "EPISODE_FEATURES", "Features", "find_features"]

EPISODE_FEATURES = (
    "turns_left",  # the share of the turns
    "is_first_turn",
    "searches",  # made so far, as a share of the turns
    "progress",  # the most that any choice's lead has; see envs.leads
    "answers",  # the share of the places that answer
    "invalid",  # invalid choices so far, as a share of the turns
)
CHOICE_FEATURES = (
    "is_answer",
    "is_open",
    "is_search",
    "is_stop",  # all four are 0 where there is no choice
    "progress",  # how far the question's words led to it, innermost first
    "is_complete",  # all of them were used up
    "leads_furthest",  # no lead of the menu has more progress
    "overlap",  # the share of the question's words in its sentence
    "first",  # how early in the question the earliest of them stands
    "is_subject_asked",  # the sentence is about something that the question names
    "is_subject_found",  # it is about something that another sentence names
    "is_name",
    "is_asked",  # the question names it
    "is_seen",  # the document of that name was shown
    "is_relation",  # a search that says what of the name is asked
    "age",  # how long ago it was read, as a share of the turns
    *(f"shares_{bucket}" for bucket in range(BUCKETS)),  # hashed words shared with the question
)
_KINDS = ("answer", "open", "search", "stop")


class Features(gym.Wrapper[np.ndarray, Any, str, Any], RecordConstructorArgs):
    """Shows a menu as a fixed number of features: ``Box`` in, ``Discrete`` with a mask out.

    Observation: ``EPISODE_FEATURES``, then ``CHOICE_FEATURES`` for each place of the menu, all
    in [0, 1], float32. They are computed from the texts of the question and the observations,
    never from gold, so that one- and two-hop questions of Phantom can be played from them alone.
    There are no sentence embeddings: they would need a model that the core does not have. Where a
    choice stands says nothing, so a network does best to score every choice with the same weights.

    ``info["text"]`` holds what the menu shows. All else is as in ``Menu``.

    Args:
        env: A ``Menu``.

    Raises:
        ConfigurationError: It is no ``Menu``.
    """

    episode_width: ClassVar[int] = len(EPISODE_FEATURES)
    choice_width: ClassVar[int] = len(CHOICE_FEATURES)

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        if not isinstance(env, Menu):
            raise ConfigurationError(
                f"Features wraps a Menu, got {type(env).__name__}: Features(Menu(env))"
            )
        self.menu = env
        length = self.episode_width + env.size * self.choice_width
        self.observation_space = Box(0.0, 1.0, (length,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the features of the first turn."""
        text, info = self.env.reset(seed=seed, options=options)
        info["text"] = text
        return self.features(), info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Make a choice."""
        text, reward, terminated, truncated, info = self.env.step(action)
        info["text"] = text
        return self.features(), float(reward), terminated, truncated, info

    def action_masks(self) -> np.ndarray:
        """Return which numbers stand for a choice: booleans, shape (size,)."""
        return self.menu.action_masks()

    def features(self) -> np.ndarray:
        """Return the observation of the episode as it stands, a restored one too."""
        inner, choices = self.menu.search_env, self.menu.choices()
        episode, max_turns = inner.episode, inner.rules.max_turns
        furthest = max((c.lead.progress for c in choices if c.lead is not None), default=0.0)
        rows = np.zeros((self.menu.size, self.choice_width), dtype=np.float32)
        for place, choice in enumerate(choices):
            rows[place] = _choice_row(choice, furthest, episode.turn, max_turns)
        searches = sum(count for tool, count in episode.calls.items() if tool != "answer")
        shared = (
            1 - episode.turn / max_turns,
            episode.turn == 0,
            min(1.0, searches / max_turns),
            furthest,
            sum(choice.kind == "answer" for choice in choices) / self.menu.size,
            min(1.0, episode.invalid_calls / max_turns),
        )
        return np.concatenate((np.array(shared, dtype=np.float32), rows.reshape(-1)))


def find_features(env: gym.Env[Any, Any]) -> Features | None:
    """Return the Features among the wrappers of an environment, or None."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, Features):
            return env
        env = env.env
    return None


def _choice_row(
    choice: MenuChoice, furthest: float, turn: int, max_turns: int
) -> tuple[float, ...]:
    lead = choice.lead or Lead("", False, False, 0.0, 0)
    return (
        *(float(choice.kind == kind) for kind in _KINDS),
        lead.progress,
        float(lead.progress == 1.0),
        float(lead.progress == furthest and choice.lead is not None),
        lead.overlap,
        lead.first,
        float(lead.is_subject_asked),
        float(lead.is_subject_found),
        float(lead.is_name),
        float(lead.is_asked),
        float(choice.is_seen),
        float(choice.is_relation),
        min(1.0, (turn - lead.turn) / max_turns) if lead.turn else 0.0,
        *(float(bucket in lead.buckets) for bucket in range(BUCKETS)),
    )
