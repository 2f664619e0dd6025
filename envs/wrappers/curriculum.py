"""A wrapper that makes an environment harder as its player gets better."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from ...corpora.errors import ConfigurationError
from ..rules import check_at_least

__all__ = ["Curriculum"]


class Curriculum(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Goes from stage to stage by measured success, as SearchGym-RL does (arXiv:2601.14615).

    A stage is a set of reset options, for example ``{"hops": 2}``. When the share of successes
    among the last ``window`` episodes of a stage reaches ``threshold``, the next stage begins;
    the last one goes on for ever. ``info["stage"]`` says which stage an episode belongs to.
    Options that are given to ``reset`` come on top of the stage's.

    Args:
        env: Any environment that takes difficulty in ``options``.
        stages: The options of each stage, easiest first.
        threshold: The share of successes that ends a stage, above 0 and at most 1.
        window: Over how many episodes it is measured.
        success: The return from which an episode counts as a success.

    Raises:
        ConfigurationError: A value is out of its range.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        stages: Sequence[Mapping[str, Any]],
        *,
        threshold: float = 0.8,
        window: int = 50,
        success: float = 1.0,
    ) -> None:
        RecordConstructorArgs.__init__(
            self, stages=stages, threshold=threshold, window=window, success=success
        )
        gym.Wrapper.__init__(self, env)
        if not stages or not all(isinstance(stage, Mapping) for stage in stages):
            raise ConfigurationError(f"stages must be a list of options, got {stages!r:.60}")
        if not 0 < threshold <= 1:
            raise ConfigurationError(f"threshold must be above 0 and at most 1, got {threshold!r}")
        check_at_least("window", window, 1)
        self.stages = tuple(dict(stage) for stage in stages)
        self.threshold = threshold
        self.success = success
        self.stage = 0
        self._successes: deque[bool] = deque(maxlen=window)
        self._return = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode of the present stage."""
        self._return = 0.0
        observation, info = self.env.reset(
            seed=seed, options={**self.stages[self.stage], **(options or {})}
        )
        info["stage"] = self.stage
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step, and at the end of an episode see whether the stage is over."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._return += float(reward)
        info["stage"] = self.stage
        if (terminated or truncated) and info.get("valid", True):
            self._count(self._return >= self.success)
        return observation, float(reward), terminated, truncated, info

    def _count(self, is_success: bool) -> None:
        successes = self._successes
        successes.append(is_success)
        is_full = len(successes) == successes.maxlen
        if is_full and sum(successes) >= self.threshold * len(successes):
            if self.stage + 1 < len(self.stages):
                self.stage += 1
            successes.clear()
