"""The same team as a PettingZoo AECEnv: one agent after the other, only those who are asked."""

from typing import Any

from gymnasium.spaces import Space
from pettingzoo import AECEnv  # type: ignore[import-untyped]

from .parallel import TeamParallelEnv

__all__ = ["TeamAECEnv"]


class TeamAECEnv(AECEnv[str, Any, Any]):  # type: ignore[misc]
    """Play a team's tick one agent after the other.

    The agents of one tick do not see what the others do in it: the tick is played when the last
    of them has acted, so that episodes are those of the parallel environment. An agent that is
    not asked to act is passed over; ``pettingzoo.utils.parallel_to_aec`` of the parallel
    environment gives one that asks everybody in every tick.

    Args:
        parallel: The team.
    """

    def __init__(self, parallel: TeamParallelEnv) -> None:
        super().__init__()
        self.parallel = parallel
        self.metadata = parallel.metadata
        self.render_mode = parallel.render_mode
        self.possible_agents = parallel.possible_agents
        self.agents: list[str] = []
        self.agent_selection: str = self.possible_agents[0]

    @property
    def state_space(self) -> Space[Any]:
        """The space of ``state()``."""
        return self.parallel.state_space

    def observation_space(self, agent: str) -> Space[Any]:
        """Return the space of what an agent sees: always the same object."""
        return self.parallel.observation_space(agent)

    def action_space(self, agent: str) -> Space[Any]:
        """Return the space of what an agent may do: always the same object."""
        return self.parallel.action_space(agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Draw a task, or take the one asked for, and begin."""
        self._observations, self.infos = self.parallel.reset(seed=seed, options=options)
        self.agents = self.possible_agents.copy()
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._skip_agent_selection = None
        self._begin_tick()

    def step(self, action: Any) -> None:
        """Take the action of the selected agent; the last of a tick plays the tick."""
        agent: str = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._actions[agent] = action
        self._clear_rewards()
        if self._waiting:
            self.agent_selection = self._waiting.pop(0)
            return
        step = self.parallel.step(self._actions)
        self._observations, self.rewards, self.terminations, self.truncations, self.infos = step
        self._accumulate_rewards()
        self._begin_tick()

    def observe(self, agent: str) -> Any:
        """Return what an agent sees."""
        return self._observations[agent]

    def state(self) -> Any:
        """Return the state of the parallel environment."""
        return self.parallel.state()

    def render(self) -> Any:
        """Return the timeline so far, as text or as a page; None without a render mode."""
        return self.parallel.render()

    def close(self) -> None:
        """Close the parallel environment."""
        self.parallel.close()

    def _begin_tick(self) -> None:
        self._actions: dict[str, Any] = {}
        self._waiting = list(self.parallel.asked()) or self.agents.copy()
        self.agent_selection = self._waiting.pop(0)
