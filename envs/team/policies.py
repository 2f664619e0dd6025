"""One role of a team as one class: what an external team plugs in."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from .parallel import TeamParallelEnv
from .roles import Role

__all__ = ["RolePolicy"]


class RolePolicy(ABC):
    """Plays one agent of a team.

    Attributes:
        role: Which role it plays.
        sees_gold: Whether it reads the gold answers, the evidence or the proof.

    Args:
        env: The team's environment, for its tools (``env.action_space(agent)``). Only a policy
            that says ``sees_gold`` may look at ``env.task``.
        agent: Which agent it plays.
    """

    role: ClassVar[Role]
    sees_gold: ClassVar[bool] = False

    def __init__(self, env: TeamParallelEnv, agent: str) -> None:
        self.env = env
        self.agent = agent

    def reset(self, seed: int) -> None:  # noqa: B027 - many policies keep nothing
        """Forget the last episode; a policy that draws seeds its generator here."""

    @abstractmethod
    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return the next action, given what the agent reads."""
