"""A wrapper that lets a policy that writes text play."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs

from ...corpora.errors import ConfigurationError
from ..actions import Action, CutText, ProtocolError, cut_off
from ..base import SearchEnv
from ..protocols import Kind, get_protocol
from ..spaces import FreeText

__all__ = ["TextProtocol"]

_MAX_ACTION_CHARS = 2_000_000
_TAG_CHARS = 100  # what a protocol may put around an observation


class TextProtocol(gym.Wrapper[str, Any, str, Any], RecordConstructorArgs):
    """Takes actions as plain strings, and gives observations as a protocol writes them.

    ``info["system_prompt"]`` of a reset holds the instructions for the policy. A text that
    holds no call is an invalid move of the game; ``SearchEnv`` says what that costs. A
    ``CutText`` is such a move too, whatever call it seems to hold.

    Args:
        env: A search environment.
        protocol: ``search-r1``, ``hermes`` or ``react``.

    Raises:
        ConfigurationError: The protocol is unknown, or the environment takes no tool calls.
    """

    def __init__(self, env: gym.Env[str, Any], protocol: str) -> None:
        RecordConstructorArgs.__init__(self, protocol=protocol)
        gym.Wrapper.__init__(self, env)
        inner = env.unwrapped
        if not isinstance(inner, SearchEnv) or isinstance(env.action_space, Discrete):
            raise ConfigurationError(
                f"TextProtocol wraps an environment that is played by tool calls, got {env} with "
                f"actions {env.action_space}; try seekgym/Phantom-50-v0"
            )
        self.protocol = get_protocol(protocol, [tool.signature for tool in inner.tools.values()])
        self.action_space = FreeText(_MAX_ACTION_CHARS)
        limit = inner.rules.max_observation_chars
        self.observation_space = FreeText(2 * limit + _TAG_CHARS)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Return the question as the protocol writes it."""
        question, info = self.env.reset(seed=seed, options=options)
        info["system_prompt"] = self.protocol.system_prompt()
        return self.protocol.encode(question, "question"), info

    def step(self, action: str | CutText) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Run the call that the text holds."""
        call: Action
        if isinstance(action, str):
            call = self.protocol.decode(action)
        elif isinstance(action, Mapping) and action.get("is_cut") is True:
            call = cut_off()
        else:
            call = ProtocolError("malformed", f"A text is needed, got {type(action).__name__}.")
        observation, reward, terminated, truncated, info = self.env.step(call)
        kind: Kind = "notice" if isinstance(call, ProtocolError) else "result"
        text = self.protocol.encode(observation, kind)
        return text, float(reward), terminated, truncated, info
