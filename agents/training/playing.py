"""A learned policy as a player of the bench: it chooses by numbers."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from ...corpora.errors import ConfigurationError
from ..policy import Policy
from ..rollouts.running import Reply, RunningEpisode
from ..rollouts.trajectory import Trajectory
from .sb3 import LearnedPolicy

__all__ = ["ChoosingPlayer"]


class ChoosingPlayer(Policy):
    """Plays environments of choices in numbers, such as menus, by a learned policy.

    Args:
        policy: What was learned; see ``sb3.load_policy``.
        name: What lists and reports call it.
    """

    plays_menus = True
    plays_texts = False

    def __init__(self, policy: LearnedPolicy, name: str) -> None:
        self.name = name
        self._policy = policy

    def play(self, episodes: Iterator[RunningEpisode]) -> Iterator[Trajectory]:
        """Play one episode after the other.

        Raises:
            ConfigurationError: The environment has other numbers than those it learned from.
        """
        for episode in episodes:
            learned, found = self._policy.model.observation_space, episode.env.observation_space
            if found != learned or episode.env.action_space != self._policy.model.action_space:
                raise ConfigurationError(
                    f"{self.name!r} learned from observations {learned} and chooses from "
                    f"{self._policy.model.action_space}; {episode.env} has {found} and "
                    f"{episode.env.action_space}"
                )
            while episode.may_go_on:
                mask = np.asarray(episode.info["action_mask"], dtype=np.bool_)
                choice = self._policy.choose(episode.observation, mask)
                episode.send(Reply(cast(Any, choice)))
            yield episode.finish()
